//! Lines of CSV whose values are all as they should be, read in one walk over their columns.

use super::column_map::{ColumnMap, OperationCode};
use super::csv::{Refused, UNIT, operation};
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{Fields, Parsed, range_is_possible, trim};

/// What a column is read for; times and sizes with their units, nanoseconds and bytes.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Nothing,
    Time(u64),
    Operation,
    Offset(u64),
    Length(u64),
    Device,
    Response(u64),
    ForcedUnitAccess,
}

/// What the columns of a line are read for, in their order.
pub(super) struct Plan {
    parts: Vec<Part>,
    /// How the column of the operation tells it, where there is one.
    code: OperationCode,
    delimiter: u8,
}

impl Plan {
    /// `None` where a column has two parts, or the delimiter may stand in a number.
    pub(super) fn new(map: &ColumnMap, delimiter: u8) -> Option<Self> {
        let mut named = vec![
            (map.offset.0, Part::Offset(map.offset.1)),
            (map.length.0, Part::Length(map.length.1)),
        ];
        let unit_ns = |unit: Option<_>| unit.unwrap_or(UNIT).nanoseconds();
        named.extend(map.time.map(|(column, unit)| (column, Part::Time(unit_ns(unit)))));
        named.extend(map.response.map(|(column, unit)| (column, Part::Response(unit_ns(unit)))));
        named.extend(map.device.map(|column| (column, Part::Device)));
        named.extend(map.fua.map(|column| (column, Part::ForcedUnitAccess)));
        let (operation, code) = map.operation.clone().unzip();
        named.extend(operation.map(|column| (column, Part::Operation)));
        let mut parts = vec![Part::Nothing; map.columns];
        for (column, part) in named {
            if parts[column] != Part::Nothing {
                return None;
            }
            parts[column] = part;
        }
        let code = code.unwrap_or(OperationCode::Words);
        (!delimiter.is_ascii_digit()).then_some(Self { parts, code, delimiter })
    }

    /// What a line holds; `None` where a value is not as it should be, or is written in a rare way.
    #[inline]
    pub(super) fn parse(&self, line: &[u8]) -> Option<Parsed> {
        let mut fields = Fields::new(line, self.delimiter);
        let mut record = TraceRecord::new(0, TraceOperation::Read, 0, 0);
        let mut skip = None;
        for part in &self.parts {
            match *part {
                Part::Nothing => {
                    fields.text()?;
                }
                Part::Time(unit_ns) => record.time_ns = fields.decimal_ns(unit_ns)?,
                Part::Operation => match operation(trim(fields.text()?), &self.code) {
                    Ok(operation) => record.operation = operation,
                    Err(Refused::Skip(reason)) => skip = Some(reason),
                    Err(Refused::Unknown(_)) => return None,
                },
                Part::Offset(unit) => record.offset_bytes = fields.number()?.checked_mul(unit)?,
                Part::Length(unit) => record.length_bytes = fields.number()?.checked_mul(unit)?,
                Part::Device => record.device = u16::try_from(fields.number()?).ok()?,
                Part::Response(unit_ns) => record.response_ns = Some(fields.decimal_ns(unit_ns)?),
                Part::ForcedUnitAccess => match trim(fields.text()?) {
                    b"0" => {}
                    b"1" => record.fua = true,
                    _ => return None,
                },
            }
        }
        if !range_is_possible(record.offset_bytes, record.length_bytes) {
            return None;
        }
        let is_empty = record.length_bytes == 0 && record.operation != TraceOperation::Flush;
        let skip = skip.or(is_empty.then_some(SkipReason::ZeroLength));
        Some(skip.map_or(Parsed::Record(record), Parsed::Skip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::Csv;
    use proptest::prelude::*;
    use proptest::sample::select;

    const MAPS: [&str; 6] = [
        ColumnMap::LIBCACHESIM,
        ColumnMap::FIO_V1,
        "off=1:bytes,len=2:blocks,op=4,time=5:s,resp=6:ms",
        "len=2:sectors,off=1:sectors,dev=3,fua=4",
        "op=1:names,off=2:bytes,len=3:bytes,time=4:filetime",
        "op=2:r|w|t,off=1:bytes,len=1:bytes",
    ];
    const VALUES: [&str; 24] = [
        "0",
        "1",
        "7",
        "28",
        "2a",
        "0x2A",
        "4096",
        "12345678",
        "5633898368802",
        "18446744073709551615",
        "18446744073709551616",
        "0.25",
        ".5",
        "1.2.3",
        "-1",
        "",
        "R",
        "write",
        "flush",
        "trim",
        "t",
        "x",
        " 12 ",
        "\t3",
    ];

    proptest! {
        #[test]
        fn what_is_read_in_one_walk_is_what_the_careful_way_finds(
            map in select(&MAPS[..]),
            delimiter in select(&b",; \t|x"[..]),
            values in prop::collection::vec(select(&VALUES[..]), 0..8),
            ending in select(&["", " ", "  ", "\t", ","][..]),
        ) {
            let map = ColumnMap::parse(map, None).expect("a map");
            let line = values.join(&char::from(delimiter).to_string()) + ending;
            if let Some(parsed) = Plan::new(&map, delimiter).and_then(|plan| plan.parse(line.as_bytes())) {
                let csv = Csv::new(map, delimiter).expect("few columns");
                let careful = csv.parse_any(line.as_bytes());
                prop_assert_eq!(careful.expect("no problem"), parsed, "{:?}", line);
            }
        }
    }

    #[test]
    fn a_line_as_it_should_be_needs_one_walk() {
        let map = ColumnMap::parse(ColumnMap::LIBCACHESIM, None).expect("a map");
        let plan = Plan::new(&map, b',').expect("a part a column");
        let mut record =
            TraceRecord::new(5_633_898_368_802_000, TraceOperation::Write, 512 * 42_932_745, 512);
        assert_eq!(plan.parse(b"1,5633898368802,2a,512,42932745"), Some(Parsed::Record(record)));
        record.operation = TraceOperation::Read;
        assert_eq!(
            plan.parse(b"1, 5633898368802 ,0x28,512,42932745,more"),
            Some(Parsed::Record(record))
        );
        let skipped = Some(Parsed::Skip(SkipReason::ScsiOpcode(0x35)));
        assert_eq!(plan.parse(b"1,5633898368802,35,512,42932745"), skipped);
        assert_eq!(plan.parse(b"1,5633898368802,2a,512,-1"), None);
        let twice = ColumnMap::parse("off=1:bytes,len=1:bytes", None).expect("a map");
        assert!(Plan::new(&twice, b',').is_none() && Plan::new(&map, b'1').is_none());
    }
}
