//! `imbrex completions`.

use super::outputs::check_room;
use crate::args;
use crate::failure::Failure;
use clap_complete::Shell;
use std::io::Write as _;
use std::path::Path;

/// Prints the completions of a shell, or writes the manual pages into a folder.
pub fn run(shell: Option<Shell>, man: Option<&Path>) -> Result<(), Failure> {
    if let Some(shell) = shell {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut args::command(), "imbrex", &mut text);
        // Who closes the pipe has read enough.
        let _ = std::io::stdout().write_all(&text);
    }
    if let Some(folder) = man {
        check_room("--man", folder)?;
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(args::command(), folder)?;
    }
    Ok(())
}
