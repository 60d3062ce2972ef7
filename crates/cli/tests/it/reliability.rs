//! `imbrex reliability`: figures that independent models found, reports of rebuilds, and what is refused.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn imbrex(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(arguments).current_dir(folder).output().expect("it starts")
}

const FILE: &str = r#"
runs = 2000
[disk]
capacity = "8 TB"
mttf_h = 1000
read_error_per_bit = 1e-14
[repair]
mean_h = 10
[layout]
kind = "raid4smr"
homes = 3
"#;

fn computed(folder: &Path, text: &str, options: &[&str]) -> Value {
    fs::write(folder.join("file.toml"), text).expect("written");
    let output = imbrex(folder, &[&["reliability", "file.toml", "--json"], options].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn figures_are_those_of_independent_models_and_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let first = computed(folder, FILE, &["--out", "out"]);
    let case = &first["cases"][0];
    assert!((number(&case["missing_disks"]["mean_h"]) - 5450.0).abs() < 1e-6, "{case}");
    assert!((number(&case["missing_disks"]["closed_form_h"]) - 5450.0).abs() < 1e-6, "{case}");
    assert!((number(&case["or_read_error"]["mean_h"]) - 226.45).abs() < 0.01, "{case}");
    let shapes: Vec<f64> =
        case["drawn"].as_array().expect("a list").iter().map(|it| number(&it["shape"])).collect();
    assert_eq!(shapes, [0.7, 1.0, 1.5]);
    assert_eq!(computed(folder, FILE, &[]), first);
    let page = fs::read_to_string(folder.join("out/reliability.html")).expect("a page");
    assert!(page.contains("5450.00 h") && page.contains("no time that anybody waits"), "{page}");
    let json = fs::read_to_string(folder.join("out/reliability.json")).expect("numbers");
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON"), first);
}

#[test]
fn a_longer_rebuild_in_a_report_is_a_case_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |hours: f64, requests: u64| {
        format!(
            r#"{{"system": "raid4", "parameters": {{}}, "phases": {{
                "rebuilding": {{"total_s": {}, "requests": {requests}}},
                "after": {{"total_s": 1.0, "requests": 1}}}},
                "nodes": {{"raid": {{"missing_members": 0, "rebuilding_members": 0}}}}}}"#,
            hours * 3600.0
        )
    };
    let cut = r#"{"system": "raid4", "phases": {"rebuilding": {"total_s": 7.0, "requests": 0}},
        "nodes": {"raid": {"rebuilding_members": 1}}}"#;
    let report = |name: &str, run: &str| {
        format!(r#"{{"workload": {{"path": "{name}"}}, "runs": [{run}, {cut}]}}"#)
    };
    let reports = [report("idle", &run(10.0, 0)), report("loaded", &run(50.0, 1800))];
    let text = format!(r#"{{"reports": [{}]}}"#, reports.join(", "));
    fs::write(folder.path().join("report.json"), text).expect("written");
    let file = FILE.replace("mean_h = 10", "report = \"report.json\"\ndistribution = \"measured\"");
    let found = computed(folder.path(), &file, &[]);
    let cases = found["cases"].as_array().expect("a list");
    let names: Vec<&str> =
        cases.iter().map(|case| case["name"].as_str().expect("a name")).collect();
    assert_eq!(
        names,
        [
            "raid4 on idle: 10.00 h, nothing else to do",
            "raid4 on loaded: 50.00 h, 0.010 requests a second meanwhile"
        ]
    );
    let means = [0, 1].map(|at| number(&cases[at]["missing_disks"]["mean_h"]));
    assert!((means[0] - 5450.0).abs() < 1e-6 && means[1] < means[0] / 3.0, "{means:?}");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("empty.json"), r#"{"workload": {"path": "w"}, "runs": []}"#)
        .expect("written");
    for (from, to, words) in [
        ("mttf_h = 1000", "mttf_h = -1", "[disk] mttf_h = -1; accepted: hours, 0.01 to 1e12"),
        ("mttf_h = 1000", "mttf_h = nan", "[disk] mttf_h = NaN; accepted"),
        ("mttf_h = 1000", "afr = 0", "[disk] afr = 0; accepted: the share that fails in a year"),
        ("mttf_h = 1000", "mttf_h = 1\nafr = 0.1", "accepted: one of `afr` and `mttf_h`"),
        ("mttf_h = 1000", "mttf_h = \"long\"", "file.toml:5: "),
        ("runs = 2000", "runs = 1000000001", "runs = 1000000001; accepted: 1 to 1000000000"),
        ("mean_h = 10", "mean_h = 0", "[repair] mean_h = 0; accepted: hours"),
        ("mean_h = 10", "report = \"empty.json\"", "no run of it has a rebuild that has ended"),
        ("mean_h = 10", "report = \"none.json\"", "report = \"none.json\": No such file"),
        ("\"raid4smr\"", "\"chain\"", "kind = \"chain\" needs `c`"),
        ("\"raid4smr\"", "\"split-dedicated\"", "needs `log`"),
        ("\"raid4smr\"", "\"raid6\"", "raid6"),
        ("homes = 3", "homes = 0", "[layout] homes = 0; accepted of raid4smr: 1 to 100"),
        ("homes = 3", "homes = 3\nc = 2", "c = 2 is about a chain"),
        (
            "[layout]",
            "[correlated]\nshare = 2\n[layout]",
            "[correlated] share = 2; accepted: 0 to 1",
        ),
        ("[layout]", "[scrub]\nevery_h = 0\n[layout]", "[scrub] every_h = 0; accepted: hours"),
    ] {
        fs::write(folder.join("file.toml"), FILE.replace(from, to)).expect("written");
        let output = imbrex(folder, &["reliability", "file.toml"]);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{to}: {said}");
    }
}
