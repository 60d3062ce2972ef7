//! A cache that was shut down cleanly goes on as if nothing had happened.

use crate::cache_stacks::{cache_stack, policies, pore, settings};
use crate::harness::{JumpingClock, MemoryDisk, Step, random_steps};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind, Stamp};
use imbrex_core::cache::{CacheMode, CacheSettings, OpenZones, PolicySettings, next_uses};
use imbrex_core::counters::Counter;
use imbrex_core::disk::Disk;
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::{Arrival, NodeId, Stack};
use imbrex_core::state::StateError;
use imbrex_core::units::{Instant, Lba};

const BLOCKS: u64 = 120;

/// Plays reads and writes one after another and keeps what the reads saw.
struct Host<'a> {
    steps: &'a [Step],
    /// Number of the first step in the whole run.
    first: usize,
    next: usize,
    in_flight: Option<BufferSlice>,
    seen: Vec<Stamp>,
}

impl Frontend for Host<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        let ready = self.in_flight.is_none() && self.next < self.steps.len();
        ready.then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        let version = (self.first + self.next) as u64 + 1;
        let (operation, extent) = match self.steps[self.next] {
            Step::Write(extent) | Step::WriteDurable(extent) => (Operation::WRITE, extent),
            Step::Read(extent) | Step::Zero(extent) => (Operation::Read, extent),
            Step::Flush => (Operation::Read, Extent::new(0, 1)),
        };
        self.next += 1;
        let buffer = buffers.allocate(extent.blocks.0);
        for (i, stamp) in (0..).zip(buffers.stamps_mut(buffer).expect("stamped buffers")) {
            let lba = Lba(extent.start.0 + i);
            *stamp = Stamp { lba, version };
        }
        self.in_flight = Some(buffer);
        Some(Arrival {
            tag: Tag(0),
            operation,
            extent,
            buffer,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        completion.result.expect("no fault was planted");
        let buffer = self.in_flight.take().expect("one answer");
        self.seen
            .extend(buffers.stamps(buffer).expect("stamped buffers"));
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        self.next == self.steps.len() && self.in_flight.is_none()
    }
}

fn engine(stack: Stack, disks: Vec<MemoryDisk>) -> Engine {
    Engine {
        stack,
        disks: disks
            .into_iter()
            .map(|disk| Box::new(disk) as Box<dyn Disk>)
            .collect(),
        buffers: Buffers::new(ContentKind::Stamped),
        in_flight_max: 1,
    }
}

fn play(engine: &mut Engine, first: usize, steps: &[Step]) -> Vec<Stamp> {
    let mut host = Host {
        steps,
        first,
        next: 0,
        in_flight: None,
        seen: Vec::new(),
    };
    engine.run(&mut JumpingClock::default(), &mut host, &mut |_, _| {});
    host.seen
}

fn counts(engine: &Engine, node: NodeId) -> Vec<u64> {
    let counts = engine.stack.counts(node);
    [
        Counter::ReadHits,
        Counter::WriteHits,
        Counter::ReadLookups,
        Counter::WriteLookups,
        Counter::DirtyEvictions,
        Counter::CleanEvictions,
        Counter::ForcedEvictions,
        Counter::RegionDivisions,
    ]
    .map(|counter| counts.counter(counter))
    .to_vec()
}

#[test]
fn a_restored_cache_goes_on_where_the_saved_one_stopped() {
    for seed in 0..30 {
        let steps = random_steps(seed, 400, BLOCKS, 6);
        let (before, after) = steps.split_at(150 + seed as usize);
        let accesses: Vec<Lba> = steps
            .iter()
            .flat_map(|step| match step {
                Step::Flush => Extent::new(0, 1).start.0..1,
                Step::Read(e) | Step::Write(e) | Step::WriteDurable(e) | Step::Zero(e) => {
                    e.start.0..e.end().0
                }
            })
            .map(Lba)
            .collect();
        let mut policies = policies(BLOCKS);
        let next_uses = next_uses(&accesses).into();
        policies.push(("opt", PolicySettings::Opt { next_uses }));
        for (name, policy) in policies {
            let settings = settings(6 + seed * 2, 2, CacheMode::ReadWrite, policy);
            // One cache runs through; the other is replaced by a restored one half-way.
            let (stack, disks, node) = cache_stack(settings.clone(), BLOCKS, seed, 0);
            let mut whole = engine(stack, disks);
            play(&mut whole, 0, before);
            let half_way = counts(&whole, node);
            let saved = whole.stack.save();
            let expected = play(&mut whole, before.len(), after);

            let (stack, disks, _) = cache_stack(settings.clone(), BLOCKS, seed, 0);
            let mut first = engine(stack, disks);
            play(&mut first, 0, before);
            assert_eq!(first.stack.save(), saved, "{name}, seed {seed}");
            let (stack, _, node) = cache_stack(settings, BLOCKS, seed, 0);
            let mut second = Engine { stack, ..first };
            second.stack.restore(&saved).expect("a state just saved");
            let seen = play(&mut second, before.len(), after);

            assert_eq!(seen, expected, "{name}, seed {seed}");
            let added: Vec<u64> = counts(&whole, node)
                .into_iter()
                .zip(half_way)
                .map(|(after, before)| after - before)
                .collect();
            assert_eq!(counts(&second, node), added, "{name}, seed {seed}");
        }
    }
}

fn lru(capacity_blocks: u64) -> CacheSettings {
    settings(
        capacity_blocks,
        2,
        CacheMode::ReadWrite,
        PolicySettings::Lru,
    )
}

fn saved() -> Vec<Vec<u8>> {
    let (stack, disks, _) = cache_stack(lru(10), BLOCKS, 1, 0);
    let mut engine = engine(stack, disks);
    play(&mut engine, 0, &random_steps(1, 100, BLOCKS, 6));
    engine.stack.save()
}

fn restore(settings: CacheSettings, states: &[Vec<u8>]) -> Result<(), StateError> {
    let (mut stack, _, _) = cache_stack(settings, BLOCKS, 1, 0);
    stack.restore(states)
}

#[test]
fn a_state_of_other_settings_is_refused() {
    let refused = |settings| {
        restore(settings, &saved())
            .expect_err("other settings")
            .message
    };
    assert_eq!(
        refused(lru(11)),
        "the saved cache has capacity_blocks 10, the cache now has 11"
    );
    let pore = PolicySettings::Pore(pore(OpenZones::Bl));
    assert_eq!(
        refused(settings(10, 2, CacheMode::ReadWrite, pore)),
        "the saved cache has policy number 0, the cache now has 2"
    );
}

#[test]
fn a_damaged_state_is_an_error_and_never_a_panic() {
    let sound = saved();
    restore(lru(10), &sound).expect("an undamaged state");
    let cache = sound.len() - 1;
    for at in 0..sound[cache].len() {
        let mut cut = sound.clone();
        cut[cache].truncate(at);
        restore(lru(10), &cut).expect_err("a state that ends too early");
        for bit in 0..8 {
            let mut flipped = sound.clone();
            flipped[cache][at] ^= 1 << bit;
            // An address or a dirty bit may be changed into another valid one: no panic is enough.
            let _ = restore(lru(10), &flipped);
        }
    }
}
