//! Where the requests of an experiment come from, and what a first pass over them finds.

use super::kept::{Kept, Records, Told};
use super::rounds::Rounds;
use super::warm_up::WarmUp;
use crate::record_source::RecordSource;
use crate::replay::{Placement, Touched, place};
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::operation::Operation;
use imbrex_core::units::{BlockCount, Lba};
use imbrex_stack::Footprint;
use imbrex_traces::combine::Combined;
use imbrex_traces::{BlockRule, ReadOptions, TraceError, TraceOperation, TraceReader, TraceRecord};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Never set.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// A workload that can be replayed any number of times, unless it is standard input.
#[derive(Clone, Debug)]
pub struct Workload {
    /// A trace file, `-`, or `synthetic:RECIPE[/SCALE]`.
    pub path: String,
    /// How to read it.
    pub options: ReadOptions,
    /// Stop after this many records.
    pub limit: Option<u64>,
    /// How many times over a replay takes it; 1 for once. The limit is that of each round.
    pub repeat: u32,
    /// Each round is on other blocks, those behind the highest of the one before. They must be placed modulo the
    /// size of the device.
    pub new_blocks: bool,
    /// What comes before the part that is measured; none where all is.
    pub warm_up: Option<WarmUp>,
    /// Several traces made one, of which `path` is the name then.
    pub combined: Option<Arc<Combined>>,
    /// Its records, while they are in memory.
    pub kept: Kept,
}

impl Workload {
    /// A trace, once.
    pub fn of_trace(path: &str, options: ReadOptions, limit: Option<u64>) -> Workload {
        Workload {
            path: path.to_string(),
            options,
            limit,
            repeat: 1,
            new_blocks: false,
            warm_up: None,
            combined: None,
            kept: Kept::default(),
        }
    }

    /// The records from the start.
    ///
    /// # Errors
    /// When the trace cannot be opened.
    pub fn records(&self) -> Result<TraceReader, TraceError> {
        match &self.combined {
            Some(combined) => combined.records(),
            None => imbrex_traces::open(&self.path, &self.options),
        }
    }

    /// The records to the limit, from memory where they are kept or will be read again.
    ///
    /// # Errors
    /// When the trace cannot be opened.
    pub(crate) fn records_again(&self, stop: &AtomicBool) -> Result<Records, TraceError> {
        if self.is_stream() {
            return Ok(Records::Read(Box::new(self.records()?)));
        }
        // What is in memory is one round, however many are taken.
        let key = format!(
            "{:?}",
            Workload { repeat: 1, new_blocks: false, warm_up: None, ..self.clone() }
        );
        self.kept.records(key, self.limit_records(), || self.records(), stop)
    }

    /// SHA-256 of the trace file as reports give it, of which `told` may know it already; none where nobody wants it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn sha256_of(&self, told: &Told) -> Result<Option<String>, TraceError> {
        match (self.has_file(), &told.sha256) {
            (false, _) => Ok(None),
            (true, Some(sha256)) => Ok(Some(sha256.clone())),
            (true, None) if self.options.sha256 => self.sha256(),
            (true, None) => Ok(None),
        }
    }

    /// Whether it is one trace in a file.
    fn has_file(&self) -> bool {
        self.combined.is_none() && !self.is_stream() && !self.path.starts_with("synthetic:")
    }

    /// True when it can be read only once.
    pub fn is_stream(&self) -> bool {
        self.path == "-"
    }

    /// SHA-256 of the trace file as stored, in hexadecimal; none for a recipe, a
    /// stream or a combination, of which each source has its own.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sha256(&self) -> Result<Option<String>, TraceError> {
        if !self.has_file() {
            return Ok(None);
        }
        imbrex_traces::stored_sha256(&self.path, &self.options).map(Some)
    }

    /// The end of the highest request, in bytes.
    ///
    /// # Errors
    /// When the trace is damaged.
    pub fn span_bytes(&self) -> Result<u64, TraceError> {
        self.span_bytes_until(&NEVER)
    }

    /// The same; once `stop` is set it means nothing.
    pub(super) fn span_bytes_until(&self, stop: &AtomicBool) -> Result<u64, TraceError> {
        let mut span = 0;
        let mut records = self.until(stop)?;
        while let Some(record) = records.next_record()? {
            span = span.max(record.offset_bytes.saturating_add(record.length_bytes));
        }
        Ok(span)
    }

    /// The end of the highest request of each device of the trace, in bytes.
    ///
    /// # Errors
    /// When the trace is damaged.
    pub(super) fn device_spans_bytes(&self, stop: &AtomicBool) -> Result<Vec<u64>, TraceError> {
        let mut spans = Vec::new();
        let mut records = self.until(stop)?;
        while let Some(record) = records.next_record()? {
            let device = usize::from(record.device);
            if spans.len() <= device {
                spans.resize(device + 1, 0);
            }
            let end = record.offset_bytes.saturating_add(record.length_bytes);
            spans[device] = end.max(spans[device]);
        }
        Ok(spans)
    }

    /// The blocks that its requests touch by a rule, and whether all are of one device.
    ///
    /// # Errors
    /// When the trace is damaged.
    pub(super) fn touched(
        &self,
        blocks: BlockRule,
        stop: &AtomicBool,
    ) -> Result<Touched, TraceError> {
        let mut touched = Touched::default();
        let mut records = self.all_blocks_until(stop)?;
        while let Some(record) = records.next_record()? {
            touched.add(&record, blocks);
        }
        Ok(touched)
    }

    /// Bytes of the bands that requests and that writes touch; reads touch nothing when
    /// `writes_only`. Requests beyond the device are the replay's to refuse.
    ///
    /// # Errors
    /// When the trace is damaged.
    pub fn footprint(
        &self,
        bands: &BandTable,
        device_blocks: BlockCount,
        placement: Placement,
        writes_only: bool,
    ) -> Result<Footprint, TraceError> {
        self.footprint_until(bands, device_blocks, placement, writes_only, &NEVER)
    }

    /// The same; once `stop` is set it means nothing.
    pub(super) fn footprint_until(
        &self,
        bands: &BandTable,
        device_blocks: BlockCount,
        placement: Placement,
        writes_only: bool,
        stop: &AtomicBool,
    ) -> Result<Footprint, TraceError> {
        // Of each band, whether anything and whether a write has touched it.
        let mut touched = vec![(false, false); bands.bands() as usize];
        let mut records = self.all_blocks_until(stop)?;
        while let Some(record) = records.next_record()? {
            let is_write = record.operation == TraceOperation::Write;
            if !is_write && (writes_only || record.operation != TraceOperation::Read) {
                continue;
            }
            if let Some((Operation::Read | Operation::Write { .. }, extent)) =
                place(&record, device_blocks, placement)
                && !extent.is_empty()
            {
                let mut band = bands.band_of(extent.start);
                loop {
                    let touched = &mut touched[band.0 as usize];
                    *touched = (true, touched.1 || is_write);
                    if bands.extent_of(band).end() >= extent.end() || band.0 + 1 == bands.bands() {
                        break;
                    }
                    band.0 += 1;
                }
            }
        }
        let mut footprint = Footprint { touched_bytes: 0, written_bytes: 0 };
        let touched = touched.into_iter().enumerate().filter(|(_, (is_touched, _))| *is_touched);
        for (band, (_, is_written)) in touched {
            let bytes = bands.extent_of(BandId(band as u32)).blocks.bytes();
            footprint.touched_bytes += bytes;
            footprint.written_bytes += bytes * u64::from(is_written);
        }
        Ok(footprint)
    }

    /// The blocks of the replay in the order in which a cache looks them up: what a clairvoyant
    /// cache must know. Once `stop` is set it means nothing.
    ///
    /// # Errors
    /// When the trace is damaged.
    pub(super) fn lookups(
        &self,
        device_blocks: BlockCount,
        placement: Placement,
        writes_only: bool,
        stop: &AtomicBool,
    ) -> Result<Vec<Lba>, TraceError> {
        let mut lookups = Vec::new();
        let mut records = Until::new(Rounds::new(self, self.limit, stop)?, stop);
        while let Some(record) = records.next_record()? {
            if writes_only && record.operation == TraceOperation::Read {
                continue;
            }
            if let Some((Operation::Read | Operation::Write { .. }, extent)) =
                place(&record, device_blocks, placement)
            {
                lookups.extend((extent.start.0..extent.end().0).map(Lba));
            }
        }
        Ok(lookups)
    }

    /// The records of so many rounds as touch all blocks that there are to be touched, or until `stop` is set.
    fn all_blocks_until<'a>(&self, stop: &'a AtomicBool) -> Result<Until<'a, Rounds>, TraceError> {
        let repeat = if self.new_blocks { self.repeat } else { 1 };
        let rounds = Workload { repeat, ..self.clone() };
        Ok(Until::new(Rounds::new(&rounds, self.limit, stop)?, stop))
    }

    /// The records of one round, to the limit or until `stop` is set.
    pub(crate) fn until<'a>(&self, stop: &'a AtomicBool) -> Result<Until<'a, Records>, TraceError> {
        Ok(Until::first(self.limit_records(), self.records_again(stop)?, stop))
    }

    /// Records to read in a round at most.
    pub(crate) fn limit_records(&self) -> usize {
        let limit = self.limit.unwrap_or(u64::MAX);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// The records of a trace until somebody stops what reads them, or so many of them.
pub(crate) struct Until<'a, R> {
    /// The trace.
    pub records: R,
    /// How many may come yet.
    left: usize,
    /// Ends it.
    pub stop: &'a AtomicBool,
}

impl<'a, R> Until<'a, R> {
    /// All records until somebody stops.
    pub fn new(records: R, stop: &'a AtomicBool) -> Until<'a, R> {
        Until::first(usize::MAX, records, stop)
    }

    /// The first `limit` records until somebody stops.
    pub fn first(limit: usize, records: R, stop: &'a AtomicBool) -> Until<'a, R> {
        Until { records, left: limit, stop }
    }
}

impl<R: RecordSource> RecordSource for Until<'_, R> {
    #[inline(always)]
    fn next_into(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError> {
        if self.left == 0 || self.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        self.left -= 1;
        self.records.next_into(record)
    }
}
