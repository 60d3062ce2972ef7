//! One trace made of several: in what order their requests follow each other, and where their addresses lie.
//!
//! A [`Combination`] is the same on the command line (`imbrex trace combine`) and in an experiment (`combine = { ... }`).
//! It is deterministic: the same sources and the same seed give the same requests. `docs/workloads.md` says what each
//! order and each placement means.

mod description;
mod order;
mod pack;
mod placement;
mod settings;
mod shuffle;
mod source;
mod split;

pub use description::SourceSummary;
pub use pack::PACKED_RUNS_MAX;
pub use settings::{BurstRequests, Combination, Order, Place, SEED_DEFAULT};
pub use source::SourceConfig;
pub use split::{PARTS_MAX, Part, Split, SplitBy};

use std::fmt;
use std::sync::Arc;

use super::error::TraceError;
use super::reader::Derived;
use super::reader::TraceReader;
use super::record::TraceRecord;
use super::tally::ReadCounts;
use order::Picker;
use placement::Placement;
use shuffle::Shuffled;
use source::SourceReader;

/// A combination whose first pass is made: it can be read any number of times.
pub struct Combined {
    combination: Combination,
    sources: Vec<SourceSummary>,
    placement: Placement,
}

impl Combined {
    /// Checks the combination, looks at its sources and makes the first pass that a placement needs.
    ///
    /// # Errors
    /// The combination is impossible, or a source cannot be read.
    pub fn new(combination: Combination) -> Result<Self, TraceError> {
        Self::beside(combination, &[])
    }

    /// The same, without a pass over sources that one of `others` has placed in the same way.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn beside(combination: Combination, others: &[Arc<Self>]) -> Result<Self, TraceError> {
        combination.check()?;
        let alike = |other: &&Arc<Self>| other.combination.lies_as(&combination);
        let (sources, placement) = match others.iter().find(alike) {
            Some(other) => (other.sources.clone(), other.placement.clone()),
            None => {
                let sources = combination.traces.iter().map(SourceSummary::of);
                let sources = sources.collect::<Result<Vec<_>, _>>()?;
                (sources, Placement::of(&combination)?)
            }
        };
        combination.check_times(&sources)?;
        Ok(Self { combination, sources, placement })
    }

    /// What the combination is.
    pub fn combination(&self) -> &Combination {
        &self.combination
    }

    /// What its sources are, in their order.
    pub fn sources(&self) -> &[SourceSummary] {
        &self.sources
    }

    /// The requests from the start.
    ///
    /// # Errors
    /// A source cannot be opened.
    pub fn records(&self) -> Result<TraceReader, TraceError> {
        let sources = self
            .combination
            .traces
            .iter()
            .map(SourceReader::open)
            .collect::<Result<Vec<_>, _>>()?;
        let has_times = self.sources.iter().all(|source| source.has_times);
        let records = Records {
            picker: Picker::new(&self.combination, sources, has_times),
            shuffle_seed: (self.combination.order == Order::Shuffle)
                .then_some(self.combination.seed()),
            shuffled: None,
            placement: self.placement.clone(),
            pieces: Vec::new(),
        };
        Ok(TraceReader::derived(
            &self.combination.label(),
            Box::new(records),
            self.combination.counted(),
            description::source_of(
                &self.combination,
                &self.sources,
                self.placement.device_bytes(&self.sources),
            ),
            has_times,
        ))
    }
}

impl fmt::Debug for Combined {
    /// All that it follows from: a packing may have millions of entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.combination.fmt(f)
    }
}

/// The requests of a combination: picked in their order, then placed.
struct Records {
    picker: Picker,
    /// Seed of the permutation, until the first request is asked for.
    shuffle_seed: Option<u64>,
    shuffled: Option<Shuffled>,
    placement: Placement,
    pieces: Vec<TraceRecord>,
}

impl Records {
    fn next(&mut self) -> Result<Option<(usize, TraceRecord)>, TraceError> {
        if let Some(seed) = self.shuffle_seed.take() {
            self.shuffled = Some(Shuffled::of(seed, || self.picker.next())?);
        }
        match &mut self.shuffled {
            Some(shuffled) => shuffled.next(),
            None => self.picker.next(),
        }
    }
}

impl Derived for Records {
    fn read(&mut self, wanted: usize, batch: &mut Vec<TraceRecord>) -> Result<(), TraceError> {
        let wanted = batch.len() + wanted;
        while batch.len() < wanted {
            let Some((source, record)) = self.next()? else {
                break;
            };
            self.placement.place(source, record, &mut self.pieces)?;
            batch.append(&mut self.pieces);
        }
        Ok(())
    }

    fn counts(&self) -> ReadCounts {
        self.picker.counts()
    }
}
