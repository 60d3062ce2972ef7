//! Where and how long the requests of a job are.

use super::job::{Access, BlockSizes, Direction, Distribution, Job, Mix, Sequencer, Stride};
use imbrex_core::rng::Rng;
use imbrex_traces::synthetic::{exp, ln};

/// A request as the job describes it, in bytes of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

/// Visits `0..units` once each in random order, pass after pass, in constant memory: a keyed
/// permutation of the next power of two, of which results past the end are permuted again.
struct Shuffle {
    units: u64,
    next: u64,
    mask: u64,
    shift: u32,
    keys: [(u64, u64); 4],
}

impl Shuffle {
    fn new(units: u64, rng: &mut Rng) -> Shuffle {
        let bits = 64 - (units - 1).leading_zeros();
        let mut shuffle = Shuffle {
            units,
            next: 0,
            mask: (1u64 << bits.min(63)) - 1,
            shift: (bits / 2).max(1),
            keys: [(0, 1); 4],
        };
        shuffle.rekey(rng);
        shuffle
    }

    fn rekey(&mut self, rng: &mut Rng) {
        // Each round is invertible: an addition, a product with an odd number, a folding of high bits.
        self.keys = std::array::from_fn(|_| (rng.next_u64(), rng.next_u64() | 1));
        self.next = 0;
    }

    fn draw(&mut self, rng: &mut Rng) -> u64 {
        if self.next == self.units {
            self.rekey(rng);
        }
        let mut x = self.next;
        self.next += 1;
        loop {
            for (add, multiply) in self.keys {
                x = x.wrapping_add(add).wrapping_mul(multiply) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.units {
                return x;
            }
        }
    }
}

/// Ranks with probability proportional to a power, after Gray et al., "Quickly generating
/// billion-record synthetic databases", SIGMOD 1994: constant time, the sum of the first ranks
/// exact and the rest as an integral.
struct Zipf {
    units: u64,
    alpha: f64,
    zeta: f64,
    eta: f64,
    second: f64,
}

/// Terms of the zeta sum that are added up one by one.
const ZETA_TERMS: u64 = 1 << 16;

impl Zipf {
    fn new(units: u64, theta: f64) -> Zipf {
        let exact = units.min(ZETA_TERMS);
        let mut zeta: f64 = (1..=exact).map(|rank| power(rank as f64, -theta)).sum();
        if units > exact {
            let rest = 1.0 - theta;
            zeta += (power(units as f64, rest) - power(exact as f64, rest)) / rest;
        }
        let two = 1.0 + power(0.5, theta);
        Zipf {
            units,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            eta: (1.0 - power(2.0 / units as f64, 1.0 - theta)) / (1.0 - two / zeta),
            second: two,
        }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let unit = unit(rng);
        let scaled = unit * self.zeta;
        if scaled < 1.0 || self.units == 1 {
            return 0;
        }
        if scaled < self.second {
            return 1;
        }
        let rank = self.units as f64 * power(self.eta * unit - self.eta + 1.0, self.alpha);
        (rank as u64).min(self.units - 1)
    }
}

/// A positive number to a power, the same on every platform.
fn power(base: f64, exponent: f64) -> f64 {
    exp((exponent * ln(base)).clamp(-700.0, 700.0))
}

/// Uniform in 0 up to but without 1.
fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

enum Draw {
    Shuffle(Shuffle),
    Uniform,
    /// The ranks are scattered by a shuffle that never moves on.
    Zipf(Zipf, Shuffle),
}

/// One lattice of random offsets: multiples of one length.
struct Lattice {
    unit_bytes: u64,
    units: u64,
    draw: Draw,
}

/// Draws the requests of one clone of a job.
pub struct Offsets {
    start: u64,
    /// Of the region, a multiple of the shortest request.
    length: u64,
    access: Access,
    percentage_random: u32,
    block_sizes: [BlockSizes; 3],
    stride: Option<Stride>,
    /// Start of the present zone in the region, and bytes moved in it.
    zone: (u64, u64),
    /// Of each direction, where a sequential request goes next, from the start of the region.
    next: [u64; 3],
    last: [u64; 3],
    lattices: Vec<Lattice>,
    lattice_of: [usize; 3],
    /// Requests since the last fresh draw.
    since_draw: u64,
    lengths_rng: Rng,
    offsets_rng: Rng,
}

impl Offsets {
    /// The requests of the clone in the region of `length` bytes from `start`. Random choices come
    /// from two streams of `seed`.
    pub fn new(job: &Job, start: u64, length: u64, seed: u64) -> Offsets {
        let smallest = job.smallest_block();
        let length = length - length % smallest;
        let mut offsets_rng = Rng::new(seed, 1);
        let mut lattices: Vec<Lattice> = Vec::new();
        let mut lattice_of = [0; 3];
        let range = job.stride.map_or(length, |stride| stride.range_bytes);
        for direction in Direction::ALL {
            if !job.mix.has(direction) || matches!(job.access, Access::Sequential { .. }) {
                continue;
            }
            let unit_bytes = job.block_sizes[direction as usize].min();
            let known = lattices.iter().position(|l| l.unit_bytes == unit_bytes);
            lattice_of[direction as usize] = known.unwrap_or(lattices.len());
            if known.is_some() {
                continue;
            }
            let units = (range / unit_bytes).max(1);
            let draw = match job.distribution {
                Distribution::Zipf { theta } => {
                    Draw::Zipf(Zipf::new(units, theta), Shuffle::new(units, &mut offsets_rng))
                }
                // With zones a pass would have to be one of each zone.
                Distribution::Uniform if job.random_map && job.stride.is_none() => {
                    Draw::Shuffle(Shuffle::new(units, &mut offsets_rng))
                }
                Distribution::Uniform => Draw::Uniform,
            };
            lattices.push(Lattice { unit_bytes, units, draw });
        }
        Offsets {
            start,
            length,
            access: job.access,
            percentage_random: job.percentage_random,
            block_sizes: job.block_sizes.clone(),
            stride: job.stride,
            zone: (0, 0),
            next: [0; 3],
            last: [0; 3],
            lattices,
            lattice_of,
            since_draw: 0,
            lengths_rng: Rng::new(seed, 2),
            offsets_rng,
        }
    }

    /// The next request in a direction.
    pub fn draw(&mut self, direction: Direction) -> Place {
        let d = direction as usize;
        let bytes = self.draw_length(direction);
        if let Some(stride) = self.stride {
            self.enter_zone(stride);
        }
        let (low, high) = match self.stride {
            None => (0, self.length),
            Some(stride) => (self.zone.0, self.zone.0 + stride.range_bytes),
        };
        let relative = match self.access {
            Access::Random { per_draw, sequencer } => {
                let fresh = self.since_draw.is_multiple_of(per_draw);
                self.since_draw += 1;
                let random = fresh && self.is_random();
                match (random, fresh, sequencer) {
                    (true, _, _) => low + self.draw_random(d),
                    (_, false, Sequencer::Identical) => self.last[d],
                    _ => self.next[d],
                }
            }
            Access::Sequential { .. } => self.next[d],
        };
        let smallest = self.block_sizes[d].min();
        let relative = if relative < low || relative + smallest > high { low } else { relative };
        // A request that would cross the end is cut there, to a multiple of the shortest.
        let room = high - relative;
        let bytes = if bytes > room { room - room % smallest } else { bytes };
        self.last[d] = relative;
        let skip = match self.access {
            Access::Sequential { skip_bytes } => skip_bytes,
            Access::Random { .. } => 0,
        };
        self.next[d] = match (relative + bytes).checked_add_signed(skip) {
            Some(next) => next,
            // Backwards past the start goes on from the end.
            None => high - smallest,
        };
        self.zone.1 += bytes;
        Place { offset: self.start + relative, bytes }
    }

    /// The last request drawn went to `place`, and a sequential one goes on at `next` on the device.
    pub fn went(&mut self, direction: Direction, place: Place, next: u64) {
        let d = direction as usize;
        self.last[d] = place.offset - self.start;
        self.next[d] = next - self.start;
    }

    fn is_random(&mut self) -> bool {
        self.percentage_random == 100
            || self.offsets_rng.below(100) < u64::from(self.percentage_random)
    }

    fn draw_random(&mut self, d: usize) -> u64 {
        let rng = &mut self.offsets_rng;
        let lattice = &mut self.lattices[self.lattice_of[d]];
        let unit = match &mut lattice.draw {
            Draw::Shuffle(shuffle) => shuffle.draw(rng),
            Draw::Uniform => rng.below(lattice.units),
            Draw::Zipf(zipf, scatter) => {
                scatter.next = zipf.draw(rng);
                scatter.draw(rng)
            }
        };
        unit * lattice.unit_bytes
    }

    fn draw_length(&mut self, direction: Direction) -> u64 {
        match &self.block_sizes[direction as usize] {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min, max } if max.is_multiple_of(*min) => {
                min * (1 + self.lengths_rng.below(max / min))
            }
            BlockSizes::Range { min, max } => {
                let drawn = min + self.lengths_rng.below(*max);
                (drawn - drawn % min).min(*max)
            }
            BlockSizes::Split(sizes) => {
                let whole = |bytes: u64| bytes - bytes % self.block_sizes[direction as usize].min();
                let total: u64 = sizes.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut rest = self.lengths_rng.below(total.max(1));
                for (bytes, weight) in sizes {
                    if rest < u64::from(*weight) {
                        return whole(*bytes);
                    }
                    rest -= u64::from(*weight);
                }
                whole(sizes[0].0)
            }
        }
    }

    /// Goes on to the next zone when enough was moved in this one; after the last comes the first.
    fn enter_zone(&mut self, stride: Stride) {
        if self.zone.1 < stride.zone_bytes {
            return;
        }
        let next = self.zone.0 + stride.range_bytes + stride.skip_bytes;
        let fits = next + stride.range_bytes <= self.length;
        self.zone = (if fits { next } else { 0 }, 0);
        self.next = [self.zone.0; 3];
    }
}

/// Which direction the next request takes.
pub struct Directions {
    mix: Mix,
    rng: Rng,
}

impl Directions {
    /// The directions of a job, from a stream of `seed`.
    pub fn new(mix: Mix, seed: u64) -> Directions {
        Directions { mix, rng: Rng::new(seed, 3) }
    }

    /// The next one.
    pub fn draw(&mut self) -> Direction {
        match self.mix {
            Mix::Only(direction) => direction,
            Mix::ReadWrite { read_percent } => {
                if self.rng.below(100) < u64::from(read_percent) {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
        }
    }

    /// The other direction of a mixed job.
    pub fn other(&self, direction: Direction) -> Option<Direction> {
        match (self.mix, direction) {
            (Mix::Only(_), _) => None,
            (_, Direction::Read) => Some(Direction::Write),
            (_, _) => Some(Direction::Read),
        }
    }
}

/// The time to the next arrival of a Poisson process, as a multiple of the mean.
pub fn exponential(rng: &mut Rng) -> f64 {
    -ln(1.0 - unit(rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_job(block: u64) -> Job {
        Job::simple("job", Direction::Read, true, block)
    }

    #[test]
    fn a_pass_visits_each_block_once_and_the_next_in_another_order() {
        for blocks in [1u64, 2, 3, 17, 64, 1000, 4097] {
            let mut offsets = Offsets::new(&random_job(8192), 4096, blocks * 8192, 7);
            let mut passes: Vec<Vec<u64>> = Vec::new();
            for _ in 0..2 {
                let pass: Vec<u64> =
                    (0..blocks).map(|_| offsets.draw(Direction::Read).offset).collect();
                let mut sorted = pass.clone();
                sorted.sort_unstable();
                let all: Vec<u64> = (0..blocks).map(|b| 4096 + b * 8192).collect();
                assert_eq!(sorted, all, "{blocks} blocks");
                passes.push(pass);
            }
            assert!(blocks < 17 || passes[0] != passes[1], "{blocks} blocks");
        }
    }

    #[test]
    fn a_pass_is_in_no_visible_order() {
        let blocks = 1_000_000u64;
        let mut offsets = Offsets::new(&random_job(4096), 0, blocks * 4096, 3);
        let drawn: Vec<u64> =
            (0..100_000).map(|_| offsets.draw(Direction::Read).offset / 4096).collect();
        // Uniform: chi squared over 100 cells has mean 99 and deviation 14.
        let mut cells = [0u64; 100];
        drawn.iter().for_each(|b| cells[(b / 10_000) as usize] += 1);
        let chi: f64 = cells.iter().map(|c| (*c as f64 - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 160.0, "chi squared {chi}");
        // Independent: the mean distance of two uniform draws is a third of the span.
        for lag in 1..9 {
            let sum: u64 = drawn.iter().zip(&drawn[lag..]).map(|(a, b)| a.abs_diff(*b)).sum();
            let mean = sum as f64 / (drawn.len() - lag) as f64 / blocks as f64;
            assert!((mean - 1.0 / 3.0).abs() < 0.01, "lag {lag}: {mean}");
        }
    }

    #[test]
    fn sequential_requests_go_round_and_skip() {
        let job = Job::simple("job", Direction::Write, false, 4096);
        let mut offsets = Offsets::new(&job, 8192, 3 * 4096 + 100, 1);
        let drawn: Vec<u64> = (0..4).map(|_| offsets.draw(Direction::Write).offset).collect();
        assert_eq!(drawn, [8192, 12288, 16384, 8192]);
        let mut holes = job.clone();
        holes.access = Access::Sequential { skip_bytes: 4096 };
        let mut offsets = Offsets::new(&holes, 0, 4 * 4096, 1);
        let drawn: Vec<u64> = (0..3).map(|_| offsets.draw(Direction::Write).offset).collect();
        assert_eq!(drawn, [0, 8192, 0]);
        let mut back = job;
        back.access = Access::Sequential { skip_bytes: -8192 };
        let mut offsets = Offsets::new(&back, 0, 3 * 4096, 1);
        let drawn: Vec<u64> = (0..4).map(|_| offsets.draw(Direction::Write).offset).collect();
        assert_eq!(drawn, [0, 8192, 4096, 0]);
    }

    #[test]
    fn zones_are_strided() {
        let mut job = Job::simple("job", Direction::Read, false, 4096);
        job.stride = Some(Stride { zone_bytes: 8192, range_bytes: 16384, skip_bytes: 4096 });
        let mut offsets = Offsets::new(&job, 0, 40 * 1024, 1);
        let drawn: Vec<u64> = (0..6).map(|_| offsets.draw(Direction::Read).offset / 4096).collect();
        assert_eq!(drawn, [0, 1, 5, 6, 0, 1]);
    }

    #[test]
    fn zipf_draws_the_first_rank_as_often_as_it_should() {
        let zipf = Zipf::new(1000, 1.2);
        let mut rng = Rng::new(1, 1);
        let mut counts = [0u32; 1000];
        (0..100_000).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
        let first = f64::from(counts[0]) / 1e5;
        assert!((first - 1.0 / zipf.zeta).abs() < 0.01, "{first}");
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((ratio / 2f64.powf(1.2) - 1.0).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn lengths_follow_range_and_split() {
        let mut job = random_job(4096);
        job.block_sizes[0] = BlockSizes::Range { min: 4096, max: 16384 };
        let mut offsets = Offsets::new(&job, 0, 1 << 30, 1);
        let mut seen = [0u32; 5];
        (0..4000).for_each(|_| seen[(offsets.draw(Direction::Read).bytes / 4096) as usize] += 1);
        assert!(seen[0] == 0 && seen[1..].iter().all(|n| (800..1200).contains(n)), "{seen:?}");
        job.block_sizes[0] = BlockSizes::Split(vec![(4096, 75), (65536, 25)]);
        let mut offsets = Offsets::new(&job, 0, 1 << 30, 1);
        let long = (0..4000).filter(|_| offsets.draw(Direction::Read).bytes == 65536).count();
        assert!((900..1100).contains(&long), "{long}");
    }

    /// As fio 3.33 draws them: 25,600 requests of `bssplit=12k/50:8k/50` are all of 8 KiB, and of
    /// `bsrange=4k-10k` 12,141 are of 4, 12,123 of 8 and 5,925 of 10 KiB.
    #[test]
    fn lengths_that_are_no_multiple_of_the_shortest() {
        let mut job = random_job(4096);
        let mut counts = |sizes: BlockSizes| {
            job.block_sizes[0] = sizes;
            let mut offsets = Offsets::new(&job, 0, 1 << 30, 1);
            let mut counts = std::collections::BTreeMap::<u64, u32>::new();
            for _ in 0..5000 {
                *counts.entry(offsets.draw(Direction::Read).bytes / 1024).or_default() += 1;
            }
            counts
        };
        let split = counts(BlockSizes::Split(vec![(12 << 10, 50), (8 << 10, 50)]));
        assert_eq!(split, [(8, 5000)].into());
        let range = counts(BlockSizes::Range { min: 4 << 10, max: 10 << 10 });
        let near = |length: u64, count: u32| range[&length].abs_diff(count) < 200;
        assert!(range.len() == 3 && near(4, 2000) && near(8, 2000) && near(10, 1000), "{range:?}");
    }
}
