//! What cleaning and holding did to the requests of a run: the response times of those that felt each of them.

use super::response_times::ResponseTimes;
use super::series::Series;
use imbrex_core::activity::Activity;
use imbrex_core::words::Words;
use serde::{Deserialize, Serialize};

/// The word for what none of them was on for.
pub const NO_ACTIVITY: &str = "none";

/// The requests of a run by what nodes did at any time while a request was open. Of several the first counts. What no
/// request has felt is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseByActivity {
    /// A controller held requests back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<ActivityUse>,
    /// A translation cleaned because a write had no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking_cleaning: Option<ActivityUse>,
    /// A translation was cleaning in idle time when the request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_cleaning: Option<ActivityUse>,
    /// None of these: the time of the queue and of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<ActivityUse>,
}

impl ResponseByActivity {
    /// Those that there are, by their words, in the order in which they count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ActivityUse)> {
        let all = [
            (Activity::Hold.word(), &self.hold),
            (Activity::BlockingCleaning.word(), &self.blocking_cleaning),
            (Activity::IdleCleaning.word(), &self.idle_cleaning),
            (NO_ACTIVITY, &self.none),
        ];
        all.into_iter().filter_map(|(name, of)| Some((name, of.as_ref()?)))
    }
}

/// What was on for some requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityUse {
    /// How long it was on in all, in seconds; null of no activity.
    pub total_s: Option<f64>,
    /// Requests that were open while it was on.
    pub requests: u64,
    /// Response time of these.
    pub response_ms: ResponseTimes,
    /// Response time of the reads among them.
    pub read_response_ms: ResponseTimes,
    /// Response time of the writes among them.
    pub write_response_ms: ResponseTimes,
}

/// What went on, and what requests felt, over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityFigures {
    /// Share of each bucket in which a controller held requests back (0 to 1).
    pub hold: Series,
    /// Share in which a translation cleaned for want of room.
    pub blocking_cleaning: Series,
    /// Share in which a translation cleaned in idle time.
    pub idle_cleaning: Series,
    /// Requests that were held back: time-weighted mean of each bucket.
    pub held_requests: Series,
    /// Mean response time of the requests that ended in each bucket, ms; 0 where none did.
    pub response_mean_ms: Series,
    /// The longest.
    pub response_max_ms: Series,
}

/// How far the books of a controller were from the drive that they are of. The simulation compares them; the controller does
/// not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GhostUse {
    /// How often they were compared: at each report of zones, or each period without one.
    pub reports: u64,
    /// Mean of |U - the drive's own use|, both 0 to 1.
    pub ghost_error_mean: f64,
    /// The greatest.
    pub ghost_error_max: f64,
}
