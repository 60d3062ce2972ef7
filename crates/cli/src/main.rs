//! The `imbrex` command.

mod args;
mod commands;

use args::{Cli, Command, TraceCommand};
use clap::Parser;
use std::process::ExitCode;

/// Why a command failed, in words for the user.
pub type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("imbrex: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Systems { show, json } => commands::systems::run(show.as_deref(), json)?,
        Command::Compare(args) => commands::compare::run(&args)?,
        Command::Run(args) => commands::run::run(&args)?,
        Command::Reproduce(args) => commands::reproduce::run(&args)?,
        Command::Trace(TraceCommand::Info(args)) => commands::trace::info(&args)?,
        Command::Trace(TraceCommand::Convert(args)) => commands::trace::convert(&args)?,
        Command::Trace(TraceCommand::Synth(args)) => commands::trace::synth(&args)?,
        Command::Create(args) => commands::create::run(&args)?,
        Command::Serve(args) => return commands::serve::run(&args),
    }
    Ok(ExitCode::SUCCESS)
}
