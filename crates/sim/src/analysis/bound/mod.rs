//! Bounds that no policy of a cache can pass, found from a trace alone (`docs/systems/ride-bound.md`
//! has the proofs).
//!
//! A block that was written is *held* until its band is rewritten. All blocks held must fit into the
//! cache and the log, and a rewrite cleans no more than the log holds. That alone makes rewrites
//! necessary, whatever the policy foresees.

#[cfg(test)]
mod log_tests;
mod prices;
mod reads;
mod schedule;
#[cfg(test)]
mod tests;
mod windows;
mod writes;

pub use reads::{Lookup, read_misses};
pub use windows::Window;
pub use writes::{BlockWrites, BlockWritesBuilder};

use prices::{Problem, raise_prices};
use serde::Serialize;
use windows::best_windows;

/// Cells of time in the search for prices, where nothing else is asked for.
pub const CELLS_DEFAULT: u32 = 512;
/// Cells of time at most.
pub const CELLS_MAX: u32 = 65_536;

/// What a rewrite of a band costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// 1: the bound is a number of rewrites.
    Rewrites,
    /// The length of the band: the bound is a number of blocks rewritten.
    Blocks,
}

/// A lower bound on the cost of rewrites, with what proves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteBound {
    /// The bound: the larger one of the two below.
    pub bound: u64,
    /// The bound from prices.
    pub prices: PriceBound,
    /// The bound from windows.
    pub windows: WindowBound,
}

/// The bound from prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PriceBound {
    /// The bound.
    pub bound: u64,
    /// Units in a cost of 1.
    pub unit: u64,
    /// Where the cells of time end, in block writes.
    pub cell_ends: Vec<u32>,
    /// The price of a block held at the end of each cell, in units.
    pub cell_prices: Vec<u64>,
}

/// The bound from windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WindowBound {
    /// The bound: the sum of the costs of the windows.
    pub bound: u64,
    /// Windows that do not overlap.
    pub windows: Vec<Window>,
}

/// What lies in front of the bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Written blocks that can be held back from their bands.
    pub room: u64,
    /// Blocks that one rewrite cleans at most: no more than the log holds. At least 1.
    pub merged_max: u64,
}

/// A lower bound on what rewrites cost within these limits. With `is_drained` what is held at the end must
/// be rewritten too. `reached` hears which share of the work is done.
pub fn write_bound(
    writes: &BlockWrites,
    limits: Limits,
    cost: Cost,
    is_drained: bool,
    cells: u32,
    reached: &(dyn Fn(f64) + Sync),
) -> WriteBound {
    let costs = match cost {
        Cost::Rewrites => vec![1; writes.bands().len()],
        Cost::Blocks => writes.band_blocks().to_vec(),
    };
    let problem = Problem {
        writes,
        room: limits.room,
        merged_max: limits.merged_max,
        costs: &costs,
        is_drained,
    };
    let priced = raise_prices(&problem, cells.clamp(1, CELLS_MAX), reached);
    let windows = best_windows(&problem);
    let (of_prices, of_windows) = (priced.bound(), windows.iter().map(|it| it.cost).sum());
    WriteBound {
        bound: of_prices.max(of_windows),
        prices: PriceBound {
            bound: of_prices,
            unit: priced.unit,
            cell_ends: priced.ends,
            cell_prices: priced.prices,
        },
        windows: WindowBound { bound: of_windows, windows },
    }
}
