//! The search for prices under which the bound is large. Whatever it finds is proven: prices are whole
//! numbers of units and their bound is computed without rounding, so a poor search costs only height.

use super::schedule::Scheduler;
use super::writes::{BandCells, BlockWrites};

/// Cells of the first search; each further one has [`FINER`] times as many.
const CELLS_FIRST: u32 = 32;
const FINER: u32 = 4;
/// Steps of each search.
const STEPS: u32 = 120;
/// Steps without a higher bound before the search aims less high.
const STEPS_PATIENT: u32 = 6;
/// The first aim above the best bound so far, as a part of it, and the least.
const AIM: f64 = 0.3;
const AIM_LEAST: f64 = 0.0005;
/// Units in a cost of 1 at most, as a power of two.
const UNIT_BITS: u32 = 40;
/// No cost of a schedule reaches two to the power of this.
const COST_BITS: u32 = 62;

/// What is to be bounded: the writes, the room in front of the bands, and what a rewrite costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem<'a> {
    pub writes: &'a BlockWrites,
    /// Blocks that may be held back from the bands.
    pub room: u64,
    /// Blocks that a rewrite cleans at most.
    pub merged_max: u64,
    /// The cost of a rewrite of each band of the writes.
    pub costs: &'a [u64],
    /// Whether what is held at the end costs a rewrite of its band.
    pub is_drained: bool,
}

/// Prices, and the bound that follows from them.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    /// Where the cells end, in block writes.
    pub ends: Vec<u32>,
    /// The price of a block held at the end of each cell, in units.
    pub prices: Vec<u64>,
    /// Units in a cost of 1.
    pub unit: u64,
    /// The bound, in units.
    pub value: i128,
}

impl Priced {
    /// The bound as a whole number. Costs are whole, so a part of one counts as one.
    pub fn bound(&self) -> u64 {
        let unit = i128::from(self.unit);
        let bound = self.value.max(0).div_euclid(unit)
            + i128::from(self.value > 0 && self.value % unit != 0);
        u64::try_from(bound).expect("there are not so many rewrites")
    }
}

impl Problem<'_> {
    /// Whether more is written to some band than a rewrite cleans.
    fn is_limited(&self) -> bool {
        let bands = self.writes.by_band(&self.writes.cell_ends(1));
        bands.iter().any(|band| band.blocks > self.merged_max)
    }
}

/// The best prices found for at most `cells` cells. They are looked for as if a rewrite cleaned everything,
/// and, where the limit makes a difference, a second time with it. Both count with the limit: at equal
/// prices it only raises the bound, but on the way to high prices it may lead astray. `reached` hears which share of
/// the work is done, of two searches the longer one.
pub(super) fn raise_prices(
    problem: &Problem<'_>,
    cells: u32,
    reached: &(dyn Fn(f64) + Sync),
) -> Priced {
    let rewrites = problem.writes.len() / problem.merged_max + u64::from(cells) + 2;
    let unit = unit_of(problem.costs, rewrites);
    let unlimited = Problem { merged_max: u64::MAX, ..*problem };
    if !problem.is_limited() {
        return search(&unlimited, unit, cells, reached);
    }
    let (limited, mut other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| search(&unlimited, unit, cells, &|_| {}));
        let limited = search(problem, unit, cells, reached);
        (limited, other.join().expect("a search does not panic"))
    });
    other.value = Search::new(problem, unit, other.ends.clone()).answer(&other.prices).value;
    match other.value > limited.value {
        true => other,
        false => limited,
    }
}

/// Numbers of cells of the searches, the last of which has `cells`.
fn counts_to(cells: u32) -> Vec<u32> {
    let next = |count: &u32| (*count < cells).then(|| count.saturating_mul(FINER).min(cells));
    std::iter::successors(Some(CELLS_FIRST.min(cells)), next).collect()
}

fn search(problem: &Problem<'_>, unit: u64, cells: u32, reached: &dyn Fn(f64)) -> Priced {
    let counts = counts_to(cells);
    // A step takes about as long as there are cells.
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let mut before = 0.0;
    let mut best: Option<Priced> = None;
    for count in counts {
        let search = Search::new(problem, unit, problem.writes.cell_ends(count));
        let start = match &best {
            None => search.simple_prices(),
            Some(coarse) => search.spread(coarse),
        };
        let of_all = f64::from(count) / all;
        let found = search.climb(start, &|share| reached(before + share * of_all));
        before += of_all;
        // Finer cells hold the coarse prices too, but rounding moves their ends.
        if best.as_ref().is_none_or(|best| found.value >= best.value) {
            best = Some(found);
        }
    }
    best.expect("there was a search")
}

/// Units in a cost of 1, so many that rounding does not matter and so few that no schedule with so many
/// `rewrites`, in which every cell is cleaned, costs more than 64 bits hold.
fn unit_of(costs: &[u64], rewrites: u64) -> u64 {
    let highest = costs.iter().max().copied().unwrap_or(1).max(1);
    let most = u128::from(highest) * u128::from(rewrites);
    let bits = 128 - most.leading_zeros();
    assert!(bits <= COST_BITS, "a band of {highest} blocks is too long for {rewrites} rewrites");
    1 << (COST_BITS - bits).min(UNIT_BITS)
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    bands: Vec<BandCells>,
    ends: Vec<u32>,
    unit: u64,
}

/// What prices give: the bound, and for each cell the blocks held beyond the room.
struct Answer {
    value: i128,
    excess: Vec<i64>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, unit: u64, ends: Vec<u32>) -> Search<'a> {
        Search { problem, bands: problem.writes.by_band(&ends), ends, unit }
    }

    fn answer(&self, prices: &[u64]) -> Answer {
        let Problem { is_drained, merged_max, .. } = *self.problem;
        let mut scheduler = Scheduler::new(prices, is_drained, merged_max);
        let mut change = vec![0i64; self.ends.len()];
        let mut value = 0i128;
        for (band, cost) in self.bands.iter().zip(self.problem.costs) {
            let cost = cost * self.unit;
            value += i128::from(scheduler.least_cost(band, cost));
            scheduler.add_held(band, cost, &mut change);
        }
        let sum: i128 = prices.iter().map(|price| i128::from(*price)).sum();
        value -= i128::from(self.problem.room) * sum;
        let room = i64::try_from(self.problem.room).unwrap_or(i64::MAX);
        let mut held = 0;
        let excess = change.into_iter().map(|change| {
            held += change;
            held - room
        });
        Answer { value, excess: excess.collect() }
    }

    /// The best of simple prices: the same in all cells, or in the last one alone. The second are those
    /// with which a window over the whole trace is proven.
    fn simple_prices(&self) -> Vec<u64> {
        let (highest, cells) = (self.highest(), self.ends.len());
        let mut best = (0, vec![0; cells]);
        let powers = (0..u64::BITS).map(|bit| highest >> bit);
        let prices = powers.take_while(|price| *price > 0);
        for price in prices.chain([highest / self.problem.merged_max]) {
            let mut at_end = vec![0; cells];
            if let Some(last) = at_end.last_mut() {
                *last = price;
            }
            for prices in [vec![price; cells], at_end] {
                let value = self.answer(&prices).value;
                if value > best.0 {
                    best = (value, prices);
                }
            }
        }
        best.1
    }

    /// Prices of coarser cells, each shared out among those that took its place.
    fn spread(&self, coarse: &Priced) -> Vec<u64> {
        let mut prices = vec![0; self.ends.len()];
        let mut from = 0;
        for (end, price) in coarse.ends.iter().zip(&coarse.prices) {
            let to = self.ends.partition_point(|it| it <= end);
            // A cell may have none in its place where their number is no multiple.
            let share = price.checked_div((to - from) as u64).unwrap_or(0);
            prices[from..to].fill(share);
            from = to;
        }
        prices
    }

    /// A price above that of the dearest rewrite gains nothing: nobody would hold a block.
    fn highest(&self) -> u64 {
        self.unit * self.problem.costs.iter().max().copied().unwrap_or(0)
    }

    /// Raises the bound by steps along its subgradient, each as long as would reach the aim if the
    /// bound were a plane (Polyak). `reached` hears which share of the steps is done.
    fn climb(&self, start: Vec<u64>, reached: &dyn Fn(f64)) -> Priced {
        let mut best_prices = start;
        let mut answer = self.answer(&best_prices);
        let mut best = answer.value;
        let mut prices: Vec<f64> = best_prices.iter().map(|it| *it as f64).collect();
        let highest = self.highest() as f64;
        let (mut aim, mut patience) = (AIM, STEPS_PATIENT);
        for done in 0..STEPS {
            reached(f64::from(done) / f64::from(STEPS));
            let squares: f64 = answer.excess.iter().map(|it| (*it as f64).powi(2)).sum();
            if squares == 0.0 || aim < AIM_LEAST {
                break;
            }
            let above = best as f64 + aim * (best as f64).max(self.unit as f64);
            let step = (above - answer.value as f64) / squares;
            for (price, excess) in prices.iter_mut().zip(&answer.excess) {
                *price = (*price + step * *excess as f64).clamp(0.0, highest);
            }
            let whole: Vec<u64> = prices.iter().map(|it| *it as u64).collect();
            answer = self.answer(&whole);
            if answer.value > best {
                (best, best_prices) = (answer.value, whole);
                patience = STEPS_PATIENT;
                continue;
            }
            patience -= 1;
            if patience == 0 {
                (aim, patience) = (aim / 2.0, STEPS_PATIENT);
                prices = best_prices.iter().map(|it| *it as f64).collect();
                answer = self.answer(&best_prices);
            }
        }
        Priced { ends: self.ends.clone(), prices: best_prices, unit: self.unit, value: best }
    }
}
