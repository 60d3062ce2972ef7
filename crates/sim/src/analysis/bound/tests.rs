//! The bounds beside optima found by trying everything, and beside policies that serve larger traces.

use super::*;
use imbrex_core::extent::Extent;
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::rng::Rng;
use imbrex_core::units::{BlockCount, Lba};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Requests for blocks of bands of `lengths`, and the room in front of them.
struct Small {
    lengths: Vec<u64>,
    requests: Vec<Extent>,
    room: u64,
}

impl Small {
    fn random(rng: &mut Rng, bands_max: u64, length_max: u64, requests_max: u64) -> Small {
        let mut up_to = |n: u64| 1 + rng.next_u64() % n;
        let lengths: Vec<u64> = (0..up_to(bands_max)).map(|_| up_to(length_max)).collect();
        let blocks: u64 = lengths.iter().sum();
        let requests = (0..up_to(requests_max)).map(|_| {
            let start = up_to(blocks) - 1;
            Extent::new(start, up_to(3).min(blocks - start))
        });
        let requests = requests.collect();
        Small { room: up_to(blocks) - 1, requests, lengths }
    }

    fn table(&self) -> BandTable {
        BandTable::new(self.lengths.iter().copied().map(BlockCount))
    }

    fn writes(&self) -> BlockWrites {
        let table = self.table();
        let mut builder = BlockWritesBuilder::new(&table);
        for request in &self.requests {
            builder.write(*request);
        }
        builder.finish()
    }

    fn bound(&self, cost: Cost, is_drained: bool, cells: u32) -> WriteBound {
        let limits = Limits { room: self.room, merged_max: u64::MAX };
        write_bound(&self.writes(), limits, cost, is_drained, cells, &|_| {})
    }

    fn cost_of(&self, band: usize, cost: Cost) -> u64 {
        match cost {
            Cost::Rewrites => 1,
            Cost::Blocks => self.lengths[band],
        }
    }

    /// The least cost of all policies if a rewrite cleans all of its band, by trying every choice of bands to rewrite after every request.
    /// To rewrite earlier, within a request, cleans less and gains nothing.
    fn optimum(&self, cost: Cost, is_drained: bool) -> u64 {
        let table = self.table();
        let masks: Vec<u32> =
            (0..table.bands()).map(|band| mask(table.extent_of(BandId(band)))).collect();
        let mut states: BTreeMap<u32, u64> = BTreeMap::from([(0, 0)]);
        for (at, request) in self.requests.iter().enumerate() {
            let must_be_clean = is_drained && at + 1 == self.requests.len();
            let room = if must_be_clean { 0 } else { self.room };
            let mut next: BTreeMap<u32, u64> = BTreeMap::new();
            for (held, spent) in states {
                let held = held | mask(*request);
                for chosen in 0..1u32 << masks.len() {
                    let bands = (0..masks.len()).filter(|band| chosen >> band & 1 == 1);
                    let (mut left, mut sum) = (held, spent);
                    for band in bands {
                        left &= !masks[band];
                        sum += self.cost_of(band, cost);
                    }
                    if u64::from(left.count_ones()) <= room {
                        let least = next.entry(left).or_insert(u64::MAX);
                        *least = sum.min(*least);
                    }
                }
            }
            states = next;
        }
        states.into_values().min().expect("clean is always allowed")
    }

    /// A log that takes half of the room, and a cache that takes the other half.
    fn log_blocks(&self) -> u64 {
        (self.room - self.room / 2).max(1)
    }

    /// Rewrites of a cache of half the room that evicts by `victims`, over a log of the rest.
    fn simulated(&self, victims: Victims) -> u64 {
        let table = self.table();
        let (cache, log) = (self.room / 2, self.log_blocks());
        let mut disk = Log { blocks: log, entries: VecDeque::new(), rewrites: 0 };
        let lbas = self.requests.iter().flat_map(|it| it.start.0..it.end().0);
        let lbas: Vec<u64> = lbas.collect();
        // Least recently written first.
        let mut cached: Vec<u64> = Vec::new();
        for (at, lba) in lbas.iter().enumerate() {
            cached.retain(|it| it != lba);
            cached.push(*lba);
            while cached.len() as u64 > cache {
                let leaving = victims.among(&cached, &lbas[at + 1..], &disk, &table);
                cached.retain(|it| !leaving.contains(it));
                for lba in leaving {
                    disk.append(lba, &table);
                }
            }
        }
        disk.rewrites
    }
}

/// Which blocks leave a cache.
#[derive(Clone, Copy, Debug)]
enum Victims {
    /// The one written least recently.
    Oldest,
    /// All of its band.
    BandOfOldest,
    /// The oldest of a band that the log holds, else of the band with the most blocks.
    Rider,
    /// The one written again last, of a band that the log holds where there is one.
    LastUsed,
}

impl Victims {
    /// Of the cached blocks, the least recently written first.
    fn among(self, cached: &[u64], future: &[u64], log: &Log, table: &BandTable) -> Vec<u64> {
        let in_log = |lba: u64| {
            let mut entries = log.entries.iter();
            entries.any(|it| band_of(*it, table) == band_of(lba, table))
        };
        let riders: Vec<u64> = cached.iter().copied().filter(|it| in_log(*it)).collect();
        let of_band = |band: u32| {
            let all = cached.iter().copied();
            let own: Vec<u64> = all.filter(|it| band_of(*it, table) == band).collect();
            own
        };
        let next_use = |lba: u64| future.iter().position(|it| *it == lba);
        match self {
            Victims::Oldest => vec![cached[0]],
            Victims::BandOfOldest => of_band(band_of(cached[0], table)),
            Victims::Rider => match riders.first() {
                Some(rider) => vec![*rider],
                None => {
                    let bands = (0..table.bands()).map(of_band);
                    let largest = bands.max_by_key(Vec::len).expect("there is a band");
                    largest[..1].to_vec()
                }
            },
            Victims::LastUsed => {
                let choice = if riders.is_empty() { cached } else { &riders };
                let last = choice.iter().max_by_key(|it| next_use(**it).unwrap_or(usize::MAX));
                vec![*last.expect("a block is cached")]
            }
        }
    }
}

fn band_of(lba: u64, table: &BandTable) -> u32 {
    table.band_of(Lba(lba)).0
}

/// A log that rewrites the band of its oldest entry when it is full and has to take another.
struct Log {
    blocks: u64,
    entries: VecDeque<u64>,
    rewrites: u64,
}

impl Log {
    fn append(&mut self, lba: u64, table: &BandTable) {
        while self.entries.len() as u64 >= self.blocks {
            let band = band_of(self.entries[0], table);
            self.entries.retain(|it| band_of(*it, table) != band);
            self.rewrites += 1;
        }
        self.entries.push_back(lba);
    }
}

fn mask(extent: Extent) -> u32 {
    (extent.start.0..extent.end().0).fold(0, |mask, lba| mask | 1 << lba)
}

#[test]
fn no_bound_exceeds_the_optimum() {
    let mut rng = Rng::new(1, 0);
    let mut reached = 0;
    for case in 0..3000 {
        let small = Small::random(&mut rng, 4, 4, 24);
        for cost in [Cost::Rewrites, Cost::Blocks] {
            for is_drained in [false, true] {
                let optimum = small.optimum(cost, is_drained);
                for cells in [1, 5, 64] {
                    let found = small.bound(cost, is_drained, cells);
                    assert!(found.bound <= optimum, "case {case}: {found:?} > {optimum}");
                    reached += u64::from(found.bound == optimum);
                }
            }
        }
    }
    // A bound of nothing would pass the assertion above.
    assert!(reached > 3000 * 2 * 2 * 3 / 2, "{reached}");
}

#[test]
fn no_bound_exceeds_what_policies_do() {
    let mut rng = Rng::new(2, 0);
    let mut above_zero = 0;
    for case in 0..300 {
        let small = Small::random(&mut rng, 12, 30, 400);
        let limits =
            Limits { room: small.room / 2 + small.log_blocks(), merged_max: small.log_blocks() };
        let found = write_bound(&small.writes(), limits, Cost::Rewrites, false, 64, &|_| {}).bound;
        for victims in [Victims::Oldest, Victims::BandOfOldest, Victims::Rider, Victims::LastUsed] {
            let rewrites = small.simulated(victims);
            assert!(found <= rewrites, "case {case}, {victims:?}: {found} > {rewrites}");
        }
        above_zero += u64::from(found > 0);
    }
    assert!(above_zero > 100, "{above_zero}");
}

#[test]
fn a_drain_costs_no_less_and_more_room_no_more() {
    let mut rng = Rng::new(3, 0);
    for case in 0..300 {
        let mut small = Small::random(&mut rng, 6, 12, 120);
        let optimum_less = small.bound(Cost::Rewrites, false, 32).windows.bound;
        let drained = small.bound(Cost::Rewrites, true, 32).windows.bound;
        assert!(drained >= optimum_less, "case {case}");
        let written: BTreeSet<_> = small.writes().bands().iter().copied().collect();
        assert!(drained >= written.len() as u64, "case {case}");
        small.room += 1;
        let roomier = small.bound(Cost::Rewrites, false, 32).windows.bound;
        assert!(roomier <= optimum_less, "case {case}");
    }
}

#[test]
fn the_bound_follows_from_the_prices_alone() {
    let mut rng = Rng::new(4, 0);
    for case in 0..300 {
        let small = Small::random(&mut rng, 5, 12, 80);
        let merged_max = [1, 2, 3, 5, 8, u64::MAX][rng.below(6) as usize];
        let limits = Limits { room: small.room, merged_max };
        for is_drained in [false, true] {
            let found =
                write_bound(&small.writes(), limits, Cost::Rewrites, is_drained, 16, &|_| {});
            let prices = found.prices;
            let value = dual_value(&small, merged_max, &prices, is_drained);
            let unit = i128::from(prices.unit);
            let bound = (value.max(0) + unit - 1) / unit;
            assert_eq!(i128::from(prices.bound), bound, "case {case}");
            let other = dual_value(&small, merged_max, &prices, !is_drained);
            let gain = if is_drained { value - other } else { other - value };
            assert!(gain >= 0, "case {case}: a drain costs less");
            let free = PriceBound { cell_prices: vec![0; prices.cell_prices.len()], ..prices };
            if !is_drained {
                let value = dual_value(&small, merged_max, &free, false);
                assert_eq!(value, 0, "case {case}");
            }
        }
    }
}

/// What prices prove, computed as the proof says it: every schedule of every band.
fn dual_value(small: &Small, merged_max: u64, prices: &PriceBound, is_drained: bool) -> i128 {
    let table = small.table();
    let lbas: Vec<u64> = small.requests.iter().flat_map(|it| it.start.0..it.end().0).collect();
    let ends: Vec<usize> = prices.cell_ends.iter().map(|it| *it as usize).collect();
    let start_of = |cell: usize| if cell == 0 { 0 } else { ends[cell - 1] };
    let mut sum: i128 = 0;
    for band in 0..table.bands() {
        let of_band = |lba: &u64| band_of(*lba, &table) == band;
        let written = |cell: usize| {
            let all = lbas[start_of(cell)..ends[cell]].iter();
            all.copied().filter(of_band).collect()
        };
        let band = PricedBand {
            written: (0..ends.len()).map(written).collect(),
            prices: &prices.cell_prices,
            unit: i128::from(prices.unit),
            is_drained,
        };
        sum += band.least_cost(i128::from(merged_max));
    }
    let paid: i128 = prices.cell_prices.iter().map(|it| i128::from(*it)).sum();
    sum - i128::from(small.room) * paid
}

/// A band for which each cell has a price.
struct PricedBand<'a> {
    /// What each cell writes to it.
    written: Vec<BTreeSet<u64>>,
    prices: &'a [u64],
    /// The cost of a rewrite.
    unit: i128,
    is_drained: bool,
}

impl PricedBand<'_> {
    fn least_cost(&self, merged_max: i128) -> i128 {
        let cells = self.written.len();
        let mut least = vec![0; cells + 1];
        for start in (0..cells).rev() {
            let mut distinct = Vec::new();
            let mut seen: BTreeSet<u64> = BTreeSet::new();
            for blocks in &self.written[start..] {
                seen.extend(blocks);
                distinct.push(seen.len() as i128);
            }
            let behind = &least[start + 1..];
            let whole = self.first_rewrite(start, 0, &distinct, behind);
            let counted = self.with_counted(start, merged_max, &distinct, behind);
            least[start] = whole.max(counted);
        }
        least[0]
    }

    /// The least cost when the first rewrite cleans all of the band.
    fn first_rewrite(&self, start: usize, at: usize, distinct: &[i128], behind: &[i128]) -> i128 {
        if at == distinct.len() {
            let owed = self.is_drained && distinct[at - 1] > 0;
            return if owed { self.unit } else { 0 };
        }
        let hold = i128::from(self.prices[start + at]) * distinct[at]
            + self.first_rewrite(start, at + 1, distinct, behind);
        hold.min(self.unit + behind[at])
    }

    /// The least cost when each rewrite cleans `merged_max` blocks: of every number of rewrites up to each
    /// cell that leaves something, the least cost so far.
    fn with_counted(
        &self,
        start: usize,
        merged_max: i128,
        distinct: &[i128],
        behind: &[i128],
    ) -> i128 {
        let mut best = i128::MAX;
        let mut costs: BTreeMap<i128, i128> = BTreeMap::from([(0, 0)]);
        for (at, blocks) in distinct.iter().enumerate() {
            let mut next: BTreeMap<i128, i128> = BTreeMap::new();
            for (before, cost) in costs {
                for rewrites in before.. {
                    let held = (blocks - rewrites * merged_max).max(0);
                    let spent = cost + (rewrites - before) * self.unit;
                    if rewrites > before && held == 0 {
                        best = best.min(spent + behind[at]);
                        break;
                    }
                    let with_hold = spent + i128::from(self.prices[start + at]) * held;
                    let least = next.entry(rewrites).or_insert(i128::MAX);
                    *least = with_hold.min(*least);
                }
            }
            costs = next;
        }
        let to_the_end = costs.into_iter().map(|(rewrites, cost)| {
            let held = (distinct[distinct.len() - 1] - rewrites * merged_max).max(0);
            let owed = if self.is_drained { held } else { 0 };
            cost + (owed + merged_max - 1) / merged_max * self.unit
        });
        best.min(to_the_end.min().expect("there is a schedule"))
    }
}

#[test]
fn blocks_that_are_trimmed_do_not_count() {
    let table = BandTable::new([4, 4].map(BlockCount));
    let mut builder = BlockWritesBuilder::new(&table);
    builder.write(Extent::new(0, 2));
    builder.write(Extent::new(3, 2));
    builder.forget(Extent::new(1, 3));
    builder.write(Extent::new(2, 1));
    let writes = builder.finish();
    assert_eq!(writes.len(), 2);
    assert_eq!(writes.cell_ends(8), [1, 2]);
    let bound = |room| {
        let limits = Limits { room, merged_max: 9 };
        write_bound(&writes, limits, Cost::Rewrites, false, 8, &|_| {}).bound
    };
    assert_eq!((bound(0), bound(1)), (2, 1));
}

#[test]
fn nothing_written_needs_no_rewrite() {
    let writes = BlockWritesBuilder::new(&BandTable::new([BlockCount(4)])).finish();
    assert!(writes.is_empty());
    let limits = Limits { room: 0, merged_max: 1 };
    assert_eq!(write_bound(&writes, limits, Cost::Rewrites, true, 8, &|_| {}).bound, 0);
}

/// Looks up blocks in their order, some as reads.
fn lookups(accesses: &[(u64, bool)]) -> Vec<Lookup> {
    let next = |at: usize| {
        let later = accesses.iter().skip(at + 1);
        let found = later.zip(at + 1..).find(|(other, _)| other.0 == accesses[at].0);
        found.map_or(u32::MAX, |(_, position)| position as u32)
    };
    let lookups = accesses
        .iter()
        .enumerate()
        .map(|(at, access)| Lookup { next: next(at), is_read: access.1 });
    lookups.collect()
}

#[test]
fn read_misses_are_the_fewest_that_any_cache_has() {
    let mut rng = Rng::new(5, 0);
    for case in 0..3000 {
        let mut accesses: Vec<(u64, bool)> = Vec::new();
        let mut ends = Vec::new();
        let capacity = rng.below(4);
        // By the set of cached blocks: the fewest misses so far.
        let mut states: BTreeMap<u32, u64> = BTreeMap::from([(0, 0)]);
        for _ in 0..1 + rng.below(9) {
            let (start, is_read) = (rng.below(4), rng.below(3) > 0);
            let request = start..(start + 1 + rng.below(2));
            accesses.extend(request.clone().map(|block| (block, is_read)));
            ends.push(accesses.len() as u32);
            let asked = request.fold(0u32, |asked, block| asked | 1 << block);
            let mut next: BTreeMap<u32, u64> = BTreeMap::new();
            for (cached, misses) in states {
                let missing = if is_read { asked & !cached } else { 0 };
                let misses = misses + u64::from(missing.count_ones());
                for kept in (0..32u32).filter(|kept| kept & !(cached | asked) == 0) {
                    if u64::from(kept.count_ones()) <= capacity {
                        let least = next.entry(kept).or_insert(u64::MAX);
                        *least = misses.min(*least);
                    }
                }
            }
            states = next;
        }
        let fewest = states.into_values().min().expect("there is a state");
        let found = read_misses(&lookups(&accesses), &ends, capacity);
        assert_eq!(found, fewest, "case {case}: {accesses:?}, {capacity}");
    }
}
