//! Results of simulations, and whether they can be written: asked before the work, which may take hours.

use crate::args::OutputArgs;
use crate::failure::Failure;
use imbrex_report::{FORM_FILES, REPORT_FILES};
use imbrex_stack::{KindKeys, kinds};
use imbrex_traces::PartialFile;
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file of what an experiment has looked at in a trace.
pub const TRACE_FILE: &str = "trace.json";

/// Refuses a file that could not be written beside what is there and then put in its place, in the name of
/// the option that names it. Nothing of it is left: what is there stays as it is.
pub fn check_file(option: &str, file: &Path) -> Result<(), Failure> {
    match fs::metadata(file) {
        Ok(found) if found.is_dir() => Err(refused(option, file, &"it is a folder")),
        // A pipe or a terminal is opened when there is something to write.
        Ok(found) if !found.is_file() => Ok(()),
        _ => check_beside(file).map_err(|error| refused(option, file, &error)),
    }
}

/// Refuses an output that could not be written, and one that is one of the traces, by whatever name: it would
/// be emptied before it is read. `option` names it.
pub fn check_output<'a>(
    option: &str,
    output: impl AsRef<Path>,
    traces: impl IntoIterator<Item = &'a str>,
) -> Result<(), Failure> {
    let output = output.as_ref();
    if output != Path::new("-") {
        check_file(option, output)?;
    }
    // What has no metadata is not there yet, or is a recipe.
    let place = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    let Some(found) = place(output) else {
        return Ok(());
    };
    match traces.into_iter().find(|trace| place(trace.as_ref()) == Some(found)) {
        Some(trace) => Err(format!(
            "{}: is the trace {trace} itself; accepted: another file",
            output.display()
        )
        .into()),
        None => Ok(()),
    }
}

/// Refuses a file that could not be written over as it is, or made where there is none. What is there stays
/// as it is.
pub fn check_file_in_place(option: &str, file: &Path) -> Result<(), Failure> {
    match fs::metadata(file) {
        Ok(found) if found.is_file() => {
            // Without truncating.
            let opened = File::options().write(true).open(file);
            opened.map_err(|error| refused(option, file, &error))?;
            Ok(())
        }
        _ => check_file(option, file),
    }
}

/// Tries to make a file beside another one, or beside what a link to nothing leads to.
fn check_beside(file: &Path) -> io::Result<()> {
    // It is removed when it is dropped.
    let partial = PartialFile::of(file);
    File::create(partial.path()).map(drop)
}

fn refused(option: &str, file: &Path, error: &dyn Display) -> Failure {
    let words = format!(
        "{option} {}: {error}; accepted: a file in a folder that is there and can be written to",
        file.display()
    );
    Failure::from(words)
}

/// Refuses a folder into which a report could not be written: one that could not be made, or in which a
/// file of an earlier report could not be written over. It is not made yet.
pub fn check_folder(option: &str, folder: &Path) -> Result<(), Failure> {
    check_room(option, folder)?;
    let names = REPORT_FILES.iter().chain(&FORM_FILES).chain([&TRACE_FILE]);
    let of_kinds = kinds().iter().flat_map(KindKeys::table_files);
    let names = names.map(|name| name.to_string()).chain(of_kinds);
    for file in names.map(|name| folder.join(name)) {
        if fs::symlink_metadata(&file).is_ok() {
            check_file_in_place(option, &file)?;
        }
    }
    Ok(())
}

/// Refuses a folder in which nothing could be made, or that could not be made itself.
pub fn check_room(option: &str, folder: &Path) -> Result<(), Failure> {
    let refused = |error: &dyn Display| {
        let words = format!(
            "{option} {}: {error}; accepted: a folder that can be written to, or made",
            folder.display()
        );
        Failure::from(words)
    };
    let there = nearest_there(folder).map_err(|error| refused(&error))?;
    match fs::metadata(&there) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(refused(&format_args!("{} is no folder", there.display()))),
        Err(error) => return Err(refused(&error)),
    }
    check_beside(&there.join("imbrex-output")).map_err(|error| refused(&error))
}

/// The folder itself, or the nearest one above it that is there.
fn nearest_there(folder: &Path) -> io::Result<PathBuf> {
    for path in folder.ancestors() {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        // A link that leads nowhere is there too, and no folder.
        match fs::symlink_metadata(path) {
            Ok(_) => return Ok(path.to_path_buf()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(PathBuf::from("."))
}

/// Refuses an `--out` that could not be written.
pub fn check_out(output: &OutputArgs) -> Result<(), Failure> {
    match &output.out {
        Some(folder) => check_folder("--out", folder),
        None => Ok(()),
    }
}

/// How many runs at the same time.
pub fn jobs(asked: Option<usize>) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    asked.unwrap_or(processors)
}

/// Where the files of a folder are written before they take their places in it.
const STAGING: &str = ".imbrex-output.partial";

/// Writes files into a folder, each of them whole or not at all: `write` puts them into another folder, and all are
/// there before the first takes the place of an older one. A disk that fills up leaves everything as it was.
pub fn write_whole(
    folder: &Path,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), Failure> {
    let staging = folder.join(STAGING);
    // A program that was killed may have left one.
    let _ = fs::remove_dir_all(&staging);
    let written = fs::create_dir_all(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))
        .and_then(|()| write(&staging).map_err(|error| meant(&error, &staging, folder)))
        .and_then(|()| put_in_place(&staging, folder));
    let _ = fs::remove_dir_all(&staging);
    Ok(written?)
}

/// What went wrong, with the names that the files were to have.
fn meant(error: &io::Error, staging: &Path, folder: &Path) -> String {
    error.to_string().replace(&staging.display().to_string(), &folder.display().to_string())
}

fn put_in_place(staging: &Path, folder: &Path) -> Result<(), String> {
    let names = fs::read_dir(staging).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()
    });
    for name in names.map_err(|error| format!("{}: {error}", staging.display()))? {
        let (from, to) = (staging.join(&name), folder.join(&name));
        let is_other = fs::symlink_metadata(&to).is_ok_and(|found| !found.is_file());
        // A link is written through, and what is no file is written to.
        let put = match is_other {
            true => fs::copy(&from, &to).map(drop),
            false => fs::rename(&from, &to),
        };
        put.map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}
