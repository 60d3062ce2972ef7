//! The column map of CSV and Parquet: which column holds what, in which unit.
//!
//! A map is a comma-separated list of `key=column:unit`, for example
//! `time=2:us,op=3:scsi,len=4:bytes,off=5:sectors`. Columns count from 1, as libCacheSim counts them, or are named by the
//! header line. The names libCacheSim uses for its own parameters (`time-col`, `obj-id-col`, `obj-size-col`, `op-col`)
//! are accepted as keys.

use super::TraceError;
use imbrex_drives::toml_error::listed;

const KEYS: &str = "time, op, off, len, dev, resp, fua";

/// Unit of a time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// `s`
    Seconds,
    /// `ms`
    Milliseconds,
    /// `us`
    Microseconds,
    /// `filetime`: 100 ns since 1601
    Ticks,
    /// `ns`
    Nanoseconds,
}

impl TimeUnit {
    const ALL: [Self; 5] =
        [Self::Seconds, Self::Milliseconds, Self::Microseconds, Self::Nanoseconds, Self::Ticks];

    /// Name on the command line and in column maps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Ticks => "filetime",
            Self::Nanoseconds => "ns",
        }
    }

    /// Nanoseconds in one unit.
    pub fn nanoseconds(self) -> u64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Milliseconds => 1_000_000,
            Self::Microseconds => 1000,
            Self::Ticks => 100,
            Self::Nanoseconds => 1,
        }
    }
}

impl std::str::FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = Self::ALL.into_iter().find(|unit| unit.name() == text);
        unit.ok_or_else(|| {
            format!(
                "unknown time unit {text:?}; accepted: {}",
                Self::ALL.map(Self::name).join(", ")
            )
        })
    }
}

/// How a column tells reads from writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OperationCode {
    /// Hexadecimal SCSI command codes.
    Scsi,
    /// `R`, `W`, `read`, `write`, in any case.
    Words,
    /// The name of each operation that a trace may have, in lower case.
    Names,
    /// One word for reads, one for writes, and optionally one for trims.
    Tokens { read: Vec<u8>, write: Vec<u8>, trim: Option<Vec<u8>> },
}

/// A column, from 0.
pub(super) type Column = usize;

/// Where everything is, with columns resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnMap {
    /// Seconds where no unit is given, and the type of the column has none.
    pub time: Option<(Column, Option<TimeUnit>)>,
    pub operation: Option<(Column, OperationCode)>,
    pub offset: (Column, u64),
    pub length: (Column, u64),
    pub device: Option<Column>,
    /// As the time.
    pub response: Option<(Column, Option<TimeUnit>)>,
    /// Forced unit access: 0 or 1.
    pub fua: Option<Column>,
    /// One more than the highest column used.
    pub columns: usize,
}

impl ColumnMap {
    /// `version,time,op,size,lbn` of the CloudPhysics traces as libCacheSim prints them.
    pub(super) const LIBCACHESIM: &'static str = "time=2:us,op=3:scsi,len=4:bytes,off=5:sectors";

    /// `rw, offset, length` of fio iologs of version 1, where rw is 0 for a read and 1 for a write.
    pub(super) const FIO_V1: &'static str = "op=1:0|1,off=2:bytes,len=3:bytes";

    /// Reads a map; `header` holds the names of the file's columns if its first line has them.
    pub(super) fn parse(map: &str, header: Option<&[&[u8]]>) -> Result<Self, TraceError> {
        let fail = |reason: String| TraceError::ColumnMap { map: map.to_owned(), reason };
        let (mut time, mut operation, mut offset, mut length) = (None, None, None, None);
        let (mut device, mut response, mut fua) = (None, None, None);
        let mut columns = 0;
        for entry in map.split(',').map(str::trim) {
            let (key, value) = entry.split_once('=').ok_or_else(|| {
                fail(format!("{entry:?} is not key=column:unit; accepted keys: {KEYS}"))
            })?;
            let (column, unit) =
                value.split_once(':').map_or((value, None), |(column, unit)| (column, Some(unit)));
            let column = resolve(column, header).map_err(&fail)?;
            columns = columns.max(column + 1);
            let time_unit = || unit.map(|unit| unit.parse().map_err(&fail)).transpose();
            let size_unit =
                |default| unit.map_or(Ok(default), |unit| size_unit(unit).map_err(&fail));
            let repeated = match key {
                "time" | "time-col" => time.replace((column, time_unit()?)).is_some(),
                "op" | "op-col" => {
                    operation.replace((column, operation_code(unit).map_err(&fail)?)).is_some()
                }
                "off" | "offset" | "obj-id-col" => {
                    offset.replace((column, size_unit(1)?)).is_some()
                }
                "len" | "size" | "obj-size-col" => {
                    length.replace((column, size_unit(1)?)).is_some()
                }
                "dev" if unit.is_none() => device.replace(column).is_some(),
                "fua" if unit.is_none() => fua.replace(column).is_some(),
                "dev" | "fua" => {
                    return Err(fail(format!(
                        "{entry:?}: {key} has no unit; accepted: {key}=COLUMN"
                    )));
                }
                "resp" => response.replace((column, time_unit()?)).is_some(),
                other => return Err(fail(format!("unknown key {other:?}; accepted: {KEYS}"))),
            };
            if repeated {
                return Err(fail(format!("key {key:?} is given twice")));
            }
        }
        let missing =
            |key: &str| fail(format!("key {key:?} is missing; a map needs at least off and len"));
        Ok(Self {
            offset: offset.ok_or_else(|| missing("off"))?,
            length: length.ok_or_else(|| missing("len"))?,
            time,
            operation,
            device,
            response,
            fua,
            columns,
        })
    }
}

fn resolve(column: &str, header: Option<&[&[u8]]>) -> Result<Column, String> {
    if let Ok(number) = column.parse::<usize>() {
        return match number {
            0 => Err("unknown column 0; accepted: columns count from 1".to_owned()),
            number if header.is_some_and(|names| number > names.len()) => Err(format!(
                "unknown column {number}; accepted: 1 to {}",
                header.map_or(0, <[_]>::len)
            )),
            1..=4096 => Ok(number - 1),
            _ => Err(format!("unknown column {number}; accepted: 1 to 4096")),
        };
    }
    let Some(names) = header else {
        return Err(format!(
            "unknown column {column:?}; accepted: a number from 1, because the file has no header line"
        ));
    };
    names.iter().position(|name| name.eq_ignore_ascii_case(column.as_bytes())).ok_or_else(|| {
        format!(
            "unknown column {column:?}; accepted: {} or a number from 1 to {}",
            listed(names.iter().map(|name| printable(name))),
            names.len()
        )
    })
}

/// A column's name as one line of a message can hold it.
fn printable(name: &[u8]) -> String {
    const NAME_BYTES_MAX: usize = 80;
    let name = &name[..name.len().min(NAME_BYTES_MAX)];
    String::from_utf8_lossy(name).escape_debug().to_string()
}

/// Bytes of a unit at most, so that no count of them overflows unnoticed.
const UNIT_BYTES_MAX: u64 = 1 << 30;

fn size_unit(unit: &str) -> Result<u64, String> {
    match unit {
        "bytes" => Ok(1),
        "sectors" => Ok(512),
        "kib" => Ok(1024),
        "blocks" => Ok(4096),
        other => {
            let bytes = other.parse().ok().filter(|bytes| (1..=UNIT_BYTES_MAX).contains(bytes));
            bytes.ok_or_else(|| {
                format!(
                    "unknown size unit {other:?}; accepted: bytes, sectors (512 B), kib, blocks (4 KiB), or a number of \
                     bytes up to {UNIT_BYTES_MAX}"
                )
            })
        }
    }
}

fn operation_code(unit: Option<&str>) -> Result<OperationCode, String> {
    let token = |text: &str| text.as_bytes().to_ascii_lowercase();
    match unit {
        None | Some("rw") => Ok(OperationCode::Words),
        Some("scsi") => Ok(OperationCode::Scsi),
        Some("names") => Ok(OperationCode::Names),
        Some(words) => match words.split('|').collect::<Vec<_>>()[..] {
            [read, write] => {
                Ok(OperationCode::Tokens { read: token(read), write: token(write), trim: None })
            }
            [read, write, trim] => Ok(OperationCode::Tokens {
                read: token(read),
                write: token(write),
                trim: Some(token(trim)),
            }),
            _ => Err(format!(
                "unknown operation code {words:?}; accepted: scsi, rw, names, READ|WRITE or READ|WRITE|TRIM words"
            )),
        },
    }
}
