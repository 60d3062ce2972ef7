//! How a page is written: whole or not at all.

use crate::Failure;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Writes `page` to `file`, in place of what is there. A reader finds the old file or the whole page: the
/// page is written beside it and takes its name at the end. What is no regular file, such as a pipe, is
/// written to directly.
pub fn write_page(file: &Path, page: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let is_other = fs::symlink_metadata(file).is_ok_and(|found| !found.is_file());
    let (Some(name), false) = (file.file_name(), is_other) else {
        return Ok(fs::write(file, page).map_err(failed)?);
    };
    let mut partial = OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = file.with_file_name(partial);
    let written = fs::write(&partial, page).and_then(|()| fs::rename(&partial, file));
    if written.is_err() {
        // There may be nothing to remove.
        let _ = fs::remove_file(&partial);
    }
    Ok(written.map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_the_place_of_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        for page in ["first", "second"] {
            write_page(&file, page).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), page);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let missing = folder.path().join("missing").join("page.html");
        let error = write_page(&missing, "page").unwrap_err().to_string();
        assert!(error.contains("missing/page.html: "), "{error}");
    }
}
