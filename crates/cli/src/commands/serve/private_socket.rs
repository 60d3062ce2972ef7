//! The socket of `--run` where none is named.

use crate::failure::Failure;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Names that are tried before another process is taken to have all of them.
const NAMES_TRIED_MAX: u32 = 100;
const SOCKET_FILE: &str = "nbd.sock";

/// A place for a socket in a new folder that is its owner's alone. Both go away with it.
pub struct PrivateSocket {
    folder: PathBuf,
}

impl PrivateSocket {
    /// Makes the folder where temporary files belong (`TMPDIR`, or the system's own place).
    pub fn new() -> Result<PrivateSocket, Failure> {
        let parent = std::env::temp_dir();
        let process = std::process::id();
        for number in 0..NAMES_TRIED_MAX {
            let folder = parent.join(format!("imbrex-{process}-{number}"));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(PrivateSocket { folder }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(wrong(&folder, &error)),
            }
        }
        let taken = format!("this and {} more such names are taken", NAMES_TRIED_MAX - 1);
        let folder = parent.join(format!("imbrex-{process}-0"));
        Err(wrong(&folder, &taken))
    }

    /// Where the socket is to be.
    pub fn path(&self) -> PathBuf {
        self.folder.join(SOCKET_FILE)
    }
}

fn wrong(folder: &std::path::Path, error: &dyn std::fmt::Display) -> Failure {
    format!(
        "cannot make {} for the socket of --run: {error}; accepted too: --socket PATH",
        folder.display()
    )
    .into()
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        // The server has removed its socket, unless it was never made.
        let _ = fs::remove_file(self.path());
        let _ = fs::remove_dir(&self.folder);
    }
}
