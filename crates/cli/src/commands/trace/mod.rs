//! `imbrex trace`: a file for each of its commands, and how they write traces.

mod combine;
mod convert;
mod info;
mod movement;
mod mrc;
mod synth;

use crate::args::TraceCommand;
use crate::commands::outputs::check_file;
use crate::failure::Failure;
use imbrex_traces::{TraceReader, WriteFormat, WriteOptions};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Does what the command says.
pub fn run(command: &TraceCommand) -> Result<(), Failure> {
    match command {
        TraceCommand::Info(args) => info::run(args),
        TraceCommand::Convert(args) => convert::run(args),
        TraceCommand::Combine(args) => combine::run(args),
        TraceCommand::Synth(args) => synth::run(args),
        TraceCommand::Movement(args) => movement::run(args),
        TraceCommand::Mrc(args) => mrc::run(args),
    }
}

fn format_of(output: &str) -> Result<WriteFormat, Failure> {
    Ok(WriteFormat::of_name(output).ok_or_else(|| {
        format!(
            "{output}: the name of the output says its format; accepted: .imbrex, .csv, .spc or \
             .iolog, with .gz, .zst, .xz or .bz2 behind it"
        )
    })?)
}

/// Refuses an output that could not be written, and one that is one of the traces, by whatever name: it would
/// be emptied before it is read. `option` names it.
fn check_output<'a>(
    option: &str,
    output: impl AsRef<Path>,
    traces: impl IntoIterator<Item = &'a str>,
) -> Result<(), Failure> {
    let output = output.as_ref();
    if output != Path::new("-") {
        check_file(option, output)?;
    }
    // What has no metadata is not there yet, or is a recipe.
    let place = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    let Some(found) = place(output) else {
        return Ok(());
    };
    match traces.into_iter().find(|trace| place(trace.as_ref()) == Some(found)) {
        Some(trace) => Err(format!(
            "{}: is the trace {trace} itself; accepted: another file",
            output.display()
        )
        .into()),
        None => Ok(()),
    }
}

fn write(reader: TraceReader, output: &str, options: &WriteOptions) -> Result<(), Failure> {
    let summary = imbrex_traces::write(reader, output, options)?;
    eprintln!("{output}: {} records", summary.records);
    if !summary.losses.is_empty() {
        eprintln!("{output}: lost in this format: {}", summary.losses);
    }
    Ok(())
}
