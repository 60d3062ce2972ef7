//! In which order the arm of a rotating drive serves what waits for it: a file for each policy.
//!
//! A policy is a function `choose(queue, head, state)`: of what waits ([`Queue`]), by the time that
//! the arm would take for each ([`Head`]) and by what was chosen before ([`State`]), which comes next.
//! It takes of the three what it needs, knows neither the write cache nor the mechanics, and decides
//! nothing else.

mod fcfs;
mod queue;
mod sptf;

pub use queue::{Choice, Command, Head, Queue, State};

use serde::{Deserialize, Serialize};

/// In which order the arm serves operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Shortest positioning time first: seek plus rotational wait.
    Sptf,
    /// First come, first served.
    Fcfs,
}

impl Scheduler {
    /// What the arm does next, of a queue that is not empty.
    #[inline]
    pub fn choose(self, queue: &Queue<'_>, head: &Head<'_>, state: &mut State) -> Choice {
        let choice = match self {
            _ if queue.is_one_command() => Choice::Command(0),
            Scheduler::Sptf => sptf::choose(queue, head, state),
            Scheduler::Fcfs => fcfs::choose(queue),
        };
        state.chosen(choice, queue);
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Direction;
    use crate::arm::tests::arm;
    use crate::write_cache::Segment;
    use Choice::{Cached, Command as Chosen};
    use imbrex_core::buffer::{Buffers, ContentKind};
    use imbrex_core::disk::{DiskOp, Geometry, Media};
    use imbrex_core::extent::Extent;
    use imbrex_core::operation::{Cause, Operation, Tag};
    use imbrex_core::stack::{Arrival, StackBuilder};
    use imbrex_core::units::{BlockCount, Instant};
    use std::collections::VecDeque;

    fn read() -> DiskOp {
        let mut builder = StackBuilder::new(0);
        let disk = builder.disk(Geometry::plain(BlockCount(1), Media::Conventional));
        let mut stack = builder.build(disk);
        let mut buffers = Buffers::new(ContentKind::Counted);
        let arrival = Arrival {
            tag: Tag(0),
            operation: Operation::Read,
            extent: Extent::new(0, 1),
            buffer: buffers.allocate(1),
        };
        stack.handle_request(Instant::ZERO, arrival, &mut buffers);
        stack.poll_disk_op().expect("the read").1
    }

    /// What a policy chooses of commands and cached writes, each given by its number in the order of
    /// arrival and its block.
    fn choice(
        scheduler: Scheduler,
        commands: &[(u64, u64)],
        cached: &[(u64, u64)],
        state: &mut State,
    ) -> Choice {
        let arm = arm(0);
        let command = |&(sequence, block): &(u64, u64)| Command {
            op: DiskOp { extent: Extent::new(block, 1), ..read() },
            direction: Direction::Read,
            place: arm.platters.place(block),
            ready: Instant::ZERO,
            sequence,
        };
        let segment = |&(sequence, block): &(u64, u64)| Segment {
            extent: Extent::new(block, 1),
            place: arm.platters.place(block),
            cause: Cause::Host,
            sequence,
        };
        let commands: VecDeque<_> = commands.iter().map(command).collect();
        let cached: Vec<_> = cached.iter().map(segment).collect();
        let queue = Queue::new(&commands, &cached, 2);
        scheduler.choose(&queue, &Head::new(&arm, Instant::ZERO, 0), state)
    }

    #[test]
    fn first_come_is_first_served_wherever_it_waits() {
        let choose = |commands: &[_], cached: &[_]| {
            choice(Scheduler::Fcfs, commands, cached, &mut State::new(0))
        };
        assert_eq!(choose(&[(3, 9), (4, 1)], &[]), Chosen(0));
        assert_eq!(choose(&[(3, 9)], &[(2, 500_000), (5, 1)]), Cached(0));
        assert_eq!(choose(&[(3, 500_000)], &[(4, 1)]), Chosen(0));
        assert_eq!(choose(&[], &[(4, 1)]), Cached(0));
    }

    /// The arm is at block 0, which lies on the first of tracks of 400 blocks.
    #[test]
    fn the_shortest_positioning_is_chosen_within_the_depth() {
        let choose = |commands: &[_], cached: &[_]| {
            choice(Scheduler::Sptf, commands, cached, &mut State::new(0))
        };
        assert_eq!(choose(&[(1, 300), (2, 100)], &[]), Chosen(1));
        assert_eq!(choose(&[(1, 300), (2, 200), (3, 100)], &[]), Chosen(1));
        assert_eq!(choose(&[(1, 300), (2, 200)], &[(3, 150)]), Cached(0));
        assert_eq!(choose(&[(1, 200), (2, 200)], &[]), Chosen(0));
    }

    #[test]
    fn the_oldest_command_is_passed_over_as_often_as_it_may_be() {
        let mut state = State::new(2);
        let mut next = || choice(Scheduler::Sptf, &[(1, 300), (2, 100)], &[], &mut state);
        let seen = [next(), next(), next(), next()];
        assert_eq!(seen, [Chosen(1), Chosen(1), Chosen(0), Chosen(1)]);
    }
}
