//! One tidy table: a row for each run, a column for each swept key and each figure, its unit in its name.

use super::columns::{Columns, response_columns};
use super::report::{Report, Run, Workload};
use super::swept::text_of;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A column of whole numbers.
type Count = (&'static str, fn(&Run) -> Option<u64>);
/// A column of other numbers.
type Number = (&'static str, fn(&Run) -> Option<f64>);

const COUNTS: [Count; 15] = [
    ("requests", |run| Some(run.host.requests)),
    ("warm_up_requests", |run| Some(run.inputs.warm_up.map_or(0, |it| it.requests))),
    ("read_blocks", |run| Some(run.host.read_blocks)),
    ("write_blocks", |run| Some(run.host.write_blocks)),
    ("capacity_blocks", |run| run.cache.capacity_blocks),
    ("read_hits", |run| run.cache.capacity_blocks.map(|_| run.hits.read_hits)),
    ("write_hits", |run| run.cache.capacity_blocks.map(|_| run.hits.write_hits)),
    ("dirty_blocks_left", |run| run.cache.capacity_blocks.map(|_| run.cache.dirty_blocks_left)),
    ("footprint_bytes", |run| run.inputs.footprint_bytes),
    ("disks", |run| run.hardware.map(|it| it.disks)),
    ("flash_bytes", |run| run.hardware.map(|it| it.flash_bytes)),
    ("memory_bytes", |run| run.hardware.map(|it| it.memory_bytes)),
    ("raw_bytes", |run| run.hardware.map(|it| it.raw_bytes)),
    ("bands_rewritten", |run| run.log.bands.map(|_| run.rewrites.bands_rewritten)),
    ("band_bytes_written", |run| run.log.bands.map(|_| run.rewrites.band_bytes_written)),
];

const NUMBERS: [Number; 8] = [
    ("read_hit_ratio", |run| run.cache.capacity_blocks.and(run.hits.read_hit_ratio)),
    ("write_hit_ratio", |run| run.cache.capacity_blocks.and(run.hits.write_hit_ratio)),
    ("write_amplification_host", |run| run.rewrites.write_amplification.host),
    ("log_fill_max", |run| run.log.log_fill_max),
    ("persistent_cache_full_s", |run| run.time(run.log.persistent_cache_full_s)),
    ("io_time_s", |run| run.time(run.costs.io_time_s.total)),
    ("seek_time_s", |run| run.time(run.costs.seek_time_s)),
    ("finish_s", |run| run.time(run.costs.finish_s)),
];

/// The word that a document has for a value.
pub(super) fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).map_or_else(|_| String::new(), |value| text_of(&value))
}

/// A report in a table of several.
pub struct ResultsPart<'a> {
    /// What stands in the columns before its own, such as the paper and the figure.
    pub of: Vec<&'a str>,
    /// The report.
    pub report: &'a Report,
}

/// A run of which there is nothing but why it failed.
pub struct FailedRun<'a> {
    /// The workload as reports name it.
    pub workload: &'a str,
    /// The root seed.
    pub seed: u64,
    /// Name of the stack.
    pub system: &'a str,
    /// Swept settings.
    pub parameters: &'a BTreeMap<String, Value>,
    /// Why it failed.
    pub error: &'a str,
}

/// The table of runs as it is made: a row for each run, and a column for each of some swept keys.
pub struct ResultsTable {
    keys: BTreeSet<String>,
    has_errors: bool,
    rows: Columns,
}

impl ResultsTable {
    /// Without rows. `before` are the columns before its own; with `has_errors` the last column tells why a run failed.
    pub fn new(before: &[&str], keys: BTreeSet<String>, has_errors: bool) -> ResultsTable {
        let own = ["run", "workload", "workload_kind", "workload_sha256", "seed", "system"];
        let texts = before.iter().copied().chain(own).chain(keys.iter().map(String::as_str));
        let columns = texts.map(str::to_string).chain(figure_names());
        let columns = columns.chain(has_errors.then(|| "error".to_string()));
        let rows = Columns::new(columns);
        ResultsTable { keys, has_errors, rows }
    }

    /// Adds a run. What it does not have is absent.
    pub fn run(&mut self, of: &[&str], workload: &Workload, seed: u64, run: &Run) {
        let sha256 = workload.sha256.as_deref().unwrap_or_default();
        let own = [&run.label(), &workload.path, &word(workload.kind), sha256];
        self.begin(of, own, seed, &run.system, &run.parameters);
        let rows = &mut self.rows;
        COUNTS.iter().for_each(|(_, value)| _ = rows.integer(value(run)));
        NUMBERS.iter().for_each(|(_, value)| _ = rows.number(value(run)));
        let costs = &run.costs;
        rows.response_times([costs.response_ms, costs.read_response_ms, costs.write_response_ms]);
        if self.has_errors {
            rows.number(None);
        }
        rows.end();
    }

    /// Adds a run that failed to a table that tells why: it has no figures.
    pub fn failed(&mut self, run: &FailedRun<'_>) {
        let label = super::label(run.system, run.parameters);
        let own = [&*label, run.workload, "", ""];
        self.begin(&[], own, run.seed, run.system, run.parameters);
        figure_names().for_each(|_| _ = self.rows.number(None));
        self.rows.text(run.error).end();
    }

    fn begin(
        &mut self,
        of: &[&str],
        own: [&str; 4],
        seed: u64,
        system: &str,
        parameters: &BTreeMap<String, Value>,
    ) {
        let rows = &mut self.rows;
        of.iter().chain(&own).for_each(|it| _ = rows.text(it));
        rows.integer(Some(seed)).text(system);
        for key in &self.keys {
            rows.text(&parameters.get(key).map(text_of).unwrap_or_default());
        }
    }

    /// The table.
    pub fn finish(self) -> Columns {
        self.rows
    }
}

/// The columns of figures.
fn figure_names() -> impl Iterator<Item = String> {
    let counts = COUNTS.iter().map(|(name, _)| *name);
    let names = counts.chain(NUMBERS.iter().map(|(name, _)| *name));
    names.map(str::to_string).chain(response_columns())
}

/// One table of the runs of several reports, `before` being the columns before their own. It has a column for
/// each key that any of them swept; what a run does not have is empty.
pub fn results(before: &[&str], parts: &[ResultsPart<'_>]) -> Columns {
    let keys = parts.iter().flat_map(|part| part.report.swept_keys()).map(str::to_string);
    let mut table = ResultsTable::new(before, keys.collect(), false);
    for ResultsPart { of, report } in parts {
        for run in &report.runs {
            table.run(of, &report.workload, report.seed, run);
        }
    }
    table.finish()
}

impl Report {
    /// The table of the runs. What a run does not have is absent.
    pub(super) fn results(&self) -> Columns {
        results(&[], &[ResultsPart { of: vec![], report: self }])
    }
}
