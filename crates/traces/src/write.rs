//! Writing traces: what `imbrex trace convert` and `trace synth` produce.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::error::TraceError;
use super::fio_writer::FioWriter;
use super::losses::Losses;
use super::parquet::ParquetWriter;
use super::partial_file::PartialFile;
use super::reader::TraceReader;
use super::record::{SourceKind, TraceRecord};
use super::recording::RecordingHeader;
use super::recording_writer::RecordingWriter;
use super::{msr, spc};

/// The formats that can be written; [`Loss`](super::Loss) says what each of them cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFormat {
    /// Imbrex's own recording format.
    Recording,
    /// MSR Cambridge CSV. Synthetic loads are named in the host column.
    Msr,
    /// SPC.
    Spc,
    /// fio iolog version 3, with a file for each device.
    Fio,
    /// Parquet, which loses nothing.
    Parquet,
}

impl std::str::FromStr for WriteFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "imbrex" => Ok(Self::Recording),
            "msr" => Ok(Self::Msr),
            "spc" => Ok(Self::Spc),
            "fio" => Ok(Self::Fio),
            "parquet" => Ok(Self::Parquet),
            other => Err(format!(
                "unknown output format {other:?}; accepted: imbrex, msr, spc, fio, parquet"
            )),
        }
    }
}

impl WriteFormat {
    /// The format an output file's name asks for, compression suffix aside: `.imbrex`, `.csv`, `.spc`, `.iolog`, `.parquet`.
    pub fn of_name(path: &str) -> Option<Self> {
        let (name, _) = split_compression(path);
        Some(match Path::new(name).extension()?.to_str()? {
            "imbrex" => Self::Recording,
            "csv" => Self::Msr,
            "spc" => Self::Spc,
            "iolog" | "fio" => Self::Fio,
            "parquet" => Self::Parquet,
            _ => return None,
        })
    }
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Records written.
    pub records: u64,
    /// What the output format cannot say.
    pub losses: Losses,
}

/// What is written of a trace, and how.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The format.
    pub format: WriteFormat,
    /// Records to leave out at the start; the first that is written is at time 0.
    pub skip: u64,
    /// Records to write at most.
    pub limit: Option<u64>,
    /// Name of the workload in the output; that of the input when absent.
    pub name: Option<String>,
    /// How the workload was made; as the input says when absent.
    pub description: Option<String>,
}

impl From<WriteFormat> for WriteOptions {
    /// The whole trace under its own name.
    fn from(format: WriteFormat) -> WriteOptions {
        WriteOptions { format, skip: 0, limit: None, name: None, description: None }
    }
}

/// Compressions an output name may ask for.
#[derive(Debug, Clone, Copy)]
enum Suffix {
    None,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

fn split_compression(path: &str) -> (&str, Suffix) {
    let suffixes = [
        (".gz", Suffix::Gzip),
        (".zst", Suffix::Zstd),
        (".xz", Suffix::Xz),
        (".bz2", Suffix::Bzip2),
    ];
    suffixes
        .into_iter()
        .find_map(|(suffix, kind)| Some((path.strip_suffix(suffix)?, kind)))
        .unwrap_or((path, Suffix::None))
}

/// The name of one of several outputs: `out.csv.gz` becomes `out-2.csv.gz`.
pub fn numbered(path: &str, number: u32) -> String {
    let (name, _) = split_compression(path);
    let extension = Path::new(name).extension().map_or(0, |text| text.len() + 1);
    let (stem, rest) = path.split_at(name.len() - extension);
    format!("{stem}-{number}{rest}")
}

/// Copies every record of `reader` into the file `path` (`-` for standard output), compressed as its name says. When that fails, a
/// file that was there before stays as it was, and no new one is left behind.
///
/// # Errors
/// The input is damaged, or the output cannot be written.
pub fn write(
    reader: TraceReader,
    path: &str,
    options: &WriteOptions,
) -> Result<WriteSummary, TraceError> {
    if path == "-" {
        return write_compressed(reader, Box::new(io::stdout()), path, options);
    }
    let fail = |source| TraceError::Open { path: path.to_owned(), source };
    let partial = PartialFile::of(Path::new(path));
    let file = File::create(partial.path()).map_err(fail)?;
    let summary = write_compressed(reader, Box::new(file), path, options)?;
    partial.keep().map_err(fail)?;
    Ok(summary)
}

fn write_compressed(
    reader: TraceReader,
    file: Box<dyn Write + Send>,
    path: &str,
    options: &WriteOptions,
) -> Result<WriteSummary, TraceError> {
    let fail = |source| TraceError::Open { path: path.to_owned(), source };
    let output = BufWriter::with_capacity(1 << 18, file);
    let (output, summary) = match split_compression(path).1 {
        Suffix::None => {
            let (output, summary) = write_to(reader, output, path, options)?;
            (Ok(output), summary)
        }
        Suffix::Gzip => {
            let encoder = flate2::write::GzEncoder::new(output, flate2::Compression::default());
            let (encoder, summary) = write_to(reader, encoder, path, options)?;
            (encoder.finish(), summary)
        }
        Suffix::Zstd => {
            let encoder = zstd::stream::write::Encoder::new(output, 9).map_err(fail)?;
            let (encoder, summary) = write_to(reader, encoder, path, options)?;
            (encoder.finish(), summary)
        }
        Suffix::Xz => {
            let encoder = liblzma::write::XzEncoder::new(output, 6);
            let (encoder, summary) = write_to(reader, encoder, path, options)?;
            (encoder.finish(), summary)
        }
        Suffix::Bzip2 => {
            let encoder = bzip2::write::BzEncoder::new(output, bzip2::Compression::best());
            let (encoder, summary) = write_to(reader, encoder, path, options)?;
            (encoder.finish(), summary)
        }
    };
    let ended = output.and_then(|mut output| output.flush());
    ended.map_err(|source| TraceError::Write { path: path.to_owned(), records: 0, source })?;
    Ok(summary)
}

/// Copies every record of `reader` to `output`, which `path` names in messages, and gives the output back.
///
/// # Errors
/// The input is damaged, or the output cannot be written.
pub fn write_to<W: Write + Send>(
    reader: TraceReader,
    output: W,
    path: &str,
    options: &WriteOptions,
) -> Result<(W, WriteSummary), TraceError> {
    let source = reader.source().clone();
    let name = options.name.clone().unwrap_or_else(|| {
        let file_name = Path::new(reader.path()).file_name().and_then(|name| name.to_str());
        file_name.unwrap_or("trace").to_owned()
    });
    let header = RecordingHeader {
        kind: source.kind,
        name: name.clone(),
        description: options.description.clone().unwrap_or_else(|| source.label.clone()),
        device_bytes: source.device_bytes.unwrap_or(0),
        has_times: reader.has_times(),
    };
    let format = options.format;
    let mut summary = WriteSummary { records: 0, losses: Losses::of_header(&header, format) };
    let fail = |records, source| TraceError::Write { path: path.to_owned(), records, source };
    let mut sink = Sink::new(output, format, &header).map_err(|source| fail(0, source))?;
    let skip = usize::try_from(options.skip).unwrap_or(usize::MAX);
    let limit = options.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let mut first_ns = None;
    for record in reader.skip(skip).take(limit) {
        let mut record = record?;
        record.time_ns -= *first_ns.get_or_insert(record.time_ns);
        if summary.losses.count(&record, format) {
            sink.write(&record).map_err(|source| fail(summary.records, source))?;
            summary.records += 1;
        }
    }
    let output = sink.finish().map_err(|source| fail(summary.records, source))?;
    Ok((output, summary))
}

enum Sink<W: Write + Send> {
    Recording(RecordingWriter<W>),
    Msr { output: W, host: String },
    Spc(W),
    Fio(FioWriter<W>),
    Parquet(Box<ParquetWriter<W>>),
}

impl<W: Write + Send> Sink<W> {
    fn new(output: W, format: WriteFormat, header: &RecordingHeader) -> io::Result<Self> {
        Ok(match format {
            WriteFormat::Recording => Self::Recording(RecordingWriter::new(output, header)?),
            WriteFormat::Msr => {
                let plain = |byte: char| {
                    if byte.is_ascii_alphanumeric() || "-._".contains(byte) { byte } else { '-' }
                };
                let name: String = header.name.chars().map(plain).collect();
                let host = if header.kind == SourceKind::Synthetic {
                    format!("synthetic-{name}")
                } else {
                    name
                };
                Self::Msr { output, host }
            }
            WriteFormat::Spc => Self::Spc(output),
            WriteFormat::Fio => Self::Fio(FioWriter::new(output)?),
            WriteFormat::Parquet => Self::Parquet(Box::new(ParquetWriter::new(output, header)?)),
        })
    }

    /// Writes a record that is not left out.
    fn write(&mut self, record: &TraceRecord) -> io::Result<()> {
        match self {
            Self::Recording(writer) => writer.write(record),
            Self::Msr { output, host } => msr::write(output, host, record),
            Self::Spc(output) => spc::write(output, record),
            Self::Fio(writer) => writer.write(record),
            Self::Parquet(writer) => writer.write(record),
        }
    }

    fn finish(self) -> io::Result<W> {
        match self {
            Self::Recording(writer) => writer.finish(),
            Self::Msr { output, .. } | Self::Spc(output) => Ok(output),
            Self::Fio(writer) => writer.finish(),
            Self::Parquet(writer) => writer.finish(),
        }
    }
}
