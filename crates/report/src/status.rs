//! What a served device tells of its status, as text.

use super::response_times::ResponseTimes;
use crate::format::{bytes, count, duration, optional, percent};
use imbrex_core::units::BLOCK_BYTES;
use serde_json::Value;
use std::fmt::Write;

/// Facts that are a part of another one.
const PARTS: [(&str, &str); 13] = [
    ("read_hits", "read_lookups"),
    ("write_hits", "write_lookups"),
    ("hit_block_reads", "block_reads"),
    ("hit_block_writes", "block_writes"),
    ("cached_blocks", "capacity_blocks"),
    ("dirty_blocks", "capacity_blocks"),
    ("clean_blocks", "capacity_blocks"),
    ("free_blocks", "capacity_blocks"),
    ("persistent_cache_used_blocks", "persistent_cache_blocks"),
    ("persistent_cache_entries", "persistent_cache_entries_max"),
    ("ring_blocks", "ring_capacity_blocks"),
    ("log_used_places", "log_places"),
    ("slots_noted", "slots"),
];
/// The response times that a device tells, and what they are of.
const TIMES: [(&str, &str); 3] = [
    ("all requests", "response_ms"),
    ("reads", "read_response_ms"),
    ("writes", "write_response_ms"),
];
const NS_PER_S: f64 = 1e9;

/// What a node tells of its status: a line, and one for each fact.
pub fn node_status(told: &Value) -> String {
    let state = match told["is_lost"] == true {
        true => "lost",
        false => "in use",
    };
    let mut text = format!("{}: {state}\n", word(&told["node"]));
    for line in array_lines(&told["array"]) {
        text += &format!("  {line}\n");
    }
    for line in controller_lines(&told["controller"]) {
        text += &format!("  {line}\n");
    }
    for line in facts(told) {
        text += &format!("  {line}\n");
    }
    if let Some(words) = told["file"].as_str() {
        text += &format!("  file: {words}\n");
    }
    if let Some(words) = told["when_lost"].as_str() {
        text += &format!("  when lost: {words}\n");
    }
    text
}

/// What an array tells: a line for its state, one for each member, and what else there is.
fn array_lines(array: &Value) -> Vec<String> {
    if !array.is_object() {
        return Vec::new();
    }
    let all = |key: &str| array[key].as_array().into_iter().flatten();
    let mut lines = vec![format!("array: {}", word(&array["state"]))];
    let width = all("members").map(|member| word(&member["node"]).len()).max().unwrap_or(0);
    for member in all("members") {
        let (name, state) = (word(&member["node"]), word(&member["state"]));
        lines.push(format!("member {name:<width$}  {state}{}", work(member, ", ")));
    }
    let spares: Vec<&str> = all("spares").map(word).collect();
    if !spares.is_empty() {
        lines.push(format!("spares left: {}", spares.join(", ")));
    }
    if array["scrub"].is_object() {
        lines.push(format!("scrub: {}", work(&array["scrub"], "")));
    }
    if let Some(all) = array["slots"].as_u64() {
        let left = count(number_of(&array["slots_left"]));
        lines.push(format!("slots left on the data disk: {left} of {}", count(all)));
    }
    let unreadable = number_of(&array["unreadable_blocks"]);
    if unreadable > 0 {
        let run = |run: &Value| format!("{}..{}", number_of(&run[0]), number_of(&run[1]));
        let runs: Vec<String> = all("unreadable").map(run).collect();
        lines.push(format!("unreadable: {} blocks, from {}", count(unreadable), runs.join(", ")));
    }
    lines.extend(all("next").map(|words| format!("next: {}", word(words))));
    lines
}

/// What a controller tells: its policy and phase, and of one with books what they say.
fn controller_lines(controller: &Value) -> Vec<String> {
    if !controller.is_object() {
        return Vec::new();
    }
    let state = match controller["is_on"] == true {
        true => "on",
        false => "off",
    };
    let policy = word(&controller["policy"]);
    let (phase, held) = (word(&controller["phase"]), number_of(&controller["held"]));
    let mut lines = vec![
        format!("controller: {policy}, {state}"),
        format!("phase: {phase}, {} requests held", count(held)),
    ];
    if let Some(used) = controller["used"].as_f64() {
        lines.push(format!("media cache in use (U): {} %", percent(Some(used))));
    }
    if let Some(idle_s) = controller["idle_s"].as_f64() {
        lines.push(format!("idle period decided last (L): {idle_s} s"));
    }
    lines
}

/// How far work has come, how fast it goes and how long it still takes, behind what stands before it.
fn work(told: &Value, before: &str) -> String {
    let Some(total) = told["total_bytes"].as_u64() else { return String::new() };
    let done = number_of(&told["done_bytes"]);
    let share = percent(Some(done as f64 / total.max(1) as f64));
    let mut text = format!("{before}{} of {} ({share} %)", bytes(done), bytes(total));
    if let Some(speed) = told["bytes_per_s"].as_u64() {
        text += &format!(", {}/s", bytes(speed));
    }
    if let Some(left) = told["left_s"].as_u64() {
        text += &format!(", {} left", duration(left as f64));
    }
    text
}

/// What a device tells of its status: the requests of the host, then each node.
pub fn device_status(told: &Value) -> String {
    let mut text = String::new();
    if let Some(system) = told["system"].as_str() {
        let blocks = |key: &str| bytes(number_of(&told[key]).saturating_mul(BLOCK_BYTES));
        text += &format!(
            "{system}: {} requests, {} read, {} written\n",
            count(number_of(&told["requests"])),
            blocks("read_blocks"),
            blocks("write_blocks")
        );
        text += &response_times(told);
    }
    let nodes = told["nodes"].as_array().into_iter().flatten();
    text + &nodes.map(node_status).collect::<String>()
}

fn response_times(told: &Value) -> String {
    let mut text = format!("  {:<12}", "ms");
    for column in ["mean", "p50", "p99", "p99.9", "max"] {
        write!(text, " {column:>8}").expect("a string takes anything");
    }
    text.push('\n');
    for (name, key) in TIMES {
        let times: ResponseTimes = serde_json::from_value(told[key].clone()).unwrap_or_default();
        write!(text, "  {name:<12}").expect("a string takes anything");
        for time in [times.mean, times.p50, times.p99, times.p99_9, times.max] {
            write!(text, " {:>8}", optional(time)).expect("a string takes anything");
        }
        text.push('\n');
    }
    text
}

/// A line for each fact: its name, its value, and what that is in bytes, time or as a share.
fn facts(told: &Value) -> Vec<String> {
    let of = &told["facts"];
    let facts: Vec<(&String, u64)> = of
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name, number_of(value)))
        .collect();
    let name_width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let values = facts.iter().map(|(_, value)| count(*value));
    let value_width = values.map(|value| value.len()).max().unwrap_or(0);
    let line = |(name, value): &(&String, u64)| {
        let said = said_of(name, *value, of);
        let value = count(*value);
        let line = format!("{name:<name_width$}  {value:>value_width$}  {said}");
        line.trim_end().to_owned()
    };
    facts.iter().map(line).collect()
}

/// What there is to say of a value beside the value.
fn said_of(name: &str, value: u64, facts: &Value) -> String {
    // Blocks of a node that works with larger ones.
    let block_bytes = facts["block_bytes"].as_u64().unwrap_or(BLOCK_BYTES);
    let mut said = Vec::new();
    if name.ends_with("_blocks") {
        said.push(bytes(value.saturating_mul(block_bytes)));
    } else if name.ends_with("_bytes") {
        said.push(bytes(value));
    } else if name.ends_with("_ns") {
        said.push(duration(value as f64 / NS_PER_S));
    }
    let whole = PARTS.iter().find(|(part, _)| *part == name);
    if let Some((_, whole)) = whole
        && let Some(all) = facts[whole].as_u64().filter(|all| *all > 0)
    {
        let share = percent(Some(value as f64 / all as f64));
        said.push(format!("{share} % of {whole}"));
    }
    said.join(", ")
}

fn number_of(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_is_text_with_units_and_shares() {
        let cache = json!({
            "node": "cache",
            "is_lost": false,
            "facts": {
                "capacity_blocks": 4096,
                "dirty_blocks": 1024,
                "read_hits": 3,
                "read_lookups": 0,
                "band_rewrite_ns": 1_500_000_000u64,
                "block_bytes": 8192,
            },
            "when_lost": "the device is served on",
        });
        let lines = "\
cache: in use
  band_rewrite_ns  1,500,000,000  1.50 s
  block_bytes              8,192  8.00 KiB
  capacity_blocks          4,096  32.0 MiB
  dirty_blocks             1,024  8.00 MiB, 25.0 % of capacity_blocks
  read_hits                    3
  read_lookups                 0
  when lost: the device is served on
";
        assert_eq!(node_status(&cache), lines);
        let array = json!({
            "node": "array",
            "is_lost": false,
            "facts": {},
            "array": {
                "state": "rebuilding",
                "members": [
                    {"node": "d0", "state": "in"},
                    {"node": "disk-1", "state": "rebuilding", "done_bytes": 4 << 20, "total_bytes": 16 << 20,
                     "bytes_per_s": 2 << 20, "left_s": 6},
                ],
                "spares": ["s0", "s1"],
                "scrub": {"done_bytes": 0, "total_bytes": 16 << 20},
                "slots_left": 1200,
                "slots": 4096,
                "unreadable_blocks": 3,
                "unreadable": [[4, 6], [9, 10]],
                "next": ["write them again"],
            },
        });
        let lines = "\
array: in use
  array: rebuilding
  member d0      in
  member disk-1  rebuilding, 4.00 MiB of 16.0 MiB (25.0 %), 2.00 MiB/s, 6.00 s left
  spares left: s0, s1
  scrub: 0 B of 16.0 MiB (0.0 %)
  slots left on the data disk: 1,200 of 4,096
  unreadable: 3 blocks, from 4..6, 9..10
  next: write them again
";
        assert_eq!(node_status(&array), lines);
        let mut controller = json!({
            "node": "controller",
            "is_lost": false,
            "facts": {},
            "controller": {
                "policy": "idler", "is_on": true, "phase": "draining", "used": 0.8125, "idle_s": 0.3, "held": 1200,
            },
        });
        let lines = "\
controller: in use
  controller: idler, on
  phase: draining, 1,200 requests held
  media cache in use (U): 81.2 %
  idle period decided last (L): 0.3 s
";
        assert_eq!(node_status(&controller), lines);
        controller["controller"] = json!({
            "policy": "at-ic", "is_on": false, "phase": "execution", "used": null, "idle_s": null, "held": 0,
        });
        let lines = "\
controller: in use
  controller: at-ic, off
  phase: execution, 0 requests held
";
        assert_eq!(node_status(&controller), lines);
        let times = json!({"mean": 0.25, "p50": 0.2, "p99": 1.5, "p99_9": 2.0, "max": 123.4});
        let none = json!({"mean": null, "p50": null, "p99": null, "p99_9": null, "max": null});
        let device = json!({
            "system": "mine",
            "requests": 1200,
            "read_blocks": 256,
            "write_blocks": 0,
            "response_ms": times,
            "read_response_ms": times,
            "write_response_ms": none,
            "nodes": [{"node": "disk", "is_lost": true, "facts": {}}],
        });
        let lines = "\
mine: 1,200 requests, 1.00 MiB read, 0 B written
  ms               mean      p50      p99    p99.9      max
  all requests    0.250    0.200     1.50     2.00      123
  reads           0.250    0.200     1.50     2.00      123
  writes              -        -        -        -        -
disk: lost
";
        assert_eq!(device_status(&device), lines);
    }
}
