//! A table with a type for each column, made row by row.

use super::response_times::ResponseTimes;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A table: columns of one length, each with a name and values of one kind. What is not there in a row is absent.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    names: Vec<String>,
    columns: Vec<Column>,
    /// Rows that are whole.
    rows: usize,
    /// The column of the next cell.
    at: usize,
}

/// The values of a column.
#[derive(Clone, Debug)]
pub enum Column {
    /// Nothing but absent values, as many as this.
    Absent(usize),
    /// Texts.
    Texts(Texts),
    /// Whole numbers.
    Counts(Vec<Option<u64>>),
    /// Other numbers.
    Numbers(Vec<Option<f64>>),
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Texts,
    /// Whole numbers.
    Counts,
    /// Other numbers.
    Numbers,
}

/// Texts, of which many are the same.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    known: HashMap<Arc<str>, u32>,
    distinct: Vec<Arc<str>>,
    /// By row the number among those that differ.
    rows: Vec<Option<u32>>,
}

impl Texts {
    /// By row.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        self.rows.iter().map(|row| row.map(|at| &*self.distinct[at as usize]))
    }

    fn push(&mut self, text: &str) {
        // A column often has the same text many times over.
        if let Some(&Some(last)) = self.rows.last()
            && &*self.distinct[last as usize] == text
        {
            self.rows.push(Some(last));
            return;
        }
        let at = self.known.get(text).copied().unwrap_or_else(|| {
            let text: Arc<str> = text.into();
            let at = self.distinct.len() as u32;
            self.distinct.push(Arc::clone(&text));
            self.known.insert(text, at);
            at
        });
        self.rows.push(Some(at));
    }
}

/// A cell of a row.
enum Cell<'a> {
    Absent,
    Text(&'a str),
    Count(u64),
    Number(f64),
}

impl Column {
    /// Without rows.
    fn of_kind(kind: Kind) -> Column {
        match kind {
            Kind::Texts => Column::Texts(Texts::default()),
            Kind::Counts => Column::Counts(vec![]),
            Kind::Numbers => Column::Numbers(vec![]),
        }
    }

    /// What it holds; none where all is absent and the table says no kind.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Column::Absent(_) => None,
            Column::Texts(_) => Some(Kind::Texts),
            Column::Counts(_) => Some(Kind::Counts),
            Column::Numbers(_) => Some(Kind::Numbers),
        }
    }

    /// Rows.
    fn len(&self) -> usize {
        match self {
            Column::Absent(rows) => *rows,
            Column::Texts(texts) => texts.rows.len(),
            Column::Counts(counts) => counts.len(),
            Column::Numbers(numbers) => numbers.len(),
        }
    }

    /// Appends the rows of another column.
    fn append(&mut self, other: &Column) {
        match other {
            Column::Absent(rows) => (0..*rows).for_each(|_| self.push(&Cell::Absent)),
            Column::Texts(texts) => {
                texts.iter().for_each(|it| self.push(&it.map_or(Cell::Absent, Cell::Text)));
            }
            Column::Counts(counts) => {
                counts.iter().for_each(|it| self.push(&it.map_or(Cell::Absent, Cell::Count)));
            }
            Column::Numbers(numbers) => {
                numbers.iter().for_each(|it| self.push(&it.map_or(Cell::Absent, Cell::Number)));
            }
        }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        match (&mut *self, cell) {
            (Column::Absent(rows), Cell::Absent) => *rows += 1,
            (Column::Texts(texts), Cell::Absent) => texts.rows.push(None),
            (Column::Counts(counts), Cell::Absent) => counts.push(None),
            (Column::Numbers(numbers), Cell::Absent) => numbers.push(None),
            (Column::Texts(texts), Cell::Text(text)) => texts.push(text),
            (Column::Counts(counts), Cell::Count(count)) => counts.push(Some(*count)),
            (Column::Numbers(numbers), Cell::Number(number)) => numbers.push(Some(*number)),
            (Column::Numbers(numbers), Cell::Count(count)) => numbers.push(Some(*count as f64)),
            (_, cell) => {
                self.widen(cell);
                self.push(cell);
            }
        }
    }

    /// Becomes a column that can hold the cell too.
    fn widen(&mut self, cell: &Cell<'_>) {
        let rows = self.len();
        *self = match (&*self, cell) {
            (Column::Absent(_), Cell::Count(_)) => Column::Counts(vec![None; rows]),
            (Column::Absent(_), Cell::Number(_)) => Column::Numbers(vec![None; rows]),
            (Column::Counts(counts), Cell::Number(_)) => {
                Column::Numbers(counts.iter().map(|count| count.map(|it| it as f64)).collect())
            }
            _ => {
                let mut texts = Texts::default();
                for row in 0..rows {
                    match self.text(row) {
                        Some(text) => texts.push(&text),
                        None => texts.rows.push(None),
                    }
                }
                Column::Texts(texts)
            }
        };
    }

    /// A value as text; none where it is absent.
    fn text(&self, row: usize) -> Option<Cow<'_, str>> {
        match self {
            Column::Absent(_) => None,
            Column::Texts(texts) => {
                texts.rows[row].map(|at| (&*texts.distinct[at as usize]).into())
            }
            Column::Counts(counts) => counts[row].map(|it| it.to_string().into()),
            Column::Numbers(numbers) => numbers[row].map(|it| it.to_string().into()),
        }
    }
}

impl Columns {
    /// A table without rows.
    pub(super) fn new<Name: Into<String>>(names: impl IntoIterator<Item = Name>) -> Columns {
        let names: Vec<String> = names.into_iter().map(Name::into).collect();
        let columns = vec![Column::Absent(0); names.len()];
        Columns { names, columns, rows: 0, at: 0 }
    }

    /// A table without rows, of columns that have a kind before they have values.
    pub(super) fn of_kinds(columns: &[(&str, Kind)]) -> Columns {
        let kinds = columns.iter().map(|(_, kind)| Column::of_kind(*kind)).collect();
        Columns { columns: kinds, ..Columns::new(columns.iter().map(|(name, _)| *name)) }
    }

    /// The same, the names between commas.
    pub(super) fn named(names: &str) -> Columns {
        Columns::new(names.split(','))
    }

    /// Of objects, a row each, with columns for these of their keys. A value that is no number and no text, such as a
    /// list, is the text of it in JSON.
    pub fn of_records(keys: Vec<String>, records: &[Map<String, Value>]) -> Columns {
        let mut columns = Columns::new(keys.iter());
        for record in records {
            for key in &keys {
                match record.get(key) {
                    None | Some(Value::Null) => columns.push(Cell::Absent),
                    Some(Value::String(text)) => columns.text(text),
                    Some(Value::Number(number)) => match number.as_u64() {
                        Some(count) => columns.integer(Some(count)),
                        None => columns.number(number.as_f64()),
                    },
                    Some(other) => columns.text(&other.to_string()),
                };
            }
            columns.end();
        }
        columns
    }

    fn push(&mut self, cell: Cell<'_>) -> &mut Columns {
        self.columns[self.at].push(&cell);
        self.at += 1;
        self
    }

    /// A cell of nothing.
    pub(super) fn absent(&mut self) -> &mut Columns {
        self.push(Cell::Absent)
    }

    /// A cell of text.
    pub(super) fn text(&mut self, value: &str) -> &mut Columns {
        self.push(Cell::Text(value))
    }

    /// A cell of a number.
    pub(super) fn number(&mut self, value: Option<f64>) -> &mut Columns {
        self.push(value.map_or(Cell::Absent, Cell::Number))
    }

    /// A cell of a whole number.
    pub(super) fn integer(&mut self, value: Option<u64>) -> &mut Columns {
        self.push(value.map_or(Cell::Absent, Cell::Count))
    }

    /// What [`response_columns`] names.
    pub(super) fn response_times(&mut self, all_reads_writes: [ResponseTimes; 3]) {
        for times in all_reads_writes {
            for value in [times.mean, times.p50, times.p99, times.p99_9, times.p99_99, times.max] {
                self.number(value);
            }
        }
    }

    /// Appends the rows of a table with the same columns.
    pub(super) fn append(&mut self, other: &Columns) {
        assert_eq!(self.names, other.names, "the same columns");
        for (column, of_other) in self.columns.iter_mut().zip(&other.columns) {
            column.append(of_other);
        }
        self.rows += other.rows;
    }

    /// Ends a row, which has a cell in every column.
    pub(super) fn end(&mut self) {
        assert_eq!(self.at, self.columns.len(), "a cell in every column");
        self.rows += 1;
        self.at = 0;
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns by name, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.names.iter().map(String::as_str).zip(&self.columns)
    }

    /// The table as CSV with a header; absent values are empty.
    pub fn to_csv(&self) -> String {
        let names: Vec<Cow<'_, str>> = self.names.iter().map(|name| csv_cell(name)).collect();
        let mut text = names.join(",");
        text.push('\n');
        for row in 0..self.rows {
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                column.write_csv(row, &mut text);
            }
            text.push('\n');
        }
        text
    }
}

impl Column {
    fn write_csv(&self, row: usize, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Column::Absent(_) => Ok(()),
            Column::Texts(_) => {
                text.push_str(&csv_cell(&self.text(row).unwrap_or_default()));
                Ok(())
            }
            Column::Counts(counts) => counts[row].map_or(Ok(()), |it| write!(text, "{it}")),
            Column::Numbers(numbers) => numbers[row].map_or(Ok(()), |it| write!(text, "{it}")),
        };
    }
}

/// Columns of the response times of all requests, of the reads and of the writes.
pub(super) fn response_columns() -> Vec<String> {
    let columns = ["response", "read_response", "write_response"].iter().flat_map(|which| {
        ["mean", "p50", "p99", "p99_9", "p99_99", "max"].map(|of| format!("{which}_{of}_ms"))
    });
    columns.collect()
}

/// A cell of text as CSV has it, in quotes where it needs them.
pub fn csv_cell(value: &str) -> Cow<'_, str> {
    match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")).into(),
        false => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_kind_that_holds_all_its_values() {
        let mut table = Columns::named("text,count,number,mixed,empty");
        table.text("a,b").integer(Some(1)).number(Some(0.5)).integer(Some(3)).integer(None).end();
        table.text("c").integer(None).integer(Some(2)).number(Some(2.5)).number(None).end();
        let kinds: Vec<_> = table.iter().map(|(_, column)| column).collect();
        assert!(
            matches!(
                kinds[..],
                [
                    Column::Texts(_),
                    Column::Counts(_),
                    Column::Numbers(_),
                    Column::Numbers(_),
                    Column::Absent(2)
                ]
            ),
            "{kinds:?}"
        );
        let csv = "text,count,number,mixed,empty\n\"a,b\",1,0.5,3,\nc,,2,2.5,\n";
        assert_eq!(table.to_csv(), csv);
    }

    #[test]
    fn objects_become_rows_with_the_wanted_keys() {
        let records = r#"[{"a":1,"b":"x"},{"a":2.5,"c":[1,2]},{"b":null,"c":true}]"#;
        let records: Vec<Map<String, Value>> = serde_json::from_str(records).unwrap();
        let csv = "b,a,c\nx,1,\n,2.5,\"[1,2]\"\n,,true\n";
        assert_eq!(
            Columns::of_records(["b", "a", "c"].map(String::from).to_vec(), &records).to_csv(),
            csv
        );
    }

    #[test]
    fn texts_hold_what_came_before_them() {
        let mut table = Columns::named("of");
        for end in 0..4 {
            match end {
                0 => table.number(None).end(),
                1 => table.integer(Some(7)).end(),
                2 => table.text("all").end(),
                _ => table.integer(None).end(),
            }
        }
        let Some((_, Column::Texts(texts))) = table.iter().next() else { panic!("{table:?}") };
        assert_eq!(texts.iter().collect::<Vec<_>>(), [None, Some("7"), Some("all"), None]);
        assert_eq!(table.rows(), 4);
    }
}
