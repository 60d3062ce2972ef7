//! `imbrex drive bench`.

use crate::args::BenchArgs;
use crate::commands::console::emit;
use crate::commands::outputs::check_file;
use crate::commands::page_file::write_page;
use crate::commands::telling::Telling;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use imbrex_report::TableStyle;
use imbrex_sim::bench::{self, Alternative, BenchOptions, Row, Sensitivity};
use imbrex_sim::progress::Step;
use serde_json::json;

/// Measures drive models. Fails when a gate does.
pub fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    if let Some(file) = &args.html {
        check_file("--html", file)?;
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let options = BenchOptions {
        drives: args.drives.clone(),
        seed: args.seed,
        quick: args.quick,
        jobs: args.jobs.map_or(processors, std::num::NonZero::get),
        traces: args.traces.clone(),
    };
    if args.sensitivity || args.alternatives {
        return what_if(args, &options);
    }
    let telling = Telling::new(args.quiet);
    let rows = bench::run(&options, &|step| telling.step(step))?;
    drop(telling);
    if let Some(file) = &args.html {
        write_page(file, &Row::bench_page(&rows))?;
    }
    match args.json {
        true => emit(&format!("{}\n", json!({"rows": rows, "summary": Row::tallies(&rows)}))),
        false => emit(&Row::bench_table(&rows, TableStyle::detect())),
    }
    Ok(match rows.iter().any(Row::fails) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Measures the drives with other values in place of the estimated ones.
fn what_if(args: &BenchArgs, options: &BenchOptions) -> Result<ExitCode, Failure> {
    let folder = std::env::temp_dir().join(format!("imbrex-what-if-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let telling = Telling::new(args.quiet);
    let progress = |step: &Step<'_>| telling.step(step);
    let text = match args.alternatives {
        true => bench::alternatives(options, &folder, &progress).map(|found| match args.json {
            true => format!("{}\n", json!({"alternatives": found})),
            false => Alternative::markdown(&found),
        }),
        false => bench::sensitivity(options, &folder, &progress).map(|found| match args.json {
            true => format!("{}\n", json!({"sensitivity": found})),
            false => Sensitivity::markdown(&found),
        }),
    };
    drop(telling);
    // What is left behind there does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    emit(&text?);
    Ok(ExitCode::SUCCESS)
}
