//! `imbrex trace mrc`.

use crate::args::MrcArgs;
use crate::caller::Caller;
use crate::commands::outputs::check_output;
use crate::commands::page_file::write_page;
use crate::commands::telling::Telling;
use crate::failure::{Failure, usage};
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::Size;
use imbrex_sim::workload_page::lru_page;
use imbrex_traces::characterise::{LruCurve, LruCurvePoint, lru_curve};

/// Says what LRU caches of several sizes hit.
pub fn run(args: &MrcArgs, caller: &Caller) -> Result<(), Failure> {
    for (option, file) in [("--csv", &args.csv), ("--html", &args.html)] {
        if let Some(file) = file {
            check_output(option, file, [args.path.as_str()])?;
        }
    }
    if let (Some(csv), Some(html)) = (&args.csv, &args.html)
        && csv == html
    {
        let file = csv.display();
        return Err(usage(format!("--csv {file} --html {file}: are one file; accepted: two")));
    }
    let (telling, reader) =
        Telling::opened(args.quiet, &args.path, caller.reading(args.read.options()?))?;
    let curve =
        lru_curve(reader, args.blocks, args.sample, args.limit, |hits| match &args.sizes {
            Some(sizes) => sizes.blocks(hits.touched_blocks),
            None => hits.default_sizes(),
        })?;
    drop(telling);
    if let Some(file) = &args.csv {
        write_page(file, &csv(&curve))?;
    }
    if let Some(file) = &args.html {
        write_page(file, &lru_page(&curve))?;
    }
    match args.json {
        true => caller.emit(&format!("{}\n", serde_json::to_string(&curve)?)),
        false => caller.emit(&text(&curve)),
    }
    Ok(())
}

fn bytes(blocks: u64) -> String {
    Size(BlockCount(blocks).bytes()).to_string()
}

fn text(curve: &LruCurve) -> String {
    let mut text = format!(
        "{} ({}): {} records read {} and write {} blocks of 4 KiB, {} distinct ones ({})\n\
         hits of an LRU cache that keeps what is read and what is written, counted {}\n\n\
         {:>14} {:>12} {:>14} {:>14} {:>14}\n",
        curve.label,
        curve.kind,
        curve.requests,
        curve.read_blocks,
        curve.write_blocks,
        curve.touched_blocks,
        bytes(curve.touched_blocks),
        curve.method(),
        "size",
        "blocks",
        "of reads %",
        "of writes %",
        "of both %",
    );
    let percent = |share: Option<f64>| share.map_or("-".to_string(), |share| format!("{share:.2}"));
    for point in &curve.points {
        text.push_str(&format!(
            "{:>14} {:>12} {:>14} {:>14} {:>14}{}\n",
            bytes(point.cache_blocks),
            point.cache_blocks,
            percent(point.read_hit_percent),
            percent(point.write_hit_percent),
            percent(point.hit_percent),
            if is_too_small(point) { " *" } else { "" },
        ));
    }
    let errors = curve.points.iter().filter_map(|point| point.standard_error_percent);
    if let Some(most) = errors.reduce(f64::max) {
        text.push_str(&format!("\nStandard error of the last column: at most {most:.2} points.\n"));
    }
    if curve.points.iter().any(is_too_small) {
        text.push_str(&format!(
            "\n* A request of {} blocks is longer than this cache and goes around it, so one pass has no figure for \
             it.\n  Sizes of at least {} have one.\n",
            curve.longest_request_blocks,
            bytes(curve.longest_request_blocks),
        ));
    }
    text
}

/// Whether some requests go around the cache.
fn is_too_small(point: &LruCurvePoint) -> bool {
    point.read_hits.is_none()
}

/// A row for each size; what has no figure is empty.
fn csv(curve: &LruCurve) -> String {
    let mut text =
        "cache_blocks,read_hits,write_hits,read_hit_percent,write_hit_percent,hit_percent\n"
            .to_string();
    let whole = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
    let percent = |share: Option<f64>| share.map_or(String::new(), |share| share.to_string());
    for point in &curve.points {
        text.push_str(&format!(
            "{},{},{},{},{},{}\n",
            point.cache_blocks,
            whole(point.read_hits),
            whole(point.write_hits),
            percent(point.read_hit_percent),
            percent(point.write_hit_percent),
            percent(point.hit_percent),
        ));
    }
    text
}
