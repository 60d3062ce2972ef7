//! `imbrex bound`.

use super::stack::stack_with_settings;
use super::telling::Telling;
use super::workload::placed_trace;
use crate::args::BoundArgs;
use crate::caller::Caller;
use crate::commit::commit;
use crate::failure::{Failure, usage};
use imbrex_drives::quantity::{Size, parse_size};
use imbrex_report::ReplayMode;
use imbrex_sim::experiment::{Bound, BoundOptions, Case, Task};
use imbrex_sim::replay::ReplayOptions;
use serde_json::json;
use std::collections::BTreeMap;

/// Prints what no policy of a cache can pass on a trace.
pub fn run(args: &BoundArgs, caller: &Caller) -> Result<(), Failure> {
    if args.drive_scale == 0 {
        return Err(usage("--drive-scale 0: accepted: 1 or more"));
    }
    let set = settings(args)?;
    let mut config = stack_with_settings(&args.system, &set)?;
    if let Some(size) = &args.size {
        config.size = Some(Size(parse_size(size)?));
    }
    let (workload, placement) = placed_trace(&args.placed, caller)?;
    let replay = ReplayOptions {
        mode: ReplayMode::ClosedLoop { depth: 1 },
        limit: args.placed.limit,
        drop_reads: args.write_only,
        placement,
    };
    let case = Case {
        config,
        parameters: BTreeMap::new(),
        replay,
        series: vec![],
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        drive_scale: args.drive_scale,
        movement: None,
        drive_scale_option: Some("--drive-scale"),
    };
    let task = Task::new(&workload, args.seed, &case);
    let options = BoundOptions { cells: args.cells, is_drained: args.drained };
    let telling = Telling::new(args.quiet);
    let mut bound = task.bound(&options, &|step| telling.step(step))?;
    drop(telling);
    bound.commit = commit();
    match args.json {
        true => caller.emit(&format!("{}\n", json!(bound))),
        false => caller.emit(&text(&bound)),
    }
    Ok(())
}

/// The settings of the stack, those that have options of their own among them.
fn settings(args: &BoundArgs) -> Result<Vec<String>, Failure> {
    let mut set = args.set.clone();
    for (option, value, key) in [
        ("--cache", &args.cache, "cache.capacity"),
        ("--log", &args.log, "translation.persistent_cache"),
    ] {
        let Some(value) = value else { continue };
        let is_same = |set: &&String| set.split('=').next() == Some(key);
        if let Some(other) = args.set.iter().find(is_same) {
            let words = format!("{option} {value} and --set {other}; accepted: one of the two");
            return Err(usage(words));
        }
        set.push(format!("{key}={value}"));
    }
    Ok(set)
}

fn text(bound: &Bound) -> String {
    let room = bound.room;
    let drained = match bound.drained {
        true => "drained at the end",
        false => "what is held at the end stays there",
    };
    let rewrites = &bound.bands_rewritten;
    let mut text = format!(
        "{}: {} block writes to {} bands, {drained}\n\
         room                 {} blocks: cache {}, on their way out {}, log {}\n\
         bands rewritten      at least {} (prices {}, windows {})\n",
        bound.trace,
        bound.block_writes,
        bound.bands.len(),
        room.blocks(),
        room.cache_blocks,
        room.destage_slots,
        room.log_blocks,
        rewrites.bound,
        rewrites.prices.bound,
        rewrites.windows.bound,
    );
    if let Some(bytes) = bound.band_bytes_written() {
        text.push_str(&format!("band bytes written   at least {bytes}\n"));
    }
    let reads = bound.reads;
    if reads.read_blocks > 0 {
        text.push_str(&format!(
            "read blocks missed   at least {} of {}\n",
            reads.read_misses, reads.read_blocks
        ));
    }
    text
}
