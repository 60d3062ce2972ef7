//! Peak memory of fresh processes, from which what one more block takes follows.

use super::rates::{Writes, engine};
use imbrex_core::buffer::{BufferSlice, ContentKind};
use imbrex_report::peak_rss_bytes;
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Plan, StackConfig};
use std::process::Command;

/// First argument of a child.
pub const CHILD: &str = "--memory-child";
const MILLION: u64 = 1_000_000;
/// An odd number: strides of it visit every block of a power of two, out of order.
const STRIDE: u64 = 387_420_489;

/// Prints peaks and what follows from them.
pub fn print(wanted: &dyn Fn(&str) -> bool) {
    for (name, what) in [
        ("memory, cached blocks", "cached"),
        ("memory, cached blocks (pore)", "cached-pore"),
        ("memory, mapped blocks", "mapped"),
    ] {
        if wanted(name) {
            let [four, eight] = [4, 8].map(|millions| peak_of_child(what, millions * MILLION));
            println!(
                "{name:<34}{:>7.0} MB at 4 million, {:.0} MB at 8 million: {:.1} bytes a block",
                four as f64 / 1e6,
                eight as f64 / 1e6,
                (eight as f64 - four as f64) / (4 * MILLION) as f64
            );
        }
    }
    let name = "memory, requests";
    if wanted(name) {
        let [five, twenty] = [5, 20].map(|millions| peak_of_child("requests", millions * MILLION));
        println!(
            "{name:<34}{:>7.1} MB after 5 million, {:.1} MB after 20 million: {:+.1} %",
            five as f64 / 1e6,
            twenty as f64 / 1e6,
            (twenty as f64 / five as f64 - 1.0) * 100.0
        );
    }
}

fn peak_of_child(what: &str, count: u64) -> u64 {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args([CHILD, what, &count.to_string()])
        .output()
        .expect("a child of this program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a number of bytes")
}

/// Fills `what` with `count` blocks, or serves that many requests, and prints the peak.
pub fn child(what: &str, count: &str) {
    let count: u64 = count.parse().expect("a number of blocks");
    let (stack, writes) = match what {
        "cached" => (cache_of(count, "lru"), count),
        "cached-pore" => (cache_of(count, "pore"), count),
        "mapped" => (log_of(count), count),
        _ => (cache_of(100_000, "pore"), count),
    };
    run(&stack, writes);
    println!("{}", peak_rss_bytes().expect("a system that says"));
}

fn cache_of(blocks: u64, policy: &str) -> String {
    let period = if policy == "pore" { "period_blocks = 10000\n" } else { "" };
    format!(
        "name = 'memory'\n\
         [[node]]\nname = 'smr'\nkind = 'disk'\ndrive = 'st5000as0011'\n\
         [[node]]\nname = 'disk'\nkind = 'persistent-cache'\nbelow = 'smr'\nbypass = 'off'\n\
         [[node]]\nname = 'ssd'\nkind = 'disk'\ndrive = 'pblaze4'\n\
         [[node]]\nname = 'cache'\nkind = 'write-back-cache'\npolicy = '{policy}'\n\
         below = {{ flash = 'ssd', backing = 'disk' }}\n{period}\
         capacity = '{} B'\n",
        blocks * 4096
    )
}

fn log_of(blocks: u64) -> String {
    format!(
        "name = 'memory'\n\
         [[node]]\nname = 'disk'\nkind = 'disk'\ndrive = 'st5000as0011'\n\
         [[node]]\nname = 'translation'\nkind = 'persistent-cache'\nbelow = 'disk'\n\
         entries = 'unlimited'\nbypass = 'off'\npersistent_cache = '{} B'\n",
        blocks * 4096
    )
}

fn run(stack: &str, writes: u64) {
    let config = StackConfig::from_text("memory", stack, &[]).expect("a sound stack");
    let plan = Plan::new(&config, &BuildOptions::simulate(1)).expect("a sound stack");
    let built = plan.build(None, None, ContentKind::Counted).expect("a sound stack");
    let mut writes =
        Writes { left: writes, next: 0, stride: STRIDE, buffer: BufferSlice::EMPTY, busy: false };
    engine(built).run(&mut VirtualClock::default(), &mut writes, &mut |_, _| {});
}
