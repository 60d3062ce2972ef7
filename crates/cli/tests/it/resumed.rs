//! `run` and `reproduce` that are killed and go on, and how long work shows itself.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Nine runs: of a recipe, of a file, and of one that is a pipe when the command is to be killed: nothing comes
/// out of it, so that the command waits there.
const EXPERIMENT: &str = r#"
name = "small"
title = "a test"
size = "8 GiB"
systems = ["cmr-only", "lru"]

[[workload]]
name = "recipe"
path = "synthetic:uniform-random-write"
scale = 1000

[[workload]]
name = "file"
path = "short.csv"
columns = "time=1:us,op=2:rw,off=3:bytes,len=4:bytes"

[[workload]]
name = "last"
path = "last.csv"
columns = "time=1:us,op=2:rw,off=3:bytes,len=4:bytes"

[sweep]
"cache.capacity" = ["1MiB", "4MiB"]
"#;

/// An array for `reliability`.
const ARRAY: &str = r#"
[disk]
capacity = "8 TB"
mttf_h = 1000
[repair]
mean_h = 10
[layout]
kind = "raid4"
homes = 3
"#;

/// Three jobs for `drive fio`.
const JOBS: &str = "
[global]
filename=/dev/disk
rw=randread
direct=1
[first]
numjobs=2
number_ios=100
[second]
stonewall
runtime=1
time_based
";

fn imbrex(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(arguments.split(' ')).current_dir(folder).env("NO_COLOR", "1");
    command
}

fn output(folder: &Path, arguments: &str) -> Output {
    imbrex(folder, arguments).output().expect("it starts")
}

/// What a command that succeeds says on standard error.
fn said(folder: &Path, arguments: &str) -> Vec<String> {
    let output = output(folder, arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{arguments}: {error}");
    error.lines().map(str::to_string).collect()
}

/// A folder with the experiment and its traces.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("small.toml"), EXPERIMENT).expect("a file");
    fs::write(folder.path().join("short.csv"), trace(4096)).expect("a file");
    fs::write(folder.path().join("last.csv"), trace(16384)).expect("a file");
    fs::write(folder.path().join("array.toml"), ARRAY).expect("a file");
    fs::write(folder.path().join("job.fio"), JOBS).expect("a file");
    fs::write(folder.path().join("reads.log"), reads()).expect("a file");
    folder
}

/// A latency log of random reads.
fn reads() -> String {
    let line = |n: u64| {
        let (latency_ns, place) = (5_000_000 + n * 9973 % 8_000_000, n * n * 7919 % 1_000_003);
        format!("{n}, {latency_ns}, 0, 4096, {}\n", place << 20)
    };
    (0..4000).map(line).collect()
}

/// A trace whose requests are so many bytes apart.
fn trace(stride: u64) -> String {
    (0..200).map(|n| format!("{},W,{},4096\n", n * 1000, n * 7 % 101 * stride)).collect()
}

/// Starts a command and kills it when so many runs have ended, those before the ones of `last.csv`.
fn kill_after(folder: &Path, arguments: &str, runs: usize) {
    before_the_last(folder, || kill(folder, arguments, runs));
}

/// Does something while nothing comes out of `last.csv`.
fn before_the_last(folder: &Path, does: impl FnOnce()) {
    let last = folder.join("last.csv");
    let text = fs::read(&last).expect("a file");
    fs::remove_file(&last).expect("a file");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &last, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a pipe");
    does();
    fs::remove_file(&last).expect("a pipe");
    fs::write(&last, text).expect("a file");
}

/// Starts a command and kills it when so many runs have ended.
fn kill(folder: &Path, arguments: &str, runs: usize) {
    let mut command = imbrex(folder, arguments);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let told = lines.map(|line| line.expect("text")).filter(|line| line.contains("done: "));
    assert_eq!(told.take(runs).count(), runs, "{arguments}");
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
}

/// The finished runs below a folder of results.
fn finished(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out.join("finished-runs")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension() == Some("finished".as_ref())).collect();
    files.sort();
    files
}

/// All files below a folder, without what a run cost the machine.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("below it").to_path_buf();
            let text = fs::read_to_string(&path).expect("text");
            files.insert(name, without_costs(&path, text));
        }
    }
    files
}

fn without_costs(path: &Path, text: String) -> String {
    if path.extension() != Some("json".as_ref()) {
        return text;
    }
    // Beside this, the bytes are those of the file: they are looked at as text.
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let mut text = text;
    for run in document["runs"].as_array().into_iter().flatten() {
        for key in ["wall_s", "requests_per_s", "peak_rss_bytes"] {
            let value = &run["simulation"][key];
            let (compact, spaced) = (format!("\"{key}\":{value}"), format!("\"{key}\": {value}"));
            assert!(text.contains(&compact) || text.contains(&spaced), "{key}");
            text = text.replacen(&compact, key, 1).replacen(&spaced, key, 1);
        }
    }
    text
}

fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, text) in &one {
        assert!(*text == other[name], "{} differs", name.display());
    }
    assert!(one.len() > 5, "{} files", one.len());
}

const RUN: &str = "run small.toml --jobs 1 --out";

#[test]
fn a_run_that_was_killed_goes_on_to_the_same_bytes() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(
        said(folder, &format!("{RUN} whole")).len(),
        10,
        "a line a run, and where results are"
    );
    kill_after(folder, &format!("{RUN} cut"), 6);
    assert_eq!(finished(&folder.join("cut")).len(), 6);
    // As a program leaves them that is killed while it writes.
    let first = finished(&folder.join("cut"))[0].file_name().expect("a name").to_owned();
    let partial = format!(".{}.1.partial", first.to_string_lossy());
    fs::write(folder.join("cut/finished-runs").join(partial), "{\"schema\":").expect("a file");
    let said = said(folder, &format!("{RUN} cut --resume"));
    assert_eq!(said[..2], ["  done before: 6 of 9", "  done: 7 of 9: last.csv, cmr-only"]);
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(!folder.join("cut/finished-runs").exists(), "they are in the results now");
    assert_same(&folder.join("whole"), &folder.join("cut"));
}

#[test]
fn a_figure_that_was_killed_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let reproduce = "reproduce pore fig6 --scale 64 --jobs 1 --out";
    let whole = output(folder, &format!("{reproduce} whole"));
    assert!(whole.status.success());
    for attempt in 0.. {
        kill(folder, &format!("{reproduce} cut"), 1);
        // On a slow machine the last run may have ended before the signal came.
        if folder.join("cut/finished-runs").exists() {
            break;
        }
        assert!(attempt < 20, "it always ends too soon");
    }
    let resumed = output(folder, &format!("{reproduce} cut --resume"));
    let error = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(resumed.status.success(), "{error}");
    assert!(error.starts_with("  done before: "), "{error}");
    assert_eq!(resumed.stdout, whole.stdout, "the rows beside the paper's");
    assert_same(&folder.join("whole"), &folder.join("cut"));
}

/// One by one; the last ones take long enough for a signal to come before their end.
const COMPARE: &str = "compare --trace synthetic:wdev-like/64 --systems cmr-only,lru,pore,ride,split,hwsr \
                       --sweep cache.capacity=8MiB,16MiB --repeat 8 --jobs 1 --out";

#[test]
fn a_comparison_that_was_killed_or_stopped_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let whole = output(folder, &format!("{COMPARE} whole"));
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    for attempt in 0.. {
        kill(folder, &format!("{COMPARE} cut"), 2);
        // On a slow machine the last run may have ended before the signal came.
        if folder.join("cut/finished-runs").exists() {
            break;
        }
        assert!(attempt < 20, "it always ends too soon");
    }
    assert!(!folder.join("cut/report.json").exists());
    let resumed = output(folder, &format!("{COMPARE} cut --resume"));
    let error = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(resumed.status.success(), "{error}");
    assert!(error.starts_with("  done before: "), "{error}");
    assert_eq!(resumed.stdout, whole.stdout);
    assert!(!folder.join("cut/finished-runs").exists(), "they are in the results now");
    assert_same(&folder.join("whole"), &folder.join("cut"));

    // Another scale of the drives is another run, and what was stopped lies beside what was finished.
    let scaled = format!("{COMPARE} cut --drive-scale 2");
    let mut child = imbrex(folder, &scaled)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut lines = lines.map(|line| line.expect("text"));
    assert!(lines.next().expect("a line").starts_with("  done: 1 of "));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let told: Vec<String> = lines.collect();
    let stopped = child.wait_with_output().expect("it ends");
    assert_eq!(stopped.status.code(), Some(130), "{told:?}");
    let table = String::from_utf8(stopped.stdout).expect("text");
    assert!(table.contains("Stopped before its end, "), "{table}");
    assert!(told.iter().any(|line| line.contains("--resume goes on with")), "{told:?}");
    assert!(folder.join("cut.stopped/report.json").exists(), "{told:?}");
    fs::remove_dir_all(folder.join("cut/finished-runs")).expect("runs that were kept");
    assert_same(&folder.join("whole"), &folder.join("cut"));
}

/// Its runs come in parts, each of which depends on what the ones before have found.
#[test]
fn a_verdict_that_was_killed_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let verdict = "verdict synthetic:wdev-like/64 --drive st8000as0002 --drive wd40efax --cache 2% --limit 3000 --requests-max 15000 \
                   --jobs 1 --out";
    let whole = said(folder, &format!("{verdict} whole"));
    let runs = whole.iter().filter(|line| line.starts_with("  done: ")).count();
    assert!(runs > 4, "{whole:?}");
    for attempt in 0.. {
        kill(folder, &format!("{verdict} cut"), 3);
        // On a slow machine the last run may have ended before the signal came.
        if folder.join("cut/finished-runs").exists() {
            break;
        }
        assert!(attempt < 20, "it always ends too soon");
    }
    let kept = finished(&folder.join("cut")).len();
    fs::write(&finished(&folder.join("cut"))[0], "damaged\n").expect("a file");
    let told = said(folder, &format!("{verdict} cut --resume"));
    let damaged: Vec<&String> = told.iter().filter(|line| line.contains("is made again")).collect();
    assert_eq!(damaged.len(), 1, "{told:?}");
    let made = told.iter().filter(|line| line.starts_with("  done: ")).count();
    assert_eq!(made, runs - (kept - 1), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("left aside")), "{told:?}");
    for file in ["verdict.json", "verdict.html"] {
        let text = |of: &str| fs::read_to_string(folder.join(of).join(file)).expect("a file");
        assert_eq!(text("whole"), text("cut"), "{file}");
    }
    assert!(!folder.join("cut/finished-runs").exists(), "they are in the verdict now");
}

/// The looks of an `[analysis]` are kept as runs are.
#[test]
fn looks_at_traces_are_kept_too() {
    let folder = folder();
    let folder = folder.path();
    let (start, _) = EXPERIMENT.split_once("[sweep]").expect("a sweep");
    let looks = start
        .replace("systems = [\"cmr-only\", \"lru\"]", "[analysis]\nkind = \"characteristics\"");
    let looks = looks.replace("size = \"8 GiB\"\n", "");
    fs::write(folder.join("looks.toml"), looks).expect("a file");
    kill_after(folder, "run looks.toml --jobs 1 --out cut", 2);
    let told = said(folder, "run looks.toml --jobs 1 --out cut --resume");
    assert_eq!(told[0], "  done before: 2 of 3");
    said(folder, "run looks.toml --jobs 1 --out whole");
    let [one, other] = ["whole", "cut"].map(|out| files(&folder.join(out)));
    assert_eq!(one, other);
    assert_eq!(one.len(), 4, "three and the page");
}

/// Kills a run after six of its nine, and gives the files of those.
fn killed(folder: &Path) -> Vec<PathBuf> {
    kill_after(folder, &format!("{RUN} out"), 6);
    finished(&folder.join("out"))
}

#[test]
fn what_is_damaged_or_of_another_build_is_told_in_a_line_and_made_again() {
    let folder = folder();
    let folder = folder.path();
    said(folder, &format!("{RUN} whole"));
    let resume = format!("{RUN} out --resume");
    let text = |file: &Path| fs::read_to_string(file).expect("a file");
    type Damage = fn(&str) -> String;
    let damages: [(Damage, &str); 4] = [
        (|text| text[..text.len() / 2].to_string(), "it is cut short"),
        (|_| String::new(), "it is cut short"),
        (|text| text.replacen("\"requests\":", "\"requests\":1", 1), "it is damaged"),
        (|_| "nothing\nof the kind\n".to_string(), "it is no finished run"),
    ];
    for (damage, reason) in damages {
        let files = killed(folder);
        let name = files[0].strip_prefix(folder).expect("below").display().to_string();
        fs::write(&files[0], damage(&text(&files[0]))).expect("a file");
        let told = said(folder, &resume);
        assert_eq!(
            told[0],
            format!("imbrex: {name}: {reason}; what is not in order is made again")
        );
        assert_eq!(told[1], "  done before: 5 of 9");
        assert_same(&folder.join("whole"), &folder.join("out"));
        fs::remove_dir_all(folder.join("out")).expect("a folder");
    }
    // Another build gives other names; a file of its own stays as it is.
    let files = killed(folder);
    let other = files[0].with_file_name(format!("{}.finished", "0".repeat(64)));
    let of_other = text(&files[0]).replacen("\"program\":\"", "\"program\":\"9.", 1);
    fs::write(&other, &of_other).expect("a file");
    let told = said(folder, &resume);
    let beside =
        "imbrex: finished runs left aside in out/finished-runs: 1 of another build of imbrex";
    assert_eq!(told[0], beside);
    assert_eq!(told[1], "  done before: 6 of 9");
    assert_eq!(finished(&folder.join("out")), std::slice::from_ref(&other));
    assert_eq!(text(&other), of_other);
}

#[test]
fn a_run_is_made_again_when_what_it_depends_on_has_changed() {
    let folder = folder();
    let folder = folder.path();
    killed(folder);
    // The runs of the recipe depend on nothing that has changed.
    fs::write(folder.join("short.csv"), trace(8192)).expect("a file");
    let told = said(folder, &format!("{RUN} out --resume"));
    let aside = "imbrex: finished runs left aside in out/finished-runs: ";
    assert_eq!(told[0], format!("{aside}3 of other experiments or settings"));
    assert_eq!(told[1], "  done before: 3 of 9");
    said(folder, &format!("{RUN} whole"));
    fs::remove_dir_all(folder.join("out/finished-runs")).expect("a folder");
    assert_same(&folder.join("whole"), &folder.join("out"));
    // Another seed is another run.
    killed(folder);
    let told = said(folder, &format!("{RUN} out --resume --seed 2"));
    assert_eq!(told[0], format!("{aside}6 of other experiments or settings"));
    assert!(told[1].starts_with("  done: 1 of 9: "), "{told:?}");
}

#[test]
fn without_resume_all_is_made_and_the_command_says_what_it_passes_over() {
    let folder = folder();
    let folder = folder.path();
    killed(folder);
    let told = said(folder, &format!("{RUN} out"));
    let aside = "imbrex: finished runs left aside in out/finished-runs: ";
    assert_eq!(told[0], format!("{aside}6 of this experiment, which --resume takes"));
    assert_eq!(told.len(), 11, "{told:?}");
    assert!(!folder.join("out/finished-runs").exists());
    let told = said(folder, &format!("{RUN} out --resume"));
    assert_eq!(told[0], "imbrex: no finished runs in out/finished-runs: every run is made");
    assert_eq!(told.len(), 11, "{told:?}");
}

#[test]
fn quiet_says_nothing_but_errors() {
    let folder = folder();
    let folder = folder.path();
    for arguments in [
        "run small.toml --quiet --out out",
        "reproduce pore fig6 --scale 64 --quiet",
        "compare --trace synthetic:one-block/1000 --systems cmr-only,lru --quiet",
        "verdict synthetic:one-block/1000 --drive cmr-500gb-7200 --no-cache --quiet",
        "crashtest --stack lru-cmr --seeds 0..2 --points 5 --quiet",
        "drive bench barracuda-4lp --quick --quiet",
        "bound synthetic:uniform-random-write/1000 --quiet",
        "reliability array.toml --runs 100 --quiet",
        "drive fio cmr-500gb-7200 job.fio --quiet",
        "drive fit reads.log --quiet",
    ] {
        let output = output(folder, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(error, "", "{arguments}");
        assert!(!output.stdout.is_empty(), "{arguments}");
    }
    let failed = output(folder, "compare --trace none.csv --quiet");
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&failed.stderr).lines().count(), 1);
}

#[test]
fn without_a_terminal_there_is_a_line_for_each_piece() {
    let folder = folder();
    let folder = folder.path();
    for (arguments, last) in [
        (
            "compare --trace synthetic:one-block/1000 --systems cmr-only,lru --jobs 1",
            "2 of 2: synthetic:one-block/1000, lru",
        ),
        ("crashtest --stack lru-cmr --seeds 3..5 --points 5 --jobs 1", "2 of 2: seed 4"),
        ("drive bench barracuda-4lp --quick --jobs 1", "barracuda-4lp standard measurements"),
        ("bound synthetic:uniform-random-write/1000", "4 of 4: least reads missed"),
        ("reliability array.toml --runs 100", "3 of 3: 10 h, lives of shape 1.5"),
        ("drive fio cmr-500gb-7200 job.fio", "3 of 3: second"),
    ] {
        let output = output(folder, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.lines().all(|line| line.starts_with("  done: ")), "{error}");
        assert!(error.ends_with(&format!("{last}\n")), "{arguments}: {error}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let folder = folder();
    let folder = folder.path();
    for command in [
        "reproduce pore fig6",
        "compare --trace short.csv",
        "compare --trace short.csv --out out --log-requests log",
    ] {
        let usage = output(folder, &format!("{command} --resume"));
        assert_eq!(usage.status.code(), Some(2), "{command}: it has nothing to go on with");
    }
    fs::create_dir(folder.join("out")).expect("a folder");
    fs::write(folder.join("out/finished-runs"), "a file").expect("a file");
    for arguments in [format!("{RUN} out"), "reproduce pore fig6 --out out".to_string()] {
        let output = output(folder, &arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("imbrex: --out out/finished-runs: "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// A run that cannot be kept, as on a full disk, is told once, and is in the results all the same.
#[test]
fn runs_that_cannot_be_kept_are_told_once_and_made_to_the_end() {
    let folder = folder();
    let folder = folder.path();
    for file in killed(folder) {
        fs::remove_file(&file).expect("a file");
        fs::create_dir_all(file.join("in the way")).expect("a folder");
    }
    let told = said(folder, &format!("{RUN} out"));
    let refusals: Vec<&String> = told.iter().filter(|line| line.contains("are not kept")).collect();
    assert_eq!(refusals.len(), 1, "{told:?}");
    assert!(refusals[0].starts_with("imbrex: finished runs are not kept: out/finished-runs/"));
    said(folder, &format!("{RUN} whole"));
    fs::remove_dir_all(folder.join("out/finished-runs")).expect("a folder");
    assert_same(&folder.join("whole"), &folder.join("out"));
}

/// The first gives up what is under way; the second ends the program while that still waits for its trace.
#[test]
fn two_interrupts_keep_what_is_finished() {
    let folder = folder();
    let folder = folder.path();
    before_the_last(folder, || {
        let mut child = imbrex(folder, &format!("{RUN} out"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut lines = lines.map(|line| line.expect("text"));
        assert_eq!(lines.by_ref().take(6).filter(|line| line.starts_with("  done: ")).count(), 6);
        let id = rustix::process::Pid::from_child(&child);
        let interrupt = || rustix::process::kill_process(id, rustix::process::Signal::INT);
        interrupt().expect("it runs");
        let stopping = "imbrex: stopping; a second signal ends the program at once";
        assert_eq!(lines.next().as_deref(), Some(stopping));
        interrupt().expect("it runs");
        assert_eq!(lines.next(), None);
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
    });
    assert_eq!(said(folder, &format!("{RUN} out --resume"))[0], "  done before: 6 of 9");
    said(folder, &format!("{RUN} whole"));
    assert_same(&folder.join("whole"), &folder.join("out"));
}

/// Files may have 8 blocks of 512 bytes, as on a disk with no more room.
#[test]
fn a_disk_that_is_full_leaves_the_results_of_before() {
    let folder = folder();
    let folder = folder.path();
    said(folder, &format!("{RUN} out"));
    let before = files(&folder.join("out"));
    let limited = format!(
        "trap '' XFSZ; ulimit -f 8; exec {} {RUN} out --seed 2 --quiet",
        env!("CARGO_BIN_EXE_imbrex")
    );
    let output = Command::new("sh").args(["-c", &limited]).current_dir(folder).output();
    let output = output.expect("a shell");
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.is_empty(), "what cannot be written is printed");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(
        lines[0].starts_with("imbrex: finished runs are not kept: out/finished-runs/"),
        "{error}"
    );
    assert!(
        lines[1].starts_with("imbrex: out/") && lines[1].contains(": File too large"),
        "{error}"
    );
    assert!(!error.contains("partial"), "{error}");
    assert!(files(&folder.join("out")) == before, "nothing half written, and nothing new");
}

/// What comes back from a file is what was found, of layers of every kind: else it would be made again.
#[test]
fn runs_of_all_kinds_of_stacks_are_kept() {
    let folder = folder();
    let folder = folder.path();
    let systems = [
        "pore",
        "ride",
        "hwsr",
        "s-block",
        "hdd",
        "spanned",
        "raid1",
        "raid5",
        "raid4smr",
        "split",
        "host-aware",
        "idler",
        "idler-buffer",
        "cmr-buffer",
    ];
    let (start, _) = EXPERIMENT.split_once("[sweep]").expect("a sweep");
    let all = start.replace("[\"cmr-only\", \"lru\"]", &format!("{systems:?}"));
    // Arrays have the size of their disks.
    let all = all.replace("size = \"8 GiB\"\n", "");
    fs::write(folder.join("small.toml"), all).expect("a file");
    let runs = 2 * systems.len();
    kill_after(folder, &format!("{RUN} cut"), runs);
    let told = said(folder, &format!("{RUN} cut --resume"));
    assert_eq!(told[0], format!("  done before: {runs} of {}", 3 * systems.len()));
    said(folder, &format!("{RUN} whole"));
    assert_same(&folder.join("whole"), &folder.join("cut"));
}
