//! A report as a folder of files.

use std::io;
use std::path::{Path, PathBuf};

use super::report::Report;

/// Names of all files that a report may be written as.
pub const REPORT_FILES: [&str; 10] = [
    "report.json",
    "report.html",
    "summary.csv",
    "io.csv",
    "latency.csv",
    "throughput.csv",
    "persistent_cache_fill.csv",
    "band_writes.csv",
    "segments.csv",
    "series.csv",
];

impl Report {
    /// Writes `report.json`, `report.html` and the CSV files into `folder`, which is created if
    /// missing; gives their paths. Errors name the file.
    pub fn write_to(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
        let mut files = vec![("report.json", self.to_json()), ("report.html", self.to_html())];
        files.extend(self.to_csv());
        let write = |(name, text): (&str, String)| {
            assert!(REPORT_FILES.contains(&name), "{name} is in the list");
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| named(&path, &error))?;
            Ok(path)
        };
        files.into_iter().map(write).collect()
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
