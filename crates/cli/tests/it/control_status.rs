//! What `imbrex control ... status` says, as text and as JSON.

use crate::client::FLUSH;
use crate::control::{done, serve, span};
use crate::served::{Place, Served};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;

/// The answer to `status` of a node, or of the device.
pub fn status(place: &Place, node: &[&str]) -> Value {
    let arguments = [node, &["status", "--json"]].concat();
    let mut answer: Value = serde_json::from_str(&done(place, &arguments)).expect("one document");
    answer["ok"].take()
}

fn facts(place: &Place, node: &str) -> Map<String, Value> {
    let told = status(place, &[node]);
    told["facts"].as_object().expect("facts").clone()
}

/// Writes and reads blocks `from .. to`, one request each.
fn write(server: &Served, from: u64, to: u64) {
    let mut client = server.client();
    for block in from..to {
        assert_eq!(client.write(0, block * BLOCK, &[3; BLOCK as usize]), 0);
    }
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
}

fn read(server: &Served, from: u64, to: u64) {
    let mut client = server.client();
    for block in from..to {
        assert!(client.read(block * BLOCK, BLOCK as u32).is_ok());
    }
}

/// What SIGUSR1 has the server tell.
fn figures(server: &Served) -> Value {
    server.signal("USR1");
    let since = Instant::now();
    loop {
        let said = server.said();
        if let Some(line) = said.lines().find(|line| line.starts_with('{')) {
            let figures: Value = serde_json::from_str(line).expect("one document");
            return figures["runs"][0].clone();
        }
        assert!(since.elapsed() < Duration::from_secs(60), "no figures: {said}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A write-back cache of 1024 blocks over a log of a shingled disk, 100 blocks of it written, of which
/// 50 were read, and 20 others read.
fn used_cache(place: &Place) -> Served {
    let settings = ["cache.capacity=4MiB"];
    place.create("lru", "64MiB", &settings);
    let data = place.data();
    let server = serve(place, "lru", &["--data", &data, "--set", settings[0]]);
    write(&server, 0, 100);
    read(&server, 0, 50);
    read(&server, 1_000, 1_020);
    server
}

#[test]
fn a_cache_tells_what_is_dirty_clean_and_free() {
    let place = Place::new();
    let server = used_cache(&place);
    let cache = facts(&place, "cache");
    for (name, value) in [
        ("capacity_blocks", 1024),
        ("dirty_blocks", 100),
        ("clean_blocks", 20),
        ("free_blocks", 904),
        ("cached_blocks", 120),
        ("write_lookups", 100),
        ("write_hits", 0),
        ("read_lookups", 70),
        ("read_hits", 50),
    ] {
        assert_eq!(cache[name], value, "{name}");
    }
    let text = done(&place, &["cache", "status"]);
    for line in [
        "cache: in use\n",
        "\n  dirty_blocks              100  400 KiB, 9.8 % of capacity_blocks\n",
        "\n  read_hits                  50  71.4 % of read_lookups\n",
        "\n  when lost: requests of the device end with an error\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    server.stop();
}

#[test]
fn a_translation_tells_how_full_its_log_is_and_what_it_has_rewritten() {
    let place = Place::new();
    let log = "translation.persistent_cache=8MiB";
    place.create("smr-only", "64MiB", &[log]);
    let data = place.data();
    let server = serve(&place, "smr-only", &["--data", &data, "--set", log]);
    write(&server, 0, 64);
    let before = facts(&place, "translation");
    assert_eq!(before["persistent_cache_blocks"], 2048);
    assert_eq!(before["persistent_cache_live_blocks"], 64);
    assert_eq!(before["persistent_cache_appended_blocks"], 64);
    assert_eq!(before["bands_rewritten"], 0);
    // More than the log holds, so bands have to be rewritten.
    write(&server, 0, 3_000);
    let after = facts(&place, "translation");
    assert!(after["bands_rewritten"].as_u64() > Some(0), "{after:?}");
    assert!(after["persistent_cache_used_blocks"].as_u64() <= Some(2048));
    let run = server.stop();
    assert_eq!(run["bands_rewritten"], after["bands_rewritten"]);
}

#[test]
fn the_device_tells_all_and_the_figures_of_usr1() {
    let place = Place::new();
    let server = used_cache(&place);
    let told = status(&place, &[]);
    let figures = figures(&server);
    assert_eq!(told["requests"], 171);
    for key in [
        "system",
        "requests",
        "read_blocks",
        "write_blocks",
        "response_ms",
        "read_response_ms",
        "write_response_ms",
    ] {
        assert!(!told[key].is_null(), "{key}");
        assert_eq!(told[key], figures[key], "{key}");
    }
    let nodes = told["nodes"].as_array().expect("nodes");
    let names: Vec<&Value> = nodes.iter().map(|node| &node["node"]).collect();
    assert_eq!(json!(names), json!(["smr", "translation", "ssd", "cache"]));
    for node in nodes {
        let name = node["node"].as_str().expect("a name");
        let counted = figures["nodes"][name].as_object().expect("counts");
        for (key, value) in counted {
            // The drives may go on in the meantime.
            let told = &node["facts"][key];
            let is_same = told == value || matches!(name, "smr" | "ssd") && told.is_u64();
            assert!(is_same, "{name}.{key}: {told}, figures {value}");
        }
    }
    let text = done(&place, &["status"]);
    for words in [
        "lru: 171 requests, 280 KiB read, 400 KiB written\n",
        "\n  ms               mean      p50      p99    p99.9      max\n  all requests ",
        "\nsmr: in use\n  busy_ns ",
        "\ncache: in use\n",
    ] {
        assert!(text.contains(words), "{text}");
    }
    server.stop();
}

#[test]
fn every_kind_of_translation_and_buffer_tells_how_full_it_is() {
    for (stack, of_translation) in [
        ("hwsr", &["segments_rewritten"][..]),
        ("s-block", &["regions", "ring_blocks", "ring_capacity_blocks", "gc_runs"]),
    ] {
        let place = Place::new();
        let server = serve(&place, stack, &["--emulate", "--size", "256MiB"]);
        // Two blocks of 64 KiB, and a part of a third.
        write(&server, 0, 33);
        let buffer = facts(&place, "buffer");
        for (name, value) in [
            ("block_bytes", 65_536),
            ("capacity_blocks", 1024),
            ("dirty_blocks", 3),
            ("free_blocks", 1021),
            ("block_writes", 33),
            ("hit_block_writes", 30),
        ] {
            assert_eq!(buffer[name], value, "{stack}: {name}");
        }
        let translation = facts(&place, "translation");
        for name in of_translation.iter().chain(&["block_bytes"]) {
            assert!(translation.contains_key(*name), "{stack}: {name}: {translation:?}");
        }
        assert_eq!(facts(&place, "cache")["capacity_blocks"], 2048);
        let ssd = status(&place, &["flash"]);
        assert_eq!(
            ssd["when_lost"],
            "cache goes on: it has no copies, so what it would have had is read from the disk; the device is \
             served on"
        );
        server.stop();
    }
}

#[test]
fn a_log_of_a_buffer_tells_how_full_it_is() {
    let place = Place::new();
    place.create("hwsr", "256MiB", &[]);
    let data = place.data();
    let server = serve(&place, "hwsr", &["--data", &data]);
    let translation = facts(&place, "translation");
    assert_eq!((&translation["slots"], &translation["slots_noted"]), (&json!(4), &json!(0)));
    let before = facts(&place, "buffer")["log_used_places"].clone();
    write(&server, 0, 33);
    let buffer = facts(&place, "buffer");
    assert_eq!((before, &buffer["log_used_places"]), (json!(0), &json!(33)));
    assert!(buffer["log_places"].as_u64() >= Some(33));
    server.stop();
}

/// A part of another disk.
const OTHER: &str = r#"
[[node]]
name = "other"
kind = "disk"
drive = "wd-4tb-7200"

[[node]]
name = "c"
kind = "slice"
below = "other"
offset = "0"
size = "4 MiB"
"#;

#[test]
fn a_node_tells_what_it_means_that_it_is_lost() {
    let place = Place::new();
    let stack = place.path("three.toml");
    std::fs::write(&stack, span("three", OTHER, &["a", "b", "c"])).expect("a file");
    let server = serve(&place, &stack, &["--emulate"]);
    let words = |node: &str| status(&place, &[node])["when_lost"].clone();
    let span = "top goes on: requests for this part fail, and the other parts are served; the device is \
                served on";
    assert_eq!(words("disk"), format!("a and b are lost too; {span}"));
    assert_eq!(words("b"), span);
    assert_eq!(words("top"), "requests of the device end with an error");
    done(&place, &["disk", "fail"]);
    let text = done(&place, &["status"]);
    for node in ["disk: lost", "other: in use", "a: lost", "b: lost", "top: in use"] {
        assert!(text.contains(&format!("\n{node}\n")), "{node}: {text}");
    }
    server.signal("TERM");
    server.wait();
}

#[test]
fn a_device_that_is_only_read_tells_its_status() {
    let place = Place::new();
    used_cache(&place).stop();
    let data = place.data();
    let more = ["--data", &data, "--read-only", "--set", "cache.capacity=4MiB"];
    let server = serve(&place, "lru", &more);
    read(&server, 0, 10);
    let cache = facts(&place, "cache");
    assert_eq!((&cache["dirty_blocks"], &cache["read_hits"]), (&json!(100), &json!(10)));
    assert_eq!(status(&place, &[])["requests"], 10);
    server.stop();
}
