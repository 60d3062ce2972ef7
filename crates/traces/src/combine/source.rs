//! A source of a combination: what is said of it, and its requests.

use std::fmt;
use std::str::FromStr;

use imbrex_drives::quantity::{Size, Span};
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

use super::settings::wrong;
use crate::error::TraceError;
use crate::options::{ReadOptions, parse_delimiter, parse_devices};
use crate::reader::TraceReader;
use crate::record::{TraceOperation, TraceRecord};
use crate::tally::ReadCounts;
use crate::text::range_is_possible;

/// A trace, the part of it that is taken, and by how much it is shifted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct SourceConfig {
    /// A trace file, or `synthetic:RECIPE[/SCALE]`.
    pub path: String,
    /// Requests to leave out at the start.
    pub skip: Option<u64>,
    /// Requests to take at most.
    pub limit: Option<u64>,
    /// What is added to every address.
    pub offset: Option<Size>,
    /// What is added to every time.
    pub delay: Option<Span>,
    /// Only the requests of these devices, such as `0-3`.
    pub devices: Option<String>,
    /// Device n lies at n times this size.
    pub stride: Option<Size>,
    /// The format, when it is not recognised.
    pub format: Option<String>,
    /// Columns of a CSV or Parquet trace.
    #[serde(alias = "columns")]
    pub map: Option<String>,
    /// What separates the columns of a CSV trace.
    pub delimiter: Option<String>,
    /// Unit of the times of a DiskSim trace.
    pub time_unit: Option<String>,
    /// Size of a page of an ARC trace.
    pub page_bytes: Option<Size>,
}

/// The keys that may follow a path.
const KEYS: [&str; 11] = [
    "skip",
    "limit",
    "offset",
    "delay",
    "devices",
    "stride",
    "format",
    "map",
    "delimiter",
    "time_unit",
    "page_bytes",
];

impl FromStr for SourceConfig {
    type Err = TraceError;

    /// Reads `PATH[,KEY=VALUE]...`. The value of `map` may have commas of its own: it goes on to the next of our keys.
    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut parts = text.split(',');
        let path = parts.next().unwrap_or_default();
        let mut values: Vec<(&str, String)> = Vec::new();
        for part in parts {
            let key = part.split_once('=').map_or(part, |(key, _)| key).trim();
            match (KEYS.iter().find(|known| **known == key), values.last_mut()) {
                (Some(key), _) => {
                    let value = part.split_once('=').map(|(_, value)| value.trim());
                    let value = value.ok_or_else(|| {
                        wrong(format!("{text}: `{key}` has no value; accepted: {key}=VALUE"))
                    })?;
                    if values.iter().any(|(other, _)| other == key) {
                        return Err(wrong(format!(
                            "{text}: `{key}` stands there twice; accepted: once"
                        )));
                    }
                    values.push((key, value.to_owned()));
                }
                (None, Some(("map", value))) => {
                    value.push(',');
                    value.push_str(part);
                }
                (None, _) => {
                    return Err(wrong(format!(
                        "{text}: `{part}` behind the path; accepted: {}, each with =VALUE",
                        KEYS.join(", ")
                    )));
                }
            }
        }
        let mut table = toml::Table::new();
        table.insert("path".to_owned(), path.into());
        for (key, value) in values {
            let value = match key {
                "skip" | "limit" => value
                    .parse::<i64>()
                    .map_err(|_| {
                        wrong(format!("{text}: {key}={value}; accepted: a number of requests"))
                    })?
                    .into(),
                _ => toml::Value::from(value),
            };
            table.insert(key.to_owned(), value);
        }
        Self::deserialize(table).map_err(|error| wrong(format!("{text}: {}", error.message())))
    }
}

impl<'de> Deserialize<'de> for SourceConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PathOrTable;
        impl<'de> serde::de::Visitor<'de> for PathOrTable {
            type Value = SourceConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path, or a table with `path`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SourceConfig, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<SourceConfig, A::Error> {
                SourceConfig::deserialize(MapAccessDeserializer::new(map))
            }
        }
        from.deserialize_any(PathOrTable)
    }
}

impl Serialize for SourceConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SourceConfig::serialize(self, serializer)
    }
}

impl SourceConfig {
    /// Finds what can be found wrong before the source is opened.
    pub(super) fn check(&self) -> Result<(), TraceError> {
        if self.path.is_empty() {
            return Err(wrong(
                "a trace without a path; accepted: a file, or synthetic:RECIPE".to_owned(),
            ));
        }
        if self.path == "-" {
            return Err(wrong(
                "-: a combination reads each trace more than once, which standard input does not allow; accepted: a file"
                    .to_owned(),
            ));
        }
        if self.limit == Some(0) {
            return Err(wrong(format!("{}: limit = 0; accepted: 1 or more", self.path)));
        }
        self.options().map(|_| ())
    }

    /// How the source is read.
    pub(super) fn options(&self) -> Result<ReadOptions, TraceError> {
        let of_source = |reason: String| wrong(format!("{}: {reason}", self.path));
        let format = self.format.as_deref().map(str::parse).transpose();
        let time_unit = self.time_unit.as_deref().map(str::parse).transpose();
        let delimiter = self.delimiter.as_deref().map(parse_delimiter).transpose();
        let devices = self.devices.as_deref().map(parse_devices).transpose();
        Ok(ReadOptions {
            format: format.map_err(of_source)?,
            columns: self.map.clone(),
            delimiter: delimiter.map_err(of_source)?,
            time_unit: time_unit.map_err(of_source)?,
            page_bytes: self.page_bytes.map(Size::bytes),
            devices: devices.map_err(of_source)?,
            device_stride_bytes: self.stride.map(Size::bytes),
            sha256: false,
            watch: None,
            ..ReadOptions::default()
        })
    }
}

/// The requests of a source, with the next one known.
pub(super) struct SourceReader {
    reader: TraceReader,
    offset_bytes: u64,
    delay_ns: u64,
    /// Requests that may still be read.
    left: u64,
    next: Option<TraceRecord>,
    first_ns: u64,
}

impl SourceReader {
    /// Opens a source and reads its first request.
    pub(super) fn open(config: &SourceConfig) -> Result<Self, TraceError> {
        let mut source = Self {
            reader: crate::open(&config.path, &config.options()?)?,
            offset_bytes: config.offset.map_or(0, Size::bytes),
            delay_ns: config.delay.map_or(0, |delay| delay.0.0),
            left: u64::MAX,
            next: None,
            first_ns: 0,
        };
        let skip = config.skip.unwrap_or(0);
        for skipped in 0..skip {
            if source.reader.next().transpose()?.is_none() {
                return Err(wrong(format!(
                    "{}: skip = {skip}: the trace has {skipped} requests; accepted: fewer than it has",
                    config.path
                )));
            }
        }
        source.left = config.limit.unwrap_or(u64::MAX);
        let first = source.reader.next().transpose()?;
        let first = first.ok_or_else(|| {
            wrong(format!(
                "{}: skip = {skip} leaves no request; accepted: fewer than the trace has",
                config.path
            ))
        })?;
        source.first_ns = first.time_ns;
        source.left -= 1;
        source.next = Some(source.shifted(first)?);
        Ok(source)
    }

    /// The next request, which stays the next; none at the end.
    pub(super) fn peek(&self) -> Option<&TraceRecord> {
        self.next.as_ref()
    }

    /// Takes the next request.
    pub(super) fn take(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        let following = match self.left {
            0 => None,
            _ => self.reader.next().transpose()?,
        };
        self.left = self.left.saturating_sub(1);
        let following = following.map(|record| self.shifted(record)).transpose()?;
        Ok(std::mem::replace(&mut self.next, following))
    }

    /// A request at its shifted time and address; the first one taken is at time 0 but for the shift.
    fn shifted(&self, mut record: TraceRecord) -> Result<TraceRecord, TraceError> {
        if self.reader.has_times() {
            record.time_ns = later(record.time_ns - self.first_ns, self.delay_ns)?;
        }
        if record.operation != TraceOperation::Flush {
            record.offset_bytes =
                moved(record.offset_bytes, self.offset_bytes, self.reader.path())?;
        }
        Ok(record)
    }

    /// What was counted of the source so far.
    pub(super) fn counts(&self) -> &ReadCounts {
        self.reader.counts()
    }
}

/// A sum of times.
pub(super) fn later(time_ns: u64, by_ns: u64) -> Result<u64, TraceError> {
    let sum = time_ns.checked_add(by_ns);
    sum.ok_or_else(|| {
        wrong("the times add up to more than 500 years; accepted: smaller delays".to_owned())
    })
}

/// An address `by_bytes` further on, of the source `path`.
pub(super) fn moved(offset_bytes: u64, by_bytes: u64, path: &str) -> Result<u64, TraceError> {
    let moved = offset_bytes.checked_add(by_bytes);
    let moved = moved.filter(|&offset| range_is_possible(offset, 0));
    moved.ok_or_else(|| {
        wrong(format!(
            "{path}: {by_bytes} bytes behind address {offset_bytes} is no possible address; accepted: an offset, a stride and an \
             align with which all addresses are below 2^62"
        ))
    })
}

impl fmt::Display for SourceConfig {
    /// Writes it as [`FromStr`] reads it, from the name of the file on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        let Ok(toml::Value::Table(table)) = toml::Value::try_from(self) else {
            return Err(fmt::Error);
        };
        for key in KEYS {
            match table.get(key) {
                None => {}
                Some(toml::Value::String(text)) => write!(f, ",{key}={text}")?,
                Some(value) => write!(f, ",{key}={value}")?,
            }
        }
        Ok(())
    }
}
