//! What is asked, and the runs that answer it.

use super::cache::{Advice, CacheTrial, Candidate, advice, candidates, finalists};
use super::drive::{DriveRuns, DriveVerdict, Over, Served};
use super::facts::Facts;
use crate::experiment::{Case, RunError, Task, Watch, Workload, make_runs};
use crate::replay::{Fit, Placement, ReplayOptions};
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::Size;
use imbrex_drives::shell_word;
use imbrex_report::{ReplayMode, Run};
use imbrex_stack::{ConfigError, Setting, StackConfig};
use serde::Serialize;
use std::collections::BTreeMap;

/// The drives that are looked at when none is named: a conventional one, and those that clean by themselves.
pub const DRIVES_DEFAULT: [&str; 6] =
    ["wd-4tb-7200", "st5000as0011", "st8000as0002", "st8000dm004", "wd40efax", "st8000as0022"];

/// Sizes of caches that are tried when none is named, as shares of what the workload touches.
pub const CACHE_SIZES_DEFAULT: &str = "1%,2%,5%";

/// Requests of a run at most, however many rounds a log would need.
pub const REQUESTS_MAX_DEFAULT: u64 = 4_000_000;

/// How often a log is filled over, so that half of the time it has been full.
const FILLS: f64 = 2.0;

/// What is asked.
pub struct Question<'a> {
    /// The workload, once.
    pub workload: Workload,
    /// What a command line says to read it and to place its records: `--trace x.csv`.
    pub words: String,
    /// Where its records go on a device.
    pub placement: Placement,
    /// Drives, by name or path.
    pub drives: &'a [String],
    /// True when the user has named them: caches are tried on these too.
    pub drives_are_named: bool,
    /// Sizes of caches in blocks, for a workload that touches so many.
    pub cache_blocks: &'a dyn Fn(u64) -> Vec<u64>,
    /// The root seed.
    pub seed: u64,
    /// Runs at the same time.
    pub jobs: usize,
    /// Requests of a run at most.
    pub requests_max: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Always `imbrex.verdict/1`.
    pub schema: &'static str,
    /// Commit the program was built from.
    pub commit: String,
    /// The root seed.
    pub seed: u64,
    /// The trace, and how it came to be.
    pub workload: imbrex_report::Workload,
    /// What it asks for.
    pub facts: Facts,
    /// Each drive.
    pub drives: Vec<DriveVerdict>,
    /// Each cache that was tried, at its time stamps.
    pub caches: Vec<CacheTrial>,
    /// Which of them to take; null where none could be tried.
    pub advice: Option<Advice>,
    /// Caches that cannot be so small, or take no such drive, with the reason.
    pub left_out: Vec<String>,
}

/// A run to be made: a stack with settings, the way it is driven, and how many times over.
pub(super) struct Trial {
    pub system: String,
    pub settings: Vec<String>,
    pub is_open_loop: bool,
    pub rounds: u32,
}

/// A stack with a cache of a size.
fn of_cache(candidate: &Candidate, cache_bytes: u64) -> Trial {
    let size = Size(cache_bytes).to_string().replace(' ', "");
    let mut settings = candidate.settings.clone();
    settings.push(format!("{}.capacity={size}", candidate.cache));
    Trial { system: candidate.system.clone(), settings, is_open_loop: true, rounds: 1 }
}

impl Trial {
    fn config(&self) -> Result<StackConfig, ConfigError> {
        let settings: Result<Vec<Setting>, ConfigError> =
            self.settings.iter().map(|text| Setting::parse(text)).collect();
        StackConfig::load(&self.system, &settings?)
    }

    fn command(&self, words: &str, has_new_blocks: bool) -> String {
        let mut command = format!("imbrex compare {words} --systems {}", shell_word(&self.system));
        for setting in &self.settings {
            command.push_str(&format!(" --set {}", shell_word(setting)));
        }
        if self.is_open_loop {
            command.push_str(" --open-loop");
        }
        if self.rounds > 1 {
            command.push_str(&format!(" --repeat {}", self.rounds));
            if has_new_blocks {
                command.push_str(" --new-blocks");
            }
        }
        command
    }
}

/// A run that was made, with the command that makes it again.
type Made = (Run, imbrex_report::Workload, String);

impl Question<'_> {
    /// Makes the runs and says what they come down to. `watch` hears of each, and may stop them.
    ///
    /// # Errors
    /// When the trace or a drive is wrong, and when the trace says nothing of times.
    pub fn answer(&self, watch: &Watch<'_>) -> Result<Verdict, RunError> {
        let facts = Facts::of(&self.workload, self.placement.blocks)?;
        if facts.requests == 0 {
            let words = format!("{}: there is no request in it", self.workload.path);
            return Err(ConfigError::words(words).into());
        }
        let models = self.models()?;
        let trials = self.drives.iter().map(|drive| self.of_drive(drive, true, 1));
        let once = self.all_of(trials.collect(), watch)?;
        let drives = self.drives(&models, &once, &facts, watch)?;
        let (caches, left_out) = self.caches(&facts, watch)?;
        let (_, workload, _) = &once[0];
        Ok(Verdict {
            schema: "imbrex.verdict/1",
            commit: String::new(),
            seed: self.seed,
            workload: workload.clone(),
            advice: advice(&drives, &caches),
            facts,
            drives,
            caches,
            left_out,
        })
    }

    /// The drive by itself. The zones of a host-aware one are full: a new one would take a drive's worth of
    /// writes without cleaning.
    fn of_drive(&self, drive: &str, is_open_loop: bool, rounds: u32) -> Trial {
        let is_zoned = imbrex_drives::Drive::open(drive)
            .is_ok_and(|it| it.model.zones.is_some() && it.model.translation.is_some());
        let settings = match is_zoned {
            true => vec!["translation.zones_filled=1.0".to_string()],
            false => vec![],
        };
        Trial { system: drive.to_string(), settings, is_open_loop, rounds }
    }

    /// Vendor and model of each drive.
    fn models(&self) -> Result<Vec<String>, ConfigError> {
        let model = |name: &String| {
            let words = |reason: String| ConfigError::words(format!("--drive {name}: {reason}"));
            let drive =
                imbrex_drives::Drive::open(name).map_err(|error| words(error.to_string()))?;
            if drive.model.zones.is_some() && drive.model.translation.is_none() {
                return Err(words(
                    "its zones must be written in sequence, by a host that knows them; accepted: conventional, \
                     drive-managed and host-aware drives"
                        .to_string(),
                ));
            }
            Ok(drive.model.name)
        };
        self.drives.iter().map(model).collect()
    }

    /// Makes the later runs of each drive: rounds back to back, and at the time stamps where the drive has kept up
    /// with the first.
    fn drives(
        &self,
        models: &[String],
        once: &[Made],
        facts: &Facts,
        watch: &Watch<'_>,
    ) -> Result<Vec<DriveVerdict>, RunError> {
        let mut trials = Vec::new();
        let mut has_over = Vec::new();
        for (drive, (run, _, command)) in self.drives.iter().zip(once) {
            let rounds = self.rounds(run, facts.requests);
            trials.push(self.of_drive(drive, false, rounds));
            let goes_on = Served::of(run, command.clone()).keeps_up && rounds > 1;
            has_over.push(goes_on);
            if goes_on {
                trials.push(self.of_drive(drive, true, rounds));
            }
        }
        let rounds: Vec<u32> = trials.iter().map(|trial| trial.rounds).collect();
        let made = self.all_of(trials, watch)?;
        let mut made = made.iter().zip(rounds);
        let mut next = || {
            let ((run, _, command), rounds) = made.next().expect("a run for each trial");
            (rounds, run, command.clone())
        };
        let verdicts = self.drives.iter().zip(models).zip(once).zip(has_over);
        let verdicts = verdicts.map(|(((drive, model), (run, _, command)), has_over)| {
            let sustained = next();
            let over = has_over.then(&mut next);
            let runs = DriveRuns { as_recorded: (run, command.clone()), over, sustained };
            DriveVerdict::new(drive, model, runs, facts)
        });
        Ok(verdicts.collect())
    }

    /// How many rounds fill the log of a drive twice, as far as the requests of a run may be so many.
    fn rounds(&self, once: &Run, requests: u64) -> u32 {
        let log = &once.log;
        let Some(capacity) = log.persistent_cache_bytes.filter(|capacity| *capacity > 0) else {
            return 1;
        };
        let appended = log.persistent_cache_bytes_appended as f64 / capacity as f64;
        let fill = once.figures.persistent_cache_fill.values.iter().copied().fold(0.0, f64::max);
        let per_round = appended.max(fill);
        if per_round == 0.0 {
            return 1;
        }
        let most =
            (self.requests_max / requests).clamp(1, u64::from(crate::experiment::ROUNDS_MAX));
        ((FILLS / per_round).ceil().max(2.0) as u64).min(most) as u32
    }

    /// Tries caches, the smallest size first, until one keeps up.
    fn caches(
        &self,
        facts: &Facts,
        watch: &Watch<'_>,
    ) -> Result<(Vec<CacheTrial>, Vec<String>), RunError> {
        let mut sizes = (self.cache_blocks)(BlockCount::from_bytes_floor(facts.touched_bytes).0);
        sizes.sort_unstable();
        let mut tried = Vec::new();
        let mut left_out = Vec::new();
        let candidates = candidates(if self.drives_are_named { self.drives } else { &[] })?;
        for blocks in sizes {
            let bytes = BlockCount(blocks).bytes();
            let (mut of_size, mut later) = (Vec::new(), Vec::new());
            let trials: Vec<Trial> = candidates.iter().map(|it| of_cache(it, bytes)).collect();
            let made = self.make(&trials, watch)?;
            for ((candidate, trial), made) in candidates.iter().zip(trials).zip(made) {
                match made {
                    Ok((run, _, command)) => {
                        let rounds = self.rounds(&run, facts.requests);
                        let served = Served::of(&run, command);
                        of_size.push(CacheTrial::new(candidate, bytes, facts, served, rounds));
                        later.push(Trial { rounds, ..trial });
                    }
                    Err(RunError::Config(error)) => {
                        left_out.push(format!("{}: {error}", candidate.system));
                    }
                    Err(error) => return Err(error),
                }
            }
            self.go_on(&mut of_size, later, watch)?;
            let does = of_size.iter().any(|it| it.is_shingled && it.keeps_up_for_good());
            tried.extend(of_size);
            if does {
                break;
            }
        }
        Ok((tried, left_out))
    }

    /// Has the best caches of a size go on until the log below them has been full. `later` are the runs for that,
    /// of all of them.
    fn go_on(
        &self,
        of_size: &mut [CacheTrial],
        later: Vec<Trial>,
        watch: &Watch<'_>,
    ) -> Result<(), RunError> {
        let mut best = finalists(of_size);
        best.retain(|index| of_size[*index].served.keeps_up && of_size[*index].rounds > 1);
        let later = later.into_iter().enumerate().filter(|(index, _)| best.contains(index));
        let made = self.all_of(later.map(|(_, trial)| trial).collect(), watch)?;
        for (index, (run, _, command)) in best.into_iter().zip(made) {
            of_size[index].over = Some(Over::of(of_size[index].rounds, &run, command));
        }
        Ok(())
    }

    /// Makes all runs, of which none may fail.
    fn all_of(&self, trials: Vec<Trial>, watch: &Watch<'_>) -> Result<Vec<Made>, RunError> {
        self.make(&trials, watch)?.into_iter().collect()
    }

    fn make(
        &self,
        trials: &[Trial],
        watch: &Watch<'_>,
    ) -> Result<Vec<Result<Made, RunError>>, RunError> {
        let mut cases = Vec::new();
        let mut failed = BTreeMap::new();
        for (index, trial) in trials.iter().enumerate() {
            match trial.config() {
                Ok(config) => {
                    let mut workload = Workload { repeat: trial.rounds, ..self.workload.clone() };
                    let mut case = self.case(config, trial.is_open_loop);
                    if trial.rounds > 1 && self.has_new_blocks() {
                        workload.new_blocks = true;
                        case.replay.placement.fit = Fit::Wrap;
                    }
                    cases.push((workload, case));
                }
                Err(error) => drop(failed.insert(index, error)),
            }
        }
        let tasks: Vec<Task<'_>> =
            cases.iter().map(|(workload, case)| Task::new(workload, self.seed, case)).collect();
        let made = make_runs(&tasks, self.jobs, watch);
        let left = made.iter().filter(|made| made.is_none()).count();
        if left > 0 {
            return Err(RunError::Stopped { left });
        }
        let mut made = made.into_iter().flatten();
        let results = trials.iter().enumerate().map(|(index, trial)| {
            if let Some(error) = failed.remove(&index) {
                return Err(error.into());
            }
            let made = made.next().expect("all were made");
            made.map(|(run, workload)| {
                (run, workload, trial.command(&self.words, self.has_new_blocks()))
            })
        });
        Ok(results.collect())
    }

    /// Whether rounds are on other blocks each time: a trace that fills a device has no others.
    fn has_new_blocks(&self) -> bool {
        !matches!(self.placement.fit, Fit::Scale { .. })
    }

    fn case(&self, config: StackConfig, is_open_loop: bool) -> Case {
        let mode = match is_open_loop {
            true => ReplayMode::OpenLoop { speed: 1.0 },
            false => ReplayMode::ClosedLoop { depth: 1 },
        };
        let limit = self.workload.limit;
        Case {
            config,
            parameters: BTreeMap::new(),
            replay: ReplayOptions { mode, limit, drop_reads: false, placement: self.placement },
            series: vec![],
            events: vec![],
            windows: vec![],
            cut_into_windows: false,
            heads: None,
            drive_scale: 1,
            movement: None,
            drive_scale_option: None,
        }
    }
}
