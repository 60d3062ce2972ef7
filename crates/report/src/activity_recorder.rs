//! What a run must remember of cleaning and holding while it lasts.

use super::activity_use::{ActivityFigures, ActivityUse, ResponseByActivity};
use super::phase_recorder::Latencies;
use super::recorder::SERIES_BUCKETS;
use super::series::GaugeSeries;
use imbrex_core::activity::Activity;

const NS_PER_S: f64 = 1e9;

const ACTIVITIES: usize = Activity::COUNT;

/// Which activities are on, and how many requests are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityState {
    /// In the order of [`Activity`].
    pub is_on: [bool; ACTIVITIES],
    /// Requests that are held back.
    pub held: u64,
}

/// Collects what requests have felt. There is none until something is on.
pub(super) struct ActivityRecorder {
    state: ActivityState,
    since_ns: u64,
    total_ns: [u64; ACTIVITIES],
    /// Each activity in the order of [`Activity`], then none of them.
    latencies: [Option<Box<Latencies>>; ACTIVITIES + 1],
    shares: [GaugeSeries; ACTIVITIES],
    held: GaugeSeries,
}

impl ActivityRecorder {
    /// A recorder of a run in which nothing was on, with these latencies so far.
    pub fn new(without: Latencies) -> ActivityRecorder {
        let series = || GaugeSeries::new(SERIES_BUCKETS);
        ActivityRecorder {
            state: ActivityState::default(),
            since_ns: 0,
            total_ns: [0; ACTIVITIES],
            latencies: [None, None, None, Some(Box::new(without))],
            shares: [series(), series(), series()],
            held: series(),
        }
    }

    /// It is so from `now_ns` on; instants must not decrease. What begins first allocates 900 KB.
    pub fn set(&mut self, now_ns: u64, state: ActivityState) {
        self.advance(now_ns);
        for (number, is_on) in state.is_on.into_iter().enumerate() {
            self.shares[number].set(now_ns, u64::from(is_on));
            if is_on {
                self.latencies[number].get_or_insert_default();
            }
        }
        self.held.set(now_ns, state.held);
        self.state = state;
    }

    /// The latencies of requests that have felt an activity, or none.
    pub fn latencies(&mut self, felt: Option<Activity>) -> &mut Latencies {
        self.latencies[felt.map_or(ACTIVITIES, |it| it as usize)].get_or_insert_default()
    }

    /// Ends the run at `end_ns`.
    pub fn finish(&mut self, end_ns: u64) -> (ResponseByActivity, ActivityFigures) {
        self.advance(end_ns.max(self.since_ns));
        let [hold, blocking, idle] = &mut self.shares;
        let figures = ActivityFigures {
            hold: hold.means(end_ns, 1.0),
            blocking_cleaning: blocking.means(end_ns, 1.0),
            idle_cleaning: idle.means(end_ns, 1.0),
            held_requests: self.held.means(end_ns, 1.0),
            ..ActivityFigures::default()
        };
        let mut number = 0;
        let [hold, blocking_cleaning, idle_cleaning, none] = std::mem::take(&mut self.latencies)
            .map(|latencies| {
                let total_ns = self.total_ns.get(number);
                number += 1;
                let total_s = total_ns.map(|ns| *ns as f64 / NS_PER_S);
                latencies.map(|latencies| of_latencies(&latencies, total_s))
            });
        (ResponseByActivity { hold, blocking_cleaning, idle_cleaning, none }, figures)
    }

    fn advance(&mut self, now_ns: u64) {
        assert!(now_ns >= self.since_ns, "an activity cannot end before it began");
        let lasted_ns = now_ns - self.since_ns;
        for (total_ns, is_on) in self.total_ns.iter_mut().zip(self.state.is_on) {
            *total_ns += if is_on { lasted_ns } else { 0 };
        }
        self.since_ns = now_ns;
    }
}

fn of_latencies(latencies: &Latencies, total_s: Option<f64>) -> ActivityUse {
    let all = latencies.all();
    ActivityUse {
        total_s,
        requests: all.count(),
        response_ms: all.response_times(),
        read_response_ms: latencies.reads.response_times(),
        write_response_ms: latencies.writes.response_times(),
    }
}
