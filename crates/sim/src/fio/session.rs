//! A stack on which jobs run one after another, in one virtual time.

use super::closed_loop::Clone;
use super::engine::{Jobs, in_flight_max, writes};
use super::job::{IN_FLIGHT_MAX, Job, JobError};
use super::outcome::Outcome;
use super::zoned::{self, Zones};
use crate::progress::{Pieces, Progress};
use crate::simulation::{VirtualClock, format};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::operation::Completion;
use imbrex_core::rng::Rng;
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use imbrex_stack::{
    BuildOptions, Built, ConfigError, Describe, Footprint, Plan, StackConfig, WindowsBy,
};

/// Why jobs could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The stack is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A job is wrong.
    #[error(transparent)]
    Job(#[from] JobError),
}

/// A stack that keeps its state from one run of jobs to the next.
///
/// Time stands still between runs: what the stack was doing in the background when the last job
/// ended goes on with the next run or [`idle`](Session::idle).
pub struct Session {
    /// The stack, its disks and buffers. Counters of nodes are in `engine.stack.counts(node)`.
    pub engine: Engine,
    /// Which node is what, and what the disks counted.
    pub describe: Describe,
    /// What the shares of the stack were shares of, where it has any.
    pub footprint: Option<Footprint>,
    clock: VirtualClock,
    seed: u64,
    runs: u64,
    /// Of a device that has any.
    zones: Option<Zones>,
}

/// Sends nothing until an instant has come.
struct Idle {
    until: Instant,
    over: bool,
}

impl Frontend for Idle {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.over).then_some(self.until)
    }

    fn poll(&mut self, now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        self.over = now >= self.until;
        None
    }

    fn reply(&mut self, _now: Instant, _completion: Completion, _buffers: &mut Buffers) {
        unreachable!("an answer to nobody")
    }

    fn finished(&self) -> bool {
        self.over
    }
}

impl Session {
    /// Builds a stack for `jobs`: shares are of the bands their regions reach into.
    ///
    /// # Errors
    /// When the stack cannot be built, needs to know the future, or a job does not fit it.
    pub fn open(
        config: &StackConfig,
        options: &BuildOptions,
        jobs: &[Job],
    ) -> Result<Session, SessionError> {
        let top = config.top();
        if top.windows().is_some_and(|windows| windows.by != WindowsBy::Address) {
            return Err(ConfigError::words(format!(
                "node `{}`: kind = \"{}\" takes no job: its requests have one address space and no \
                 device number to choose a node by; accepted: kind = \"span\"",
                top.name(),
                top.kind()
            ))
            .into());
        }
        let plan = Plan::new(config, options)?;
        let device_bytes = plan.blocks().bytes();
        for job in jobs {
            job.check(device_bytes)?;
        }
        if plan.needs_lookups() {
            return Err(ConfigError::words(format!(
                "system `{}`: policy `opt` must know all requests before the first, which a job does \
                 not tell; accepted: a policy that does not",
                config.name
            ))
            .into());
        }
        let footprint = match plan.bands() {
            Some(bands) if plan.needs_footprint() => {
                let used = |by: &dyn Fn(&Job) -> bool| {
                    let regions = regions_of(jobs.iter().filter(|job| by(job)), device_bytes);
                    bytes_of_bands(bands, &regions)
                };
                Some(Footprint {
                    touched_bytes: used(&|job| !plan.is_write_only() || writes(job)),
                    written_bytes: used(&writes),
                })
            }
            _ => None,
        };
        let built = plan.build(footprint, None, ContentKind::Counted)?;
        Ok(Session { footprint, ..Session::new(built, options.seed) })
    }

    /// A session on a stack that is already built. `seed` is that of random choices of jobs without
    /// `randrepeat`.
    pub fn new(built: Built, seed: u64) -> Session {
        let Built { stack, disks, describe } = built;
        let mut engine = Engine {
            stack,
            disks,
            buffers: Buffers::new(ContentKind::Counted),
            in_flight_max: IN_FLIGHT_MAX as u32,
        };
        format(&mut engine);
        let zones = engine.stack.geometry().zones.as_ref().map(Zones::new);
        Session {
            engine,
            zones,
            describe,
            footprint: None,
            clock: VirtualClock::default(),
            seed,
            runs: 0,
        }
    }

    /// Size of the device.
    pub fn device_bytes(&self) -> u64 {
        self.engine.stack.geometry().blocks.bytes()
    }

    /// The present time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Lets time pass without a request.
    pub fn idle(&mut self, span: Duration) {
        let mut idle = Idle { until: self.now() + span, over: false };
        self.run_frontend(&mut idle);
    }

    /// Serves the requests of somebody else than a job, until there are no more.
    pub(crate) fn run_frontend(&mut self, frontend: &mut dyn Frontend) {
        self.engine.run_frontend(&mut self.clock, frontend);
    }

    /// Runs jobs: those up to the next with `stonewall` together, then the following ones. Returns
    /// when the last has ended.
    ///
    /// # Errors
    /// When a job does not fit the device; nothing has run then. An error of the device is in the
    /// outcome of its job.
    pub fn run(&mut self, jobs: &[Job]) -> Result<Outcome, SessionError> {
        self.run_watched(jobs, &|_| {})
    }

    /// The same for somebody who hears of every job that ends, each of its clones.
    ///
    /// # Errors
    /// As [`run`](Session::run).
    pub fn run_watched(
        &mut self,
        jobs: &[Job],
        progress: Progress<'_>,
    ) -> Result<Outcome, SessionError> {
        let device_bytes = self.device_bytes();
        for job in jobs {
            job.check(device_bytes)?;
        }
        zoned::check(jobs, self.zones.as_ref(), device_bytes)?;
        let walls = walls_of(jobs, device_bytes, self.zones.as_ref(), self.seed ^ self.runs);
        for wall in &walls {
            let depth = in_flight_max(wall);
            if depth > IN_FLIGHT_MAX {
                return Err(JobError {
                    job: wall[0].job.name.clone(),
                    option: "iodepth",
                    value: format!("{depth} with all jobs that run together"),
                    accepted: format!("1 to {IN_FLIGHT_MAX}"),
                }
                .into());
            }
        }
        self.runs += 1;
        let started = self.now();
        let mut outcome =
            Outcome { jobs: Vec::new(), started, ended: started, busy: Duration::ZERO };
        let pieces = Pieces::begin(progress, 0, walls.iter().map(Vec::len).sum());
        for wall in &walls {
            let now = self.now();
            let mut running = Jobs::new(wall, self.zones.as_mut(), &pieces, now);
            self.engine.run_frontend(&mut self.clock, &mut running);
            outcome.ended = running.ended;
            outcome.busy += running.busy;
            outcome.jobs.extend(running.into_outcomes());
        }
        Ok(outcome)
    }
}

/// Start and length in bytes of the region of every clone of `jobs`.
fn regions_of<'a>(jobs: impl Iterator<Item = &'a Job>, device_bytes: u64) -> Vec<(u64, u64)> {
    jobs.flat_map(|job| (0..job.numjobs).map(move |clone| (job, clone)))
        .filter_map(|(job, clone)| job.region(clone, device_bytes))
        .collect()
}

/// Bytes of the bands that regions reach into.
fn bytes_of_bands(bands: &BandTable, regions: &[(u64, u64)]) -> u64 {
    let touches = |from: u64, to: u64| {
        let mut regions = regions.iter();
        regions.any(|(start, length)| *start < to && from < start + length)
    };
    let extents = (0..bands.bands()).map(|band| bands.extent_of(BandId(band)));
    extents
        .filter(|e| touches(e.start.0 * BLOCK_BYTES, e.end().0 * BLOCK_BYTES))
        .map(|extent| extent.blocks.bytes())
        .sum()
}

/// The clones of the jobs, in the groups that run together.
fn walls_of<'a>(
    jobs: &'a [Job],
    device_bytes: u64,
    zones: Option<&Zones>,
    seed: u64,
) -> Vec<Vec<Clone<'a>>> {
    let mut walls: Vec<Vec<Clone<'a>>> = Vec::new();
    let (mut group, mut thread) = (0, 0u64);
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 && (job.stonewall || job.new_group) {
            group += 1;
        }
        if walls.is_empty() || job.stonewall {
            walls.push(Vec::new());
        }
        for clone in 0..job.numjobs {
            thread += 1;
            let (start, length) =
                job.region(clone, device_bytes).expect("the job was checked against the device");
            let zoned = zones.zip(job.zones);
            let (start, length) = match zoned {
                Some((zones, _)) => zones.whole_zones(start, length),
                None => (start, length),
            };
            let root = match job.rand_repeat {
                true => job.rand_seed.unwrap_or(0),
                false => seed ^ job.rand_seed.unwrap_or(0),
            };
            walls.last_mut().expect("one was pushed").push(Clone {
                job,
                index,
                clone,
                group,
                start,
                length,
                seed: Rng::new(root, thread).next_u64(),
                zoned: zoned.map(|(zones, access)| {
                    zones.of_clone(job, access, thread as u32, start..start + length)
                }),
            });
        }
    }
    walls
}
