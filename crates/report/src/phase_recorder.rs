//! What a run must remember of its phases while it lasts.

use super::histogram::LatencyHistogram;
use super::phases::{Phase, PhaseUse, Phases};
use super::request_series::RequestKind;

const NS_PER_S: f64 = 1e9;

/// Latencies of the requests of a run, or of a part of it.
#[derive(Clone, Default)]
pub(super) struct Latencies {
    pub reads: LatencyHistogram,
    pub writes: LatencyHistogram,
    /// Requests that move no data.
    pub others: LatencyHistogram,
}

impl Latencies {
    /// Those of the requests of a kind.
    #[inline]
    pub fn of(&mut self, kind: RequestKind) -> &mut LatencyHistogram {
        match kind {
            RequestKind::Read => &mut self.reads,
            RequestKind::Write => &mut self.writes,
            RequestKind::Other => &mut self.others,
        }
    }

    /// Those of all requests.
    pub fn all(&self) -> LatencyHistogram {
        let mut all = self.reads.clone();
        all.add(&self.writes);
        all.add(&self.others);
        all
    }
}

/// Collects the phases of a run. There is none until a member is lost.
pub(super) struct PhaseRecorder {
    current: Phase,
    since_ns: u64,
    /// In the order of [`Phase::ALL`].
    parts: [Option<Part>; Phase::ALL.len()],
}

struct Part {
    start_ns: u64,
    total_ns: u64,
    latencies: Latencies,
}

impl PhaseRecorder {
    /// A recorder of a run that was healthy, with these latencies so far.
    pub fn new(healthy: Latencies) -> PhaseRecorder {
        let part = Part { start_ns: 0, total_ns: 0, latencies: healthy };
        PhaseRecorder {
            current: Phase::Healthy,
            since_ns: 0,
            parts: [Some(part), None, None, None],
        }
    }

    /// The run is in `phase` from `now_ns` on; instants must not decrease.
    pub fn set(&mut self, now_ns: u64, phase: Phase) {
        if phase == self.current {
            return;
        }
        self.advance(now_ns);
        self.current = phase;
        let part = || Part { start_ns: now_ns, total_ns: 0, latencies: Latencies::default() };
        self.parts[phase as usize].get_or_insert_with(part);
    }

    /// Latencies of the current phase.
    pub fn latencies(&mut self) -> &mut Latencies {
        &mut self.current_part().latencies
    }

    /// Ends the run at `end_ns`, or at the last change of the phase where that came later.
    pub fn finish(mut self, end_ns: u64) -> Phases {
        self.advance(end_ns.max(self.since_ns));
        let [healthy, degraded, rebuilding, after] =
            self.parts.map(|part| part.and_then(Part::finish));
        Phases { healthy, degraded, rebuilding, after }
    }

    fn advance(&mut self, now_ns: u64) {
        assert!(now_ns >= self.since_ns, "a phase cannot end before it began");
        let lasted_ns = now_ns - self.since_ns;
        self.current_part().total_ns += lasted_ns;
        self.since_ns = now_ns;
    }

    fn current_part(&mut self) -> &mut Part {
        self.parts[self.current as usize].as_mut().expect("the current phase has begun")
    }
}

impl Part {
    /// Nothing of a phase that took no time and answered nothing.
    fn finish(self) -> Option<PhaseUse> {
        let all = self.latencies.all();
        let was_there = self.total_ns > 0 || all.count() > 0;
        was_there.then(|| PhaseUse {
            start_s: self.start_ns as f64 / NS_PER_S,
            total_s: self.total_ns as f64 / NS_PER_S,
            requests: all.count(),
            response_ms: all.response_times(),
            read_response_ms: self.latencies.reads.response_times(),
            write_response_ms: self.latencies.writes.response_times(),
        })
    }
}
