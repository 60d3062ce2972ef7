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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::policy::{AccessKind, PolicyEvents};
    use crate::rng::Rng;
    use crate::state::StateWriter;
    use crate::units::Lba;
    use crate::words::Words;
    use alloc::vec::Vec;

    /// A checkpoint has 32 bytes a slot for the state of a cache, of which its address and its slot take 16. So
    /// no policy forgets anything at a clean stop.
    #[test]
    fn a_full_cache_has_a_state_of_two_words_a_block_at_most() {
        const BLOCKS: u64 = 200;
        for policy in PlainPolicy::VALUES.iter().filter(|it| **it != PlainPolicy::Unlimited) {
            let (mut rng, mut events) = (Rng::new(1, 2), PolicyEvents::default());
            let (mut victims, mut free) = (Vec::new(), (0..BLOCKS as u32).collect::<Vec<u32>>());
            let mut cached = Vec::from([u64::MAX; BLOCKS as usize]);
            let mut built = policy.build(BLOCKS);
            for _ in 0..20_000 {
                let lba = rng.below(3) * rng.below(BLOCKS) + rng.below(BLOCKS);
                if let Some(entry) = cached.iter().position(|known| *known == lba) {
                    built.on_access(entry as u32, AccessKind::Read, &mut events);
                    continue;
                }
                built.before_insert(Lba(lba));
                while free.is_empty() {
                    built.victims(&mut victims, &mut events);
                    victims.iter().for_each(|entry| built.on_remove(*entry));
                    free.append(&mut victims);
                }
                let entry = free.pop().expect("a free entry");
                cached[entry as usize] = lba;
                built.on_insert(entry, Lba(lba), AccessKind::Write, &mut events);
            }
            let mut state = StateWriter::default();
            built.save(&(0..BLOCKS as u32).collect::<Vec<u32>>(), &mut state);
            let (bytes, spare) = (state.into_bytes().len() as u64, 64);
            assert!(bytes <= 16 * BLOCKS + spare, "{policy:?}: {bytes}");
        }
    }
}
