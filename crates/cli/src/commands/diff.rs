//! `imbrex diff`.

use super::outputs::check_file;
use super::page_file::write_page;
use crate::args::DiffArgs;
use crate::caller::Caller;
use crate::failure::Failure;
use imbrex_report::{Report, ReportDiff, SCHEMA};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// What is read of a document first.
#[derive(Deserialize)]
struct Schema {
    schema: String,
}

/// Sets two reports beside each other.
pub fn run(args: &DiffArgs, caller: &Caller) -> Result<(), Failure> {
    if let Some(page) = &args.html {
        check_file("--html", page)?;
    }
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let diff = ReportDiff::new((&names[0], &before), (&names[1], &after));
    if let Some(page) = &args.html {
        write_page(page, &diff.to_html())?;
    }
    caller.emit(&match args.json {
        true => format!("{}\n", diff.to_json()),
        false => diff.to_text(),
    });
    Ok(())
}

/// The report in a file, or in the folder of an `--out`.
fn read(path: &Path) -> Result<Report, Failure> {
    let file = if path.is_dir() { path.join("report.json") } else { path.to_path_buf() };
    let name = file.display();
    let accepted = "accepted: a report.json, or the folder of --out of `compare` or `run`";
    let text = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}; {accepted}"))?;
    let wrong = |error: serde_json::Error| format!("{name}: is no report: {error}; {accepted}");
    let Schema { schema } = serde_json::from_str(&text).map_err(wrong)?;
    if schema != SCHEMA {
        return Err(format!("{name}: schema {schema} is not {SCHEMA}; {accepted}").into());
    }
    Ok(Report::from_json(&text).map_err(wrong)?)
}
