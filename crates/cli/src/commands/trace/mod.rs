//! `imbrex trace`: a file for each of its commands, and how they write traces.

mod combine;
mod convert;
mod info;
mod movement;
mod mrc;
mod synth;

use crate::args::TraceCommand;
use crate::caller::Caller;
use crate::failure::Failure;
use imbrex_traces::{TraceReader, WriteFormat, WriteOptions};

/// Does what the command says.
pub fn run(command: &TraceCommand, caller: &Caller) -> Result<(), Failure> {
    match command {
        TraceCommand::Info(args) => info::run(args, caller),
        TraceCommand::Convert(args) => convert::run(args, caller),
        TraceCommand::Combine(args) => combine::run(args, caller),
        TraceCommand::Synth(args) => synth::run(args, caller),
        TraceCommand::Movement(args) => movement::run(args, caller),
        TraceCommand::Mrc(args) => mrc::run(args, caller),
    }
}

fn format_of(output: &str) -> Result<WriteFormat, Failure> {
    Ok(WriteFormat::of_name(output).ok_or_else(|| {
        format!(
            "{output}: the name of the output says its format; accepted: .imbrex, .csv, .spc, \
             .iolog or .parquet, with .gz, .zst, .xz or .bz2 behind it"
        )
    })?)
}

fn write(
    reader: TraceReader,
    output: &str,
    options: &WriteOptions,
    caller: &Caller,
) -> Result<(), Failure> {
    let summary = imbrex_traces::write(reader, output, options)?;
    caller.remark(&format!("{output}: {} records", summary.records));
    if !summary.losses.is_empty() {
        caller.remark(&format!("{output}: lost in this format: {}", summary.losses));
    }
    Ok(())
}
