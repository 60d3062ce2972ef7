//! The `imbrex` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    imbrex_cli::main(std::env::args_os().collect()).into()
}
