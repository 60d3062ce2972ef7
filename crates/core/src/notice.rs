//! What a person must know of a stack, whoever asks for it or not.
//!
//! A layer says it with [`Context::notice`](crate::layer::Context::notice). The engine hands it to the
//! [`Frontend`](crate::engine::Frontend) at the end of the instant. Nothing depends on it: a frontend
//! that has nobody to tell lets it go.

use alloc::collections::VecDeque;

/// Notices that wait for a frontend at most. Beyond them the oldest is dropped and counted.
pub const NOTICES_MAX: usize = 1024;

/// Something that has happened.
///
/// A `member` of an array is the number of the port behind which its disk is at that time. The layer that
/// says it is the one whose port it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The disk is lost to the nodes above it. The stack says so itself, of each disk.
    DiskLost,
    /// An array goes on without a member.
    MemberLost {
        /// Its port.
        member: u8,
    },
    /// An array has lost a member that it could not do without: there are blocks that cannot be found
    /// any more.
    SecondLoss {
        /// Its port.
        member: u8,
    },
    /// A spare takes the place of a member.
    SpareTaken {
        /// The port of the member that is lost.
        member: u8,
        /// The port of the spare.
        port: u8,
    },
    /// The rebuild of a member is over.
    RebuildEnded {
        /// Its port.
        member: u8,
        /// It has all that it should have.
        is_whole: bool,
    },
    /// All of an array was read and compared.
    ScrubEnded {
        /// Blocks that were wrong.
        wrong: u64,
        /// Those of them that are right again.
        repaired: u64,
        /// Blocks that could not be read.
        unreadable: u64,
    },
    /// A block of a member was wrong.
    ScrubFound {
        /// Its port.
        member: u8,
        /// Where it is, in the addresses of the node behind the port.
        block: u64,
        /// It is right again.
        is_repaired: bool,
    },
    /// A member that was away is there again, with what it had.
    MemberReturned {
        /// Its port.
        member: u8,
        /// What it lacked and was given.
        resynced_bytes: u64,
    },
}

/// The notices that no frontend has taken yet, each with the node that it is from.
pub(crate) struct Notices<N> {
    queue: VecDeque<(N, Notice)>,
    dropped: u64,
}

impl<N> Default for Notices<N> {
    fn default() -> Notices<N> {
        Notices { queue: VecDeque::new(), dropped: 0 }
    }
}

impl<N> Notices<N> {
    #[cold]
    pub fn push(&mut self, node: N, notice: Notice) {
        if self.queue.len() >= NOTICES_MAX {
            self.queue.pop_front();
            self.dropped += 1;
        }
        self.queue.push_back((node, notice));
    }

    pub fn pop(&mut self) -> Option<(N, Notice)> {
        self.queue.pop_front()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Notices that were dropped since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        core::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_notices_are_dropped_and_counted() {
        let mut notices = Notices::default();
        let of = |block| Notice::ScrubFound { member: 0, block, is_repaired: true };
        for block in 0..NOTICES_MAX as u64 + 3 {
            notices.push(1, of(block));
        }
        assert_eq!(notices.take_dropped(), 3);
        assert_eq!(notices.take_dropped(), 0);
        assert_eq!(notices.pop(), Some((1, of(3))));
        let rest = std::iter::from_fn(|| notices.pop()).count();
        assert_eq!(rest, NOTICES_MAX - 1);
        assert!(notices.is_empty());
    }
}
