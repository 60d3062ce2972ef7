//! `imbrex crashtest`: searches for power cuts and faults that lose data.

mod members;
mod product;

use super::console::emit;
use super::image_shape::shape_in_memory;
use super::telling::Telling;
use crate::args::CrashtestArgs;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, usage};
use imbrex_core::planted::PlantedBug;
use imbrex_drives::shell_word;
use imbrex_drives::toml_error::nearest;
use imbrex_serve::fsck::{self, Checks, Member};
use imbrex_sim::crashtest::campaign::{
    Failure as PointFailure, Options, POINTS, SeedCampaign, Totals, points_to_find, run_seeds,
    steps_of,
};
use imbrex_sim::crashtest::image::{EXHAUSTIVE_PENDING_MAX, EXHAUSTIVE_PENDING_SOAK, Mode};
use imbrex_sim::crashtest::medium::Medium;
use imbrex_sim::crashtest::short::{run_short, workloads};
use imbrex_sim::crashtest::shrink::shrink;
use imbrex_sim::crashtest::stacks::{self, SearchedStack, StackOfSeed};
use imbrex_sim::crashtest::subject::Subject;
use imbrex_sim::crashtest::summary::{Summary, replay_command};
use imbrex_stack::{DiskConfig, Keeps, ListedMember, NodeConfig, Setting, stack_text};
use std::fmt::Write;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Points within which a planted bug must be found.
const POINTS_TO_FIND_MAX: u64 = 30_000;
/// Seeds of a run that names none.
const SEEDS: Range<u64> = 0..20;

/// Runs the command.
pub fn run(args: &CrashtestArgs) -> Result<ExitCode, Failure> {
    let stack = Arc::new(checked(searched_stack(args)?));
    if !args.members && !args.product && stack.is_bare()? {
        return Err(usage(format!(
            "--stack {}: accepted: with --members alone, because it has no layer that answers for faults",
            args.stack
        )));
    }
    let subject = checked_subject(&stack);
    let mode_names = Mode::ALL.map(Mode::name);
    let mode = match &args.mode {
        None => None,
        Some(name) => {
            let mode = Mode::ALL.into_iter().find(|mode| mode.name() == name);
            Some(mode.ok_or_else(|| unknown("--mode", name, &mode_names))?)
        }
    };
    let options = Options {
        points: args.points,
        mode,
        soak: args.soak,
        plant: args.plant.as_deref().map(bug).transpose()?,
    };
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = args.jobs.unwrap_or_else(processors);
    if args.members {
        return with_members(args, &subject, options.plant, jobs);
    }
    if args.product {
        return with_product(args, &stack, options.plant, jobs);
    }
    if args.plant_all {
        return Ok(plant_all(&subject));
    }
    if let (Some(seed), Some(point)) = (args.seed, args.point) {
        check_point(point, args.points)?;
        return Ok(one_point(&subject, seed, point, options, &more_options(args)));
    }
    if let Some(length) = args.short {
        let telling = Telling::of_small_pieces(args.quiet);
        return Ok(short(&subject, length, args.soak, jobs, telling));
    }
    let seeds = seeds(args)?;
    let telling = Telling::new(args.quiet);
    let totals = run_seeds(&subject, seeds.clone(), options, jobs, &|step| telling.step(step));
    drop(telling);
    let more = more_options(args);
    let summary = Summary::new(&subject.name, seeds.end - seeds.start, &totals, &more);
    if args.json {
        emit(&format!("{}\n", serde_json::to_string_pretty(&summary)?));
    } else {
        emit(&summary.to_text());
    }
    let Some(first) = totals.failures.first() else {
        return Ok(ExitCode::SUCCESS);
    };
    for failure in &summary.failures {
        eprintln!("imbrex: {}\n  replay: {}", failure.what, failure.replay);
    }
    eprint!("{}", made_small(&subject, first, options));
    Ok(ExitCode::FAILURE)
}

/// The stack that was asked for: one that ships for the search, or any other by name or path.
fn searched_stack(args: &CrashtestArgs) -> Result<SearchedStack, Failure> {
    let (file, text) = match stacks::text(&args.stack) {
        Some(shipped) => shipped,
        None => stack_text(&args.stack).map_err(|error| {
            let known: Vec<&str> = stacks::ready_made().collect();
            usage(format!(
                "--stack {}: {error}; for the search alone: {}",
                args.stack,
                known.join(", ")
            ))
        })?,
    };
    let settings: Vec<Setting> =
        args.set.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>()?;
    let size_bytes = args.size.map(|size| size.bytes());
    let stack = SearchedStack::from_text(&args.stack, &file, &text, &settings, size_bytes)?;
    // What the seeds draw is planned before anything is searched.
    let is_long = args.members || args.product;
    let seeds = match (is_long || args.plant_all || args.short.is_some(), seeds(args)?) {
        (false, seeds) => seeds,
        (true, _) => SEEDS,
    };
    for seed in seeds {
        stack.of_seed(seed)?;
    }
    Ok(stack)
}

fn check_point(point: u64, points: u64) -> Result<(), Failure> {
    if point >= points {
        let last = points - 1;
        return Err(usage(format!("--point {point}: accepted: 0 to {last}, as --points says")));
    }
    Ok(())
}

/// What happens to disks between two starts, in the place of points.
fn with_members(
    args: &CrashtestArgs,
    subject: &Subject,
    plant: Option<PlantedBug>,
    jobs: usize,
) -> Result<ExitCode, Failure> {
    let options = members::Options { cases: args.points, plant };
    let more = more_options(args);
    if args.plant_all {
        return Ok(members::plant_all(subject));
    }
    if let (Some(seed), Some(point)) = (args.seed, args.point) {
        check_point(point, args.points)?;
        return Ok(members::one(subject, seed, point, options, &more));
    }
    members::run(subject, seeds(args)?, options, jobs, (args.json, args.quiet), &more)
}

/// What members of an array go when, in the place of points.
fn with_product(
    args: &CrashtestArgs,
    stack: &SearchedStack,
    plant: Option<PlantedBug>,
    jobs: usize,
) -> Result<ExitCode, Failure> {
    let wrong = product::Wrong { plant, ..product::Wrong::default() };
    let options = product::Options { cases: args.points, wrong };
    let more = more_options(args);
    let kind = product::kind_of_array(stack)?;
    if args.plant_all {
        return Ok(product::plant_all(stack, kind));
    }
    if let (Some(seed), Some(point)) = (args.seed, args.point) {
        check_point(point, args.points)?;
        return Ok(product::one(stack, seed, point, options, &more));
    }
    product::run(stack, seeds(args)?, options, jobs, (args.json, args.quiet), &more)
}

/// A stack whose members are checked after each recovery.
fn checked_subject(stack: &Arc<SearchedStack>) -> Subject {
    let mut subject = Arc::clone(stack).subject();
    let stack = Arc::clone(stack);
    if let Some(check) = stack.check() {
        subject.check = Some(Box::new(move |seed, members| {
            let of_seed = stack.of_seed(seed).map_err(|error| error.to_string())?;
            check(&of_seed, of_seed.numbers(), members)
        }));
    }
    subject
}

/// A stack with the check of its members. Of what nobody can read without its layer nothing is checked.
fn checked(stack: SearchedStack) -> SearchedStack {
    let is_unreadable = |node: &NodeConfig| matches!(node.keeps(), Ok(Keeps::Unreadable(_)));
    match stack.of_seed(0).is_ok_and(|it| it.config.node.iter().any(is_unreadable)) {
        true => stack,
        false => stack.checked_by(check_members),
    }
}

/// The stack on which a bug is looked for, where that is another than the one that was asked for.
fn other_subject(bug: PlantedBug, asked: &Subject) -> Option<Subject> {
    let name = stacks::stack_of(bug).filter(|name| *name != asked.name)?;
    let stack = stacks::ready_made_stack(name)?;
    Some(checked_subject(&Arc::new(checked(stack))))
}

/// What `imbrex check --data` would say of the members of the stack of a seed.
fn check_members(
    of_seed: &StackOfSeed,
    numbers: Vec<ListedMember>,
    members: &[(Rc<str>, Medium)],
) -> Result<(), String> {
    let open = |disk: &DiskConfig| {
        let found = members.iter().find(|(name, _)| **name == *disk.name);
        let (name, medium) = found.ok_or("a disk that is no member")?;
        let (medium, blocks) = (medium.clone(), medium.len());
        let read = move |at, into: &mut [u8]| into.copy_from_slice(&medium.block(at)[..]);
        Ok(Member::in_memory(name, blocks, Box::new(read)))
    };
    let missing = |disk: &DiskConfig| {
        let is_there = members.iter().any(|(name, _)| **name == *disk.name);
        (!is_there).then(|| "it is lost".to_owned())
    };
    let describe = Rc::clone(&of_seed.describe);
    let shape = shape_in_memory(&of_seed.config, describe, numbers, (&open, &missing));
    let shape = shape.map_err(|error| error.to_string())?;
    let checks = Checks { data: true, repair: false };
    let findings = fsck::read(&shape, None, checks).findings;
    match findings.kept.first() {
        None => Ok(()),
        Some(first) => Err(format!("{}: {}: {}", first.member, first.structure, first.problem)),
    }
}

fn unknown(option: &str, found: &str, known: &[&'static str]) -> Failure {
    let hint = nearest(found, known.iter().copied())
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("{option} {found}: accepted: {}{hint}", known.join(", ")).into()
}

fn bug(name: &str) -> Result<PlantedBug, Failure> {
    let names: Vec<&'static str> = PlantedBug::ALL.iter().map(|bug| bug.name()).collect();
    let found = PlantedBug::ALL.iter().find(|bug| bug.name() == name);
    found.copied().ok_or_else(|| unknown("--plant", name, &names))
}

fn seeds(args: &CrashtestArgs) -> Result<Range<u64>, Failure> {
    if let Some(seed) = args.seed {
        return Ok(seed..seed + 1);
    }
    let Some(text) = &args.seeds else {
        return Ok(SEEDS);
    };
    let range = text.split_once("..").and_then(|(start, end)| {
        let range = start.trim().parse().ok()?..end.trim().parse().ok()?;
        (range.start < range.end).then_some(range)
    });
    range.ok_or_else(|| {
        usage(format!(
            "--seeds {text}: accepted: A..B with A < B, the seeds from A up to but without B"
        ))
    })
}

/// What a replay needs beside the stack, the seed and the point.
fn more_options(args: &CrashtestArgs) -> String {
    let mut more = String::new();
    if let Some(size) = args.size {
        let _ = write!(more, " --size {}", shell_word(&size.to_string()));
    }
    for setting in &args.set {
        let _ = write!(more, " --set {}", shell_word(setting));
    }
    if args.members {
        more.push_str(" --members");
    }
    if args.product {
        more.push_str(" --product");
    }
    if args.points != POINTS {
        let _ = write!(more, " --points {}", args.points);
    }
    if let Some(mode) = &args.mode {
        let _ = write!(more, " --mode {mode}");
    }
    if args.soak {
        more.push_str(" --soak");
    }
    if let Some(bug) = &args.plant {
        let _ = write!(more, " --plant {bug}");
    }
    more
}

/// Runs every short workload.
fn short(subject: &Subject, length: u32, soak: bool, jobs: usize, telling: Telling) -> ExitCode {
    let pending_max = match soak {
        true => EXHAUSTIVE_PENDING_SOAK,
        false => EXHAUSTIVE_PENDING_MAX,
    };
    let workloads = workloads(subject, length, 0);
    let totals = run_short(subject, &workloads, pending_max, jobs, &|step| telling.step(step));
    drop(telling);
    emit(&format!(
        "{}: {} of {} workloads failed, {} moments with at most {pending_max} pending writes, {} \
         images judged after {} recoveries; left out with more pending writes: {} moments\n",
        subject.name,
        totals.failures.len(),
        totals.workloads,
        totals.windows - totals.windows_left_out,
        totals.points,
        totals.recoveries,
        totals.windows_left_out
    ));
    for failure in &totals.failures {
        eprintln!("imbrex: {failure}");
    }
    match totals.failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Tries one point; when it fails, makes it small.
fn one_point(subject: &Subject, seed: u64, point: u64, options: Options, more: &str) -> ExitCode {
    let steps = steps_of(subject, seed);
    let result = SeedCampaign::new(subject, seed, options, &steps)
        .and_then(|campaign| campaign.try_point(point, &mut Totals::default()));
    match result {
        Ok(()) => {
            emit(&format!("{}, seed {seed}, point {point}: passed\n", subject.name));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let replay = replay_command(&subject.name, seed, failure.point, more);
            eprintln!("imbrex: {}\n  replay: {replay}", failure.what);
            eprint!("{}", made_small(subject, &failure, options));
            ExitCode::FAILURE
        }
    }
}

/// The smallest form of a failure, in words.
fn made_small(subject: &Subject, failure: &PointFailure, options: Options) -> String {
    let steps = steps_of(subject, failure.seed);
    let shrunk = shrink(subject, failure, options, steps);
    let mut text = format!("  made small: {}\n", shrunk.what);
    for step in &shrunk.steps {
        let _ = writeln!(text, "    {step}");
    }
    for write in &shrunk.lost_writes {
        let _ = writeln!(text, "    power goes, {write}");
    }
    text
}

/// Prints how many points it takes to find each bug.
fn plant_all(subject: &Subject) -> ExitCode {
    let mut unnoticed = 0;
    emit("| bug | points to find | found as |\n|---|---|---|\n");
    // Tests of layers, or cases with members, find the others.
    let bugs = PlantedBug::ALL.iter().copied();
    let bugs: Vec<PlantedBug> = bugs.filter(|bug| bug.is_searched()).collect();
    for bug in &bugs {
        let other = other_subject(*bug, subject);
        let subject = other.as_ref().unwrap_or(subject);
        let (points, failure) = points_to_find(subject, *bug, POINTS_TO_FIND_MAX);
        let line = match failure {
            Some(failure) => format!("| {} | {points} | {} |\n", bug.name(), failure.what),
            None => {
                unnoticed += 1;
                format!("| {} | not in {points} | |\n", bug.name())
            }
        };
        emit(&line);
    }
    let bugs = bugs.len();
    emit(&format!("{}: {} of {bugs} planted bugs found\n", subject.name, bugs - unnoticed));
    if unnoticed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
