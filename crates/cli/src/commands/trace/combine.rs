//! `imbrex trace combine`.

use super::{format_of, write};
use crate::args::CombineArgs;
use crate::caller::Caller;
use crate::commands::outputs::check_output;
use crate::failure::Failure;
use imbrex_core::units::Duration;
use imbrex_drives::quantity::Span;
use imbrex_traces::combine::{Combination, Combined, PARTS_MAX, Split};
use imbrex_traces::{WriteOptions, numbered};

/// Makes one trace of several, or several of one.
pub fn run(args: &CombineArgs, caller: &Caller) -> Result<(), Failure> {
    let options =
        WriteOptions { name: args.name.clone(), ..WriteOptions::from(format_of(&args.output)?) };
    check_outputs(args)?;
    let combined = Combined::new(Combination {
        traces: args.traces.clone(),
        order: args.order,
        burst_requests: args.burst_requests,
        place: args.place,
        align: args.align,
        blocks: args.blocks,
        seed: Some(args.seed),
    })?;
    let (Some(parts), Some(by)) = (args.split, args.by) else {
        let reader = combined.records()?;
        caller.remark(&reader.source().label);
        return write(reader, &args.output, &options, caller);
    };
    let split = Split::new(&combined, parts, by)?;
    for number in 0..parts {
        let output = numbered(&args.output, number + 1);
        let Some(part) = split.part(number)? else {
            caller.remark(&format!(
                "{output}: not written: no request falls to part {} of {parts}",
                number + 1
            ));
            continue;
        };
        let delay = Span(Duration(part.delay_ns)).to_string().replace(' ', "");
        caller.remark(&part.reader.source().label);
        write(part.reader, &output, &options, caller)?;
        caller.remark(&format!("{output}: to join the parts by time, give it delay={delay}"));
    }
    Ok(())
}

/// No file that is written may be one that is read.
fn check_outputs(args: &CombineArgs) -> Result<(), Failure> {
    let traces = || args.traces.iter().map(|trace| trace.path.as_str());
    let Some(parts) = args.split else {
        return check_output("--output", &args.output, traces());
    };
    for number in 1..=parts.min(PARTS_MAX) {
        check_output("--output", numbered(&args.output, number), traces())?;
    }
    Ok(())
}
