//! `[[plot]]`: what is found wrong in it, what is drawn, and that all shipped figures can be; why rows disagree.

use imbrex_report::page::chart::{Across, Chart, ChartKind};
use imbrex_sim::experiment::{Experiment, Outcome, Watch, execute, figures};
use imbrex_sim::reason::Reason;
use std::path::Path;

const FORM: &str = r#"
name = "form"
title = "a form"

[closed_form]
form = "hs-ratio"

[sweep]
region_tracks = [10, 20]
kappa = [3, 6]
spare = [0.1, 0.3]

[[stated]]
metric = "ten tracks"
unit = "x"
stated = 1.88
measure = "hs-ratio[kappa=6, spare=0.1, region_tracks=10].ratio"
tolerance = 0.01

[[stated]]
metric = "twenty tracks, far off"
unit = "x"
stated = 9
measure = "hs-ratio[region_tracks=20, kappa=6, spare=0.1].ratio"
reason = "paper-arithmetic"

[[plot]]
kind = "lines"
x = "region_tracks"
y_label = "ratio"
series = [{ name = "overlap of 6", measure = "hs-ratio[kappa=6, spare=0.1].ratio" }, { name = "one", measure = "1" }]
"#;

const RUNS: &str = r#"
name = "runs"
title = "runs"
size = "8 GiB"
systems = ["cmr-only", "lru"]

[[workload]]
path = "synthetic:uniform-random-write"
name = "a-like"
scale = 2000

[[workload]]
path = "synthetic:uniform-random-write"
name = "b-like"
scale = 4000

[sweep]
"cache.capacity" = ["1MiB", "4MiB"]

[[plot]]
kind = "bars"
mean = true
y_label = "time, s"
log = "y"
series = [{ name = "LRU", measure = "lru[capacity=4MiB].io_time_s.total" }]

[[plot]]
kind = "lines"
x = "capacity"
y_label = "time, s"
series = [{ name = "LRU", measure = "lru.finish_s" }, { name = "plain", measure = "cmr-only.finish_s" }]

[[plot]]
kind = "cdf"
y_label = "requests, %"
series = [{ name = "LRU", measure = "lru[capacity=1MiB].latency_cdf" }]

[[plot]]
kind = "table"
x = ["read", "write"]
workloads = ["a-like"]
series = [{ name = "blocks", measure = "cmr-only.{x}_blocks" }]
"#;

fn parse(text: &str) -> Result<Experiment, String> {
    Experiment::parse("mine.toml", text, Path::new("")).map_err(|error| error.to_string())
}

fn charts(text: &str) -> Vec<Chart> {
    let experiments = [parse(text).unwrap()];
    let outcomes = execute(&experiments, &[], None, 2, &Watch::nobody()).unwrap();
    experiments[0].charts(&outcomes[0]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_chart_has_the_places_of_its_axis_and_what_is_stated_of_them() {
    let [chart] = charts(FORM).try_into().unwrap();
    assert_eq!((chart.kind, &chart.across), (ChartKind::Lines, &Across::Numbers));
    let [overlap, one] = chart.series.try_into().unwrap();
    let stated: Vec<(f64, f64)> = overlap.stated.iter().map(|it| (it.x, it.value)).collect();
    assert_eq!(stated, [(10.0, 1.88), (20.0, 9.0)], "however the statement orders its keys");
    assert!((overlap.points[0].1.unwrap() - 1.88).abs() < 0.01);
    assert_eq!(one.points, [(10.0, Some(1.0)), (20.0, Some(1.0))]);
    assert!(one.stated.is_empty());
}

#[test]
fn charts_of_runs_have_workloads_swept_values_distributions_or_texts_across() {
    let [bars, lines, cdf, table] = charts(RUNS).try_into().unwrap();
    let names = ["a", "b", "mean"].map(String::from);
    assert_eq!(bars.across, Across::Names(names.to_vec()));
    let values: Vec<f64> = bars.series[0].points.iter().map(|point| point.1.unwrap()).collect();
    assert!((values[2] - (values[0] + values[1]) / 2.0).abs() < 1e-9, "{values:?}");
    assert_eq!(lines.across, Across::Names(["1MiB", "4MiB"].map(String::from).to_vec()));
    let plain = &lines.series[1].points;
    assert_eq!(plain[0].1, plain[1].1, "a stack without the key is the same everywhere");
    let names: Vec<&str> = cdf.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!((cdf.kind, names), (ChartKind::Curves, vec!["a", "b"]));
    let colours = [&bars.series[0], &lines.series[0], &lines.series[1], &cdf.series[0]];
    assert_eq!(colours.map(|series| series.colour), [0, 0, 1, 2], "LRU has one colour");
    assert_eq!(cdf.series[0].points.last().unwrap().1, Some(100.0));
    let blocks: Vec<f64> = table.series[0].points.iter().map(|point| point.1.unwrap()).collect();
    assert!(blocks[0] == 0.0 && blocks[1] > 0.0, "{blocks:?}");
}

#[test]
fn what_is_wrong_in_a_plot_is_said_before_anything_is_run() {
    for (from, to, expected) in [
        ("kind = \"bars\"", "kind = \"pie\"", "unknown variant `pie`, expected one of `bars`"),
        ("mean = true\n", "means = true\n", "did you mean `mean`?"),
        (
            "x = \"capacity\"",
            "x = \"capacitty\"",
            "mine.toml: [[plot]] 2: x = \"capacitty\": accepted: cache.capacity, workload",
        ),
        ("x = [\"read\", \"write\"]", "x = []", "[[plot]] 4: x = []: accepted: one text or more"),
        ("x = [\"read\", \"write\"]\n", "", "[[plot]] 4: a measure has `{x}`; accepted: with x ="),
        ("cmr-only.{x}_blocks", "cmr-only.read_blocks", "[[plot]] 4: x is a list, and no measure"),
        ("[\"a-like\"]", "[\"a-lik\"]", "no workload is named `a-lik`; did you mean `a-like`?"),
        (
            "lru.finish_s",
            "lur.finish_s",
            "[[plot]] 2: `LRU`: measure = \"lur.finish_s\": no run has the system `lur`; did you mean `lru`?",
        ),
        ("lru.finish_s", "lru[capacity=1MiB].finish_s", "`lru` fixes `capacity`, which is across"),
        ("capacity=4MiB", "capacity=5MiB", "cache.capacity is never `5MiB`"),
        ("latency_cdf", "finish_s", "no distribution; accepted: SYSTEM.latency_cdf"),
        ("kind = \"bars\"", "kind = \"stacked\"", "what is stacked has no logarithmic axis"),
        (
            "kind = \"cdf\"",
            "kind = \"cdf\"\nx = \"workload\"",
            "a distribution has its values across",
        ),
        (
            "kind = \"lines\"",
            "kind = \"lines\"\nmean = true",
            "accepted: where the workloads are across",
        ),
        ("y_label = \"requests, %\"\n", "", "[[plot]] 3: y_label is missing"),
        (
            "series = [{ name = \"LRU\", measure = \"lru[capacity=4MiB].io_time_s.total\" }]",
            "series = []",
            "series has 0",
        ),
    ] {
        assert!(RUNS.contains(from), "{from}");
        let error = parse(&RUNS.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains("mine.toml") && error.contains(expected), "{to}: {error}");
    }
    let experiments = [parse(&RUNS.replace("{x}_blocks", "{x}_blokcs")).unwrap()];
    let outcomes = execute(&experiments, &[], None, 2, &Watch::nobody()).unwrap();
    let error = experiments[0].charts(&outcomes[0]).unwrap_err().to_string();
    assert!(error.starts_with("mine.toml: [[plot]] 4: `blocks`: measure = "), "{error}");
    assert!(error.contains("`read_blokcs` of `read_blokcs` is not in a report"), "{error}");
}

fn outcomes_of(
    keep: impl Fn(&Experiment) -> bool,
    scale: Option<f64>,
) -> Vec<(imbrex_sim::experiment::Figure, Experiment, Outcome)> {
    let all = figures(None, None).unwrap().into_iter();
    let all = all.map(|figure| (figure, figure.experiment().unwrap()));
    let (figures, mut experiments): (Vec<_>, Vec<_>) = all.filter(|(_, it)| keep(it)).unzip();
    for experiment in &mut experiments {
        if let Some(scale) = scale {
            experiment.rescale(scale).unwrap();
        }
    }
    let outcomes = execute(&experiments, &[], None, 2, &Watch::nobody()).unwrap();
    figures.into_iter().zip(experiments).zip(outcomes).map(|((a, b), c)| (a, b, c)).collect()
}

/// The full size is what the others are about, and takes too long here.
#[test]
fn every_shipped_statement_and_chart_that_can_be_scaled_can_be_measured() {
    let mut drawn = 0;
    for (figure, experiment, outcome) in outcomes_of(Experiment::is_scalable, Some(64.0)) {
        let rows = experiment.rows(figure.paper, figure.figure, &outcome);
        let rows = rows.unwrap_or_else(|error| panic!("{error}"));
        assert!(rows.len() >= experiment.stated.len(), "{}", figure.figure);
        for row in rows {
            assert!(row.measured.is_some_and(f64::is_finite), "{row:?}");
        }
        let charts = experiment.charts(&outcome).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(charts.is_empty(), figure.paper == "ride", "{} {}", figure.paper, figure.figure);
        for chart in charts {
            let values = chart.series.iter().flat_map(|series| &series.points);
            assert!(values.filter(|point| point.1.is_some()).count() > 0, "{}", chart.title);
            drawn += 1;
        }
    }
    assert!(drawn > 25, "{drawn} charts");
}

#[test]
fn a_reason_is_told_of_rows_that_disagree_alone() {
    let experiments = [parse(FORM).unwrap()];
    let outcomes = execute(&experiments, &[], None, 1, &Watch::nobody()).unwrap();
    let reasons = |text: &str| -> Vec<Option<Reason>> {
        let rows = parse(text).unwrap().rows("", "form", &outcomes[0]).unwrap();
        rows.iter().map(|row| row.reason).collect()
    };
    assert_eq!(reasons(FORM), [None, Some(Reason::PaperArithmetic)]);
    let at_the_first = FORM.replace("0.01\n", "0.01\nreason = \"does-not-hold\"\n");
    assert_eq!(reasons(&at_the_first), reasons(FORM), "it changes nothing of one that agrees");
    let without = FORM.replace("reason = \"paper-arithmetic\"\n", "");
    assert_eq!(reasons(&without), [None, Some(Reason::Unexplained)]);
    let error = parse(&FORM.replace("paper-arithmetic", "unexplained")).unwrap_err();
    assert!(error.contains("`unexplained`") && error.contains("`shingled-physics`"), "{error}");
}

/// The others take their full size: `tests/e2e/soak_reasons.py` has them.
#[test]
fn every_formula_that_disagrees_has_a_reason() {
    let mut disagree = 0;
    for (figure, experiment, outcome) in outcomes_of(|it| it.closed_form.is_some(), None) {
        for row in experiment.rows(figure.paper, figure.figure, &outcome).unwrap() {
            assert_ne!(row.reason, Some(Reason::Unexplained), "{row:?}");
            disagree += usize::from(!row.agrees);
        }
    }
    assert!(disagree > 2, "{disagree}");
}
