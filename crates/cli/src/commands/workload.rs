//! The workload that a command replays.

use crate::args::{FitArg, PlacedTraceArgs, WorkloadArgs};
use crate::caller::Caller;
use crate::failure::{Failure, usage};
use imbrex_report::{Dependencies, Due, ReplayMode};
use imbrex_sim::experiment::{Wanted, WarmUp, Workload};
use imbrex_sim::replay::{Fit, Placement, ReplayOptions, STREAMS_MAX};

/// The workload, the way it is replayed, and what keeps the records in memory that a first pass has decoded.
pub fn workload(
    args: &WorkloadArgs,
    caller: &Caller,
) -> Result<(Workload, ReplayOptions, Wanted), Failure> {
    let options = caller.reading(args.read.options()?);
    let workload = Workload {
        repeat: args.repeat,
        new_blocks: args.new_blocks,
        warm_up: args.warm_up,
        ..Workload::of_trace(&args.trace, options, args.limit)
    };
    if args.repeat > 1 && workload.is_stream() {
        return Err(usage(format!(
            "--trace - with --repeat {}: standard input can be read once: give a file",
            args.repeat
        )));
    }
    if let (Some(warm_up @ WarmUp::Share(_)), true) = (args.warm_up, workload.is_stream()) {
        return Err(usage(format!(
            "--trace - with --warm-up {warm_up}: a share is of all requests, and standard input can be read once; \
             accepted: a count or until-full"
        )));
    }
    if args.new_blocks && args.repeat == 1 {
        return Err(usage(
            "--new-blocks: there is one round; accepted: with --repeat of 2 or more",
        ));
    }
    if args.new_blocks && matches!(args.fit, Some(FitArg::Scale)) {
        return Err(usage(
            "--new-blocks with --fit scale: the trace fills the device; accepted: --fit wrap, which is meant \
             without --fit",
        ));
    }
    let passes = if matches!(args.fit, Some(FitArg::Scale)) { 2 } else { 0 };
    let wanted = workload.kept.want(passes);
    let mode = match (args.open_loop, args.streams) {
        (true, _) => {
            if !(args.speed > 0.0 && args.speed.is_finite()) {
                return Err(usage(format!("--speed {}: accepted: a number above 0", args.speed)));
            }
            ReplayMode::OpenLoop { speed: args.speed }
        }
        (false, Some(streams)) if !(1..=STREAMS_MAX).contains(&streams) => {
            return Err(usage(format!("--streams {streams}: accepted: 1 to {STREAMS_MAX}")));
        }
        (false, Some(streams)) => {
            let due = args.due.map_or(Due::Absolute, Due::from);
            let dependencies = args.dependencies.map_or(Dependencies::InTurn, Dependencies::from);
            ReplayMode::Streams { streams, due, dependencies }
        }
        (false, None) => ReplayMode::ClosedLoop { depth: args.queue_depth },
    };
    let replay = ReplayOptions {
        mode,
        limit: args.limit,
        drop_reads: false,
        placement: Placement {
            fit: match args.new_blocks {
                true => Fit::Wrap,
                false => fit_of(args.fit, &workload)?,
            },
            blocks: args.blocks,
        },
    };
    Ok((workload, replay, wanted))
}

/// A trace, once, and where its records go on a device.
pub fn placed_trace(
    args: &PlacedTraceArgs,
    caller: &Caller,
) -> Result<(Workload, Placement), Failure> {
    let options = caller.reading(args.read.options()?);
    let workload = Workload::of_trace(&args.trace, options, args.limit);
    let placement = Placement { fit: fit_of(args.fit, &workload)?, blocks: args.blocks };
    Ok((workload, placement))
}

/// What to do with addresses beyond the device.
fn fit_of(fit: Option<FitArg>, workload: &Workload) -> Result<Fit, Failure> {
    Ok(match fit {
        None => Fit::Refuse,
        Some(FitArg::Wrap) => Fit::Wrap,
        Some(FitArg::Scale) if workload.is_stream() => {
            return Err(usage(
                "--fit scale reads the trace twice, which standard input does not allow: give a file",
            ));
        }
        Some(FitArg::Scale) => Fit::Scale { span_bytes: workload.span_bytes()? },
    })
}
