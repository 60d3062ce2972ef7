//! What is in doubt after a crash, and how much of it is looked at at once.

/// Reads in flight at most.
pub const READS_MAX: usize = 16;
/// Rows whose parity is computed at once.
pub const ROWS_MAX: u64 = 256;

/// A block that was perhaps written.
#[derive(Clone, Copy, Debug)]
pub struct Doubt {
    /// The record, and where in it the block stands.
    pub of: (usize, usize),
    pub column: usize,
    pub row: u64,
}
