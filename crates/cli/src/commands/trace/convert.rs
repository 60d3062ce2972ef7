//! `imbrex trace convert`.

use super::{format_of, write};
use crate::args::ConvertArgs;
use crate::caller::Caller;
use crate::commands::outputs::check_output;
use crate::commands::telling::Telling;
use crate::failure::Failure;
use imbrex_traces::WriteOptions;

/// Writes a trace, or a part of it, in another format.
pub fn run(args: &ConvertArgs, caller: &Caller) -> Result<(), Failure> {
    let format = format_of(&args.output)?;
    check_output("OUTPUT", &args.output, [args.input.as_str()])?;
    let (_telling, reader) =
        Telling::opened(args.quiet, &args.input, caller.reading(args.read.options()?))?;
    let options = WriteOptions {
        skip: args.skip,
        limit: args.limit,
        name: args.name.clone(),
        description: args.description.clone(),
        ..WriteOptions::from(format)
    };
    write(reader, &args.output, &options, caller)
}
