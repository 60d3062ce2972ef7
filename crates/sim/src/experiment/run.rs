//! Runs of stacks on workloads, and the report they make.

use super::combined::told as combination_of;
use super::events::{EventConfig, events_of, too_few_requests};
use super::footprints::{FootprintKey, Footprints};
use super::heads::HeadsConfig;
use super::jobs::JobError;
use super::kept::Wanted;
use super::member_movement::{DiskRecordings, MovementConfig};
use super::request_logs::RequestSink;
use super::rounds::Rounds;
use super::state_file::StateFileError;
use super::workload::{Until, Workload};
use crate::events::{Event, NeverGiven, Scripted};
use crate::record_source::RecordSource;
use crate::replay::{
    Cut, Dealt, Fit, ReplayCounts, ReplayError, ReplayOptions, Replayer, StreamWindow, Windows,
};
use crate::simulation::{VirtualClock, format};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::engine::Engine;
use imbrex_core::error::BroughtFailure;
use imbrex_core::extent::Extent;
use imbrex_core::stack::Stack;
use imbrex_core::units::{BLOCK_BYTES, Instant, Lba};
use imbrex_report::{
    MemoryUser, OverDisks, Recorder, ReplayMode, Report, Run, SimulationCost, WarmUpUse,
    WorkloadKind,
};
use imbrex_stack::{
    ActivityObserver, ArrayObserver, BuildOptions, Built, CollectionObserver, ConfigError,
    Describe, FillObserver, Footprint, GaugeObserver, GhostObserver, PastRun, Plan, StackConfig,
    WindowsBy,
};
use imbrex_traces::{BlockRule, SourceKind, TraceError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests in the stack at once when a replay has no queue depth of its own.
const IN_FLIGHT_MAX: u32 = 4096;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The trace is wrong.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An open loop needs the times of the trace.
    #[error(
        "{trace}: its format ({format}) says nothing of times, at which an open loop would issue \
         the requests; accepted: a trace with times, or a queue depth or streams instead"
    )]
    NoTimes {
        /// The workload.
        trace: String,
        /// What it was read as.
        format: String,
    },
    /// The replay stopped.
    #[error("{trace}: {error}")]
    Replay {
        /// The workload.
        trace: String,
        /// Why.
        error: Box<ReplayError>,
    },
    /// Somebody stopped the runs, and what is finished of them says nothing.
    #[error("stopped; runs that were not made to their ends: {left}")]
    Stopped {
        /// How many were not made to their ends.
        left: usize,
    },
    /// The log of the requests cannot be written.
    #[error("{}: {error}", path.display())]
    RequestLog {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The state of the stack cannot be read or written.
    #[error(transparent)]
    State(#[from] StateFileError),
    /// A job of a sweep cannot be planned, read or made.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Code that was brought to the stack has failed.
    #[error("system `{system}`: {failure}")]
    Brought {
        /// The stack.
        system: String,
        /// Why, as whoever brought the code says it.
        failure: BroughtFailure,
    },
}

/// One stack on one workload.
#[derive(Clone, Debug)]
pub struct Case {
    /// The stack.
    pub config: StackConfig,
    /// Swept settings, for the label.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// How the workload is replayed.
    pub replay: ReplayOptions,
    /// Gauges to record, as `NODE.GAUGE`; those of other stacks' nodes are left out.
    pub series: Vec<String>,
    /// Commands to nodes; those to other stacks' nodes are left out.
    pub events: Vec<EventConfig>,
    /// Windows of the span at the top that the streams of the replay have as their devices.
    pub windows: Vec<String>,
    /// Whether a trace of one device is cut into the windows of a device that has one for each device of a trace.
    pub cut_into_windows: bool,
    /// The time in which it is told what went to the disks; none when nobody asks.
    pub heads: Option<HeadsConfig>,
    /// The model by which movement of the disks is counted; none when it is not.
    pub movement: Option<MovementConfig>,
    /// Divides capacity, persistent-cache bytes and entries of the drives; 1 for full size.
    pub drive_scale: u64,
    /// The option by which a user sets `drive_scale`; none where the command has no such option.
    pub drive_scale_option: Option<&'static str>,
}

/// One run to be made: a case, its workload and its seed.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The root seed.
    pub seed: u64,
    /// The stack and how it is driven.
    pub case: &'a Case,
    /// The files that the run reads and writes.
    pub files: RunFiles<'a>,
}

/// Files that runs read and write beside their trace, as their options name them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunFiles<'a> {
    /// Where there is a row for each request (`--log-requests`).
    pub request_log: Option<RequestSink<'a>>,
    /// Where the state of the stack behind the warm-up is written (`--save-state`).
    pub save_state: Option<&'a Path>,
    /// Where a stack has its first state from (`--state`).
    pub state: Option<&'a Path>,
    /// The build: it takes back no state that another one has written.
    pub program: &'a str,
}

impl<'a> Task<'a> {
    /// A run without other files.
    pub fn new(workload: &'a Workload, seed: u64, case: &'a Case) -> Task<'a> {
        Task { workload, seed, case, files: RunFiles::default() }
    }
}

/// The report of runs over one workload.
pub(super) fn report_of(
    seed: u64,
    results: Vec<(Run, imbrex_report::Workload)>,
) -> Result<Report, RunError> {
    let (runs, workloads): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let workload = workloads
        .into_iter()
        .next_back()
        .ok_or_else(|| ConfigError::words("there is no system to run"))?;
    let mut report = Report::new(seed, workload);
    report.runs = runs;
    Ok(report)
}

impl Task<'_> {
    pub(super) fn options(&self) -> BuildOptions {
        BuildOptions { scale: self.case.drive_scale, ..BuildOptions::simulate(self.seed) }
    }

    /// The stack with the sizes that shares of the workload's footprint have.
    pub(super) fn build(
        &self,
        options: &BuildOptions,
        footprints: &Footprints,
        stop: &AtomicBool,
    ) -> Result<(Plan, Option<Footprint>, Built), RunError> {
        let plan = Plan::new(&self.case.config, options)?;
        let is_untimed = self.case.replay.mode == ReplayMode::Untimed;
        if is_untimed {
            plan.check_untimed()?;
        }
        let _passes = self.first_passes(&plan);
        let writes_only = plan.is_write_only() || self.case.replay.drop_reads;
        let footprint = self.footprint(&plan, writes_only, footprints, stop)?;
        let lookups = self.lookups(&plan, writes_only, stop)?;
        let lookups = lookups.as_deref();
        let built = match is_untimed {
            true => plan.build_untimed(footprint, lookups)?,
            false => plan.build(footprint, lookups, ContentKind::Counted)?,
        };
        Ok((plan, footprint, built))
    }

    /// Announces the passes over the workload that come before its replay.
    fn first_passes(&self, plan: &Plan) -> Wanted {
        let passes = [plan.needs_footprint(), plan.needs_lookups()];
        self.workload.kept.want(passes.into_iter().map(usize::from).sum())
    }

    /// Makes the run. What it finds after it was stopped means nothing.
    pub(super) fn run(
        &self,
        footprints: &Footprints,
        stop: &AtomicBool,
    ) -> Result<(Run, imbrex_report::Workload), RunError> {
        let started = std::time::Instant::now();
        let memory = MemoryUser::enter();
        let options = self.options();
        let (plan, footprint, built) = self.build(&options, footprints, stop)?;
        let Replayed { mut run, workload, counts, stack, describe } = match self.case.replay.mode {
            ReplayMode::Untimed => self.count(built, stop)?,
            _ => self.replay(built, &plan, footprint, stop)?,
        };
        let blocks = self.case.replay.placement.blocks;
        run.inputs.blocks = (blocks != BlockRule::default()).then(|| blocks.name().to_string());
        run.inputs.footprint_bytes = footprint.map(|footprint| footprint.touched_bytes);
        run.inputs.written_footprint_bytes = footprint
            .filter(|_| plan.has_log_of_written_bands())
            .map(|footprint| footprint.written_bytes);
        run.parameters.clone_from(&self.case.parameters);
        let past = PastRun {
            config: &self.case.config,
            options: &options,
            footprint,
            host_wrote: counts.write_blocks > 0,
            end_bytes: counts.end_blocks * BLOCK_BYTES,
            scale_option: self.case.drive_scale_option,
        };
        run.log.no_cleaning = past.no_cleaning(&describe, &stack);
        let wall_s = started.elapsed().as_secs_f64();
        run.simulation = SimulationCost {
            wall_s,
            requests_per_s: run.host.requests as f64 / wall_s.max(1e-9),
            peak_rss_bytes: memory.peak_rss_bytes(),
        };
        Ok((run, workload))
    }

    /// Replays the workload on a stack, with what is watched meanwhile.
    fn replay(
        &self,
        built: Built,
        plan: &Plan,
        footprint: Option<Footprint>,
        stop: &AtomicBool,
    ) -> Result<Replayed, RunError> {
        let replay = self.replay_options();
        let Built { stack, disks, describe } = built;
        let blocks = stack.geometry().blocks;
        let buffers = Buffers::new(ContentKind::Counted);
        let in_flight_max = in_flight_max(replay.mode);
        let mut engine = Engine { stack, disks, buffers, in_flight_max };
        let mut gauges = GaugeObserver::new(&self.case.series, &describe)?;
        format(&mut engine);
        let recordings = DiskRecordings::new(self.case.movement.clone(), &mut engine);
        let records = self.records(stop)?;
        let dealt = self.dealt(&describe, stop)?;
        let names: Vec<_> = dealt.windows.all().iter().map(|it| it.name.clone()).collect();
        let records = Until::new(records, stop);
        let recorder = Rc::new(RefCell::new(Recorder::new()));
        let shared = Rc::clone(&recorder);
        let mut replayer = Replayer::in_windows(records, replay, blocks, dealt, shared)
            .with_activities(engine.stack.activities());
        let mut clock = VirtualClock::default();
        let state = self.state_of(plan, footprint)?;
        let state = state.as_ref();
        let begun = self.begin(state, &mut replayer, &mut engine, &mut clock, &describe, stop)?;
        let from = begun.from;
        recordings.restart();
        self.begin_log(&mut replayer)?;
        self.watch_heads(&describe, from)?;
        let mut fill = FillObserver::new(&describe, Rc::clone(&recorder));
        let mut arrays = ArrayObserver::new(&describe, Rc::clone(&recorder));
        let mut activities = ActivityObserver::new(&describe, &engine.stack, Rc::clone(&recorder));
        let mut ghosts = GhostObserver::new(&describe);
        let mut collections = CollectionObserver::new(&describe);
        let mut events = events_of(&self.case.events, plan, footprint, &describe, &engine.stack);
        recordings.follow(&mut events);
        // What most stacks do not have.
        let has_more =
            collections.has_any() || arrays.has_any() || ghosts.has_any() || gauges.has_any();
        let mut observe = |now: Instant, stack: &Stack| {
            let now = Instant(now.since(from).0);
            fill.observe(now, stack);
            activities.observe(now, stack);
            if has_more {
                collections.observe(now, stack);
                arrays.observe(now, stack);
                ghosts.observe(stack);
                gauges.observe(now, stack);
            }
        };
        let (mut replayer, events) =
            run_with(replayer, events, (&mut engine, &mut clock), from, &mut observe);
        self.check_replayed(&mut replayer, &engine.stack)?;
        self.end_log(&mut replayer)?;
        let counts = replayer.counts;
        let system = &self.case.config.name;
        let events = events.map_err(|never| too_few_requests(system, never, counts.requests))?;
        let workload = self.told(replayer.records(), counts, begun.warm_up)?;
        let measured = begun.measured(replayer.finished_at);
        let finished_at = measured.length();
        let last_arrival_s = measured.seconds(replayer.last_arrival);
        let cut = replayer.cut();
        drop(replayer);
        drop((fill, activities));
        let rebuilds = arrays.finish(finished_at);
        let recorder = Rc::into_inner(recorder).expect("the replay is over");
        let mut run = describe.run(&engine.stack, counts.into(), replay.mode);
        recorder.into_inner().finish(finished_at.0, &mut run);
        if matches!(replay.mode, ReplayMode::OpenLoop { .. }) {
            run.costs.set_last_arrival(last_arrival_s);
        }
        gauges.finish(finished_at, &mut run);
        run.figures.rebuild_progress = rebuilds;
        run.ghosts = ghosts.finish();
        run.events = events;
        run.movement = recordings.finish(&describe, &engine.stack)?;
        describe.finish(measured, &mut run);
        run.inputs.warm_up = begun.warm_up;
        run.windows.cut_into_windows = cut;
        if !names.is_empty() {
            run.windows.windows_lost = describe.windows_lost(&names, &engine.stack);
            let (disks, seek_time_s) = (run.disks.len(), run.costs.seek_time_s);
            run.windows.over_disks = OverDisks::of(&run.windows.windows, disks, seek_time_s);
        }
        run.figures.tables.extend(collections.finish(finished_at));
        Ok(Replayed { run, workload, counts, stack: engine.stack, describe })
    }

    /// How all rounds of the workload are replayed.
    pub(super) fn replay_options(&self) -> ReplayOptions {
        let (replay, rounds) = (self.case.replay, u64::from(self.workload.repeat));
        ReplayOptions { limit: replay.limit.map(|limit| limit.saturating_mul(rounds)), ..replay }
    }

    /// The records to be replayed, from the start.
    pub(super) fn records(&self, stop: &AtomicBool) -> Result<Rounds, RunError> {
        let records = Rounds::new(self.workload, self.case.replay.limit, stop)?;
        if matches!(self.case.replay.mode, ReplayMode::OpenLoop { .. }) {
            let told = records.told();
            if !told.has_times {
                let trace = self.workload.path.clone();
                return Err(RunError::NoTimes { trace, format: told.detected });
            }
        }
        Ok(records)
    }

    /// Says what has ended a replay early, if anything has.
    pub(super) fn check_replayed<I>(
        &self,
        replayer: &mut Replayer<I>,
        stack: &Stack,
    ) -> Result<(), RunError>
    where
        I: RecordSource,
    {
        let ended = replayer.take_error().map_err(|error| self.stopped(error));
        match stack.failure() {
            None => ended,
            // What the requests say follows from that.
            Some(failure) => {
                Err(RunError::Brought { system: self.case.config.name.clone(), failure })
            }
        }
    }

    /// What has ended a replay early.
    pub(super) fn stopped(&self, error: ReplayError) -> RunError {
        match error {
            // It names the trace, and the line.
            ReplayError::Trace(error) => RunError::Trace(error),
            error => RunError::Replay { trace: self.workload.path.clone(), error: Box::new(error) },
        }
    }

    /// What a report says of the workload, which was read to its end.
    pub(super) fn told(
        &self,
        records: &Until<'_, Rounds>,
        counts: ReplayCounts,
        warm_up: Option<WarmUpUse>,
    ) -> Result<imbrex_report::Workload, RunError> {
        // The file may be long, and nobody waits for what was stopped.
        let is_stopped = records.stop.load(Ordering::Relaxed);
        let told = records.records.told();
        let sha256 = match is_stopped {
            false => self.workload.sha256_of(&told)?,
            true => None,
        };
        Ok(imbrex_report::Workload {
            path: self.workload.path.clone(),
            kind: kind_of(told.kind),
            requests: counts.requests - counts.added_requests
                + counts.skipped_reads
                + warm_up.map_or(0, |warm_up| warm_up.requests),
            sha256,
            format: Some(told.detected),
            repeat: self.workload.repeat,
            new_blocks: self.workload.new_blocks,
            skipped_lines: told.skipped,
            captured_response_ms: records.records.captured(),
            time_inversions: told.time_inversions,
            combination: self
                .workload
                .combined
                .as_deref()
                .map(|combined| combination_of(combined, &self.case.parameters)),
        })
    }

    /// Which records have a part of the device as theirs, and how their addresses fit into it.
    pub(super) fn dealt(&self, describe: &Describe, stop: &AtomicBool) -> Result<Dealt, RunError> {
        let windows = self.cut_if_asked(windows_of(self.case, describe)?, stop)?;
        // A device of a trace may have no requests; what is dealt must be enough for all.
        let (takers, what) = match (&windows, self.case.replay.mode) {
            (Windows::OfStreams(_), ReplayMode::Streams { streams, .. }) => {
                (Some(u64::from(streams)), "streams")
            }
            (Windows::InTurn(_), _) => (self.case.replay.limit, "requests"),
            _ => (None, ""),
        };
        let count = windows.all().len();
        if let Some(takers) = takers.filter(|takers| count as u64 > *takers) {
            return Err(ConfigError::words(format!(
                "windows: {count} of system `{}` for {takers} {what}; accepted: no more windows than {what}",
                self.case.config.name
            ))
            .into());
        }
        let is_scaled = matches!(self.case.replay.placement.fit, Fit::Scale { .. });
        let spans_bytes = match &windows {
            Windows::OfSources(_) | Windows::InTurn(_) if is_scaled => {
                self.workload.device_spans_bytes(stop)?
            }
            Windows::OfParts(windows, cut) if is_scaled => {
                vec![cut.part_blocks() * BLOCK_BYTES; windows.len()]
            }
            _ => vec![],
        };
        Ok(Dealt { windows, spans_bytes })
    }

    /// The windows of the sources as windows of the parts of the only source, where the case asks for that and the
    /// workload has one device. Standard input is not cut, because that needs a first pass.
    fn cut_if_asked(&self, windows: Windows, stop: &AtomicBool) -> Result<Windows, RunError> {
        match windows {
            Windows::OfSources(known)
                if self.case.cut_into_windows && known.len() > 1 && !self.workload.is_stream() =>
            {
                let blocks = self.case.replay.placement.blocks;
                let touched = self.workload.touched(blocks, stop)?.of_one_device();
                Ok(match touched {
                    Some(range) => {
                        let cut = Cut::new(range, known.len());
                        Windows::OfParts(known, cut)
                    }
                    None => Windows::OfSources(known),
                })
            }
            windows => Ok(windows),
        }
    }

    /// Keeps what schedulers hand down in the time that the case asks for.
    fn watch_heads(&self, describe: &Describe, from: Instant) -> Result<(), ConfigError> {
        let Some(heads) = self.case.heads else {
            return Ok(());
        };
        let after = |at: Instant| Instant(from.0 + at.0);
        if describe.watch_heads(after(heads.from()), after(heads.until())) {
            return Ok(());
        }
        Err(ConfigError::words(format!(
            "[heads]: system `{}` has no scheduler that could tell of its disks; accepted: a stack with nodes of \
             kind \"scheduler\"",
            self.case.config.name
        )))
    }

    /// The future of a clairvoyant cache, where the stack has one.
    fn lookups(
        &self,
        plan: &Plan,
        writes_only: bool,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<Lba>>, RunError> {
        if !plan.needs_lookups() {
            return Ok(None);
        }
        if self.workload.is_stream() {
            return Err(ConfigError::words(format!(
                "system `{}`: policy `opt` or prefill = \"touched\" needs a first pass, which \
                 standard input does not allow; give a file",
                self.case.config.name
            ))
            .into());
        }
        let placement = self.case.replay.placement;
        let lookups = self.workload.lookups(plan.blocks(), placement, writes_only, stop)?;
        Ok(Some(lookups))
    }
}

/// Requests in the stack at once.
fn in_flight_max(mode: ReplayMode) -> u32 {
    match mode {
        ReplayMode::ClosedLoop { depth } => depth,
        _ => IN_FLIGHT_MAX,
    }
}

/// Replays to the end, with the events if there are any. Their instants count from one.
fn run_with<I: RecordSource>(
    mut replayer: Replayer<I>,
    events: Vec<Event<'_>>,
    (engine, clock): (&mut Engine, &mut VirtualClock),
    from: Instant,
    observe: &mut impl FnMut(Instant, &Stack),
) -> (Replayer<I>, Result<Vec<imbrex_report::EventUse>, NeverGiven>) {
    if events.is_empty() {
        engine.run(clock, &mut replayer, observe);
        return (replayer, Ok(vec![]));
    }
    let next_member = engine.stack.next_member();
    let mut scripted = Scripted::new(replayer, events, next_member, from);
    engine.run(clock, &mut scripted, observe);
    scripted.finish()
}

/// A workload that was replayed on a stack.
pub(super) struct Replayed {
    pub run: Run,
    pub workload: imbrex_report::Workload,
    pub counts: ReplayCounts,
    pub stack: Stack,
    pub describe: Describe,
}

impl Task<'_> {
    /// What shares of the stack are shares of; nothing when it has none.
    fn footprint(
        &self,
        plan: &Plan,
        writes_only: bool,
        footprints: &Footprints,
        stop: &AtomicBool,
    ) -> Result<Option<Footprint>, RunError> {
        if !plan.needs_footprint() {
            return Ok(None);
        }
        let wrong = |message: &str| {
            let system = &self.case.config.name;
            ConfigError::words(format!("system `{system}`: {message}"))
        };
        let Some(bands) = plan.bands() else {
            return Err(wrong("a share of touched bands needs a stack with bands").into());
        };
        if self.workload.is_stream() {
            return Err(wrong(
                "a share of touched bands needs a first pass, which standard input does not allow; \
                 set sizes in bytes, or give a file",
            )
            .into());
        }
        let placement = self.case.replay.placement;
        let key = FootprintKey {
            workload: format!("{:?}", self.workload),
            bands: plan.bands_key().to_string(),
            writes_only,
            placement,
        };
        let pass =
            || self.workload.footprint_until(bands, plan.blocks(), placement, writes_only, stop);
        Ok(Some(footprints.get(key, pass)?))
    }
}

/// Which parts of the device the streams of a case have as their devices, or the sources of its
/// workload where each has a node of its own.
fn windows_of(case: &Case, describe: &Describe) -> Result<Windows, ConfigError> {
    let Some(own) = case.config.top().windows() else {
        return match case.windows.first() {
            None => Ok(Windows::None),
            Some(name) => Err(ConfigError::words(format!(
                "windows: `{name}`: the device of system `{}` has no windows; accepted: a stack with \
                 a node of kind \"span\" at its top",
                case.config.name
            ))),
        };
    };
    let mut end = 0;
    let mut known = Vec::new();
    for name in &own.nodes {
        let blocks = describe.blocks_of(name).map_or(0, |blocks| blocks.0);
        known.push(StreamWindow { name: (*name).to_owned(), extent: Extent::new(end, blocks) });
        end += blocks;
    }
    if own.by != WindowsBy::Address {
        return match case.windows.first() {
            None if own.by == WindowsBy::Turn => Ok(Windows::InTurn(known)),
            None => Ok(Windows::OfSources(known)),
            Some(name) => Err(ConfigError::words(format!(
                "windows: `{name}`: the device of system `{}` deals requests to its windows itself, so no \
                 stream can have one; accepted: no windows, or a node of kind \"span\" at its top that has \
                 by = \"address\"",
                case.config.name
            ))),
        };
    }
    if case.windows.is_empty() {
        return Ok(Windows::None);
    }
    let named = case.windows.iter().map(|name| {
        let window = known.iter().find(|window| window.name == *name);
        window.cloned().ok_or_else(|| {
            ConfigError::words(format!(
                "windows: `{name}` is no window of the device; accepted: {}",
                own.nodes.join(", ")
            ))
        })
    });
    let named = named.collect::<Result<_, _>>()?;
    Ok(match case.replay.mode {
        ReplayMode::Streams { .. } => Windows::OfStreams(named),
        _ => Windows::InTurn(named),
    })
}

/// The kind as reports call it.
pub(super) fn kind_of(kind: SourceKind) -> WorkloadKind {
    match kind {
        SourceKind::Captured => WorkloadKind::Captured,
        SourceKind::Recorded => WorkloadKind::Recorded,
        SourceKind::Synthetic => WorkloadKind::Synthetic,
    }
}
