//! The cheapest schedule of rewrites of one band when room has a price.

use super::writes::BandCells;

/// Finds schedules, and keeps its tables between bands.
#[derive(Debug)]
pub(super) struct Scheduler {
    is_drained: bool,
    /// Sum of the prices of all cells before each.
    before: Vec<u64>,
    /// Blocks written since the cell of the band at which a schedule begins.
    distinct: Vec<u32>,
    /// The least cost from each cell of the band on, when the band is clean before it.
    least: Vec<u64>,
    /// The cell of the band whose rewrite comes first in that schedule; their number for none.
    rewrite: Vec<usize>,
    /// Changes of what is held from one cell of the band to the next.
    change: Vec<i64>,
}

impl Scheduler {
    pub fn new(prices: &[u64], is_drained: bool) -> Scheduler {
        let mut before = vec![0];
        for price in prices {
            before.push(before[before.len() - 1] + price);
        }
        Scheduler {
            is_drained,
            before,
            distinct: Vec::new(),
            least: Vec::new(),
            rewrite: Vec::new(),
            change: Vec::new(),
        }
    }

    /// The least cost of a schedule for the band: `rewrite_cost` for each rewrite, and for each cell
    /// its price times the blocks held at its end. A rewrite cleans all that its cell writes. It is
    /// enough to rewrite in cells that write to the band: later ones clean no more and hold for longer.
    ///
    /// The first rewrite of a schedule that begins earlier comes no later, because what holds more
    /// blocks pays more for each further cell. So few pairs of cells need to be looked at.
    pub fn least_cost(&mut self, band: &BandCells, rewrite_cost: u64) -> u64 {
        let cells = band.len();
        self.distinct.clear();
        self.distinct.resize(cells, 0);
        self.least.clear();
        self.least.resize(cells + 1, 0);
        self.rewrite.clear();
        self.rewrite.resize(cells, cells);
        let mut last = cells;
        for start in (0..cells).rev() {
            band.widen(start, last, &mut self.distinct);
            let (mut best, mut best_at) = (u64::MAX, cells);
            let mut held_cost = 0u64;
            for at in start..=last {
                let rest = match (at < cells, self.is_drained) {
                    (true, _) => rewrite_cost + self.least[at + 1],
                    (false, true) => rewrite_cost,
                    (false, false) => 0,
                };
                // A sum that saturates is never the least: see `unit_of`.
                let cost = held_cost.saturating_add(rest);
                if cost < best {
                    (best, best_at) = (cost, at);
                }
                if held_cost >= best || at == cells {
                    break;
                }
                let price = self.price_until_next(band, at);
                let blocks = u64::from(self.distinct[at]);
                held_cost = held_cost.saturating_add(price.saturating_mul(blocks));
            }
            self.least[start] = best;
            self.rewrite[start] = best_at;
            last = best_at;
        }
        self.least[0]
    }

    /// Prices of the cells from one that writes to the band to before the next one.
    fn price_until_next(&self, band: &BandCells, at: usize) -> u64 {
        let next = band.cells.get(at + 1);
        let end = next.map_or(self.before.len() - 1, |cell| *cell as usize);
        self.before[end] - self.before[band.cells[at] as usize]
    }

    /// Adds what the schedule found last holds at the end of each cell: `change` gets the differences
    /// from one cell to the next.
    pub fn add_held(&mut self, band: &BandCells, change: &mut [i64]) {
        let cells = band.len();
        self.change.clear();
        self.change.resize(cells + 1, 0);
        let mut start = 0;
        while start < cells {
            let rewrite = self.rewrite[start];
            for at in start..rewrite {
                for it in band.returns(at) {
                    self.change[at] += i64::from(it.blocks);
                    self.change[(it.next as usize).min(rewrite)] -= i64::from(it.blocks);
                }
            }
            start = rewrite + 1;
        }
        for (cell, own) in band.cells.iter().zip(&self.change) {
            change[*cell as usize] += own;
        }
    }
}
