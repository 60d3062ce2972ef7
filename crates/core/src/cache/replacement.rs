//! Which blocks are cached, as the policy sees them.

use super::policy::EvictionPolicy;
use crate::saved::Saved;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The policy and the number of blocks that it chooses from.
#[derive(Saved)]
pub(super) struct Replacement {
    #[saved(inner)]
    pub policy: Box<dyn EvictionPolicy>,
    /// Blocks that a look-up finds. All of them are known to the policy.
    pub cached_blocks: u64,
    /// Those of them that are newer than the copy below.
    pub dirty_blocks: u64,
    /// Used within one call only; kept for its memory.
    pub victims: Vec<u32>,
}

impl Replacement {
    /// Nothing is cached.
    pub fn new(policy: Box<dyn EvictionPolicy>) -> Replacement {
        Replacement { policy, cached_blocks: 0, dirty_blocks: 0, victims: Vec::new() }
    }
}
