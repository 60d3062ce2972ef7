//! How a page is written: whole or not at all.

use super::outputs::{check_file, check_room};
use crate::failure::Failure;
use imbrex_traces::PartialFile;
use std::fs;
use std::path::{Path, PathBuf};

/// The two files in the folder of `--out` of a command that finds one thing: a JSON document, and a page.
pub struct DocumentFiles {
    folder: PathBuf,
    json: PathBuf,
    page: PathBuf,
}

impl DocumentFiles {
    /// `NAME.json` and `NAME.html` in a folder, which need not be there. Asked before the work, which may take long.
    ///
    /// # Errors
    /// When they could not be written.
    pub fn in_folder(folder: &Path, name: &str) -> Result<DocumentFiles, Failure> {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        let files =
            DocumentFiles { folder: folder.to_path_buf(), json: file("json"), page: file("html") };
        check_room("--out", folder)?;
        for file in [&files.json, &files.page].into_iter().filter(|file| file.exists()) {
            check_file("--out", file)?;
        }
        Ok(files)
    }

    /// Writes both, and the folder if it is missing.
    pub fn write(&self, document: &str, page: &str) -> Result<(), Failure> {
        fs::create_dir_all(&self.folder)
            .map_err(|error| format!("--out {}: {error}", self.folder.display()))?;
        write_page(&self.json, document)?;
        write_page(&self.page, page)
    }
}

/// Writes `page` to `file`, in place of what is there. A reader finds the old file or the whole page.
pub fn write_page(file: &Path, page: &str) -> Result<(), Failure> {
    let partial = PartialFile::of(file);
    let written = fs::write(partial.path(), page).and_then(|()| partial.keep());
    Ok(written.map_err(|error| format!("{}: {error}", file.display()))?)
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
