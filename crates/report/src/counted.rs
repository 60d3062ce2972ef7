//! Reports as documents. Those of runs in which nothing took time have the counters and no time.

use super::by_cause::ByCause;
use super::no_cleaning::NoCleaning;
use super::report::{DiskUse, ReplayMode, Report, Run, SimulationCost, Workload};
use super::run_parts::{CacheUse, Hardware, Hits, Inputs, RequestCounts, Rewrites};
use super::windows::CutUse;
use super::zone_use::ZoneUse;
use imbrex_core::counters::{Counter, Unit, declared};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

impl Run {
    /// Whether nothing took time: there are counters alone.
    pub fn is_untimed(&self) -> bool {
        self.inputs.replay == ReplayMode::Untimed
    }

    /// A time of the run; none where nothing took any.
    pub(super) fn time(&self, value: f64) -> Option<f64> {
        (!self.is_untimed()).then_some(value)
    }

    /// Operations of a disk under the name of their counter; none where time decides in how many operations
    /// its blocks are read and written.
    pub(super) fn operations(&self, disk: &DiskUse, counter: Counter) -> Option<u64> {
        self.nodes.get(&disk.name)?.get(counter.name()).copied()
    }

    /// Takes out what only a drive model can know: times, the way of the arm, and what the medium moved in
    /// parts of a disk; where `has_cache`, also how many operations its disks have. A cache writes below while
    /// the host goes on, so when that ends decides which slots are free and adjoin, and whether a translation
    /// finds what is read in its log or at home.
    pub fn leave_out_times(&mut self, has_cache: bool) {
        let is_count = |name: &String| {
            let is_time = declared(name).is_some_and(|known| known.unit == Unit::Ns);
            let of_operations = [Counter::Reads, Counter::Writes].map(Counter::name);
            !is_time
                && name != Counter::SeekTracks.name()
                && !(has_cache && of_operations.contains(&name.as_str()))
        };
        for counted in self.nodes.values_mut() {
            counted.retain(|name, _| is_count(name));
        }
        self.disks.iter_mut().for_each(|disk| disk.areas.clear());
    }
}

impl Report {
    /// The JSON document, one line with its newline; undefined numbers are null.
    pub fn to_json(&self) -> String {
        let text = match self.is_untimed() {
            true => serde_json::to_string(&CountedReport::of(self)),
            false => serde_json::to_string(self),
        };
        let mut text = text.expect("a report has only string keys");
        text.push('\n');
        text
    }

    /// The report of a JSON document. One without times has zeros for what it leaves out, which no figure shows of it.
    ///
    /// # Errors
    /// When the text is no report.
    pub fn from_json(text: &str) -> Result<Report, serde_json::Error> {
        let error = match serde_json::from_str(text) {
            Ok(report) => return Ok(report),
            Err(error) => error,
        };
        let mut document: Value = serde_json::from_str(text)?;
        let runs = document.get_mut("runs").and_then(Value::as_array_mut).into_iter().flatten();
        let untimed = serde_json::to_value(Run::new("", ReplayMode::Untimed));
        let (run_of, disk_of) = (untimed?, serde_json::to_value(DiskUse::default())?);
        let mut is_untimed = false;
        for run in runs.filter(|run| run.get("replay") == run_of.get("replay")) {
            is_untimed = true;
            fill(run, &run_of);
            let disks = run.get_mut("disks").and_then(Value::as_array_mut);
            disks.into_iter().flatten().for_each(|disk| fill(disk, &disk_of));
        }
        if is_untimed { serde_json::from_value(document) } else { Err(error) }
    }

    /// Whether all runs are untimed.
    pub fn is_untimed(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(Run::is_untimed)
    }
}

/// Adds the keys that a document lacks and `whole` has.
fn fill(document: &mut Value, whole: &Value) {
    if let (Value::Object(document), Value::Object(whole)) = (document, whole) {
        for (key, value) in whole {
            match document.get_mut(key) {
                Some(there) => fill(there, value),
                None => drop(document.insert(key.clone(), value.clone())),
            }
        }
    }
}

/// The document of a report without times.
#[derive(Serialize)]
struct CountedReport<'a> {
    schema: &'a str,
    commit: &'a str,
    seed: u64,
    workload: &'a Workload,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left: &'a [String],
    runs: Vec<CountedRun<'a>>,
}

/// What one system did, with the keys and the order of [`Run`].
#[derive(Serialize)]
struct CountedRun<'a> {
    system: &'a str,
    parameters: &'a BTreeMap<String, Value>,
    #[serde(flatten)]
    host: &'a RequestCounts,
    #[serde(flatten)]
    hits: &'a Hits,
    #[serde(flatten)]
    rewrites: &'a Rewrites,
    write_amplification_by_cause: ByCause<Option<f64>>,
    simulation: SimulationCost,
    #[serde(flatten)]
    inputs: &'a Inputs,
    #[serde(flatten)]
    cache: &'a CacheUse,
    #[serde(flatten)]
    log: CountedLog,
    #[serde(skip_serializing_if = "Option::is_none")]
    zones: &'a Option<ZoneUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_into_windows: &'a Option<CutUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hardware: &'a Option<Hardware>,
    disks: Vec<CountedDisk<'a>>,
    #[serde(flatten)]
    stack: CountedStack<'a>,
}

/// The bands and the logs of the translations.
#[derive(Serialize)]
struct CountedLog {
    bands: Option<u64>,
    band_seed: Option<u64>,
    persistent_cache_bytes: Option<u64>,
    persistent_cache_bytes_appended: u64,
    persistent_cache_bytes_merged: u64,
    scratch_bytes_written: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_cleaning: Option<NoCleaning>,
}

/// What one disk was asked for.
#[derive(Serialize)]
struct CountedDisk<'a> {
    name: &'a str,
    drive: &'a str,
    drive_sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writes: Option<u64>,
    read_bytes: ByCause<u64>,
    written_bytes: ByCause<u64>,
    write_amplification: ByCause<Option<f64>>,
}

/// The nodes of the stack.
#[derive(Serialize)]
struct CountedStack<'a> {
    nodes: &'a BTreeMap<String, BTreeMap<String, u64>>,
    roles: &'a BTreeMap<String, Vec<String>>,
    configuration: &'a Value,
    resolved: &'a BTreeMap<String, Value>,
}

impl<'a> CountedReport<'a> {
    fn of(report: &'a Report) -> CountedReport<'a> {
        CountedReport {
            schema: &report.schema,
            commit: &report.commit,
            seed: report.seed,
            workload: &report.workload,
            left: &report.left,
            runs: report.runs.iter().map(CountedRun::of).collect(),
        }
    }
}

impl<'a> CountedRun<'a> {
    fn of(run: &'a Run) -> CountedRun<'a> {
        let log = &run.log;
        CountedRun {
            system: &run.system,
            parameters: &run.parameters,
            host: &run.host,
            hits: &run.hits,
            rewrites: &run.rewrites,
            write_amplification_by_cause: run.costs.write_amplification_by_cause,
            simulation: run.simulation,
            inputs: &run.inputs,
            cache: &run.cache,
            log: CountedLog {
                bands: log.bands,
                band_seed: log.band_seed,
                persistent_cache_bytes: log.persistent_cache_bytes,
                persistent_cache_bytes_appended: log.persistent_cache_bytes_appended,
                persistent_cache_bytes_merged: log.persistent_cache_bytes_merged,
                scratch_bytes_written: log.scratch_bytes_written,
                no_cleaning: log.no_cleaning.clone(),
            },
            zones: &run.zones,
            cut_into_windows: &run.windows.cut_into_windows,
            hardware: &run.hardware,
            disks: run.disks.iter().map(|disk| CountedDisk::of(run, disk)).collect(),
            stack: CountedStack {
                nodes: &run.nodes,
                roles: &run.roles,
                configuration: &run.configuration,
                resolved: &run.resolved,
            },
        }
    }
}

impl<'a> CountedDisk<'a> {
    fn of(run: &Run, disk: &'a DiskUse) -> CountedDisk<'a> {
        CountedDisk {
            name: &disk.name,
            drive: &disk.drive,
            drive_sha256: disk.drive_sha256.as_deref(),
            reads: run.operations(disk, Counter::Reads),
            writes: run.operations(disk, Counter::Writes),
            read_bytes: disk.read_bytes,
            written_bytes: disk.written_bytes,
            write_amplification: disk.write_amplification,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_times_reads_back() {
        let mut run = Run::new("lru", ReplayMode::Untimed);
        run.host.write_blocks = 7;
        run.disks = vec![DiskUse { name: "smr".into(), ..DiskUse::default() }];
        run.nodes.entry("smr".into()).or_default().insert("reads".into(), 3);
        let written = Report::of_runs(vec![run]).to_json();
        assert!(!written.contains("write_cache"), "{written}");
        let read = Report::from_json(&written).unwrap();
        assert_eq!(read.to_json(), written);
        for text in ["", "{}", &written[..written.len() - 9], &written.replace("lru\"", "lru\" ")] {
            let read = Report::from_json(text);
            assert_eq!(read.is_ok(), text.contains("lru\" "), "{read:?}");
        }
    }
}
