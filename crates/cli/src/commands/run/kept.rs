//! Runs that are kept when they end, so that a command that was stopped or killed can go on.

use crate::caller::Caller;
use crate::commands::outputs::check_room;
use crate::commands::telling::Telling;
use crate::commit::program;
use crate::failure::Failure;
use imbrex_sim::experiment::FinishedRuns;
use imbrex_sim::progress::{Event, Step};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The folder of them, beside the results.
const FOLDER: &str = "finished-runs";

/// Finished runs, and what is said of them.
pub struct Keeping {
    pub runs: FinishedRuns,
    resumes: bool,
    /// The work comes in parts, and no part knows the runs of the others.
    is_in_parts: bool,
    has_said_damaged: AtomicBool,
    has_said_refused: AtomicBool,
}

impl Keeping {
    /// Beside the results in `out`; those that are there are read back to go on with them when `resumes`.
    pub fn beside(out: &Path, resumes: bool) -> Result<Keeping, Failure> {
        let folder = out.join(FOLDER);
        check_room("--out", &folder)?;
        let runs = FinishedRuns::new(&folder, &program(), resumes);
        let (has_said_damaged, has_said_refused) = Default::default();
        Ok(Keeping { runs, resumes, is_in_parts: false, has_said_damaged, has_said_refused })
    }

    /// The same for work that comes in parts.
    pub fn of_parts(out: &Path, resumes: bool) -> Result<Keeping, Failure> {
        Ok(Keeping { is_in_parts: true, ..Keeping::beside(out, resumes)? })
    }

    /// Says at the beginning what was found, and later why runs cannot be kept, once.
    pub fn tell(&self, step: &Step<'_>, telling: &Telling) {
        if step.event == Event::Begins {
            self.tell_what_was_found(step, telling);
        }
        if let Some(refused) = self.runs.refused()
            && !self.has_said_refused.swap(true, Ordering::Relaxed)
        {
            telling.complain(&format!(
                "finished runs are not kept: {refused}; --resume would make them again"
            ));
        }
    }

    fn tell_what_was_found(&self, step: &Step<'_>, telling: &Telling) {
        let (aside, folder) = (self.runs.aside(), self.runs.folder().display());
        if let Some(first) = aside.damaged.first()
            && !self.has_said_damaged.swap(true, Ordering::Relaxed)
        {
            let more = match aside.damaged.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more are not in order"),
            };
            telling.complain(&format!("{first}{more}; what is not in order is made again"));
        }
        if self.is_in_parts {
            return;
        }
        let mut found = Vec::new();
        if aside.not_wanted > 0 {
            found.push(format!("{} of this experiment, which --resume takes", aside.not_wanted));
        }
        if aside.of_other_builds > 0 {
            found.push(format!("{} of another build of imbrex", aside.of_other_builds));
        }
        if aside.of_other_runs > 0 {
            found.push(format!("{} of other experiments or settings", aside.of_other_runs));
        }
        if !found.is_empty() {
            let found = found.join(", ");
            telling.remark(&format!("imbrex: finished runs left aside in {folder}: {found}"));
        } else if self.resumes && step.done == 0 && aside.damaged.is_empty() {
            telling.remark(&format!("imbrex: no finished runs in {folder}: every run is made"));
        }
    }

    /// Removes the runs once all are in the results; else says how to go on.
    pub fn end(&self, is_whole: bool, is_written: bool, caller: &Caller) {
        let count = self.runs.count();
        if count == 0 || (is_whole && is_written) {
            return self.runs.remove();
        }
        let folder = self.runs.folder().display();
        caller.complain(&format!("--resume goes on with {count} finished runs in {folder}"));
    }
}
