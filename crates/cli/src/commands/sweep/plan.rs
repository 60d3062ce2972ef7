//! `imbrex sweep plan`.

use crate::args::PlanArgs;
use crate::caller::Caller;
use crate::commands::outputs::check_file;
use crate::commands::stack::settings;
use crate::commit::program;
use crate::failure::Failure;
use imbrex_sim::experiment::Experiment;
use imbrex_traces::PartialFile;
use serde_json::json;
use std::fmt::Write as _;

/// Writes the jobs of an experiment.
pub fn run(args: &PlanArgs, caller: &Caller) -> Result<(), Failure> {
    check_file("--emit", &args.emit)?;
    let mut experiment = Experiment::open(&args.file)?;
    if let Some(scale) = args.scale {
        experiment.rescale(scale)?;
    }
    let stop = caller.stop()?;
    let jobs = experiment.jobs(&settings(&args.set)?, args.seed, &program(), stop)?;
    let mut text = String::new();
    for job in &jobs {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", serde_json::to_string(job)?);
    }
    let path = args.emit.display();
    let partial = PartialFile::of(&args.emit);
    std::fs::write(partial.path(), text)
        .and_then(|()| partial.keep())
        .map_err(|error| format!("--emit {path}: {error}"))?;
    caller.emit(&match args.json {
        true => {
            let document = json!({
                "schema": "imbrex.sweep-plan/1", "jobs": jobs.len(), "path": args.emit,
            });
            format!("{document}\n")
        }
        false => format!("{} jobs are in {path}\n", jobs.len()),
    });
    Ok(())
}
