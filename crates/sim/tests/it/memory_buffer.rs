//! Stacks with a write buffer in memory: what they keep, count and refuse.

use crate::harness::{play_on, random_steps};
use crate::report::schema_violations;
use crate::simulate::random_writes;
use imbrex_core::buffer::ContentKind;
use imbrex_stack::{BuildOptions, Plan, StackConfig};

/// A buffer over a plain disk, with its log on a slice of an SSD.
fn stack(keys: &str, below: &str) -> String {
    format!(
        "name = \"buffered\"\n\
         [[node]]\nname = \"ssd\"\nkind = \"disk\"\ndrive = \"850evo\"\n\
         [[node]]\nname = \"logs\"\nkind = \"slice\"\nbelow = \"ssd\"\noffset = \"1 MiB\"\n\
         size = \"64 MiB\"\n\
         [[node]]\nname = \"ram\"\nkind = \"disk\"\nmedia = \"memory\"\nsize = \"64 MiB\"\n\
         survives = \"power\"\n\
         [[node]]\nname = \"weak\"\nkind = \"disk\"\nmedia = \"memory\"\nsize = \"64 MiB\"\n\
         survives = \"process\"\n\
         [[node]]\nname = \"disk\"\nkind = \"disk\"\ndrive = \"cmr-500gb-7200\"\n\
         [[node]]\nname = \"buffer\"\nkind = \"memory-buffer\"\n\
         below = {{ below = \"disk\"{below} }}\n{keys}"
    )
}

/// The stack without the nodes that are not below the buffer.
fn config(keys: &str, below: &str) -> Result<StackConfig, String> {
    let text = stack(keys, below);
    let uses = |node: &str| {
        let is_used = |name: &str| below.contains(&format!("\"{name}\""));
        let has_name = |name: &str| node.contains(&format!("name = \"{name}\""));
        let in_use = is_used("logs") || !(has_name("ssd") || has_name("logs"));
        in_use && (is_used("ram") || !has_name("ram")) && (is_used("weak") || !has_name("weak"))
    };
    let nodes: Vec<&str> = text.split("[[node]]").filter(|node| uses(node)).collect();
    let text = nodes.join("[[node]]");
    StackConfig::from_text("mine.toml", &text, &[]).map_err(|error| error.to_string())
}

const SMALL: &str = "capacity = \"256 KiB\"\nblock = \"32 KiB\"\nlookup_window = \"50 %\"\n";
const DURABLE: &str = "durable = true\nring_blocks = 32\n";
const LOG: &str = ", log = \"logs\"";

#[test]
fn a_buffer_keeps_what_is_written_to_it() {
    let stacks = [
        (SMALL.to_string(), ""),
        (format!("{SMALL}policy = \"most\"\n"), ""),
        (format!("{SMALL}scope = \"whole-buffer\"\n"), LOG),
        ("capacity = \"0\"\n".to_string(), ""),
    ];
    for (seed, (keys, below)) in (0..).zip(stacks) {
        let options = BuildOptions { size_bytes: Some(4 << 20), ..BuildOptions::simulate(seed) };
        let config = config(&keys, below).unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::new(&config, &options).unwrap_or_else(|error| panic!("{error}"));
        let built = plan.build(None, None, ContentKind::Stamped);
        let built = built.unwrap_or_else(|error| panic!("{error}"));
        let steps = random_steps(seed, 300, built.stack.geometry().blocks.0, 12);
        let played = play_on(built.stack, built.disks, vec![], steps, 5);
        let engine = played.unwrap_or_else(|error| panic!("{keys}: {error}"));
        assert!(engine.stack.is_quiet());
    }
}

#[test]
fn a_durable_buffer_writes_its_log_where_it_is_told_to() {
    let rows = [
        (format!("{SMALL}{DURABLE}"), LOG, Some("ssd")),
        (format!("{SMALL}{DURABLE}persistence = \"nvram\"\n"), ", log = \"ram\"", Some("ram")),
        (format!("{SMALL}durable = true\npersistence = \"destage\"\n"), "", None),
        ("capacity = \"0\"\ndurable = true\n".to_string(), "", None),
    ];
    for (keys, below, log) in rows {
        let config = config(&keys, below).unwrap_or_else(|error| panic!("{error}"));
        let report = random_writes(config, 4, &[]);
        let nodes = &report.runs[0].nodes;
        let writes = nodes["buffer"]["block_writes"];
        assert!(writes >= 1000, "{keys}");
        if let Some(log) = log {
            assert!(nodes[log]["written_blocks"] >= writes, "{keys}");
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused_with_what_is_accepted() {
    let refused = |keys: &str, below: &str| -> String {
        let planned = config(keys, below).and_then(|config| {
            let plan = Plan::new(&config, &BuildOptions::simulate(1));
            let built = plan.and_then(|plan| plan.build(None, None, ContentKind::Counted));
            built.map(|_| ()).map_err(|error| error.to_string())
        });
        planned.expect_err("a refusal")
    };
    let rows = [
        (
            DURABLE,
            "",
            "it is durable, and its below has no log; accepted: below = { below = .., log = \"NODE\" }, \
             or persistence = \"destage\"",
        ),
        (
            "durable = true\npersistence = \"nvram\"\n",
            LOG,
            "persistence = \"nvram\" with its log on `ssd`; accepted: a disk with media = \"memory\" and \
             survives = \"power\"",
        ),
        (
            "durable = true\npersistence = \"nvram\"\n",
            ", log = \"weak\"",
            "with its log on `weak`; accepted: a disk with media = \"memory\"",
        ),
        (
            "block = \"6 KiB\"\n",
            "",
            "block = \"6 KiB\"; accepted: 4 KiB to 8 MiB, a multiple of 4 KiB",
        ),
        ("block = \"16 MiB\"\n", "", "block = 16777216 B; accepted: 4 KiB to 8 MiB"),
        ("capacity = \"16 KiB\"\n", "", "accepted: \"0\", or one block (65536 B) to 2^30 blocks"),
        (
            "lookup_window = \"0 %\"\n",
            "",
            "\"0 %\"; accepted: a share above 0 % up to 100 %, such as \"25 %\"",
        ),
        ("policy = \"lru\"\n", "", "expected one of `lwa`, `lru-block`, `lru-segment`, `most`"),
    ];
    for (keys, below, words) in rows {
        let error = refused(keys, below);
        assert!(error.contains(words), "{keys}: {error}");
    }
}

#[test]
fn a_report_has_what_a_buffer_counts() {
    let config = config(SMALL, "").unwrap_or_else(|error| panic!("{error}"));
    let report = random_writes(config, 4, &["buffer.dirty_blocks"]);
    assert_eq!(schema_violations(&report), [""; 0]);
    let counts = &report.runs[0].nodes["buffer"];
    for counter in
        ["block_writes", "evictions", "evicted_blocks", "destages", "dirty_blocks", "table_bytes"]
    {
        assert!(counts[counter] > 0, "{counter}");
    }
}
