//! `imbrex trace combine`.

use super::{format_of, write};
use crate::Failure;
use crate::args::CombineArgs;
use imbrex_traces::WriteOptions;
use imbrex_traces::combine::{Combination, Combined};

/// Makes one trace of several.
pub fn run(args: &CombineArgs) -> Result<(), Failure> {
    let options = WriteOptions {
        name: args.name.clone(),
        ..WriteOptions::from(format_of(&args.output)?)
    };
    let combined = Combined::new(Combination {
        traces: args.traces.clone(),
        order: args.order,
        burst_requests: args.burst_requests,
        place: args.place,
        align: args.align,
        seed: args.seed,
    })?;
    let reader = combined.records()?;
    eprintln!("{}", reader.source().label);
    write(reader, &args.output, &options)
}
