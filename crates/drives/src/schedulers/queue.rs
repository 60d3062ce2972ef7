//! What a policy sees of a drive.

use crate::arm::{Arm, Direction};
use crate::platters::Place;
use crate::write_cache::Segment;
use imbrex_core::disk::DiskOp;
use imbrex_core::saved::SavedValue;
use imbrex_core::units::Instant;
use std::collections::VecDeque;

/// A command that needs the arm.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Command {
    /// What the host asked for.
    pub op: DiskOp,
    /// Direction of its transfer.
    pub direction: Direction,
    /// Where its first block lies.
    pub place: Place,
    /// When it has been decoded.
    pub ready: Instant,
    /// Order of arrival among all operations of the drive.
    pub sequence: u64,
}

/// One of what waits for the arm.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    /// The first block.
    pub block: u64,
    /// Where that lies.
    pub place: &'a Place,
    /// Direction of the transfer.
    pub direction: Direction,
    /// Before when it cannot start.
    pub ready: Instant,
    /// Order of arrival among all operations of the drive.
    pub sequence: u64,
}

impl Command {
    #[inline]
    fn waiting(&self) -> Waiting<'_> {
        Waiting {
            block: self.op.extent.start.0,
            place: &self.place,
            direction: self.direction,
            ready: self.ready,
            sequence: self.sequence,
        }
    }
}

impl Segment {
    #[inline]
    fn waiting(&self) -> Waiting<'_> {
        Waiting {
            block: self.extent.start.0,
            place: &self.place,
            direction: Direction::Write,
            ready: Instant::ZERO,
            sequence: self.sequence,
        }
    }
}

/// What the arm does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// A command, by its place in the queue.
    Command(usize),
    /// A write that has been answered, by its place in the write cache.
    Cached(usize),
}

/// What waits for the arm: commands, and the writes in the cache that are to reach the medium now.
#[derive(Clone, Copy)]
pub struct Queue<'a> {
    commands: &'a VecDeque<Command>,
    cached: &'a [Segment],
    /// Commands from the oldest on that a policy can choose from.
    depth: usize,
}

impl<'a> Queue<'a> {
    /// What waits, `commands` in the order of arrival.
    #[inline]
    pub fn new(commands: &'a VecDeque<Command>, cached: &'a [Segment], depth: usize) -> Queue<'a> {
        Queue { commands, cached, depth }
    }

    /// True when there is nothing but one command.
    #[inline]
    pub(super) fn is_one_command(&self) -> bool {
        self.cached.is_empty() && self.commands.len() == 1
    }

    /// True when a command waits.
    #[inline]
    pub(super) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// The commands that can be chosen, in the order of arrival.
    #[inline]
    pub(super) fn commands(&self) -> impl Iterator<Item = Waiting<'a>> {
        self.commands.iter().take(self.depth).map(Command::waiting)
    }

    /// The writes in the cache that can be chosen, in the order of arrival.
    #[inline]
    pub(super) fn cached(&self) -> impl Iterator<Item = Waiting<'a>> {
        self.cached.iter().map(Segment::waiting)
    }
}

/// The arm at the moment of a choice.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    arm: &'a Arm,
    at: Instant,
    guard_ns: u64,
}

impl<'a> Head<'a> {
    /// The arm, idle at `at`; a rotational wait below `guard_ns` counts as missed.
    #[inline]
    pub fn new(arm: &'a Arm, at: Instant, guard_ns: u64) -> Head<'a> {
        Head { arm, at, guard_ns }
    }

    /// When the first block of `waiting` would be under the head, by plan, where that is before `limit_ns`.
    #[inline]
    pub(super) fn planned_ns_before(&self, limit_ns: u64, waiting: &Waiting<'_>) -> Option<u64> {
        let Waiting { block, place, direction, ready, .. } = *waiting;
        let start = self.at.max(ready);
        self.arm.planned_ns_before(limit_ns, start, block, place, direction, self.guard_ns)
    }
}

/// What is remembered from one choice to the next.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct State {
    /// How often the oldest command may be passed over; 0 is without limit.
    age_window: u32,
    /// How often it was.
    oldest_passed: u32,
}

impl State {
    /// Before the first choice.
    pub fn new(age_window: u32) -> State {
        State { age_window, oldest_passed: 0 }
    }

    /// True when the oldest command was passed over as often as it may be.
    #[inline]
    pub(super) fn is_oldest_due(&self) -> bool {
        self.age_window > 0 && self.oldest_passed >= self.age_window
    }

    /// Notes what was chosen from a queue.
    #[inline]
    pub(super) fn chosen(&mut self, choice: Choice, queue: &Queue<'_>) {
        match choice {
            Choice::Command(0) => self.oldest_passed = 0,
            Choice::Command(_) => self.oldest_passed += 1,
            Choice::Cached(_) => self.oldest_passed += u32::from(queue.has_commands()),
        }
    }
}
