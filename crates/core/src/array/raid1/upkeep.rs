//! What a durable array of copies has under way for itself.

use crate::array::Columns;
use crate::buffer::BufferSlice;
use crate::saved::SavedValue;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// A table that is being read.
#[derive(Debug, SavedValue)]
pub struct Load {
    pub region: u64,
    pub pages: BufferSlice,
    pub column: usize,
    /// Columns that could not give it.
    pub failed: Columns,
}

/// Regions that are being cleared.
#[derive(Debug, Default, SavedValue)]
pub struct Clearing {
    pub regions: Vec<u64>,
    /// Tables that are being written, and the flush behind them.
    pub outstanding: u32,
    pub has_failed: bool,
    pub is_flushing: bool,
}

/// What is under way.
#[derive(Debug, Default, SavedValue)]
pub struct Upkeep {
    pub loads: Vec<Load>,
    pub clearing: Option<Clearing>,
    /// Regions whose tables are held because they are marked.
    pub held: BTreeSet<u64>,
    /// Regions that are being recorded as marked.
    pub marking: Vec<u64>,
}
