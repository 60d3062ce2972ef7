//! `imbrex place`.

use super::console::emit;
use crate::args::PlaceArgs;
use crate::failure::Failure;
use imbrex_drives::toml_error::listed;
use imbrex_report::label;
use imbrex_sim::analysis::log_placement::{LogPlacement, PlacedVolume, place_logs};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is read of a report.
#[derive(Deserialize)]
struct Measured {
    runs: Vec<MeasuredRun>,
}

/// What is read of a run.
#[derive(Deserialize)]
struct MeasuredRun {
    system: String,
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
    configuration: Configuration,
    nodes: BTreeMap<String, BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct Configuration {
    node: Vec<ConfiguredNode>,
}

#[derive(Deserialize)]
struct ConfiguredNode {
    name: String,
    kind: String,
    #[serde(default)]
    below: Value,
}

impl MeasuredRun {
    fn label(&self) -> String {
        label(&self.system, &self.parameters)
    }

    fn node(&self, name: &str) -> Option<&ConfiguredNode> {
        self.configuration.node.iter().find(|node| node.name == name)
    }

    /// The disk below a node, through nodes that stand on one other.
    fn disk_of(&self, name: &str) -> Option<&str> {
        let mut node = self.node(name)?;
        // No stack is deeper than its nodes are many.
        for _ in 0..self.configuration.node.len() {
            match (&*node.kind, &node.below) {
                ("disk", _) => return Some(&node.name),
                (_, Value::String(below)) => node = self.node(below)?,
                _ => return None,
            }
        }
        None
    }

    /// How long the disk of a slice was busy with it.
    fn busy_ns(&self, slice: &str) -> Option<u64> {
        self.nodes.get(slice)?.get("busy_ns")?.as_u64()
    }

    /// The volumes whose log is a slice, and the disks of their logs and homes.
    fn volumes(&self) -> (Vec<PlacedVolume>, Vec<&str>) {
        let mut disks = Vec::new();
        let mut volumes = Vec::new();
        let mut number = |name| {
            disks.iter().position(|it| *it == name).unwrap_or_else(|| {
                disks.push(name);
                disks.len() - 1
            })
        };
        let nodes = self.configuration.node.iter();
        for node in nodes.filter(|node| node.kind == "persistent-cache") {
            let port = |key: &str| node.below.get(key)?.as_str();
            let (Some(log), Some(home)) = (port("log"), port("home")) else { continue };
            let (Some(log_disk), Some(home_disk), Some(log_busy_ns)) =
                (self.disk_of(log), self.disk_of(home), self.busy_ns(log))
            else {
                continue;
            };
            number(home_disk);
            let log_disk = number(log_disk);
            let (name, log, home) = (node.name.clone(), log.to_string(), home.to_string());
            volumes.push(PlacedVolume { name, log, log_disk, log_busy_ns, home });
        }
        (volumes, disks)
    }

    /// How long a disk was busy with all slices of it.
    fn disk_busy_ns(&self, disk: &str) -> u64 {
        let slices = self.configuration.node.iter().filter(|node| node.kind == "slice");
        let here = slices.filter(|slice| self.disk_of(&slice.name) == Some(disk));
        here.filter_map(|slice| self.busy_ns(&slice.name)).sum()
    }
}

/// Prints which disk should hold the log of which volume.
pub fn run(args: &PlaceArgs) -> Result<(), Failure> {
    let path = args.report.display();
    let text = std::fs::read(&args.report).map_err(|error| format!("{path}: {error}"))?;
    let report: Measured = serde_json::from_slice(&text)
        .map_err(|error| format!("{path}: not a report with the loads of a stack: {error}"))?;
    let run = chosen(&report, args.run.as_deref()).map_err(|words| format!("{path}: {words}"))?;
    let (volumes, disks) = run.volumes();
    if volumes.len() < 2 {
        let words = format!(
            "{path}: the stack of `{}` has {} volumes whose log is a slice of a disk with its load in the \
             report; accepted: a report of two or more, such as one of the stack `split`",
            run.label(),
            volumes.len()
        );
        return Err(words.into());
    }
    let busy: Vec<u64> = disks.iter().map(|disk| run.disk_busy_ns(disk)).collect();
    let placed = place_logs(&volumes, &busy);
    emit(&text_of(&volumes, &disks, &placed));
    Ok(())
}

/// The run that is meant.
fn chosen<'a>(report: &'a Measured, wanted: Option<&str>) -> Result<&'a MeasuredRun, String> {
    let is_meant = |run: &&MeasuredRun| wanted.is_none_or(|wanted| run.label() == wanted);
    let mut runs = report.runs.iter().filter(is_meant);
    match (runs.next(), runs.next()) {
        (Some(run), None) => Ok(run),
        (found, _) => {
            let labels: Vec<String> = report.runs.iter().map(MeasuredRun::label).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let what = match (wanted, found) {
                (Some(wanted), None) => format!("no run `{wanted}`"),
                _ => format!("{} runs", report.runs.len()),
            };
            Err(format!("{what}; accepted with --run: {}", listed(&labels)))
        }
    }
}

fn text_of(volumes: &[PlacedVolume], disks: &[&str], placed: &LogPlacement) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let width = disks.iter().map(|disk| disk.len()).max().unwrap_or(0);
    let mut text = format!("# {:width$}  {:>10}  {:>10}\n", "disk", "busy now", "then");
    for (at, disk) in disks.iter().enumerate() {
        let [now, then] = [placed.busy_before_ns[at], placed.busy_after_ns[at]].map(seconds);
        let _ = writeln!(text, "# {disk:width$}  {now:>8.1} s  {then:>8.1} s");
    }
    if placed.place_of.iter().copied().eq(0..volumes.len()) {
        text.push_str("# The logs are where these loads would have them.\n");
        return text;
    }
    text.push_str("\n[set]\n");
    for (volume, place) in volumes.iter().zip(&placed.place_of) {
        let (PlacedVolume { name, home, .. }, log) = (volume, &volumes[*place].log);
        let _ = writeln!(text, "\"{name}.below\" = {{ log = \"{log}\", home = \"{home}\" }}");
    }
    text
}
