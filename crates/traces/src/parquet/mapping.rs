//! Which column of a Parquet file plays which part.

use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::SchemaDescriptor;

use super::Columns;
use super::columns::{Numbers, Operations, Unit, name};
use crate::TraceError;
use crate::column_map::ColumnMap;
use crate::record::{Source, SourceKind};

/// Keys of the metadata of our own files.
pub(super) const MAP_KEY: &str = "imbrex.columns";
pub(super) const KIND_KEY: &str = "imbrex.kind";
pub(super) const NAME_KEY: &str = "imbrex.name";
pub(super) const DESCRIPTION_KEY: &str = "imbrex.description";
pub(super) const DEVICE_BYTES_KEY: &str = "imbrex.device_bytes";

/// Names that speak for themselves: the key of the map, the name, and the unit behind it.
const KNOWN_NAMES: [(&str, &[(&str, &str)]); 7] = [
    (
        "time",
        &[
            ("time", ""),
            ("time_ns", ":ns"),
            ("time_us", ":us"),
            ("time_ms", ":ms"),
            ("time_s", ":s"),
        ],
    ),
    ("op", &[("op", ""), ("operation", ":names")]),
    ("off", &[("off", ""), ("offset", ""), ("offset_bytes", "")]),
    ("len", &[("len", ""), ("length", ""), ("size", ""), ("length_bytes", "")]),
    ("dev", &[("dev", ""), ("device", "")]),
    ("resp", &[("resp", ""), ("response_ns", ":ns")]),
    ("fua", &[("fua", "")]),
];

/// The columns that are read, and what the file says of itself.
pub(super) struct Mapping {
    pub columns: Columns,
    pub source: Source,
    /// The map, and where it comes from.
    map: String,
    why: &'static str,
}

impl Mapping {
    /// By the map that was asked for, that of the file, or the names of its columns.
    pub(super) fn of(
        path: &str,
        metadata: &ParquetMetaData,
        asked: Option<&str>,
    ) -> Result<Self, TraceError> {
        let file = metadata.file_metadata();
        let said = |key: &str| {
            let pairs = file.key_value_metadata()?;
            pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
        };
        let schema = file.schema_descr();
        let names: Vec<String> = schema.columns().iter().map(|column| name(column)).collect();
        let (map, why) = match (asked, said(MAP_KEY)) {
            (Some(map), _) => (map.to_owned(), "columns as asked"),
            (None, Some(map)) => (map.to_owned(), "columns as the file says"),
            (None, None) => (map_of_names(path, &names)?, "columns by their names"),
        };
        let header: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let resolved = ColumnMap::parse(&map, Some(&header))?;
        let columns = columns(schema, resolved, &names)
            .map_err(|reason| TraceError::ColumnMap { map: map.clone(), reason })?;
        let source = match said(NAME_KEY) {
            Some(name) => described(name, &said),
            None => {
                Source { kind: SourceKind::Captured, label: path.to_owned(), device_bytes: None }
            }
        };
        Ok(Self { columns, source, map, why })
    }

    /// What was found, for people.
    pub(super) fn describe(&self) -> String {
        format!("{}: {}", self.why, self.map.escape_debug())
    }
}

/// What a file of our own says of the workload in it.
fn described<'a>(name: &str, said: &impl Fn(&str) -> Option<&'a str>) -> Source {
    let kinds = [SourceKind::Captured, SourceKind::Recorded, SourceKind::Synthetic];
    let kind = kinds.into_iter().find(|kind| said(KIND_KEY) == Some(&kind.to_string()));
    let kind = kind.unwrap_or(SourceKind::Captured);
    let description = said(DESCRIPTION_KEY).unwrap_or_default();
    let device_bytes = said(DEVICE_BYTES_KEY).and_then(|bytes| bytes.parse().ok());
    let label = format!("{kind} {name}: {description}");
    Source {
        kind,
        label: label.escape_debug().to_string(),
        device_bytes: device_bytes.filter(|&bytes| bytes > 0),
    }
}

/// The map of columns whose names speak for themselves.
fn map_of_names(path: &str, names: &[String]) -> Result<String, TraceError> {
    let mut entries = Vec::new();
    for (key, known) in KNOWN_NAMES {
        let has =
            |known: &&(&str, &str)| names.iter().any(|name| name.eq_ignore_ascii_case(known.0));
        match known.iter().find(has) {
            Some((name, unit)) => entries.push(format!("{key}={name}{unit}")),
            None if matches!(key, "off" | "len") => {
                let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let found: Vec<String> = names
                    .iter()
                    .take(NAMES_MAX)
                    .map(|name| name.escape_debug().to_string())
                    .collect();
                return Err(TraceError::Format {
                    path: path.to_owned(),
                    reason: format!(
                        "no column of the Parquet file is called {}; it has {}; accepted: --map with off and len at least, \
                         for example --map 'time=COLUMN:us,op=COLUMN,off=COLUMN:sectors,len=COLUMN:bytes'",
                        known.join(", "),
                        found.join(", ")
                    ),
                });
            }
            None => {}
        }
    }
    Ok(entries.join(","))
}

/// Names of columns in a message at most.
const NAMES_MAX: usize = 32;

/// The columns of a map; `Err` names the one that does not fit.
fn columns(schema: &SchemaDescriptor, map: ColumnMap, names: &[String]) -> Result<Columns, String> {
    let column = |leaf: usize| schema.columns()[leaf].clone();
    let told = |leaf: usize| {
        move |reason: String| format!("the column {} {reason}", names[leaf].escape_debug())
    };
    let numbers = |leaf: usize, unit: Unit, may_be_null: bool| {
        Numbers::new(column(leaf), leaf, unit, may_be_null).map_err(told(leaf))
    };
    let (offset, length) = (map.offset, map.length);
    let time = map.time.map(|(leaf, unit)| numbers(leaf, Unit::Time(unit), false));
    let response = map.response.map(|(leaf, unit)| numbers(leaf, Unit::Time(unit), true));
    let device = map.device.map(|leaf| numbers(leaf, Unit::UpTo(u16::MAX.into()), false));
    let fua = map.fua.map(|leaf| numbers(leaf, Unit::UpTo(1), false));
    let operation = map
        .operation
        .map(|(leaf, code)| Operations::new(column(leaf), leaf, code).map_err(told(leaf)));
    Ok(Columns {
        offset: numbers(offset.0, Unit::Bytes(offset.1), false)?,
        length: numbers(length.0, Unit::Bytes(length.1), false)?,
        time: time.transpose()?,
        operation: operation.transpose()?,
        device: device.transpose()?,
        response: response.transpose()?,
        fua: fua.transpose()?,
    })
}
