//! What the script of the page needs, as JSON inside the page.

use serde::Serialize;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{LatencyCdf, Report};
use super::super::series::Series;
use super::activities;
use super::phases;
use super::responses::{self, Responses};
use super::strips::{Strip, total_mib_per_s};
use super::swept::{self, SweptChart};
use super::tables::charts;
use crate::page::{PackedHeatMap, json_in_page};

#[derive(Serialize)]
struct Embedded<'a> {
    runs: Vec<EmbeddedRun<'a>>,
    /// The charts of tables over time.
    charts: Vec<EmbeddedChart>,
    /// Those over swept keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    swept: Vec<SweptChart>,
}

#[derive(Serialize)]
struct EmbeddedChart {
    reader: String,
    unit: String,
    strips: Vec<EmbeddedStrip>,
}

#[derive(Serialize)]
struct EmbeddedStrip {
    /// Of the run in the report.
    index: usize,
    name: String,
    finish_s: f64,
    series: Series,
}

#[derive(Serialize)]
struct EmbeddedRun<'a> {
    label: String,
    finish_s: f64,
    latency: &'a LatencyCdf,
    throughput: Series,
    under_way: Series,
    fill: Series,
    heat: Option<PackedHeatMap>,
}

/// The JSON text, safe between script tags.
pub(super) fn embedded(report: &Report) -> String {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).map(|run| EmbeddedRun {
        label: run.label(),
        finish_s: run.costs.finish_s,
        latency: &run.figures.latency_cdf,
        throughput: readable(&total_mib_per_s(&run.figures)),
        under_way: readable(&run.figures.requests_under_way),
        fill: readable(&run.figures.persistent_cache_fill),
        heat: (!run.figures.band_writes.blocks.is_empty())
            .then(|| PackedHeatMap::of(&run.figures.band_writes, run.costs.finish_s)),
    });
    let charts = charts(report).into_iter().map(|chart| EmbeddedChart {
        reader: chart.reader,
        unit: chart.column.unit,
        strips: chart.strips.into_iter().map(embedded_strip).collect(),
    });
    let rebuilds: Vec<EmbeddedStrip> =
        phases::rebuilds(report).into_iter().map(embedded_strip).collect();
    let rebuilds = (!rebuilds.is_empty()).then(|| EmbeddedChart {
        reader: phases::REBUILD_READER.to_string(),
        unit: "%".to_string(),
        strips: rebuilds,
    });
    let activities = activities::charts(report).into_iter().map(|chart| EmbeddedChart {
        reader: chart.reader,
        unit: "number".to_string(),
        strips: chart.strips.into_iter().map(embedded_strip).collect(),
    });
    let kinds = responses::kinds(report).into_iter();
    let responses =
        kinds.flat_map(|(kind, of)| of.into_iter().map(move |of| embedded_responses(kind, &of)));
    let charts = charts.chain(rebuilds).chain(activities).chain(responses);
    let swept = swept::charts(report);
    json_in_page(&Embedded { runs: runs.collect(), charts: charts.collect(), swept })
}

fn embedded_strip(strip: Strip) -> EmbeddedStrip {
    let Strip { index, name, finish_s, series, .. } = strip;
    EmbeddedStrip { index, name, finish_s, series: readable(&series) }
}

/// The three lines of a run in the chart of its reads or writes.
fn embedded_responses(kind: &str, of: &Responses<'_>) -> EmbeddedChart {
    let strip = |(name, series): (&str, &Series)| EmbeddedStrip {
        index: of.index,
        name: name.to_string(),
        finish_s: of.finish_s,
        series: readable(series),
    };
    EmbeddedChart {
        reader: responses::reader(kind, of.index),
        unit: "ms".to_string(),
        strips: responses::NAMES.into_iter().zip(of.series).map(strip).collect(),
    }
}

/// The values to as many digits as the script reads out.
fn readable(series: &Series) -> Series {
    let digits = |value: &f64| format!("{value:.2e}").parse().expect("a formatted number parses");
    Series { bucket_s: series.bucket_s, values: series.values.iter().map(digits).collect() }
}
