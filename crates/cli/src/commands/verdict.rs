//! `imbrex verdict`.

use super::outputs::jobs;
use super::page_file::DocumentFiles;
use super::run::kept::Keeping;
use super::run::stopped::until_stopped;
use super::workload::placed_trace;
use crate::args::{FitArg, PlacedTraceArgs, VerdictArgs};
use crate::caller::Caller;
use crate::commit::commit;
use crate::failure::{Failure, usage};
use imbrex_drives::shell_word;
use imbrex_sim::verdict::{DRIVES_DEFAULT, Question};
use imbrex_traces::BlockRule;
use serde_json::json;

/// Says whether a workload survives on shingled drives.
pub fn run(args: &VerdictArgs, caller: &Caller) -> Result<(), Failure> {
    let out = args.out.as_deref();
    let files = out.map(|folder| DocumentFiles::in_folder(folder, "verdict")).transpose()?;
    if args.placed.trace == "-" {
        return Err(
            "`-`: a verdict reads the trace several times, which standard input does not allow: \
                    give a file"
                .into(),
        );
    }
    let (workload, placement) = placed_trace(&args.placed, caller)?;
    // Every run reads it, and so does the first pass.
    let _kept = workload.kept.want(2);
    let question = Question {
        words: words(&args.placed, args.seed),
        workload,
        placement,
        drives: &drives(args)?,
        drives_are_named: !args.drive.is_empty(),
        cache_blocks: &|touched_blocks| match args.no_cache {
            true => vec![],
            false => args.cache.blocks(touched_blocks),
        },
        seed: args.seed.unwrap_or(1),
        jobs: jobs(args.jobs),
        requests_max: args.requests_max,
    };
    let keeping = out.map(|out| Keeping::of_parts(out, args.resume)).transpose()?;
    let found =
        until_stopped(args.quiet, keeping.as_ref(), caller, |watch| question.answer(watch))?;
    if let (Err(_), Some(keeping)) = (&found, &keeping) {
        keeping.end(false, false, caller);
    }
    let mut verdict = found?;
    verdict.commit = commit();
    let document = format!("{}\n", json!(verdict));
    if let Some(files) = files {
        let written = files.write(&document, &verdict.page());
        if let Some(keeping) = keeping {
            keeping.end(true, written.is_ok(), caller);
        }
        written?;
    }
    match args.json {
        true => caller.emit(&document),
        false => caller.emit(&verdict.text()),
    }
    Ok(())
}

/// The drives that are named, each once, or those that are looked at when none is.
fn drives(args: &VerdictArgs) -> Result<Vec<String>, Failure> {
    let mut drives: Vec<String> = Vec::new();
    for drive in &args.drive {
        if drives.contains(drive) {
            return Err(usage(format!("--drive {drive}: it is there twice; accepted: each once")));
        }
        drives.push(drive.clone());
    }
    if drives.is_empty() {
        drives = DRIVES_DEFAULT.map(str::to_string).to_vec();
    }
    Ok(drives)
}

/// The options of `compare` that read the trace and place its records.
fn words(args: &PlacedTraceArgs, seed: Option<u64>) -> String {
    let mut words = format!("--trace {}", shell_word(&args.trace));
    for (option, value) in args.read.given() {
        words.push_str(&match value {
            Some(value) => format!(" {option} {}", shell_word(value)),
            None => format!(" {option}"),
        });
    }
    if let Some(limit) = args.limit {
        words.push_str(&format!(" --limit {limit}"));
    }
    if let Some(fit) = args.fit {
        words.push_str(match fit {
            FitArg::Wrap => " --fit wrap",
            FitArg::Scale => " --fit scale",
        });
    }
    if args.blocks == BlockRule::Size {
        words.push_str(" --blocks size");
    }
    if let Some(seed) = seed {
        words.push_str(&format!(" --seed {seed}"));
    }
    words
}
