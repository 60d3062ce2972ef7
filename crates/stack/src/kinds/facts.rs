//! What is known of a node, by its kind.

use super::{
    DescribeDisk, Facts, memory_buffer, persistent_cache, raid1, raid4smr, s_block, scheduler,
    segments, slice, write_back_cache,
};

/// Makes the questions what is known of a node of one kind.
macro_rules! known_of {
    ($($(#[$doc:meta])* $name:ident: $variant:ident($facts:ty)),* $(,)?) => {
        impl Facts {
            $($(#[$doc])* pub fn $name(&self) -> Option<&$facts> {
                match self {
                    Facts::$variant(facts) => Some(facts),
                    _ => None,
                }
            })*
        }
    };
}

known_of! {
    /// What is known of a disk.
    disk: Disk(DescribeDisk),
    /// What is known of a drive-managed translation.
    translation: PersistentCache(persistent_cache::Facts),
    /// What is known of a write-back cache.
    cache: WriteBackCache(write_back_cache::Facts),
    /// What is known of the queue of a disk.
    scheduler: Scheduler(scheduler::Facts),
    /// What is known of a part of a node.
    part: Slice(slice::Facts),
    /// What is known of a segment layout.
    segments: Segments(segments::Facts),
    /// What is known of a translation by S-blocks.
    s_blocks: SBlock(s_block::Facts),
    /// What is known of an array of copies.
    array_of_copies: Raid1(raid1::Facts),
    /// What is known of a parity array over shingled homes.
    parity_array: Raid4Smr(raid4smr::Facts),
    /// What is known of a write buffer in memory.
    buffer: MemoryBuffer(memory_buffer::Facts),
}
