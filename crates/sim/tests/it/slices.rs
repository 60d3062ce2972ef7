//! Stacks whose nodes share disks: slices, and spans over what stands on them.

use crate::harness::{play_on, random_steps};
use crate::report::schema_violations;
use crate::simulate::random_writes;
use imbrex_core::buffer::ContentKind;
use imbrex_report::Run;
use imbrex_sim::experiment::{Experiment, Found, Watch, execute};
use imbrex_stack::{BuildOptions, Plan, StackConfig};

/// Two caches over two translations over two slices of one shingled disk, their flash on two slices
/// of one other.
fn two_on_one() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
    let mut text = format!(
        "name = \"two-on-one\"\n\
         [[node]]\nname = \"smr\"\nkind = \"disk\"\ndrive = \"{folder}/small-smr.toml\"\n\
         [[node]]\nname = \"ssd\"\nkind = \"disk\"\ndrive = \"850evo\"\n"
    );
    // The second begins inside of a track.
    for (name, offset, size, flash) in
        [("a", "0", "3 MiB", "0"), ("b", "3076 KiB", "5116 KiB", "64 MiB")]
    {
        text += &format!(
            "[[node]]\nname = \"{name}-part\"\nkind = \"slice\"\nbelow = \"smr\"\n\
             offset = \"{offset}\"\nsize = \"{size}\"\n\
             [[node]]\nname = \"{name}-flash\"\nkind = \"slice\"\nbelow = \"ssd\"\n\
             offset = \"{flash}\"\nsize = \"64 MiB\"\n\
             [[node]]\nname = \"{name}-bands\"\nkind = \"persistent-cache\"\n\
             below = \"{name}-part\"\nbands = \"uniform:64KiB..144KiB\"\n\
             persistent_cache = \"128 KiB\"\n\
             [[node]]\nname = \"{name}\"\nkind = \"write-back-cache\"\n\
             below = {{ flash = \"{name}-flash\", backing = \"{name}-bands\" }}\n\
             capacity = \"96 KiB\"\ndestage_slots = 3\npolicy = \"lru\"\n"
        );
    }
    text + "[[node]]\nname = \"device\"\nkind = \"span\"\nbelow = [\"a\", \"b\"]\n"
}

fn config(text: &str) -> StackConfig {
    StackConfig::from_text("stack.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The stack with a small journal in every layer that keeps one.
fn durably(text: &str) -> String {
    let keys = "durable = true\nring_blocks = 16\n";
    let text = text.replace("destage_slots", &format!("{keys}destage_slots"));
    text.replace("bands = ", &format!("{keys}bands = "))
}

#[test]
fn what_stands_on_slices_of_one_disk_keeps_what_is_written_to_it() {
    for seed in 0..40 {
        let options = BuildOptions { trim_disks: seed % 2 == 0, ..BuildOptions::simulate(seed) };
        let plan = Plan::new(&config(&two_on_one()), &options);
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let built = plan.build(None, None, ContentKind::Stamped);
        let built = built.unwrap_or_else(|error| panic!("{error}"));
        let blocks = built.stack.geometry().blocks;
        assert_eq!(blocks, plan.blocks());
        let steps = random_steps(seed, 200, blocks.0, 12);
        let depth = 1 + seed as usize % 8;
        let played = play_on(built.stack, built.disks, vec![], steps, depth);
        let engine = played.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(engine.buffers.allocated(), 0, "seed {seed}");
    }
}

#[test]
fn a_trimmed_disk_is_as_long_as_its_last_slice_ends() {
    let options = BuildOptions { trim_disks: true, durable: true, ..BuildOptions::simulate(1) };
    let plan = Plan::new(&config(&durably(&two_on_one())), &options);
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let built = plan.build(None, None, ContentKind::Counted);
    let built = built.unwrap_or_else(|error| panic!("{error}"));
    let blocks = built.disks.iter().map(|disk| disk.geometry().blocks.bytes());
    let [smr, ssd] = blocks.collect::<Vec<_>>()[..] else {
        panic!("two disks");
    };
    assert!(((8 << 20)..(8 << 20) + (40 << 10)).contains(&smr), "whole tracks: {smr}");
    assert_eq!(ssd, 128 << 20);
}

/// A run of a stack on random writes.
fn run(text: &str) -> Run {
    let report = random_writes(config(text), 4, &[]);
    assert_eq!(schema_violations(&report), [""; 0]);
    report.runs[0].clone()
}

#[test]
fn the_counters_of_slices_add_up_to_those_of_their_disk() {
    let text = two_on_one();
    for text in [text.clone(), durably(&text)] {
        let is_durable = text.contains("durable");
        let run = run(&text);
        for (disk, slices) in [("smr", ["a-part", "b-part"]), ("ssd", ["a-flash", "b-flash"])] {
            let of_disk = &run.nodes[disk];
            for (counter, value) in of_disk {
                let of_slices = slices.map(|slice| run.nodes[slice][counter]);
                assert_eq!(of_slices.iter().sum::<u64>(), *value, "{disk}: {counter}");
                let idle = counter.starts_with("seek_") && disk == "ssd";
                assert!(idle || of_slices.iter().all(|value| *value > 0), "{disk}: {counter}");
            }
            let flushes = slices.map(|slice| run.nodes[slice]["flushes"]);
            assert!(!is_durable || flushes.iter().all(|flushes| *flushes > 0));
        }
        let areas = run.disks[0].areas.iter().map(|area| area.name.as_str());
        let names = ["metadata", "persistent_cache", "scratch", "bands"];
        let of = |slice: &str| names.map(|name| format!("{slice}.{name}"));
        assert!(areas.eq(of("a-part").iter().chain(&of("b-part"))));
        let moved = |of: fn(&imbrex_report::DiskAreaUse) -> u64| -> u64 {
            run.disks[0].areas.iter().map(of).sum()
        };
        assert!(moved(|area| area.written_bytes) > 0 && moved(|area| area.read_bytes) > 0);
        for window in ["a", "b"] {
            assert!(run.nodes[window]["dirty_evictions"] > 0);
            assert!(run.nodes[&format!("{window}-bands")]["bands_rewritten"] > 0);
        }
    }
}

/// An experiment of two streams on windows of the device, on a trace of so many blocks of 4 KiB each
/// that begin at `offset`.
fn in_windows(windows: &str, offset: u64) -> Result<Run, String> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut trace = String::new();
    for record in 0..400u64 {
        let at = offset + record % 40 * 4096;
        trace += &format!("{},h,0,Write,{at},4096,0\n", record * 10_000);
    }
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text);
    write("trace.csv", &trace).expect("a file");
    write("stack.toml", &two_on_one()).expect("a file");
    let text = format!(
        "name = \"w\"\ntitle = \"w\"\nsystems = [\"{}/stack.toml\"]\n[workload]\npath = \
         \"trace.csv\"\nformat = \"msr\"\nstreams = 2\nwindows = {windows}\n",
        dir.path().display()
    );
    let experiment = Experiment::parse("w.toml", &text, dir.path()).map_err(|it| it.to_string())?;
    let outcome =
        execute(&[experiment], &[], None, 1, &Watch::nobody()).map_err(|it| it.to_string())?;
    match &outcome[0].workloads[0].found {
        Found::Runs(report) => Ok(report.runs[0].clone()),
        Found::Trace(_) | Found::Form(_) => panic!("a stack was run"),
    }
}

#[test]
fn streams_have_windows_as_their_devices() {
    let writes = |run: &Run, node: &str| run.nodes[node]["write_lookups"];
    let run = in_windows("[\"b\", \"a\"]", 0).expect("a run");
    assert_eq!((writes(&run, "a"), writes(&run, "b")), (200, 200));
    // Every other record: 20 addresses each.
    assert_eq!(run.nodes["a"]["write_hits"], 200 - 20);
    let run = in_windows("[\"b\"]", 0).expect("a run");
    assert_eq!((writes(&run, "a"), writes(&run, "b")), (0, 400));
    let run = in_windows("[]", 0).expect("a run");
    assert_eq!((writes(&run, "a"), writes(&run, "b")), (400, 0));
    for (windows, offset, expected) in [
        ("[\"a\", \"c\"]", 0, "windows: `c` is no window of the device; accepted: a, b"),
        ("[\"b\", \"a\"]", 1 << 20, "ends beyond the window `a` of "),
    ] {
        let error = in_windows(windows, offset).expect_err("it is refused");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn slices_shrink_with_the_drive() {
    let text = "name = \"part\"\n[[node]]\nname = \"disk\"\nkind = \"disk\"\ndrive = \"wd-4tb-7200\"\n\
                [[node]]\nname = \"part\"\nkind = \"slice\"\nbelow = \"disk\"\n\
                offset = \"10 GiB\"\nsize = \"40 GiB\"\n";
    for scale in [1, 64] {
        let options = BuildOptions { scale, ..BuildOptions::simulate(1) };
        let plan = Plan::new(&config(text), &options);
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(plan.blocks().bytes(), (40 << 30) / scale);
    }
}

/// What is put into the stack in the place of what, and what is said of it.
const REFUSED: [(&str, &str, &str); 13] = [
    (
        "offset = \"3076 KiB\"",
        "offset = \"3068 KiB\"",
        "s.toml: nodes `a-part` and `b-part` overlap on `smr`",
    ),
    (
        "size = \"5116 KiB\"",
        "size = \"5120 KiB\"",
        "node `b-part`: offset = \"3076 KiB\" with size = \"5 MiB\" ends at 8392704 B",
    ),
    ("size = \"5116 KiB\"", "size = \"5000000 MiB\"", "node `b-part`: offset"),
    ("size = \"5116 KiB\"", "size = \"0\"", "node `b-part`: size = \"0 B\"; accepted: one block"),
    (
        "size = \"5116 KiB\"",
        "size = \"96 KiB\"",
        "node `b-bands`: `b-part` has 98304 B, and the log, the scratch band and the guards",
    ),
    (
        "below = \"b-part\"",
        "below = \"smr\"",
        "s.toml: node `smr` is below more than one node; accepted: several nodes of kind \"slice\"",
    ),
    (
        "below = [\"a\", \"b\"]",
        "below = [\"a\", \"a\"]",
        "s.toml: node `a` is below two ports of node `device`",
    ),
    ("below = [\"a\", \"b\"]", "below = [\"a\"]", "s.toml: the stack has 2 tops"),
    (
        "below = [\"a\", \"b\"]",
        "below = []",
        "device.below = []; accepted: the names of 1 to 64 nodes",
    ),
    ("below = [\"a\", \"b\"]", "below = [\"a\", \"b\"]\nsize = \"1 MiB\"", "unknown field `size`"),
    (
        "name = \"two-on-one\"",
        "name = \"two-on-one\"\nsize = \"1 MiB\"",
        "node `device`: 1048576 B are asked of it, and the nodes that it joins have",
    ),
    (
        "capacity = \"96 KiB\"",
        "capacity = \"2 %\"",
        "node `a`: a size of it is a share of the bands of the device, and `device` moves",
    ),
    (
        "kind = \"persistent-cache\"\nbelow = \"a-part\"",
        "kind = \"slice\"\noffset = \"0\"\nsize = \"1 MiB\"\nbelow = \"a-part\"",
        "unknown field `bands`",
    ),
];

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refused = |from: &str, to: &str| {
        let text = two_on_one().replace(from, to);
        assert_ne!(text, two_on_one(), "{from}");
        let config = match StackConfig::from_text("s.toml", &text, &[]) {
            Ok(config) => config,
            Err(error) => return error.to_string(),
        };
        match Plan::new(&config, &BuildOptions::simulate(1)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{to} is taken"),
        }
    };
    for (from, to, expected) in REFUSED {
        let words = refused(from, to);
        assert!(words.contains(expected), "{to}: {words}");
    }
}
