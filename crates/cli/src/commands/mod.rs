//! One file a command, and what they share.

pub mod bound;
pub mod check;
mod check_disks;
pub mod compare;
pub mod control;
pub mod crashtest;
pub mod create;
pub mod doctor;
pub mod drive;
mod image_shape;
pub mod inspect;
pub mod members;
mod outputs;
mod page_file;
pub mod replace;
pub mod reproduce;
pub mod run;
pub mod serve;
pub mod systems;
pub mod trace;

use crate::args::{FitArg, OutputArgs, WorkloadArgs};
use crate::failure::Failure;
use imbrex_drives::toml_error::{listed, nearest};
use imbrex_sim::experiment::config::NodeConfig;
use imbrex_sim::experiment::{Setting, StackConfig, Workload, check_taken};
use imbrex_sim::replay::{Fit, ReplayOptions, STREAMS_MAX};
use imbrex_sim::report::{ReplayMode, Report, TableStyle};
use std::io::{IsTerminal, Write};

/// Prints to standard output. A reader that has gone away (`imbrex ... | head`) ends the program
/// quietly, any other error makes it fail.
pub fn emit(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        complain(&format!("standard output: {error}"));
        std::process::exit(1);
    }
}

/// Bytes of an error at most. Names and values of a user's files stand in errors, and may be long.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// Says on standard error what went wrong. Where that is gone too, as with a terminal that was closed,
/// only the exit status is left.
pub fn complain(message: &str) {
    let mut end = message.len().min(ERROR_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let (message, rest) = message.split_at(end);
    let rest = match rest.len() {
        0 => String::new(),
        more => format!(" ... and {more} more bytes"),
    };
    let _ = std::io::stderr().write_all(format!("imbrex: {message}{rest}\n").as_bytes());
}

/// Tells a person at a terminal that a run has finished.
pub fn progress(message: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("  done: {message}");
    }
}

/// Tells whoever runs experiments, in a log too, which run has finished: they may take hours.
pub fn tell_progress(message: &str) {
    // Nothing can be done when nobody is left to tell.
    let _ = writeln!(std::io::stderr(), "  done: {message}");
}

/// Refuses an `--out` that could not be written.
pub fn check_out(output: &OutputArgs) -> Result<(), Failure> {
    match &output.out {
        Some(folder) => outputs::check_folder("--out", folder),
        None => Ok(()),
    }
}

/// The settings of `--set`.
pub fn settings(texts: &[String]) -> Result<Vec<Setting>, Failure> {
    Ok(texts.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>()?)
}

/// The one stack that a command is about, each of its settings applied to a node it has.
pub fn stack_with_settings(name: &str, set: &[String]) -> Result<StackConfig, Failure> {
    let settings = settings(set)?;
    let config = StackConfig::load(name, &settings)?;
    check_nodes(&config, &settings)?;
    Ok(config)
}

/// Every setting must be of a node that the one stack of a command has.
pub fn check_nodes(config: &StackConfig, settings: &[Setting]) -> Result<(), Failure> {
    for setting in settings {
        let Setting { node, key, .. } = setting;
        if config.has_node(node) {
            check_taken(setting, [config].into_iter(), "the stack")?;
            continue;
        }
        let nodes: Vec<&str> = config.node.iter().map(NodeConfig::name).collect();
        let hint = nearest(node, nodes.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(format!(
            "--set {node}.{key}: the stack `{}` has no node `{node}`{hint} (nodes: {})",
            config.name,
            listed(&nodes)
        )
        .into());
    }
    Ok(())
}

/// Refuses to serve what NBD does not know: zones, and sources of requests.
pub fn refuse_unservable(config: &StackConfig) -> Result<(), Failure> {
    let reason = config.node.iter().find_map(|node| match node {
        NodeConfig::HostManaged(zones) => Some(format!(
            "node `{}`: a host-managed disk cannot be served: NBD has no zones, so a client could \
             not know where it may write; accepted: stacks that take writes anywhere, such as \
             `smr-only` (imbrex compare and imbrex drive fio take host-managed ones)",
            zones.name
        )),
        NodeConfig::Dedicated(span) => Some(format!(
            "node `{}`: kind = \"dedicated\" cannot be served: requests of a client have one address \
             space and no device number to choose a node by; accepted: kind = \"span\", where each node \
             below is an export of its own too (imbrex compare takes \"dedicated\")",
            span.name
        )),
        _ => None,
    });
    reason.map_or(Ok(()), |reason| Err(reason.into()))
}

/// The workload and the way it is replayed.
pub fn workload(args: &WorkloadArgs) -> Result<(Workload, ReplayOptions), Failure> {
    let workload = Workload {
        path: args.trace.clone(),
        options: args.read.options()?,
        limit: args.limit,
        combined: None,
    };
    let mode = match (args.open_loop, args.streams) {
        (true, _) => {
            if !(args.speed > 0.0 && args.speed.is_finite()) {
                return Err(format!("--speed {}: accepted: a number above 0", args.speed).into());
            }
            ReplayMode::OpenLoop { speed: args.speed }
        }
        (false, Some(streams)) if !(1..=STREAMS_MAX).contains(&streams) => {
            return Err(format!("--streams {streams}: accepted: 1 to {STREAMS_MAX}").into());
        }
        (false, Some(streams)) => ReplayMode::Streams { streams },
        (false, None) if args.queue_depth == 0 => {
            return Err("--queue-depth 0: accepted: 1 or more".into());
        }
        (false, None) => ReplayMode::ClosedLoop { depth: args.queue_depth },
    };
    let replay = ReplayOptions {
        mode,
        limit: args.limit,
        drop_reads: false,
        fit: fit_of(args.fit, &workload)?,
    };
    Ok((workload, replay))
}

/// What to do with addresses beyond the device.
pub fn fit_of(fit: Option<FitArg>, workload: &Workload) -> Result<Fit, Failure> {
    Ok(match fit {
        None => Fit::Refuse,
        Some(FitArg::Wrap) => Fit::Wrap,
        Some(FitArg::Scale) if workload.is_stream() => {
            return Err(
                "--fit scale reads the trace twice, which standard input does not allow: give a file"
                    .into(),
            );
        }
        Some(FitArg::Scale) => Fit::Scale { span_bytes: workload.span_bytes()? },
    })
}

/// How many runs at the same time.
pub fn batch_jobs(output: &OutputArgs) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    output.jobs.unwrap_or(processors)
}

/// Prints a report as a table or as JSON, and writes the files of `--out`.
pub fn write_results(report: &Report, output: &OutputArgs) -> Result<(), Failure> {
    if let Some(folder) = &output.out {
        report.write_to(folder)?;
    }
    if output.json {
        emit(&report.to_json());
    } else {
        emit(&report.to_table(TableStyle::detect()));
    }
    Ok(())
}
