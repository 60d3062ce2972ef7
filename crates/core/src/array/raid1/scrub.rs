//! A scrub of an array of copies.

use crate::array::pace::Pace;
use crate::array::scrubbed::Scrubbed;
use crate::command::{CommandId, Rate};
use crate::units::Instant;
use alloc::vec::Vec;

/// A scrub under way.
#[derive(Debug)]
pub struct Scrub {
    pub commands: Vec<CommandId>,
    pub rate: Option<Rate>,
    /// Rows before it are done.
    pub next: u64,
    pub is_comparing: bool,
    /// The next rows begin no earlier.
    pub not_before: Instant,
    pub found: Scrubbed,
    pub stopped: Option<&'static str>,
    pub pace: Pace,
}
