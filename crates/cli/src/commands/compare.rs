//! `imbrex compare`.

use super::outputs::{check_out, check_output, jobs, write_whole};
use super::print_experiment::print_experiment;
use super::run::kept::Keeping;
use super::run::stopped::{self, until_stopped};
use super::stack::{settings_of_stacks, systems};
use super::sweep_option::{sweep, swept_values};
use super::workload::workload;
use crate::args::CompareArgs;
use crate::caller::Caller;
use crate::commit::{commit, program};
use crate::exit_code::ExitCode;
use crate::failure::{Failure, is_stopped, usage, usage_if_option};
use imbrex_drives::quantity::{Size, parse_size};
use imbrex_report::{ReplayMode, Report, TableStyle};
use imbrex_serve::signals::STOPPED_EXIT_STATUS;
use imbrex_sim::experiment::{BaseStack, Batch, Case, RequestSink, RunFiles, parameters};
use imbrex_stack::{StackConfig, WindowsBy, check_brought, check_series, compared};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Replays one workload through several stacks.
pub fn run(args: &CompareArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    check_together(args)?;
    check_requests(args, caller)?;
    check_outputs(args)?;
    let (mut workload, mut replay, _kept) = workload(&args.workload, caller)?;
    workload.options.sha256 = tells_hash(args);
    if args.untimed {
        replay.mode = ReplayMode::Untimed;
    }
    let names: Vec<String> = match args.systems.is_empty() {
        true => compared().map(str::to_string).collect(),
        false => systems(&args.systems)?,
    };
    let (settings, own_settings) = settings_of_stacks(&args.set, &names)?;
    let swept_values = swept_values(&args.sweep)?;
    let mut bases = Vec::new();
    for name in &names {
        let mut config = StackConfig::load(name, &[])?;
        if let Some(size) = &args.size {
            config.size = Some(Size(parse_size(size)?));
        }
        let own = own_settings.iter().filter(|it| it.stack == *name).map(|it| it.setting.clone());
        bases.push(BaseStack { own: own.collect(), file: name.clone(), config });
    }
    let swept = sweep(&swept_values, bases.len())?;
    let mut swept = swept.stacks(&bases, &settings).map_err(usage_if_option)?;
    for (config, _) in &mut swept {
        config.bring(caller.policies()).map_err(usage)?;
    }
    check_brought(caller.policies(), swept.iter().map(|(config, _)| config)).map_err(usage)?;
    if workload.is_stream() && swept.len() > 1 {
        return Err(usage(format!(
            "--trace -: standard input can be read once, and {} systems are to be compared: give a \
             file, or one system",
            swept.len()
        )));
    }
    check_state(args, swept.len())?;
    let configs = || swept.iter().map(|(config, _)| config);
    check_series(&args.series, configs())?;
    if args.print_experiment {
        let has_windows = |config: &StackConfig| {
            config.top().windows().is_some_and(|windows| windows.by == WindowsBy::Source)
        };
        let is_cut = configs().any(has_windows);
        caller.emit(&print_experiment(args, &names, &settings, &swept_values, is_cut)?);
        return Ok(ExitCode::SUCCESS);
    }
    // As the paper did: a write-only comparison replays no reads, in any of the stacks.
    replay.drop_reads = configs().any(StackConfig::is_write_only);
    let cases = swept
        .into_iter()
        .map(|(config, point)| Case {
            config,
            parameters: parameters(&point),
            replay,
            series: args.series.clone(),
            events: vec![],
            windows: vec![],
            cut_into_windows: true,
            heads: None,
            drive_scale: args.drive_scale,
            movement: None,
            drive_scale_option: Some("--drive-scale"),
        })
        .collect();
    let seed = args.output.seed.unwrap_or(1);
    let batch = Batch { workload, seed, cases, jobs: jobs(args.output.jobs) };
    let keeping = keeping(args, caller)?;
    let mut report = make(args, &batch, keeping.as_ref(), caller)?;
    report.commit = commit();
    let mut is_whole = report.left.is_empty();
    if args.bound && is_whole {
        is_whole = add_bounds(&mut report, &batch, caller)?;
    }
    let written = match &args.output.out {
        Some(folder) => write_report(&report, folder, caller),
        None => Ok(()),
    };
    caller.emit(&match args.output.json {
        true => report.to_json(),
        false => report.to_table(TableStyle::detect()),
    });
    if let Some(keeping) = keeping {
        keeping.end(is_whole, written.is_ok(), caller);
    }
    // What could not be written has been printed.
    written?;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(STOPPED_EXIT_STATUS) })
}

/// Whether something is written that tells the hash of the trace. A table alone does not, and the file may be far longer
/// than what is replayed of it.
fn tells_hash(args: &CompareArgs) -> bool {
    let is_written = args.output.json || args.output.out.is_some();
    is_written || args.save_state.is_some() || args.state.is_some()
}

/// Makes the runs that are not kept already.
fn make(
    args: &CompareArgs,
    batch: &Batch,
    keeping: Option<&Keeping>,
    caller: &Caller,
) -> Result<Report, Failure> {
    let table = Mutex::default();
    let files = RunFiles {
        request_log: match &args.log_requests {
            Some(file) => Some(RequestSink::File(file)),
            None => caller.wants_requests().then_some(RequestSink::Table(&table)),
        },
        save_state: args.save_state.as_deref(),
        state: args.state.as_deref(),
        program: &program(),
    };
    let made =
        until_stopped(args.output.quiet, keeping, caller, |watch| batch.run_with(&files, watch))?;
    let report = made.map_err(usage_if_option)?;
    if caller.wants_requests() && report.left.is_empty() {
        caller.give_requests(table.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    Ok(report)
}

/// Sets the least number of rewrites beside that of each run. Gives whether it came to its end: runs stay that are made
/// when somebody stops it.
fn add_bounds(report: &mut Report, batch: &Batch, caller: &Caller) -> Result<bool, Failure> {
    match batch.rewrite_bounds().map_err(Failure::from) {
        Ok(bounds) => {
            for (run, bound) in report.runs.iter_mut().zip(bounds) {
                run.rewrites.bands_rewritten_bound = bound;
            }
            Ok(true)
        }
        Err(failure) if is_stopped(&failure) => {
            caller.complain("stopped before the bounds were known; the runs are without them");
            Ok(false)
        }
        Err(failure) => Err(failure),
    }
}

/// Where runs are kept when they end: beside the results, unless they leave something else behind, which would be lacking
/// of runs that are not made again.
fn keeping(args: &CompareArgs, caller: &Caller) -> Result<Option<Keeping>, Failure> {
    let others = [&args.log_requests, &args.save_state, &args.state];
    match &args.output.out {
        Some(out) if others.iter().all(|file| file.is_none()) && !caller.wants_requests() => {
            Keeping::beside(out, args.resume).map(Some)
        }
        _ => Ok(None),
    }
}

/// Writes the files of a report. What was stopped does not take the place of what was finished.
fn write_report(report: &Report, meant: &Path, caller: &Caller) -> Result<(), Failure> {
    let folder = match !report.left.is_empty() && stopped::is_finished(meant) {
        true => stopped::folder_beside(meant)?,
        false => meant.to_path_buf(),
    };
    write_whole(&folder, |folder| report.write_to(folder).map(drop))?;
    stopped::say_what_stays(&folder, meant, caller);
    Ok(())
}

/// Refuses what could not be written.
fn check_outputs(args: &CompareArgs) -> Result<(), Failure> {
    check_out(&args.output)?;
    let files = [("--log-requests", &args.log_requests), ("--save-state", &args.save_state)];
    for (option, file) in files {
        if let Some(file) = file {
            check_output(option, file, [args.workload.trace.as_str()])?;
        }
    }
    Ok(())
}

/// Refuses the state of several systems.
fn check_state(args: &CompareArgs, systems: usize) -> Result<(), Failure> {
    let options = [("--save-state", &args.save_state), ("--state", &args.state)];
    match options.into_iter().find(|(_, file)| file.is_some()) {
        Some((option, _)) if systems > 1 => Err(usage(format!(
            "{option}: a state is of one system, and {systems} are to be compared; accepted: one, such as --systems pore"
        ))),
        _ => Ok(()),
    }
}

/// Finds options beside which a program cannot want a row for each request, as a shell cannot log them.
fn check_requests(args: &CompareArgs, caller: &Caller) -> Result<(), Failure> {
    let options = [("--untimed", args.untimed), ("--resume", args.resume)];
    match options.into_iter().find(|(_, is_given)| *is_given && caller.wants_requests()) {
        Some((option, _)) => {
            Err(usage(format!("log_requests with {option}; accepted: one of them")))
        }
        None => Ok(()),
    }
}

/// Finds options that cannot be together.
fn check_together(args: &CompareArgs) -> Result<(), Failure> {
    if args.bound && args.workload.queue_depth > 1 {
        return Err(usage(format!(
            "--bound with --queue-depth {}: requests that are not answered yet need no room in front of \
             the bands; accepted: 1",
            args.workload.queue_depth
        )));
    }
    if args.untimed && args.workload.queue_depth != 1 {
        return Err(usage(format!(
            "--untimed with --queue-depth {}: disks that answer at once have no queue; accepted: 1",
            args.workload.queue_depth
        )));
    }
    if let (true, Some(warm_up)) = (args.bound, args.workload.warm_up) {
        return Err(usage(format!(
            "--bound with --warm-up {warm_up}: the bound is of all requests; accepted: one of them"
        )));
    }
    Ok(())
}
