//! `imbrex run`, `imbrex reproduce` and the flags of trace reading, through the command itself.

use crate::served::status_of;
use std::path::Path;
use std::process::{Command, Output};

const EXPERIMENT: &str = r#"
name = "small"
title = "a test"
size = "8 GiB"
systems = ["cmr-only", "lru"]

[workload]
path = "synthetic:uniform-random-write"
scale = 1000

[sweep]
"cache.capacity" = ["1MiB", "4MiB"]
"#;

fn imbrex(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .expect("the command starts")
}

/// Standard output of a command that succeeds.
fn output_of(folder: &Path, arguments: &[&str]) -> String {
    let output = imbrex(folder, arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {message}");
    String::from_utf8(output.stdout).expect("text")
}

/// The message of a command that fails and prints nothing else.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = imbrex(folder, arguments);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), status_of(&said), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    said
}

/// A folder with the experiment, and with `changed` in place of `text` in it.
fn folder(text: &str, changed: &str) -> tempfile::TempDir {
    assert!(EXPERIMENT.contains(text), "{text} is in the experiment");
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = EXPERIMENT.replace(text, changed);
    std::fs::write(folder.path().join("small.toml"), experiment).expect("a file");
    folder
}

#[test]
fn an_experiment_prints_one_table_and_leaves_its_files() {
    let folder = folder("a test", "a test");
    let table = output_of(folder.path(), &["run", "small.toml"]);
    for label in ["cmr-only", "lru capacity=1MiB", "lru capacity=4MiB", "SYNTHETIC"] {
        assert!(table.contains(label), "{label}: {table}");
    }
    for file in ["report.json", "report.html"] {
        assert!(folder.path().join("results/small").join(file).is_file(), "{file}");
    }
}

#[test]
fn the_json_of_one_workload_is_its_report_and_the_same_as_in_the_file() {
    let folder = folder("a test", "a test");
    let arguments =
        ["run", "small.toml", "--json", "--out", "out", "--seed", "7", "--scale", "2000"];
    let printed = output_of(folder.path(), &arguments);
    let report: serde_json::Value = serde_json::from_str(&printed).expect("one document");
    assert_eq!(report["schema"], "imbrex.report/1");
    assert_eq!(report["seed"], 7);
    assert_eq!(report["workload"]["path"], "synthetic:uniform-random-write/2000");
    assert_eq!(report["runs"][2]["parameters"]["cache.capacity"], "4MiB");
    let file = std::fs::read_to_string(folder.path().join("out/report.json")).expect("a file");
    let file: serde_json::Value = serde_json::from_str(&file).expect("a document");
    assert_eq!(file["runs"], report["runs"]);
}

#[test]
fn several_workloads_have_a_folder_each() {
    let second = "[[workload]]\npath = \"synthetic:uniform-random-write\"\nname = \"second\"\nscale = 2000\n";
    let folder = folder("[workload]", &format!("{second}[[workload]]"));
    let printed = output_of(folder.path(), &["run", "small.toml", "--json", "--out", "out"]);
    let document: serde_json::Value = serde_json::from_str(&printed).expect("one document");
    assert_eq!(document["schema"], "imbrex.experiment/1");
    assert_eq!(document["reports"].as_array().map(Vec::len), Some(2));
    for name in ["second", "uniform-random-write"] {
        assert!(folder.path().join("out").join(name).join("report.json").is_file(), "{name}");
    }
}

#[test]
fn misspelt_keys_and_unknown_figures_are_refused_with_the_nearest() {
    let misspelt = folder("title", "titel");
    let error = refusal(misspelt.path(), &["run", "small.toml"]);
    assert!(error.starts_with("imbrex: small.toml:3: unknown field `titel`"), "{error}");
    assert!(error.ends_with("did you mean `title`?\n"), "{error}");
    let folder = folder("a test", "a test");
    let error = refusal(folder.path(), &["run", "small.toml", "--set", "cahce.capacity=1MiB"]);
    let expected = "imbrex: --set cahce.capacity: no stack of the experiment has a node `cahce`; did you mean \
                    `cache`? (known: ";
    assert!(error.starts_with(expected), "{error}");
    let error = refusal(folder.path(), &["reproduce", "pore", "fig116"]);
    assert!(
        error.starts_with("imbrex: unknown figure `fig116`; did you mean `fig11`? (known: "),
        "{error}"
    );
    let error = refusal(folder.path(), &["reproduce", "pore", "fig3", "--scale", "2"]);
    assert_eq!(error, "imbrex: --scale 2: the size of these workloads is what is measured\n");
}

#[test]
fn a_reproduced_figure_is_a_list_of_rows_with_the_keys_of_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed =
        output_of(folder.path(), &["reproduce", "pore", "fig6", "--scale", "64", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&printed).expect("one document");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row["paper"], "pore");
        assert_eq!(row["figure"], "fig6");
        assert_eq!(row["workload_kind"], "synthetic");
        assert!(row["workload"].as_str().is_some_and(|w| w.contains("wdev-like/64")), "{row}");
        for key in ["stated", "measured", "tolerance"] {
            assert!(row[key].is_f64(), "{key}: {row}");
        }
        assert!(row["agrees"].is_boolean() && row["metric"].is_string() && row["unit"].is_string());
        assert_eq!(row["basis"], "calibrated");
    }
    let agree = rows.iter().filter(|row| row["agrees"] == true).count();
    let summary = serde_json::json!([{"basis": "calibrated", "rows": 3, "agree": agree}]);
    assert_eq!(document["summary"], summary);
    let table = output_of(folder.path(), &["reproduce", "pore", "fig6", "--scale", "64"]);
    assert!(
        table.contains("stated") && table.contains("basis") && table.contains("of 3 numbers agree"),
        "{table}"
    );
}

#[test]
fn the_information_on_a_recipe_holds_its_assumed_parameters() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = "synthetic:wdev-like/64";
    let text = output_of(folder.path(), &["trace", "info", path]);
    assert!(text.contains("[volume.locality]") && text.contains("hot_zipf = 0.9"), "{text}");
    let json = output_of(folder.path(), &["trace", "info", path, "--json"]);
    let info: serde_json::Value = serde_json::from_str(&json).expect("one document");
    assert!(info["recipe"].as_str().is_some_and(|r| r.contains("hot_zipf = 0.9")), "{info}");
}

#[test]
fn every_flag_of_trace_reading_reaches_the_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    write("t.csv", "1;0;w;8;4096\n2;1;w;0;4096\n");
    let map = "time=1:us,dev=2,op=3,off=4:sectors,len=5:bytes";
    let csv = ["t.csv", "--format", "csv", "--map", map, "--delimiter", ";"];
    let info = |more: &[&str]| -> serde_json::Value {
        let arguments = [&["trace", "info", "--json"], more].concat();
        serde_json::from_str(&output_of(folder.path(), &arguments)).expect("one document")
    };
    assert_eq!(info(&csv)["requests"], 2);
    assert_eq!(info(&[&csv[..], &["--devices", "1-3"]].concat())["requests"], 1);
    let apart = info(&[&csv[..], &["--device-stride", "1MiB"]].concat());
    assert_eq!(apart["footprint_bytes"], (1 << 20) + 4096);
    write("t.lis", "0 3 0 1\n");
    let pages = info(&["t.lis", "--format", "arc", "--page-bytes", "4KiB"]);
    assert_eq!(pages["footprint_bytes"], 3 * 4096);
    let arguments = [&["trace", "info"], &csv[..], &["--time-unit", "ms"]].concat();
    let error = refusal(folder.path(), &arguments);
    assert_eq!(
        error,
        "imbrex: --time-unit: the format csv has no use for it; accepted: with disksim\n"
    );
    let arguments = [&["trace", "info"], &csv[..], &["--accept-unfinished"]].concat();
    let error = refusal(folder.path(), &arguments);
    assert_eq!(
        error,
        "imbrex: --accept-unfinished: the format csv has no use for it; accepted: with imbrex\n"
    );
}

#[test]
fn journals_cost_writes_and_change_no_hit() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |settings: &[&str]| {
        let mut arguments =
            vec!["compare", "--trace", "synthetic:wdev-like/256", "--systems", "pore", "--json"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let text = output_of(folder.path(), &arguments);
        let report: serde_json::Value = serde_json::from_str(&text).expect("a report");
        report["runs"][0].clone()
    };
    let metadata = |run: &serde_json::Value| -> Vec<u64> {
        let disks = run["disks"].as_array().expect("disks");
        let bytes = disks.iter().map(|disk| &disk["written_bytes"]["metadata"]);
        bytes.map(|bytes| bytes.as_u64().expect("bytes")).collect()
    };
    let plain = run(&[]);
    // Even without a journal a translation notes what its scratch band holds.
    let [notes, 0] = metadata(&plain)[..] else {
        panic!("flash without a journal holds no metadata");
    };
    assert!(plain["configuration"]["node"][3].get("durable").is_none());

    let cache = run(&["cache.durable=true"]);
    let [disk, flash] = metadata(&cache)[..] else {
        panic!("two disks");
    };
    // The write-intent pages are below the cache.
    assert!(disk > notes && flash > 0, "{disk} and {flash} bytes");
    assert_eq!(cache["configuration"]["node"][3]["durable"], true);
    let small = "cache.ring_blocks=8";
    let [_, small_ring] = metadata(&run(&["cache.durable=true", small]))[..] else {
        panic!("two disks");
    };
    assert!(small_ring > flash, "a small ring asks for more checkpoints");

    let both = run(&["cache.durable=true", "translation.durable=true"]);
    assert!(metadata(&both)[0] > disk);
    for durable in [&cache, &both] {
        for key in ["read_hits", "write_hits", "requests"] {
            assert_eq!(durable[key], plain[key], "{key}");
        }
    }
}

#[test]
fn a_closed_form_leaves_its_files_and_stands_beside_the_paper() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = "name = \"form\"\ntitle = \"a test\"\n[closed_form]\nform = \"omega\"\n\
                      [sweep]\nsegments = [64]\nspare = [0.0, 0.1]\n";
    std::fs::write(folder.path().join("form.toml"), experiment).expect("a file");
    let text = output_of(folder.path(), &["run", "form.toml"]);
    // Without spare slots the paper's form is undefined.
    assert!(text.contains("\n64,0,,31.5,"), "{text}");
    assert!(text.contains("\n64,0.1,10,9,"), "{text}");
    for file in ["closed_form.csv", "closed_form.json", "closed_form.html"] {
        let path = folder.path().join("results/form").join(file);
        assert!(path.is_file(), "{file}");
    }
    let printed = output_of(folder.path(), &["reproduce", "hwsr", "figure-7", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&printed).expect("one document");
    assert_eq!(document["rows"][0]["workload_kind"], "closed form");
    assert_eq!(document["rows"][0]["agrees"], true);
}

#[test]
fn another_seed_makes_another_load_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let synth = |seed: &[&str], file: &str| {
        let of_recipe = ["trace", "synth", "financial1-dense", file, "--scale", "1000"];
        output_of(folder.path(), &[&of_recipe[..], seed].concat());
        std::fs::read_to_string(folder.path().join(file)).expect("a trace")
    };
    let own = synth(&[], "own.csv");
    assert_eq!(synth(&["--seed", "1"], "one.csv"), own);
    assert_ne!(synth(&["--seed", "2"], "two.csv"), own);
    // A recording is text only in part: its description is what `trace info` says.
    let arguments = ["trace", "synth", "financial1-dense", "two.imbrex", "--scale", "1000"];
    output_of(folder.path(), &[&arguments[..], &["--seed", "2"]].concat());
    let info = output_of(folder.path(), &["trace", "info", "two.imbrex", "--json"]);
    assert!(info.contains("seed 2") && info.contains("synthetic"), "{info}");
}
