//! What a run must remember while it lasts, in constant memory.

use super::activity_recorder::{ActivityRecorder, ActivityState};
use super::heads::Heads;
use super::histogram::LatencyHistogram;
use super::phase_recorder::{Latencies, PhaseRecorder};
use super::phases::Phase;
use super::report::{Figures, Run};
use super::request_series::{RequestKind, RequestSeries};
use super::series::GaugeSeries;
use super::window_recorder::WindowRecorder;
use imbrex_core::activity::Activity;
use imbrex_drives::HeatMap;
use std::collections::BTreeMap;

/// Buckets of a time series at most.
pub const SERIES_BUCKETS: usize = 512;

/// The fill of the persistent cache is kept in millionths.
const FILL_SCALE: u64 = 1_000_000;

/// A host request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When, in nanoseconds from the start of the run.
    pub at_ns: u64,
    /// How long it took.
    pub latency_ns: u64,
    /// What it did.
    pub kind: RequestKind,
    /// How much it moved.
    pub bytes: u64,
    /// How long after it was due it ended, of a request of a stream.
    pub since_due_ns: Option<u64>,
    /// The number of the window that it was for, if it was for one.
    pub window: Option<u16>,
    /// What was on while it was open.
    pub felt: Option<Activity>,
}

/// Collects latencies and series of one run, in simulation and in service alike.
///
/// Call [`completed`](Recorder::completed), or [`read_completed`](Recorder::read_completed),
/// [`write_completed`](Recorder::write_completed) or
/// [`other_completed`](Recorder::other_completed), for each host request,
/// [`persistent_cache_used`](Recorder::persistent_cache_used) when the fill changes, and
/// [`finish`](Recorder::finish) once. Instants are nanoseconds from the start of the run. A request
/// allocates nothing.
pub struct Recorder {
    latencies: Latencies,
    /// None until a member of an array is lost.
    phases: Option<Box<PhaseRecorder>>,
    /// None until a node cleans or holds requests back.
    activities: Option<Box<ActivityRecorder>>,
    windows: WindowRecorder,
    /// None until a request of a stream has ended.
    since_due: Option<Box<LatencyHistogram>>,
    requests: RequestSeries,
    fill: GaugeSeries,
    /// In millionths; none until the fill is told.
    fill_max: Option<u64>,
}

impl Recorder {
    /// A recorder in which nothing has happened, about 1.7 MB.
    pub fn new() -> Recorder {
        Recorder {
            latencies: Latencies::default(),
            phases: None,
            activities: None,
            windows: WindowRecorder::default(),
            since_due: None,
            requests: RequestSeries::new(SERIES_BUCKETS),
            fill: GaugeSeries::new(SERIES_BUCKETS),
            fill_max: None,
        }
    }

    /// A host request has ended. It counts for the run, and for its phase if the run has any.
    #[inline(always)]
    pub fn completed(&mut self, ended: &Ended) {
        let Ended { at_ns, latency_ns, kind, bytes, since_due_ns, window, felt } = *ended;
        self.latencies.of(kind).record(latency_ns);
        if let Some(phases) = &mut self.phases {
            phases.latencies().of(kind).record(latency_ns);
        }
        if let Some(activities) = &mut self.activities {
            activities.latencies(felt).of(kind).record(latency_ns);
        }
        if let Some(window) = window {
            self.windows.completed(usize::from(window), latency_ns);
        }
        if let Some(since_due_ns) = since_due_ns {
            self.since_due.get_or_insert_default().record(since_due_ns);
        }
        self.requests.add(at_ns, latency_ns, kind, bytes);
    }

    /// The same of one of which nothing more is known.
    #[inline(never)]
    fn plain_completed(&mut self, at_ns: u64, latency_ns: u64, kind: RequestKind, bytes: u64) {
        let (since_due_ns, window, felt) = (None, None, None);
        self.completed(&Ended { at_ns, latency_ns, kind, bytes, since_due_ns, window, felt });
    }

    /// A host read of `bytes` bytes took `latency_ns` and completed at `now_ns`.
    pub fn read_completed(&mut self, now_ns: u64, latency_ns: u64, bytes: u64) {
        self.plain_completed(now_ns, latency_ns, RequestKind::Read, bytes);
    }

    /// A host write of `bytes` bytes took `latency_ns` and completed at `now_ns`.
    pub fn write_completed(&mut self, now_ns: u64, latency_ns: u64, bytes: u64) {
        self.plain_completed(now_ns, latency_ns, RequestKind::Write, bytes);
    }

    /// A host request that moves no data (flush, write of zeroes, trim) took `latency_ns` and
    /// completed at `now_ns`. It counts as a request, and neither as a read nor as a write.
    pub fn other_completed(&mut self, now_ns: u64, latency_ns: u64) {
        self.plain_completed(now_ns, latency_ns, RequestKind::Other, 0);
    }

    /// Requests are of windows with these names from now on. Each allocates 300 KB.
    pub fn set_windows(&mut self, names: Vec<String>) {
        self.windows = WindowRecorder::new(names);
    }

    /// Nodes clean and hold requests back so from `now_ns` on; instants must not decrease. Before the first call nothing
    /// is on. The first time allocates 900 KB, and so does the first time of each activity.
    pub fn set_activities(&mut self, now_ns: u64, state: ActivityState) {
        let without = &self.latencies;
        let new = || Box::new(ActivityRecorder::new(without.clone()));
        self.activities.get_or_insert_with(new).set(now_ns, state);
    }

    /// The arrays of the stack are in `phase` from `now_ns` on; instants must not decrease. Before the
    /// first call they are healthy. A request counts to the phase in which it completes. The first phase
    /// in which a member is lost, and the first time in each other one, allocate 900 KB.
    pub fn set_phase(&mut self, now_ns: u64, phase: Phase) {
        if phase != Phase::Healthy && self.phases.is_none() {
            self.phases = Some(Box::new(PhaseRecorder::new(self.latencies.clone())));
        }
        if let Some(phases) = &mut self.phases {
            phases.set(now_ns, phase);
        }
    }

    /// From `now_ns` on, `used` of `capacity` of the persistent cache (bytes or entries, whichever
    /// is nearer its limit) is in use; instants must not decrease.
    pub fn persistent_cache_used(&mut self, now_ns: u64, used: u64, capacity: u64) {
        // Saturates beyond 18 million million, which no persistent cache holds.
        let millionths = used.saturating_mul(FILL_SCALE) / capacity.max(1);
        self.fill.set(now_ns, millionths);
        self.fill_max = self.fill_max.max(Some(millionths));
    }

    /// Fills in the response times and the finish time of a run whose last answer so far came at
    /// `end_ns`, without ending it. Answers the latencies of all its requests.
    pub fn describe_so_far(&self, end_ns: u64, run: &mut Run) -> LatencyHistogram {
        run.costs.read_response_ms = self.latencies.reads.response_times();
        run.costs.write_response_ms = self.latencies.writes.response_times();
        let all = self.latencies.all();
        run.costs.response_ms = all.response_times();
        run.costs.since_due_ms = self.since_due.as_ref().map(|since| since.response_times());
        run.log.log_fill_max = self.fill_max.map(|fill| fill as f64 / FILL_SCALE as f64);
        run.costs.finish_s = end_ns as f64 / 1e9;
        all
    }

    /// Ends the run at `end_ns` and fills in its response times, finish time, phases and figures, all but
    /// the map of writes to bands and what nodes have to tell.
    pub fn finish(mut self, end_ns: u64, run: &mut Run) {
        let all = self.describe_so_far(end_ns, run);
        run.phases = self.phases.take().map(|phases| phases.finish(end_ns));
        run.windows.windows = std::mem::take(&mut self.windows).finish();
        let activities = self.activities.take().map(|mut activities| activities.finish(end_ns));
        let (by_activity, activities) = activities.unzip();
        run.response_by_activity = by_activity;
        let activities = activities.map(|mut figures| {
            figures.response_mean_ms = self.requests.response_mean_ms(end_ns);
            figures.response_max_ms = self.requests.response_max_ms(end_ns);
            figures
        });
        run.figures = Figures {
            read_mib_per_s: self.requests.mib_per_s(RequestKind::Read, end_ns),
            write_mib_per_s: self.requests.mib_per_s(RequestKind::Write, end_ns),
            requests_per_s: self.requests.per_s(end_ns),
            requests_under_way: self.requests.under_way(end_ns),
            responses: self.requests.responses(end_ns),
            persistent_cache_fill: if self.fill_max.is_some() {
                self.fill.means(end_ns, 1.0 / FILL_SCALE as f64)
            } else {
                Default::default()
            },
            activities,
            latency_cdf: all.cdf(),
            // The disks know where they were written.
            band_writes: HeatMap::default(),
            series: BTreeMap::new(),
            rebuild_progress: BTreeMap::new(),
            // The stack knows what its nodes have to tell.
            tables: Vec::new(),
            // So do the schedulers of what they handed down.
            heads: Heads::default(),
        };
    }
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::ReplayMode;
    use super::*;

    #[test]
    fn requests_count_to_the_phase_in_which_they_complete() {
        const S: u64 = 1_000_000_000;
        const MS: u64 = 1_000_000;
        let mut recorder = Recorder::new();
        recorder.set_phase(0, Phase::Healthy);
        recorder.read_completed(S, 2 * MS, 4096);
        recorder.write_completed(S, 4 * MS, 4096);
        recorder.set_phase(2 * S, Phase::Degraded);
        recorder.read_completed(3 * S, 8 * MS, 4096);
        recorder.other_completed(3 * S, MS);
        recorder.set_phase(5 * S, Phase::Rebuilding);
        recorder.write_completed(6 * S, 16 * MS, 4096);
        recorder.set_phase(6 * S, Phase::Rebuilding);
        // A second member is lost when the first is there again.
        recorder.set_phase(9 * S, Phase::Degraded);
        recorder.read_completed(9 * S, 10 * MS, 4096);
        recorder.set_phase(10 * S, Phase::Rebuilding);
        recorder.set_phase(11 * S, Phase::After);
        let mut run = Run::new("raid", ReplayMode::Live);
        recorder.finish(15 * S, &mut run);
        let phases = run.phases.expect("members were lost");
        let told: Vec<_> = phases
            .iter()
            .map(|(phase, of)| (phase.name(), of.start_s, of.total_s, of.requests))
            .collect();
        assert_eq!(
            told,
            [
                ("healthy", 0.0, 2.0, 2),
                ("degraded", 2.0, 4.0, 3),
                ("rebuilding", 5.0, 5.0, 1),
                ("after", 11.0, 4.0, 0)
            ]
        );
        let degraded = phases.degraded.expect("a phase");
        assert_eq!(degraded.read_response_ms.mean, Some(9.0));
        assert_eq!(degraded.read_response_ms.max, Some(10.0));
        assert_eq!(degraded.write_response_ms, Default::default());
        assert_eq!(degraded.response_ms.mean, Some(19.0 / 3.0));
        assert_eq!(phases.healthy.expect("a phase").write_response_ms.max, Some(4.0));
        assert_eq!(run.costs.read_response_ms.max, Some(10.0), "the run has all of them");
    }

    #[test]
    fn a_run_that_loses_no_member_has_no_phases() {
        let mut recorder = Recorder::new();
        recorder.set_phase(0, Phase::Healthy);
        recorder.read_completed(1, 1, 1);
        let mut run = Run::new("raid", ReplayMode::Live);
        recorder.finish(2, &mut run);
        assert_eq!(run.phases, None);
        let text = serde_json::to_string(&run).expect("text");
        assert!(!text.contains("phases") && !text.contains("rebuild_progress"), "{text}");
    }

    #[test]
    fn a_run_that_begins_without_a_member_was_never_healthy() {
        let mut recorder = Recorder::new();
        recorder.set_phase(0, Phase::Degraded);
        recorder.read_completed(1_000_000_000, 1, 1);
        // The rebuild outlasts the host.
        recorder.set_phase(2_000_000_000, Phase::Rebuilding);
        recorder.set_phase(4_000_000_000, Phase::After);
        let mut run = Run::new("raid", ReplayMode::Live);
        recorder.finish(1_000_000_000, &mut run);
        let phases = run.phases.expect("a member was lost");
        let names: Vec<_> = phases.iter().map(|(phase, of)| (phase.name(), of.total_s)).collect();
        assert_eq!(names, [("degraded", 2.0), ("rebuilding", 2.0)]);
    }

    #[test]
    fn a_recorder_fills_the_run() {
        let mut recorder = Recorder::new();
        recorder.write_completed(1_000_000_000, 2_000_000, 1 << 20);
        recorder.read_completed(2_000_000_000, 4_000_000, 1 << 20);
        recorder.other_completed(2_000_000_000, 9_000_000);
        recorder.persistent_cache_used(0, 1, 2);
        let mut run = Run::new("lru", ReplayMode::Live);
        recorder.finish(2_000_000_000, &mut run);
        assert_eq!(run.costs.finish_s, 2.0);
        assert_eq!(run.costs.response_ms.mean, Some(5.0));
        assert_eq!(run.costs.response_ms.max, Some(9.0));
        assert_eq!(run.costs.read_response_ms.max, Some(4.0));
        assert_eq!(run.costs.write_response_ms.max, Some(2.0));
        let figures = run.figures;
        let requests: f64 =
            figures.requests_per_s.values.iter().sum::<f64>() * figures.requests_per_s.bucket_s;
        assert!((requests - 3.0).abs() < 1e-3, "{requests}");
        let mib: f64 =
            figures.write_mib_per_s.values.iter().sum::<f64>() * figures.write_mib_per_s.bucket_s;
        assert!((mib - 1.0).abs() < 1e-3, "{mib}");
        assert!(figures.persistent_cache_fill.values.iter().all(|fill| *fill == 0.5));
    }
}
