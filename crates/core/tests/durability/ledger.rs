//! The ledger through the smallest layer that holds one: volatile and journaled make the same calls,
//! and what a journaled one has answered is there afterwards.

use crate::common::harness::JumpingClock;
use crate::common::journal_disk::{ByteDisk, ByteMedium};
use crate::common::journal_world::{Host, SET, Step, durably, write};
use crate::ledger_toy::{BLOCKS, LedgerToy, member_blocks};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Start;
use imbrex_core::operation::Operation;
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

type Medium = Rc<RefCell<ByteMedium>>;

struct World {
    media: [Medium; 2],
    engine: Engine,
    clock: JumpingClock,
}

impl World {
    fn new(is_journaled: bool, media: [Medium; 2], start: Start) -> World {
        let mut builder = StackBuilder::new(1);
        let sizes = [member_blocks(), 1];
        let plain = |blocks: u64| Geometry::plain(BlockCount(blocks), Media::SolidState);
        let ports = sizes.map(|blocks| builder.disk(plain(blocks)));
        let toy = LedgerToy::new(is_journaled);
        let top = builder.layer(Box::new(toy), plain(BLOCKS), &ports);
        let disk = |(medium, blocks): (&Medium, u64)| ByteDisk::new(blocks, medium, 1, 1000);
        let mut world = World {
            engine: Engine {
                stack: builder.build(top),
                disks: media.iter().zip(sizes).map(|both| Box::new(disk(both)) as _).collect(),
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 64,
            },
            media,
            clock: JumpingClock::default(),
        };
        let opened = world.engine.open(&mut world.clock, start);
        opened.expect("it comes up");
        world
    }

    fn play(&mut self, host: &mut Host, steps: &[Step]) {
        host.begin(steps.to_vec(), &self.media[0]);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
        assert_eq!(self.engine.buffers.allocated(), 0, "buffers were lost");
    }

    /// Every block, as its version.
    fn read_all(&mut self) -> BTreeMap<u64, Result<u64, ()>> {
        let mut host = Host::new(1);
        let read = |block| Step::Read(Extent::new(block, 1));
        let steps: Vec<Step> = (0..BLOCKS).map(read).collect();
        self.play(&mut host, &steps);
        host.found
    }

    fn flushes(&self, member: usize) -> usize {
        self.media[member].borrow().flushes()
    }
}

fn formatted(is_journaled: bool) -> World {
    World::new(is_journaled, Default::default(), Start::Format(SET))
}

/// Writes over and over, so that places must be used again and the ring wraps.
fn steps() -> Vec<Step> {
    (0..120)
        .map(|at| match at % 12 {
            5 => durably(at % BLOCKS),
            11 => Step::Flush,
            _ => write(at * 5 % BLOCKS),
        })
        .collect()
}

#[test]
fn a_volatile_and_a_journaled_ledger_answer_the_same() {
    let found = [false, true].map(|is_journaled| {
        let mut world = formatted(is_journaled);
        let mut host = Host::new(1);
        world.play(&mut host, &steps());
        assert!(host.failures.is_empty(), "{:?}", host.failures);
        let found = world.read_all();
        let closed = world.engine.close(&mut world.clock);
        assert!(closed.is_ok());
        found
    });
    assert_eq!(found[0], found[1]);
    assert!(found[0].values().all(|version| *version != Ok(0)));
}

#[test]
fn what_was_answered_is_there_after_a_crash_and_after_a_shutdown() {
    let mut world = formatted(true);
    world.play(&mut Host::new(1), &steps());
    let written = world.read_all();
    for is_closed in [false, true] {
        let media = world.media.each_ref().map(Rc::clone);
        world = World::new(true, media, Start::Recover(Some(SET)));
        assert_eq!(world.read_all(), written);
        world.play(&mut Host::new(1), &[Step::Flush]);
        if is_closed {
            let closed = world.engine.close(&mut world.clock);
            assert!(closed.is_ok());
        }
    }
    let media = world.media.each_ref().map(Rc::clone);
    assert_eq!(World::new(true, media, Start::Recover(Some(SET))).read_all(), written);
}

#[test]
fn a_flush_of_the_host_flushes_both_ports() {
    for is_journaled in [false, true] {
        let mut world = formatted(is_journaled);
        let before = [0, 1].map(|member| world.flushes(member));
        world.play(&mut Host::new(1), &[write(1), Step::Flush]);
        let after = [0, 1].map(|member| world.flushes(member));
        assert_eq!(after, before.map(|flushes| flushes + 1));
    }
}

#[test]
fn a_failed_flush_of_either_port_is_for_ever_where_there_is_a_journal() {
    for (is_journaled, member) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let mut world = formatted(is_journaled);
        world.play(&mut Host::new(1), &[write(1)]);
        // On the first member the next operation is that of the journal's flush; without a
        // journal it is the host's own.
        let next = world.media[member].borrow().operations.len();
        world.media[member].borrow_mut().fails = Some(next);
        let mut host = Host::new(1);
        world.play(&mut host, &[Step::Flush, write(2), Step::Flush]);
        let failed = world.media[member].borrow().operations[next].0;
        assert_eq!(failed, Operation::Flush);
        let expected = match is_journaled {
            true => vec![Step::Flush, write(2), Step::Flush],
            false => vec![Step::Flush],
        };
        assert_eq!(host.failures, expected);
        let found = world.read_all();
        assert_eq!(found[&1], Ok(2), "reads go on");
    }
}
