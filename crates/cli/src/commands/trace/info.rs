//! `imbrex trace info`.

use crate::args::InfoArgs;
use crate::caller::Caller;
use crate::commands::outputs::check_output;
use crate::commands::page_file::write_page;
use crate::commands::telling::Telling;
use crate::failure::Failure;
use imbrex_sim::workload_page::workload_page;
use imbrex_traces::synthetic::Recipe;

/// Says what a trace holds.
pub fn run(args: &InfoArgs, caller: &Caller) -> Result<(), Failure> {
    if let Some(file) = &args.html {
        check_output("--html", file, [args.path.as_str()])?;
    }
    let (telling, reader) =
        Telling::opened(args.quiet, &args.path, caller.reading(args.read.options()?))?;
    let info = imbrex_traces::characterise(reader, args.blocks)?;
    drop(telling);
    // The assumed parameters are part of every result made from the recipe.
    let recipe = Recipe::of_path(&args.path)?;
    if let Some(file) = &args.html {
        write_page(file, &workload_page(&info, recipe.as_ref().map(Recipe::text)))?;
    }
    if args.json {
        let mut document = serde_json::to_value(&info)?;
        if let Some(recipe) = &recipe {
            document["recipe"] = recipe.text().into();
        }
        caller.emit(&format!("{document}\n"));
    } else {
        caller.emit(&info.to_string());
        if let Some(recipe) = &recipe {
            caller.emit(&format!("\n{}", recipe.text()));
        }
    }
    Ok(())
}
