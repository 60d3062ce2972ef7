//! What the script of the page needs, as JSON inside the page.

use serde::Serialize;

use super::super::report::{LatencyCdf, Report, Series};
use super::CHART_RUNS_MAX;
use super::lines::total_mib_per_s;
use crate::page::{PackedHeatMap, json_in_page};

#[derive(Serialize)]
struct Embedded<'a> {
    runs: Vec<EmbeddedRun<'a>>,
}

#[derive(Serialize)]
struct EmbeddedRun<'a> {
    label: String,
    finish_s: f64,
    latency: &'a LatencyCdf,
    throughput: Series,
    fill: &'a Series,
    heat: Option<PackedHeatMap>,
}

/// The JSON text, safe between script tags.
pub(super) fn embedded(report: &Report) -> String {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).map(|run| EmbeddedRun {
        label: run.label(),
        finish_s: run.costs.finish_s,
        latency: &run.figures.latency_cdf,
        throughput: total_mib_per_s(&run.figures),
        fill: &run.figures.persistent_cache_fill,
        heat: (!run.figures.band_writes.blocks.is_empty())
            .then(|| PackedHeatMap::of(&run.figures.band_writes, run.costs.finish_s)),
    });
    json_in_page(&Embedded { runs: runs.collect() })
}
