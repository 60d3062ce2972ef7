//! A host that checks every answer, and an operator who breaks and mends disks.

use crate::common::harness::{JumpingClock, MemoryDisk};
use imbrex_core::buffer::{BufferSlice, Buffers, Stamp};
use imbrex_core::command::{Command, CommandId, CommandKind, CommandReply, CommandState};
use imbrex_core::disk::Disk;
use imbrex_core::engine::{CommandArrival, Engine, Frontend, Replacement};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::stack::{Arrival, DiskId, NodeId};
use imbrex_core::units::{Instant, Lba};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is done next.
pub enum Deed {
    Read(Extent),
    Write(Extent),
    Zero(Extent),
    Flush,
    /// Nothing is sent before all has been answered.
    Settle,
    /// A disk is lost.
    Fail(NodeId),
    /// The same, unless an array would lose data with it.
    TakeOut(NodeId),
    /// A lost disk is a new one.
    Replace(DiskId, MemoryDisk),
    Rebuild(NodeId),
}

/// A request in flight.
struct Asked {
    operation: Operation,
    extent: Extent,
    buffer: BufferSlice,
    /// For each block how many writes of it came before.
    before: Vec<usize>,
}

/// What the host knows. It outlives its deeds.
#[derive(Default)]
pub struct Known {
    version: u64,
    /// What was written to each block, in the order of the requests, and whether that has failed.
    writes: BTreeMap<u64, Vec<(Stamp, bool)>>,
    /// Errors that may come.
    pub may_fail: Vec<IoError>,
    /// Blocks of which a read has failed.
    pub lost: BTreeSet<u64>,
    /// What was said of commands that came to nothing.
    pub refused: Vec<String>,
}

impl Known {
    /// Nothing yet, where some errors may come.
    pub fn may_fail(errors: &[IoError]) -> Known {
        Known { may_fail: errors.to_vec(), ..Known::default() }
    }
}

/// Does one thing after another.
pub struct Host<'k> {
    pub known: &'k mut Known,
    deeds: VecDeque<Deed>,
    depth: usize,
    in_flight: BTreeMap<u64, Asked>,
    commands: u64,
    next: u64,
    mistake: Option<String>,
}

impl Host<'_> {
    /// Plays deeds; says what went wrong first.
    pub fn play(
        engine: &mut Engine,
        clock: &mut JumpingClock,
        known: &mut Known,
        deeds: Vec<Deed>,
        depth: usize,
    ) -> Result<(), String> {
        let mut host = Host {
            known,
            deeds: deeds.into(),
            depth,
            in_flight: BTreeMap::new(),
            commands: 0,
            next: 0,
            mistake: None,
        };
        engine.run(clock, &mut host, &mut |_, _| {});
        match host.mistake {
            Some(mistake) => Err(mistake),
            None if engine.buffers.allocated() > 0 => Err("buffers were not given back".into()),
            None => Ok(()),
        }
    }

    fn is_ready(&self) -> bool {
        match self.deeds.front() {
            None => false,
            Some(Deed::Settle) => self.in_flight.is_empty() && self.commands == 0,
            Some(_) => self.in_flight.len() < self.depth,
        }
    }

    fn is_command_next(&self) -> bool {
        use Deed::{Fail, Rebuild, Replace, TakeOut};
        matches!(self.deeds.front(), Some(Fail(_) | TakeOut(_) | Replace(..) | Rebuild(_)))
    }

    fn skip_settled(&mut self) {
        while matches!(self.deeds.front(), Some(Deed::Settle)) && self.is_ready() {
            self.deeds.pop_front();
        }
    }
}

impl Known {
    fn writes_of(&self, block: u64) -> &[(Stamp, bool)] {
        self.writes.get(&block).map_or(&[], Vec::as_slice)
    }

    /// What a block may be after so many writes: that of the last one; where that has failed, that of the one
    /// before too.
    fn may_be(&self, block: u64, writes: usize) -> Vec<Stamp> {
        let mut may_be = Vec::new();
        for (stamp, has_failed) in self.writes_of(block)[..writes].iter().rev() {
            may_be.push(*stamp);
            if !has_failed {
                return may_be;
            }
        }
        may_be.push(Stamp::ZERO);
        may_be
    }
}

impl Frontend for Host<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        (self.is_ready() && !self.is_command_next()).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.skip_settled();
        if !self.is_ready() || self.is_command_next() {
            return None;
        }
        let tag = self.next;
        self.next += 1;
        let plain = Operation::Zero { durability: Durability::Cached, may_unmap: true };
        let (operation, extent) = match self.deeds.pop_front()? {
            Deed::Read(extent) => (Operation::Read, extent),
            Deed::Write(extent) => (Operation::WRITE, extent),
            Deed::Zero(extent) => (plain, extent),
            _ => (Operation::Flush, Extent::EMPTY),
        };
        let blocks = extent.start.0..extent.end().0;
        let buffer = match operation.has_data() {
            true => buffers.allocate(extent.blocks.0),
            false => BufferSlice::EMPTY,
        };
        let before = blocks.clone().map(|block| self.known.writes_of(block).len()).collect();
        let asked = Asked { operation, extent, buffer, before };
        if matches!(operation, Operation::Write { .. } | Operation::Zero { .. }) {
            self.known.version += 1;
            let version = self.known.version;
            let stamp = |lba| match operation {
                Operation::Zero { .. } => Stamp::ZERO,
                _ => Stamp { lba: Lba(lba), version },
            };
            let stamps: Vec<Stamp> = blocks.clone().map(stamp).collect();
            if buffer.blocks > 0
                && let Some(data) = buffers.stamps_mut(buffer)
            {
                data.copy_from_slice(&stamps);
            }
            for (block, stamp) in blocks.zip(stamps) {
                self.known.writes.entry(block).or_default().push((stamp, false));
            }
        }
        self.in_flight.insert(tag, asked);
        Some(Arrival { tag: Tag(tag), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let asked = self.in_flight.remove(&completion.tag.0).expect("a request in flight");
        let blocks = asked.extent.start.0..asked.extent.end().0;
        if let Err(error) = completion.result
            && !self.known.may_fail.contains(&error)
        {
            let words = format!("{:?} of {:?} failed: {error:?}", asked.operation, asked.extent);
            self.mistake.get_or_insert(words);
        }
        match (asked.operation, completion.result) {
            (Operation::Read, Ok(())) => {
                let got = buffers.stamps(asked.buffer).expect("stamped buffers").to_vec();
                for ((block, got), before) in blocks.zip(got).zip(&asked.before) {
                    let may_be = self.known.may_be(block, *before);
                    if !may_be.contains(&got) {
                        let words = format!("block {block} reads {got:?}, expected {may_be:?}");
                        self.mistake.get_or_insert(words);
                    }
                }
            }
            (Operation::Read, Err(_)) => self.known.lost.extend(blocks),
            (_, Err(_)) => {
                for (block, before) in blocks.zip(asked.before) {
                    let writes = self.known.writes.get_mut(&block).expect("a write");
                    writes[before].1 = true;
                }
            }
            (_, Ok(())) => {}
        }
        if asked.buffer.blocks > 0 {
            buffers.release(asked.buffer);
        }
    }

    fn finished(&self) -> bool {
        self.deeds.iter().all(|deed| matches!(deed, Deed::Settle))
            && self.in_flight.is_empty()
            && self.commands == 0
    }

    fn next_command(&self) -> Option<Instant> {
        (self.is_ready() && self.is_command_next()).then_some(Instant::ZERO)
    }

    fn poll_command(&mut self, _now: Instant) -> Option<CommandArrival> {
        self.skip_settled();
        if !self.is_ready() || !self.is_command_next() {
            return None;
        }
        self.commands += 1;
        self.next += 1;
        let id = CommandId(self.next);
        let command = |node, kind| CommandArrival::Command { node, command: Command { id, kind } };
        Some(match self.deeds.pop_front()? {
            Deed::Fail(node) => command(node, CommandKind::Fail),
            Deed::TakeOut(node) => command(node, CommandKind::TakeOut),
            Deed::Rebuild(node) => command(node, CommandKind::Rebuild(None)),
            Deed::Replace(disk, with) => {
                let with: Box<dyn Disk> = Box::new(with);
                CommandArrival::Replace(Replacement { id, disk, with, first_member: 100 })
            }
            _ => unreachable!("a command comes next"),
        })
    }

    fn reply_to_command(&mut self, _now: Instant, reply: CommandReply) {
        if let CommandState::Ended(result) = reply.state {
            self.commands -= 1;
            if let Err(error) = result {
                self.known.refused.push(error.to_string());
            }
        }
    }
}
