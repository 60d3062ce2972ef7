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
