//! Opening a trace and reading its records.

use std::io::Read;
use std::ops::RangeInclusive;

use super::binary::Binary;
use super::blktrace::processor_files;
use super::detect::detect;
use super::error::TraceError;
use super::input::{Input, file_sha256, sha256_hex, sha256_of_files};
use super::line_parser::LineParser;
use super::options::{Format, ReadOptions};
use super::parquet::{self, ParquetTrace};
use super::record::{Source, SourceKind, TraceRecord};
use super::recording::Recording;
use super::stop_reading::StopReading;
use super::synthetic::{Recipe, SyntheticRecords};
use super::tally::{ReadCounts, SkipReason, SkippedLines, Tally};
use super::text::{Lines, split};
use super::text_trace::TextTrace;
use super::web_log::WebLog;

/// Records read ahead by the iterator.
const BATCH_RECORDS: usize = 1024;

/// Opens a trace: a file in any known format and compression, `-` for standard input, `synthetic:RECIPE[/SCALE]`, or the
/// files of one blktrace. Those are `PATH.blktrace.N` or, if PATH ends in `.blktrace`, `PATH.N`, where no file is called PATH.
///
/// # Errors
/// The file cannot be read, is empty, its format cannot be told, or an option does not fit it.
pub fn open(path: &str, options: &ReadOptions) -> Result<TraceReader, TraceError> {
    let Some(recipe) = Recipe::of_path(path)? else {
        let files = files_of_processors(path, options);
        if !files.is_empty() {
            return TraceReader::of_processors(path, &files, options);
        }
        return TraceReader::new(
            Input::open(path, options.sha256, options.watch.as_ref())?,
            options,
        );
    };
    for (option, given) in options.specific() {
        if given {
            return Err(TraceError::Option {
                option,
                reason: "a synthetic workload has no use for it".to_owned(),
            });
        }
    }
    let mut reader = TraceReader::from_recipe(&recipe);
    reader.devices.clone_from(&options.devices);
    reader.device_stride_bytes = options.device_stride_bytes;
    reader.stop = options.stop.clone();
    Ok(reader)
}

/// SHA-256 of a trace as it is stored, in hex, as [`TraceReader::sha256`] gives it at the end.
///
/// # Errors
/// A file cannot be read.
pub fn stored_sha256(path: &str, options: &ReadOptions) -> Result<String, TraceError> {
    let files = files_of_processors(path, options);
    if files.is_empty() {
        return file_sha256(path);
    }
    let mut hashes = Vec::new();
    for file in &files {
        // A processor without events leaves an empty file, which is no part of the trace.
        if std::fs::metadata(file).is_ok_and(|found| found.len() > 0) {
            hashes.push(file_sha256(file)?);
        }
    }
    Ok(sha256_of_files(hashes))
}

fn files_of_processors(path: &str, options: &ReadOptions) -> Vec<String> {
    match options.format {
        None | Some(Format::Blktrace) => processor_files(path),
        Some(_) => Vec::new(),
    }
}

/// The records of a trace, read as they are asked for.
///
/// As an iterator it ends after the first error. [`next_batch`](Self::next_batch) is the same without a copy per record.
pub struct TraceReader {
    path: String,
    body: Body,
    tally: Tally,
    detected: String,
    source: Source,
    has_times: bool,
    devices: Option<RangeInclusive<u16>>,
    device_stride_bytes: Option<u64>,
    batch: Vec<TraceRecord>,
    taken: usize,
    pending: Option<TraceError>,
    finished: bool,
    stop: StopReading,
}

/// Records that are made of those of other traces.
pub(super) trait Derived: Send {
    /// Appends about `wanted` records; none at the end.
    ///
    /// # Errors
    /// One of the traces is damaged.
    fn read(&mut self, wanted: usize, batch: &mut Vec<TraceRecord>) -> Result<(), TraceError>;

    /// What was met in the lines of the traces so far.
    fn counts(&self) -> ReadCounts;
}

/// Where records come from.
enum Body {
    Derived(Box<dyn Derived>),
    Lines(Box<TextTrace>),
    Binary(Box<Binary>),
    Recording(Recording),
    Parquet(Box<ParquetTrace>),
    Synthetic(SyntheticRecords, String),
}

/// True of a trace of our own writer, which names synthetic loads in the host column, so that the
/// label survives a conversion.
fn names_synthetic(bytes: &[u8]) -> bool {
    let lines = &mut bytes.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let host = split(first, b',').get(1).copied();
    host.is_some_and(|host| host.starts_with(b"synthetic"))
}

impl TraceReader {
    /// Reads any byte source, compressed or not; `path` names it in messages.
    ///
    /// # Errors
    /// As [`open`].
    pub fn from_read(
        path: &str,
        bytes: impl Read + Send + 'static,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        Self::new(Input::from_read(path, Box::new(bytes), options.sha256)?, options)
    }

    /// Reads the requests a recipe generates.
    pub fn from_recipe(recipe: &Recipe) -> Self {
        let records = recipe.records();
        let source = Source {
            kind: SourceKind::Synthetic,
            label: recipe.label(),
            device_bytes: Some(records.device_bytes()),
        };
        let detected = format!("synthetic recipe {}", recipe.name);
        let body = Body::Synthetic(records, sha256_hex(recipe.text().as_bytes()));
        Self::with_body(&recipe.name, body, detected, source, true, &ReadOptions::default())
    }

    /// Reads records that are made of other traces.
    pub(super) fn derived(
        path: &str,
        records: Box<dyn Derived>,
        detected: String,
        source: Source,
        has_times: bool,
    ) -> Self {
        let options = ReadOptions::default();
        let body = Body::Derived(records);
        Self::with_body(path, body, detected, source, has_times, &options)
    }

    fn with_body(
        path: &str,
        body: Body,
        detected: String,
        source: Source,
        has_times: bool,
        options: &ReadOptions,
    ) -> Self {
        Self {
            path: path.to_owned(),
            body,
            tally: Tally::default(),
            detected,
            source,
            has_times,
            devices: options.devices.clone(),
            device_stride_bytes: options.device_stride_bytes,
            batch: Vec::with_capacity(BATCH_RECORDS),
            taken: 0,
            pending: None,
            finished: false,
            stop: options.stop.clone(),
        }
    }

    fn new(input: Input, options: &ReadOptions) -> Result<Self, TraceError> {
        let path = input.path().to_owned();
        let mapped = options.columns.is_some() && !parquet::looks_like(input.bytes());
        let asked = options.format.or(mapped.then_some(Format::Csv));
        let (format, why) = match asked {
            Some(format) => (format, "as asked"),
            None => {
                let detected = detect(&path, input.bytes())?;
                (detected.format, detected.why)
            }
        };
        options.check(format)?;
        let compression = input.compression().container();
        let is_text =
            !matches!(format, Format::Recording | Format::Parquet) && !format.has_binary_records();
        let archive = input.archive();
        if let Some(archive) = archive.filter(|archive| !is_text && !archive.is_one_file()) {
            let reason = format!(
                "the format {} is not read from a {} archive; accepted: the files, unpacked",
                format.name(),
                archive.name()
            );
            return Err(TraceError::Format { path, reason });
        }
        let archive = match archive {
            Some(archive) => format!("the files of a {} archive in ", archive.name()),
            None => String::new(),
        };
        let detected = format!("{} in {archive}{compression}: {why}", format.name());
        match format {
            Format::Recording => Self::of_recording(input, detected, options),
            Format::Parquet => Self::of_parquet(input, detected, options),
            _ if format.has_binary_records() => {
                Self::of_binary(&path, vec![input], format, detected, options)
            }
            Format::Clf => Self::of_web_log(input, detected, options),
            _ => Self::of_lines(input, format, detected, options),
        }
    }

    fn of_recording(
        input: Input,
        detected: String,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let path = input.path().to_owned();
        if !super::recording::looks_like(input.bytes()) {
            let reason = "the file does not start with the magic of a recording; accepted: an Imbrex recording";
            return Err(TraceError::Format { path, reason: reason.to_owned() });
        }
        let recording = Recording::new(input, options.accept_unfinished)?;
        let header = &recording.header;
        let source = Source {
            kind: header.kind,
            label: format!("{} {}: {}", header.kind, header.name, header.description),
            device_bytes: (header.device_bytes > 0).then_some(header.device_bytes),
        };
        let has_times = header.has_times;
        let body = Body::Recording(recording);
        Ok(Self::with_body(&path, body, detected, source, has_times, options))
    }

    fn of_parquet(
        input: Input,
        mut detected: String,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let path = input.path().to_owned();
        let (trace, source) = ParquetTrace::new(input, options, &mut detected)?;
        let has_times = trace.has_times();
        let body = Body::Parquet(Box::new(trace));
        Ok(Self::with_body(&path, body, detected, source, has_times, options))
    }

    /// The files of one blktrace, one for each processor; those without a byte are left out.
    fn of_processors(
        path: &str,
        files: &[String],
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        options.check(Format::Blktrace)?;
        let mut inputs = Vec::new();
        for file in files {
            match Input::open(file, options.sha256, options.watch.as_ref()) {
                Ok(input) => inputs.push(input),
                Err(TraceError::Empty { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if inputs.is_empty() {
            let path = path.to_owned();
            return Err(TraceError::Empty { path });
        }
        let detected = "blktrace in the files of its processors".to_owned();
        Self::of_binary(path, inputs, Format::Blktrace, detected, options)
    }

    /// A trace of fixed-size records; several inputs are the files of one blktrace.
    fn of_binary(
        path: &str,
        inputs: Vec<Input>,
        format: Format,
        mut detected: String,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let source =
            Source { kind: SourceKind::Captured, label: path.to_owned(), device_bytes: None };
        let binary = Binary::new(inputs, format, options, &mut detected)?;
        let body = Body::Binary(Box::new(binary));
        Ok(Self::with_body(path, body, detected, source, true, options))
    }

    /// A trace of text in any format.
    fn of_lines(
        input: Input,
        format: Format,
        mut detected: String,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let path = input.path().to_owned();
        let is_synthetic = format == Format::Msr && names_synthetic(input.bytes());
        let source = Source {
            kind: match is_synthetic {
                true => SourceKind::Synthetic,
                false => SourceKind::Captured,
            },
            label: path.clone(),
            device_bytes: None,
        };
        let parser = LineParser::new(format, &input, options, &mut detected)?;
        let has_times = parser.has_times();
        let spread = parser.spread(options, &mut detected);
        let body = Body::Lines(Box::new(TextTrace::new(Lines::new(input), parser, spread)));
        Ok(Self::with_body(&path, body, detected, source, has_times, options))
    }

    /// A web log, which is read once to lay out its documents and once more to read them.
    fn of_web_log(
        input: Input,
        mut detected: String,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let path = input.path().to_owned();
        let (first, second) = input.twice()?;
        let (log, first) = WebLog::lay_out(first, options.http_writes.unwrap_or_default())?;
        let mut recipe = log.describe();
        let device_bytes = Some(log.device_bytes()).filter(|&bytes| bytes > 0);
        let parser = LineParser::WebLog(Box::new(log));
        let spread = parser.spread(options, &mut recipe);
        detected.push_str(&format!(", {recipe}"));
        let source = Source {
            kind: SourceKind::Captured,
            label: format!("{path}, a web log turned into block requests by a recipe: {recipe}"),
            device_bytes,
        };
        let text = TextTrace::new(Lines::new(second), parser, spread).read_before(first.sha256());
        let body = Body::Lines(Box::new(text));
        Ok(Self::with_body(&path, body, detected, source, true, options))
    }

    /// Replaces the content of `batch` by the next records, at most 1024; false at the end of the trace.
    ///
    /// # Errors
    /// The trace is damaged; the records before the damage were returned by the calls before.
    pub fn next_batch(&mut self, batch: &mut Vec<TraceRecord>) -> Result<bool, TraceError> {
        batch.clear();
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        if self.finished {
            return Ok(false);
        }
        if self.stop.is_set() {
            self.finished = true;
            return Err(TraceError::Stopped {
                path: self.path.clone(),
                records: self.tally.counts.records,
            });
        }
        if let Err(error) = self.read(batch) {
            self.finished = true;
            if batch.is_empty() {
                return Err(error);
            }
            self.pending = Some(error);
            return Ok(true);
        }
        if batch.is_empty() {
            self.finished = true;
            if self.tally.counts.records == 0 {
                return Err(TraceError::NoRequest {
                    path: self.path.clone(),
                    lines: self.tally.counts.lines,
                    skipped: self.tally.counts.skipped.to_string(),
                });
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// What the trace was taken for, and why.
    pub fn detected(&self) -> &str {
        &self.detected
    }

    /// Where the workload comes from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// File the trace is read from, or name of its recipe.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// False for formats without times: every record then has time 0.
    pub fn has_times(&self) -> bool {
        self.has_times
    }

    /// Lines skipped so far, by reason.
    pub fn skipped(&self) -> &SkippedLines {
        &self.tally.counts.skipped
    }

    /// Lines, records and oddities so far.
    pub fn counts(&self) -> &ReadCounts {
        &self.tally.counts
    }

    /// SHA-256 of the file as stored (of the text of a recipe), in hex; `None` before the end is reached, or if
    /// [`ReadOptions::sha256`] was not set.
    pub fn sha256(&self) -> Option<String> {
        match &self.body {
            Body::Lines(lines) => lines.sha256(),
            Body::Binary(binary) => binary.sha256(),
            Body::Recording(recording) => recording.sha256(),
            Body::Parquet(trace) => trace.sha256(),
            Body::Synthetic(_, sha256) => Some(sha256.clone()),
            Body::Derived(_) => None,
        }
    }

    /// Fills an empty batch from the body, passing over devices that are not selected.
    fn read(&mut self, batch: &mut Vec<TraceRecord>) -> Result<(), TraceError> {
        loop {
            let end = match &mut self.body {
                Body::Lines(lines) => lines.read(BATCH_RECORDS, &mut self.tally, batch),
                Body::Binary(binary) => binary.read(BATCH_RECORDS, &mut self.tally, batch),
                Body::Recording(recording) => {
                    recording.read(BATCH_RECORDS, &mut self.tally, batch).map(|()| batch.is_empty())
                }
                Body::Parquet(trace) => trace.read(BATCH_RECORDS, &mut self.tally, batch),
                Body::Derived(records) => read_derived(&mut **records, &mut self.tally, batch),
                Body::Synthetic(records, _) => {
                    batch.extend(
                        records
                            .by_ref()
                            .take(BATCH_RECORDS)
                            .map(|record| self.tally.accept(record)),
                    );
                    Ok(batch.is_empty())
                }
            };
            self.select_devices(batch)?;
            if end? || !batch.is_empty() {
                return Ok(());
            }
        }
    }

    fn select_devices(&mut self, batch: &mut Vec<TraceRecord>) -> Result<(), TraceError> {
        if let Some(devices) = &self.devices {
            let counts = &mut self.tally.counts;
            batch.retain(|record| {
                let selected = devices.contains(&record.device);
                if !selected {
                    counts.skipped.count(SkipReason::DeviceNotSelected);
                    counts.records -= 1;
                }
                selected
            });
        }
        if let Some(stride_bytes) = self.device_stride_bytes {
            for record in batch {
                let end_bytes = record.offset_bytes + record.length_bytes;
                let moved = u64::from(record.device)
                    .checked_mul(stride_bytes)
                    .filter(|&start| start < 1 << 62);
                let (Some(start), true) = (moved, end_bytes <= stride_bytes) else {
                    return Err(TraceError::Option {
                        option: "--device-stride",
                        reason: format!(
                            "{stride_bytes} bytes; device {} has a request that ends at byte {end_bytes}; accepted: at least \
                             the size of the largest device",
                            record.device
                        ),
                    });
                };
                record.offset_bytes += start;
            }
        }
        Ok(())
    }
}

impl TraceReader {
    /// The next batch takes the place of the one that was taken; false at the end of the trace.
    #[cold]
    fn refill(&mut self) -> Result<bool, TraceError> {
        let mut batch = std::mem::take(&mut self.batch);
        let more = self.next_batch(&mut batch);
        (self.batch, self.taken) = (batch, 0);
        more
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceRecord, TraceError>;

    // A record is copied at every call that it goes through.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.batch.get(self.taken) {
                self.taken += 1;
                return Some(Ok(*record));
            }
            match self.refill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Appends about a batch of records; true at the end of them all.
fn read_derived(
    records: &mut dyn Derived,
    tally: &mut Tally,
    batch: &mut Vec<TraceRecord>,
) -> Result<bool, TraceError> {
    let read = records.read(BATCH_RECORDS, batch);
    for record in batch.iter_mut() {
        *record = tally.accept(*record);
    }
    if batch.is_empty() {
        tally.counts.add_lines(&records.counts());
    }
    read.map(|()| batch.is_empty())
}
