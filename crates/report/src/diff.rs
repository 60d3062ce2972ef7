//! Two reports beside each other: what a change of a stack, a setting or a build did to the same runs.

use super::report::{Report, Run, SimulationCost};
use super::swept::{SWEPT_METRICS, SweptMetric, text_of};
use crate::format::optional;
use crate::page::chart::{Across, Chart, ChartKind, ChartSeries};
use crate::page::{escape, open_scroll, open_section, plain_document};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Runs that a chart has room for.
const CHART_RUNS_MAX: usize = 24;

/// Two reports.
pub struct ReportDiff<'a> {
    before: (&'a str, &'a Report),
    after: (&'a str, &'a Report),
    pairs: Vec<Pair<'a>>,
}

/// A run of both reports.
struct Pair<'a> {
    label: String,
    before: &'a Run,
    after: &'a Run,
    /// Whether they are the same in every number, what their simulation cost aside.
    is_same: bool,
}

/// A figure of both runs of a pair.
struct Change {
    metric: &'static SweptMetric,
    before: Option<f64>,
    after: Option<f64>,
}

impl Change {
    /// The second less the first, over the first.
    fn share(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before != 0.0).then(|| after / before - 1.0)
    }

    fn share_words(&self) -> String {
        let words = |share: f64| format!("{:+.1} %", 100.0 * share);
        self.share().map_or_else(|| "-".to_string(), words)
    }
}

impl Pair<'_> {
    /// The figures that differ.
    fn changes(&self) -> Vec<Change> {
        let change = |metric: &'static SweptMetric| Change {
            metric,
            before: (metric.value)(self.before),
            after: (metric.value)(self.after),
        };
        let changes = SWEPT_METRICS.iter().map(change);
        changes.filter(|change| change.before != change.after).collect()
    }
}

/// A run without what its simulation cost.
fn without_cost(run: &Run) -> Run {
    Run { simulation: SimulationCost::default(), ..run.clone() }
}

impl<'a> ReportDiff<'a> {
    /// Of two reports with what they are called. Runs belong together that have the same system and swept settings.
    pub fn new(before: (&'a str, &'a Report), after: (&'a str, &'a Report)) -> ReportDiff<'a> {
        let pair = |first: &'a Run| {
            let label = first.label();
            let second = after.1.runs.iter().find(|run| run.label() == label)?;
            let is_same = without_cost(first) == without_cost(second);
            Some(Pair { label, before: first, after: second, is_same })
        };
        let pairs = before.1.runs.iter().filter_map(pair).collect();
        ReportDiff { before, after, pairs }
    }

    /// What keeps the reports from being comparable, and runs that one of them lacks.
    fn caveats(&self) -> Vec<String> {
        let ((first, before), (second, after)) = (self.before, self.after);
        let mut words = Vec::new();
        let mut differs = |what: &str, of_first: String, of_second: String| {
            if of_first != of_second {
                words
                    .push(format!("{what} differ: {of_first} in {first}, {of_second} in {second}"));
            }
        };
        let content = |report: &Report| {
            let workload = &report.workload;
            let sha256 = workload
                .sha256
                .as_deref()
                .map(|it| format!(" (sha256 {})", &it[..12.min(it.len())]));
            format!("{}{}", workload.path, sha256.unwrap_or_default())
        };
        let is_same_file =
            before.workload.sha256.is_some() && before.workload.sha256 == after.workload.sha256;
        if !is_same_file {
            differs("workloads", content(before), content(after));
        }
        differs(
            "requests",
            before.workload.requests.to_string(),
            after.workload.requests.to_string(),
        );
        differs("seeds", before.seed.to_string(), after.seed.to_string());
        differs("builds", before.commit.clone(), after.commit.clone());
        words.extend(self.settings());
        for ((name, report), (other_name, other)) in
            [(self.before, self.after), (self.after, self.before)]
        {
            let is_missing = |run: &&Run| other.runs.iter().all(|it| it.label() != run.label());
            let missing: Vec<String> =
                report.runs.iter().filter(is_missing).map(Run::label).collect();
            if !missing.is_empty() {
                words.push(format!("only in {name}, not in {other_name}: {}", missing.join(", ")));
            }
        }
        words
    }

    /// Settings of nodes that differ in runs that belong together, each once.
    fn settings(&self) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        for pair in &self.pairs {
            let (before, after) = (settings_of(pair.before), settings_of(pair.after));
            let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for key in keys {
                let [first, second] = [before.get(key), after.get(key)];
                if first != second {
                    let text =
                        |value: Option<&&Value>| value.map_or("none".into(), |it| text_of(it));
                    let word = format!("{key} ({} and {})", text(first), text(second));
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
            }
        }
        (!words.is_empty()).then(|| format!("settings differ: {}", words.join(", ")))
    }

    /// How many runs are the same, in words.
    fn summary(&self) -> String {
        let pairs = &self.pairs;
        let same = pairs.iter().filter(|pair| pair.is_same).count();
        let figures =
            pairs.iter().filter(|pair| !pair.is_same && pair.changes().is_empty()).count();
        let mut words = format!("{same} of {} runs are the same in every number", pairs.len());
        if figures > 0 {
            let _ = write!(words, "; {figures} differ, though in none of these figures");
        }
        words + "."
    }

    /// A line for each figure of each run that differs.
    pub fn to_text(&self) -> String {
        let pairs = &self.pairs;
        let mut text = format!("{} and {}\n", self.before.0, self.after.0);
        for caveat in self.caveats() {
            let _ = writeln!(text, "{caveat}");
        }
        let mut table = Table::new();
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.load_style(presets::NOTHING);
        table.set_header(["run", "figure", "before", "after", "change"]);
        for pair in pairs {
            for (at, change) in pair.changes().iter().enumerate() {
                table.add_row([
                    if at == 0 { pair.label.clone() } else { String::new() },
                    change.metric.title(),
                    optional(change.before),
                    optional(change.after),
                    change.share_words(),
                ]);
            }
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if at == 0 { 0 } else { 1 }, 1));
            if at > 1 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        if table.row_count() > 0 {
            let lines: Vec<String> =
                table.lines().map(|line| line.trim_end().to_string()).collect();
            let _ = writeln!(text, "\n{}", lines.join("\n"));
        }
        text.push('\n');
        text + &self.summary() + "\n"
    }

    /// The same as a document.
    pub fn to_json(&self) -> Value {
        let change = |change: &Change| {
            json!({
                "name": change.metric.name, "unit": change.metric.unit, "before": change.before,
                "after": change.after, "change": change.share(),
            })
        };
        let run = |pair: &Pair<'_>| {
            let changes: Vec<Value> = pair.changes().iter().map(change).collect();
            json!({"run": pair.label, "is_same": pair.is_same, "changes": changes})
        };
        json!({
            "schema": "imbrex.diff/1", "before": self.before.0, "after": self.after.0,
            "caveats": self.caveats(), "runs": self.pairs.iter().map(run).collect::<Vec<_>>(),
        })
    }

    /// The page: each figure of each run before and after.
    pub fn to_html(&self) -> String {
        let pairs = &self.pairs;
        let title = format!("{} and {}", self.before.0, self.after.0);
        let mut body = String::new();
        let _ = writeln!(
            body,
            "<header><p class=\"eyebrow\">imbrex diff</p><h1>{}</h1>\n<p>{}</p>",
            escape(&title),
            escape(&self.summary())
        );
        let caveats: Vec<String> = self.caveats().iter().map(|it| escape(it)).collect();
        if !caveats.is_empty() {
            let _ = writeln!(body, "<p class=\"notice\">{}</p>", caveats.join("<br>"));
        }
        body.push_str("</header>\n");
        let differs = |metric: &&SweptMetric| {
            pairs.iter().any(|pair| (metric.value)(pair.before) != (metric.value)(pair.after))
        };
        for metric in SWEPT_METRICS.iter().filter(differs) {
            let why = "Each run of both reports, and by how much it changed.";
            open_section(&metric.title(), why, &mut body);
            self.chart(metric).show(&mut body);
            table(metric, pairs, &mut body);
            body.push_str("</section>\n");
        }
        plain_document(&title, &body)
    }

    fn chart(&self, metric: &SweptMetric) -> Chart {
        let pairs = &self.pairs;
        let shown = &pairs[..pairs.len().min(CHART_RUNS_MAX)];
        let series = |name: &str, colour, of: &dyn Fn(&Pair<'_>) -> Option<f64>| ChartSeries {
            name: name.to_string(),
            colour,
            points: shown.iter().enumerate().map(|(at, pair)| (at as f64, of(pair))).collect(),
            stated: vec![],
        };
        let more = match pairs.len() - shown.len() {
            0 => String::new(),
            _ => format!(", the first {} of {} runs", shown.len(), pairs.len()),
        };
        Chart {
            title: format!("{}{more}", metric.title()),
            kind: ChartKind::Bars,
            across: Across::Names(shown.iter().map(|pair| pair.label.clone()).collect()),
            x_label: String::new(),
            y_label: metric.title(),
            x_log: false,
            y_log: false,
            series: vec![
                series(self.before.0, 0, &|pair| (metric.value)(pair.before)),
                series(self.after.0, 1, &|pair| (metric.value)(pair.after)),
            ],
        }
    }
}

/// The settings of the nodes of a run, as `NODE.KEY`.
fn settings_of(run: &Run) -> BTreeMap<String, &Value> {
    let nodes = run.configuration.get("node").and_then(Value::as_array).into_iter().flatten();
    let mut settings = BTreeMap::new();
    for node in nodes.filter_map(Value::as_object) {
        let name = node.get("name").and_then(Value::as_str).unwrap_or_default();
        settings.extend(node.iter().map(|(key, value)| (format!("{name}.{key}"), value)));
    }
    settings
}

fn table(metric: &'static SweptMetric, pairs: &[Pair<'_>], body: &mut String) {
    open_scroll(metric.name, body);
    body.push_str(
        "<table><thead><tr><th>run</th><th>before</th><th>after</th><th>change</th></tr></thead><tbody>\n",
    );
    for pair in pairs {
        let change = Change {
            metric,
            before: (metric.value)(pair.before),
            after: (metric.value)(pair.after),
        };
        let _ = writeln!(
            body,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&pair.label),
            optional(change.before),
            optional(change.after),
            change.share_words()
        );
    }
    body.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplayMode;

    fn report(times: &[(&str, f64)]) -> Report {
        let run = |(system, time): &(&str, f64)| {
            let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
            run.costs.io_time_s.total = *time;
            run
        };
        Report::of_runs(times.iter().map(run).collect())
    }

    #[test]
    fn figures_that_differ_are_told_with_their_change() {
        let before = report(&[("lru", 100.0), ("pore", 50.0), ("gone", 1.0)]);
        let mut after = report(&[("pore", 40.0), ("lru", 100.0), ("new", 1.0)]);
        after.seed = before.seed + 1;
        after.runs[1].simulation.wall_s = 7.0;
        after.runs[0].configuration = json!({"node": [{"name": "cache", "capacity": "2%"}]});
        let diff = ReportDiff::new(("a", &before), ("b", &after));
        let text = diff.to_text();
        let line = text.lines().find(|line| line.starts_with("pore")).unwrap_or_default();
        let cells: Vec<&str> =
            line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
        assert_eq!(cells, ["pore", "I/O time, s", "50.0", "40.0", "-20.0 %"], "{text}");
        assert!(text.contains("1 of 2 runs are the same in every number."), "{text}");
        assert!(text.contains("only in a, not in b: gone\nonly in b, not in a: new\n"), "{text}");
        assert!(text.contains("seeds differ: "), "{text}");
        assert!(text.contains("settings differ: cache.capacity (none and 2%), "), "{text}");
        let document = diff.to_json();
        assert_eq!(document["runs"][0]["is_same"], true);
        assert_eq!(document["runs"][1]["changes"][0]["change"], 40.0 / 50.0 - 1.0);
        let page = diff.to_html();
        assert!(page.contains("<td>-20.0 %</td>") && page.contains("<svg"), "{page}");
    }

    #[test]
    fn a_report_is_the_same_as_itself() {
        let one = report(&[("lru", 1.0)]);
        let diff = ReportDiff::new(("a", &one), ("a", &one));
        assert_eq!(diff.to_text(), "a and a\n\n1 of 1 runs are the same in every number.\n");
        assert!(!diff.to_html().contains("<svg"));
    }
}
