//! All measurements of some drives, several at a time.

use super::gates::MEASUREMENTS;
use super::row::{Measurement, Row};
use super::standard;
use super::subject::{BenchError, Subject};
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
    Published(&'a Measurement),
    Standard(&'a str),
}

/// Measures, and returns the rows in the order of the drives and, for each drive, of its
/// measurements, whatever the number of jobs. `progress` hears of every measurement that is done.
///
/// # Errors
/// The first error in that order.
pub fn run(
    options: &BenchOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Row>, BenchError> {
    let mut tasks: Vec<Task<'_>> = Vec::new();
    if options.drives.is_empty() {
        tasks.extend(MEASUREMENTS.iter().map(Task::Published));
    }
    let drives = options.drive_names()?;
    for drive in &drives {
        let of_drive = MEASUREMENTS.iter().filter(|m| m.drive == drive);
        tasks.extend(of_drive.map(Task::Published));
        tasks.push(Task::Standard(drive));
    }
    let results = in_parallel(options.jobs, &tasks, &|task| {
        let result = match task {
            Task::Published(measurement) => measurement.rows(&options.subject(measurement.drive)),
            Task::Standard(drive) => standard::rows(&options.subject(drive)),
        };
        if let Ok(rows) = &result
            && let Some(row) = rows.first()
        {
            progress(&format!("{} {}", row.drive, row.metric));
        }
        result
    });
    let mut rows = Vec::new();
    for result in results {
        rows.extend(result?);
    }
    Ok(rows)
}

/// Does something with every task, `jobs` at a time, and gives the results in their order.
pub(super) fn in_parallel<T: Sync, R: Send + Sync>(
    jobs: usize,
    tasks: &[T],
    work: &(dyn Fn(&T) -> R + Sync),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
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
                }
            });
        }
    });
    let results = results.into_iter();
    results
        .map(|result| result.into_inner().expect("every task was done"))
        .collect()
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

impl Measurement {
    /// Measures, and puts what came out beside what was published.
    ///
    /// # Errors
    /// When the drive cannot be built, or fails a request.
    pub fn rows(&self, subject: &Subject) -> Result<Vec<Row>, BenchError> {
        if self.needs_traces && subject.traces.is_none() {
            let gates = self.gates.iter();
            return Ok(gates
                .map(|gate| gate.row_not_measured(self.drive))
                .collect());
        }
        let values = (self.measure)(subject)?;
        assert_eq!(values.len(), self.gates.len(), "a value for each gate");
        let gates = self.gates.iter().zip(values);
        Ok(gates
            .map(|(gate, value)| gate.row(self.drive, value))
            .collect())
    }
}
