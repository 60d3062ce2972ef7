//! `imbrex drive fio`.

use crate::Failure;
use crate::args::FioArgs;
use crate::commands::{check_nodes, emit, settings};
use imbrex_sim::experiment::{BuildOptions, Plan, StackConfig};
use imbrex_sim::fio::{JobFile, Session, Setting, document, log_files, summary};
use imbrex_sim::quantity::parse_size;
use imbrex_sim::toml_error::read_text;

/// Runs a job file on a drive. Logs go to the current folder, as fio's do.
pub fn run(args: &FioArgs) -> Result<(), Failure> {
    let file = args.job.display().to_string();
    let text = read_text(&args.job).map_err(|error| format!("{file}: {error}"))?;
    let settings = settings(&args.set)?;
    let config = StackConfig::of_drive_or_stack(&args.drive, &settings)?;
    check_nodes(&config, &settings)?;
    let mut options = BuildOptions::simulate(args.seed);
    options.scale = args.scale;
    options.size_bytes = args.size.as_deref().map(parse_size).transpose()?;
    let device_bytes = Plan::new(&config, &options)?.blocks().bytes();
    let jobs = JobFile::parse(&file, &text, device_bytes)?;
    for note in &jobs.notes {
        eprintln!("imbrex: {file}: {note}");
    }
    let mut session = Session::open(&config, &options, &jobs.jobs)?;
    let outcome = session
        .run(&jobs.jobs)
        .map_err(|error| format!("{file}: {error}"))?;
    for job in outcome.jobs.iter().filter(|job| job.ran_out_of_zones) {
        let name = &job.name;
        eprintln!(
            "imbrex: {file}: job `{name}` ended early: no zone has data to read or room to write"
        );
    }
    for (name, content) in log_files(&jobs, &outcome) {
        std::fs::write(&name, content).map_err(|error| format!("{name}: {error}"))?;
    }
    let setting = Setting {
        system: config.name,
        device_bytes,
        seed: args.seed,
        scale: args.scale,
    };
    if args.json {
        let text = serde_json::to_string_pretty(&document(&jobs, &outcome, &setting))?;
        emit(&format!("{text}\n"));
    } else {
        emit(&summary(&jobs, &outcome, &setting));
    }
    match outcome.error() {
        None => Ok(()),
        Some((job, error)) => Err(format!("{file}: job `{}`: {error}", job.name).into()),
    }
}
