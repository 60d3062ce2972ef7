//! `imbrex trace`.

use super::emit;
use crate::Failure;
use crate::args::{ConvertArgs, InfoArgs, SynthArgs};
use imbrex_traces::synthetic::Recipe;
use imbrex_traces::{BlockRule, TraceReader, WriteFormat, WriteOptions};

/// Says what a trace holds.
pub fn info(args: &InfoArgs) -> Result<(), Failure> {
    let reader = imbrex_traces::open(&args.path, &args.read.options()?)?;
    let info = imbrex_traces::characterise(reader, BlockRule::default())?;
    // The assumed parameters are part of every result made from the recipe.
    let recipe = Recipe::of_path(&args.path)?;
    if args.json {
        let mut document = serde_json::to_value(&info)?;
        if let Some(recipe) = &recipe {
            document["recipe"] = recipe.text().into();
        }
        emit(&format!("{document}\n"));
    } else {
        emit(&info.to_string());
        if let Some(recipe) = &recipe {
            emit(&format!("\n{}", recipe.text()));
        }
    }
    Ok(())
}

/// Writes a trace, or a part of it, in another format.
pub fn convert(args: &ConvertArgs) -> Result<(), Failure> {
    let reader = imbrex_traces::open(&args.input, &args.read.options()?)?;
    let options = WriteOptions {
        skip: args.skip,
        limit: args.limit,
        name: args.name.clone(),
        description: args.description.clone(),
        ..WriteOptions::from(format_of(&args.output)?)
    };
    write(reader, &args.output, &options)
}

/// Generates a synthetic trace.
pub fn synth(args: &SynthArgs) -> Result<(), Failure> {
    if args.list {
        for name in Recipe::names() {
            emit(&format!("{name:<24} {}\n", Recipe::load(name)?.description));
        }
        return Ok(());
    }
    let (Some(recipe), Some(output)) = (&args.recipe, &args.output) else {
        return Err("trace synth: RECIPE and OUTPUT are needed, or --list".into());
    };
    let mut recipe = Recipe::load(recipe)?.scaled(args.scale)?;
    let mut label = recipe.label();
    if let Some(seed) = args.seed.filter(|&seed| seed != recipe.seed) {
        recipe.seed = seed;
        label = format!("{label}, seed {seed}");
    }
    // The assumed parameters are part of every result made from the recipe.
    eprint!("{label}\n{}\n", recipe.text());
    let options = WriteOptions {
        description: Some(label),
        ..WriteOptions::from(format_of(output)?)
    };
    write(TraceReader::from_recipe(&recipe), output, &options)
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
    if summary.skipped.total() > 0 {
        eprintln!(
            "{output}: left out, because the format cannot say them: {}",
            summary.skipped
        );
    }
    Ok(())
}
