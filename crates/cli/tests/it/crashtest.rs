//! `imbrex crashtest` as a command.

use std::process::{Command, Output};

fn crashtest(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .arg("crashtest")
        .args(args)
        .output()
        .expect("the command runs")
}

#[test]
fn a_campaign_says_how_many_points_failed() {
    // The members are checked after each, which the campaign of `imbrex-sim` cannot do.
    let output = crashtest(&["--seeds", "0..2", "--points", "500", "--jobs", "2"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("pore: 0 of 1000 points failed, 2 seeds"), "{text}");
}

/// The same for what stands apart from caches and persistent caches.
#[test]
fn members_of_segments_s_blocks_and_buffers_are_checked_after_each_recovery() {
    for stack in ["hwsr", "s-block"] {
        let output = crashtest(&["--stack", stack, "--seeds", "0..1", "--points", "250"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let expected = format!("{stack}: 0 of 250 points failed, 1 seeds");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn what_happens_to_disks_between_two_starts_is_played_and_told() {
    let options = ["--members", "--stack", "spanned"];
    let campaign = [&options[..], &["--seeds", "0..2", "--points", "20"]].concat();
    let output = crashtest(&campaign);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let expected = "spanned: 0 of 40 cases failed, 40 different, 2 seeds";
    assert!(text.contains(expected), "{text}");
    let alone = [&options[..], &["--seed", "1", "--point", "3"]].concat();
    let output = crashtest(&alone);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "spanned, seed 1, case 3: passed\n", "{output:?}");
}

#[test]
fn a_cursor_ahead_of_data_is_found_by_the_check() {
    let cases = ["--product", "--stack", "raid4smr", "--seeds", "0..20", "--points", "12"];
    let planted = crashtest(&[&cases[..], &["--plant", "array-cursor-ahead-of-data"]].concat());
    assert_eq!(planted.status.code(), Some(1), "{planted:?}");
    let text = String::from_utf8_lossy(&planted.stderr);
    assert!(text.contains("its data does not match its checksum"), "{text}");
}

/// A write to a place that a crash has left behind was the cause of more collections than it had room for. A write began
/// when the parity disk with its log had gone, before that was recorded.
#[test]
fn cases_of_arrays_that_once_failed_pass() {
    for (seed, case) in [("611", "106"), ("918", "125")] {
        let alone = ["--product", "--stack", "raid4smr", "--seed", seed, "--point", case];
        let output = crashtest(&alone);
        let expected = format!("raid4smr, seed {seed}, case {case}: passed\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    }
}

#[test]
fn a_planted_bug_is_found() {
    let campaign = ["--seeds", "0..1", "--points", "40", "--plant", "fua-as-plain"];
    let output = crashtest(&campaign);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text.contains(" --plant fua-as-plain\n"), "{text}");
}

#[test]
fn the_same_seed_says_the_same_however_many_threads_run() {
    let run = |jobs| crashtest(&["--seeds", "3..6", "--points", "40", "--json", "--jobs", jobs]);
    assert_eq!(run("1").stdout, run("3").stdout);
}

/// A stack file of one's own, with a table of what is drawn.
fn stack_file(draw: &str) -> tempfile::NamedTempFile {
    let text = format!(
        "name = \"mine\"\n[[node]]\nname = \"flash\"\nkind = \"disk\"\ndrive = \"tiny-flash\"\n\
         [[node]]\nname = \"disk\"\nkind = \"disk\"\ndrive = \"tiny-cmr\"\n\
         [[node]]\nname = \"cache\"\nkind = \"write-back-cache\"\n\
         below = {{ flash = \"flash\", backing = \"disk\" }}\ncapacity = \"64KiB\"\npolicy = \"lru\"\n{draw}"
    );
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&file, text).expect("written");
    file
}

#[test]
fn any_stack_file_is_searched_and_its_keys_are_drawn() {
    let draw = "[draw]\n\"cache.ring_blocks\" = [8, 9]\n\
                \"cache.mode, cache.capacity\" = [[\"write-only\", {}], [\"read-write\", \"48KiB\"]]\n";
    let file = stack_file(draw);
    let path = file.path().to_str().expect("a path");
    let search = ["--stack", path, "--size", "512KiB", "--seeds", "0..3", "--points", "40"];
    let output = crashtest(&search);
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = format!("{path}: 0 of 120 points failed, 3 seeds");
    assert!(output.status.success() && text.contains(&expected), "{output:?}");
    let more = ["--set", "cache.capacity=48 KiB", "--plant", "fua-as-plain"];
    let planted = crashtest(&[&search[..], &more].concat());
    assert_eq!(planted.status.code(), Some(1), "{planted:?}");
    // What is printed to be typed fails in the same way.
    let text = String::from_utf8_lossy(&planted.stderr);
    let replay = text.lines().find_map(|line| line.strip_prefix("  replay: imbrex "));
    let replay = replay.expect("a command");
    assert!(
        replay.contains("--size") && replay.contains("--set 'cache.capacity=48 KiB'"),
        "{replay}"
    );
    let again = Command::new("sh")
        .arg("-c")
        .arg(format!("{} {replay}", env!("CARGO_BIN_EXE_imbrex")))
        .output()
        .expect("a shell");
    let again = String::from_utf8_lossy(&again.stderr);
    let failure =
        |text: &str| text.lines().find(|line| line.starts_with("imbrex: ")).map(str::to_string);
    assert!(failure(&again).is_some());
    assert_eq!(failure(&again), failure(&text), "{again}");
    let ready_made = ["--stack", "stacks/striped.toml", "--size", "1MiB"];
    let output = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .arg("crashtest")
        .args(ready_made)
        .args(["--seeds", "0..1", "--points", "20"])
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_cannot_be_drawn_or_searched_is_one_clear_sentence() {
    for (draw, more, expected) in [
        ("[draw]\n\"cache.capcity\" = [1]\n", &[][..], "did you mean `capacity`?"),
        ("[draw]\n\"cach.capacity\" = [1]\n", &[], "did you mean `cache`?"),
        ("[draw]\n\"capacity\" = [1]\n", &[], "accepted: NODE.KEY"),
        ("[draw]\n\"cache.mode\" = []\n", &[], "accepted: a list of values"),
        (
            "[draw]\n\"cache.mode, cache.capacity\" = [[\"write-only\"]]\n",
            &[],
            "accepted: a list of lists of 2 values: one for each key",
        ),
        ("[draw]\n\"cache.mode\" = [\"read-write\", \"odd\"]\n", &[], "cache.mode=\"odd\""),
        ("", &["--set", "cache.policy=odd"], "cache.policy"),
        ("", &["--size", "1GiB"], "is more than the drive below holds"),
    ] {
        let file = stack_file(draw);
        let path = file.path().to_str().expect("a path");
        let output = crashtest(&[&["--stack", path], more].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{draw}: {output:?}");
        assert!(text.contains(expected), "{draw}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let drawn = stack_file("[draw]\n\"cache.mode\" = [\"read-write\"]\n");
    let output = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .arg("create")
        .arg(drawn.path())
        .args(["--data", "/nonexistent/image"])
        .output()
        .expect("the command runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(":16: [draw] of cache.mode: `imbrex crashtest` alone draws keys"),
        "{text}"
    );
    // A drive of the library is as long as it is.
    let output = crashtest(&["--stack", "st5000as0011"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("accepted: at most 67108864 B, as `size` in the file or --size"),
        "{text}"
    );
}

#[test]
fn bad_values_are_one_clear_sentence() {
    for (args, expected) in [
        (["--stack", "prore"], "did you mean `pore`?"),
        (["--mode", "torn"], "accepted: none, all, prefix"),
        (["--seeds", "5..5"], "--seeds 5..5: accepted: A..B with A < B"),
    ] {
        let output = crashtest(&args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(expected), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
