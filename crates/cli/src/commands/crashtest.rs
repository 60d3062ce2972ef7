//! `imbrex crashtest`: searches for power cuts and faults that lose data.

mod members;

use super::console::emit;
use crate::args::CrashtestArgs;
use crate::failure::Failure;
use imbrex_core::extent::Extent;
use imbrex_core::planted::PlantedBug;
use imbrex_drives::toml_error::nearest;
use imbrex_serve::fsck::{self, Checks, Joint, Member, SegmentGeometry, Shape};
use imbrex_sim::crashtest::campaign::{
    Failure as PointFailure, Options, SeedCampaign, Totals, points_to_find, run_seeds, steps_of,
};
use imbrex_sim::crashtest::image::{EXHAUSTIVE_PENDING_MAX, EXHAUSTIVE_PENDING_SOAK, Mode};
use imbrex_sim::crashtest::medium::Medium;
use imbrex_sim::crashtest::short::{run_short, workloads};
use imbrex_sim::crashtest::shrink::shrink;
use imbrex_sim::crashtest::stacks::{self, BUFFER_LOG, Tree};
use imbrex_sim::crashtest::subject::{Kept, Subject};
use imbrex_sim::crashtest::summary::{Summary, replay_command};
use std::fmt::Write;
use std::ops::Range;
use std::process::ExitCode;

/// Points within which a planted bug must be found.
const POINTS_TO_FIND_MAX: u64 = 5_000;
/// Seeds of a run that names none.
const SEEDS: Range<u64> = 0..20;

/// Runs the command.
pub fn run(args: &CrashtestArgs) -> Result<ExitCode, Failure> {
    let known: Vec<&'static str> = stacks::NAMES.into_iter().chain([stacks::BARE]).collect();
    let mut subject =
        stacks::subject(&args.stack).ok_or_else(|| unknown("--stack", &args.stack, &known))?;
    if args.stack == stacks::BARE && !args.members {
        return Err(format!(
            "--stack {}: accepted: with --members alone, because it has no layer that answers for faults",
            args.stack
        )
        .into());
    }
    let tree = stacks::tree(&args.stack).ok_or("a stack without a tree")?;
    subject.check = Some(Box::new(|members| check_members(tree, members)));
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
    if args.plant_all {
        return Ok(plant_all(&subject));
    }
    if let (Some(seed), Some(point)) = (args.seed, args.point) {
        check_point(point, args.points)?;
        return Ok(one_point(&subject, seed, point, options));
    }
    if let Some(length) = args.short {
        return Ok(short(&subject, length, args.soak, jobs));
    }
    let seeds = seeds(args)?;
    let totals = run_seeds(&subject, seeds.clone(), options, jobs);
    let more = more_options(options);
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

fn check_point(point: u64, points: u64) -> Result<(), Failure> {
    if point >= points {
        let last = points - 1;
        return Err(format!("--point {point}: accepted: 0 to {last}, as --points says").into());
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
    if args.plant_all {
        return Ok(members::plant_all(subject));
    }
    if let (Some(seed), Some(point)) = (args.seed, args.point) {
        check_point(point, args.points)?;
        return Ok(members::one(subject, seed, point, options));
    }
    members::run(subject, seeds(args)?, options, jobs, args.json)
}

/// A small stack as a reader of its members must know it.
fn shape(tree: &Tree, members: &[(&'static str, Medium)]) -> Result<Shape, String> {
    let medium = |name: &'static str| {
        let found = members.iter().find(|(known, _)| *known == name);
        let (_, medium) = found.ok_or_else(|| format!("a stack without the member {name}"))?;
        Ok::<_, String>(medium)
    };
    let member = |name: &'static str| {
        let medium = medium(name)?.clone();
        let blocks = medium.len();
        let read = move |at, into: &mut [u8]| into.copy_from_slice(&medium.block(at)[..]);
        Ok::<_, String>(Member::in_memory(name, blocks, Box::new(read)))
    };
    Ok(match tree {
        Tree::Flash(name) | Tree::Conventional(name) => Shape::Disk(member(name)?),
        Tree::Translation(name) => Shape::PersistentCache(member(name)?),
        Tree::TranslationOnTwo(log, home) => Shape::PersistentCacheOnTwo {
            log: Box::new(Shape::Disk(member(log)?)),
            home: member(home)?,
        },
        Tree::SBlocks(name) | Tree::Segments(name) => {
            let disk = Box::new(Shape::Disk(member(name)?));
            translation(name, disk, medium(name)?.kept())?
        }
        Tree::Buffered(below) => {
            let Some(Kept::Log(places)) = medium(BUFFER_LOG)?.kept() else {
                return Err(format!("nothing is known of {BUFFER_LOG}"));
            };
            let below = Box::new(shape(below, members)?);
            let blocks = match &*below {
                Shape::Segments { blocks, .. } | Shape::SBlocks { blocks, .. } => *blocks,
                other => return Err(format!("a buffer over {other:?}")),
            };
            Shape::MemoryBuffer {
                log: Some((Box::new(Shape::Disk(member(BUFFER_LOG)?)), *places)),
                below,
                blocks,
            }
        }
        Tree::Cache(_, flash, backing) => Shape::Cache {
            flash: Box::new(shape(flash, members)?),
            backing: Box::new(shape(backing, members)?),
        },
        Tree::Striped(chunk, below) => {
            let below = below.iter().map(|tree| shape(tree, members));
            Shape::Joined {
                joint: Joint::Stripe(*chunk),
                blocks: None,
                below: below.collect::<Result<_, _>>()?,
            }
        }
        Tree::Spanned(below) => {
            let below = below.iter().map(|tree| shape(tree, members));
            Shape::Joined {
                joint: Joint::Span,
                blocks: None,
                below: below.collect::<Result<_, _>>()?,
            }
        }
        Tree::TwoOnOne { flash, shingled } => {
            let parts = |name: &'static str| -> Result<Vec<Member>, String> {
                let medium = members.iter().find(|(known, _)| *known == name);
                let parts = medium.map_or(&[][..], |(_, medium)| medium.parts());
                let whole = member(name)?;
                let part = |part: &Extent| whole.window(name, part.start.0, part.blocks.0);
                Ok(parts.iter().map(part).collect())
            };
            let windows = parts(flash)?.into_iter().zip(parts(shingled)?);
            Shape::Joined {
                joint: Joint::Span,
                blocks: None,
                below: windows
                    .map(|(flash, shingled)| Shape::Cache {
                        flash: Box::new(Shape::Disk(flash)),
                        backing: Box::new(Shape::PersistentCache(shingled)),
                    })
                    .collect(),
            }
        }
    })
}

/// A translation on a disk, with what it keeps where.
fn translation(name: &str, disk: Box<Shape>, kept: Option<&Kept>) -> Result<Shape, String> {
    match kept {
        Some(Kept::Segments(identity, layout, areas)) => Ok(Shape::Segments {
            disk,
            journal: None,
            blocks: layout.blocks().0,
            geometry: Box::new(SegmentGeometry {
                identity: *identity,
                layout: layout.clone(),
                areas: *areas,
            }),
        }),
        Some(Kept::SBlocks(layout)) => {
            Ok(Shape::SBlocks { disk, blocks: layout.blocks().0, layout: Box::new(layout.clone()) })
        }
        Some(Kept::Log(_)) | None => Err(format!("nothing is known of {name}")),
    }
}

/// What `imbrex check --data` would say of the members of a small stack.
fn check_members(tree: &Tree, members: &[(&'static str, Medium)]) -> Result<(), String> {
    let shape = shape(tree, members)?;
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
        format!("--seeds {text}: accepted: A..B with A < B, the seeds from A up to but without B")
            .into()
    })
}

/// What a replay needs beside the stack, the seed and the point.
fn more_options(options: Options) -> String {
    let mut more = String::new();
    if options.points != imbrex_sim::crashtest::campaign::POINTS {
        let _ = write!(more, " --points {}", options.points);
    }
    if let Some(mode) = options.mode {
        let _ = write!(more, " --mode {}", mode.name());
    }
    if options.soak {
        more.push_str(" --soak");
    }
    if let Some(bug) = options.plant {
        let _ = write!(more, " --plant {}", bug.name());
    }
    more
}

/// Runs every short workload.
fn short(subject: &Subject, length: u32, soak: bool, jobs: usize) -> ExitCode {
    let pending_max = match soak {
        true => EXHAUSTIVE_PENDING_SOAK,
        false => EXHAUSTIVE_PENDING_MAX,
    };
    let totals = run_short(subject, &workloads(subject, length, 0), pending_max, jobs);
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
fn one_point(subject: &Subject, seed: u64, point: u64, options: Options) -> ExitCode {
    let steps = steps_of(subject, seed);
    let result = SeedCampaign::new(subject, seed, options, &steps)
        .and_then(|campaign| campaign.try_point(point, &mut Totals::default()));
    match result {
        Ok(()) => {
            emit(&format!("{}, seed {seed}, point {point}: passed\n", subject.name));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let replay = replay_command(&subject.name, seed, failure.point, &more_options(options));
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
        let other = stacks::stack_of(*bug).filter(|name| *name != subject.name);
        let other = other.and_then(stacks::subject);
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
