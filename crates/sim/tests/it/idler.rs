//! A controller above a host-aware drive: what it decides, how long it holds, and what is refused.

use crate::head_movement::reported;
use imbrex_report::{Cell, Run};

/// Some requests of a recipe on systems, with settings.
fn experiment(systems: &str, settings: &str) -> String {
    format!(
        "name = \"t\"\ntitle = \"a test\"\nsystems = [{systems}]\n[workload]\npath = \"synthetic:hm-like/64\"\n\
         limit = 3000\nstreams = 16\nfit = \"scale\"\n[set]\n{settings}"
    )
}

const FEW_ENTRIES: &str = "\"translation.entries\" = 400\n";

fn counted(run: &Run, counter: &str) -> u64 {
    run.nodes["controller"][counter]
}

/// The rows of a table of the controller.
fn rows<'a>(run: &'a Run, name: &str) -> &'a [Vec<Cell>] {
    let table = run.figures.tables.iter().find(|table| table.name == name);
    &table.expect("a table of the controller").rows
}

fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Number(number) => *number,
        Cell::Count(count) => *count as f64,
        Cell::Absent | Cell::Text(_) => panic!("{cell:?} is no number"),
    }
}

#[test]
fn fixed_idle_periods_hold_requests_and_have_the_drive_clean() {
    let text = experiment("\"host-aware\", \"at-ic\"", FEW_ENTRIES);
    let report = reported(&text).expect("runs");
    let [without, with] = &report.runs[..] else { panic!("two systems") };
    assert_eq!(counted(without, "idles"), 0);
    assert_eq!(counted(without, "held_requests"), 0);
    let idles = counted(with, "idles");
    assert!(idles > 10 && counted(with, "held_requests") > 0, "{idles}");
    // Each is 2 s long, unless the end of the run or a limit cuts it.
    let idle_s = counted(with, "idle_ns") as f64 / 1e9;
    assert!(idle_s <= 2.0 * idles as f64 + 1e-6 && idle_s > 1.9 * idles as f64, "{idle_s}");
    assert!(counted(with, "hold_max_ns") <= 10_000_000_000);
    assert!(with.costs.since_due_ms.is_some(), "streams have times at which requests are due");
}

/// Equations 1 and 2, from the columns of a decision alone.
#[test]
fn each_idle_period_follows_from_what_the_decision_was_made_of() {
    let settings = format!(
        "{FEW_ENTRIES}\"controller.log\" = true\n\"controller.report_zones_every_s\" = 5\n"
    );
    let report = reported(&experiment("\"idler\"", &settings)).expect("runs");
    let run = &report.runs[0];
    let (mut last, mut idles) = (None::<f64>, 0);
    let decisions = rows(run, "decisions");
    for row in decisions {
        let [used, arrivals, latency, taken, cleaned] = [1, 2, 3, 4, 5].map(|at| number(&row[at]));
        let expected = match used {
            used if used < 0.1 => {
                last = None;
                0.0
            }
            used if used <= 0.8 && arrivals > latency => 0.3,
            used if used <= 0.8 => 0.0,
            _ if arrivals > latency => 2.0,
            _ if taken <= cleaned => (last.unwrap_or(0.3) - 0.1).max(0.3),
            _ => (last.unwrap_or(0.3) + 0.1).min(2.0),
        };
        let idle = number(&row[7]);
        assert!((idle - expected).abs() < 1e-6, "{row:?}: {expected}");
        if idle > 0.0 {
            last = Some(idle);
            idles += 1;
        }
    }
    assert!(idles > 5, "{idles} of {}", decisions.len());
    assert_eq!(decisions.len() as u64, counted(run, "decisions"));
    // A report of a drive whose buffers count only is read all the same: zones are taken out of the books.
    let is = |row: &&Vec<Cell>, word: &str| row[1] == Cell::Text(word.into());
    let events = rows(run, "ghost");
    let [taken, freed, periods] =
        ["taken", "freed", "period"].map(|word| events.iter().filter(|row| is(row, word)).count());
    assert!(taken > 100 && freed > 20 && periods > 10, "{taken}, {freed}, {periods}");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let set = |text: &str| experiment("\"idler\"", &text.replace(';', "\n"));
    for (text, words) in [
        (
            set("\"controller.u_low\" = 0.8"),
            "node `controller`: u_low = 0.8 and u_high = 0.8; accepted: u_low below u_high",
        ),
        (
            set("\"controller.l_min_s\" = 3.0"),
            "node `controller`: l_min_s = 3 and l_max_s = 2; accepted: l_min_s up to l_max_s",
        ),
        (
            set("\"controller.at_ic\" = [5, 2]"),
            "[set] controller.at_ic: `controller.at_ic` belongs to policy \"at-ic\"; no stack of the experiment has",
        ),
        (
            set("\"controller.policy\" = \"at-ic\""),
            "node `controller`: policy = \"at-ic\" needs at_ic",
        ),
        (
            set("\"controller.policy\" = \"at-ic\";\"controller.at_ic\" = [0, 0]"),
            "node `controller`: at_ic = [0, 0]; accepted: two numbers of seconds above 0",
        ),
        (
            set("\"controller.policy\" = \"none\";\"controller.samples\" = 5"),
            "`controller.samples` belongs to policy \"idler\"; no stack",
        ),
        (
            set("\"controller.policy\" = \"none\";\"controller.hold_max_s\" = 5"),
            "`controller.hold_max_s` belongs to policy \"at-ic\"; no stack",
        ),
        (
            set("\"controller.zone_clean_s\" = 5"),
            "zone_clean_s is about a drive that reports no zones, and `translation` below it does",
        ),
        (
            set("").replace("streams = 16", "queue_depth = 2\ndue = \"shift\""),
            "due says when requests of streams are due; accepted: with `streams`",
        ),
        (
            set("").replace("streams = 16", "queue_depth = 2\ndependencies = \"latency\""),
            "dependencies says which stream a request joins; accepted: with `streams`",
        ),
        (
            set("").replace("streams = 16", "streams = 16\ndependencies = \"latency\""),
            "record 1: has no response time, and with `dependencies` = \"latency\"",
        ),
        (
            experiment("\"smr-only\"", "\"translation.zones_filled\" = 0.5"),
            "node `translation`: zones_filled = 0.5 says how full zones are at the start",
        ),
        (
            experiment("\"smr-only\"", "\"translation.reclaim\" = \"zone\""),
            "node `translation`: reclaim = \"zone\" says when the log has room for zones again",
        ),
        (
            set("\"translation.reclaim\" = \"zone\";\"translation.log_per_flush\" = \"4 KiB\""),
            "reclaim = \"zone\" frees what is of a zone, and log_per_flush takes 4 KiB that are of none",
        ),
    ] {
        let error = reported(&text).expect_err(words);
        assert!(error.contains(words), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
