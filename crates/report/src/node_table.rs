//! Tables and series that a kind of node makes of its nodes, beside what all nodes count.
//!
//! A kind declares a table once, as a [`TableOfKind`], and hands over its rows. A CSV file, a panel
//! of the page, the key `figures.tables` of a run and the document of reports follow.

use serde::{Deserialize, Serialize};

/// A table that a kind of node makes of each of its nodes, or a series, which is a table over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableOfKind {
    /// What it is of, in snake case. Behind the kind it is the name of the CSV file.
    pub name: &'static str,
    /// Its heading in the page.
    pub title: &'static str,
    /// What it tells, in a sentence or two.
    pub sentence: &'static str,
    /// Whether it is a series. Then the first column is [`TIME`](Self::TIME), the others are numbers,
    /// and each row stands for what was from its time up to that of the next one, or to the end of the
    /// run. The rows are equally far apart and begin at 0.
    pub over_time: bool,
    /// Its columns.
    pub columns: &'static [Column<&'static str>],
}

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column<T> {
    /// Its name in snake case, with a unit of measure at the end: `written_mib_per_s`.
    pub name: T,
    /// What its values are in, such as `bytes`, `MiB/s` or `number`; empty of words.
    pub unit: T,
    /// What they are, in a sentence.
    pub sentence: T,
}

/// A value of a table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// There is none.
    Absent,
    /// What was counted.
    Count(u64),
    /// What was measured.
    Number(f64),
    /// A word.
    Text(String),
}

/// A table of one node, as a report holds it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeTable {
    /// The name of the node.
    pub node: String,
    /// The kind of the node.
    pub kind: String,
    /// As [`TableOfKind::name`].
    pub name: String,
    /// As [`TableOfKind::title`].
    pub title: String,
    /// As [`TableOfKind::sentence`].
    pub sentence: String,
    /// As [`TableOfKind::over_time`].
    pub over_time: bool,
    /// The columns.
    pub columns: Vec<Column<String>>,
    /// The rows: as many values as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

impl TableOfKind {
    /// The first column of a series.
    pub const TIME: Column<&'static str> =
        Column::new("time_s", "s", "When what the row tells began, from the start of the run.");

    /// The name of the CSV file that holds the tables of all nodes of a kind.
    pub fn file(&self, kind: &str) -> String {
        file(kind, self.name)
    }
}

fn file(kind: &str, name: &str) -> String {
    format!("{}.csv", full_name(kind, name))
}

fn full_name(kind: &str, name: &str) -> String {
    format!("{}_{name}", kind.replace('-', "_"))
}

impl Column<&'static str> {
    /// A column with its name, its unit and what it is.
    pub const fn new(name: &'static str, unit: &'static str, sentence: &'static str) -> Self {
        Column { name, unit, sentence }
    }
}

impl Column<String> {
    /// Its name in words, without the unit.
    pub(super) fn heading(&self) -> String {
        let unit = format!("_{}", self.unit.to_lowercase().replace('/', "_per_"));
        let name = self.name.strip_suffix(&unit).unwrap_or(&self.name);
        name.replace('_', " ")
    }
}

impl Cell {
    /// Its value, of a number.
    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Cell::Count(count) => Some(*count as f64),
            Cell::Number(number) => Some(*number),
            Cell::Absent | Cell::Text(_) => None,
        }
    }
}

impl NodeTable {
    /// The table of a node of a kind.
    pub fn new(node: &str, kind: &str, table: &TableOfKind, rows: Vec<Vec<Cell>>) -> NodeTable {
        let TableOfKind { name, title, sentence, over_time, columns } = *table;
        let is_whole = |row: &Vec<Cell>| row.len() == columns.len();
        assert!(rows.iter().all(is_whole), "a row of {kind} {name} has a value for each column");
        assert!(!over_time || columns.first() == Some(&TableOfKind::TIME), "{name} is over time");
        let owned = |column: &Column<&str>| Column {
            name: column.name.to_owned(),
            unit: column.unit.to_owned(),
            sentence: column.sentence.to_owned(),
        };
        NodeTable {
            node: node.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            title: title.to_owned(),
            sentence: sentence.to_owned(),
            over_time,
            columns: columns.iter().map(owned).collect(),
            rows,
        }
    }

    /// The name of the table among those of a report.
    pub(super) fn full_name(&self) -> String {
        full_name(&self.kind, &self.name)
    }

    /// The name of the CSV file.
    pub(super) fn file(&self) -> String {
        file(&self.kind, &self.name)
    }
}
