//! What makes blocks of a RAID 4SMR right.

use super::rewrites::Rewrites;
use crate::array::scrubs::{EndedScrub, Scrubs};
use crate::saved::Saved;
use alloc::vec::Vec;

/// Scrubs and what comes of them.
#[derive(Debug, Default, Saved)]
pub struct Repairs {
    pub scrubs: Scrubs,
    pub rewrites: Rewrites,
    /// Scrubs that have compared everything, and wait until band rows are written anew and all is flushed.
    #[saved(absent)]
    pub ended_scrubs: Vec<EndedScrub>,
    /// All is being flushed for them.
    pub is_flushing: bool,
}
