//! What can go wrong with a member while it runs.

use super::medium::{Block, Medium};
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;

/// Which operations a fault counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// Reads.
    Read,
    /// Writes and zeroings.
    Write,
    /// Flushes.
    Flush,
}

impl CallKind {
    /// The kind of an operation.
    pub fn of(operation: Operation) -> CallKind {
        match operation {
            Operation::Read => CallKind::Read,
            Operation::Flush => CallKind::Flush,
            _ => CallKind::Write,
        }
    }

    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            CallKind::Read => "read",
            CallKind::Write => "write",
            CallKind::Flush => "flush",
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The operation fails; a flush that fails drops the writes it should have covered.
    Error,
    /// The write fails because there is no room below, and so do the next ones, this many in all.
    NoSpace(u64),
    /// The write fails after its first half has reached the medium.
    Short,
    /// The write succeeds and never reaches the medium.
    Lost,
    /// The write succeeds and reaches another place, this many blocks further on.
    Misdirected(u64),
    /// The read finds this many blocks before the end of what it wants unreadable, and so does
    /// every later read of that block until it is written.
    Latent(u64),
    /// The operation takes half a minute.
    Stuck,
    /// The operation and every later one take a hundred times as long.
    Slow,
    /// The operation and every later one of any kind fail.
    Dead,
}

impl FaultKind {
    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Error => "error",
            FaultKind::NoSpace(_) => "no-space",
            FaultKind::Short => "short-write",
            FaultKind::Lost => "lost-write",
            FaultKind::Misdirected(_) => "misdirected-write",
            FaultKind::Latent(_) => "latent-error",
            FaultKind::Stuck => "stuck",
            FaultKind::Slow => "slow",
            FaultKind::Dead => "dead",
        }
    }
}

/// Something that goes wrong at the n-th call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The member.
    pub member: usize,
    /// Which calls are counted.
    pub call: CallKind,
    /// The number of the call, from 0.
    pub nth: u64,
    /// What happens.
    pub kind: FaultKind,
}

/// The fault of a run and how far it has come.
#[derive(Default)]
pub struct FaultState {
    fault: Option<Fault>,
    /// Calls so far, by member and kind.
    calls: Vec<[u64; 3]>,
    /// The fault has happened.
    fired: bool,
    /// A block that cannot be read.
    unreadable: Option<(usize, u64)>,
    /// Blocks that are not where they should be: member, address and content.
    astray: Vec<(usize, u64, Block)>,
}

impl FaultState {
    /// A fault that has not happened yet, or none.
    pub fn new(fault: Option<Fault>, members: usize) -> FaultState {
        FaultState { fault, calls: vec![[0; 3]; members], ..FaultState::default() }
    }

    /// True when there is a fault and it has not happened yet.
    pub fn is_to_come(&self) -> bool {
        self.fault.is_some() && !self.fired
    }

    /// True when the fault has happened.
    pub fn has_fired(&self) -> bool {
        self.fired
    }

    /// Blocks that a lost or misdirected write has taken away: member, address and content.
    pub fn astray(&self) -> &[(usize, u64, Block)] {
        &self.astray
    }

    /// Writes down the blocks that a write to `meant` does not bring, and those that it overwrites
    /// at `start` instead.
    pub fn note_astray(
        &mut self,
        member: usize,
        meant: u64,
        data: &[Block],
        start: Option<u64>,
        medium: &Medium,
    ) {
        let lost = (meant..).zip(data);
        self.astray.extend(lost.map(|(at, block)| (member, at, block.clone())));
        let overwritten = start.map_or(0..0, |start| start..start + data.len() as u64);
        self.astray.extend(overwritten.map(|at| (member, at, medium.block(at).clone())));
    }

    /// How many calls of a kind a member has seen.
    pub fn calls(&self, member: usize, call: CallKind) -> u64 {
        self.calls[member][call as usize]
    }

    /// Counts a call and says what goes wrong with it.
    pub fn next(
        &mut self,
        member: usize,
        operation: Operation,
        extent: Extent,
    ) -> Option<FaultKind> {
        let call = CallKind::of(operation);
        let number = self.calls[member][call as usize];
        self.calls[member][call as usize] += 1;
        if self.hits_unreadable(member, call, extent) {
            return Some(FaultKind::Error);
        }
        let fault = self.fault.filter(|fault| fault.member == member)?;
        let same = fault.call == call;
        let hit = match fault.kind {
            FaultKind::Dead | FaultKind::Slow => self.fired || (same && number == fault.nth),
            FaultKind::NoSpace(count) => {
                same && (fault.nth..fault.nth.saturating_add(count)).contains(&number)
            }
            _ => same && number == fault.nth,
        };
        if !hit {
            return None;
        }
        self.fired = true;
        if let FaultKind::Latent(back) = fault.kind {
            let last = extent.end().0 - 1;
            self.unreadable = Some((member, last - back.min(extent.blocks.0 - 1)));
            return Some(FaultKind::Error);
        }
        Some(fault.kind)
    }

    /// True when a read meets the unreadable block; a write makes it readable again.
    fn hits_unreadable(&mut self, member: usize, call: CallKind, extent: Extent) -> bool {
        let Some((at_member, block)) = self.unreadable else {
            return false;
        };
        let inside = (extent.start.0..extent.end().0).contains(&block) && member == at_member;
        if inside && call == CallKind::Write {
            self.unreadable = None;
        }
        inside && call == CallKind::Read
    }
}
