//! Stated and measured numbers as a table.

use super::stated::Row;
use crate::basis::Tally;
use crate::reason::ReasonTally;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use imbrex_report::format::number;
use imbrex_report::{TableStyle, WorkloadKind};

impl Row {
    /// One line a number: stated, measured, by how much they may differ, and whether they agree;
    /// under it the workloads, their kind spelt out.
    pub fn table(rows: &[Row], style: TableStyle) -> String {
        let mut table = Table::new();
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.load_style(presets::NOTHING);
        let mut header = vec!["", "unit", "stated", "measured", "tolerance", "agrees", "basis"];
        let has_reasons = rows.iter().any(|row| row.reason.is_some());
        header.extend(has_reasons.then_some("why"));
        table.set_header(header);
        let workloads = distinct_workloads(rows);
        for row in rows {
            let mark = match workloads.len() {
                0 | 1 => String::new(),
                _ => format!(" [{}]", 1 + index_in(&workloads, row)),
            };
            let mut cells = vec![
                format!("{}{mark}", row.metric),
                row.unit.clone(),
                row.stated_text(),
                row.measured.map_or("-".to_string(), number),
                format!("{}%", number(row.tolerance * 100.0)),
                if row.agrees { "yes" } else { "NO" }.to_string(),
                row.basis.word().to_string(),
            ];
            let why = || row.reason.map_or(String::new(), |reason| reason.word().to_string());
            cells.extend(has_reasons.then(why));
            table.add_row(cells);
        }
        for (i, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if i == 0 { 0 } else { 1 }, 1));
            if (2..6).contains(&i) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = String::new();
        for (i, line) in table.lines().enumerate() {
            let line = line.trim_end();
            match (style, i) {
                (TableStyle::Terminal, 0) => text.push_str(&format!("\x1b[1m{line}\x1b[0m\n")),
                _ => text.push_str(&format!("{line}\n")),
            }
        }
        for (i, (workload, kind)) in workloads.iter().enumerate() {
            let mark = match workloads.len() {
                1 => "on".to_string(),
                _ => format!("[{}]", i + 1),
            };
            text.push_str(&format!("{mark} {workload}: {}\n", kind.describe()));
        }
        text
    }

    /// How many rows of each basis there are, and how many of them agree.
    pub fn tallies(rows: &[Row]) -> Vec<Tally> {
        Tally::of(rows.iter().map(|row| (row.basis, row.agrees)))
    }

    /// For each paper how many there are and how many agree, by basis.
    pub fn tallies_of_papers(rows: &[Row]) -> Vec<(&str, Vec<Tally>)> {
        let mut papers: Vec<&str> = rows.iter().map(|row| row.paper.as_str()).collect();
        papers.dedup();
        let of_paper = |paper| {
            let own = rows.iter().filter(move |row| row.paper == paper);
            (paper, Tally::of(own.map(|row| (row.basis, row.agrees))))
        };
        papers.into_iter().map(of_paper).collect()
    }

    /// How many disagree for each reason.
    pub fn reasons(rows: &[Row]) -> Vec<ReasonTally> {
        ReasonTally::of(rows.iter().filter_map(|row| row.reason))
    }

    fn stated_text(&self) -> String {
        format!("{}{}", self.comparison.sign(), number(self.stated))
    }
}

fn distinct_workloads(rows: &[Row]) -> Vec<(&str, WorkloadKind)> {
    let mut distinct: Vec<(&str, WorkloadKind)> = Vec::new();
    for row in rows {
        let workload = (row.workload.as_str(), row.workload_kind);
        if !distinct.contains(&workload) {
            distinct.push(workload);
        }
    }
    distinct
}

fn index_in(workloads: &[(&str, WorkloadKind)], row: &Row) -> usize {
    let of_row = (row.workload.as_str(), row.workload_kind);
    workloads
        .iter()
        .position(|workload| *workload == of_row)
        .expect("every row's workload is among the distinct ones")
}
