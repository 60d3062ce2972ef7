//! The report in all its forms: JSON against its schema, table, CSV, and the HTML page in a browser.

mod sample;
pub mod schema;

use std::path::Path;

use crate::browser::opened;
use imbrex_report::{PhaseUse, Phases, Report, ResponseTimes, Series, TableStyle, WorkloadKind};
use serde_json::{Value, json};

/// Largest page allowed for seven systems.
const PAGE_BYTES_MAX: usize = 1 << 20;

fn schema_document() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/report.schema.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// What in a report is not as the schema says.
pub fn schema_violations(report: &Report) -> Vec<String> {
    let document = schema_document();
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    schema::violations(&document, &document, &value, "report")
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_keys_scripts_rely_on_are_there() {
    let report: Value =
        serde_json::from_str(&sample::report(WorkloadKind::Recorded).to_json()).unwrap();
    let contract = json!({
        "schema": "imbrex.report/1", "commit": "", "seed": 7,
        "workload": {"path": "", "kind": "", "requests": 0, "sha256": ""},
        "runs": [{"system": "", "requests": 0, "read_blocks": 0, "write_blocks": 0,
            "read_hits": 0, "write_hits": 0, "read_hit_ratio": 0.0, "write_hit_ratio": 0.0,
            "band_bytes_read": 0, "band_bytes_written": 0, "bands_rewritten": 0,
            "write_amplification": {"evicted": 0.0, "cache_in": 0.0, "host": 0.0},
            "io_time_s": {"total": 0.0, "smr": 0.0, "ssd": 0.0}, "seek_time_s": 0.0,
            "response_ms": {"mean": 0.0, "p50": 0.0, "p99": 0.0, "p99_9": 0.0, "max": 0.0},
            "finish_s": 0.0, "simulation": {"wall_s": 0.0, "requests_per_s": 0.0, "peak_rss_bytes": 0},
            "footprint_bytes": 0, "capacity_blocks": 0, "scratch_bytes_written": 0,
            "persistent_cache_bytes_appended": 0, "persistent_cache_bytes_merged": 0,
            "dirty_blocks_left": 0, "skipped_reads": 0, "forced_evictions": 0, "band_seed": 0,
            "configuration": {}}],
    });
    fn covered(contract: &Value, actual: &Value, path: &str) {
        match contract {
            Value::Object(members) => {
                for (name, member) in members {
                    let actual = actual.get(name).unwrap_or_else(|| panic!("no {path}.{name}"));
                    covered(member, actual, &format!("{path}.{name}"));
                }
            }
            Value::Array(items) => covered(&items[0], &actual[6], &format!("{path}[6]")),
            Value::String(_) => assert!(actual.is_string(), "{path} is {actual}"),
            _ => assert!(actual.is_number(), "{path} is {actual}"),
        }
    }
    covered(&contract, &report, "report");
    assert_eq!(report["schema"], "imbrex.report/1");
    assert_eq!(keys(&report["runs"][6]["io_time_s"]), ["smr", "ssd", "total"]);
    assert_eq!(
        keys(&report["runs"][6]["response_ms"]),
        ["max", "mean", "p50", "p99", "p99_9", "p99_99"]
    );
    let cmr = &report["runs"][0];
    let undefined = json!({"evicted": null, "cache_in": null, "host": null});
    assert_eq!(cmr["write_amplification"], undefined, "no bands, no band write amplification");
    assert_eq!(cmr["capacity_blocks"], Value::Null);
}

#[test]
fn json_follows_the_schema_and_reads_back() {
    let document = schema_document();
    let report = sample::report(WorkloadKind::Synthetic);
    let json = report.to_json();
    let value: Value = serde_json::from_str(&json).unwrap();
    let none: Vec<String> = vec![];
    assert_eq!(schema::violations(&document, &document, &value, "report"), none);
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    assert_eq!(json, sample::report(WorkloadKind::Synthetic).to_json(), "equal runs, equal bytes");
}

#[test]
fn an_older_report_without_roles_and_with_keys_that_were_null_reads_as_one_without_them() {
    let mut report = sample::report(WorkloadKind::Recorded);
    let mut document: Value = serde_json::from_str(&report.to_json()).unwrap();
    let run = document["runs"][6].as_object_mut().unwrap();
    run.remove("roles");
    for key in ["read_hits", "write_hits", "bands_rewritten", "dirty_blocks_left"] {
        run.insert(key.into(), Value::Null);
    }
    run.insert("persistent_cache_full_s".into(), Value::Null);
    let schema = schema_document();
    let none: Vec<String> = vec![];
    assert_eq!(schema::violations(&schema, &schema, &document, "report"), none);
    let run = &mut report.runs[6];
    (run.hits.read_hits, run.hits.write_hits, run.rewrites.bands_rewritten) = (0, 0, 0);
    run.log.persistent_cache_full_s = 0.0;
    assert_eq!(serde_json::from_value::<Report>(document).unwrap(), report);
}

#[test]
fn what_a_recipe_made_of_a_web_log_is_not_called_captured() {
    let mut report = sample::report(WorkloadKind::Captured);
    let told = |report: &Report| {
        let page = report.to_html();
        [report.to_table(TableStyle::Plain), page].map(|text| {
            (
                text.contains("captured from a system in use"),
                text.contains("made of a web log by a recipe"),
            )
        })
    };
    assert_eq!(told(&report), [(true, false); 2]);
    report.workload.format = Some("clf in the file: as asked".to_owned());
    assert_eq!(told(&report), [(false, true); 2]);
}

#[test]
fn an_empty_run_follows_the_schema() {
    let document = schema_document();
    let mut report = sample::report(WorkloadKind::Live);
    report.workload.sha256 = None;
    report.workload.format = None;
    let mut run = imbrex_report::Run::new("lru", imbrex_report::ReplayMode::Live);
    run.derive_ratios();
    report.runs = vec![run];
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    let none: Vec<String> = vec![];
    assert_eq!(schema::violations(&document, &document, &value, "report"), none);
    assert!(report.to_html().contains("lru served 0 requests"));
    assert!(report.to_table(TableStyle::Plain).contains("lru"));
}

#[test]
fn the_schema_finds_what_is_wrong() {
    let document = schema_document();
    let good: Value =
        serde_json::from_str(&sample::report(WorkloadKind::Captured).to_json()).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        schema::violations(&document, &document, &bad, "report")
    };
    assert_eq!(with("/schema", json!("imbrex.report/2")).len(), 1);
    assert_eq!(with("/workload/kind", json!("real")).len(), 1);
    assert_eq!(with("/runs/3/write_hit_ratio", json!(1.5)).len(), 1);
    assert_eq!(with("/runs/3/io_time_s/smr", json!("fast")).len(), 1);
    assert_eq!(with("/runs/3/disks/0/busy_time_by_cause_s/host", Value::Null).len(), 1);
    let mut missing = good.clone();
    missing["runs"][0].as_object_mut().unwrap().remove("bands_rewritten");
    assert_eq!(schema::violations(&document, &document, &missing, "report").len(), 1);
}

#[test]
fn the_simulation_block_is_all_that_may_differ() {
    let report = sample::report(WorkloadKind::Recorded);
    let mut slower = report.clone();
    slower.runs[2].simulation.wall_s = 99.0;
    assert_ne!(slower.to_json(), report.to_json());
    assert_eq!(slower.without_simulation().to_json(), report.without_simulation().to_json());
}

#[test]
fn the_table_fits_a_terminal_and_is_plain_in_a_pipe() {
    let mut report = sample::report(WorkloadKind::Synthetic);
    report.runs[6].parameters.insert("cache.capacity".into(), json!("a very long value indeed"));
    let plain = report.to_table(TableStyle::Plain);
    let terminal = report.to_table(TableStyle::Terminal);
    let visible = terminal.replace("\x1b[1m", "").replace("\x1b[0m", "");
    assert_ne!(visible, terminal, "headers are bold on a terminal");
    assert!(visible.lines().all(|line| line.chars().count() <= 120), "{visible}");
    assert!(plain.is_ascii(), "{plain}");
    assert!(plain.lines().all(|line| line.len() <= 120), "{plain}");
    assert!(!plain.contains('\x1b'));
    assert!(plain.contains("SYNTHETIC"), "{plain}");
    // `pore` rewrites less still, but with other settings than `lru`.
    assert!(plain.contains("pore-pf rewrites 3.5x fewer band bytes than lru"), "{plain}");
    for run in &report.runs[..6] {
        assert!(plain.lines().any(|line| line.starts_with(&run.system)), "{plain}");
    }
}

#[test]
fn a_bound_stands_beside_the_rewrites() {
    let mut report = sample::report(WorkloadKind::Captured);
    let without = (report.to_table(TableStyle::Plain), report.to_html());
    assert!(!without.0.contains("/ bound") && !without.1.contains("rewrites / bound"));
    assert!(!report.to_json().contains("bands_rewritten_bound"));
    let bounds = [None, Some(0), Some(400)];
    for (run, bound) in report.runs.iter_mut().zip(bounds) {
        run.rewrites.bands_rewritten = 1000;
        run.rewrites.bands_rewritten_bound = bound;
    }
    let plain = report.to_table(TableStyle::Plain);
    assert!(plain.lines().all(|line| line.len() <= 120), "{plain}");
    let rows = plain.lines().skip(4).take(3);
    let last: Vec<&str> = rows.filter_map(|row| row.split(' ').next_back()).collect();
    assert_eq!(last, ["-", "-", "2.50"], "{plain}");
    assert!(report.to_html().contains("rewrites / bound"));
    let document = schema_document();
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    let violations = schema::violations(&document, &document, &value, "report");
    assert_eq!(violations, Vec::<String>::new());
}

#[test]
fn segments_have_columns_bars_and_a_sentence_where_a_run_has_them() {
    let mut report = sample::report(WorkloadKind::Synthetic);
    report.runs.retain(|run| run.system.ends_with("-only"));
    let without = (report.to_table(TableStyle::Plain), report.to_html());
    assert!(!without.0.contains("segs") && !without.1.contains("<h2>Segments"));
    let counters = |pairs: &[(&str, u64)]| {
        let pairs = pairs.iter();
        pairs.map(|(name, count)| (name.to_string(), *count)).collect()
    };
    for (index, segments) in [(0, 500), (1, 4_000)] {
        let mut run = sample::run(["hwsr", "s-block"][index], 0.0);
        run.log.bands = None;
        run.rewrites.write_amplification = Default::default();
        run.cache.capacity_blocks = None;
        run.host.requests = 1_000_000;
        let translation = [
            ("segments_rewritten", segments),
            ("destaged_blocks", 2_000),
            ("rewrite_blocks_written", 10_000),
        ];
        let buffer = [
            ("block_reads", 30),
            ("block_writes", 70),
            ("hit_block_reads", 5),
            ("hit_block_writes", 60),
        ];
        let cache = [("hit_blocks", 1), ("miss_blocks", 3)];
        run.nodes.insert("t".into(), counters(&translation));
        run.nodes.insert("b".into(), counters(&buffer));
        run.nodes.insert("c".into(), counters(&cache));
        report.runs.push(run);
    }
    let plain = report.to_table(TableStyle::Plain);
    assert!(plain.lines().all(|line| line.len() <= 120), "{plain}");
    let row = |system: &str| {
        let mut lines = plain.lines();
        let row = lines.find(|line| line.starts_with(&format!("{system} ")));
        let cells = row.expect("a row").split_whitespace();
        cells.map(str::to_string).collect::<Vec<String>>()
    };
    assert_eq!(row("hwsr")[3..7], ["5.00", "24.0", "65.0", "25.0"], "{plain}");
    assert_eq!(row("smr-only")[3..7], ["-"; 4], "{plain}");
    assert!(
        plain.contains("hwsr rewrites 8.0x fewer segments than s-block; s-block needs"),
        "{plain}"
    );
    let page = report.to_html();
    assert!(page.contains("<h2>Segments</h2>") && page.contains("read-cache hits"));
    let csv = report.to_csv();
    let (_, csv) = csv.iter().find(|(name, _)| *name == "segments.csv").unwrap();
    assert!(csv.contains("\nhwsr,5,24,65,25\n"), "{csv}");
    assert!(csv.contains("\nsmr-only,,,,\n"), "{csv}");
    // Where only stacks of segments ran, the columns about bands are not there.
    report.runs.retain(|run| run.nodes.contains_key("t"));
    assert!(!report.to_table(TableStyle::Plain).contains("WA"));
}

#[test]
fn csv_files_have_one_width_and_name_every_run() {
    let mut report = sample::report(WorkloadKind::Captured);
    report.runs[1].parameters.insert("node.key".into(), json!("a, \"b\""));
    for (name, text) in report.to_csv() {
        let width = text.lines().next().unwrap().split(',').count();
        let quoted = "\"smr-only key=a, \"\"b\"\"\"";
        // The value stands in a column of its own too.
        let unquoted = text.replace(quoted, "smr").replace("\"a, \"\"b\"\"\"", "a");
        for line in unquoted.lines() {
            assert_eq!(line.split(',').count(), width, "{name}: {line}");
        }
        assert!(text.contains(quoted), "{name} lacks a run");
        assert!(text.contains("\npore,"), "{name} lacks a run");
    }
}

#[test]
fn the_page_needs_nothing_from_anywhere() {
    let mut report = sample::report(WorkloadKind::Recorded);
    report.workload.path = "</script><script>alert(1)</script>".to_string();
    report.runs[0].system = "<img src=x>".to_string();
    let html = report.to_html();
    for address in ["http://", "https://", "url(", "@import", "src=\"", "href=\"/"] {
        assert!(!html.contains(address), "the page contains {address}");
    }
    assert_eq!(html.matches("</script>").count(), 2, "data and program, nothing else");
    assert!(!html.contains("<img"), "names are escaped");
    assert!(html.contains("default-src 'none'; script-src 'unsafe-inline'"));
    assert!(html.contains("<span class=\"kind recorded\">recorded</span>"));
    assert!(html.len() <= PAGE_BYTES_MAX, "{} bytes", html.len());
}

#[test]
fn a_hundred_runs_stay_within_the_bound() {
    let mut report = sample::report(WorkloadKind::Recorded);
    let runs = report.runs.clone();
    report.runs = (0..100)
        .map(|i| {
            let mut run = runs[i % 7].clone();
            run.parameters.insert("cache.capacity".into(), json!(format!("{i} %")));
            run
        })
        .collect();
    let html = report.to_html();
    assert!(html.len() <= 6_000_000, "{} bytes", html.len());
    assert!(html.contains("first 32 of 100 runs"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = sample::report(WorkloadKind::Live).write_to(&file.path().join("out")).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}/out: ", file.path().display())), "{error}");
}

#[test]
fn a_browser_opens_the_page_without_an_error() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sample-report");
    let path = folder.join("report.html");
    let written = sample::report(WorkloadKind::Recorded).write_to(&folder).unwrap();
    assert!(written.contains(&path) && written.iter().all(|path| path.exists()));
    if let Some(dom) = opened(&path) {
        assert!(dom.contains("a bin</span>"), "the heat map was not painted");
    }
}

#[test]
fn phases_of_arrays_are_in_every_form_and_absent_where_no_member_was_lost() {
    let mut report = sample::report(WorkloadKind::Recorded);
    let has_file = |report: &Report, name: &str| report.to_csv().iter().any(|(it, _)| it == name);
    assert!(!has_file(&report, "phases.csv") && !has_file(&report, "rebuild_progress.csv"));
    assert!(!report.to_json().contains("\"phases\""));
    assert!(!report.to_html().contains("Phases of arrays"));

    let times = |mean, max| ResponseTimes { mean, max, ..ResponseTimes::default() };
    let degraded = PhaseUse {
        start_s: 2.0,
        total_s: 4.5,
        requests: 7,
        response_ms: times(Some(9.0), Some(11.0)),
        read_response_ms: times(Some(9.25), Some(11.5)),
        write_response_ms: times(None, None),
    };
    let healthy = PhaseUse { requests: 3, ..PhaseUse::default() };
    report.runs[1].phases = Some(Phases {
        healthy: Some(healthy.clone()),
        degraded: Some(degraded),
        rebuilding: Some(healthy),
        after: None,
    });
    let progress = Series { bucket_s: 0.5, values: vec![0.0, 0.25, 1.0] };
    report.runs[1].figures.rebuild_progress.insert("array".into(), progress);

    let none: Vec<String> = vec![];
    assert_eq!(schema_violations(&report), none);
    assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(value["runs"][1]["phases"]["degraded"]["read_response_ms"]["mean"], 9.25);
    assert_eq!(value["runs"][1]["phases"].get("after"), None);

    let label = report.runs[1].label();
    let csv = |name: &str| {
        let files = report.to_csv();
        files.into_iter().find(|(it, _)| it == name).map(|(_, text)| text).unwrap()
    };
    let phases = csv("phases.csv");
    let lines: Vec<&str> = phases.lines().collect();
    assert!(lines[0].starts_with("run,phase,start_s,total_s,requests,response_mean_ms,"));
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2], format!("{label},degraded,2,4.5,7,9,,,,,11,9.25,,,,,11.5,,,,,,"));
    let expected = format!(
        "run,node,time_s,progress\n{label},array,0,0\n{label},array,0.5,0.25\n{label},array,1,1\n"
    );
    assert_eq!(csv("rebuild_progress.csv"), expected);

    let page = report.to_html();
    assert!(page.contains("Phases of arrays") && page.contains("Progress of rebuilds"));
    assert!(page.contains("<td class=\"text\">degraded</td><td>2.00</td>"), "{page}");
    assert!(page.contains("\"reader\":\"rebuild\",\"unit\":\"%\""), "read-outs of the chart");
}
