//! One tidy table: a row for each run, a column for each swept key and each figure, its unit in its name.

use super::columns::{Columns, response_columns};
use super::report::{Report, Run};
use super::swept::text_of;
use serde::Serialize;
use std::collections::BTreeSet;

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
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).map_or_else(|_| String::new(), |value| text_of(&value))
}

/// A report in a table of several.
pub struct ResultsPart<'a> {
    /// What stands in the columns before its own, such as the paper and the figure.
    pub of: Vec<&'a str>,
    /// The report.
    pub report: &'a Report,
}

/// One table of the runs of several reports, `before` being the columns before their own. It has a column for
/// each key that any of them swept; what a run does not have is empty.
pub fn results(before: &[&str], parts: &[ResultsPart<'_>]) -> Columns {
    let keys: BTreeSet<&str> = parts.iter().flat_map(|part| part.report.swept_keys()).collect();
    let own = ["run", "workload", "workload_kind", "workload_sha256", "seed", "system"];
    let figures = COUNTS.iter().map(|(name, _)| *name).chain(NUMBERS.iter().map(|(name, _)| *name));
    let columns = before.iter().copied().chain(own).chain(keys.iter().copied()).chain(figures);
    let columns = columns.map(str::to_string).chain(response_columns());
    let mut rows = Columns::new(columns);
    for ResultsPart { of, report } in parts {
        for run in &report.runs {
            of.iter().for_each(|it| _ = rows.text(it));
            report.row_of(run, &keys, &mut rows);
        }
    }
    rows
}

impl Report {
    /// The table of the runs. What a run does not have is absent.
    pub(super) fn results(&self) -> Columns {
        results(&[], &[ResultsPart { of: vec![], report: self }])
    }

    /// The row of a run, the columns before it being there already.
    fn row_of(&self, run: &Run, keys: &BTreeSet<&str>, rows: &mut Columns) {
        rows.text(&run.label()).text(&self.workload.path).text(&word(self.workload.kind));
        rows.text(self.workload.sha256.as_deref().unwrap_or_default());
        rows.integer(Some(self.seed)).text(&run.system);
        for key in keys {
            rows.text(&run.parameters.get(*key).map(text_of).unwrap_or_default());
        }
        COUNTS.iter().for_each(|(_, value)| _ = rows.integer(value(run)));
        NUMBERS.iter().for_each(|(_, value)| _ = rows.number(value(run)));
        let costs = &run.costs;
        rows.response_times([costs.response_ms, costs.read_response_ms, costs.write_response_ms]);
        rows.end();
    }
}
