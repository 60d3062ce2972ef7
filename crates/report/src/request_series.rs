//! Requests over time in constant memory: what was moved, how long it took and how many were under way.
//!
//! All series share their [buckets](Buckets), so a request finds its bucket once.

use super::series::{Series, rates, round_significant};
use imbrex_drives::time_buckets::{Buckets, halve};
use serde::{Deserialize, Serialize};

const MS_PER_NS: f64 = 1e-6;

const NS_PER_S: f64 = 1e9;

const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;

/// Octaves of latencies that are told apart, the lowest from [`LOWEST_OCTAVE`] on: up to 18 minutes.
const OCTAVES: usize = 30;
/// The lowest octave begins at 2^10 ns, about a microsecond.
const LOWEST_OCTAVE: u32 = 10;
/// Each octave has four bins of equal width, so the middle of a bin is at most an eighth from what is in it.
const BINS_AN_OCTAVE_LOG2: u32 = 2;
const BINS: usize = OCTAVES << BINS_AN_OCTAVE_LOG2;

/// The bins of a bucket in which no request ended.
const NO_LATENCIES: [[u32; BINS]; WITH_PERCENTILES] = [[0; BINS]; WITH_PERCENTILES];

/// What a request did, as far as its latency counts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// It read.
    Read,
    /// It wrote.
    Write,
    /// It moved no data.
    Other,
}

/// Kinds whose latencies have percentiles.
const WITH_PERCENTILES: usize = 2;
const KINDS: usize = 3;

/// Response times of the requests that ended in each bucket; 0 where none did. A percentile is within an eighth of the
/// true one, and exact where it is the longest; below 1 us and above 18 minutes it is only known to be there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseSeries {
    /// Median of the reads, in milliseconds as all of them; absent with the other two where nothing was read.
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub read_p50_ms: Series,
    /// 99th percentile of the reads.
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub read_p99_ms: Series,
    /// The longest read, exact.
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub read_max_ms: Series,
    /// Median of the writes; absent with the other two where nothing was written.
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub write_p50_ms: Series,
    /// 99th percentile of the writes.
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub write_p99_ms: Series,
    /// The longest write, exact.
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub write_max_ms: Series,
}

/// Collects them, in about 550 KB.
pub(super) struct RequestSeries {
    buckets: Buckets,
    counted: Vec<Counted>,
    /// For each bucket and each kind with percentiles the number of latencies in each bin.
    bins: Vec<[[u32; BINS]; WITH_PERCENTILES]>,
    /// The bucket in which a request ended last, and when it begins: the next one mostly ends there too.
    last: usize,
    last_from_ns: u64,
}

/// What is counted in a bucket.
#[derive(Clone, Copy, Default)]
struct Counted {
    bytes: [u64; WITH_PERCENTILES],
    requests: u64,
    response_ns: u64,
    longest_ns: [u64; KINDS],
    /// Requests that began in the bucket less those that ended in it.
    begun: i64,
    /// The instants at which they began less those at which they ended, and `response_ns` more: nothing where all have
    /// begun in the bucket in which they ended.
    begun_ns: i128,
}

impl Counted {
    fn merged(a: Counted, b: Counted) -> Counted {
        Counted {
            bytes: std::array::from_fn(|i| a.bytes[i] + b.bytes[i]),
            requests: a.requests + b.requests,
            response_ns: a.response_ns + b.response_ns,
            longest_ns: std::array::from_fn(|i| a.longest_ns[i].max(b.longest_ns[i])),
            begun: a.begun + b.begun,
            begun_ns: a.begun_ns + b.begun_ns,
        }
    }
}

impl RequestSeries {
    /// No requests yet, in `buckets` buckets, an even number.
    pub fn new(buckets: usize) -> RequestSeries {
        RequestSeries {
            buckets: Buckets::new(buckets),
            counted: vec![Counted::default(); buckets],
            bins: vec![NO_LATENCIES; buckets],
            last: 0,
            last_from_ns: 0,
        }
    }

    /// A request of `bytes` bytes took `latency_ns` and ended at `now_ns`; instants may come in any order.
    #[inline]
    pub fn add(&mut self, now_ns: u64, latency_ns: u64, kind: RequestKind, bytes: u64) {
        let index = self.index(now_ns);
        let bucket = &mut self.counted[index];
        bucket.requests += 1;
        bucket.response_ns += latency_ns;
        let longest_ns = &mut bucket.longest_ns[kind as usize];
        *longest_ns = latency_ns.max(*longest_ns);
        if kind != RequestKind::Other {
            bucket.bytes[kind as usize] += bytes;
            let bin = &mut self.bins[index][kind as usize][bin(latency_ns)];
            *bin = bin.saturating_add(1);
        }
        if latency_ns > now_ns - self.last_from_ns {
            self.began_before(now_ns, latency_ns);
        }
    }

    /// The bucket in which a request ends at this instant; it is the last one from then on.
    #[inline]
    fn index(&mut self, now_ns: u64) -> usize {
        if now_ns < self.last_from_ns || now_ns - self.last_from_ns >= self.buckets.width_ns {
            self.reach(now_ns);
            self.last = self.buckets.index(now_ns);
            self.last_from_ns = self.last as u64 * self.buckets.width_ns;
        }
        self.last
    }

    /// The request that ended last, at `now_ns`, did not begin in the bucket in which it ended.
    fn began_before(&mut self, now_ns: u64, latency_ns: u64) {
        let began_ns = now_ns.saturating_sub(latency_ns);
        let ended = &mut self.counted[self.last];
        ended.begun -= 1;
        ended.begun_ns += i128::from(latency_ns) - i128::from(now_ns);
        let began = &mut self.counted[self.buckets.index(began_ns)];
        began.begun += 1;
        began.begun_ns += i128::from(began_ns);
    }

    /// MiB of `kind` per second of a run that ended at `end_ns`. The last bucket ends there, as that of [`rates`].
    pub fn mib_per_s(&mut self, kind: RequestKind, end_ns: u64) -> Series {
        self.rates(end_ns, 1.0 / BYTES_PER_MIB, |of| of.bytes[kind as usize])
    }

    /// Requests per second, likewise.
    pub fn per_s(&mut self, end_ns: u64) -> Series {
        self.rates(end_ns, 1.0, |of| of.requests)
    }

    fn rates(&mut self, end_ns: u64, scale: f64, of: impl Fn(&Counted) -> u64) -> Series {
        self.reach(end_ns.saturating_sub(1));
        let sums: Vec<u64> = self.counted.iter().map(of).collect();
        rates(&sums, self.buckets.width_ns, end_ns, scale)
    }

    /// The mean response time of each bucket, in milliseconds; 0 where no request ended.
    pub fn response_mean_ms(&mut self, end_ns: u64) -> Series {
        self.reach(end_ns.saturating_sub(1));
        self.values(end_ns, |_, of| {
            round_significant(of.response_ns as f64 * MS_PER_NS / of.requests.max(1) as f64)
        })
    }

    /// The longest response time of each bucket, in milliseconds; 0 where no request ended.
    pub fn response_max_ms(&mut self, end_ns: u64) -> Series {
        self.reach(end_ns.saturating_sub(1));
        self.values(end_ns, |_, of| in_ms(of.longest_ns.into_iter().max().unwrap_or(0)))
    }

    /// Percentiles and the longest, of reads and of writes.
    pub fn responses(&mut self, end_ns: u64) -> ResponseSeries {
        let [read_p50_ms, read_p99_ms, read_max_ms] = self.of_kind(RequestKind::Read, end_ns);
        let [write_p50_ms, write_p99_ms, write_max_ms] = self.of_kind(RequestKind::Write, end_ns);
        ResponseSeries {
            read_p50_ms,
            read_p99_ms,
            read_max_ms,
            write_p50_ms,
            write_p99_ms,
            write_max_ms,
        }
    }

    /// Median, 99th percentile and the longest; empty where there was none of the kind.
    fn of_kind(&mut self, kind: RequestKind, end_ns: u64) -> [Series; 3] {
        self.reach(end_ns.saturating_sub(1));
        let kind = kind as usize;
        let used = self.buckets.used(end_ns);
        let mut values = [(); 3].map(|()| Vec::with_capacity(used));
        let mut requests = 0;
        for (bins, of) in self.bins.iter().zip(&self.counted).take(used) {
            let count: u64 = match of.requests {
                0 => 0,
                _ => bins[kind].iter().map(|count| u64::from(*count)).sum(),
            };
            requests += count;
            let longest = of.longest_ns[kind];
            let told = match count {
                0 => [0; 3],
                _ => [50, 99, 100].map(|percent| quantile_ns(&bins[kind], count, longest, percent)),
            };
            values.iter_mut().zip(told).for_each(|(values, ns)| values.push(in_ms(ns)));
        }
        if requests == 0 {
            return Default::default();
        }
        let bucket_s = self.buckets.width_ns as f64 / NS_PER_S;
        values.map(|values| Series { bucket_s, values })
    }

    /// Requests that had begun and not ended: time-weighted mean of each bucket, of those that have ended since.
    pub fn under_way(&mut self, end_ns: u64) -> Series {
        self.reach(end_ns.saturating_sub(1));
        let width_ns = i128::from(self.buckets.width_ns);
        let (mut begun, mut begun_ns) = (0i128, 0i128);
        self.values(end_ns, |index, of| {
            // The time that all requests have been under way up to an instant grows by `begun` and began at `begun_ns`.
            let from_ns = index as i128 * width_ns;
            let before = begun * from_ns - begun_ns;
            begun += i128::from(of.begun);
            begun_ns += of.begun_ns - i128::from(of.response_ns);
            let to_ns = (from_ns + width_ns).min(i128::from(end_ns));
            let ns = (begun * to_ns - begun_ns) - before;
            round_significant(ns as f64 / (to_ns - from_ns).max(1) as f64)
        })
    }

    /// A value of each bucket that has begun at `end_ns`.
    fn values(&self, end_ns: u64, mut value: impl FnMut(usize, &Counted) -> f64) -> Series {
        let used = self.buckets.used(end_ns);
        Series {
            bucket_s: self.buckets.width_ns as f64 / NS_PER_S,
            values: self
                .counted
                .iter()
                .take(used)
                .enumerate()
                .map(|(i, of)| value(i, of))
                .collect(),
        }
    }

    #[inline]
    fn reach(&mut self, at_ns: u64) {
        if !self.buckets.reach(at_ns) {
            self.widen(at_ns);
        }
    }

    #[cold]
    fn widen(&mut self, at_ns: u64) {
        while !self.buckets.reach(at_ns) {
            halve(&mut self.counted, Counted::merged);
            self.merge_bins();
            self.buckets.width_ns *= 2;
        }
        // Buckets begin elsewhere now.
        (self.last, self.last_from_ns) = (0, 0);
    }

    /// What [`halve`] does, of the bins, which have no default.
    fn merge_bins(&mut self) {
        let half = self.bins.len() / 2;
        for to in 0..half {
            let (a, b) = (self.bins[2 * to], self.bins[2 * to + 1]);
            let both = a.as_flattened().iter().zip(b.as_flattened());
            for (merged, (a, b)) in self.bins[to].as_flattened_mut().iter_mut().zip(both) {
                *merged = a.saturating_add(*b);
            }
        }
        self.bins[half..].fill(NO_LATENCIES);
    }
}

/// The bin of a latency.
#[inline]
fn bin(latency_ns: u64) -> usize {
    let ns = latency_ns.max(1 << LOWEST_OCTAVE);
    let octave = ns.ilog2();
    let within = (ns >> (octave - BINS_AN_OCTAVE_LOG2)) as usize & ((1 << BINS_AN_OCTAVE_LOG2) - 1);
    let bin = (((octave - LOWEST_OCTAVE) as usize) << BINS_AN_OCTAVE_LOG2) + within;
    bin.min(BINS - 1)
}

/// The latency that `percent` of 100 of the `count` in `bins` do not exceed, of which the longest is `longest_ns`.
fn quantile_ns(bins: &[u32; BINS], count: u64, longest_ns: u64, percent: u64) -> u64 {
    let rank = (count * percent).div_ceil(100);
    if rank == count {
        return longest_ns;
    }
    let mut seen = 0;
    let bin = bins.iter().position(|count| {
        seen += u64::from(*count);
        seen >= rank
    });
    match bin {
        Some(bin) if bin + 1 < BINS => middle_ns(bin).min(longest_ns),
        _ => longest_ns,
    }
}

/// The middle of a bin.
fn middle_ns(bin: usize) -> u64 {
    let octave = (bin >> BINS_AN_OCTAVE_LOG2) as u32 + LOWEST_OCTAVE;
    let width_ns = 1u64 << (octave - BINS_AN_OCTAVE_LOG2);
    let within = bin as u64 & ((1 << BINS_AN_OCTAVE_LOG2) - 1);
    (1 << octave) + within * width_ns + width_ns / 2
}

fn in_ms(ns: u64) -> f64 {
    round_significant(ns as f64 * MS_PER_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn widths_double_and_nothing_is_lost() {
        let mut series = RequestSeries::new(4);
        for ms in 0..100 {
            series.add(ms * MS, 0, RequestKind::Write, 3 << 20);
        }
        let rates = series.mib_per_s(RequestKind::Write, 100 * MS);
        assert_eq!(rates.bucket_s, 0.032);
        assert_eq!(rates.values, [3000.0, 3000.0, 3000.0], "the last bucket covers 36 ms");
        assert_eq!(series.per_s(100 * MS).values, [1000.0, 1000.0, 1000.0]);
    }

    #[test]
    fn series_cover_the_run_even_if_nothing_happened_late() {
        let mut series = RequestSeries::new(4);
        series.add(0, 0, RequestKind::Read, 1);
        let rates = series.per_s(16 * MS);
        assert_eq!((rates.bucket_s, rates.values.len()), (0.004, 4));
        assert_eq!(series.under_way(16 * MS).values, [0.0; 4]);
    }

    #[test]
    fn nothing_recorded_is_one_empty_bucket() {
        let mut series = RequestSeries::new(8);
        assert_eq!(series.per_s(0).values, [0.0]);
        assert_eq!(series.under_way(0).values, [0.0]);
        assert_eq!(series.response_mean_ms(0).values, [0.0]);
        assert_eq!(series.responses(0), ResponseSeries::default());
    }

    #[test]
    fn percentiles_are_within_an_eighth_and_reads_and_writes_apart() {
        let mut series = RequestSeries::new(2);
        let mut latencies: Vec<u64> =
            (0..2000u64).map(|i| 1500 + i * i * 977 % 300_000_000).collect();
        for latency in &latencies {
            series.add(0, *latency, RequestKind::Read, 4096);
        }
        series.add(0, 7 * MS, RequestKind::Write, 4096);
        series.add(0, 900 * MS, RequestKind::Other, 0);
        latencies.sort_unstable();
        let told = series.responses(MS);
        for (values, exact) in
            [(&told.read_p50_ms, latencies[999]), (&told.read_p99_ms, latencies[1979])]
        {
            let exact = exact as f64 / 1e6;
            let [value] = values.values[..] else { panic!("one bucket") };
            assert!((value - exact).abs() <= exact / 8.0, "{value} against {exact}");
        }
        assert_eq!(told.read_max_ms.values, [round_significant(latencies[1999] as f64 / 1e6)]);
        assert_eq!(told.write_p50_ms.values, [7.0], "the only one is known");
        assert_eq!(series.response_max_ms(MS).values, [900.0]);
    }

    #[test]
    fn every_bin_has_its_middle_and_the_ends_have_the_longest() {
        for bin_number in 0..BINS {
            assert_eq!(bin(middle_ns(bin_number)), bin_number);
        }
        let mut series = RequestSeries::new(2);
        let hours = 7200 * 1000 * MS;
        for latency in [3, 5, hours, hours] {
            series.add(0, latency, RequestKind::Write, 1);
        }
        let told = series.responses(MS);
        assert_eq!(told.write_p99_ms.values, [7.2e6]);
        let mut series = RequestSeries::new(2);
        (0..10).for_each(|_| series.add(0, 3, RequestKind::Write, 1));
        assert_eq!(series.responses(MS).write_p50_ms.values, [3e-6]);
    }

    #[test]
    fn requests_are_under_way_from_begin_to_end() {
        let mut series = RequestSeries::new(4);
        // From 0.5 to 1 ms; from 0.5 to 3 ms; from 2 to 2.25 ms.
        series.add(MS, MS / 2, RequestKind::Read, 1);
        series.add(3 * MS, 5 * MS / 2, RequestKind::Write, 1);
        series.add(9 * MS / 4, MS / 4, RequestKind::Other, 0);
        assert_eq!(series.under_way(4 * MS).values, [1.0, 1.0, 1.25, 0.0]);
        series.add(6 * MS, 4 * MS, RequestKind::Read, 1);
        let merged = series.under_way(6 * MS);
        assert_eq!((merged.bucket_s, &merged.values[..]), (0.002, &[1.0, 1.625, 1.0][..]));
    }

    #[test]
    fn requests_in_any_order_are_under_way_as_long_as_each_of_them() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut series = RequestSeries::new(8);
        let mut requests = Vec::new();
        for number in 0..500 {
            // Mostly a little later than the one before; some long before it, and some that began before the run did.
            let now_ns = match random(10) {
                0 => random(60 * MS),
                _ => number * MS / 10 + random(MS / 5),
            };
            let latency_ns = [random(MS / 10), random(40 * MS)][usize::from(random(4) == 0)];
            series.add(now_ns, latency_ns, RequestKind::Read, 1);
            requests.push((now_ns.saturating_sub(latency_ns), now_ns));
        }
        let told = series.under_way(60 * MS);
        let width_ns = (told.bucket_s * NS_PER_S).round() as u64;
        assert_eq!((width_ns, told.values.len()), (8 * MS, 8));
        for (at, value) in told.values.iter().enumerate() {
            let from_ns = at as u64 * width_ns;
            let to_ns = (from_ns + width_ns).min(60 * MS);
            let inside = |(began, ended): &(u64, u64)| {
                (*ended).min(to_ns).saturating_sub((*began).max(from_ns))
            };
            let ns: u64 = requests.iter().map(inside).sum();
            let expected = round_significant(ns as f64 / (to_ns - from_ns) as f64);
            assert_eq!(*value, expected, "bucket {at}");
        }
    }
}
