//! How accesses spread over blocks: the distributions of Le's thesis, hot blocks, blocks of one direction.

use super::accesses::{Aggregation, CdfPoint, Mostly, Popularity};
use super::{percent, ratio};

/// Above this, the counts of a distribution are four to a doubling.
const EVERY_COUNT_TO: u64 = 8;

/// From the reads and writes of each kept block, each of which stands for `weight` blocks.
pub(super) fn of(counts: &[(u32, u32)], weight: u64) -> Popularity {
    let sorted = |count: fn(&(u32, u32)) -> u64| {
        let mut all: Vec<u64> = counts.iter().map(count).filter(|&n| n > 0).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all
    };
    let writes = sorted(|&(_, writes)| writes.into());
    Popularity {
        cdf: cdf(&writes, counts.len() as u64),
        accesses: aggregation(
            &sorted(|&(reads, writes)| u64::from(reads) + u64::from(writes)),
            weight,
        ),
        reads: aggregation(&sorted(|&(reads, _)| reads.into()), weight),
        writes: aggregation(&writes, weight),
        read_mostly: mostly(counts, |&(reads, writes)| (reads, writes)),
        write_mostly: mostly(counts, |&(reads, writes)| (writes, reads)),
    }
}

/// Points of the distributions; `writes` are those of the written blocks in descending order.
fn cdf(writes: &[u64], accessed: u64) -> Vec<CdfPoint> {
    let written = writes.len() as u64;
    let never = accessed - written;
    let greatest = writes.first().copied().unwrap_or(0);
    let mut points = Vec::new();
    for times in counts_up_to(greatest) {
        let written_at_most = |times: u64| written - writes.partition_point(|&n| n > times) as u64;
        let (at_most, one_more) = (written_at_most(times), written_at_most(times + 1));
        points.push(CdfPoint {
            times,
            accessed_written_percent: percent(never + at_most, accessed),
            accessed_updated_percent: percent(never + one_more, accessed),
            written_written_percent: percent(at_most, written),
            written_updated_percent: percent(one_more, written),
        });
    }
    points
}

/// Every count to 8, then four to a doubling, and the greatest.
fn counts_up_to(greatest: u64) -> Vec<u64> {
    let mut counts: Vec<u64> = (0..=greatest.min(EVERY_COUNT_TO)).collect();
    let mut doubling = EVERY_COUNT_TO;
    while doubling < greatest {
        let quarters = (5..=8).map(|quarter| doubling / 4 * quarter);
        counts.extend(quarters.filter(|&count| count < greatest));
        doubling *= 2;
    }
    if greatest > EVERY_COUNT_TO {
        counts.push(greatest);
    }
    counts
}

/// Shares of the greatest counts; `counts` are in descending order.
fn aggregation(counts: &[u64], weight: u64) -> Aggregation {
    let all: u64 = counts.iter().sum();
    let top = |one_in: usize| {
        let hottest = (counts.len() / one_in).max(1).min(counts.len());
        percent(counts[..hottest].iter().sum(), all)
    };
    Aggregation {
        blocks: counts.len() as u64 * weight,
        top_1_percent: top(100),
        top_10_percent: top(10),
    }
}

/// Blocks with more than 95 % of the first kind of access.
fn mostly(counts: &[(u32, u32)], kinds: fn(&(u32, u32)) -> (u32, u32)) -> Mostly {
    let (mut blocks, mut accesses, mut all) = (0u64, 0u64, 0u64);
    for count in counts {
        let (mine, other) = kinds(count);
        let (mine, other) = (u64::from(mine), u64::from(other));
        all += mine;
        if mine * 100 > (mine + other) * 95 {
            blocks += 1;
            accesses += mine;
        }
    }
    Mostly {
        blocks_percent: percent(blocks, counts.len() as u64),
        traffic_percent: 100.0 * ratio(accesses, all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_log_spaced_and_end_with_the_greatest() {
        assert_eq!(counts_up_to(0), [0]);
        assert_eq!(counts_up_to(3), [0, 1, 2, 3]);
        assert_eq!(counts_up_to(21), [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 21]);
    }
}
