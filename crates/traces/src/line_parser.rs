//! The text formats whose lines are requests of their own: one parser behind one interface.

use super::alibaba::Alibaba;
use super::arc;
use super::blkparse::Blkparse;
use super::column_map::{ColumnMap, TimeUnit};
use super::csv::Csv;
use super::detect::is_libcachesim_header;
use super::disksim;
use super::error::TraceError;
use super::fio_reader::FioLog;
use super::fiu::Fiu;
use super::input::Input;
use super::msr::Msr;
use super::options::{Format, ReadOptions};
use super::record::TraceRecord;
use super::spc;
use super::subsecond::Spread;
use super::systor;
use super::tencent::Tencent;
use super::text::{LineResult, Parsed, split};
use super::web_log::WebLog;

/// The text formats.
pub(super) enum LineParser {
    Msr(Msr),
    Spc,
    Csv(Csv),
    DiskSim(TimeUnit),
    Arc(u64),
    Alibaba(Alibaba),
    Tencent(Tencent),
    Systor,
    Fiu(Fiu),
    Fio(FioLog),
    Blkparse(Blkparse),
    WebLog(Box<WebLog>),
}

impl LineParser {
    /// The parser of a text format; what it assumes is added to what was detected.
    pub(super) fn new(
        format: Format,
        input: &Input,
        options: &ReadOptions,
        detected: &mut String,
    ) -> Result<Self, TraceError> {
        Ok(match format {
            Format::Msr => Self::Msr(Msr::default()),
            Format::Spc => Self::Spc,
            Format::DiskSim => {
                let unit = match options.time_unit {
                    Some(unit) => unit,
                    None => disksim_unit(input.path(), input.bytes())?,
                };
                detected.push_str(&format!(", times in {}, flag bit 0 = read", unit.name()));
                Self::DiskSim(unit)
            }
            Format::Arc => {
                let page_bytes = options.page_bytes.unwrap_or(arc::PAGE_BYTES);
                detected.push_str(&format!(", pages of {page_bytes} bytes, reads only, no times"));
                Self::Arc(page_bytes)
            }
            Format::LibCacheSim | Format::Csv | Format::FioV1 => {
                Self::Csv(csv_parser(format, options, input.bytes())?)
            }
            Format::Alibaba => Self::Alibaba(Alibaba::default()),
            Format::Tencent => Self::Tencent(Tencent::default()),
            Format::Systor => Self::Systor,
            Format::Fiu => Self::Fiu(Fiu::default()),
            Format::Fio => {
                let log = FioLog::new(input, options.fio_wait)?;
                detected.push_str(&format!(", {}", log.describe()));
                Self::Fio(log)
            }
            Format::Blkparse => {
                let blkparse = Blkparse::new(options.event.unwrap_or_default());
                detected.push_str(&format!(", {}", blkparse.describe()));
                Self::Blkparse(blkparse)
            }
            Format::Clf => unreachable!("read twice"),
            Format::Recording
            | Format::Blktrace
            | Format::Vscsi
            | Format::OracleGeneral
            | Format::Lcs
            | Format::Srt
            | Format::Parquet => unreachable!("no text"),
        })
    }

    pub(super) fn has_times(&self) -> bool {
        match self {
            Self::Msr(_)
            | Self::Spc
            | Self::DiskSim(_)
            | Self::Alibaba(_)
            | Self::Tencent(_)
            | Self::Systor
            | Self::Fiu(_)
            | Self::Blkparse(_)
            | Self::WebLog(_) => true,
            Self::Csv(csv) => csv.has_time(),
            Self::Arc(_) => false,
            Self::Fio(log) => log.has_times(),
        }
    }

    /// What spreads the requests of a second, for formats with whole seconds; the rule is added to what was detected.
    pub(super) fn spread(&self, options: &ReadOptions, detected: &mut String) -> Option<Spread> {
        match self {
            Self::Tencent(_) | Self::WebLog(_) => Spread::of(options.subsecond, detected),
            _ => None,
        }
    }

    /// True where lines may be read before their end is known.
    pub(super) fn reads_ahead(&self) -> bool {
        matches!(self, Self::Csv(csv) if csv.reads_ahead())
    }

    /// What the line at the start of `bytes` holds, and how many bytes it has with its end, where it can be read ahead and is
    /// as it should be. Any other line is for [`parse`](Self::parse).
    #[inline]
    pub(super) fn parse_ahead(&self, bytes: &[u8]) -> Option<(Parsed, usize)> {
        match self {
            Self::Csv(csv) => csv.parse_ahead(bytes),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        match self {
            Self::Msr(msr) => msr.parse(line),
            Self::Spc => spc::parse(line),
            Self::Csv(csv) => csv.parse(line),
            Self::DiskSim(unit) => disksim::parse(line, *unit),
            Self::Arc(page_bytes) => arc::parse(line, *page_bytes),
            Self::Alibaba(alibaba) => alibaba.parse(line),
            Self::Tencent(tencent) => tencent.parse(line),
            Self::Systor => systor::parse(line),
            Self::Fiu(fiu) => fiu.parse(line),
            Self::Fio(log) => log.parse(line),
            Self::Blkparse(blkparse) => blkparse.parse(line),
            Self::WebLog(log) => log.parse(line),
        }
    }

    /// The next request of the line parsed last, where a line stands for several.
    pub(super) fn more(&mut self) -> Option<TraceRecord> {
        match self {
            Self::WebLog(log) => log.more(),
            _ => None,
        }
    }
}

fn disksim_unit(path: &str, bytes: &[u8]) -> Result<TimeUnit, TraceError> {
    if bytes.split(|&byte| byte == b'\n').take(64).any(disksim::has_fraction) {
        return Ok(TimeUnit::Milliseconds);
    }
    let reason = "the times have no decimal point, so their unit cannot be told; accepted: --time-unit ns, us, ms or s";
    Err(TraceError::Format { path: path.to_owned(), reason: reason.to_owned() })
}

fn csv_parser(format: Format, options: &ReadOptions, bytes: &[u8]) -> Result<Csv, TraceError> {
    let map = match (&options.columns, format) {
        (Some(map), _) => map.as_str(),
        (None, Format::LibCacheSim) => ColumnMap::LIBCACHESIM,
        (None, Format::FioV1) => ColumnMap::FIO_V1,
        (None, _) => {
            let reason = "the format csv needs it; accepted: for example time=2:us,op=3:scsi,len=4:bytes,off=5:sectors";
            return Err(TraceError::Option { option: "--map", reason: reason.to_owned() });
        }
    };
    let delimiter = options.delimiter.unwrap_or(b',');
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let names = split(first.strip_suffix(b"\r").unwrap_or(first), delimiter);
    let is_header = is_libcachesim_header(first)
        || (names.first().and_then(|name| name.first()).is_some_and(u8::is_ascii_alphabetic)
            && names.iter().all(|name| !name.first().is_some_and(u8::is_ascii_digit)));
    let resolved = ColumnMap::parse(map, is_header.then_some(&names[..]))?;
    Csv::new(resolved, delimiter)
        .map_err(|reason| TraceError::ColumnMap { map: map.to_owned(), reason })
}
