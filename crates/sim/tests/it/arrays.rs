//! Spans, stripes and nodes for one source each, as stacks.

use crate::harness::{play_on, random_steps};
use crate::report::schema_violations;
use crate::simulate::{back_to_back, workload};
use imbrex_core::buffer::ContentKind;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_report::Run;
use imbrex_sim::experiment::{Batch, Case, Experiment, Found, Watch, execute};
use imbrex_stack::{BuildOptions, Built, Plan, Setting, StackConfig};
use std::collections::BTreeMap;
use std::path::Path;

/// A stack of disks of these sizes under one node.
fn disks(sizes: &[&str], top: &str) -> String {
    let mut text =
        "name = \"array\"\n[[node]]\nname = \"all\"\nkind = \"disk\"\ndrive = \"cmr-500gb-7200\"\n"
            .to_string();
    let mut names = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        text += &format!(
            "[[node]]\nname = \"disk-{index}\"\nkind = \"slice\"\nbelow = \"all\"\noffset = \"{} MiB\"\n\
             size = \"{size}\"\n",
            index * 100
        );
        names.push(format!("\"disk-{index}\""));
    }
    text + &format!("[[node]]\nname = \"array\"\nbelow = [{}]\n{top}\n", names.join(", "))
}

fn config(text: &str) -> StackConfig {
    StackConfig::from_text("stack.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(text: &str, size_bytes: Option<u64>) -> Result<Plan, String> {
    let options = BuildOptions { size_bytes, ..BuildOptions::simulate(1) };
    let config = StackConfig::from_text("s.toml", text, &[]).map_err(|error| error.to_string())?;
    Plan::new(&config, &options).map_err(|error| error.to_string())
}

fn build(plan: &Plan) -> Built {
    let built = plan.build(None, None, ContentKind::Stamped);
    built.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_stripe_offers_whole_chunks_of_the_smallest_and_any_size_up_to_that() {
    let text = disks(&["1 MiB", "1036 KiB", "2 MiB"], "kind = \"stripe\"\nchunk = \"48 KiB\"");
    let whole = 3 * (1 << 20) / (48 << 10) / 3 * (48 << 10) * 3;
    for (size, blocks) in [
        (None, whole / BLOCK_BYTES),
        (Some(whole), whole / BLOCK_BYTES),
        (Some(1 << 20), 256),
        (Some(4096), 1),
    ] {
        let built = build(&plan(&text, size).expect("a plan"));
        assert_eq!(built.stack.geometry().blocks.0, blocks, "{size:?}");
        if blocks > 100 {
            let steps = random_steps(blocks, 200, blocks, 40);
            let played = play_on(built.stack, built.disks, vec![], steps, 4);
            played.unwrap_or_else(|error| panic!("{size:?}: {error}"));
        }
    }
    let refused = plan(&text, Some(whole + 4096)).map(|_| ()).expect_err("too large");
    assert!(refused.contains("is more than the drive below holds"), "{refused}");
}

#[test]
fn a_stripe_that_cannot_be_is_refused_in_words() {
    for (chunk, words) in [
        ("6 KiB", "node `array`: chunk = \"6 KiB\"; accepted: a multiple of 4 KiB"),
        ("0", "chunk"),
        (
            "4 MiB",
            "node `array`: chunk = \"4 MiB\", and the smallest node below has 1048576 B; accepted",
        ),
    ] {
        let text = disks(&["1 MiB", "2 MiB"], &format!("kind = \"stripe\"\nchunk = \"{chunk}\""));
        let refused = plan(&text, None).map(|_| ()).expect_err(chunk);
        assert!(refused.contains(words), "{chunk}: {refused}");
    }
    let none = "name = \"n\"\n[[node]]\nname = \"a\"\nkind = \"stripe\"\nbelow = []\n";
    let refused = plan(none, None).map(|_| ()).expect_err("nothing below");
    assert!(refused.contains("below = []; accepted: the names of 1 to 64 nodes"), "{refused}");
    let zoned = "name = \"n\"\n[[node]]\nname = \"smr\"\nkind = \"disk\"\ndrive = \"st5000as0011\"\n\
                 [[node]]\nname = \"zones\"\nkind = \"host-managed\"\nbelow = \"smr\"\nzone_size = \"16 MiB\"\n\
                 [[node]]\nname = \"a\"\nkind = \"stripe\"\nbelow = [\"zones\"]\n";
    let refused =
        plan(zoned, Some(64 << 20)).map(|plan| plan.build(None, None, ContentKind::Counted).err());
    let refused = refused.map_or_else(|error| error, |error| error.expect("zones").to_string());
    assert!(refused.contains("node `zones`: its zones must be written in sequence"), "{refused}");
}

/// A stripe over drive-managed disks of a few MiB.
fn over_drive_managed(chunk: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
    let mut text = "name = \"array\"\n".to_string();
    for name in ["a", "b", "c"] {
        text += &format!(
            "[[node]]\nname = \"{name}-smr\"\nkind = \"disk\"\ndrive = \"{folder}/small-smr.toml\"\n\
             [[node]]\nname = \"{name}\"\nkind = \"persistent-cache\"\nbelow = \"{name}-smr\"\n\
             bands = \"uniform:64KiB..144KiB\"\npersistent_cache = \"128 KiB\"\n"
        );
    }
    text + &format!(
        "[[node]]\nname = \"array\"\nkind = \"stripe\"\nbelow = [\"a\", \"b\", \"c\"]\nchunk = \"{chunk}\"\n"
    )
}

#[test]
fn a_stripe_over_drive_managed_disks_keeps_what_is_written_to_it() {
    for seed in 0..12 {
        let text = over_drive_managed(["4 KiB", "64 KiB", "20 KiB"][seed as usize % 3]);
        let options = BuildOptions {
            trim_disks: seed % 2 == 0,
            size_bytes: Some((3 << 20) + seed * 4096),
            ..BuildOptions::simulate(seed)
        };
        let plan = Plan::new(&config(&text), &options).unwrap_or_else(|error| panic!("{error}"));
        let built = build(&plan);
        let blocks = built.stack.geometry().blocks;
        assert_eq!(blocks, plan.blocks());
        let steps = random_steps(seed, 300, blocks.0, 60);
        let played = play_on(built.stack, built.disks, vec![], steps, 1 + seed as usize % 8);
        let engine = played.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(engine.buffers.allocated(), 0, "seed {seed}");
    }
}

/// Requests to three volumes: device numbers are given in this order.
const TRACE: &str = "\
128166386787581000,a,0,Write,0,4096,1
128166386787582000,b,0,Write,0,8192,1
128166386787583000,c,0,Write,0,12288,1
128166386787584000,b,0,Write,1044480,4096,1
128166386787585000,a,0,Read,0,4096,1
";

/// Replays a trace on a stack.
pub fn replay(config: StackConfig, trace: &str, windows: &[&str]) -> Result<Run, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.csv");
    std::fs::write(&path, trace).expect("a trace");
    let case = Case {
        config,
        parameters: BTreeMap::new(),
        replay: back_to_back(1),
        series: vec![],
        events: vec![],
        windows: windows.iter().map(|name| (*name).to_string()).collect(),
        cut_into_windows: false,
        heads: None,
        movement: None,
        drive_scale: 1,
        drive_scale_option: None,
    };
    let batch = Batch {
        workload: workload(path.to_str().expect("a name")),
        seed: 1,
        cases: vec![case],
        jobs: 1,
    };
    let report = batch.run(&|_| ()).map_err(|error| error.to_string())?;
    assert_eq!(schema_violations(&report), [""; 0]);
    Ok(report.runs[0].clone())
}

#[test]
fn each_source_has_a_node_of_its_own() {
    let run = replay(config(&disks(&["1 MiB"; 3], "kind = \"dedicated\"")), TRACE, &[]);
    let run = run.unwrap_or_else(|error| panic!("{error}"));
    let counted = |name: &str| run.nodes[name]["written_blocks"];
    assert_eq!(["disk-0", "disk-1", "disk-2"].map(counted), [1, 3, 3]);
    assert_eq!(run.nodes["disk-0"]["read_blocks"], 1);
}

#[test]
fn a_record_without_a_node_and_one_beyond_it_are_refused_in_words() {
    let dedicated = |sizes: &[&str]| config(&disks(sizes, "kind = \"dedicated\""));
    let refused = replay(dedicated(&["1 MiB"; 2]), TRACE, &[]).expect_err("no third node");
    assert!(
        refused.ends_with(
            "record 3: is of device 2, and the stack has a node for the requests of each device from 0 to 1; \
             accepted: a trace of these devices, or a stack of as many nodes as it has devices"
        ),
        "{refused}"
    );
    let refused =
        replay(dedicated(&["2 MiB", "1 MiB", "1 MiB"]), &TRACE.replace("1044480", "1048576"), &[]);
    let refused = refused.expect_err("behind the second node");
    assert!(
        refused.contains(
            "record 4: write of 4096 bytes at offset 1048576 ends beyond the window `disk-1` of device 1 of \
             1048576 bytes; use a larger window"
        ),
        "{refused}"
    );
    let refused = replay(dedicated(&["1 MiB"; 3]), TRACE, &["disk-0"]).expect_err("streams");
    assert!(refused.contains("deals requests to its windows itself"), "{refused}");
}

/// The third volume's request goes to the third node, the next one to the first again; a span does the same with the
/// windows that a workload names.
#[test]
fn requests_are_dealt_to_nodes_in_turn() {
    let in_turn = disks(&["1 MiB"; 3], "kind = \"dedicated\"\nby = \"turn\"");
    let span = disks(&["1 MiB"; 3], "kind = \"span\"");
    let names = ["disk-0", "disk-1", "disk-2"];
    for (text, windows) in [(in_turn, &[][..]), (span, &names[..])] {
        let run = replay(config(&text), TRACE, windows).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(names.map(|name| run.nodes[name]["written_blocks"]), [2, 2, 3], "{text}");
        assert_eq!(names.map(|name| run.nodes[name]["read_blocks"]), [0, 1, 0], "{text}");
    }
    let two = disks(&["1 MiB", "8 KiB", "1 MiB"], "kind = \"dedicated\"\nby = \"turn\"");
    let refused = replay(config(&two), &TRACE.replace(",0,8192,", ",4096,8192,"), &[]);
    assert!(refused.expect_err("behind it").contains("ends beyond the window `disk-1` of"));
}

#[test]
fn a_node_for_each_source_is_the_top_of_its_stack() {
    let more =
        "kind = \"dedicated\"\n[[node]]\nname = \"over\"\nkind = \"stripe\"\nbelow = [\"array\"]";
    let refused = plan(&disks(&["1 MiB"; 3], more), None).map(|_| ());
    assert_eq!(
        refused.expect_err("sources below a stripe"),
        "s.toml: node `array`: kind = \"dedicated\" below `over`, whose operations are of no device of a trace; \
         accepted: at the top of the stack, or kind = \"span\""
    );
}

#[test]
fn the_ready_made_arrays_are_of_four_disks_each() {
    let small = |name: &str, more: &[&str]| {
        let settings = more.iter().map(|text| Setting::parse(text).expect("a setting"));
        StackConfig::load(name, &settings.collect::<Vec<_>>()).expect("a ready-made stack")
    };
    let mut sizes = Vec::new();
    for name in ["spanned", "striped", "dedicated"] {
        let plan = Plan::new(&small(name, &[]), &BuildOptions::simulate(1)).expect("a plan");
        sizes.push(plan.blocks());
        let run = replay(small(name, &[]), TRACE, &[]).unwrap_or_else(|error| panic!("{error}"));
        let used = (0..4).filter(|disk| run.nodes[&format!("disk-{disk}")]["writes"] > 0);
        let expected = match name {
            "spanned" => 1,
            "striped" => 4,
            _ => 3,
        };
        assert_eq!(used.count(), expected, "{name}");
    }
    assert_eq!(sizes, [sizes[0]; 3]);
    let run = replay(small("striped", &["array.chunk=64KiB"]), TRACE, &[]).expect("a run");
    assert_eq!(run.nodes["disk-0"]["writes"] + run.nodes["disk-3"]["writes"], 4);
}

/// The movement of the disks of a stack of logs, taken together, when two loads are played one after the other.
fn movement_in_turn(system: &str, place: &str) -> serde_json::Value {
    let text = format!(
        r#"
name = "in-turn"
title = "a test"
systems = ["{system}"]
[workload]
combine = {{ traces = [{{ path = "synthetic:raid4smr-web3", limit = 3000 }}, {{ path = "synthetic:raid4smr-rsrch1", limit = 3000 }}], order = "concatenate", {place} }}
[movement]
model = 1
"#
    );
    let experiment = Experiment::parse("test.toml", &text, Path::new("")).expect("an experiment");
    let outcomes = execute(&[experiment], &[], None, 1, &Watch::nobody()).expect("it runs");
    let Found::Runs(report) = &outcomes[0].workloads[0].found else {
        panic!("a stack was run");
    };
    serde_json::to_value(&report.runs[0]).expect("a report")["movement_total"].clone()
}

#[test]
fn a_disk_for_each_source_is_moved_as_a_span_of_disks_with_a_source_each() {
    let dedicated = movement_in_turn("dedicated", r#"place = "separate""#);
    // As much as one of the four disks holds.
    let spanned = movement_in_turn("spanned", r#"place = "concatenate", align = "500107862016 B""#);
    assert!(dedicated["visits"].as_u64().expect("a count") > 6000);
    assert_eq!(dedicated, spanned);
}
