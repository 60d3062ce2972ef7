//! The cheapest schedule of rewrites of one band when room has a price.

use super::writes::BandCells;

/// Finds schedules, and keeps its tables between bands.
#[derive(Debug)]
pub(super) struct Scheduler {
    is_drained: bool,
    /// Blocks that a rewrite cleans at most.
    merged_max: u64,
    /// Sum of the prices of all cells before each.
    before: Vec<u64>,
    /// Blocks written since the cell of the band at which a schedule begins.
    distinct: Vec<u32>,
    /// The least cost from each cell of the band on.
    least: Vec<u64>,
    /// How the schedule that begins at each cell of the band goes on.
    stretches: Vec<Stretch>,
    /// Changes of what is held from one cell of the band to the next.
    change: Vec<i64>,
}

/// The first part of a schedule. What follows is that of the cell behind its end.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    cost: u64,
    /// The cell of the band in which it ends; their number if it goes on to the end.
    end: usize,
    /// Whether its rewrites clean [`Scheduler::merged_max`] blocks each and the last one the rest; otherwise
    /// it has one rewrite, which cleans everything.
    is_counted: bool,
}

impl Scheduler {
    pub fn new(prices: &[u64], is_drained: bool, merged_max: u64) -> Scheduler {
        let mut before = vec![0];
        for price in prices {
            before.push(before[before.len() - 1] + price);
        }
        Scheduler {
            is_drained,
            merged_max,
            before,
            distinct: Vec::new(),
            least: Vec::new(),
            stretches: Vec::new(),
            change: Vec::new(),
        }
    }

    /// What the band costs at least: `rewrite_cost` for each rewrite, and for each cell its price times the
    /// blocks held at its end. It is enough to rewrite in cells that write to the band: later ones clean no
    /// more and hold for longer.
    ///
    /// From each cell on, two things are known of every run: what it costs when a rewrite cleans
    /// everything, and what it costs when a rewrite cleans so many blocks and no more. The dearer holds.
    pub fn least_cost(&mut self, band: &BandCells, rewrite_cost: u64) -> u64 {
        let cells = band.len();
        self.distinct.clear();
        self.distinct.resize(cells, 0);
        self.least.clear();
        self.least.resize(cells + 1, 0);
        self.stretches.clear();
        let is_limited = band.blocks > self.merged_max;
        let mut last = cells;
        for start in (0..cells).rev() {
            band.widen(start, if is_limited { cells } else { last }, &mut self.distinct);
            let whole = self.stretch_to_one_rewrite(band, start, last, rewrite_cost);
            last = whole.end;
            let mut dearer = whole;
            if u64::from(self.distinct[cells - 1]) > self.merged_max {
                let counted = self.stretch_of_counted_rewrites(band, start, rewrite_cost);
                if counted.cost > whole.cost {
                    dearer = counted;
                }
            }
            self.least[start] = dearer.cost;
            self.stretches.push(dearer);
        }
        self.stretches.reverse();
        self.least[0]
    }

    /// The cheapest schedule from a cell on when its first rewrite cleans everything. It comes in the cell
    /// `last` at the latest, that of the next cell: what holds more blocks pays more for each further
    /// cell. So few pairs of cells need to be looked at.
    fn stretch_to_one_rewrite(
        &self,
        band: &BandCells,
        start: usize,
        last: usize,
        rewrite_cost: u64,
    ) -> Stretch {
        let cells = band.len();
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
        Stretch { cost: best, end: best_at, is_counted: false }
    }

    /// The cheapest schedule from a cell on when `k` rewrites since then have cleaned `k` times as many
    /// blocks as one can. Each but the last comes as soon as it cleans that many, and never where
    /// holding them to the end is cheaper. A stretch ends with the rewrite that cleans the rest.
    fn stretch_of_counted_rewrites(
        &self,
        band: &BandCells,
        start: usize,
        rewrite_cost: u64,
    ) -> Stretch {
        let cells = band.len();
        let (mut best, mut best_at) = (u64::MAX, cells);
        let mut held_cost = 0u64;
        // Rewrites before the last, how many blocks they clean, and what they cost if the stretch
        // goes on to the end.
        let (mut rewrites, mut cleaned, mut to_the_end) = (0, 0, 0u64);
        for at in start..cells {
            let blocks = u64::from(self.distinct[at]);
            while blocks - cleaned > self.merged_max {
                cleaned += self.merged_max;
                rewrites += 1;
                to_the_end =
                    to_the_end.saturating_add(self.rewrite_or_hold(band, at, rewrite_cost));
            }
            let all = rewrite_cost.saturating_mul(rewrites + 1);
            let cost = held_cost.saturating_add(all).saturating_add(self.least[at + 1]);
            if cost < best {
                (best, best_at) = (cost, at);
            }
            if held_cost.saturating_add(to_the_end) >= best {
                break;
            }
            let price = self.price_until_next(band, at);
            held_cost = held_cost.saturating_add(price.saturating_mul(blocks - cleaned));
        }
        let rest = if self.is_drained { rewrite_cost } else { 0 };
        let cost = held_cost.saturating_add(to_the_end).saturating_add(rest);
        if cost < best {
            (best, best_at) = (cost, cells);
        }
        Stretch { cost: best, end: best_at, is_counted: true }
    }

    /// The cheaper of a rewrite and holding to the end, from a cell of the band on, what it would clean.
    fn rewrite_or_hold(&self, band: &BandCells, at: usize, rewrite_cost: u64) -> u64 {
        if self.is_drained {
            return rewrite_cost;
        }
        let price = self.before[self.before.len() - 1] - self.before[band.cells[at] as usize];
        price.saturating_mul(self.merged_max).min(rewrite_cost)
    }

    /// Prices of the cells from one that writes to the band to before the next one.
    fn price_until_next(&self, band: &BandCells, at: usize) -> u64 {
        let next = band.cells.get(at + 1);
        let end = next.map_or(self.before.len() - 1, |cell| *cell as usize);
        self.before[end] - self.before[band.cells[at] as usize]
    }

    /// Adds what the schedule found last holds at the end of each cell: `change` gets the differences
    /// from one cell to the next.
    pub fn add_held(&mut self, band: &BandCells, rewrite_cost: u64, change: &mut [i64]) {
        let cells = band.len();
        self.change.clear();
        self.change.resize(cells + 1, 0);
        let mut start = 0;
        while start < cells {
            let stretch = self.stretches[start];
            self.add_written(band, start, stretch.end);
            if stretch.is_counted {
                self.take_off_cleaned(band, start, stretch.end, rewrite_cost);
            }
            start = stretch.end + 1;
        }
        for (cell, own) in band.cells.iter().zip(&self.change) {
            change[*cell as usize] += own;
        }
    }

    /// Adds the blocks that are written from a cell of the band on, up to the end of a stretch.
    fn add_written(&mut self, band: &BandCells, start: usize, end: usize) {
        for at in start..end {
            for it in band.returns(at) {
                self.change[at] += i64::from(it.blocks);
                self.change[(it.next as usize).min(end)] -= i64::from(it.blocks);
            }
        }
    }

    /// Takes off what the rewrites before the last of a stretch clean.
    fn take_off_cleaned(&mut self, band: &BandCells, start: usize, end: usize, rewrite_cost: u64) {
        let merged_max = i64::try_from(self.merged_max).unwrap_or(i64::MAX);
        let goes_on = end == band.len();
        let (mut written, mut cleaned) = (0, 0);
        for at in start..end {
            written += self.change[at];
            while written - cleaned > merged_max {
                if goes_on && self.rewrite_or_hold(band, at, rewrite_cost) < rewrite_cost {
                    return self.change[end] += cleaned;
                }
                cleaned += merged_max;
                self.change[at] -= merged_max;
            }
        }
        self.change[end] += cleaned;
    }
}
