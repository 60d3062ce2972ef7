//! `imbrex reliability`.

use super::console::emit;
use super::outputs::{check_file, check_room};
use super::page_file::write_page;
use crate::args::ReliabilityArgs;
use crate::failure::Failure;
use imbrex_sim::reliability::{Input, study};
use serde_json::json;

/// Prints how long it takes until disks lose data.
pub fn run(args: &ReliabilityArgs) -> Result<(), Failure> {
    let mut input = Input::read(&args.file)?;
    input.runs = args.runs.unwrap_or(input.runs);
    let files = args
        .out
        .as_ref()
        .map(|folder| [folder.join("reliability.json"), folder.join("reliability.html")]);
    if let (Some(folder), Some(files)) = (&args.out, &files) {
        check_room("--out", folder)?;
        for file in files.iter().filter(|file| file.exists()) {
            check_file("--out", file)?;
        }
    }
    let found = study(&input);
    let document = format!("{}\n", json!(found));
    if let (Some(folder), Some([json, page])) = (&args.out, &files) {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("--out {}: {error}", folder.display()))?;
        write_page(json, &document)?;
        let title = format!("Reliability of {}", args.file.display());
        write_page(page, &found.page(&title))?;
    }
    match args.json {
        true => emit(&document),
        false => emit(&found.text()),
    }
    Ok(())
}
