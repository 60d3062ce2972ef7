//! `imbrex drive bench`.

use crate::Failure;
use crate::args::BenchArgs;
use crate::commands::page_file::write_page;
use crate::commands::{emit, progress};
use imbrex_sim::bench::{self, BenchOptions, Row, Sensitivity};
use imbrex_sim::report::TableStyle;
use serde_json::json;
use std::process::ExitCode;

/// Measures drive models. Fails when a gate does.
pub fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let options = BenchOptions {
        drives: args.drives.clone(),
        seed: args.seed,
        quick: args.quick,
        jobs: args.jobs.map_or(processors, std::num::NonZero::get),
        traces: args.traces.clone(),
    };
    if args.sensitivity {
        let folder =
            std::env::temp_dir().join(format!("imbrex-sensitivity-{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let found = bench::sensitivity(&options, &folder, &progress);
        // What is left behind there does no harm.
        let _ = std::fs::remove_dir_all(&folder);
        let found = found?;
        match args.json {
            true => emit(&format!("{}\n", json!({"sensitivity": found}))),
            false => emit(&Sensitivity::markdown(&found)),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rows = bench::run(&options, &progress)?;
    if let Some(file) = &args.html {
        write_page(file, &Row::bench_page(&rows))?;
    }
    match args.json {
        true => emit(&format!(
            "{}\n",
            json!({"rows": rows, "summary": Row::tallies(&rows)})
        )),
        false => emit(&Row::bench_table(&rows, TableStyle::detect())),
    }
    Ok(match rows.iter().any(Row::fails) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
