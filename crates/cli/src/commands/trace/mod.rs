//! `imbrex trace`: a file for each of its commands, and how they write traces.

mod combine;
mod convert;
mod info;
mod movement;
mod mrc;
mod synth;

use crate::args::TraceCommand;
use crate::failure::Failure;
use imbrex_traces::{TraceReader, WriteFormat, WriteOptions};

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

fn write(reader: TraceReader, output: &str, options: &WriteOptions) -> Result<(), Failure> {
    let summary = imbrex_traces::write(reader, output, options)?;
    eprintln!("{output}: {} records", summary.records);
    if !summary.losses.is_empty() {
        eprintln!("{output}: lost in this format: {}", summary.losses);
    }
    Ok(())
}
