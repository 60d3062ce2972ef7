//! Experiment files: reading, sweeping, running and setting stated numbers beside measured ones.

use imbrex_sim::basis::Basis;
use imbrex_sim::experiment::{Experiment, Found, Outcome, Row, Watch, execute, figures, points};
use imbrex_sim::progress::Step;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;

/// Two systems on a small load, swept over two keys.
const SWEPT: &str = r#"
name = "swept"
title = "a test"
size = "8 GiB"
systems = ["cmr-only", "pore"]

[workload]
path = "synthetic:uniform-random-write"
scale = 500

[set]
"translation.bands" = "fixed:18MiB"

[sweep]
"cache.zone" = ["2MiB", "20MiB"]
"cache.capacity" = ["4MiB", "1MiB"]
"#;

fn parse(text: &str) -> Experiment {
    Experiment::parse("test.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

/// The message of an experiment that is refused when it is read.
fn refused(text: &str) -> String {
    let result = Experiment::parse("test.toml", text, Path::new(""));
    result.expect_err("it is refused").to_string()
}

/// The message of an experiment that is refused when its stacks are made.
fn refused_stacks(text: &str) -> String {
    parse(text).stacks(&[]).expect_err("it is refused").to_string()
}

fn run(experiment: &Experiment, jobs: usize) -> Outcome {
    let experiments = std::slice::from_ref(experiment);
    let outcomes = execute(experiments, &[], None, jobs, &Watch::nobody());
    outcomes.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn labels(outcome: &Outcome) -> Vec<String> {
    match &outcome.workloads[0].found {
        Found::Runs(report) => report.runs.iter().map(|run| run.label()).collect(),
        Found::Trace(_) | Found::Form(_) => panic!("stacks were run"),
    }
}

#[test]
fn every_combination_of_a_sweep_comes_once_the_first_key_slowest() {
    let points = points(&parse(SWEPT).sweep);
    let texts: Vec<String> = points
        .iter()
        .map(|point| format!("{} {}", point["cache.capacity"], point["cache.zone"]))
        .collect();
    let expected =
        ["\"4MiB\" \"2MiB\"", "\"4MiB\" \"20MiB\"", "\"1MiB\" \"2MiB\"", "\"1MiB\" \"20MiB\""];
    assert_eq!(texts, expected);
}

/// Each has its keys in its report as its file states them.
#[test]
fn runs_that_differ_in_a_stated_default_are_made_once() {
    let with = |rotation: &str| {
        let head = "name = \"it\"\ntitle = \"a test\"\nsystems = [\"hwsr\"]\n\
                    [workload]\npath = \"synthetic:uniform-random-write\"\nscale = 1000\n\
                    [set]\n\"buffer.capacity\" = \"0\"\n\"cache.capacity\" = \"0\"\n";
        parse(&format!("{head}{rotation}"))
    };
    let experiments = [r#""disk.rotation" = "on""#, "", r#""disk.rotation" = "off""#].map(with);
    let told = Mutex::new(0);
    let progress = |step: &Step<'_>| *told.lock().expect("nobody panics") = step.total;
    let watch = Watch::to_the_end(&progress);
    let outcomes = execute(&experiments, &[], None, 1, &watch).expect("they run");
    assert_eq!(*told.lock().expect("nobody panics"), 2);
    let runs = outcomes.iter().map(|outcome| match &outcome.workloads[0].found {
        Found::Runs(report) => &report.runs[0],
        Found::Trace(_) | Found::Form(_) => panic!("stacks were run"),
    });
    let runs: Vec<_> = runs.collect();
    for (run, expected) in runs.iter().zip([json!("on"), Value::Null, json!("off")]) {
        assert_eq!(run.resolved["disk"]["rotation"], expected);
        let nodes = run.configuration["node"].as_array().expect("nodes");
        let disk = nodes.iter().find(|node| node["name"] == "disk").expect("a disk");
        assert_eq!(disk["rotation"], expected);
    }
    assert_eq!(runs[0].costs.finish_s, runs[1].costs.finish_s);
    assert_ne!(runs[0].costs.finish_s, runs[2].costs.finish_s);
}

#[test]
fn a_stack_without_the_swept_node_runs_once_and_the_order_is_that_of_the_file() {
    let outcome = run(&parse(SWEPT), 2);
    let expected = [
        "cmr-only",
        "pore capacity=4MiB zone=2MiB",
        "pore capacity=4MiB zone=20MiB",
        "pore capacity=1MiB zone=2MiB",
        "pore capacity=1MiB zone=20MiB",
    ];
    assert_eq!(labels(&outcome), expected);
}

#[test]
fn keys_with_commas_between_them_have_the_same_value() {
    let text = "name = \"blocks\"\ntitle = \"a test\"\nsystems = [\"hwsr\", \"hdd\"]\n[workload]\n\
                path = \"synthetic:uniform-random-write\"\nscale = 1000\n[sweep]\n\
                \"translation.block, buffer.block, cache.block\" = [\"32KiB\", \"64KiB\"]\n";
    let outcome = run(&parse(text), 1);
    assert_eq!(labels(&outcome), ["hwsr block=32KiB", "hwsr block=64KiB", "hdd"]);
    let wrong = text.replace("buffer.block", "buffer.blocks");
    assert!(refused_stacks(&wrong).contains("did you mean `block`?"));
}

#[test]
fn the_swept_system_is_a_list_of_systems() {
    let text = SWEPT
        .replace("systems = [\"cmr-only\", \"pore\"]\n", "")
        .replace("[sweep]", "[sweep]\nsystem = [\"lru\", \"pore\"]");
    assert_eq!(parse(&text).system_names(), ["lru", "pore"]);
    // Only PORE has zones, so LRU runs once for all values of theirs.
    assert_eq!(parse(&text).stacks(&[]).unwrap().len(), 2 + 4);
}

#[test]
fn equal_experiments_give_equal_reports_whatever_the_number_of_jobs() {
    let json = |jobs| match &run(&parse(SWEPT), jobs).workloads[0].found {
        Found::Runs(report) => report.without_simulation().to_json(),
        Found::Trace(_) | Found::Form(_) => panic!("stacks were run"),
    };
    assert_eq!(json(1), json(2));
}

#[test]
fn settings_reach_every_stack_and_the_size_is_that_of_the_file() {
    let stacks = parse(SWEPT).stacks(&[]).unwrap();
    for stack in &stacks {
        assert_eq!(stack.config.size.map(|size| size.bytes()), Some(8 << 30));
    }
    let text = toml::to_string(&stacks[1].config).unwrap();
    assert!(
        text.contains("bands = \"fixed:18 MiB\"") || text.contains("bands = \"fixed:18MiB\""),
        "{text}"
    );
}

/// Adds a `[[stated]]` to the swept experiment.
fn with_stated(stated: &str) -> String {
    format!("{SWEPT}\n[[stated]]\nmetric = \"m\"\nunit = \"x\"\n{stated}\n")
}

fn measured(stated: &str) -> (Option<f64>, bool) {
    let experiment = parse(&with_stated(stated));
    let outcome = run(&experiment, 2);
    let rows = experiment.rows("paper", "figure", &outcome).unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    (rows[0].measured, rows[0].agrees)
}

#[test]
fn a_quotient_of_a_system_and_itself_is_one_at_every_point() {
    let stated = "stated = 1\nmeasure = \"pore.io_time_s.total / pore.io_time_s.total\"";
    assert_eq!(measured(stated), (Some(1.0), true));
}

#[test]
fn ways_over_points_differ_as_they_should() {
    let capacity = "measure = \"pore[zone=2MiB].capacity_blocks\"\nstated = 640\n";
    assert_eq!(measured(capacity), (Some(640.0), true), "mean of 1024 and 256");
    let over = |over: &str| measured(&format!("{capacity}over = \"{over}\"")).0;
    assert_eq!(over("least"), Some(256.0));
    assert_eq!(over("greatest"), Some(1024.0));
    assert_eq!(over("spread"), Some(768.0));
    assert_eq!(over("of-means"), Some(640.0));
    let ratio = "measure = \"256 / pore.capacity_blocks\"\nstated = 1\n";
    assert_eq!(measured(ratio).0, Some(0.625), "mean of the ratios");
    let of_means = format!("{ratio}over = \"of-means\"");
    assert_eq!(measured(&of_means).0, Some(0.4), "ratio of the means");
}

#[test]
fn bounds_and_tolerances_decide() {
    let at = "measure = \"pore[capacity=1MiB].capacity_blocks\"\n";
    for (rest, agrees) in [
        ("stated = 300", true),
        ("stated = 300\ntolerance = 0.1", false),
        ("stated = 255\ncomparison = \"at-most\"", false),
        ("stated = 255\ncomparison = \"at-most\"\ntolerance = 0.01", true),
        ("stated = 257\ncomparison = \"at-least\"", false),
        ("stated = 256\ncomparison = \"at-least\"", true),
    ] {
        assert_eq!(measured(&format!("{at}{rest}")).1, agrees, "{rest}");
    }
}

#[test]
fn a_ratio_must_be_on_the_side_of_one_that_is_stated() {
    let at = "measure = \"pore[capacity=4MiB].capacity_blocks / 1000\"\n";
    for (stated, agrees) in [("1.1", true), ("1.0", true), ("0.951", false)] {
        let found = measured(&format!("{at}stated = {stated}"));
        assert_eq!(found, (Some(1.024), agrees), "{stated}");
    }
    // Any other number has no such side.
    let of_other_unit = with_stated(&format!("{at}stated = 0.951")).replace("\"x\"", "\"1\"");
    let experiment = parse(&of_other_unit);
    let rows = experiment.rows("", "", &run(&experiment, 2)).unwrap();
    assert!(rows[0].agrees, "{rows:?}");
}

#[test]
fn points_at_which_one_system_is_above_another_are_counted() {
    let count = |measure: &str, stated: u32| {
        measured(&format!(
            "measure = \"{measure}\"\nstated = {stated}\ntolerance = 0\nover = \"above-one\""
        ))
    };
    let above_half = "pore.capacity_blocks / 512";
    assert_eq!(count(above_half, 2), (Some(2.0), true));
    assert_eq!(count(above_half, 3), (Some(2.0), false));
    assert_eq!(count("pore.capacity_blocks / 1024", 0), (Some(0.0), true), "one is not above one");
}

#[test]
fn what_a_number_rests_on_is_counted_apart() {
    let row = |basis: &str, stated: u32| {
        format!(
            "[[stated]]\nmetric = \"m\"\nunit = \"1\"\nstated = {stated}\n{basis}\n\
             measure = \"pore[capacity=1MiB].capacity_blocks\"\n"
        )
    };
    let rows = [
        row("", 256),
        row("", 1),
        row("basis = \"own\"", 256),
        row("basis = \"construction\"", 256),
    ];
    let experiment = parse(&format!("{SWEPT}\n{}", rows.concat()));
    let rows = experiment.rows("", "", &run(&experiment, 2)).unwrap();
    let tallies = Row::tallies(&rows).into_iter();
    let tallies: Vec<_> = tallies.map(|t| (t.basis, t.rows, t.agree)).collect();
    assert_eq!(
        tallies,
        [(Basis::Published, 2, 1), (Basis::Construction, 1, 1), (Basis::Own, 1, 1)]
    );
}

#[test]
fn bounds_that_the_paper_does_not_state_are_said_to_be_ours() {
    for figure in figures(None, None).unwrap() {
        for stated in figure.experiment().unwrap().stated {
            let is_required = stated.metric.ends_with("required");
            assert_eq!(is_required, stated.basis == Basis::Own, "{}", stated.metric);
        }
    }
    let of = |name: &str| {
        let figure = figures(Some("pore"), Some(name)).unwrap().remove(0);
        figure.experiment().unwrap().stated.remove(0).basis
    };
    assert_eq!(of("table1"), Basis::Construction);
    assert_eq!(of("fig6"), Basis::Calibrated);
    assert_eq!(of("fig16"), Basis::Published);
}

#[test]
fn a_log_may_be_a_share_of_the_written_bands_alone() {
    let logs: Vec<(u64, u64, Option<u64>)> = ["touched", "written"]
        .into_iter()
        .map(|bands| {
            let text = SWEPT
                .replace("uniform-random-write\"\nscale = 500", "web-like\"\nscale = 64")
                .replace(
                    "[set]",
                    &format!(
                        "[set]\n\"translation.persistent_cache\" = \"1/256 of {bands} bands\""
                    ),
                )
                .replace("[\"2MiB\", \"20MiB\"]", "[\"2MiB\"]");
            let outcome = run(&parse(&text), 2);
            let Found::Runs(report) = &outcome.workloads[0].found else {
                panic!("stacks were run");
            };
            let run = &report.runs[1];
            let log = run.log.persistent_cache_bytes.expect("a log");
            let footprint = run.inputs.footprint_bytes.expect("a share");
            (log, footprint, run.inputs.written_footprint_bytes)
        })
        .collect();
    let [(of_touched, touched, None), (of_written, still_touched, Some(written))] = logs[..] else {
        panic!("the written bands are told only where they count: {logs:?}");
    };
    assert_eq!(still_touched, touched);
    assert!(written < touched, "{written} of {touched} bytes");
    assert_eq!(of_touched, touched / 256 / 4096 * 4096);
    assert_eq!(of_written, written / 256 / 4096 * 4096);
}

#[test]
fn an_undefined_number_is_measured_as_none_and_does_not_agree() {
    let stated = "stated = 1\nmeasure = \"cmr-only.write_amplification.host\"";
    assert_eq!(measured(stated), (None, false));
}

#[test]
fn the_best_value_of_a_single_swept_key_is_found() {
    let text = with_stated("stated = 4\nover = \"least-at\"\nmeasure = \"pore.bands_rewritten\"")
        .replace("\"cache.zone\" = [\"2MiB\", \"20MiB\"]\n", "");
    let experiment = parse(&text);
    let rows = experiment.rows("", "", &run(&experiment, 2)).unwrap();
    assert_eq!(rows[0].measured, Some(4.0), "the larger cache rewrites less");
}

#[test]
fn a_number_for_each_workload_makes_a_row_of_each() {
    let text = r#"
name = "t"
title = "t"
[analysis]
kind = "characteristics"
[[workload]]
path = "synthetic:wdev-like"
scale = 64
[[workload]]
path = "synthetic:mds-like"
scale = 64
[[stated]]
metric = "requests"
unit = "1"
stated = { mds-like = 2916662, wdev-like = 2654824 }
tolerance = 0.001
measure = "trace.requests * scale"
"#;
    let experiment = parse(text);
    let rows = experiment.rows("p", "f", &run(&experiment, 2)).unwrap();
    let found: Vec<(&str, f64, bool)> =
        rows.iter().map(|row| (row.workload.as_str(), row.stated, row.agrees)).collect();
    assert_eq!(
        found,
        [
            ("synthetic:wdev-like/64", 2_654_824.0, true),
            ("synthetic:mds-like/64", 2_916_662.0, true)
        ]
    );
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_the_nearest_name() {
    let rows = [
        (SWEPT.replace("title", "titel"), "test.toml:3: unknown field `titel`, expected one of"),
        (SWEPT.replace("title", "titel"), "did you mean `title`?"),
        (SWEPT.replace("scale = 500", "scael = 500"), "did you mean `scale`?"),
        (
            SWEPT.replace("[sweep]", "[sweep]\nsystem = [\"lru\"]"),
            "test.toml: `systems` and a sweep of `system`: accepted: one of them",
        ),
        (
            SWEPT.replace("[\"2MiB\", \"20MiB\"]", "[]"),
            "test.toml: [sweep] cache.zone has no value",
        ),
        (
            SWEPT.replace("scale = 500", "scale = 500\nrepeat = 0"),
            "test.toml: repeat = 0: accepted: 1 to 1000000",
        ),
        (
            SWEPT.replace("scale = 500", "scale = 500\nnew_blocks = true"),
            "test.toml: new_blocks: there is one round; accepted: with `repeat` of 2 or more",
        ),
        (
            SWEPT.replace("systems = [\"cmr-only\", \"pore\"]", ""),
            "test.toml: nothing to run; accepted: `systems`, [[node]], [analysis] or [closed_form]",
        ),
        (
            format!("stack = \"mine\"\n{SWEPT}"),
            "test.toml: `stack` names a stack of the experiment's own, and there is no [[node]]",
        ),
        (
            with_stated("stated = 1\nmeasure = \"lru\""),
            "test.toml: [[stated]] `m`: measure = \"lru\": `lru` is no quantity",
        ),
        (
            with_stated("stated = 1\nmeasure = \"pore[size=1].x\""),
            "test.toml: [[stated]] `m`: `size` is not swept",
        ),
        (
            with_stated("stated = 1\nmeasure = \"pore[zone=3MiB].x\""),
            "test.toml: [[stated]] `m`: cache.zone is never `3MiB`; it is 2MiB, 20MiB",
        ),
        (
            with_stated("stated = { uniform-random-wriet = 1 }\nmeasure = \"pore.x\""),
            "no workload is named `uniform-random-wriet`; did you mean `uniform-random-write`?",
        ),
        (
            with_stated("stated = 1\nmeasure = \"1\"\ntolerance = 1.0"),
            "test.toml: [[stated]] `m`: tolerance = 1; accepted: a share of the stated number, 0 or more \
             and, unless it is a bound, below 1",
        ),
        (
            with_stated("stated = 1\nmeasure = \"1\"\nover = \"least-at\""),
            "over = \"least-at\" needs a sweep of exactly one key",
        ),
    ];
    for (text, expected) in rows {
        let error = refused(&text);
        assert!(error.contains(expected), "{error}\nwanted: {expected}");
    }
}

#[test]
fn what_is_wrong_in_settings_is_said_with_the_nearest_name() {
    let rows = [
        (
            SWEPT.replace("translation.bands", "translaton.bands"),
            "test.toml: [set] translaton.bands: no stack of the experiment has a node `translaton`; did you \
             mean `translation`?",
        ),
        (SWEPT.replace("cache.zone", "cache.zoen"), "did you mean `zone`?"),
        (
            SWEPT.replace("\"pore\"", "\"lru\""),
            "test.toml: [sweep] cache.zone: `cache.zone` belongs to policy \"pore\"; no stack of the \
             experiment has a node `cache` with that policy",
        ),
        (
            SWEPT.replace("\"cache.zone\"", "\"zone\""),
            "test.toml: [sweep]: `zone` is not a key of a node; accepted: NODE.KEY",
        ),
        (
            SWEPT.replace("\"pore\"", "\"lru-bnad\""),
            "unknown system `lru-bnad`; did you mean `lru-band`?",
        ),
    ];
    for (text, expected) in rows {
        let error = refused_stacks(&text);
        assert!(error.contains(expected), "{error}\nwanted: {expected}");
    }
}

#[test]
fn a_statement_about_a_system_that_did_not_run_is_an_error() {
    let experiment = parse(&with_stated("stated = 1\nmeasure = \"lru.io_time_s.total\""));
    let outcome = run(&experiment, 2);
    let error = experiment.rows("", "", &outcome).unwrap_err().to_string();
    assert_eq!(error, "test.toml: [[stated]] `m`: no system `lru`; there are cmr-only, pore");
}

#[test]
fn only_a_recipe_with_a_scale_is_scaled() {
    let mut fixed = parse(&SWEPT.replace("scale = 500\n", "limit = 10\n"));
    let error = fixed.rescale(2.0).unwrap_err().to_string();
    assert!(error.contains("--scale 2: no workload has a `scale`"), "{error}");
    let mut scalable = parse(SWEPT);
    scalable.rescale(2000.0).unwrap();
    assert_eq!(run(&scalable, 2).workloads[0].path, "synthetic:uniform-random-write/2000");
}

#[test]
fn every_shipped_figure_is_in_order() {
    for figure in figures(None, None).unwrap() {
        let experiment = figure.experiment().unwrap_or_else(|error| panic!("{error}"));
        let name = format!("{}-{}", figure.paper, figure.figure);
        assert_eq!(experiment.name, name);
        assert!(!experiment.stated.is_empty(), "{name} states nothing");
        if experiment.analysis.is_none() && experiment.closed_form.is_none() {
            experiment.stacks(&[]).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
fn every_experiment_file_is_in_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/ride");
    let stacks = ["lru-band-batch.toml", "pore-bands.toml"];
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".toml") || stacks.contains(&name) {
            continue;
        }
        let experiment = Experiment::open(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(format!("{}.toml", experiment.name), format!("ride-{name}"));
        assert!(!experiment.stated.is_empty(), "{name} states nothing");
        experiment.stacks(&[]).unwrap_or_else(|error| panic!("{error}"));
        checked += 1;
    }
    assert!(checked >= 8, "{checked} files");
}

#[test]
fn figures_are_found_by_name_and_the_nearest_is_suggested() {
    let names = |paper, figure| -> Vec<&str> {
        let found = figures(paper, figure).unwrap();
        found.iter().map(|shipped| shipped.figure).collect()
    };
    assert_eq!(names(Some("pore"), Some("fig12")), ["fig12"]);
    assert_eq!(names(Some("pore"), Some("fig15")), ["fig15a-c", "fig15d-f"]);
    let error = figures(Some("pore"), Some("fig61")).unwrap_err().to_string();
    assert!(error.starts_with("unknown figure `fig61`; did you mean `fig6`? (known: "), "{error}");
    let error = figures(Some("poer"), None).unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown paper `poer`; did you mean `pore`? (known: pore, ride, hwsr, raid4smr, headmove, idler)"
    );
}
