//! Arrays on small simulated disks that hold contents: a member is lost, rebuilt, and another one lost.

use crate::harness::{CheckingHost, JumpingClock, Medium, Step, random_steps};
use crate::raid::{KINDS, SMALL, array_of, members};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::command::{Command, CommandId, CommandKind, CommandReply, CommandState};
use imbrex_core::counters::{Counter, Counts};
use imbrex_core::disk::Disk;
use imbrex_core::engine::{CommandArrival, Engine, Frontend, Replacement};
use imbrex_core::extent::Extent;
use imbrex_core::operation::Completion;
use imbrex_core::stack::{Arrival, DiskId, NodeId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_stack::{BuildOptions, Built, Plan, StackConfig};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What happens beside the requests.
enum Deed {
    Fail(NodeId),
    Replace(DiskId, Box<dyn Disk>),
    Rebuild(NodeId),
    /// Nothing comes before all that was asked for has ended.
    Settle,
}

/// A host that checks every block it reads, and a script of what happens after so many of its requests.
struct Scripted {
    host: CheckingHost,
    /// Tells the host of failures that may be.
    deeds: VecDeque<(usize, Deed)>,
    issued: usize,
    given: u64,
    under_way: usize,
    next_member: u16,
    refused: Vec<String>,
}

impl Scripted {
    fn is_due(&self) -> bool {
        self.deeds.front().is_some_and(|(after, _)| *after <= self.issued)
    }
}

impl Frontend for Scripted {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.is_due()).then(|| self.host.next_arrival()).flatten()
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.is_due() {
            return None;
        }
        let arrival = self.host.poll(now, buffers)?;
        self.issued += 1;
        Some(arrival)
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        self.host.reply(now, completion, buffers);
    }

    fn finished(&self) -> bool {
        self.host.finished() && self.deeds.is_empty() && self.under_way == 0
    }

    fn next_command(&self) -> Option<Instant> {
        let waits = matches!(self.deeds.front(), Some((_, Deed::Settle))) && self.under_way > 0;
        (self.is_due() && !waits).then_some(Instant::ZERO)
    }

    fn poll_command(&mut self, _now: Instant) -> Option<CommandArrival> {
        self.next_command()?;
        let (_, deed) = self.deeds.pop_front()?;
        let id = CommandId(self.given);
        let command = |node, kind| CommandArrival::Command { node, command: Command { id, kind } };
        let arrival = match deed {
            Deed::Settle => return None,
            Deed::Fail(node) => command(node, CommandKind::Fail),
            Deed::Rebuild(node) => command(node, CommandKind::Rebuild(None)),
            Deed::Replace(disk, with) => {
                let first_member = self.next_member;
                self.next_member += 1;
                CommandArrival::Replace(Replacement { id, disk, with, first_member })
            }
        };
        self.given += 1;
        self.under_way += 1;
        Some(arrival)
    }

    fn reply_to_command(&mut self, _now: Instant, reply: CommandReply) {
        let CommandState::Ended(result) = reply.state else { return };
        self.under_way -= 1;
        self.refused.extend(result.err().map(|error| error.to_string()));
    }
}

/// Blocks of a device that holds something.
const SMALL_BLOCKS: u64 = 256;
/// Requests of a host that checks.
const STEPS: u64 = 150;

/// Loses a member in the middle of requests, gets it back, and loses another one when all is whole. Every
/// block is read before that and after it: without a member it is found by what was rebuilt. Returns what the
/// array has counted.
fn live(seed: u64, kind: &str, spares: usize, text: &str) -> Counts {
    let told = format!("seed {seed}, {kind}, {spares} spares");
    let config = StackConfig::from_text("small.toml", text, &[]).expect("a stack");
    let options = BuildOptions {
        size_bytes: Some(SMALL_BLOCKS * BLOCK_BYTES),
        trim_disks: seed.is_multiple_of(2),
        ..BuildOptions::simulate(seed)
    };
    let plan = Plan::new(&config, &options).unwrap_or_else(|error| panic!("{told}: {error}"));
    let built = plan.build(None, None, ContentKind::Stamped);
    let Built { stack, disks, describe } = built.unwrap_or_else(|error| panic!("{told}: {error}"));
    let node =
        |name: &str| describe.nodes.iter().find(|node| node.name == name).expect("a node").id;
    let all = members(kind) as u64;
    let lost = [seed % all, (seed + 1 + seed / all % (all - 1)) % all].map(|it| format!("d{it}"));
    let mut deeds = vec![(40, Deed::Fail(node(&lost[0])))];
    if spares == 0 {
        let design = plan.design(&lost[0], None, ContentKind::Stamped).expect("a design");
        let with = Box::new(design.simulate().expect("a disk"));
        let disk = stack.disk_of(node(&lost[0])).expect("a disk");
        deeds.push((70, Deed::Replace(disk, with)));
        deeds.push((80, Deed::Rebuild(node("array"))));
    }
    let look = (0..SMALL_BLOCKS).step_by(16).map(|start| Step::Read(Extent::new(start, 16)));
    let mut steps = random_steps(seed, STEPS, SMALL_BLOCKS, 12);
    deeds.push((steps.len(), Deed::Settle));
    steps.extend(look.clone());
    deeds.push((steps.len(), Deed::Fail(node(&lost[1]))));
    steps.extend(look);
    let medium = Rc::<RefCell<Medium>>::default();
    let mut script = Scripted {
        host: CheckingHost::new(steps, 1 + seed as usize % 8, vec![Rc::clone(&medium)]),
        deeds: deeds.into(),
        issued: 0,
        given: 0,
        under_way: 0,
        next_member: stack.next_member(),
        refused: Vec::new(),
    };
    let buffers = Buffers::new(ContentKind::Stamped);
    let mut engine = Engine { stack, disks, buffers, in_flight_max: 64 };
    engine.run(&mut JumpingClock::default(), &mut script, &mut |_, _| {});
    assert_eq!(script.host.failure, None, "{told}: {lost:?}");
    assert_eq!(script.refused, [""; 0], "{told}: {lost:?}");
    assert_eq!(engine.buffers.allocated(), 0, "{told}");
    engine.stack.counts(node("array")).clone()
}

#[test]
fn every_block_is_there_after_a_loss_and_a_rebuild() {
    for kind in KINDS {
        for keys in [
            "bands = \"disk\"\nplacement = \"static\"\ncollect_at = 6\n",
            "bands = \"disk\"\nplacement = \"append\"\ncollect_at = 6\n",
            "collect_at = 6\n",
        ] {
            let (homes, keys) = match kind {
                "raid4smr" => (if keys.contains("bands") { "d" } else { "z" }, keys),
                _ => ("d", ""),
            };
            let (mut rebuilt, mut degraded, mut collections) = (0, 0, 0);
            for seed in 0..40 {
                let spares = (seed / 2 % 2) as usize;
                let array = array_of(&SMALL, kind, spares, keys, homes);
                let counts = live(seed, kind, spares, &format!("name = \"small\"\n{array}"));
                rebuilt += counts.counter(Counter::RebuiltBlocks);
                degraded += counts.counter(Counter::DegradedReadBlocks);
                collections += counts.counter(Counter::Collections);
            }
            assert!(rebuilt > 1000, "{kind}: {keys}");
            // Of copies only what was under way is read again.
            assert!(degraded > if kind == "raid1" { 0 } else { 500 }, "{kind}: {keys}: {degraded}");
            assert_eq!(collections > 400, kind == "raid4smr", "{kind}: {keys}: {collections}");
        }
    }
}
