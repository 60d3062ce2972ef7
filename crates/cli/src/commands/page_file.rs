//! How a page is written: whole or not at all.

use crate::failure::Failure;
use imbrex_traces::PartialFile;
use std::fs;
use std::path::Path;

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
