//! A controller that is switched off and on by commands while a workload is replayed.

use crate::head_movement::reported;
use imbrex_report::{EventUse, Run};

const OFF: &str = "command = \"off\"";
const ON: &str = "command = \"on\"";

/// Requests of a recipe on a system whose drive has few entries, with events.
fn experiment(system: &str, policy: &str, events: &[(u64, &str)]) -> String {
    let mut text = format!(
        "name = \"t\"\ntitle = \"a test\"\nsystems = [\"{system}\"]\n[workload]\npath = \"synthetic:hm-like/64\"\n\
         limit = 3000\nstreams = 16\nfit = \"scale\"\n[set]\n\"translation.entries\" = 400\n{policy}\n"
    );
    for (after, command) in events {
        text += &format!("[[event]]\nafter_requests = {after}\nnode = \"controller\"\n{command}\n");
    }
    text
}

fn run_of(system: &str, events: &[(u64, &str)]) -> Run {
    let mut report = reported(&experiment(system, "", events)).expect("runs");
    report.runs.remove(0)
}

fn counted(run: &Run, counter: &str) -> u64 {
    run.nodes["controller"][counter]
}

/// The first status of a run.
fn status(run: &Run) -> &EventUse {
    let mut told = run.events.iter().filter(|event| event.command == "status");
    told.next().expect("a status")
}

#[test]
fn a_controller_that_is_off_holds_nothing_and_one_that_is_on_again_holds_as_before() {
    for system in ["at-ic", "idler"] {
        let whole = counted(&run_of(system, &[]), "idles");
        let half = counted(&run_of(system, &[(0, OFF), (1500, ON), (2000, ON)]), "idles");
        assert!(half > 0 && half < whole, "{system}: {half} of {whole}");
        let off = run_of(system, &[(0, OFF), (2900, "command = \"status\"")]);
        assert!(off.events.iter().all(|event| event.outcome == "done"), "{:?}", off.events);
        for counter in ["idles", "held_requests", "idle_ns", "hold_max_ns", "decisions"] {
            assert_eq!(counted(&off, counter), 0, "{system}: {counter}");
        }
        if system == "idler" {
            // Its books go on.
            assert!(status(&off).facts["media_cache_used_permille"] > 100, "{:?}", off.events);
        }
    }
}

/// What is held when it is switched off goes down at once: an idle period of a quarter of an hour ends after less than a minute.
#[test]
fn what_is_held_is_released_when_the_controller_is_switched_off() {
    let policy = "\"controller.at_ic\" = [5, 900]\n\"controller.hold_max_s\" = 900";
    let events = "[[event]]\nat_s = 59\nnode = \"controller\"\ncommand = \"status\"\n\
                  [[event]]\nat_s = 60\nnode = \"controller\"\ncommand = \"off\"\n\
                  [[event]]\nat_s = 60\nnode = \"controller\"\ncommand = \"off\"\n";
    let text = experiment("at-ic", policy, &[]) + events;
    let report = reported(&text).expect("runs");
    let run = &report.runs[0];
    assert_eq!(status(run).facts["holding"], 1);
    let held = status(run).facts["held"];
    assert!((1..=16).contains(&held), "{held} requests of 16 streams");
    assert!(counted(run, "held_requests") >= held);
    let longest_ns = counted(run, "hold_max_ns");
    assert!((1_000_000_000..=55_000_000_000).contains(&longest_ns), "{longest_ns}");
    assert_eq!(run.host.requests, 3000);
}

#[test]
fn what_has_nothing_to_switch_says_so() {
    let run = run_of("host-aware", &[(5, OFF)]);
    assert!(
        run.events[0].outcome.contains("policy = \"none\" and holds nothing"),
        "{:?}",
        run.events
    );
    let text = experiment("idler", "", &[(5, OFF)]).replace("\"controller\"", "\"disk\"");
    let error = reported(&text).expect_err("no controller");
    assert!(
        error.contains("[[event]] 1: node `disk` is a disk; accepted by `off`: controllers"),
        "{error}"
    );
}
