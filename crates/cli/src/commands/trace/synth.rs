//! `imbrex trace synth`.

use super::{format_of, write};
use crate::args::SynthArgs;
use crate::caller::Caller;
use crate::commands::outputs::check_output;
use crate::failure::Failure;
use imbrex_traces::synthetic::Recipe;
use imbrex_traces::{TraceReader, WriteOptions};

/// Generates a synthetic trace.
pub fn run(args: &SynthArgs, caller: &Caller) -> Result<(), Failure> {
    if args.list {
        for name in Recipe::names() {
            caller.emit(&format!("{name:<24} {}\n", Recipe::load(name)?.description));
        }
        return Ok(());
    }
    let (Some(recipe), Some(output)) = (&args.recipe, &args.output) else {
        return Err("trace synth: RECIPE and OUTPUT are needed, or --list".into());
    };
    let format = format_of(output)?;
    check_output("OUTPUT", output, [])?;
    let mut recipe = Recipe::load(recipe)?.scaled(args.scale)?;
    let mut label = recipe.label();
    if let Some(seed) = args.seed.filter(|&seed| seed != recipe.seed) {
        recipe.seed = seed;
        label = format!("{label}, seed {seed}");
    }
    // The assumed parameters are part of every result made from the recipe.
    caller.remark(&format!("{label}\n{}", recipe.text()));
    let options = WriteOptions { description: Some(label), ..WriteOptions::from(format) };
    write(TraceReader::from_recipe(&recipe), output, &options, caller)
}
