//! The commands of `imbrex`, for its binary and for the Python package.
//!
//! [`main`] is the whole command line. [`answer`] gives a program the answer of one command.

mod args;
mod caller;
mod commands;
mod commit;
mod exit_code;
mod failure;

pub use caller::{Brought, Caller, Told};
pub use commit::version;
pub use exit_code::ExitCode;
pub use failure::{Failure, brought_failure, is_stopped, is_usage, trace_error};

use args::{Cli, Command, DriveCommand, TraceCommand};
use clap::{Arg, ArgAction, FromArgMatches};
use imbrex_drives::Drive;
use imbrex_serve::signals::STOPPED_EXIT_STATUS;
use imbrex_traces::ReadOptions;
use std::ffi::OsString;

/// The exit status of a command that was called wrongly, as that of the parser of the command line.
const WRONG_USAGE: u8 = 2;

/// Runs a command line, `words` with the name of the program before them, as a shell called it.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let is_check = words.get(1).is_some_and(|word| word == "check");
    let cli = parse(words).unwrap_or_else(|error| wrong_usage(&error, is_check));
    match run(cli.command, &Caller::shell()) {
        Ok(code) => code,
        Err(failure) => {
            commands::console::complain(&failure.to_string());
            match (is_usage(&failure), is_stopped(&failure)) {
                (true, _) => ExitCode::from(WRONG_USAGE),
                (_, true) => ExitCode::from(STOPPED_EXIT_STATUS),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Has a command answer a program. `words` are those of a command line behind the name of the program.
///
/// # Errors
/// What the command says on standard error when it fails, and a command that answers shells alone.
pub fn answer(words: &[String], caller: &Caller) -> Result<ExitCode, Failure> {
    let words = ["imbrex".to_string()].into_iter().chain(words.iter().cloned());
    let cli = parse(words.map(OsString::from).collect())
        .map_err(|error| failure::usage(words_of(&error)))?;
    match answers_programs(&cli.command) {
        true => run(cli.command, caller),
        false => Err(failure::usage(
            "the command has no answer for a program; accepted: a shell that calls it",
        )),
    }
}

/// What the parser says without the hints for a shell.
fn words_of(error: &clap::Error) -> String {
    let words = error.render().to_string();
    let words = words.strip_prefix("error: ").unwrap_or(&words);
    let end =
        ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|it| words.find(it)).min();
    words[..end.unwrap_or(words.len())].trim_end().to_string()
}

/// The options that a command has, without their dashes, each with what it takes: `flag`, `value`, or `values` when it may
/// be given several times. None of what is no command.
pub fn options(command: &[String]) -> Option<Vec<(String, &'static str)>> {
    let mut known = args::command();
    known.build();
    let mut at = &known;
    for word in command {
        at = at.find_subcommand(word)?;
    }
    let takes = |action: &ArgAction| match action {
        ArgAction::Append => "values",
        action if action.takes_values() => "value",
        _ => "flag",
    };
    let of = |option: &Arg| Some((option.get_long()?.to_string(), takes(option.get_action())));
    Some(at.get_arguments().filter_map(of).collect())
}

/// How a trace is read, as the options say that commands have for it.
///
/// # Errors
/// An option that is not known, or a value that it does not take.
pub fn read_options(words: &[String]) -> Result<ReadOptions, Failure> {
    let words =
        ["imbrex", "trace", "info", "-"].into_iter().chain(words.iter().map(String::as_str));
    let cli = parse(words.map(OsString::from).collect());
    match cli.map_err(|error| failure::usage(words_of(&error)))?.command {
        Command::Trace(TraceCommand::Info(args)) => args.read.options(),
        _ => unreachable!("the words say which command"),
    }
}

fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut known = args::command();
    let matches = known.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut known))
}

/// Whether a command answers a program too. The others talk to a shell, by standard output or by serving.
fn answers_programs(command: &Command) -> bool {
    matches!(
        command,
        Command::Systems { .. }
            | Command::Compare(_)
            | Command::Verdict(_)
            | Command::Bound(_)
            | Command::Run(_)
            | Command::Reproduce(_)
            | Command::Sweep(_)
            | Command::Diff(_)
            | Command::Trace(_)
    )
}

fn run(command: Command, caller: &Caller) -> Result<ExitCode, Failure> {
    match command {
        Command::Systems { show, json } => commands::systems::run(show.as_deref(), json, caller)?,
        Command::Compare(args) => return commands::compare::run(&args, caller),
        Command::Verdict(args) => commands::verdict::run(&args, caller)?,
        Command::Bound(args) => commands::bound::run(&args, caller)?,
        Command::Place(args) => commands::place::run(&args)?,
        Command::Reliability(args) => commands::reliability::run(&args)?,
        Command::Run(args) => return commands::run::run(&args, caller),
        Command::Reproduce(args) => return commands::reproduce::run(&args, caller),
        Command::Sweep(command) => return commands::sweep::run(&command, caller),
        Command::Diff(args) => commands::diff::run(&args, caller)?,
        Command::Trace(command) => commands::trace::run(&command, caller)?,
        Command::Drive(DriveCommand::Bench(args)) => return commands::drive::bench::run(&args),
        Command::Drive(DriveCommand::Fit(args)) => commands::drive::fit::run(&args)?,
        Command::Drive(DriveCommand::Fio(args)) => commands::drive::fio::run(&args)?,
        Command::Drive(DriveCommand::Show { drive }) => {
            commands::console::emit(Drive::text_of_library(&drive)?);
        }
        Command::Doctor(args) => commands::doctor::run(&args)?,
        Command::Create(args) => commands::create::run(&args)?,
        Command::Crashtest(args) => return commands::crashtest::run(&args),
        Command::Serve(args) => return commands::serve::run(&args),
        Command::Control(args) => return commands::control::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args)?,
        Command::Completions { shell, man } => commands::completions::run(shell, man.as_deref())?,
        Command::Check(args) => return Ok(commands::check::run(&args)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what is wrong with the command line. `check` has an exit status of its own for that, because
/// its lower ones say what it has found.
fn wrong_usage(error: &clap::Error, is_check: bool) -> ! {
    if is_check && error.use_stderr() {
        // Nobody is left to tell when it cannot be printed.
        let _ = error.print();
        std::process::exit(commands::check::WRONG_USAGE.into());
    }
    error.exit()
}
