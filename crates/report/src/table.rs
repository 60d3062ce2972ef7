//! The table on the terminal.

use std::io::IsTerminal;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::hardware::HardwareMetric;
use super::report::{Report, Run, Workload, WorkloadKind};
use super::segment_use::SEGMENT_METRICS;
use crate::format::{LINE_CHARS_MAX, count, factor, number, optional, percent, wrapped};

/// Names longer than this are cut, so that a row fits 120 columns.
const LABEL_CHARS_MAX: usize = 26;

/// Names are not cut shorter than this.
const LABEL_CHARS_MIN: usize = 8;

/// Names of so many characters tell the ready-made stacks apart.
const LABEL_CHARS_TELLING: usize = 16;

/// Columns that only a stack with bands or a write-back cache fills.
const BAND_COLUMNS: std::ops::Range<usize> = 1..5;

/// Lines of a header: the name and its unit.
const HEADER_LINES: usize = 2;

const COLUMNS: [&str; 12] = [
    "system",
    "read\nhit %",
    "write\nhit %",
    "WA\nhost",
    "bands\nrewritten",
    "I/O time\ns",
    "speed-up",
    "mean\nms",
    "p50\nms",
    "p99\nms",
    "p99.9\nms",
    "finish\ns",
];

/// The header of the column that gives way first to hardware.
const MEDIAN: &str = "p50\nms";

/// The row of the response times that the trace itself has.
const CAPTURED: &str = "captured";

/// How a table may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStyle {
    /// ASCII only, no escape codes: for files, pipes and `NO_COLOR`.
    Plain,
    /// Rules and bold headers.
    Terminal,
}

impl TableStyle {
    /// [`TableStyle::Terminal`] when standard output is a terminal and `NO_COLOR` is unset or empty.
    pub fn detect() -> TableStyle {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if no_color || !std::io::stdout().is_terminal() {
            TableStyle::Plain
        } else {
            TableStyle::Terminal
        }
    }
}

impl Report {
    /// Workload, one row a run, the runs in which nothing was cleaned, and the headline. At most 120 columns wide; speed-up is
    /// how many times as fast as the first run a row is ([`Run::speed_up`]). Behind these columns stand those about
    /// hardware in which runs differ and for which there is room.
    pub fn to_table(&self, style: TableStyle) -> String {
        let mut columns = self.columns();
        let mut lines = laid_out(&columns);
        // Only with the columns about segments can a table be too wide. Those that say how segments are rewritten
        // give way to names, and then names do.
        let widest = |columns: &[TableColumn]| {
            columns[0].cells.iter().map(|label| label.chars().count()).max().unwrap_or(0)
        };
        let excess_of = |lines: &[String]| width_of(lines).saturating_sub(LINE_CHARS_MAX);
        let is_telling = |columns: &[TableColumn], lines: &[String]| {
            widest(columns).saturating_sub(excess_of(lines))
                >= widest(columns).min(LABEL_CHARS_TELLING)
        };
        if self.has_segments() && !is_telling(&columns, &lines) {
            let details = &SEGMENT_METRICS[1..];
            columns.retain(|column| !details.iter().any(|metric| metric.header == column.header));
        }
        self.add_hardware(&mut columns);
        self.add_captured(&mut columns);
        lines = laid_out(&columns);
        let excess = excess_of(&lines);
        if excess > 0 {
            let chars = widest(&columns).saturating_sub(excess);
            for label in &mut columns[0].cells {
                *label = cut(label, chars.max(LABEL_CHARS_MIN));
            }
            lines = laid_out(&columns);
        }
        let width = width_of(&lines);
        let mut text = format!("{}\n\n", self.workload_line());
        for (i, line) in lines.iter().map(|line| line.trim_end()).enumerate() {
            if style == TableStyle::Terminal && i < HEADER_LINES {
                text.push_str(&format!("\x1b[1m{line}\x1b[0m\n"));
            } else {
                text.push_str(&format!("{line}\n"));
            }
            if style == TableStyle::Terminal && i + 1 == HEADER_LINES {
                text.push_str(&format!("{}\n", "\u{2500}".repeat(width)));
            }
        }
        text.push('\n');
        for line in self.notices().chain(self.knees()) {
            text.push_str(&wrapped(&line));
        }
        text + &wrapped(&self.headline())
    }

    /// The columns of the table. Columns about segments are there when a run has one; those about
    /// bands and the write-back cache that would be all dashes then give way to them.
    fn columns(&self) -> Vec<TableColumn> {
        let first = self.runs.first();
        let rows: Vec<Vec<String>> = (self.runs.iter())
            .map(|run| row(run, first.and_then(|first| run.speed_up(first))))
            .collect();
        let mut columns: Vec<TableColumn> = (COLUMNS.into_iter().enumerate())
            .map(|(i, header)| TableColumn {
                header,
                cells: rows.iter().map(|row| row[i].clone()).collect(),
            })
            .collect();
        let of_runs = |header, cell: &dyn Fn(&Run) -> String| TableColumn {
            header,
            cells: self.runs.iter().map(cell).collect(),
        };
        if self.has_segments() {
            let after_bands = BAND_COLUMNS.end;
            let added = SEGMENT_METRICS
                .iter()
                .map(|metric| of_runs(metric.header, &|run| optional((metric.value)(run))));
            columns.splice(after_bands..after_bands, added);
            let all_dashes = |column: &TableColumn| column.cells.iter().all(|cell| cell == "-");
            for i in BAND_COLUMNS.rev() {
                if all_dashes(&columns[i]) {
                    columns.remove(i);
                }
            }
        }
        if self.is_untimed() {
            columns.retain(|column| !COLUMNS[BAND_COLUMNS.end..].contains(&column.header));
        }
        if self.has_bound() {
            columns.push(of_runs("rewrites\n/ bound", &|run| optional(run.rewrites.over_bound())));
        }
        columns
    }

    /// Adds the columns about hardware in which runs differ, as far as there is room. Where there is too little, those
    /// that say how segments are rewritten give way if not all runs have segments, and then the median does.
    fn add_hardware(&self, columns: &mut Vec<TableColumn>) {
        let added = |metric: &HardwareMetric| TableColumn {
            header: metric.header,
            cells: self.runs.iter().map(|run| HardwareMetric::show(metric.value(run))).collect(),
        };
        let fits = |columns: &[TableColumn]| width_of(&laid_out(columns)) <= LINE_CHARS_MAX;
        let details: Vec<&str> =
            match self.runs.iter().all(|run| run.segments_rewritten().is_some()) {
                true => vec![],
                false => SEGMENT_METRICS[1..].iter().map(|metric| metric.header).collect(),
            };
        for give_way in [&[][..], &details, &[MEDIAN]] {
            let mut wanted = columns.clone();
            wanted.retain(|column| !give_way.contains(&column.header));
            let kept = wanted.clone();
            wanted.extend(self.hardware_metrics().map(added));
            if wanted.len() == kept.len() {
                return;
            }
            if fits(&wanted) {
                *columns = wanted;
                return;
            }
            *columns = kept;
        }
        for metric in self.hardware_metrics() {
            columns.push(added(metric));
            if !fits(columns) {
                columns.pop();
            }
        }
    }

    /// Adds a row with the response times that the trace itself has.
    fn add_captured(&self, columns: &mut [TableColumn]) {
        let Some(times) = self.workload.captured_response_ms.filter(|_| !self.is_untimed()) else {
            return;
        };
        for column in &mut *columns {
            let time = match column.header {
                "mean\nms" => times.mean,
                MEDIAN => times.p50,
                "p99\nms" => times.p99,
                "p99.9\nms" => times.p99_9,
                _ => None,
            };
            column.cells.push(optional(time));
        }
        if let Some(cell) = columns[0].cells.last_mut() {
            *cell = CAPTURED.to_string();
        }
    }

    /// What a reader must know of the runs, a line each.
    pub(super) fn notices(&self) -> impl Iterator<Item = String> {
        let of_runs = self.no_cleaning_lines().into_iter();
        let of_runs = self.brought_lines().into_iter().chain(of_runs).chain(self.event_lines());
        let of_all = self.left_line().into_iter().chain(self.warm_up_line());
        let of_all = of_all.chain(self.inversions_line());
        let of_all = of_all.chain(self.keeping_up_line()).chain(self.window_lines());
        let of_runs = of_runs.chain(self.no_spare_slots_line());
        of_all.chain(of_runs).chain(self.hardware_line())
    }

    /// That times of the trace went back, where requests are issued by them.
    fn inversions_line(&self) -> Option<String> {
        let count_of = self.workload.time_inversions;
        (count_of > 0 && self.runs.iter().any(|run| run.inputs.replay.is_by_time())).then(|| {
            let what =
                if count_of == 1 { "request of the trace is" } else { "requests of the trace are" };
            format!("{} {what} earlier than the one before, and came with it.", count(count_of))
        })
    }

    /// Whether rewrites are set beside the least number that any policy needs.
    pub(super) fn has_bound(&self) -> bool {
        let mut bounds = self.runs.iter().map(|run| run.rewrites.bands_rewritten_bound);
        bounds.any(|bound| bound.is_some())
    }

    /// The workload in one line, its kind spelt out.
    pub(super) fn workload_line(&self) -> String {
        let Workload { path, requests, repeat, new_blocks, .. } = &self.workload;
        let blocks = if *new_blocks { " on other blocks each time" } else { "" };
        let over = match repeat {
            1 => String::new(),
            repeat => format!(", {} times over{blocks}", count(u64::from(*repeat))),
        };
        format!("{path}{over}: {} requests, {}", count(*requests), self.workload.describe())
    }
}

impl Workload {
    /// What the workload is, in words that cannot be mistaken. A web log was captured, but it says nothing of blocks.
    pub(super) fn describe(&self) -> &'static str {
        match &self.format {
            Some(format) if format.starts_with("clf ") => "made of a web log by a recipe",
            _ => self.kind.describe(),
        }
    }
}

impl WorkloadKind {
    /// What the kind means, in words that cannot be mistaken.
    pub fn describe(self) -> &'static str {
        match self {
            WorkloadKind::Captured => "captured from a system in use",
            WorkloadKind::Recorded => "recorded by Imbrex from real software",
            WorkloadKind::Synthetic => "SYNTHETIC: generated from a recipe",
            WorkloadKind::Live => "live requests of clients",
            WorkloadKind::ClosedForm => "computed from its formula, no workload",
        }
    }
}

/// A column: its header and a cell for each run.
#[derive(Clone)]
struct TableColumn {
    header: &'static str,
    cells: Vec<String>,
}

/// The lines of a table, header first.
fn laid_out(columns: &[TableColumn]) -> Vec<String> {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.header));
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        table.add_row(columns.iter().map(|column| &column.cells[row]));
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if i == 0 { 0 } else { 1 }, 1));
        if i > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().collect()
}

/// Characters of the longest line.
fn width_of(lines: &[String]) -> usize {
    let widths = lines.iter().map(|line| line.trim_end().chars().count());
    widths.max().unwrap_or(0)
}

fn row(run: &Run, speed_up: Option<f64>) -> Vec<String> {
    // A stack without a cache has no hits to speak of.
    let hit = |ratio: Option<f64>| match run.cache.capacity_blocks {
        Some(_) => percent(ratio),
        None => "-".to_string(),
    };
    vec![
        cut(&run.label(), LABEL_CHARS_MAX),
        hit(run.hits.read_hit_ratio),
        hit(run.hits.write_hit_ratio),
        optional(run.rewrites.write_amplification.host),
        if run.log.bands.is_some() { count(run.rewrites.bands_rewritten) } else { "-".to_string() },
        number(run.costs.io_time_s.total),
        speed_up.map_or_else(|| "-".to_string(), factor),
        optional(run.costs.response_ms.mean),
        optional(run.costs.response_ms.p50),
        optional(run.costs.response_ms.p99),
        optional(run.costs.response_ms.p99_9),
        number(run.costs.finish_s),
    ]
}

fn cut(label: &str, chars_max: usize) -> String {
    match label.char_indices().nth(chars_max) {
        None => label.to_string(),
        Some(_) => {
            let kept: String = label.chars().take(chars_max - 3).collect();
            kept + "..."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_parts::Hardware;
    use super::*;
    use crate::ReplayMode;

    fn run(system: &str, flash_mib: u64, has_segments: bool) -> Run {
        let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
        let flash_bytes = flash_mib << 20;
        let hardware = Hardware { disks: 1, flash_bytes, memory_bytes: 0, raw_bytes: 5 << 40 };
        run.hardware = Some(hardware);
        (run.log.bands, run.cache.capacity_blocks) = (Some(1), Some(1));
        if has_segments {
            run.host.requests = 1;
            let names = ["segments_rewritten", "hit_blocks", "miss_blocks", "block_reads"];
            let counters = names.map(|name| (name.to_string(), 1_000_000));
            run.nodes.insert("segments".into(), counters.into_iter().collect());
        }
        run
    }

    fn headers(runs: Vec<Run>) -> Vec<&'static str> {
        let report = Report::of_runs(runs);
        let text = report.to_table(TableStyle::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= LINE_CHARS_MAX), "{text}");
        let words = |name: &str| text.lines().nth(2).is_some_and(|line| line.contains(name));
        ["disks", "flash", "raw", "p50", "blks"].into_iter().filter(|name| words(name)).collect()
    }

    #[test]
    fn hardware_is_told_where_it_differs() {
        let alike = vec![run("lru", 10, false), run("pore", 10, false)];
        assert_eq!(headers(alike), ["p50"]);
        let unlike = vec![run("lru", 10, false), run("pore", 20, false)];
        assert_eq!(headers(unlike), ["flash", "p50"], "the disks are the same");
        let mut swept = [10, 20].map(|flash| run("lru", flash, false)).to_vec();
        for (run, capacity) in swept.iter_mut().zip([10, 20]) {
            run.parameters.insert("cache.capacity".into(), capacity.into());
        }
        assert_eq!(headers(swept), ["p50"], "the settings say it");
    }

    #[test]
    fn details_of_segments_and_then_the_median_give_way_to_hardware() {
        let unlike = |name: &str, has_segments| {
            let mut other = run(name, 20, has_segments);
            let hardware = Hardware { disks: 4, memory_bytes: 64 << 20, ..Hardware::default() };
            other.hardware = Some(hardware);
            other
        };
        let all = ["disks", "flash", "raw", "p50"];
        assert_eq!(headers(vec![run("hwsr", 10, true), unlike("pore", false)]), all);
        // Where all runs have segments their details stay.
        let found = headers(vec![run("hwsr", 10, true), unlike("s-block", true)]);
        assert!(found.contains(&"blks") && !found.contains(&"p50"), "{found:?}");
        let long = "a-name-of-more-characters-";
        let found = headers(vec![run("hwsr", 10, true), unlike(long, false)]);
        assert_eq!(found, ["disks", "flash"], "names are kept, and not all has room");
    }
}
