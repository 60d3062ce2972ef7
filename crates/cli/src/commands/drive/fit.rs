//! `imbrex drive fit`.

use crate::args::FitArgs;
use crate::commands::console::emit;
use crate::commands::telling::Telling;
use crate::failure::{Failure, usage};
use imbrex_drives::quantity::Size;
use imbrex_sim::fit::{Fitted, Log, fit};

/// Prints the parameters of a drive that its logs tell.
pub fn run(args: &FitArgs) -> Result<(), Failure> {
    let capacity = match &args.capacity {
        Some(text) => {
            let Size(bytes) =
                text.parse().map_err(|error| usage(format!("--capacity: {error}")))?;
            Some(bytes)
        }
        None => None,
    };
    let (telling, watch) = Telling::of_files(args.quiet, &args.logs);
    let logs = args.logs.iter().map(|path| Log::open(path, watch.as_ref()));
    let logs = logs.collect::<Result<Vec<_>, _>>()?;
    let fitted: Fitted = fit(&logs, capacity)?;
    drop(telling);
    match args.json {
        true => emit(&format!("{}\n", serde_json::to_string(&fitted)?)),
        false => emit(&fitted.to_toml()),
    }
    Ok(())
}
