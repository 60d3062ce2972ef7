//! `imbrex sweep collect`, and the page of a sweep that is under way.

use super::parquet_table::write_parquet;
use super::{folder_of, jobs_of};
use crate::args::{CollectArgs, JobsArgs};
use crate::caller::Caller;
use crate::commands::outputs::{check_file, check_file_in_place, check_room, write_whole};
use crate::commands::page_file::write_page;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use imbrex_sim::experiment::{Collected, Job, JobFolder, collect};
use serde_json::json;
use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The tables.
const PARQUET_FILE: &str = "results.parquet";
const CSV_FILE: &str = "results.csv";
/// The page.
const PAGE_FILE: &str = "sweep.html";

/// What a page calls a sweep: its file of jobs.
fn title_of(args: &JobsArgs) -> String {
    args.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// How often the page of a sweep that is under way is written.
const PAGE_EVERY: Duration = Duration::from_secs(5);

/// Names at most that are told of each kind; more are counted.
const NAMED_MAX: usize = 10;

/// Collects the results of jobs.
pub fn run(args: &CollectArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let out = &args.jobs_args.out;
    if !out.is_dir() {
        let out = out.display();
        let words =
            format!("--out {out}: there is no such folder; accepted: that of `imbrex sweep run`");
        return Err(words.into());
    }
    check_room("--out", out)?;
    for file in [PARQUET_FILE, CSV_FILE, PAGE_FILE].map(|name| out.join(name)) {
        if fs::symlink_metadata(&file).is_ok() {
            check_file_in_place("--out", &file)?;
        }
    }
    let jobs = jobs_of(&args.jobs_args, |_| true)?;
    let found = collect(&title_of(&args.jobs_args), &jobs, &folder_of(&args.jobs_args)?);
    if !args.partial && !found.page.missing.is_empty() {
        return Err(missing(&found).into());
    }
    write_whole(out, |folder| {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(CSV_FILE), found.table.to_csv())?;
        fs::write(folder.join(PAGE_FILE), found.page.to_html())?;
        write_parquet(&found.table, File::create(folder.join(PARQUET_FILE))?)
    })?;
    if args.json {
        let failed: Vec<_> = found
            .page
            .failed
            .iter()
            .map(|(job, error)| json!({"job": job, "error": error}))
            .collect();
        let document = json!({
            "schema": "imbrex.sweep-results/1", "rows": found.table.rows(), "failed": failed,
            "missing": found.page.missing, "damaged": found.damaged,
            "parquet": out.join(PARQUET_FILE), "csv": out.join(CSV_FILE),
            "page": out.join(PAGE_FILE),
        });
        caller.emit(&format!("{document}\n"));
    } else {
        caller.emit(&summary(&found, &out.join(PARQUET_FILE).display().to_string()));
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(found: &Collected, path: &str) -> String {
    let mut text = format!("{} rows are in {path}\n", found.table.rows());
    let failed = found.page.failed.iter().map(|(job, error)| format!("{job}: {error}"));
    add(&mut text, "failed", failed.collect());
    add(&mut text, "not made, and left out", found.page.missing.clone());
    add(&mut text, "not in order", found.damaged.clone());
    text
}

/// Why there is no table.
fn missing(found: &Collected) -> String {
    let mut text = String::new();
    add(&mut text, "not made", found.page.missing.clone());
    add(&mut text, "not in order", found.damaged.clone());
    format!(
        "{}; accepted: `imbrex sweep run` makes what is missing, --partial leaves it out",
        text.trim_end()
    )
}

fn add(text: &mut String, what: &str, names: Vec<String>) {
    if names.is_empty() {
        return;
    }
    text.push_str(&format!("{} {what}:\n", names.len()));
    names.iter().take(NAMED_MAX).for_each(|name| text.push_str(&format!("  {name}\n")));
    if let Some(more) = names.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("  and {more} more\n"));
    }
}

/// A page of a sweep that is under way, written anew now and then.
pub struct LivePage<'a> {
    title: String,
    path: &'a Path,
    jobs: &'a [Job],
    folder: &'a JobFolder,
}

impl<'a> LivePage<'a> {
    /// Of jobs whose results are in a folder.
    ///
    /// # Errors
    /// When the page could not be written.
    pub fn new(
        args: &JobsArgs,
        path: &'a Path,
        jobs: &'a [Job],
        folder: &'a JobFolder,
    ) -> Result<LivePage<'a>, Failure> {
        check_file("--page", path)?;
        Ok(LivePage { title: title_of(args), path, jobs, folder })
    }

    /// Writes the page until `over` ends; it is not written more often than a tenth of the time goes into it.
    pub fn keep_written(&self, over: &Receiver<()>) {
        loop {
            let began = Instant::now();
            // A disk that is full ends the work by itself.
            let _ = self.write(true);
            let pause = PAGE_EVERY.max(9 * began.elapsed());
            if over.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Writes the page as things are.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, goes_on: bool) -> Result<(), Failure> {
        let mut page = collect(&self.title, self.jobs, self.folder).page;
        page.reload_after_s = goes_on.then_some(PAGE_EVERY.as_secs() as u32);
        write_page(self.path, &page.to_html())
    }
}
