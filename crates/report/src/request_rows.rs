//! Requests of runs, a row each: as lines of CSV, or as a table.

use super::columns::{Columns, Kind, csv_cell};
use std::io::{self, Write};

/// A request that has ended. Times are seconds from the start of what is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestRow {
    /// Its number in the trace, from 1.
    pub request: u64,
    /// What it asked for.
    pub operation: &'static str,
    /// Its first byte on the device.
    pub offset_bytes: u64,
    /// Its length; 0 of a flush.
    pub length_bytes: u64,
    /// When it was due.
    pub arrival_s: f64,
    /// When it was issued.
    pub start_s: f64,
    /// When it was answered.
    pub end_s: f64,
    /// What a node did meanwhile; none if nothing was in the way.
    pub waited_for: Option<&'static str>,
}

/// The columns, that of the run before the others.
const COLUMNS: [(&str, Kind); 9] = [
    ("run", Kind::Texts),
    ("request", Kind::Counts),
    ("operation", Kind::Texts),
    ("offset_bytes", Kind::Counts),
    ("length_bytes", Kind::Counts),
    ("arrival_s", Kind::Numbers),
    ("start_s", Kind::Numbers),
    ("end_s", Kind::Numbers),
    ("waited_for", Kind::Texts),
];

impl RequestRow {
    /// The first line of a file of them, without its end.
    pub fn header() -> String {
        COLUMNS.map(|(name, _)| name).join(",")
    }

    /// Writes the request as a line of CSV of the run with this label.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_csv(&self, run: &str, to: &mut impl Write) -> io::Result<()> {
        let RequestRow { request, operation, offset_bytes, length_bytes, .. } = self;
        let RequestRow { arrival_s, start_s, end_s, waited_for, .. } = self;
        let (run, waited_for) = (csv_cell(run), waited_for.unwrap_or_default());
        writeln!(
            to,
            "{run},{request},{operation},{offset_bytes},{length_bytes},{arrival_s},{start_s},{end_s},{waited_for}"
        )
    }
}

/// The requests of runs as a table, which has the values of the lines of CSV.
#[derive(Debug)]
pub struct RequestTable {
    columns: Columns,
}

impl Default for RequestTable {
    fn default() -> RequestTable {
        RequestTable { columns: Columns::of_kinds(&COLUMNS) }
    }
}

impl RequestTable {
    /// Appends a request of the run with this label.
    pub fn push(&mut self, run: &str, row: &RequestRow) {
        let columns = self.columns.text(run).integer(Some(row.request)).text(row.operation);
        columns.integer(Some(row.offset_bytes)).integer(Some(row.length_bytes));
        for seconds in [row.arrival_s, row.start_s, row.end_s] {
            columns.number(Some(seconds));
        }
        match row.waited_for {
            Some(activity) => columns.text(activity),
            None => columns.absent(),
        };
        columns.end();
    }

    /// Appends the requests of other runs.
    pub fn append(&mut self, others: &RequestTable) {
        self.columns.append(&others.columns);
    }

    /// The table.
    pub fn into_columns(self) -> Columns {
        self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_the_lines_have() {
        let row = RequestRow {
            request: 1,
            operation: "read",
            offset_bytes: 4096,
            length_bytes: 8192,
            arrival_s: 0.0,
            start_s: 1e-9,
            end_s: 0.25,
            waited_for: None,
        };
        let rows = [row, RequestRow { request: 2, waited_for: Some("hold"), ..row }];
        let (mut table, mut lines) = (RequestTable::default(), Vec::new());
        writeln!(lines, "{}", RequestRow::header()).unwrap();
        for run in ["lru capacity=1 %, 2", "pore"] {
            let mut of_run = RequestTable::default();
            rows.iter().for_each(|row| of_run.push(run, row));
            table.append(&of_run);
            rows.iter().try_for_each(|row| row.write_csv(run, &mut lines)).unwrap();
        }
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(table.into_columns().to_csv(), lines);
        assert!(lines.ends_with("pore,2,read,4096,8192,0,0.000000001,0.25,hold\n"), "{lines}");
    }

    #[test]
    fn a_table_without_requests_has_its_kinds() {
        let columns = RequestTable::default().into_columns();
        assert_eq!((columns.rows(), columns.to_csv()), (0, RequestRow::header() + "\n"));
        let kinds: Vec<_> = columns.iter().map(|(_, column)| column.kind()).collect();
        assert_eq!(kinds, COLUMNS.map(|(_, kind)| Some(kind)));
    }
}
