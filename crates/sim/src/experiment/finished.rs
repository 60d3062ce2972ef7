//! Finished runs in a folder: each is written when it ends, and whoever goes on reads them back.
//!
//! A file is named by the SHA-256 of all that its run depends on: the program, the settings, the seed, and the
//! content of the trace and of drive files. So a file that is found is of that run and no other. It has two lines:
//! what it is, with the SHA-256 of the second, and what was found. It is written whole or not at all.

use imbrex_traces::PartialFile;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What the first line begins with.
const SCHEMA: &str = "imbrex.finished/1";

/// The ending of the files.
const ENDING: &str = ".finished";

/// Bytes of the first line at most that are looked at.
const HEADER_BYTES_MAX: u64 = 64 << 10;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    schema: String,
    /// The build that wrote it.
    program: String,
    /// The workload, and the system with its settings.
    name: String,
    /// SHA-256 of the second line.
    sha256: String,
}

/// Finished runs in a folder.
#[derive(Debug)]
pub struct FinishedRuns {
    folder: PathBuf,
    program: String,
    reads: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Names of the files that these runs have written or read back.
    written: BTreeSet<String>,
    aside: Aside,
    /// Why the first that could not be written was not.
    refused: Option<String>,
}

/// What lies in the folder and is not read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Files that are of runs to be made and not in order, each with what is wrong. Their runs are made again.
    pub damaged: Vec<String>,
    /// Files that another build has written.
    pub of_other_builds: usize,
    /// Files of other experiments, or of other settings, traces or drives.
    pub of_other_runs: usize,
    /// Files of runs to be made, when nothing is to be read back.
    pub not_wanted: usize,
}

impl FinishedRuns {
    /// In `folder`, which is made when a run has ended. `program` names the build: runs of another one are not
    /// taken. What is there is read back when `reads`; else every run is made, and written over what is there.
    pub fn new(folder: &Path, program: &str, reads: bool) -> Self {
        let state = Mutex::default();
        Self { folder: folder.to_path_buf(), program: program.to_string(), reads, state }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of what depends on these words alone, and on the program.
    pub(super) fn id(&self, words: &[String]) -> String {
        hash_of([SCHEMA, &self.program].into_iter().chain(words.iter().map(String::as_str)))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}{ENDING}"))
    }

    /// What was found under a name, if it was kept and is to be read back.
    pub(super) fn read<T: DeserializeOwned>(&self, id: &str) -> Option<T> {
        if !self.reads {
            return None;
        }
        let path = self.path(id);
        let found = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Err(error.to_string()),
            Ok(bytes) => self.found_in(&bytes),
        };
        let mut state = self.state();
        match found {
            Ok(found) => {
                state.written.insert(id.to_string());
                Some(found)
            }
            Err(reason) => {
                state.aside.damaged.push(format!("{}: {reason}", path.display()));
                None
            }
        }
    }

    fn found_in<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, String> {
        let cut = || "it is cut short".to_string();
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(cut)?;
        let (first, rest) = (&bytes[..end], &bytes[end + 1..]);
        let header: Header =
            serde_json::from_slice(first).map_err(|_| "it is no finished run".to_string())?;
        if header.schema != SCHEMA || header.program != self.program {
            return Err("it is of another version".to_string());
        }
        let body = rest.strip_suffix(b"\n").ok_or_else(cut)?;
        if hex(Sha256::new_with_prefix(body)) != header.sha256 {
            return Err("it is damaged".to_string());
        }
        serde_json::from_slice(body).map_err(|error| error.to_string())
    }

    /// Writes what was found, unless it would not come back as it is. A disk that is full does not end the work: see
    /// [`refused`](Self::refused).
    pub(super) fn write<T: Serialize + DeserializeOwned>(&self, id: &str, name: &str, found: &T) {
        let text = |value: &T| serde_json::to_string(value).expect("keys are texts");
        let body = text(found);
        // What does not come back as it is, such as a number that is none, is made again instead.
        let is_whole = serde_json::from_str::<T>(&body).is_ok_and(|back| text(&back) == body);
        if !is_whole {
            return;
        }
        let header = Header {
            schema: SCHEMA.to_string(),
            program: self.program.clone(),
            name: name.to_string(),
            sha256: hex(Sha256::new_with_prefix(&body)),
        };
        let header = serde_json::to_string(&header).expect("keys are texts");
        let path = self.path(id);
        let written = fs::create_dir_all(&self.folder).and_then(|()| {
            let partial = PartialFile::of(&path);
            fs::write(partial.path(), format!("{header}\n{body}\n"))?;
            partial.keep()
        });
        let mut state = self.state();
        match written {
            Ok(()) => drop(state.written.insert(id.to_string())),
            Err(error) => {
                let words = || format!("{}: {error}", path.display());
                state.refused.get_or_insert_with(words);
            }
        }
    }

    /// Whether what was found under a name was written or read back.
    pub(super) fn has(&self, id: &str) -> bool {
        self.state().written.contains(id)
    }

    /// Forgets what was found under a name.
    pub(super) fn forget(&self, id: &str) {
        // What is not there is forgotten.
        let _ = fs::remove_file(self.path(id));
        self.state().written.remove(id);
    }

    /// Runs that are in the folder.
    pub fn count(&self) -> usize {
        self.state().written.len()
    }

    /// What was found in the folder and not read back.
    pub fn aside(&self) -> Aside {
        self.state().aside.clone()
    }

    /// Why the first run that could not be written was not.
    pub fn refused(&self) -> Option<String> {
        self.state().refused.clone()
    }

    /// Looks at what else is in the folder: `ids` are the names of all that is to be made.
    pub(super) fn look_aside<'a>(&self, ids: impl IntoIterator<Item = &'a String>) {
        let known: BTreeSet<&str> = ids.into_iter().map(String::as_str).collect();
        let files = self.files(ENDING);
        let mut state = self.state();
        let aside = &mut state.aside;
        for path in files {
            let id = path.file_stem().unwrap_or_default().to_string_lossy();
            match (known.contains(&*id), self.reads) {
                (true, true) => {}
                (true, false) => aside.not_wanted += 1,
                (false, _) if self.is_of_other_build(&path) => aside.of_other_builds += 1,
                (false, _) => aside.of_other_runs += 1,
            }
        }
    }

    fn is_of_other_build(&self, path: &Path) -> bool {
        header_of(path).is_some_and(|header| header.program != self.program)
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.as_os_str().to_string_lossy().ends_with(ending)).collect()
    }

    /// Removes the files of these runs, whose results are elsewhere now, and the folder when nothing else is in
    /// it. What a killed program was about to write goes too. What cannot be removed does no harm.
    pub fn remove(&self) {
        let written = std::mem::take(&mut self.state().written);
        for id in &written {
            let _ = fs::remove_file(self.path(id));
        }
        for partial in self.files(".partial") {
            let name = partial.file_name().unwrap_or_default().to_string_lossy();
            // Others may be writing into the same folder.
            let id = name.strip_prefix('.').and_then(|name| name.split_once('.'));
            if id.is_some_and(|(id, _)| written.contains(id)) {
                let _ = fs::remove_file(&partial);
            }
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

fn header_of(path: &Path) -> Option<Header> {
    let file = BufReader::new(fs::File::open(path).ok()?);
    let mut line = Vec::new();
    file.take(HEADER_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// SHA-256 of a list of words.
pub(super) fn hash_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for word in words {
        // No two lists of words run together to the same bytes.
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
    }
    hex(hash)
}

/// A hash in hexadecimal.
pub(super) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
