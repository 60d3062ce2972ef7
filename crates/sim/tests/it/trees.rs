//! Trees that no ready-made stack has: several caches, several translations.

use crate::harness::{play_on, random_steps};
use crate::report::schema_violations;
use crate::simulate::random_writes;
use imbrex_core::buffer::ContentKind;
use imbrex_report::Report;
use imbrex_stack::{BuildOptions, Plan, StackConfig};
use serde_json::{Value, json};

/// Cases with contents of each tree.
const CASES: u64 = 40;
/// Steps of a case.
const STEPS: u64 = 150;
/// Longest request of a case in blocks.
const REQUEST_BLOCKS_MAX: u64 = 12;

const OUTER: &str = "outer, a cache over a cache";

/// A disk of a few hundred blocks.
fn disk(name: &str, drive: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
    format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{folder}/{drive}.toml\"\n")
}

fn ssd(name: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"850evo\"\n")
}

fn translation(name: &str, below: &str) -> String {
    format!(
        "[[node]]\nname = \"{name}\"\nkind = \"persistent-cache\"\nbelow = \"{below}\"\n\
         bands = \"uniform:64KiB..144KiB\"\npersistent_cache = \"128KiB\"\n"
    )
}

fn cache(name: &str, [flash, backing]: [&str; 2], capacity: &str, policy: &str) -> String {
    format!(
        "[[node]]\nname = \"{name}\"\nkind = \"write-back-cache\"\n\
         below = {{ flash = \"{flash}\", backing = \"{backing}\" }}\n\
         capacity = \"{capacity}\"\ndestage_slots = 3\npolicy = \"{policy}\"\n"
    )
}

/// Every tree with its name.
fn trees() -> Vec<(&'static str, Vec<String>)> {
    let smr = |name| [disk(name, "tiny-smr")].concat();
    vec![
        (
            OUTER,
            vec![
                disk("cmr", "tiny-cmr"),
                ssd("slow"),
                cache("inner", ["slow", "cmr"], "96KiB", "lru"),
                ssd("fast"),
                cache("outer", ["fast", "inner"], "32KiB", "lru"),
            ],
        ),
        (
            "a cache over a cache over a translation",
            vec![
                smr("smr"),
                translation("bands", "smr"),
                ssd("slow"),
                cache("inner", ["slow", "bands"], "96KiB", "lru-band"),
                ssd("fast"),
                // Its period is that of the only log, though a cache lies between.
                cache("cache", ["fast", "inner"], "32KiB", "pore"),
            ],
        ),
        (
            "a cache whose flash is a translation",
            vec![
                smr("under-flash"),
                translation("flash", "under-flash"),
                smr("smr"),
                translation("translation", "smr"),
                cache("cache", ["flash", "translation"], "96KiB", "lru"),
            ],
        ),
        (
            "two translations of any name",
            vec![
                smr("a"),
                translation("first", "a"),
                smr("b"),
                translation("second", "b"),
                cache("top", ["first", "second"], "64KiB", "lru"),
            ],
        ),
    ]
}

fn stack(nodes: &[String]) -> StackConfig {
    let text = format!("name = \"tree\"\n{}", nodes.concat());
    StackConfig::from_text("tree.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The report of a small load on a tree.
fn report(config: StackConfig, series: &[&str]) -> Report {
    random_writes(config, 4, series)
}

#[test]
fn every_tree_keeps_what_is_written_to_it() {
    for (name, nodes) in trees() {
        let plan = |seed| Plan::new(&stack(&nodes), &BuildOptions::simulate(seed));
        for seed in 0..CASES {
            let plan = plan(seed).unwrap_or_else(|error| panic!("{name}: {error}"));
            let built = plan.build(None, None, ContentKind::Stamped);
            let built = built.unwrap_or_else(|error| panic!("{name}: {error}"));
            let blocks = built.stack.geometry().blocks.0;
            let steps = random_steps(seed, STEPS, blocks, REQUEST_BLOCKS_MAX);
            let depth = 1 + seed as usize % 8;
            let played = play_on(built.stack, built.disks, vec![], steps, depth);
            let engine = played.unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            assert_eq!(engine.buffers.allocated(), 0, "{name}, seed {seed}");
        }
    }
}

#[test]
fn every_node_of_every_tree_is_counted() {
    for (name, nodes) in trees() {
        let config = stack(&nodes);
        for durable in [false, true] {
            let mut nodes = nodes.clone();
            for node in nodes.iter_mut().filter(|it| !it.contains("\"disk\"")) {
                *node = format!("{node}durable = {durable}\nring_blocks = 16\n");
                if !durable {
                    *node = node.replace("ring_blocks = 16\n", "");
                }
            }
            let larger = stack(
                &nodes.iter().map(|it| it.replace("tiny-smr", "small-smr")).collect::<Vec<_>>(),
            );
            let report = report(larger, &[]);
            assert_eq!(schema_violations(&report), [""; 0], "{name}");
            let run = &report.runs[0];
            assert_eq!(run.nodes.len(), config.node.len(), "{name}");
            for node in &config.node {
                let counted = &run.nodes[node.name()];
                let works = match node.below().len() {
                    0 => counted["writes"],
                    1 => counted["persistent_cache_appended_blocks"] * counted["bands_rewritten"],
                    _ => counted["write_lookups"] * counted["dirty_evictions"],
                };
                assert!(works > 0, "{name}: {}: {counted:?}", node.name());
                let is_cache = counted.contains_key("dirty_blocks");
                assert_eq!(is_cache, node.below().len() == 2, "{name}: {counted:?}");
            }
        }
    }
}

/// What a report says without naming a node is of all nodes of the role, and reads back.
#[test]
fn keys_without_a_node_are_sums_where_several_are_meant() {
    let told = |name: &str| {
        let (_, nodes) = trees().into_iter().find(|(tree, _)| *tree == name).expect("a tree");
        let report = report(stack(&nodes), &[]);
        let document: Value = serde_json::from_str(&report.to_json()).expect("JSON");
        let read: Report = serde_json::from_value(document.clone()).expect("a report");
        let again = serde_json::to_value(&read).expect("only string keys");
        assert!(again["runs"][0] == document["runs"][0], "{name}");
        document["runs"][0].clone()
    };
    let sum = |run: &Value, nodes: [&str; 2], counter: &str| {
        let counts = nodes.map(|node| run["nodes"][node][counter].as_u64().expect("a count"));
        assert!(counts.iter().all(|count| *count > 0), "{counter}: {counts:?}");
        counts.iter().sum::<u64>()
    };
    let run = told(OUTER);
    assert_eq!(run["write_hits"], run["nodes"]["outer"]["write_hits"]);
    assert_eq!(run["dirty_blocks_left"], sum(&run, ["inner", "outer"], "dirty_blocks"));
    assert_eq!(run["capacity_blocks"], (96 + 32) / 4);
    assert_eq!((&run["bands_rewritten"], &run["bands"]), (&Value::from(0), &Value::Null));
    for (tree, nodes, cache) in [
        ("a cache whose flash is a translation", ["flash", "translation"], "cache"),
        ("two translations of any name", ["first", "second"], "top"),
    ] {
        let run = told(tree);
        assert_eq!(run["roles"], json!({"cache": [cache], "translation": nodes}));
        assert_eq!(run["bands_rewritten"], sum(&run, nodes, "bands_rewritten"));
        assert_eq!(run["write_hits"], run["nodes"][cache]["write_hits"]);
        assert_eq!(run["persistent_cache_bytes"], 2 * (128 << 10));
        assert_eq!(run["band_seed"], Value::Null);
    }
}

#[test]
fn any_gauge_of_any_node_can_be_recorded() {
    let (_, nodes) = trees().remove(1);
    let asked = ["bands.persistent_cache_used_blocks", "cache.dirty_blocks", "inner.cached_blocks"];
    let report = report(stack(&nodes), &asked);
    let run = &report.runs[0];
    assert!(run.figures.series.keys().map(String::as_str).eq(asked));
    for (name, series) in &run.figures.series {
        let (node, gauge) = name.split_once('.').expect("a node");
        let highest = series.values.iter().fold(0.0, |a: f64, b| a.max(*b));
        assert!(highest > 0.0 && highest <= 300.0, "{name}: {highest}");
        let last = run.nodes[node][gauge] as f64;
        assert!((series.values[series.values.len() - 1] - last).abs() <= 8.0, "{name}");
    }
    let csv = report.to_csv();
    let (_, lines) = csv.iter().find(|(file, _)| *file == "series.csv").expect("a file");
    assert!(lines.contains("\ntree,0,inner.cached_blocks,"), "{lines}");
}
