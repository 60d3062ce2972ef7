//! Policies that take nothing but the order in which blocks are used, and how many fit: a file and a line
//! each. How another one is added is in `docs/adding-a-policy.md`.

mod ghost_list;
mod two_queues;
mod used_queue;

use super::policy::EvictionPolicy;
use alloc::boxed::Box;

/// Makes the enum of these policies: each line has the file and the type of one, its word, and its number
/// in saved states, which none may have twice.
macro_rules! plain_policies {
    ($($(#[$doc:meta])* $file:ident::$policy:ident = $word:literal, $number:literal;)*) => {
        $(mod $file;)*

        crate::words! {
            /// A policy that has no settings.
            pub enum PlainPolicy {
                $($(#[$doc])* $policy = $word),*
            }
        }

        impl PlainPolicy {
            /// The policy of a cache of so many blocks, empty.
            pub(super) fn build(self, capacity_blocks: u64) -> Box<dyn EvictionPolicy> {
                match self {
                    $(PlainPolicy::$policy => Box::new($file::$policy::new(capacity_blocks))),*
                }
            }

            /// Its number in saved states.
            pub(super) fn number(self) -> u64 {
                match self {
                    $(PlainPolicy::$policy => $number),*
                }
            }
        }
    };
}

plain_policies! {
    /// The least recently used block leaves.
    lru::Lru = "lru", 0;
    /// No block leaves: the capacity must be that of the node below. An upper bound.
    unlimited::Unlimited = "unlimited", 3;
    /// The block that came first leaves.
    fifo::Fifo = "fifo", 9;
    /// The block that came first leaves, unless it was used since the hand last passed it.
    clock::Clock = "clock", 10;
    /// The same with a hand that stays where it is, and newcomers before it.
    sieve::Sieve = "sieve", 11;
    /// Newcomers pass through a small queue, where those prove themselves that stay.
    s3_fifo::S3Fifo = "s3-fifo", 12;
    /// Newcomers wait in a queue, and those that come back after it are kept by their last use.
    two_q::TwoQ = "2q", 13;
    /// Blocks used once and blocks used again share the cache as those that come back say.
    arc::Arc = "arc", 14;
}
