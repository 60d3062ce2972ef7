//! Experiments that compute a closed form: what they say beside the paper, and what is refused.

use imbrex_report::{FormTable, WorkloadKind};
use imbrex_sim::experiment::{Experiment, Found, Watch, execute, figures};
use imbrex_stack::Setting;
use std::path::Path;

const RATIO: &str = r#"
name = "test"
title = "a test"

[closed_form]
form = "hs-ratio"

[sweep]
region_tracks = [10, 32]
kappa = [3]
spare = [0.1, 0.3]

[[stated]]
metric = "m"
unit = "x"
stated = 1.988
measure = "hs-ratio[region_tracks=10, spare=0.3].ratio"
tolerance = 0.0005
"#;

fn parse(text: &str) -> Experiment {
    Experiment::parse("test.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    let error = Experiment::parse("test.toml", text, Path::new("")).unwrap_err();
    error.to_string()
}

fn table(experiment: Experiment) -> FormTable {
    let mut outcomes = execute(&[experiment], &[], None, 1, &Watch::nobody()).unwrap();
    let mut workloads = outcomes.remove(0).workloads;
    assert_eq!((workloads.len(), workloads[0].kind), (1, WorkloadKind::ClosedForm));
    match workloads.remove(0).found {
        Found::Form(table) => table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_form_is_computed_at_every_combination() {
    let table = table(parse(RATIO));
    assert_eq!(table.points.len(), 4);
    let csv = table.to_csv();
    let mut lines = csv.lines();
    let head = "kappa,region_tracks,spare,ratio,ratio_extra_slots,used_by_segments,used_by_s_blocks,\
                used_by_s_blocks_extra_slots";
    assert_eq!(lines.next(), Some(head));
    assert!(lines.next().is_some_and(|line| line.starts_with("3,10,0.1,1.5458937")), "{csv}");
}

#[test]
fn a_row_says_that_no_workload_was_run() {
    let experiment = parse(RATIO);
    let experiments = [experiment];
    let outcomes = execute(&experiments, &[], None, 1, &Watch::nobody()).unwrap();
    let rows = experiments[0].rows("hwsr", "figure-7", &outcomes[0]).unwrap();
    let row = serde_json::to_value(&rows[0]).unwrap();
    assert_eq!(row["workload_kind"], "closed form");
    assert_eq!(row["agrees"], true, "{row}");
}

#[test]
fn the_shipped_forms_can_all_be_measured() {
    let mut measured = 0;
    for figure in figures(Some("hwsr"), None).unwrap() {
        let experiment = figure.experiment().unwrap();
        if experiment.closed_form.is_none() {
            continue;
        }
        let experiments = [experiment];
        let outcomes = execute(&experiments, &[], None, 1, &Watch::nobody()).unwrap();
        let rows = experiments[0].rows("hwsr", figure.figure, &outcomes[0]).unwrap();
        for row in &rows {
            assert!(row.measured.is_some_and(f64::is_finite), "{row:?}");
        }
        measured += rows.len();
    }
    assert!(measured >= 8, "{measured} rows");
}

#[test]
fn the_files_are_written_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    table(parse(RATIO)).write_to(&folder.path().join("out")).unwrap();
    let entries = std::fs::read_dir(folder.path().join("out")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["closed_form.csv", "closed_form.html", "closed_form.json"]);
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = table(parse(RATIO)).write_to(&file).unwrap_err().to_string();
    assert!(error.contains("file: "), "{error}");
}

#[test]
fn what_is_wrong_is_said_with_key_value_and_what_is_accepted() {
    let accepted = "accepted: form \"hs-ratio\" takes region_tracks, kappa, spare";
    for (from, to, expected) in [
        ("kappa = [3]", "kapa = [3]", format!("[sweep] has no `kappa`; {accepted}")),
        (
            "kappa = [3]",
            "kappa = [3]\nmore = [1]",
            format!("[sweep] unknown key `more`; {accepted}"),
        ),
        ("kappa = [3]", "kappa = []", "[sweep] kappa has no value".to_string()),
        (
            "kappa = [3]",
            "kappa = [3, 0]",
            "[sweep] kappa = 0; accepted: a whole number, 1 to 1,000,000,000".to_string(),
        ),
        (
            "kappa = [3]",
            "kappa = [2.5]",
            "[sweep] kappa = 2.5; accepted: a whole number, 1 to 1,000,000,000".to_string(),
        ),
        (
            "[10, 32]",
            "[\"ten\"]",
            "[sweep] region_tracks = \"ten\"; accepted: a whole number, 1 to 1,000,000,000"
                .to_string(),
        ),
        (
            "[0.1, 0.3]",
            "[0.1, 1.0]",
            "[sweep] spare = 1.0; accepted: a share, 0 or more and below 1".to_string(),
        ),
        (
            "[0.1, 0.3]",
            "[nan]",
            "[sweep] spare = nan; accepted: a share, 0 or more and below 1".to_string(),
        ),
        (
            "[closed_form]",
            "systems = [\"lru\"]\n[closed_form]",
            "[closed_form] runs nothing: leave out `systems`".to_string(),
        ),
        (
            "[closed_form]",
            "[workload]\npath = \"a.csv\"\n[closed_form]",
            "[closed_form] runs nothing: leave out [[workload]]".to_string(),
        ),
    ] {
        let error = refused(&RATIO.replacen(from, to, 1));
        assert_eq!(error, format!("test.toml: {expected}"));
    }
    let unknown = refused(&RATIO.replacen("\"hs-ratio\"", "\"hs\"", 1));
    assert!(
        unknown.starts_with("test.toml:6: ")
            && unknown.contains("`hs`")
            && unknown.contains(
                "`hs-ratio`, `omega`, `space-efficiency`, `table-size`, `mean-time-to-loss`"
            ),
        "{unknown}"
    );
    let elsewhere = refused(&RATIO.replacen("spare=0.3]", "spare=0.2]", 1));
    assert!(elsewhere.contains("spare is never `0.2`; it is 0.1, 0.3"), "{elsewhere}");
}

#[test]
fn settings_of_nodes_are_refused() {
    let setting = Setting::parse("cache.capacity=1MiB").unwrap();
    let error = execute(&[parse(RATIO)], &[setting], None, 1, &Watch::nobody()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("cache.capacity: test.toml has a [closed_form] and no nodes"),
        "{error}"
    );
}
