//! The `imbrex` command.

mod args;
mod commands;
mod commit;
mod failure;

use args::{Cli, Command, DriveCommand};
use clap::FromArgMatches;
use failure::Failure;
use imbrex_drives::Drive;
use std::process::ExitCode;

/// The exit status of a command that was called wrongly, as that of the parser of the command line.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut known = args::command();
    let parsed = known.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed.and_then(|matches| {
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut known))
    });
    let cli = parsed.unwrap_or_else(|error| wrong_usage(&error));
    match run(cli.command) {
        Ok(code) => code,
        Err(failure) => {
            commands::console::complain(&failure.to_string());
            match failure::is_usage(&failure) {
                true => ExitCode::from(WRONG_USAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Systems { show, json } => commands::systems::run(show.as_deref(), json)?,
        Command::Compare(args) => commands::compare::run(&args)?,
        Command::Verdict(args) => commands::verdict::run(&args)?,
        Command::Bound(args) => commands::bound::run(&args)?,
        Command::Place(args) => commands::place::run(&args)?,
        Command::Reliability(args) => commands::reliability::run(&args)?,
        Command::Run(args) => return commands::run::run(&args),
        Command::Reproduce(args) => return commands::reproduce::run(&args),
        Command::Trace(command) => commands::trace::run(&command)?,
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
fn wrong_usage(error: &clap::Error) -> ! {
    let is_check = std::env::args_os().nth(1).is_some_and(|arg| arg == "check");
    if is_check && error.use_stderr() {
        // Nobody is left to tell when it cannot be printed.
        let _ = error.print();
        std::process::exit(commands::check::WRONG_USAGE.into());
    }
    error.exit()
}
