//! What nodes have counted, and the tables that kinds of node make, as CSV files and in the page.

use imbrex_report::{
    Cell, Column, NodeTable, ReplayMode, Report, Run, TableOfKind, Workload, WorkloadKind,
};
use serde_json::Value;
use std::collections::BTreeMap;

const ZONES: TableOfKind = TableOfKind {
    name: "zones",
    title: "Zones & more",
    sentence: "What each zone has seen.",
    over_time: false,
    columns: &[
        Column::new("state", "", "How it is."),
        Column::new("resets", "number", "Times it was set back."),
        Column::new("fill_time_s", "s", "How long it took to fill."),
    ],
};

const HEAT: TableOfKind = TableOfKind {
    name: "heat",
    title: "Heat over time",
    sentence: "How warm it was.",
    over_time: true,
    columns: &[TableOfKind::TIME, Column::new("moved_mib_per_s", "MiB/s", "Moved.")],
};

fn zones(node: &str, rows: Vec<Vec<Cell>>) -> NodeTable {
    NodeTable::new(node, "host-managed", &ZONES, rows)
}

fn heat(node: &str, values: &[f64]) -> NodeTable {
    let row = |(second, value): (usize, &f64)| vec![number(second as f64), number(*value)];
    NodeTable::new(node, "host-managed", &HEAT, values.iter().enumerate().map(row).collect())
}

fn number(value: f64) -> Cell {
    Cell::Number(value)
}

fn text(value: &str) -> Cell {
    Cell::Text(value.to_string())
}

/// Two runs, with two nodes and one.
fn report() -> Report {
    let workload = Workload {
        path: "t.csv".into(),
        kind: WorkloadKind::Recorded,
        requests: 1,
        sha256: None,
        format: None,
        skipped_lines: BTreeMap::new(),
        repeat: 1,
        new_blocks: false,
        captured_response_ms: None,
        time_inversions: 0,
        combination: None,
    };
    let mut report = Report::new(7, workload);
    let mut run = Run::new("pore", ReplayMode::ClosedLoop { depth: 1 });
    run.parameters.insert("cache.policy".into(), Value::from("a, \"b\""));
    run.costs.finish_s = 2.5;
    run.nodes.insert("left, 1".into(), counts(&[("writes", 7_000), ("reads", 1)]));
    run.nodes.insert("<right>".into(), counts(&[("busy_ns", 3), ("of_an_older_program", 4)]));
    run.figures.tables = vec![
        zones("left, 1", vec![vec![text("full, \"odd\""), Cell::Count(12_345), Cell::Absent]]),
        heat("left, 1", &[1.0, 2.0, 3.0]),
        zones("<right>", vec![vec![text("<open>"), Cell::Count(0), number(1.5)]]),
        heat("<right>", &[4.0]),
    ];
    report.runs.push(run);
    let mut run = Run::new("cmr-only", ReplayMode::ClosedLoop { depth: 1 });
    run.nodes.insert("left, 1".into(), counts(&[("reads", 2)]));
    run.figures.tables = vec![zones("left, 1", vec![])];
    report.runs.push(run);
    report
}

fn counts(values: &[(&str, u64)]) -> BTreeMap<String, u64> {
    values.iter().map(|(name, value)| (name.to_string(), *value)).collect()
}

fn csv(report: &Report, name: &str) -> String {
    let mut files = report.to_csv().into_iter();
    let found = files.find(|(file, _)| file == name);
    found.unwrap_or_else(|| panic!("{name} is written")).1
}

#[test]
fn nodes_csv_has_a_row_for_each_run_node_and_counter() {
    let run = "\"pore policy=a, \"\"b\"\"\"";
    let expected = format!(
        "run,node,counter,unit,value\n\
         {run},<right>,busy_ns,ns,3\n\
         {run},<right>,of_an_older_program,,4\n\
         {run},\"left, 1\",reads,number,1\n\
         {run},\"left, 1\",writes,number,7000\n\
         cmr-only,\"left, 1\",reads,number,2\n"
    );
    assert_eq!(csv(&report(), "nodes.csv"), expected);
    let mut empty = report();
    empty.runs.clear();
    assert_eq!(csv(&empty, "nodes.csv"), "run,node,counter,unit,value\n");
}

#[test]
fn tables_of_one_kind_and_name_are_one_csv_file() {
    let run = "\"pore policy=a, \"\"b\"\"\"";
    let expected = format!(
        "run,node,state,resets,fill_time_s\n\
         {run},\"left, 1\",\"full, \"\"odd\"\"\",12345,\n\
         {run},<right>,<open>,0,1.5\n"
    );
    assert_eq!(ZONES.file("host-managed"), "host_managed_zones.csv");
    assert_eq!(csv(&report(), "host_managed_zones.csv"), expected);
    let expected = format!(
        "run,node,time_s,moved_mib_per_s\n\
         {run},\"left, 1\",0,1\n{run},\"left, 1\",1,2\n{run},\"left, 1\",2,3\n\
         {run},<right>,0,4\n"
    );
    assert_eq!(csv(&report(), "host_managed_heat.csv"), expected);
    let mut without = report();
    without.runs.iter_mut().for_each(|run| run.figures.tables.clear());
    assert!(without.to_csv().iter().all(|(name, _)| !name.starts_with("host_managed")));
}

#[test]
fn all_files_are_written_and_the_document_reads_back() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("nodes");
    let written = report().write_to(&folder).expect("a folder that can be written to");
    for name in ["nodes.csv", "host_managed_zones.csv", "host_managed_heat.csv"] {
        assert!(written.contains(&folder.join(name)), "{name}");
    }
    let document = report().to_json();
    assert_eq!(serde_json::from_str::<Report>(&document).expect("a report"), report());
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let table = &document["runs"][0]["figures"]["tables"][0];
    assert_eq!(table["rows"][0], serde_json::json!(["full, \"odd\"", 12345, null]));
    assert_eq!(table["columns"][2]["unit"], "s");
}

/// The section of the page under a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(&format!("<h2>{heading}</h2>")).unwrap_or_else(|| panic!("{heading}"));
    let rest = &page[start..];
    &rest[..rest.find("</section>").expect("its end")]
}

#[test]
fn the_page_folds_the_counters_of_each_node_and_says_what_they_are() {
    let page = report().to_html();
    let nodes = section(&page, "Nodes");
    assert_eq!(nodes.matches("<details><summary>").count(), 2, "{nodes}");
    let (right, left) = nodes.split_once("<summary>left, 1</summary>").expect("a node");
    assert!(right.contains("<summary>&lt;right&gt;</summary>"), "{right}");
    let row = "<th scope=\"row\" title=\"Reads that arrived.\">reads</th>\
               <td class=\"text\">number</td><td>1</td><td>2</td>";
    assert!(left.contains(row), "{left}");
    assert!(left.contains("<td>7,000</td><td>-</td>"), "a run has not counted it: {left}");
    assert!(left.find(">reads<") < left.find(">writes<"), "as they are declared: {left}");
    let row =
        "<th scope=\"row\" title=\"\">of_an_older_program</th><td class=\"text\"></td><td>4</td>";
    assert!(right.contains(row), "{right}");
    let mut without = report();
    without.runs.iter_mut().for_each(|run| run.nodes.clear());
    assert!(!without.to_html().contains("<h2>Nodes</h2>"));
}

#[test]
fn a_table_of_a_kind_is_a_panel_of_the_page() {
    let page = report().to_html();
    let zones = section(&page, "Zones &amp; more");
    assert!(zones.contains("What each zone has seen.") && zones.contains("<details open>"));
    let column = "title=\"How long it took to fill.\">fill time<small>s</small></th>";
    assert!(zones.contains(column), "{zones}");
    let row = "<td class=\"text\">left, 1</td><td class=\"text\">full, &quot;odd&quot;</td>\
               <td>12,345</td><td>-</td>";
    assert!(zones.contains(row), "{zones}");
    assert!(zones.contains("<td class=\"text\">&lt;open&gt;</td>"), "{zones}");
    let mut long = report();
    let row = vec![text("full"), Cell::Count(1), Cell::Absent];
    long.runs[1].figures.tables = vec![zones_of(row, 600)];
    let page = long.to_html();
    let zones = section(&page, "Zones &amp; more");
    assert!(zones.contains("<details><summary>602 rows</summary>"), "{zones}");
    assert!(zones.contains("500 of 602 rows are shown; host_managed_zones.csv has all."));
}

fn zones_of(row: Vec<Cell>, rows: usize) -> NodeTable {
    zones("z", vec![row; rows])
}

#[test]
fn a_series_of_a_kind_is_a_chart_that_the_script_reads_out() {
    let page = report().to_html();
    let heat = section(&page, "Heat over time");
    assert_eq!(
        heat.matches("data-reader=\"table-1-1\"").count(),
        2,
        "a strip of each node: {heat}"
    );
    assert!(heat.contains("4.00 MiB/s") && heat.contains("1.80 MiB/s"), "the means: {heat}");
    let data = page.split_once("\"charts\":").expect("charts").1;
    let strip = "{\"index\":0,\"name\":\"left, 1\",\"finish_s\":2.5,\
                 \"series\":{\"bucket_s\":1.0,\"values\":[1.0,2.0,3.0]}}";
    assert!(data.contains("\"reader\":\"table-1-1\",\"unit\":\"MiB/s\"") && data.contains(strip));
}

#[test]
#[should_panic(expected = "a value for each column")]
fn a_row_that_is_too_short_is_refused() {
    zones("z", vec![vec![Cell::Count(1)]]);
}
