//! Movement of the disks of a simulated stack.

use super::{movement, small};
use imbrex_core::operation::Cause;
use imbrex_core::rng::Rng;
use imbrex_report::{MovementCounts, Report};
use imbrex_sim::analysis::movement::{Footprint, Model, Movement};
use imbrex_sim::experiment::{Experiment, Found, Watch, execute};
use std::fmt::Write;
use std::path::Path;

/// Runs the stack `hdd` on random requests; `more` is the rest of the experiment file.
fn report(more: &str) -> (Report, Vec<super::Request>) {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(21, 0);
    let (mut lines, mut requests) = (String::new(), Vec::new());
    for number in 0..200 {
        let (is_write, first, blocks) = (rng.below(3) > 0, rng.below(60), 1 + rng.below(4));
        let word = if is_write { "Write" } else { "Read" };
        let (offset, size) = (first * 4096, blocks * 4096);
        let time = 128_166_372_003_061_629_u64 + number * 10_000_000;
        writeln!(lines, "{time},host,0,{word},{offset},{size},100").unwrap();
        requests.push((is_write, first, blocks));
    }
    std::fs::write(folder.path().join("trace.csv"), lines).unwrap();
    let text = format!(
        "name = \"test\"\ntitle = \"Movement\"\nsystems = [\"hdd\"]\n[workload]\npath = \
         \"trace.csv\"\n{more}"
    );
    (report_of(&text, folder.path()), requests)
}

/// The report of an experiment whose files are in `folder`.
fn report_of(text: &str, folder: &Path) -> Report {
    let experiment = Experiment::parse("test.toml", text, folder).unwrap();
    let mut outcomes = execute(&[experiment], &[], None, 1, &Watch::nobody()).unwrap();
    let Found::Runs(report) = outcomes.remove(0).workloads.remove(0).found else {
        panic!("stacks were run");
    };
    *report
}

#[test]
fn a_disk_that_gets_the_requests_as_they_are_moves_as_the_trace_does() {
    let (report, requests) = report(
        "[movement]\nmodel = 0\ntrack_blocks = 2\nband_tracks = 3\nbuffer_blocks = 1\n[sweep]\n\
         \"movement.model\" = [0, 1, 2, 3]\n",
    );
    let expected = movement(small(), &requests);
    assert_eq!(report.runs.len(), 4);
    for (run, expected) in report.runs.iter().zip(expected) {
        let expected = expected.counts().unwrap();
        let disks = run.movement.movement.as_ref().unwrap();
        assert_eq!(disks["disk"], expected);
        assert_eq!(disks.len(), 1);
        assert_eq!(run.movement.movement_total, Some(expected));
        assert!(run.label().contains("model="), "{}", run.label());
    }
    let text = serde_json::to_string(&report).unwrap();
    let read: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(read.runs[3].movement, report.runs[3].movement);
}

#[test]
fn counting_movement_changes_nothing_else_and_is_absent_without_the_table() {
    let (counted, _) = report("[movement]\nmodel = 2\n");
    let (plain, _) = report("");
    let mut counted = counted.without_simulation();
    let plain = plain.without_simulation();
    assert!(!serde_json::to_string(&plain.runs).unwrap().contains("movement"));
    counted.runs[0].movement = plain.runs[0].movement.clone();
    assert_eq!(counted.runs, plain.runs);
}

#[test]
fn sums_are_over_the_disks_and_never_wrap() {
    let (report, _) = report("[movement]\nmodel = 0\n");
    let mut sums = report.runs[0].movement.clone();
    let one = sums.movement_total.unwrap();
    assert!(sums.add("other", one));
    let total = sums.movement_total.unwrap();
    assert_eq!((total.visits, total.block), (2 * one.visits, 2 * one.block));
    assert_eq!(total.reversals, one.reversals.map(|reversals| 2 * reversals));
    let huge = MovementCounts { block: u64::MAX, ..one };
    assert!(!sums.add("huge", huge));
}

#[test]
fn wrong_movement_settings_are_refused() {
    let refused = |more: &str| {
        let text = format!(
            "name = \"test\"\ntitle = \"Movement\"\nsystems = [\"hdd\"]\n[workload]\npath = \
             \"t.csv\"\n{more}"
        );
        let experiment = Experiment::parse("test.toml", &text, Path::new("")).unwrap();
        let error = experiment.stacks(&[]).expect_err("it is refused");
        error.to_string()
    };
    assert_eq!(
        refused("[movement]\nrest = \"dense\"\n"),
        "test.toml: [movement]: `model` is missing; accepted: 0, 1, 2, 3"
    );
    assert_eq!(
        refused("[movement]\nmodel = 4\n"),
        "test.toml: [movement]: model = 4; accepted: 0, 1, 2, 3"
    );
    assert_eq!(
        refused("[movement]\nmodel = \"log\"\n"),
        "test.toml: [movement]: model = \"log\"; accepted: 0, 1, 2, 3"
    );
    assert_eq!(
        refused("[movement]\nmodel = 1\nmodels = { disk = 5 }\n"),
        "test.toml: [movement]: models.disk = 5; accepted: 0, 1, 2, 3"
    );
    assert_eq!(
        refused("[movement]\nmodel = 1\nmodels = 2\n"),
        "test.toml: [movement]: models = 2; accepted: a model for each of some disks, such as { disk = 0 }"
    );
    assert_eq!(
        refused("[movement]\nmodel = 1\nmodels = { disk = 2, ssd = 0 }\n"),
        "test.toml: [movement]: models: `ssd` is no disk of a stack of the experiment; accepted: disk"
    );
    let error = refused("[movement]\nmodel = 1\n[sweep]\n\"movement.buffer_blocks\" = [0]\n");
    assert_eq!(error, "test.toml: [movement]: buffer_blocks 0; accepted: 1 or more");
    let error = refused("[movement]\nmodel = 1\n[sweep]\n\"movement.tracks\" = [9]\n");
    assert!(error.contains("unknown field `tracks`"), "{error}");
    // Without the table such a key is one of a node.
    let error = refused("[sweep]\n\"movement.model\" = [0]\n");
    assert!(error.contains("no stack of the experiment has a node `movement`"));
}

#[test]
fn requests_replayed_by_size_have_as_many_blocks_as_their_size_fills() {
    let folder = tempfile::tempdir().unwrap();
    // Half of block 1 and half of block 2; then all of block 4.
    let trace = "128166372003061629,host,0,Write,6144,4096,100\n\
                 128166372003061630,host,0,Read,16384,4096,100\n";
    std::fs::write(folder.path().join("trace.csv"), trace).unwrap();
    let counts = |blocks: &str| {
        let text = format!(
            "name = \"test\"\ntitle = \"Blocks\"\nsystems = [\"hdd\"]\n[workload]\npath = \
             \"trace.csv\"\n{blocks}\n[movement]\nmodel = 0\n"
        );
        let run = report_of(&text, folder.path()).runs.remove(0);
        let movement = run.movement.movement_total.unwrap();
        (run.host.write_blocks, movement.visits, movement.block, run.inputs.blocks)
    };
    assert_eq!(counts(""), (2, 3, 3, None));
    assert_eq!(counts("blocks = \"cover\""), (2, 3, 3, None));
    assert_eq!(counts("blocks = \"size\""), (1, 2, 3, Some("size".to_string())));
    let text = "name = \"test\"\ntitle = \"Blocks\"\nsystems = [\"hdd\"]\n[workload]\npath = \
                \"trace.csv\"\nblocks = \"half\"\n";
    let error = Experiment::parse("test.toml", text, folder.path()).unwrap_err().to_string();
    assert!(error.contains("unknown variant `half`, expected `cover` or `size`"), "{error}");
}

#[test]
fn a_move_is_of_the_cause_of_the_visit_that_it_leads_to() {
    // Tracks of 2 blocks, bands of 3 tracks. The host writes block 4, an array parity to block 0, and the
    // host reads block 5.
    let counts = |model| {
        let mut footprint = Footprint::default();
        for block in [4, 0, 5] {
            footprint.add(block, block + 1);
        }
        let mut movement = Movement::new(&[model], small(), footprint).unwrap();
        movement.set_cause(Cause::Host);
        movement.write(4, 1);
        movement.set_cause(Cause::Parity);
        movement.write(0, 1);
        movement.set_cause(Cause::Host);
        movement.read(5, 1);
        movement.finish().unwrap().remove(0).counts().unwrap()
    };
    let of =
        |counts: &MovementCounts, cause| (counts.visits_by_cause[cause], counts.by_cause[cause]);
    // Block 4 is free, 4 -> 0 is of the array, 0 -> 5 of the host.
    let plain = counts(Model::Conventional);
    assert_eq!((plain.visits, plain.block), (3, 9));
    assert_eq!(of(&plain, Cause::Host), (2, 5));
    assert_eq!(of(&plain, Cause::Parity), (1, 4));
    assert_eq!(of(&plain, Cause::Rebuild), (0, 0));
    // The array reads blocks 2 to 4, writes block 0, and writes 2 to 4 back: 2 + 2 + 4 + 2 + 2. Then the host
    // goes from 4 to 5.
    let in_place = counts(Model::InPlace);
    assert_eq!((in_place.visits, in_place.block), (9, 13));
    assert_eq!(of(&in_place, Cause::Host), (2, 1));
    assert_eq!(of(&in_place, Cause::Parity), (7, 12));
}

#[test]
fn a_disk_may_have_a_model_of_its_own() {
    let settings = "track_blocks = 2\nband_tracks = 3\nbuffer_blocks = 1\n";
    let counts = |models: &str| {
        let (report, requests) = report(&format!("[movement]\n{models}\n{settings}"));
        let movement = report.runs[0].movement.movement.as_ref().unwrap()["disk"];
        (movement, movement_of(&requests))
    };
    let (movement, expected) = counts("model = 0\nmodels = { disk = 2 }");
    assert_eq!(movement, expected[2]);
    assert_eq!(movement.by_cause[Cause::Host], movement.block);
    assert_eq!(counts("model = 2\nmodels = {}").0, expected[2]);
    let (report, _) = report(&format!(
        "[movement]\nmodel = 0\n{settings}[sweep]\n\"movement.models.disk\" = [1, 3]\n"
    ));
    let models = report.runs.iter().map(|run| run.movement.movement_total.unwrap().model);
    assert_eq!(models.collect::<Vec<u8>>(), [1, 3]);
}

#[test]
fn movement_is_a_file_and_a_section_of_the_page_where_it_is_counted() {
    let file = |report: &Report| {
        let files = report.to_csv().into_iter();
        files.filter(|(name, _)| name == "movement.csv").map(|(_, text)| text).next()
    };
    let (plain, _) = report("");
    assert!(file(&plain).is_none() && !plain.to_html().contains("Movement of the heads"));
    let (moved, _) = report("[movement]\nmodel = 0\ntrack_blocks = 2\nband_tracks = 3\n");
    assert!(moved.to_html().contains("Movement of the heads"));
    let text = file(&moved).expect("a file");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let [names, values] = &lines[..] else { panic!("{text}") };
    assert_eq!(names.len(), values.len());
    let of = |name| values[names.iter().position(|it| *it == name).expect(name)].to_string();
    let counts = moved.runs[0].movement.movement.as_ref().unwrap()["disk"];
    assert_eq!([of("run"), of("disk"), of("model")], ["hdd", "disk", "0"]);
    assert_eq!(of("visits"), counts.visits.to_string());
    assert_eq!(of("band_reversals"), counts.reversals[2].to_string());
    assert_eq!(of("host_block"), counts.block.to_string());
}

/// The counts of each model on a disk that gets the requests as they are.
fn movement_of(requests: &[super::Request]) -> [MovementCounts; 4] {
    movement(small(), requests).map(|model| model.counts().unwrap())
}
