//! Times inside the second, for formats that count whole seconds.
//!
//! A trace with whole seconds has all requests of a second at its start. Replayed like that, it would be a burst a second,
//! and what is measured would be the burst. So the requests of a second are spread over it, in their order, by a rule that
//! the caller may choose.

use super::error::TraceError;
use super::record::TraceRecord;
use super::synthetic::Random;
use super::tally::Tally;
use super::text::Parsed;

const SECOND_NS: u64 = 1_000_000_000;

/// Requests of one second that are held in memory at most; no device of the field comes near it.
const REQUESTS_MAX: usize = 1 << 21;

/// How the requests of one second are spread over it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subsecond {
    /// Not: all of them are at the start of the second.
    None,
    /// Evenly: of n requests, number k from 0 comes k/n of a second after its start.
    #[default]
    Uniform,
    /// At instants drawn independently and sorted, as in a Poisson process of which the number of arrivals is known.
    Poisson {
        /// Seed of the draws.
        seed: u64,
    },
}

impl Subsecond {
    /// What the rule does, for people.
    pub(super) fn describe(self) -> String {
        match self {
            Self::None => "requests of a second at its start".to_owned(),
            Self::Uniform => "requests of a second spread evenly over it".to_owned(),
            Self::Poisson { seed } => {
                format!("requests of a second at random instants of it (seed {seed})")
            }
        }
    }
}

impl std::str::FromStr for Subsecond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seed = |text: &str| text.parse().ok();
        match text {
            "none" => Some(Self::None),
            "uniform" => Some(Self::Uniform),
            "poisson" => Some(Self::Poisson { seed: 1 }),
            other => {
                other.strip_prefix("poisson:").and_then(seed).map(|seed| Self::Poisson { seed })
            }
        }
        .ok_or_else(|| {
            format!("unknown rule {text:?}; accepted: uniform, none, poisson or poisson:SEED")
        })
    }
}

/// Collects the requests of one second and gives them back spread over it.
pub(super) struct Spread {
    rule: Subsecond,
    random: Random,
    /// Requests of the second that is still open.
    open: Vec<TraceRecord>,
    /// Requests of the second before it, of which so many have been taken.
    ready: Vec<TraceRecord>,
    taken: usize,
    instants_ns: Vec<u64>,
}

impl Spread {
    /// What spreads the requests of a format with whole seconds, if anything does; the rule is added to what was detected.
    pub(super) fn of(rule: Option<Subsecond>, detected: &mut String) -> Option<Self> {
        let rule = rule.unwrap_or_default();
        detected.push_str(&format!(", times in seconds, {}", rule.describe()));
        (rule != Subsecond::None).then(|| Self::new(rule))
    }

    fn new(rule: Subsecond) -> Self {
        let seed = match rule {
            Subsecond::Poisson { seed } => seed,
            Subsecond::None | Subsecond::Uniform => 0,
        };
        Self {
            rule,
            random: Random::new(seed),
            open: Vec::new(),
            ready: Vec::new(),
            taken: 0,
            instants_ns: Vec::new(),
        }
    }

    /// The next request of a second that is closed.
    pub(super) fn take(&mut self) -> Option<TraceRecord> {
        let record = self.ready.get(self.taken).copied();
        self.taken += usize::from(record.is_some());
        record
    }

    /// Adds a request; its time is a whole second. A request of an earlier second belongs to the open one, and is counted as
    /// an inversion.
    ///
    /// # Errors
    /// The second has more requests than memory is meant to hold.
    pub(super) fn push(
        &mut self,
        mut record: TraceRecord,
        tally: &mut Tally,
    ) -> Result<(), TraceError> {
        if let Some(first) = self.open.first() {
            if record.time_ns > first.time_ns {
                self.close();
            } else if record.time_ns < first.time_ns {
                record.time_ns = first.time_ns;
                tally.counts.time_inversions += 1;
            }
        }
        if self.open.len() == REQUESTS_MAX {
            return Err(TraceError::Option {
                option: "--subsecond",
                reason: format!(
                    "second {} of the trace has more than {REQUESTS_MAX} requests to spread; accepted: none",
                    record.time_ns / SECOND_NS
                ),
            });
        }
        self.open.push(record);
        Ok(())
    }

    /// Ends the open second: its requests get their times. Those of the second before must have been taken.
    pub(super) fn close(&mut self) {
        self.ready.drain(..self.taken);
        self.taken = 0;
        let count = self.open.len() as u64;
        match self.rule {
            Subsecond::None => {}
            Subsecond::Uniform => {
                for (index, record) in (0..).zip(&mut self.open) {
                    record.time_ns = record.time_ns.saturating_add(index * SECOND_NS / count);
                }
            }
            Subsecond::Poisson { .. } => {
                let random = &mut self.random;
                self.instants_ns.clear();
                self.instants_ns.extend((0..count).map(|_| random.below(SECOND_NS)));
                self.instants_ns.sort_unstable();
                for (instant_ns, record) in self.instants_ns.iter().zip(&mut self.open) {
                    record.time_ns = record.time_ns.saturating_add(*instant_ns);
                }
            }
        }
        self.ready.append(&mut self.open);
    }
}

/// Takes what a parser gives, one thing after another, to batches of records: through a rule for the second, if there is one.
pub(super) struct Feed {
    spread: Option<Spread>,
    /// What ended the trace, once something did.
    end: Option<Result<(), TraceError>>,
}

impl Feed {
    pub(super) fn new(spread: Option<Spread>) -> Self {
        Self { spread, end: None }
    }

    /// True where records go to batches as they come.
    pub(super) fn is_plain(&self) -> bool {
        self.spread.is_none()
    }

    /// Appends records until the batch has `wanted`; true at the end of the trace, which `next` says with `None`.
    #[inline]
    pub(super) fn read(
        &mut self,
        wanted: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
        mut next: impl FnMut(&mut Tally) -> Result<Option<Parsed>, TraceError>,
    ) -> Result<bool, TraceError> {
        if self.spread.is_some() {
            return self.read_spread(wanted, tally, batch, next);
        }
        while batch.len() < wanted {
            match next(tally)? {
                Some(Parsed::Record(record)) => batch.push(tally.accept(record)),
                Some(Parsed::Skip(reason)) => tally.counts.skipped.count(reason),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The same through the rule for the second. What was read before an error is returned before it.
    fn read_spread(
        &mut self,
        wanted: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
        mut next: impl FnMut(&mut Tally) -> Result<Option<Parsed>, TraceError>,
    ) -> Result<bool, TraceError> {
        let spread = self.spread.as_mut().expect("asked before");
        while batch.len() < wanted {
            if let Some(record) = spread.take() {
                batch.push(tally.accept(record));
                continue;
            }
            match self.end.take() {
                None => {}
                Some(Ok(())) => {
                    self.end = Some(Ok(()));
                    return Ok(true);
                }
                Some(Err(error)) => return Err(error),
            }
            let ended = match next(tally) {
                Ok(Some(Parsed::Record(record))) => spread.push(record, tally).err().map(Err),
                Ok(Some(Parsed::Skip(reason))) => {
                    tally.counts.skipped.count(reason);
                    None
                }
                Ok(None) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            };
            if ended.is_some() {
                spread.close();
                self.end = ended;
            }
        }
        Ok(false)
    }
}
