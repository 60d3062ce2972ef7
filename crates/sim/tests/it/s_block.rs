//! Stacks with a translation by S-blocks.

use crate::harness::{play_on, random_steps};
use crate::report::schema_violations;
use crate::simulate::random_writes;
use imbrex_core::buffer::ContentKind;
use imbrex_core::units::{BlockCount, Lba};
use imbrex_stack::{BuildOptions, Plan, StackConfig};

/// A translation over a drive, with more keys.
fn stack(drive: &str, keys: &str) -> StackConfig {
    let text = format!(
        "name = \"s-block\"\n[[node]]\nname = \"disk\"\nkind = \"disk\"\ndrive = \"{drive}\"\n\
         [[node]]\nname = \"translation\"\nkind = \"s-block\"\nbelow = \"disk\"\n{keys}\n"
    );
    let config = StackConfig::from_text("stack.toml", &text, &[]);
    config.unwrap_or_else(|error| panic!("{error}"))
}

/// A shingled drive of 8 MiB whose tracks are of 16 to 20 KiB.
fn small() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
    format!("{folder}/small-smr.toml")
}

const ON_TRACKS: &str =
    "track = \"disk\"\nblock = \"8 KiB\"\nregion_tracks = 3\nspare = \"30 %\"\nring = \"20 %\"";

fn refused(config: &StackConfig, contents: ContentKind) -> String {
    let plan = Plan::new(config, &BuildOptions::simulate(1));
    let built = plan.and_then(|plan| plan.build(None, None, contents));
    built.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn on_the_tracks_of_a_shingled_drive_nothing_is_lost() {
    for seed in 0..30 {
        let options = BuildOptions {
            trim_disks: seed % 2 == 0,
            size_bytes: Some(512 << 10),
            ..BuildOptions::simulate(seed)
        };
        let plan = Plan::new(&stack(&small(), ON_TRACKS), &options);
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let built = plan.build(None, None, ContentKind::Stamped);
        let built = built.unwrap_or_else(|error| panic!("{error}"));
        let blocks = built.stack.geometry().blocks;
        assert_eq!((blocks, plan.blocks()), (BlockCount(128), BlockCount(128)));
        let steps = random_steps(seed, 200, blocks.0, 12);
        let depth = 1 + seed as usize % 8;
        let played = play_on(built.stack, built.disks, vec![], steps, depth);
        let engine = played.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(engine.buffers.allocated(), 0, "seed {seed}");
    }
}

#[test]
fn a_report_has_its_counters_and_gauges() {
    for keys in [ON_TRACKS, "block = \"8 KiB\"\ntrack = \"64 KiB\"\nregion_tracks = 3"] {
        let report = random_writes(stack(&small(), keys), 4, &[]);
        assert_eq!(schema_violations(&report), [""; 0]);
        let node = &report.runs[0].nodes["translation"];
        let told = |name: &str| node[name];
        assert!(told("segments_rewritten") > told("gc_migrations"), "{node:?}");
        assert!(told("destaged_blocks") > 0 && told("table_bytes") > 0, "{node:?}");
    }
}

#[test]
fn what_the_workload_touches_is_there_from_the_start() {
    let config = stack("cmr-500gb-7200", "prefill = \"touched\"");
    let options = BuildOptions { size_bytes: Some(1 << 30), ..BuildOptions::simulate(1) };
    let plan = Plan::new(&config, &options).unwrap_or_else(|error| panic!("{error}"));
    assert!(plan.needs_lookups());
    let lookups = [Lba(5), Lba(70_000), Lba(5)];
    let built = plan.build(None, Some(&lookups), ContentKind::Counted);
    assert_eq!(built.map(|built| built.stack.geometry().blocks.0).ok(), Some(1 << 18));
    let error = refused(&config, ContentKind::Counted);
    assert!(error.contains("needs a workload"), "{error}");
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let dense = stack(&small(), "block = \"8 KiB\"\ntrack = \"64 KiB\"\nregion_tracks = 3");
    let error = refused(&dense, ContentKind::Stamped);
    assert!(error.contains("accepted: track = \"disk\""), "{error}");
    for (keys, words) in [
        ("kappa = 0", "kappa = 0"),
        ("block = \"5 kB\"", "accepted: a multiple of 4 KiB"),
        ("block = \"512 KiB\"", "or ring = 0"),
        ("track = \"100 KiB\"", "no whole number of blocks"),
        ("fill = \"flash\"", "needs a store of copies"),
        ("slots = \"inside\"\nspare = \"100 %\"", "leave none for data"),
    ] {
        let error = refused(&stack("cmr-500gb-7200", keys), ContentKind::Counted);
        assert!(error.contains("node `translation`: ") && error.contains(words), "{error}");
    }
}
