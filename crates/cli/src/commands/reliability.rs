//! `imbrex reliability`.

use super::console::emit;
use super::page_file::DocumentFiles;
use super::telling::Telling;
use crate::args::ReliabilityArgs;
use crate::failure::Failure;
use imbrex_sim::reliability::{Input, study};
use serde_json::json;

/// Prints how long it takes until disks lose data.
pub fn run(args: &ReliabilityArgs) -> Result<(), Failure> {
    let mut input = Input::read(&args.file)?;
    input.runs = args.runs.unwrap_or(input.runs);
    let out = args.out.as_deref();
    let files = out.map(|folder| DocumentFiles::in_folder(folder, "reliability")).transpose()?;
    let telling = Telling::new(args.quiet);
    let found = study(&input, &|step| telling.step(step));
    drop(telling);
    let document = format!("{}\n", json!(found));
    if let Some(files) = files {
        let title = format!("Reliability of {}", args.file.display());
        files.write(&document, &found.page(&title))?;
    }
    match args.json {
        true => emit(&document),
        false => emit(&found.text()),
    }
    Ok(())
}
