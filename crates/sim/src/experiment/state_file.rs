//! The file of a saved state: what it is of, the state of the stack, and a checksum over both.

use imbrex_traces::PartialFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a file begins with.
const MAGIC: &[u8; 8] = b"IMBRXSTA";

/// The version of the format.
const VERSION: u32 = 1;

/// Bytes of magic, version and length of the header.
const FRONT: usize = 16;

/// Bytes of the SHA-256 at the end.
const CHECKSUM: usize = 32;

/// What a state is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateHeader {
    /// The build that wrote it.
    pub program: String,
    /// The name of the stack.
    pub system: String,
    /// SHA-256 of all that the stack was built from.
    pub stack: String,
    /// The root seed.
    pub seed: u64,
    /// SHA-256 of all that says which requests a replay has.
    pub trace: String,
    /// How many of those are behind the state.
    pub requests: u64,
    /// The virtual time of the state.
    pub at_ns: u64,
}

/// Why a file of a state cannot be used, or not be written.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It cannot be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The stack cannot be saved.
    #[error("--save-state: {reason}; accepted: another system")]
    NotSaved {
        /// Why.
        reason: String,
    },
    /// It cannot be known which trace that was.
    #[error(
        "--trace {trace}: a state is known by the content of its trace, and this can be read only once; accepted: a \
         file"
    )]
    NoTrace {
        /// The trace.
        trace: String,
    },
    /// It is no such file, or not one for this run.
    #[error("{}: {found}; accepted: {accepted}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What would be taken.
        accepted: String,
    },
}

impl StateFileError {
    /// A file that is refused.
    pub(super) fn refused(
        path: &Path,
        found: impl Into<String>,
        accepted: impl Into<String>,
    ) -> StateFileError {
        StateFileError::Refused {
            path: path.to_path_buf(),
            found: found.into(),
            accepted: accepted.into(),
        }
    }
}

/// A file of a state as it was read.
pub(super) struct StateFile {
    pub header: StateHeader,
    pub state: Vec<u8>,
}

impl StateFile {
    /// Writes it, in place of what is there.
    ///
    /// # Errors
    /// When it cannot be written. What was there is there then.
    pub fn write(&self, path: &Path) -> Result<(), StateFileError> {
        let file = PartialFile::of(path);
        let written = fs::write(file.path(), self.to_bytes()).and_then(|()| file.keep());
        written.map_err(|error| StateFileError::Write { path: path.to_path_buf(), error })
    }

    /// The bytes of the file.
    fn to_bytes(&self) -> Vec<u8> {
        let header = serde_json::to_vec(&self.header).expect("words and numbers are JSON");
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        bytes.extend((self.state.len() as u64).to_le_bytes());
        bytes.extend(&self.state);
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read, or is not such a file or not whole.
    pub fn read(path: &Path) -> Result<StateFile, StateFileError> {
        let read = fs::read(path);
        let bytes =
            read.map_err(|error| StateFileError::Read { path: path.to_path_buf(), error })?;
        StateFile::of_bytes(path, &bytes)
    }

    fn of_bytes(path: &Path, bytes: &[u8]) -> Result<StateFile, StateFileError> {
        let wrong = |found: &str, accepted: &str| StateFileError::refused(path, found, accepted);
        let whole = "a file that --save-state has written";
        if !bytes.starts_with(MAGIC) {
            return Err(wrong("it is not the state of a simulated stack", whole));
        }
        let cut = || wrong("it is cut", whole);
        let number =
            |at: usize| bytes[at..].first_chunk::<4>().map(|word| u32::from_le_bytes(*word));
        let version = bytes.get(8..FRONT).and_then(|_| number(8)).ok_or_else(cut)?;
        if version != VERSION {
            let found = format!("it has format version {version}");
            return Err(wrong(&found, &format!("{VERSION}, which this imbrex writes")));
        }
        let header_bytes = number(12).ok_or_else(cut)? as usize;
        let (header, rest) = bytes[FRONT..].split_at_checked(header_bytes).ok_or_else(cut)?;
        let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = u64::from_le_bytes(*length);
        if (rest.len() as u64).checked_sub(CHECKSUM as u64) != Some(length) {
            return Err(match (rest.len() as u64) < length.saturating_add(CHECKSUM as u64) {
                true => cut(),
                false => wrong("it goes on behind its end", whole),
            });
        }
        let (summed, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if Sha256::digest(summed).as_slice() != checksum {
            return Err(wrong("it is damaged: its checksum is wrong", whole));
        }
        let header = serde_json::from_slice(header)
            .map_err(|error| wrong(&format!("its header is damaged: {error}"), whole))?;
        Ok(StateFile { header, state: rest[..length as usize].to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> StateFile {
        let header = StateHeader {
            program: "0.1.0 unknown".into(),
            system: "pore".into(),
            stack: "a".into(),
            seed: 1,
            trace: "b".into(),
            requests: 7,
            at_ns: 9,
        };
        StateFile { header, state: (0..200).collect() }
    }

    fn read(bytes: &[u8]) -> Result<StateFile, String> {
        StateFile::of_bytes(Path::new("x.state"), bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let read = read(&file().to_bytes()).expect("a file");
        assert_eq!((read.header, read.state), (file().header, file().state));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        let bytes = file().to_bytes();
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "{end}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes).is_err(), "{bit}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let mut bytes = file().to_bytes();
        let words = |bytes: &[u8]| read(bytes).map(|_| ()).unwrap_err();
        assert!(words(b"hello").contains("x.state: it is not the state of a simulated"));
        assert!(words(&bytes[..100]).contains("it is cut; accepted: a file that --save-state"));
        assert!(words(&[&bytes[..], b"x"].concat()).contains("it goes on behind its end"));
        bytes[8] = 2;
        assert!(words(&bytes).contains("it has format version 2; accepted: 1, which"));
    }
}
