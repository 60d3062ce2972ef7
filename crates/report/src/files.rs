//! A report as a folder of files.

use std::io;
use std::path::{Path, PathBuf};

use super::report::Report;

/// Names of all files that a report may be written as, beside those of the tables that kinds of node make
/// ([`TableOfKind::file`](super::TableOfKind::file)).
pub const REPORT_FILES: [&str; 20] = [
    "report.json",
    "report.html",
    "results.csv",
    "summary.csv",
    "io.csv",
    "latency.csv",
    "throughput.csv",
    "responses.csv",
    "persistent_cache_fill.csv",
    "band_writes.csv",
    "segments.csv",
    "series.csv",
    "movement.csv",
    "phases.csv",
    "activities.csv",
    "activity_series.csv",
    "windows.csv",
    "heads.csv",
    "rebuild_progress.csv",
    "nodes.csv",
];

impl Report {
    /// Writes `report.json`, `report.html` and the CSV files into `folder`, which is created if
    /// missing; gives their paths. Errors name the file.
    pub fn write_to(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
        let mut files = vec![
            ("report.json".to_string(), self.to_json()),
            ("report.html".to_string(), self.to_html()),
        ];
        files.extend(self.to_csv());
        let of_kinds: Vec<String> =
            self.kind_tables().iter().map(|table| table.like.file()).collect();
        let write = |(name, text): (String, String)| {
            let is_fixed = REPORT_FILES.contains(&name.as_str());
            assert!(is_fixed != of_kinds.contains(&name), "{name} is in one of the lists");
            let path = folder.join(&name);
            std::fs::write(&path, text).map_err(|error| named(&path, &error))?;
            Ok(path)
        };
        files.into_iter().map(write).collect()
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
