//! `imbrex sweep run` and `imbrex sweep run-job`.

use super::collect::LivePage;
use super::{folder_of, jobs_of};
use crate::args::{QuietArgs, RunJobArgs, SweepRunArgs};
use crate::caller::Caller;
use crate::commands::outputs::jobs;
use crate::commands::run::stopped::until_stopped;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, usage};
use imbrex_serve::signals::STOPPED_EXIT_STATUS;
use imbrex_sim::experiment::{Crew, CrewTally, Job};
use serde_json::json;
use std::ops::RangeInclusive;
use std::sync::mpsc::channel;

/// Makes all jobs that nobody has made.
pub fn run(args: &SweepRunArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let all = jobs_of(&args.jobs_args, |_| true)?;
    let folder = folder_of(&args.jobs_args)?;
    let crew = Crew {
        folder: &folder,
        threads: jobs(args.jobs),
        waits: true,
        retries_failed: args.retry_failed,
    };
    let Some(path) = &args.page else {
        return make(&crew, &all, args.quiet, args.json, caller);
    };
    let page = LivePage::new(&args.jobs_args, path, &all, &folder)?;
    let (over, is_over) = channel();
    let status = std::thread::scope(|scope| {
        let page = &page;
        scope.spawn(move || page.keep_written(&is_over));
        let status = make(&crew, &all, args.quiet, args.json, caller);
        drop(over);
        status
    });
    // Nothing more comes, whatever the reason is.
    let written = page.write(false);
    let status = status?;
    written?;
    Ok(status)
}

/// Makes a few jobs.
pub fn run_job(args: &RunJobArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let wanted = match (&args.index, &args.id) {
        (Some(index), None) => by_index(args, index)?,
        (None, Some(id)) => vec![by_id(args, id)?],
        _ => unreachable!("the parser wants one of them"),
    };
    let folder = folder_of(&args.jobs_args)?;
    let crew = Crew {
        folder: &folder,
        threads: args.jobs,
        waits: false,
        retries_failed: args.retry_failed,
    };
    make(&crew, &wanted, args.quiet, args.json, caller)
}

fn by_index(args: &RunJobArgs, index: &str) -> Result<Vec<Job>, Failure> {
    let range = range_of(index).ok_or_else(|| {
        usage(format!("--index {index}: accepted: a number from 0, or two with a `-` between"))
    })?;
    let mut count = 0;
    let found = jobs_of(&args.jobs_args, |number| {
        count = number + 1;
        range.contains(&number)
    })?;
    // The last range of a file may go beyond its last job.
    if *range.start() >= count {
        let path = args.jobs_args.file.display();
        let most = count.saturating_sub(1);
        return Err(usage(format!(
            "--index {index}: {path} has {count} jobs; accepted: 0 to {most}"
        )));
    }
    Ok(found)
}

fn range_of(index: &str) -> Option<RangeInclusive<usize>> {
    let (first, last) = index.split_once('-').unwrap_or((index, index));
    let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
    (!range.is_empty()).then_some(range)
}

fn by_id(args: &RunJobArgs, id: &str) -> Result<Job, Failure> {
    let path = args.jobs_args.file.display();
    let mut found = jobs_of(&args.jobs_args, |_| true)?;
    found.retain(|job| job.id.starts_with(id));
    match (found.len(), found.pop()) {
        (1, Some(job)) => Ok(job),
        (count, _) => Err(usage(format!(
            "--id {id}: {count} jobs of {path} have such a name; accepted: the beginning of one name"
        ))),
    }
}

/// Makes jobs, and says what was done. A job that failed is a result as well.
fn make(
    crew: &Crew<'_>,
    all: &[Job],
    quiet: QuietArgs,
    is_json: bool,
    caller: &Caller,
) -> Result<ExitCode, Failure> {
    let tally = until_stopped(quiet, None, caller, |watch| crew.run(all, watch))??;
    let words = words_of(&tally, all.len());
    match is_json {
        true => caller.emit(&format!(
            "{}\n",
            json!({
                "schema": "imbrex.sweep-run/1", "jobs": all.len(), "before": tally.before, "made": tally.made,
                "failed": tally.failed, "by_others": tally.by_others, "elsewhere": tally.elsewhere,
                "left": tally.left,
            })
        )),
        false if !quiet.quiet => caller.remark(&words),
        false => {}
    }
    Ok(match tally.left {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(STOPPED_EXIT_STATUS),
    })
}

fn words_of(tally: &CrewTally, all: usize) -> String {
    let mut words = format!("{} of {all} jobs made", tally.made);
    let parts = [
        (tally.failed, "of them failed"),
        (tally.before, "were made before"),
        (tally.by_others, "made by others meanwhile"),
        (tally.elsewhere, "being made by others"),
        (tally.left, "left, because this was stopped"),
    ];
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        words.push_str(&format!(", {count} {what}"));
    }
    words
}
