//! `imbrex sweep collect`.

use super::parquet_table::write_parquet;
use super::{folder_of, jobs_of};
use crate::args::CollectArgs;
use crate::caller::Caller;
use crate::commands::outputs::{check_file_in_place, check_room, write_whole};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use imbrex_sim::experiment::{Collected, collect};
use serde_json::json;
use std::fs::{self, File};

/// The tables.
const PARQUET_FILE: &str = "results.parquet";
const CSV_FILE: &str = "results.csv";

/// Names at most that are told of each kind; more are counted.
const NAMED_MAX: usize = 10;

/// Collects the results of jobs.
pub fn run(args: &CollectArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let out = &args.jobs_args.out;
    check_room("--out", out)?;
    for file in [PARQUET_FILE, CSV_FILE].map(|name| out.join(name)) {
        if fs::symlink_metadata(&file).is_ok() {
            check_file_in_place("--out", &file)?;
        }
    }
    let jobs = jobs_of(&args.jobs_args, |_| true)?;
    let found = collect(&jobs, &folder_of(&args.jobs_args)?);
    if !args.partial && !found.missing.is_empty() {
        return Err(missing(&found).into());
    }
    write_whole(out, |folder| {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(CSV_FILE), found.table.to_csv())?;
        write_parquet(&found.table, File::create(folder.join(PARQUET_FILE))?)
    })?;
    if args.json {
        let failed: Vec<_> =
            found.failed.iter().map(|(job, error)| json!({"job": job, "error": error})).collect();
        let document = json!({
            "schema": "imbrex.sweep-results/1", "rows": found.table.rows(), "failed": failed,
            "missing": found.missing, "damaged": found.damaged,
            "parquet": out.join(PARQUET_FILE), "csv": out.join(CSV_FILE),
        });
        caller.emit(&format!("{document}\n"));
    } else {
        caller.emit(&summary(&found, &out.join(PARQUET_FILE).display().to_string()));
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(found: &Collected, path: &str) -> String {
    let mut text = format!("{} rows are in {path}\n", found.table.rows());
    let failed = found.failed.iter().map(|(job, error)| format!("{job}: {error}"));
    add(&mut text, "failed", failed.collect());
    add(&mut text, "not made, and left out", found.missing.clone());
    add(&mut text, "not in order", found.damaged.clone());
    text
}

/// Why there is no table.
fn missing(found: &Collected) -> String {
    let mut text = String::new();
    add(&mut text, "not made", found.missing.clone());
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
