//! Arrays that lose members while a load is replayed, and get them back.

use crate::report::schema_violations;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_report::{Report, Run};
use imbrex_sim::experiment::{Experiment, Found, Watch, execute};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

pub const KINDS: [&str; 4] = ["raid1", "raid4", "raid5", "raid4smr"];
/// Rows of the members of the levels: a rebuild of them has four parts.
const ROWS: u64 = 4096;
/// Requests of a load.
const REQUESTS: u64 = 600;
/// From one request to the next.
const GAP_MS: u64 = 30;

/// A disk of a drive file of the tests, or of a ready-made drive.
fn disk(name: &str, drive: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
    let drive = match drive.ends_with(".toml") {
        true => format!("{folder}/{drive}"),
        false => drive.to_string(),
    };
    format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\n")
}

/// Names of nodes as a list.
fn names(of: &str, numbers: std::ops::Range<usize>) -> String {
    let names = numbers.map(|number| format!("\"{of}{number}\""));
    names.collect::<Vec<_>>().join(", ")
}

pub fn members(kind: &str) -> usize {
    match kind {
        "raid1" => 2,
        "raid4smr" => 5,
        _ => 4,
    }
}

/// Blocks of a device of a kind.
fn blocks(kind: &str) -> u64 {
    match kind {
        "raid1" => ROWS,
        _ => 3 * ROWS,
    }
}

/// What arrays are made of.
pub struct Parts {
    home: &'static str,
    other: &'static str,
    /// Blocks of a track and tracks of a band.
    band: (u64, u64),
    data_capacity: &'static str,
}

const LARGE: Parts = Parts {
    home: "small-smr.toml",
    other: "cmr-500gb-7200",
    band: (20, 4),
    data_capacity: "8 MiB",
};

/// For contents.
pub const SMALL: Parts = Parts {
    home: "tiny-smr.toml",
    other: "tiny-cmr.toml",
    band: (5, 2),
    data_capacity: "1600 KiB",
};

/// Keys of a RAID 4SMR with static places that collects early, and none of other kinds.
fn usual_keys(kind: &str) -> &'static str {
    match kind {
        "raid4smr" => "bands = \"disk\"\nplacement = \"static\"\ncollect_at = 40\n",
        _ => "",
    }
}

/// An array of a kind over disks `d0` and so on, with spares `s0` and so on.
fn array(kind: &str, spares: usize) -> String {
    array_of(&LARGE, kind, spares, usual_keys(kind), "d")
}

/// The same of other parts and with other keys. Homes of RAID 4SMR have names that begin with `homes`: they
/// are zones over the disks if that is `z`.
pub fn array_of(parts: &Parts, kind: &str, spares: usize, keys: &str, homes: &str) -> String {
    let count = members(kind);
    let mut text = String::new();
    for member in 0..count {
        let is_home = kind == "raid4smr" && member < 3;
        text += &disk(&format!("d{member}"), if is_home { parts.home } else { parts.other });
        if is_home && homes == "z" {
            text += &format!(
                "[[node]]\nname = \"z{member}\"\nkind = \"host-managed\"\nbelow = \"d{member}\"\n\
                 zone_size = \"40 KiB\"\n"
            );
        }
    }
    for spare in 0..spares {
        text += &disk(&format!("s{spare}"), parts.other);
    }
    text += &format!("[[node]]\nname = \"array\"\nkind = \"{kind}\"\n");
    text += &match kind {
        "raid4smr" => format!(
            "below = {{ homes = [{}], data = \"d3\", parity = \"d4\" }}\ntrack_blocks = {}\n\
             band_tracks = {}\ndata_capacity = \"{}\"\n",
            names(homes, 0..3),
            parts.band.0,
            parts.band.1,
            parts.data_capacity
        ),
        _ => format!("below = [{}]\n", names("d", 0..count)),
    };
    if spares > 0 {
        text += &format!("spares = [{}]\n", names("s", 0..spares));
    }
    format!("{text}{keys}")
}

/// Requests for 1 to 4 blocks, a third of them reads; to few blocks where many are to be written again.
struct Load {
    folder: TempDir,
    /// Of each whether it reads, its first block and how many there are.
    requests: Vec<(bool, u64, u64)>,
}

impl Load {
    fn new(kind: &str) -> Load {
        let span = if kind == "raid4smr" { 800 } else { blocks(kind) };
        let mut state = 7u64;
        let mut requests = Vec::new();
        for number in 1..=REQUESTS {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let length = 1 + (state >> 40) % 4;
            // Where a disk fails after so many requests, the one that is under way writes.
            let is_read = number == REQUESTS
                || (!number.is_multiple_of(100) && (state >> 50).is_multiple_of(3));
            requests.push((is_read, (state >> 20) % (span - length + 1), length));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let load = Load { folder, requests };
        let mut lines = String::new();
        for (number, (is_read, start, length)) in (0..).zip(&load.requests) {
            let at = 128_166_386_787_582_087 + number * GAP_MS * 10_000;
            let what = if *is_read { "Read" } else { "Write" };
            let (offset, bytes) = (start * BLOCK_BYTES, length * BLOCK_BYTES);
            lines += &format!("{at},host,0,{what},{offset},{bytes},1331\n");
        }
        std::fs::write(load.folder.path().join("trace.csv"), lines).expect("a file");
        load
    }

    /// An experiment with an array, this load and events.
    fn experiment(&self, size: u64, array: &str, workload: &str, events: &[String]) -> String {
        let path = self.folder.path().join("trace.csv");
        format!(
            "name = \"array\"\ntitle = \"a test\"\nsize = \"{} B\"\n\
             series = [\"array.missing_members\", \"array.rebuilding_members\"]\n{array}\n\
             [workload]\npath = \"{}\"\n{workload}\n{}",
            size * BLOCK_BYTES,
            path.display(),
            events.concat()
        )
    }

    /// The same of a kind, each request at its instant.
    fn replayed(&self, kind: &str, spares: usize, events: &[String]) -> Told {
        let size = if kind == "raid4smr" { 4000 } else { blocks(kind) };
        let text = self.experiment(size, &array(kind, spares), "open_loop_speed = 1.0", events);
        Told::of(&text).unwrap_or_else(|error| panic!("{kind}: {error}"))
    }
}

/// An event at an instant.
fn at(at_s: f64, node: &str, command: &str) -> String {
    format!("[[event]]\nat_s = {at_s}\nnode = \"{node}\"\ncommand = \"{command}\"\n")
}

/// An event after so many requests.
fn after(requests: u64, node: &str, command: &str) -> String {
    format!("[[event]]\nafter_requests = {requests}\nnode = \"{node}\"\ncommand = \"{command}\"\n")
}

/// The report of an experiment with one run.
struct Told {
    report: Report,
}

impl Told {
    fn of(text: &str) -> Result<Told, String> {
        let experiment = Experiment::parse("test.toml", text, Path::new(""));
        let experiment = experiment.map_err(|error| error.to_string())?;
        let outcomes = execute(&[experiment], &[], None, 1, &Watch::nobody());
        let mut outcomes = outcomes.map_err(|error| error.to_string())?;
        let Found::Runs(report) = outcomes.remove(0).workloads.remove(0).found else {
            panic!("a stack was run");
        };
        assert_eq!(schema_violations(&report), [""; 0]);
        Ok(Told { report: *report })
    }

    fn run(&self) -> &Run {
        &self.report.runs[0]
    }

    fn json(&self) -> Value {
        let mut report: Value = serde_json::from_str(&self.report.to_json()).expect("JSON");
        report["runs"][0].take()
    }

    fn count(&self, counter: &str) -> u64 {
        self.run().nodes["array"][counter]
    }

    /// What came of the events.
    fn outcomes(&self) -> Vec<String> {
        let events = self.json()["events"].as_array().expect("events").clone();
        let outcome = |event: &Value| event["outcome"].as_str().expect("words").to_string();
        events.iter().map(outcome).collect()
    }

    /// When an event was over.
    fn ended_at(&self, event: usize) -> f64 {
        self.json()["events"][event]["ended_at_s"].as_f64().expect("a time")
    }

    /// A fact of a status.
    fn fact(&self, event: usize, name: &str) -> Option<u64> {
        self.json()["events"][event]["facts"][name].as_u64()
    }

    fn file(&self, name: &str) -> Option<String> {
        let files = self.report.to_csv();
        files.into_iter().find(|(file, _)| file == name).map(|(_, text)| text)
    }
}

/// The phases that a run was in, with their starts, hold all of its requests and fill all of its time.
fn check_phases(told: &Told, expected: &[(&str, f64)]) {
    let phases: Vec<_> = told.run().phases.as_ref().expect("a member was lost").iter().collect();
    let starts: Vec<_> = phases.iter().map(|(phase, of)| (phase.name(), of.start_s)).collect();
    assert_eq!(starts, expected);
    let requests: u64 = phases.iter().map(|(_, of)| of.requests).sum();
    assert_eq!(requests, REQUESTS);
    let total: f64 = phases.iter().map(|(_, of)| of.total_s).sum();
    assert!((total - told.run().costs.finish_s).abs() < 1e-6, "{total}");
    let json = told.json();
    for (phase, of) in phases {
        let written = &json["phases"][phase.name()];
        assert_eq!(written["requests"], of.requests);
        let mean = written["response_ms"]["mean"].as_f64();
        assert_eq!(mean.is_some_and(|mean| mean > 0.0), of.requests > 0, "{phase:?}: {mean:?}");
        let both = [of.read_response_ms, of.write_response_ms];
        assert!(of.requests < 50 || both.iter().all(|of| of.mean.is_some()), "{phase:?}");
    }
}

/// The files and the page tell the phases, and of the rebuild how far it was.
fn check_files(told: &Told, phases: &[(&str, f64)]) {
    let file = told.file("phases.csv").expect("phases");
    let lines: Vec<&str> = file.lines().collect();
    assert!(lines[0].starts_with("run,phase,start_s,total_s,requests,response_mean_ms"), "{file}");
    assert_eq!(lines.len(), 1 + phases.len(), "{file}");
    for (line, (phase, start_s)) in lines[1..].iter().zip(phases) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[1], *phase, "{file}");
        let start: f64 = fields[2].parse().expect("a number");
        assert!((start - start_s).abs() < 1e-6, "{file}");
    }
    let page = told.report.to_html();
    assert!(page.contains(">Phases of arrays</h2>"));
    let is_rebuilt = phases.iter().any(|(phase, _)| *phase == "rebuilding");
    assert_eq!(page.contains(">Progress of rebuilds</h3>"), is_rebuilt);
    let progress = told.file("rebuild_progress.csv");
    assert_eq!(progress.is_some(), is_rebuilt);
    let Some(progress) = progress else { return };
    assert!(progress.starts_with("run,node,time_s,progress\narray,array,0,0\n"), "{progress}");
    let shares = progress.lines().skip(1).map(|line| {
        let share: f64 = line.split(',').nth(3).expect("a share").parse().expect("a number");
        assert!((0.0..=1.0).contains(&share), "{line}");
        share
    });
    // Members of RAID 4SMR are rebuilt in one part.
    let is_long = told.count("rebuilt_blocks") >= ROWS;
    assert_eq!(shares.fold(0.0, f64::max) > 0.5, is_long, "{progress}");
}

/// Nothing is missing any more.
fn check_whole(told: &Told) {
    for gauge in ["missing_members", "rebuilding_members", "rebuild_progress"] {
        assert_eq!(told.count(gauge), 0, "{gauge}");
    }
}

#[test]
fn a_lost_member_is_replaced_and_rebuilt_while_requests_go_on() {
    for kind in KINDS {
        let load = Load::new(kind);
        let members = members(kind);
        for member in [0, members - 2, members - 1] {
            let name = format!("d{member}");
            let events = [
                at(3.0, &name, "fail"),
                at(6.0, &name, "replace"),
                at(6.5, "array", "rebuild"),
                at(6.5, "array", "status"),
                at(18.0, "array", "status"),
            ];
            let told = load.replayed(kind, 0, &events);
            assert_eq!(told.outcomes(), ["done"; 5], "{kind}: {name}");
            let ended = told.ended_at(2);
            let phases =
                [("healthy", 0.0), ("degraded", 3.0), ("rebuilding", 6.5), ("after", ended)];
            check_phases(&told, &phases);
            check_files(&told, &phases);
            check_whole(&told);
            let rebuilt = told.count("rebuilt_blocks");
            match kind {
                "raid4smr" => assert!((1..2000).contains(&rebuilt), "{name}: {rebuilt}"),
                _ => assert_eq!(rebuilt, ROWS, "{kind}: {name}"),
            }
            // What nobody reads, and what another member has, is found from no others.
            let is_read = kind == "raid5" || (kind != "raid1" && member + 1 < members);
            assert_eq!(told.count("degraded_read_blocks") > 0, is_read, "{kind}: {name}");
            let lacking = [3, 4].map(|event| told.fact(event, "members_lacking"));
            assert_eq!(lacking, [Some(1), Some(0)], "{kind}: {name}");
            let series = &told.run().figures.series;
            for (gauge, from_s, to_s) in [("missing", 3.0, 6.5), ("rebuilding", 6.5, ended)] {
                let series = &series[&format!("array.{gauge}_members")];
                let sum: f64 = series.values.iter().sum::<f64>() * series.bucket_s;
                assert!((sum - (to_s - from_s)).abs() < 0.1, "{kind}: {name}: {gauge}: {sum}");
            }
        }
    }
}

#[test]
fn a_run_that_loses_no_member_tells_no_phases() {
    for kind in KINDS {
        let told = Load::new(kind).replayed(kind, 0, &[at(9.0, "array", "status")]);
        assert!(told.json().get("phases").is_none(), "{kind}");
        let files = ["phases.csv", "rebuild_progress.csv"].map(|name| told.file(name));
        assert_eq!(files, [None, None], "{kind}");
        assert!(!told.report.to_html().contains("Phases of arrays"), "{kind}");
        assert_eq!(told.count("rebuilt_blocks") + told.count("degraded_read_blocks"), 0, "{kind}");
    }
}

#[test]
fn a_member_that_nobody_replaces_is_missing_to_the_end() {
    for kind in KINDS {
        let told = Load::new(kind).replayed(kind, 0, &[at(3.0, "d1", "fail")]);
        let phases = [("healthy", 0.0), ("degraded", 3.0)];
        check_phases(&told, &phases);
        check_files(&told, &phases);
        assert_eq!(told.count("missing_members"), 1, "{kind}");
    }
}

#[test]
fn a_spare_steps_in_by_itself_and_a_replaced_disk_is_the_next_spare() {
    for kind in KINDS {
        let events = [
            at(3.0, "d0", "fail"),
            at(8.0, "array", "status"),
            at(8.0, "d0", "replace"),
            at(8.0, "array", "status"),
        ];
        let load = Load::new(kind);
        let told = load.replayed(kind, 1, &events);
        assert_eq!(told.outcomes(), ["done"; 4], "{kind}");
        let after = told.run().phases.as_ref().and_then(|it| it.after.as_ref()).expect("an end");
        let phases = [("healthy", 0.0), ("rebuilding", 3.0), ("after", after.start_s)];
        check_phases(&told, &phases);
        check_files(&told, &phases);
        check_whole(&told);
        assert!((3.0..4.0).contains(&after.start_s), "{kind}: {}", after.start_s);
        let spares = [1, 3].map(|event| told.fact(event, "spares_left").expect("a count"));
        // The disks of `raid4smr` differ: this one stands by for the place that it had.
        assert_eq!(spares, [0, 1], "{kind}");
        let once = told.count("rebuilt_blocks");
        assert!(told.run().nodes["s0"]["written_blocks"] >= once, "{kind}");
        if kind == "raid4smr" {
            assert!(once > 0);
            // It does not stand for another member, and does for the spare in its place.
            let other = [at(9.0, "d1", "fail"), at(15.0, "array", "status")];
            let told = load.replayed(kind, 1, &[&events[..], &other[..]].concat());
            assert_eq!(told.fact(5, "members_lacking"), Some(1));
            let stand_in = [at(9.0, "s0", "fail"), at(15.0, "array", "status")];
            let told = load.replayed(kind, 1, &[&events[..], &stand_in[..]].concat());
            check_whole(&told);
            assert_eq!(told.fact(5, "members_lacking"), Some(0));
            continue;
        }
        assert_eq!(once, ROWS, "{kind}");
        let more = [at(9.0, "d1", "fail"), at(15.0, "array", "status")];
        let told = load.replayed(kind, 1, &[&events[..], &more[..]].concat());
        check_whole(&told);
        assert_eq!(told.count("rebuilt_blocks"), 2 * ROWS, "{kind}");
        assert_eq!(told.fact(5, "members_lacking"), Some(0), "{kind}");
    }
}

#[test]
fn a_rate_slows_a_rebuild_down() {
    for kind in KINDS {
        let load = Load::new(kind);
        let took = |rate: &str| {
            let rebuild = at(6.5, "array", "rebuild") + rate;
            let told =
                load.replayed(kind, 0, &[at(3.0, "d0", "fail"), at(6.0, "d0", "replace"), rebuild]);
            check_whole(&told);
            let rebuilding = told.run().phases.as_ref().and_then(|it| it.rebuilding.clone());
            let total = rebuilding.expect("a phase").total_s;
            assert!((total - (told.ended_at(2) - 6.5)).abs() < 1e-6, "{kind}");
            total
        };
        assert!(took("") < 1.0, "{kind}");
        match kind {
            // Of a home there is little to write.
            "raid4smr" => assert!(took("rate = \"8 KiB/s\"\n") > 5.0),
            _ => {
                let slow = took("rate = \"2 MiB/s\"\n");
                assert!((6.0..8.5).contains(&slow), "{kind}: {slow}");
                let slower = took("rate = \"1 MiB/s\"\n");
                assert!((12.0..16.5).contains(&slower), "{kind}: {slower}");
            }
        }
    }
}

/// The column of a block.
fn column_of(kind: &str, block: u64) -> u64 {
    let (row, index) = (block / 3, block % 3);
    match kind {
        "raid5" if index >= row % 4 => index + 1,
        _ => index,
    }
}

#[test]
fn blocks_of_a_missing_member_are_read_from_the_others_and_counted() {
    for kind in ["raid4", "raid5"] {
        let load = Load::new(kind);
        for member in 0..4u64 {
            let event = after(200, &format!("d{member}"), "fail");
            let text = load.experiment(blocks(kind), &array(kind, 0), "", &[event]);
            let told = Told::of(&text).expect("it goes on");
            let reads = load.requests[200..].iter().filter(|(is_read, ..)| *is_read);
            let blocks = reads.flat_map(|(_, start, length)| *start..start + length);
            let expected = blocks.filter(|block| column_of(kind, *block) == member).count();
            assert_eq!(told.count("degraded_read_blocks"), expected as u64, "{kind}: {member}");
        }
    }
}

#[test]
fn a_rebuild_of_raid4smr_writes_what_was_written_and_no_more() {
    let load = Load::new("raid4smr");
    let keys = "bands = \"disk\"\ncollect_at = \"never\"\n";
    let rebuilt = |member: u64| {
        let name = format!("d{member}");
        // The last request has ended long before the disk is replaced.
        let events = [
            after(REQUESTS, &name, "fail"),
            at(1e3, &name, "replace"),
            at(1e3, "array", "rebuild"),
        ];
        let text = load.experiment(4000, &array_of(&LARGE, "raid4smr", 0, keys, "d"), "", &events);
        let told = Told::of(&text).expect("it goes on");
        assert_eq!(told.outcomes(), ["done"; 3], "{name}");
        let [first_writes, redirected, slots] =
            ["first_writes", "redirected", "slots_peak"].map(|counter| told.count(counter));
        assert_eq!(told.count("updates"), redirected);
        let of_home = |home| (first_writes + 2 - home) / 3;
        let expected = match member {
            home @ 0..3 => of_home(home),
            3 => slots,
            _ => slots.max(of_home(0)),
        };
        assert_eq!(told.count("rebuilt_blocks"), expected, "{name}");
        expected
    };
    assert!((0..5).all(|member| rebuilt(member) > 100));
}

#[test]
fn band_rows_are_collected_before_a_loss_and_after_it_but_not_meanwhile() {
    let load = Load::new("raid4smr");
    for member in 0..5 {
        let name = format!("d{member}");
        let events = [after(200, &name, "fail"), after(400, &name, "replace")];
        let collections = |requests: u64, events: &[String]| {
            let workload = format!("limit = {requests}");
            let text = load.experiment(4000, &array("raid4smr", 0), &workload, events);
            let told = Told::of(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            (told.count("collections"), told.count("map_entries"))
        };
        let (before, few) = collections(200, &[]);
        let (meanwhile, many) = collections(410, &events);
        assert!(before > 0 && few < many, "{name}: {before} {few} {many}");
        assert_eq!(meanwhile, before, "{name}");
        let whole = [&events[..], &[after(410, "array", "rebuild")]].concat();
        let (after, _) = collections(REQUESTS, &whole);
        assert!(after > before, "{name}: {before} {after}");
    }
}

#[test]
fn a_report_tells_what_was_on_the_data_disk_and_how_often_it_was_collected() {
    let load = Load::new("raid4smr");
    let told = load.replayed("raid4smr", 0, &[]);
    let file = told.file("raid4smr_data_disk.csv").expect("a table");
    let last = file.lines().last().expect("a row").to_string();
    let last: Vec<&str> = last.split(',').collect();
    assert_eq!(last[..2], ["array", "array"]);
    let at_end = |column: usize| last[column].parse::<f64>().expect("a number").round() as u64;
    assert!(at_end(3) > 0 && at_end(3) <= told.count("slots_peak"), "{last:?}");
    assert!(at_end(4) > 1 && at_end(4) <= told.count("collections"), "{last:?}");
    assert!(told.report.to_html().contains("Data disks of RAID 4SMR over time"));
    let raid = Load::new("raid4").replayed("raid4", 0, &[]);
    assert!(raid.file("raid4smr_data_disk.csv").is_none());
}

#[test]
fn a_run_with_a_loss_a_rebuild_and_collections_is_the_same_again() {
    for kind in KINDS {
        let load = Load::new(kind);
        let rebuild = at(6.5, "array", "rebuild") + "rate = \"4 MiB/s\"\n";
        let events = [at(3.0, "d0", "fail"), at(6.0, "d0", "replace"), rebuild];
        let [first, again] = [(); 2].map(|()| load.replayed(kind, 0, &events));
        let jsons = [&first, &again].map(|told| told.report.without_simulation().to_json());
        assert!(jsons[0] == jsons[1], "{kind}");
        assert!(jsons[0].contains("\"rebuilding\""), "{kind}");
        assert_eq!(first.report.to_csv().len(), again.report.to_csv().len(), "{kind}");
        let files = ["phases.csv", "rebuild_progress.csv"];
        assert_eq!(files.map(|name| first.file(name)), files.map(|name| again.file(name)));
        if kind == "raid4smr" {
            assert!(first.count("collections") > 5);
        }
    }
}

#[test]
fn a_second_loss_ends_the_run_with_an_error_that_names_the_request() {
    for kind in KINDS {
        let load = Load::new(kind);
        let size = if kind == "raid4smr" { 4000 } else { blocks(kind) };
        let fails = [after(200, "d0", "fail"), after(300, "d1", "fail")];
        let rebuilding = [
            after(200, "d0", "fail"),
            after(250, "d0", "replace"),
            after(299, "array", "rebuild") + "rate = \"1 MiB/s\"\n",
            after(300, "d1", "fail"),
        ];
        for events in [&fails[..], &rebuilding[..]] {
            let text = load.experiment(size, &array(kind, 0), "", events);
            let error = Told::of(&text).err().expect("what needs both is lost");
            let words = error.split("trace.csv: record ").nth(1).expect("a request");
            let (record, words) = words.split_once(": ").expect("a number and words");
            assert_eq!(words, "disk is lost", "{kind}");
            let record: u64 = record.parse().expect("a number");
            assert!((300..400).contains(&record), "{kind}: {record}");
        }
    }
}

#[test]
fn a_mirror_goes_on_with_its_last_member_and_gets_both_others_back() {
    let load = Load::new("raid1");
    let disks = (0..3).map(|member| disk(&format!("d{member}"), "cmr-500gb-7200"));
    let disks = disks.collect::<Vec<_>>().concat();
    let spares = disk("s0", "850evo") + &disk("s1", "850evo");
    let node = "[[node]]\nname = \"array\"\nkind = \"raid1\"\nbelow = [\"d0\", \"d1\", \"d2\"]\n";
    let fails = [at(3.0, "d0", "fail"), at(3.0, "d2", "fail")];
    let replaced = [
        at(5.0, "d0", "replace"),
        at(5.0, "d2", "replace"),
        at(6.0, "array", "rebuild"),
        at(9.0, "array", "rebuild"),
    ];
    let of = |array: String, events: &[String]| {
        let text = load.experiment(ROWS, &array, "open_loop_speed = 1.0", events);
        let told = Told::of(&text).expect("one member has everything");
        check_whole(&told);
        assert_eq!(told.count("rebuilt_blocks"), 2 * ROWS);
        told
    };
    let told = of(format!("{disks}{node}"), &[&fails[..], &replaced[..]].concat());
    assert_eq!(told.outcomes(), ["done"; 6]);
    let told = of(format!("{disks}{spares}{node}spares = [\"s0\", \"s1\"]\n"), &fails);
    assert!(["s0", "s1"].iter().all(|spare| told.run().nodes[*spare]["written_blocks"] >= ROWS));
}

#[test]
fn commands_that_an_array_cannot_take_come_to_nothing_in_words() {
    for kind in KINDS {
        let load = Load::new(kind);
        let events = [
            at(1.0, "array", "scrub"),
            at(1.0, "array", "rebuild"),
            at(1.0, "d1", "replace"),
            at(2.0, "d1", "fail"),
            at(3.0, "array", "rebuild"),
            at(4.0, "d1", "replace"),
            at(5.0, "d1", "replace"),
            at(5.0, "array", "rebuild"),
        ];
        let told = load.replayed(kind, 0, &events);
        let not_lost = "the disk is not lost; accepted: a disk that is, after `fail`";
        let expected = [
            "the node takes no such command",
            "done",
            not_lost,
            "done",
            "a member is out and nothing has taken its place; its disk must be replaced first",
            "done",
            not_lost,
            "done",
        ];
        assert_eq!(told.outcomes(), expected, "{kind}");
        check_whole(&told);
        let size = if kind == "raid4smr" { 4000 } else { blocks(kind) };
        for (node, command, words) in [
            ("array", "fail", "node `array` is no disk; accepted by `fail`: disks"),
            ("array", "replace", "node `array` is no disk; accepted by `replace`: disks"),
            ("d0", "rebuild", "node `d0` is a disk; accepted by `rebuild`: arrays"),
            ("d9", "fail", "no stack has a node `d9`"),
        ] {
            let events = [at(1.0, node, command)];
            let text = load.experiment(size, &array(kind, 0), "", &events);
            let error = Told::of(&text).err().expect("it cannot be");
            assert!(error.starts_with("test.toml: [[event]] 1: "), "{error}");
            assert!(error.contains(words), "{kind}: {error}");
        }
    }
}

#[test]
fn a_disk_below_a_layer_with_a_journal_is_a_spare_when_one_has_taken_its_place() {
    let load = Load::new("raid1");
    let member = |name: &str| {
        let below = format!("{name}-smr");
        disk(&below, "small-smr.toml")
            + &format!(
                "[[node]]\nname = \"{name}\"\nkind = \"persistent-cache\"\nbelow = \"{below}\"\n\
                 bands = \"uniform:64KiB..144KiB\"\npersistent_cache = \"128 KiB\"\n\
                 durable = true\nring_blocks = 16\n"
            )
    };
    let below = ["a", "b", "c"].map(member).concat();
    let node =
        "[[node]]\nname = \"array\"\nkind = \"raid1\"\nbelow = [\"a\", \"b\"]\nspares = [\"c\"]\n";
    let events = [at(3.0, "a-smr", "fail"), at(9.0, "a-smr", "replace")];
    let workload = "open_loop_speed = 1.0\nfit = \"wrap\"";
    let text = load.experiment(512, &format!("{below}{node}"), workload, &events);
    let told = Told::of(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(told.outcomes(), ["done", "done"]);
    check_whole(&told);
    assert_eq!(told.count("rebuilt_blocks"), 512);
}

#[test]
fn updates_without_a_slot_end_a_run_while_a_member_is_missing() {
    let load = Load::new("raid4smr");
    let keys = "bands = \"disk\"\ncollect_at = 5\n";
    let parts = Parts { data_capacity: "80 KiB", ..LARGE };
    let array = array_of(&parts, "raid4smr", 0, keys, "d");
    let run = |events: &[String]| Told::of(&load.experiment(4000, &array, "", events));
    let told = run(&[]).expect("room is made");
    assert!(told.count("slots_peak") <= 20 && told.count("collections") > 5);
    let error = run(&[after(200, "d4", "fail")]).err().expect("no room is made");
    assert!(error.ends_with(": no space left below"), "{error}");
}
