//! What is in the files that runs depend on: traces, recipes and drives.

use super::workload::Workload;
use imbrex_drives::Drive;
use imbrex_stack::StackConfig;
use std::collections::BTreeMap;
use std::fs;

/// The hashes of files, each of which is read once.
#[derive(Default)]
pub(super) struct Contents {
    of_workloads: BTreeMap<String, Option<Vec<String>>>,
    of_drives: BTreeMap<String, Option<String>>,
}

impl Contents {
    /// SHA-256 of the trace, of the text of the recipe, or of each source of a combination. None of what can be read
    /// only once, or not at all.
    pub fn of_workload(&mut self, workload: &Workload) -> Option<Vec<String>> {
        let key = format!("{workload:?}");
        let known = self.of_workloads.entry(key);
        known.or_insert_with(|| contents_of(workload)).clone()
    }

    /// SHA-256 of the file of each drive of a stack. None when there is no such drive.
    pub fn of_drives(&mut self, stack: Option<&StackConfig>) -> Option<Vec<String>> {
        let names = stack.into_iter().flat_map(StackConfig::disks);
        let names = names.filter_map(|disk| disk.drive.as_ref());
        let hashes = names.map(|name| {
            let known = self.of_drives.entry(name.clone());
            known.or_insert_with(|| Drive::open(name).ok().map(|drive| drive.sha256)).clone()
        });
        hashes.collect()
    }
}

fn contents_of(workload: &Workload) -> Option<Vec<String>> {
    // What is no file, such as a pipe, can be read once, and that is what the run does.
    let is_pipe = fs::metadata(&workload.path).is_ok_and(|it| !it.is_file() && !it.is_dir());
    if workload.is_stream() || is_pipe {
        return None;
    }
    match &workload.combined {
        Some(combined) => combined.sources().iter().map(|source| source.sha256.clone()).collect(),
        // Of a recipe, which has no file of requests, the reader knows the text.
        None => match workload.sha256().ok()? {
            Some(sha256) => Some(vec![sha256]),
            None => Some(vec![workload.records().ok()?.sha256()?]),
        },
    }
}
