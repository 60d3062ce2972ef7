//! Which request comes next.

use super::settings::{BurstRequests, Combination, Order};
use super::source::{SourceReader, later};
use crate::error::TraceError;
use crate::record::TraceRecord;
use crate::synthetic::Random;
use crate::tally::ReadCounts;

/// Picks the next request among those of the sources.
pub(super) struct Picker {
    sources: Vec<SourceReader>,
    rule: Rule,
    has_times: bool,
    /// Where the time of the result has come to.
    now_ns: u64,
    /// The last time of each source, as the source says it.
    last_ns: Vec<u64>,
}

enum Rule {
    /// One source after another, which is also a burst of all requests.
    InTurn {
        source: usize,
    },
    ByTime,
    Bursts {
        random: Random,
        length: u64,
        /// Sources with requests left, in their order.
        live: Vec<usize>,
        source: usize,
        /// Requests the burst may still have.
        left: u64,
    },
}

impl Picker {
    pub(super) fn new(
        combination: &Combination,
        sources: Vec<SourceReader>,
        has_times: bool,
    ) -> Self {
        let rule = match (combination.order, combination.burst()) {
            (Order::Merge, _) => Rule::ByTime,
            (Order::Shuffle, _) if has_times => Rule::ByTime,
            (Order::Concatenate | Order::Shuffle, _) | (Order::Bursts, BurstRequests::All) => {
                Rule::InTurn { source: 0 }
            }
            (Order::Bursts, BurstRequests::Count(length)) => Rule::Bursts {
                random: Random::new(combination.seed()),
                length,
                live: (0..sources.len()).collect(),
                source: 0,
                left: 0,
            },
        };
        Self { last_ns: vec![0; sources.len()], sources, rule, has_times, now_ns: 0 }
    }

    /// The next request and the number of its source; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(usize, TraceRecord)>, TraceError> {
        let Some(source) = self.source() else {
            return Ok(None);
        };
        let record = self.sources[source].take()?;
        let mut record = record.expect("the source has a request left");
        record.time_ns = match (&self.rule, self.has_times) {
            (_, false) => 0,
            (Rule::ByTime, true) => record.time_ns,
            (_, true) => {
                // A request keeps the gap to the one before it in its source; the first has its delay as its gap.
                let gap_ns = record.time_ns - self.last_ns[source];
                self.last_ns[source] = record.time_ns;
                self.now_ns = later(self.now_ns, gap_ns)?;
                self.now_ns
            }
        };
        Ok(Some((source, record)))
    }

    /// The source whose request comes next.
    fn source(&mut self) -> Option<usize> {
        let sources = &self.sources;
        match &mut self.rule {
            Rule::InTurn { source } => {
                while sources.get(*source)?.peek().is_none() {
                    *source += 1;
                }
                Some(*source)
            }
            Rule::ByTime => {
                let next = sources
                    .iter()
                    .enumerate()
                    .filter_map(|(source, reader)| Some((reader.peek()?.time_ns, source)));
                next.min().map(|(_, source)| source)
            }
            Rule::Bursts { random, length, live, source, left } => {
                if *left == 0 || sources[*source].peek().is_none() {
                    live.retain(|&source| sources[source].peek().is_some());
                    if live.is_empty() {
                        return None;
                    }
                    *source = live[random.below(live.len() as u64) as usize];
                    *left = *length;
                }
                *left -= 1;
                Some(*source)
            }
        }
    }

    /// What was counted of the sources so far.
    pub(super) fn counts(&self) -> ReadCounts {
        let mut counts = ReadCounts::default();
        for source in &self.sources {
            counts.add_lines(source.counts());
        }
        counts
    }
}
