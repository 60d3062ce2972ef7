//! Split disks: the order of service of the thesis's figures, the areas of a whole stack, what windows tell, and what is
//! refused.

use crate::report::schema_violations;
use imbrex_report::{Head, Report, Run};
use imbrex_sim::experiment::{Experiment, Found, Outcome, Watch, execute};
use std::path::Path;

fn run(experiment: &Experiment) -> Result<Outcome, String> {
    let experiments = std::slice::from_ref(experiment);
    let outcomes = execute(experiments, &[], None, 2, &Watch::nobody());
    outcomes.map(|mut outcomes| outcomes.remove(0)).map_err(|error| error.to_string())
}

fn report_of(outcome: &Outcome) -> &Report {
    match &outcome.workloads[0].found {
        Found::Runs(report) => report,
        Found::Trace(_) | Found::Form(_) => panic!("stacks were run"),
    }
}

/// The report of an experiment, which is what the schema says.
pub fn reported(text: &str) -> Result<Report, String> {
    let experiment = Experiment::parse("test.toml", text, Path::new(""));
    let outcome = run(&experiment.map_err(|error| error.to_string())?)?;
    let report = report_of(&outcome).clone();
    assert_eq!(schema_violations(&report), [""; 0]);
    Ok(report)
}

/// Four recipes as the volumes of the stacks, some requests of each.
fn mix(head: &str, lines: &str, limit: u32) -> String {
    let recipes = ["hm-like", "hwsr-prn1", "wdev-like", "src-like"];
    let traces = recipes.map(|it| format!("{{ path = \"synthetic:{it}/64\", limit = {limit} }}"));
    format!(
        "name = \"t\"\ntitle = \"a test\"\n{head}\n[workload]\nname = \"mix\"\n{lines}\n[workload.combine]\n\
         traces = [{}]\norder = \"shuffle\"\nplace = \"separate\"\n",
        traces.join(", ")
    )
}

/// A value of a key of all four nodes of a name.
fn each(node: &str, key: &str, value: &str) -> String {
    (0..4).map(|number| format!("\"{node}-{number}.{key}\" = {value}\n")).collect()
}

#[test]
fn the_drawn_requests_are_served_in_the_drawn_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/headmove");
    for (figure, order) in [
        ("figure-4.4", vec![10, 20, 35, 50, 70, 800, 820, 900, 860, 875, 28]),
        ("figure-4.5", vec![10, 20, 35, 50, 70, 800, 820, 900, 90, 95]),
    ] {
        let path = folder.join(format!("{figure}.toml"));
        let experiment = Experiment::open(&path).unwrap_or_else(|error| panic!("{error}"));
        let outcome = run(&experiment).unwrap_or_else(|error| panic!("{error}"));
        let heads = &report_of(&outcome).runs[0].figures.heads;
        // A position of the drawing is 4 GiB.
        let served: Vec<u64> =
            heads.dispatches.iter().map(|head| head.address_block >> 20).collect();
        assert_eq!((served, heads.left_out), (order, 0), "{figure}");
    }
}

/// What C-LOOK by areas serves next of requests that wait: the first of the area of the head from the head on, else the
/// lowest there, else the lowest of the other area.
fn next_of<'a>(waiting: &[&'a Head], head: u64, area: Option<&str>) -> Option<&'a Head> {
    let lowest = |some: &mut dyn Iterator<Item = &&'a Head>| -> Option<&'a Head> {
        some.min_by_key(|it| it.address_block).copied()
    };
    let of_area = |it: &&&Head| it.area.as_deref() == area;
    let ahead = lowest(&mut waiting.iter().filter(|it| of_area(it) && it.address_block >= head));
    ahead
        .or_else(|| lowest(&mut waiting.iter().filter(of_area)))
        .or_else(|| lowest(&mut waiting.iter()))
}

/// Whether each dispatch of a disk is the one that the rule asks for. What came at the very instant of a dispatch may have
/// come before it or behind it.
fn follows_areas(dispatches: &[Head]) -> usize {
    let (mut head, mut area, mut at_once) = (0, None, 0);
    let mut done = vec![false; dispatches.len()];
    for (place, dispatch) in dispatches.iter().enumerate() {
        let now = dispatch.dispatched_s;
        let not_done = || (0..dispatches.len()).filter(|other| !done[*other]);
        let came = |other: &usize| dispatches[*other].arrived_s < now;
        let before: Vec<&Head> = not_done().filter(came).map(|it| &dispatches[it]).collect();
        let with_all = |other: &usize| dispatches[*other].arrived_s <= now;
        let all: Vec<&Head> = not_done().filter(with_all).map(|it| &dispatches[it]).collect();
        if all.len() == 1 {
            at_once += 1;
        }
        let has_area = area.is_some();
        let asked = [&before, &all].map(|some| next_of(some, head, area));
        let same =
            |it: &Option<&Head>| it.is_some_and(|it| it.address_block == dispatch.address_block);
        let alone = dispatch.arrived_s == now;
        assert!(
            !has_area || alone || asked.iter().any(same),
            "dispatch {place} goes to {}, and {asked:?} was asked for",
            dispatch.address_block
        );
        done[place] = true;
        (head, area) = (dispatch.address_block + dispatch.blocks, dispatch.area.as_deref());
    }
    dispatches.len() - at_once
}

#[test]
fn split_local_without_quota_is_c_look_grouped_by_areas() {
    let text = mix(
        "systems = [\"split-local\"]\n[heads]\nfor_s = 1000",
        "queue_depth = 64\nfit = \"scale\"",
        250,
    );
    let settings = each("queue", "quota", "\"none\"") + &each("queue", "max_wait_ms", "\"none\"");
    let idle = each("volume", "idle_after", "\"off\"");
    let report = reported(&format!("{text}\n[set]\n{settings}{idle}")).expect("a run");
    let run = &report.runs[0];
    let mut chosen = 0;
    for of_disk in run.figures.heads.dispatches.chunk_by(|a, b| a.disk == b.disk) {
        chosen += follows_areas(of_disk);
    }
    assert!(chosen > 500, "{chosen} times there was a choice");
    let mut switches = 0;
    for queue in ["queue-0", "queue-1", "queue-2", "queue-3"] {
        let counts = &run.nodes[queue];
        assert_eq!(
            (counts["quota_switches"], counts["forced_by_age"], counts["conflicts"]),
            (0, 0, 0)
        );
        assert!(counts["longest_wait_ns"] > 0, "{counts:?}");
        switches += counts["switches"];
    }
    assert!(switches > 20, "{switches} times the heads left an area");
}

#[test]
fn windows_tell_what_they_were_asked_and_what_a_lost_disk_costs() {
    let systems = "systems = [\"split\", \"split-local\", \"split-dedicated\", \"four-disks\", \"four-disks-equal\"]";
    let report = reported(&mix(systems, "queue_depth = 16", 100)).expect("runs");
    let lost =
        |run: &Run| -> Vec<usize> { run.windows.windows_lost.values().map(Vec::len).collect() };
    let expected = [vec![2; 4], vec![1; 4], vec![1, 1, 1, 4], vec![1; 4], vec![1; 4]];
    for (run, expected) in report.runs.iter().zip(expected) {
        assert_eq!(lost(run), expected, "{}", run.system);
        let windows = &run.windows.windows;
        let requests: Vec<u64> = windows.iter().map(|window| window.requests).collect();
        assert_eq!(requests, [100; 4], "{}", run.system);
        let means = windows.iter().map(|window| window.response_ms.mean.expect("answers"));
        let mean = means.sum::<f64>() / 4.0;
        assert!((mean - run.costs.response_ms.mean.expect("answers")).abs() < 1e-6);
        let longest = windows.iter().filter_map(|window| window.response_ms.max);
        assert_eq!(longest.reduce(f64::max), run.costs.response_ms.max);
        let over = run.windows.over_disks.expect("disks");
        assert_eq!(over.disks, 4);
        assert!((over.seek_time_s * 4.0 - run.costs.seek_time_s).abs() < 1e-9);
        assert!((over.response_s * 4.0 - mean * 0.4).abs() < 1e-6, "400 requests");
        let disks = ["disk-0", "disk-1", "disk-2", "disk-3"];
        assert!(disks.iter().all(|disk| run.nodes[*disk]["seek_tracks"] > 0), "{}", run.system);
    }
    assert_eq!(
        report.runs[0].windows.windows_lost["disk-0"],
        ["volume-0", "volume-3"],
        "its home and the log of the last one"
    );
}

#[test]
fn devices_go_to_their_windows_and_fill_them_when_scaled() {
    let heads = "systems = [\"split-local\"]\n[heads]\nfor_s = 1000";
    let highest = |fit: &str| {
        let report = reported(&mix(heads, &format!("queue_depth = 4\n{fit}"), 200)).expect("a run");
        let dispatches = &report.runs[0].figures.heads.dispatches;
        let of_disk = dispatches.chunk_by(|a, b| a.disk == b.disk);
        of_disk
            .map(|it| it.iter().map(|head| head.address_block).max().unwrap())
            .collect::<Vec<_>>()
    };
    let (plain, scaled) = (highest(""), highest("fit = \"scale\""));
    // Homes have 1.2 thousand million blocks; the last volume is written alone, to its log.
    assert!(scaled[..3].iter().all(|block| *block > 500_000_000), "{scaled:?}");
    assert!(plain.iter().all(|block| *block < 100_000_000), "{plain:?}");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let one = |head: &str, workload: &str, tail: &str| {
        format!(
            "name = \"t\"\ntitle = \"a test\"\n{head}\n[workload]\npath = \"synthetic:hm-like/64\"\n{workload}\n{tail}"
        )
    };
    let split = "systems = [\"split\"]";
    for (text, words) in [
        (
            one("systems = [\"hdd\"]\n[heads]\nfor_s = 1", "limit = 10", ""),
            "[heads]: system `hdd` has no scheduler that could tell of its disks",
        ),
        (
            one("systems = [\"split\"]\n[heads]\nfor_s = 0", "", ""),
            "[heads] for_s = 0; accepted: more than 0",
        ),
        (
            one("systems = [\"split\"]\n[heads]\nfor_s = 1\nfrom_s = -1", "", ""),
            "[heads] from_s = -1; accepted: 0 to",
        ),
        (
            one("systems = [\"four-disks-equal\"]", "limit = 3", ""),
            "windows: 4 of system `four-disks-equal` for 3 requests; accepted: no more windows than requests",
        ),
        (
            one("systems = [\"spanned\"]", "streams = 1\nwindows = [\"disk-0\", \"disk-1\"]", ""),
            "windows: 2 of system `spanned` for 1 streams; accepted: no more windows than streams",
        ),
        (
            "name = \"t\"\ntitle = \"t\"\n[heads]\nfor_s = 1\n[closed_form]\nform = \"omega\"\n"
                .to_string(),
            "[closed_form] runs nothing: leave out [heads]",
        ),
        (
            one(split, "queue_depth = 4\nwindows = [\"volume-0\"]", ""),
            "deals requests to its windows itself",
        ),
        (
            one("systems = [\"hdd\"]", "queue_depth = 4\nwindows = [\"volume-0\"]", ""),
            "the device of system `hdd` has no windows",
        ),
        (
            one(split, "", "[sweep]\n\"workload.queue_depth\" = [1, 0]"),
            "workload.queue_depth: 0; accepted: whole numbers from 1",
        ),
        (
            one(
                split,
                "",
                "[set]\n\"volume-0.gather\" = \"beside\"\n\"volume-0.blocking_slice\" = \"1 s\"",
            ),
            "gather = \"beside\" reads log and home at the same time",
        ),
        (
            one(
                split,
                "",
                "[set]\n\"volume-0.clean_to\" = \"log\"\n\"volume-0.update\" = \"in-place\"",
            ),
            "clean_to = \"log\" moves blocks that update = \"in-place\" may be writing",
        ),
        (
            one(split, "", "[set]\n\"volume-0.in_place\" = \"9TiB\""),
            "node `volume-0`: in_place = 9663676416 KiB of a device of",
        ),
        (
            one(split, "", "[set]\n\"queue-0.clean_wait_ms\" = 0"),
            "queue-0.clean_wait_ms=0: accepted: 1 to 3600000, or \"none\"",
        ),
        (
            one(
                split,
                "",
                "[set]\n\"queue-0.quota\" = \"waiting\"\n\"queue-0.quota_unit\" = \"bytes\"",
            ),
            "quota = \"waiting\" counts requests",
        ),
        (
            one(split, "queue_depth = 3", "[sweep]\n\"workload.queue_depth\" = [1, 2]"),
            "workload `hm-like/64` states how it is replayed",
        ),
    ] {
        let error = reported(&text).expect_err(words);
        assert!(error.contains(words), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_swept_depth_is_the_depth_of_each_run() {
    let text = "name = \"t\"\ntitle = \"a test\"\nsystems = [\"four-disks\"]\n[workload]\n\
                path = \"synthetic:hm-like/64\"\nlimit = 200\n[sweep]\n\"workload.queue_depth\" = [1, 8]\n";
    let report = reported(text).expect("runs");
    let labels: Vec<String> = report.runs.iter().map(Run::label).collect();
    assert_eq!(labels, ["four-disks queue_depth=1", "four-disks queue_depth=8"]);
    let finish = |run: &Run| run.costs.response_ms.mean.expect("answers");
    assert!(finish(&report.runs[1]) > 2.0 * finish(&report.runs[0]), "the deeper one waits");
}

#[test]
fn a_part_in_place_and_moves_in_the_log_save_rewrites() {
    let text = mix("systems = [\"split\"]", "queue_depth = 1", 3000);
    let small = each("volume", "persistent_cache", "\"4MiB\"")
        + &each("volume", "entries", "\"unlimited\"")
        + &each("volume", "idle_after", "\"off\"");
    let rewritten = |more: &str| {
        let report = reported(&format!("{text}\n[set]\n{small}{more}")).expect("runs");
        let [run] = &report.runs[..] else { panic!("one system") };
        let counted = |name: &str| {
            let volumes = run.nodes.iter().filter(|(node, _)| node.starts_with("volume-"));
            volumes.filter_map(|(_, counts)| counts.get(name)).sum::<u64>()
        };
        (run.rewrites.bands_rewritten, counted("moved_blocks"), counted("in_place_blocks"))
    };
    let (plain, ..) = rewritten("");
    let (moving, moved, _) = rewritten(&each("volume", "clean_to", "\"log\""));
    assert!(moving < plain && moved > 1000, "{moving} of {plain}, {moved} moved");
    let (placed, _, in_place) = rewritten(&each("volume", "in_place", "\"200GiB\""));
    assert!(placed == 0 && in_place > 5000, "{placed}, {in_place} in place");
}

#[test]
fn a_rewrite_that_reads_log_and_home_at_once_takes_less_time_and_does_the_same() {
    let text = mix("systems = [\"split\", \"split-local\"]", "queue_depth = 1", 3000);
    let settings = each("volume", "entries", "200")
        + &each("volume", "idle_after", "\"off\"")
        + &each("volume", "rewrite_overhead", "\"0 ms\"");
    let report = |gather: &str| {
        let gather = each("volume", "gather", gather);
        reported(&format!("{text}\n[set]\n{settings}{gather}")).expect("runs")
    };
    let (after, beside) = (report("\"after\""), report("\"beside\""));
    for (after, beside) in after.runs.iter().zip(&beside.runs) {
        assert!(after.rewrites.bands_rewritten > 20, "{}", after.rewrites.bands_rewritten);
        assert_eq!(after.rewrites, beside.rewrites, "{}", after.system);
        let moved =
            |run: &Run| -> u64 { run.disks.iter().map(|disk| disk.reads + disk.writes).sum() };
        assert_eq!(moved(after), moved(beside), "{}", after.system);
    }
    let seconds = |report: &Report, system: usize| report.runs[system].log.band_rewrite_time_s;
    let (slow, quick) = (seconds(&after, 0), seconds(&beside, 0));
    assert!(quick < 0.95 * slow, "two disks read at once: {quick} s instead of {slow} s");
}
