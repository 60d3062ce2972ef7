//! `imbrex drive fio`.

use crate::args::FioArgs;
use crate::commands::console::emit;
use crate::commands::outputs::check_file_in_place;
use crate::commands::stack::{check_nodes, settings};
use crate::commands::telling::Telling;
use crate::failure::Failure;
use imbrex_drives::quantity::parse_size;
use imbrex_drives::toml_error::read_text;
use imbrex_report::NoCleaning;
use imbrex_sim::fio::{
    Direction, Job, JobFile, Json, Session, Setting, document, log_files, log_names, summary,
};
use imbrex_stack::{BuildOptions, PastRun, Plan, StackConfig};

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
    let telling = Telling::new(args.quiet);
    for note in &jobs.notes {
        telling.remark(&format!("imbrex: {file}: {note}"));
    }
    check_logs(&jobs)?;
    let mut session = Session::open(&config, &options, &jobs.jobs)?;
    let outcome = session.run_watched(&jobs.jobs, &|step| telling.step(step));
    drop(telling);
    let outcome = outcome.map_err(|error| format!("{file}: {error}"))?;
    for job in outcome.jobs.iter().filter(|job| job.ran_out_of_zones) {
        let name = &job.name;
        eprintln!(
            "imbrex: {file}: job `{name}` ended early: no zone has data to read or room to write"
        );
    }
    for (name, content) in log_files(&jobs, &outcome) {
        std::fs::write(&name, content).map_err(|error| format!("{name}: {error}"))?;
    }
    let no_cleaning = no_cleaning(&config, &options, &jobs, &session);
    let setting = Setting { system: config.name, device_bytes, seed: args.seed, scale: args.scale };
    if args.json {
        let mut document = document(&jobs, &outcome, &setting);
        if let Some(no_cleaning) = &no_cleaning {
            add(&mut document, no_cleaning);
        }
        emit(&format!("{}\n", serde_json::to_string_pretty(&document)?));
    } else {
        let system = &setting.system;
        let notice = no_cleaning.map(|it| format!("{system}: {}.\n", it.sentence()));
        let notice = notice.unwrap_or_default();
        emit(&format!("{}{notice}", summary(&jobs, &outcome, &setting)));
    }
    match outcome.error() {
        None => Ok(()),
        Some((job, error)) => Err(format!("{file}: job `{}`: {error}", job.name).into()),
    }
}

/// Refuses logs that could not be written.
fn check_logs(jobs: &JobFile) -> Result<(), Failure> {
    for (name, option) in log_names(jobs) {
        check_file_in_place(option, name.as_ref())?;
    }
    Ok(())
}

/// What must be said when jobs wrote to a stack with bands and none was cleaned.
fn no_cleaning(
    config: &StackConfig,
    options: &BuildOptions,
    jobs: &JobFile,
    session: &Session,
) -> Option<NoCleaning> {
    let device_bytes = session.device_bytes();
    let end_of = |job: &Job| {
        let regions = (0..job.numjobs).filter_map(|clone| job.region(clone, device_bytes));
        regions.map(|(start, length)| start + length).max()
    };
    let past = PastRun {
        config,
        options,
        footprint: session.footprint,
        host_wrote: jobs.jobs.iter().any(|job| job.mix.has(Direction::Write)),
        end_bytes: jobs.jobs.iter().filter_map(end_of).max().unwrap_or(0),
        scale_option: Some("--scale"),
    };
    past.no_cleaning(&session.describe, &session.engine.stack)
}

/// Adds that to what the document says of the run beside fio's own keys.
fn add(document: &mut Json, no_cleaning: &NoCleaning) {
    let Json::Object(entries) = document else {
        unreachable!("the document is an object");
    };
    let own = entries.iter_mut().find(|(key, _)| key == "imbrex");
    let Some((_, Json::Object(own))) = own else {
        unreachable!("the document says on what the jobs ran");
    };
    let mut said = vec![("log_fill".to_string(), Json::Number(no_cleaning.log_fill))];
    if let Some(option) = &no_cleaning.would_show {
        said.push(("would_show".to_string(), Json::Text(option.clone())));
    }
    own.push(("no_cleaning".to_string(), Json::Object(said)));
}
