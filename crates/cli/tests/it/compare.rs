//! `compare`: sweeps and the experiment file of the same runs, settings of one stack, drive files, the version.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn imbrex(folder: &Path, arguments: &str) -> Output {
    let run = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{arguments}: {said}");
    run
}

fn text(output: Output) -> String {
    String::from_utf8(output.stdout).expect("text")
}

/// The runs of a report, without what they cost the machine.
fn runs(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a report");
    let mut report: Value = serde_json::from_str(&text).expect("JSON");
    let runs = report["runs"].as_array_mut().expect("runs");
    for run in &mut *runs {
        run.as_object_mut().expect("a run").remove("simulation");
    }
    runs.clone()
}

const OPTIONS: &str = "--trace synthetic:uniform-random-write/200 --seed 3 --systems lru,smr-only,pore-*f \
                       --sweep cache.capacity=2%,20MiB --set translation.update=in-place";

#[test]
fn a_sweep_runs_each_stack_that_has_the_key_at_each_value() {
    let folder = tempfile::tempdir().expect("a folder");
    imbrex(folder.path(), &format!("compare {OPTIONS} --out swept"));
    let swept = runs(&folder.path().join("swept/report.json"));
    let of = |run: &Value| {
        let capacity = run["parameters"].get("cache.capacity").map(|it| it.as_str().expect("text"));
        (run["system"].as_str().expect("a name").to_string(), capacity.map(str::to_string))
    };
    let row =
        |system: &str, capacity: Option<&str>| (system.to_string(), capacity.map(str::to_string));
    let expected = [
        row("lru", Some("2%")),
        row("lru", Some("20MiB")),
        row("smr-only", None),
        row("pore-cf", Some("2%")),
        row("pore-cf", Some("20MiB")),
        row("pore-pf", Some("2%")),
        row("pore-pf", Some("20MiB")),
    ];
    assert_eq!(swept.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(swept[1]["capacity_blocks"], 5120);

    // A run of a sweep is the run of its setting alone.
    let alone = "compare --trace synthetic:uniform-random-write/200 --seed 3 --systems lru --set cache.capacity=20MiB \
                 --set translation.update=in-place --out alone";
    imbrex(folder.path(), alone);
    let mut in_sweep = swept[1].clone();
    in_sweep["parameters"] = Value::Object(serde_json::Map::new());
    assert_eq!(runs(&folder.path().join("alone/report.json")), [in_sweep]);

    let table = std::fs::read_to_string(folder.path().join("swept/results.csv")).expect("results");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + expected.len());
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    let column = |name: &str| rows[0].iter().position(|it| *it == name).expect("a column");
    let cell = |row: usize, name: &str| rows[row][column(name)];
    assert_eq!((cell(2, "cache.capacity"), cell(2, "capacity_blocks")), ("20MiB", "5120"));
    assert_eq!(
        (cell(2, "disks"), cell(2, "flash_bytes"), cell(2, "memory_bytes")),
        ("1", "20971520", "0")
    );
    assert_eq!((cell(3, "flash_bytes"), cell(3, "raw_bytes")), ("0", "5000980856832"));
    assert_eq!(swept[1]["hardware"]["flash_bytes"], 20 << 20);
    assert_eq!(
        (cell(3, "cache.capacity"), cell(3, "write_hits"), cell(3, "system")),
        ("", "", "smr-only")
    );
    for (at, run) in swept.iter().enumerate() {
        let figure = |value: &Value| value.to_string();
        assert_eq!(cell(at + 1, "bands_rewritten"), figure(&run["bands_rewritten"]));
        assert_eq!(cell(at + 1, "finish_s"), figure(&run["finish_s"]));
        assert_eq!(
            cell(at + 1, "write_response_p99_9_ms"),
            figure(&run["write_response_ms"]["p99_9"])
        );
    }
    let page = std::fs::read_to_string(folder.path().join("swept/report.html")).expect("a page");
    assert!(
        page.contains("<h2>Over cache.capacity</h2>")
            && page.contains("I/O time over cache.capacity")
    );
}

#[test]
fn the_printed_experiment_makes_the_same_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = format!(
        "{OPTIONS} --sweep cache.mode=write-only,read-write --queue-depth 4 --limit 900 --repeat 2 --new-blocks --warm-up 25% --size 64GiB"
    );
    imbrex(folder.path(), &format!("compare {options} --out compared"));
    let file = text(imbrex(folder.path(), &format!("compare {options} --print-experiment")));
    std::fs::write(folder.path().join("e.toml"), file).expect("a file");
    imbrex(folder.path(), "run e.toml --out run");
    let compared = runs(&folder.path().join("compared/report.json"));
    assert_eq!(compared.len(), 13);
    assert_eq!(compared, runs(&folder.path().join("run/report.json")));
}

/// A trace of the MSR format in a folder: of each request the device, whether it is a write, first block and blocks.
fn write_trace(folder: &Path, name: &str, requests: &[(u32, bool, u64, u64)]) {
    let line = |(device, is_write, first, blocks): &(u32, bool, u64, u64)| {
        let what = if *is_write { "Write" } else { "Read" };
        format!("128166386787582087,h,{device},{what},{},{},1\n", first * 4096, blocks * 4096)
    };
    let text: String = requests.iter().map(line).collect();
    std::fs::write(folder.join(name), text).expect("a file");
}

/// Of each part of a trace that was cut: blocks that were read and written there.
fn parts(run: &Value) -> Vec<(u64, u64)> {
    let parts = run["cut_into_windows"]["parts"].as_array().expect("parts").iter();
    let blocks = |part: &Value, key: &str| part[key].as_u64().expect("a count");
    parts.map(|part| (blocks(part, "read_blocks"), blocks(part, "write_blocks"))).collect()
}

#[test]
fn a_trace_of_one_device_is_cut_into_the_windows_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    // Parts of 10 blocks, from block 100 on: the third request crosses one cut, the last one two.
    let requests = [
        (3, true, 100, 4),
        (3, false, 125, 5),
        (3, true, 108, 4),
        (3, true, 139, 1),
        (3, false, 109, 12),
    ];
    write_trace(folder.path(), "one.csv", &requests);
    let command = "compare --trace one.csv --systems dedicated,split,cmr-only --out out";
    let said = text(imbrex(folder.path(), command));
    let line = "dedicated, split: the trace is of one device. The 160 KiB from its first to its last block are cut \
                into 4 equal parts, one for each window; 2 requests that crossed a cut were divided.";
    let unwrapped = said.replace('\n', " ");
    assert!(unwrapped.contains(line), "{said}");
    let found = runs(&folder.path().join("out/report.json"));
    for run in &found[..2] {
        assert_eq!(parts(run), [(1, 6), (10, 2), (6, 0), (0, 1)]);
        let starts = run["cut_into_windows"]["parts"].as_array().expect("parts");
        let starts: Vec<_> = starts.iter().map(|part| part["first_block"].as_u64()).collect();
        assert_eq!(starts, [100, 110, 120, 130].map(Some));
        assert_eq!(run["requests"], 8, "three more than the trace has");
        for key in ["read_blocks", "write_blocks"] {
            assert_eq!(run[key], found[2][key], "{key}");
        }
        let of_windows = run["windows"].as_array().expect("windows").iter();
        let requests: Vec<_> = of_windows.map(|window| window["requests"].as_u64()).collect();
        assert_eq!(requests, [3, 2, 2, 1].map(Some));
    }
    // Each disk has the blocks of its part.
    let disks = found[0]["disks"].as_array().expect("disks").iter();
    let read: Vec<_> = disks.map(|disk| disk["read_bytes"]["host"].as_u64()).collect();
    assert_eq!(read, [1, 10, 6, 0].map(|blocks| Some(blocks * 4096)));
    let report = std::fs::read_to_string(folder.path().join("out/report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["workload"]["requests"], 5, "as the trace has");

    // Counting alone cuts it too.
    let command = "compare --trace one.csv --systems dedicated --untimed --json";
    let counted: Value = serde_json::from_str(&text(imbrex(folder.path(), command))).expect("JSON");
    assert_eq!(parts(&counted["runs"][0]), parts(&found[0]));
}

#[test]
fn a_trace_of_several_devices_has_its_own_windows() {
    let folder = tempfile::tempdir().expect("a folder");
    write_trace(folder.path(), "two.csv", &[(0, true, 100, 4), (2, true, 300, 4)]);
    let command = "compare --trace two.csv --systems dedicated --json";
    let report: Value = serde_json::from_str(&text(imbrex(folder.path(), command))).expect("JSON");
    let run = &report["runs"][0];
    assert_eq!(run.get("cut_into_windows"), None);
    let of_windows = run["windows"].as_array().expect("windows").iter();
    let requests: Vec<_> = of_windows.map(|window| window["requests"].as_u64()).collect();
    assert_eq!(
        requests,
        [1, 1, 0, 0].map(Some),
        "a window for each device in the order of the trace"
    );
}

#[test]
fn the_printed_experiment_cuts_a_trace_as_the_comparison_did() {
    let folder = tempfile::tempdir().expect("a folder");
    write_trace(
        folder.path(),
        "one.csv",
        &[(0, true, 8, 40), (0, false, 90, 5), (0, true, 16, 80)],
    );
    let options = "--trace one.csv --systems split,dedicated,cmr-only";
    imbrex(folder.path(), &format!("compare {options} --out compared"));
    let file = text(imbrex(folder.path(), &format!("compare {options} --print-experiment")));
    assert!(file.contains("cut_into_windows = true"), "{file}");
    std::fs::write(folder.path().join("e.toml"), &file).expect("a file");
    imbrex(folder.path(), "run e.toml --out run");
    let compared = runs(&folder.path().join("compared/report.json"));
    assert_eq!(parts(&compared[0]).len(), 4);
    assert_eq!(compared, runs(&folder.path().join("run/report.json")));

    // An experiment that does not ask for it cuts nothing, and says which window has the requests.
    let plain = file.replace("cut_into_windows = true\n", "");
    std::fs::write(folder.path().join("plain.toml"), plain).expect("a file");
    let said = text(imbrex(folder.path(), "run plain.toml --out plain"));
    assert!(
        said.contains("all requests are of window `volume-0`; the others have none."),
        "{said}"
    );
    assert_eq!(runs(&folder.path().join("plain/report.json"))[0].get("cut_into_windows"), None);
}

#[test]
fn a_trace_replayed_twice_over_is_the_trace_behind_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    // 30 ms, and a mean gap of 10 ms behind it.
    let line = |ms: u64, offset: u64| {
        format!("{},h,0,Write,{},8192,1\n", 128_166_386_787_582_087 + ms * 10_000, offset << 20)
    };
    let round =
        |by: u64| [(0, 3), (4, 1), (5, 9), (30, 3)].map(|(ms, at)| line(ms + by, at)).concat();
    std::fs::write(folder.path().join("once.csv"), round(0)).expect("a file");
    std::fs::write(folder.path().join("twice.csv"), round(0) + &round(40)).expect("a file");
    for how in ["--open-loop", "--queue-depth 2", "--untimed"] {
        let out = how.trim_start_matches('-').replace(' ', "-");
        let of = |trace: &str| {
            imbrex(
                folder.path(),
                &format!("compare --trace {trace} --systems lru,lru-band {how} --out {out}"),
            );
            runs(&folder.path().join(&out).join("report.json"))
        };
        assert_eq!(of("once.csv --repeat 2"), of("twice.csv"), "{how}");
        assert_ne!(of("once.csv"), of("twice.csv"), "{how}");
    }
}

#[test]
fn an_experiment_cuts_a_trace_or_names_windows() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = "name = 'x'\ntitle = 'x'\nsystems = ['dedicated']\n[workload]\npath = 'synthetic:one-block'\n\
                windows = ['disk-0']\ncut_into_windows = true\n";
    std::fs::write(folder.path().join("e.toml"), file).expect("a file");
    let run = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["run", "e.toml"])
        .current_dir(folder.path())
        .output()
        .expect("the command starts");
    assert_ne!(run.status.code(), Some(0));
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(said, "imbrex: e.toml: cut_into_windows and windows: accepted: one of them\n");
}

#[test]
fn the_stacks_on_like_hardware_have_the_same_of_all() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let command = "compare --trace workloads/compile.imbrex.xz --limit 500 --systems hwsr,experiments/alike/pore-alike.toml,\
                   experiments/alike/ride-alike.toml --json";
    let report: Value = serde_json::from_str(&text(imbrex(&repository, command))).expect("JSON");
    let runs = report["runs"].as_array().expect("runs");
    let of = |run: &Value| {
        let disks = run["disks"].as_array().expect("disks").iter();
        let mut drives: Vec<String> = disks.map(|disk| disk["drive"].to_string()).collect();
        drives.sort();
        (run["hardware"].clone(), drives)
    };
    assert!(runs.len() == 3 && runs.iter().all(|run| of(run) == of(&runs[0])), "{runs:?}");
    assert_eq!(runs[0]["hardware"]["memory_bytes"], 64 << 20);
}

#[test]
fn all_systems_run_in_one_comparison() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "compare --trace synthetic:one-block/20000 --systems all --json";
    let report: Value = serde_json::from_str(&text(imbrex(folder.path(), command))).expect("JSON");
    let systems: Vec<&str> = report["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["system"].as_str())
        .collect();
    for wanted in ["cmr-only", "pore", "ride", "hwsr", "raid4smr", "idler", "split"] {
        assert!(systems.contains(&wanted), "{wanted} is not among {systems:?}");
    }
}

#[test]
fn a_key_can_be_set_in_one_stack_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "compare --trace synthetic:one-block/20000 --systems lru,pore --set pore:cache.capacity=2MiB \
                   --set cache.capacity=1MiB --json";
    let report: Value = serde_json::from_str(&text(imbrex(folder.path(), command))).expect("JSON");
    let of =
        |at: usize| (&report["runs"][at]["capacity_blocks"], &report["runs"][at]["parameters"]);
    assert_eq!(of(0), (&256.into(), &serde_json::json!({})));
    assert_eq!(of(1), (&512.into(), &serde_json::json!({ "cache.capacity": "2MiB" })));
}

#[test]
fn a_drive_file_is_a_stack_and_times_that_go_back_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let drive = text(imbrex(folder.path(), "drive show st8000as0002"));
    std::fs::write(folder.path().join("mine.toml"), drive).expect("a file");
    let trace = "128166386787582087,h,0,Read,4096,4096,1\n128166386787582187,h,0,Write,8192,4096,7\n\
                 128166386787582100,h,0,Write,0,4096,7\n";
    std::fs::write(folder.path().join("t.csv"), trace).expect("a file");
    let command = "compare --trace t.csv --systems mine.toml,st8000as0002 --json";
    let report: Value = serde_json::from_str(&text(imbrex(folder.path(), command))).expect("JSON");
    let finish = |at: usize| report["runs"][at]["finish_s"].as_f64();
    assert!(finish(0).is_some() && finish(0) == finish(1));
    assert_eq!(report["workload"]["time_inversions"], 1);

    let told = "1 request of the trace is earlier than the one before, and came with it.";
    let command = "compare --trace t.csv --systems cmr-only";
    assert!(
        !text(imbrex(folder.path(), command)).contains(told),
        "times do not matter back to back"
    );
    assert!(text(imbrex(folder.path(), &format!("{command} --open-loop"))).contains(told));
}

#[test]
fn the_version_names_the_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = text(imbrex(folder.path(), "--version"));
    assert!(said.starts_with(&format!("imbrex {} (", env!("CARGO_PKG_VERSION"))), "{said}");
    assert!(said.contains("commit"), "{said}");
}

#[test]
fn the_log_of_requests_has_a_line_for_each_and_their_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path();
    let options = "--trace synthetic:uniform-random-write/200 --systems lru,idler --fit wrap \
                   --sweep cache.capacity=1MiB,2MiB --limit 600 --warm-up 100 --quiet";
    imbrex(place, &format!("compare {options} --jobs 2 --log-requests log.csv --out out"));
    let log = std::fs::read_to_string(place.join("log.csv")).expect("a log");
    let header =
        "run,request,operation,offset_bytes,length_bytes,arrival_s,start_s,end_s,waited_for";
    assert_eq!(log.lines().next(), Some(header));
    let runs = runs(&place.join("out/report.json"));
    assert_eq!(log.lines().count(), 1 + 500 * runs.len());
    for run in &runs {
        let label = match run["parameters"]["cache.capacity"].as_str() {
            Some(capacity) => format!("lru capacity={capacity},"),
            None => "idler,".to_string(),
        };
        let lines: Vec<Vec<&str>> = log
            .lines()
            .filter(|line| line.starts_with(&label))
            .map(|line| line.split(',').collect())
            .collect();
        let number = |line: &[&str], column: usize| line[column].parse::<f64>().expect("a number");
        let numbers: Vec<f64> = lines.iter().map(|line| number(line, 1)).collect();
        assert_eq!(numbers, (101..=600).map(f64::from).collect::<Vec<_>>(), "one at a time");
        let took = |line: &Vec<&str>| 1e3 * (number(line, 7) - number(line, 6));
        let mean_ms = lines.iter().map(took).sum::<f64>() / 500.0;
        let told_ms = run["response_ms"]["mean"].as_f64().expect("a mean");
        assert!((mean_ms - told_ms).abs() < 1e-4 * told_ms, "{label}: {mean_ms} {told_ms}");
        let written: f64 =
            lines.iter().filter(|it| it[2] == "write").map(|line| number(line, 4)).sum();
        assert_eq!(Some(written as u64), run["write_blocks"].as_u64().map(|blocks| blocks * 4096));
        let last = lines.last().map(|line| number(line, 7)).expect("a line");
        assert!((last - run["finish_s"].as_f64().expect("a time")).abs() < 1e-6);
    }
    imbrex(place, &format!("compare {options} --jobs 1 --log-requests again.csv"));
    assert_eq!(std::fs::read_to_string(place.join("again.csv")).expect("a log"), log);
    let left: Vec<_> = std::fs::read_dir(place).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 3, "no part is left: {left:?}");
}

/// The peaks of memory that the runs of a comparison have, in their order.
fn peaks(folder: &Path, options: &str) -> Vec<Option<u64>> {
    let of = "compare --trace synthetic:uniform-random-write/200 --json --quiet";
    let report = text(imbrex(folder, &format!("{of} {options}")));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let runs = report["runs"].as_array().expect("runs");
    runs.iter().map(|run| run["simulation"]["peak_rss_bytes"].as_u64()).collect()
}

#[test]
fn a_run_tells_the_peak_of_the_process_only_where_it_has_the_process_to_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let peaks = |options: &str| peaks(folder.path(), options);
    let alone = peaks("--systems smr-only");
    assert!(alone[0] > Some(1 << 20), "{alone:?}");
    // Behind a run with a cache the peak of the process is that of this one, which nobody may take for the other's.
    let behind = peaks("--systems lru,smr-only --jobs 1");
    assert!(behind[0] > Some(1 << 20) && behind[1].is_none(), "{behind:?}");
    let beside = peaks("--systems lru,smr-only,pore --jobs 2");
    assert!(beside[1..].iter().all(Option::is_none), "{beside:?}");
}

#[test]
fn a_cache_without_spare_slots_is_told_with_what_that_costs() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments =
        "compare --trace synthetic:uniform-random-write/200 --systems lru,smr-only,idler-buffer";
    let line = "Without spare slots blocks that come together lie apart on the SSD. Operations there for a request: ";
    let with = text(imbrex(folder.path(), arguments));
    assert!(!with.contains("spare"), "{with}");
    let without = format!("{arguments} --set lru:cache.spare_share=0 --out results");
    let without = text(imbrex(folder.path(), &without));
    // Lines are broken to the width of a screen.
    let words = without.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = words.split_once(line).expect(&words).1.split_once(" (lru").expect("a system").0;
    let told: f64 = told.parse().expect(told);

    let runs = runs(&folder.path().join("results/report.json"));
    let lru = runs.iter().find(|run| run["system"] == "lru").expect("a run");
    let of_ssd = |key: &str| lru["nodes"]["ssd"][key].as_f64().expect("a count");
    let each = (of_ssd("reads") + of_ssd("writes")) / lru["requests"].as_f64().expect("requests");
    assert!((told - each).abs() <= 0.05, "{told} {each}");
    assert_eq!(lru["nodes"]["cache"]["spare_slots"], 0);
}
