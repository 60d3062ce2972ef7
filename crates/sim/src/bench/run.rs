//! All measurements of some drives, several at a time.

use super::gates::MEASUREMENTS;
use super::row::{Measurement, Row};
use super::standard;
use super::subject::{BenchError, Subject};
use crate::progress::{Pieces, Progress};
use imbrex_drives::Drive;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is measured.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Names in the library or paths; every drive with a published figure when empty.
    pub drives: Vec<String>,
    /// Of every random choice.
    pub seed: u64,
    /// See [`Subject::quick`].
    pub quick: bool,
    /// Measurements at the same time.
    pub jobs: usize,
    /// See [`Subject::traces`].
    pub traces: Option<PathBuf>,
}

enum Task<'a> {
    /// With one of its seeds.
    Published {
        measurement: &'static Measurement,
        subject: Subject,
        /// The last of its seeds.
        is_last: bool,
    },
    Standard(&'a str),
}

/// What a task gave.
enum Outcome {
    /// A number for each gate of a measurement; see [`Measurement::values`].
    Values(Option<Vec<Option<f64>>>),
    Rows(Vec<Row>),
}

/// Measures, and returns the rows in the order of the drives and, for each drive, of its
/// measurements, whatever the number of jobs. `progress` hears of every measurement that is done.
///
/// # Errors
/// The first error in that order.
pub fn run(options: &BenchOptions, progress: Progress<'_>) -> Result<Vec<Row>, BenchError> {
    let drives = options.drive_names()?;
    let mut tasks: Vec<Task<'_>> = Vec::new();
    if drives.is_empty() {
        tasks.extend(MEASUREMENTS.iter().flat_map(|m| m.tasks(options)));
    }
    for drive in &drives {
        let of_drive = MEASUREMENTS.iter().filter(|m| m.drive == drive);
        tasks.extend(of_drive.flat_map(|m| m.tasks(options)));
        tasks.push(Task::Standard(drive));
    }
    let results =
        in_parallel(options.jobs, &tasks, progress, &Task::name, &|task| task.run(options));
    let mut rows = Vec::new();
    let mut of_seeds = Vec::new();
    for (task, result) in tasks.iter().zip(results) {
        match result? {
            Outcome::Rows(of_drive) => rows.extend(of_drive),
            Outcome::Values(values) => of_seeds.push(values),
        }
        if let Task::Published { measurement, is_last: true, .. } = task {
            rows.extend(measurement.rows_of(&std::mem::take(&mut of_seeds)));
        }
    }
    Ok(rows)
}

impl Measurement {
    /// One for each of its seeds.
    fn tasks<'a>(&'static self, options: &BenchOptions) -> Vec<Task<'a>> {
        let subjects = self.subjects(&options.subject(self.drive));
        let seeds = subjects.len();
        let subjects = subjects.into_iter().enumerate();
        let tasks = subjects.map(|(number, subject)| Task::Published {
            measurement: self,
            subject,
            is_last: number + 1 == seeds,
        });
        tasks.collect()
    }
}

impl Task<'_> {
    /// What is told when it has ended.
    fn name(&self) -> String {
        match self {
            Task::Published { measurement, .. } => {
                format!("{} {}", measurement.drive, measurement.gates[0].metric)
            }
            Task::Standard(drive) => format!("{drive} standard measurements"),
        }
    }

    fn run(&self, options: &BenchOptions) -> Result<Outcome, BenchError> {
        Ok(match self {
            Task::Published { measurement, subject, .. } => {
                Outcome::Values(measurement.values(subject)?)
            }
            Task::Standard(drive) => Outcome::Rows(standard::rows(&options.subject(drive))?),
        })
    }
}

/// Does something with every task, `jobs` at a time, and gives the results in their order. `progress` hears
/// of each by its name.
pub(super) fn in_parallel<T: Sync, R: Send + Sync>(
    jobs: usize,
    tasks: &[T],
    progress: Progress<'_>,
    name: &(dyn Fn(&T) -> String + Sync),
    work: &(dyn Fn(&T) -> R + Sync),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let pieces = Pieces::begin(progress, 0, tasks.len());
    let results: Vec<OnceLock<R>> = tasks.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(index) else {
                        return;
                    };
                    let _ = results[index].set(work(task));
                    pieces.end(&name(task));
                }
            });
        }
    });
    let results = results.into_iter();
    results.map(|result| result.into_inner().expect("every task was done")).collect()
}

impl BenchOptions {
    /// The drives as the library spells them, which may be given in any letter case.
    ///
    /// # Errors
    /// When there is no such drive.
    pub(super) fn drive_names(&self) -> Result<Vec<String>, BenchError> {
        let drives = self.drives.iter();
        drives.map(|drive| Ok(Drive::open(drive)?.file)).collect()
    }

    /// A drive of the library as these options want it measured.
    pub(super) fn subject(&self, drive: &str) -> Subject {
        Subject {
            drive: drive.to_string(),
            settings: Vec::new(),
            seed: self.seed,
            quick: self.quick,
            traces: self.traces.clone(),
        }
    }
}
