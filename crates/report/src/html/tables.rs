//! The tables and series that kinds of node make of their nodes, a section for each.

use std::fmt::Write as _;

use super::super::drawn::{CHART_RUNS_MAX, TABLE_ROWS_MAX};
use super::super::kind_tables::KindTable;
use super::super::node_table::{Cell, Column, NodeTable};
use super::super::report::{Report, Run};
use super::super::series::Series;
use super::strips::{Full, Panels, Strip, mean, panels};
use crate::format::{bytes, count, number};
use crate::page::{chip, escape, open_scroll, open_section};

/// Strips of a chart at most.
const STRIPS_MAX: usize = CHART_RUNS_MAX;
/// Rows of a table that is not folded at most.
const UNFOLDED_ROWS_MAX: usize = 12;

/// A column of a series, drawn over time.
pub(super) struct Chart {
    /// Which values the script reads out there.
    pub reader: String,
    /// The column.
    pub column: Column<String>,
    /// A strip of each node.
    pub strips: Vec<Strip>,
}

/// Appends a section for each table and each series.
pub(super) fn of_kinds(report: &Report, body: &mut String) {
    for (index, table) in drawn(report).iter().enumerate() {
        open_section(&table.like.title, &table.like.sentence, body);
        match table.like.over_time {
            true => series(index, table, body),
            false => rows(table, body),
        }
        body.push_str("</section>\n");
    }
}

/// All charts of the page, for its script.
pub(super) fn charts(report: &Report) -> Vec<Chart> {
    let tables = drawn(report).into_iter().enumerate();
    let series = tables.filter(|(_, table)| table.like.over_time);
    series.flat_map(|(index, table)| charts_of(index, &table)).collect()
}

/// The tables of the runs that are drawn.
fn drawn(report: &Report) -> Vec<KindTable<'_>> {
    let mut tables = report.kind_tables();
    for table in &mut tables {
        table.of_nodes.retain(|(run, _, _)| *run < CHART_RUNS_MAX);
    }
    tables.retain(|table| !table.of_nodes.is_empty());
    tables
}

/// A chart for each column of a series.
fn series(index: usize, table: &KindTable<'_>, body: &mut String) {
    let charts = charts_of(index, table);
    for chart in &charts {
        let heading = chart.column.heading();
        if charts.len() > 1 {
            let _ = writeln!(body, "<h3>{}</h3>", escape(&heading));
        }
        let panel = Panels {
            reader: &chart.reader,
            title: &format!("{}: {heading}", table.like.title),
            full: match chart.column.unit.as_str() {
                "%" => Full::At(100.0),
                _ => Full::Usual,
            },
            full_label: &|most| with_unit(most, &chart.column.unit),
        };
        panels(&panel, &chart.strips, body);
    }
    if table.of_nodes.len() > STRIPS_MAX {
        more(&format!("{STRIPS_MAX} of {} are drawn", table.of_nodes.len()), table, body);
    }
}

fn charts_of(index: usize, table: &KindTable<'_>) -> Vec<Chart> {
    let values = table.like.columns.iter().enumerate().skip(1);
    let charts = values.map(|(place, column)| Chart {
        reader: format!("table-{index}-{place}"),
        column: column.clone(),
        strips: table
            .of_nodes
            .iter()
            .take(STRIPS_MAX)
            .filter(|(_, _, of_node)| !of_node.rows.is_empty())
            .map(|(run_index, run, of_node)| {
                let series = over_time(of_node, place, run);
                let finish_s = run.costs.finish_s;
                Strip {
                    index: *run_index,
                    name: name(table, run, of_node),
                    finish_s,
                    summary: with_unit(mean(&series, finish_s), &column.unit),
                    series,
                    full: None,
                }
            })
            .collect(),
    });
    charts.filter(|chart| !chart.strips.is_empty()).collect()
}

/// A column of a series. Where there is one row it lasts until the end of the run.
fn over_time(table: &NodeTable, place: usize, run: &Run) -> Series {
    let number = |row: &Vec<Cell>, place: usize| row[place].as_number().unwrap_or(0.0);
    let bucket_s = table.rows.get(1).map_or(run.costs.finish_s, |row| number(row, 0));
    Series { bucket_s, values: table.rows.iter().map(|row| number(row, place)).collect() }
}

/// Whose a strip is, as far as it must be said: the node where a run has several, and the run where
/// there are several.
fn name(table: &KindTable<'_>, run: &Run, of_node: &NodeTable) -> String {
    let same = |other: &&Run| std::ptr::eq(*other, run);
    let nodes = table.of_nodes.iter().filter(|(_, other, _)| same(other)).count();
    match (nodes, nodes == table.of_nodes.len()) {
        (_, true) => of_node.node.clone(),
        (1, false) => run.label(),
        (_, false) => format!("{}, {}", of_node.node, run.label()),
    }
}

/// The rows of all nodes, folded where they are many.
fn rows(table: &KindTable<'_>, body: &mut String) {
    let all: usize = table.of_nodes.iter().map(|(_, _, of_node)| of_node.rows.len()).sum();
    let open = if all <= UNFOLDED_ROWS_MAX { " open" } else { "" };
    let _ = write!(body, "<details{open}><summary>{} rows</summary>", count(all as u64));
    open_scroll(&table.like.title, body);
    body.push_str(
        "<table><thead><tr><th scope=\"col\">system</th><th scope=\"col\" class=\"text\">node</th>",
    );
    for column in &table.like.columns {
        // Words lie at the left of their column.
        let class = if column.unit.is_empty() { " class=\"text\"" } else { "" };
        let _ = write!(
            body,
            "<th scope=\"col\"{class} title=\"{}\">{}<small>{}</small></th>",
            escape(&column.sentence),
            escape(&column.heading()),
            escape(&column.unit)
        );
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    let of_nodes = table.of_nodes.iter();
    let rows = of_nodes.flat_map(|(index, run, of_node)| {
        of_node.rows.iter().map(move |row| (*index, *run, *of_node, row))
    });
    for (index, run, of_node, row) in rows.take(TABLE_ROWS_MAX) {
        let (label, node) = (escape(&run.label()), escape(&of_node.node));
        let _ = write!(body, "<tr><td>{}{label}</td><td class=\"text\">{node}</td>", chip(index));
        row.iter().for_each(|value| cell(value, body));
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
    if all > TABLE_ROWS_MAX {
        more(&format!("{TABLE_ROWS_MAX} of {} rows are shown", count(all as u64)), table, body);
    }
    body.push_str("</details>\n");
}

fn cell(value: &Cell, body: &mut String) {
    let _ = match value {
        Cell::Absent => write!(body, "<td>-</td>"),
        Cell::Count(value) => write!(body, "<td>{}</td>", count(*value)),
        Cell::Number(value) => write!(body, "<td>{}</td>", number(*value)),
        Cell::Text(text) => write!(body, "<td class=\"text\">{}</td>", escape(text)),
    };
}

/// Says that there is more than is shown.
fn more(shown: &str, table: &KindTable<'_>, body: &mut String) {
    let _ = writeln!(body, "<p class=\"why\">{shown}; {} has all.</p>", escape(&table.like.file()));
}

/// A value as it is read.
fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value as u64),
        "number" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}
