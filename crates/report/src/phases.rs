//! Phases of a run in which arrays lose members: how the host fared before, meanwhile and after.

use super::response_times::ResponseTimes;
use serde::{Deserialize, Serialize};

/// What the arrays of a stack are, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No member was lost so far.
    Healthy,
    /// A member is missing, and none is being rebuilt.
    Degraded,
    /// A member is being rebuilt.
    Rebuilding,
    /// No member is missing any more.
    After,
}

impl Phase {
    /// All of them, in the order in which they come.
    pub const ALL: [Phase; 4] = [Phase::Healthy, Phase::Degraded, Phase::Rebuilding, Phase::After];

    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Healthy => "healthy",
            Phase::Degraded => "degraded",
            Phase::Rebuilding => "rebuilding",
            Phase::After => "after",
        }
    }

    /// The phase that follows this one when so many members are missing, and so many being rebuilt.
    pub const fn next(self, missing: u64, rebuilding: u64) -> Phase {
        match (missing, rebuilding, self) {
            (_, 1.., _) => Phase::Rebuilding,
            (1.., 0, _) => Phase::Degraded,
            (0, 0, Phase::Healthy) => Phase::Healthy,
            (0, 0, _) => Phase::After,
        }
    }
}

/// The phases of a run; those that it was never in are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Before the first member was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<PhaseUse>,
    /// While a member was missing and none was being rebuilt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<PhaseUse>,
    /// While a member was being rebuilt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilding: Option<PhaseUse>,
    /// When no member was missing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PhaseUse>,
}

impl Phases {
    /// The phases that the run was in, in the order of [`Phase::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Phase, &PhaseUse)> {
        let all = [&self.healthy, &self.degraded, &self.rebuilding, &self.after];
        Phase::ALL.into_iter().zip(all).filter_map(|(phase, of)| Some((phase, of.as_ref()?)))
    }
}

/// What happened in a phase. One that came several times adds up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseUse {
    /// When it began first, in seconds from the first arrival.
    pub start_s: f64,
    /// How long it lasted, in seconds.
    pub total_s: f64,
    /// Requests that were answered in it.
    pub requests: u64,
    /// Response time of these.
    pub response_ms: ResponseTimes,
    /// Response time of the reads among them.
    pub read_response_ms: ResponseTimes,
    /// Response time of the writes among them.
    pub write_response_ms: ResponseTimes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_follows_from_the_members_and_from_the_phase_before() {
        use Phase::{After, Degraded, Healthy, Rebuilding};
        for (before, missing, rebuilding, expected) in [
            (Healthy, 0, 0, Healthy),
            (Healthy, 1, 0, Degraded),
            (Healthy, 0, 1, Rebuilding),
            (Degraded, 1, 1, Rebuilding),
            (Rebuilding, 1, 0, Degraded),
            (Rebuilding, 0, 0, After),
            (Degraded, 0, 0, After),
            (After, 0, 0, After),
            (After, 2, 0, Degraded),
        ] {
            assert_eq!(before.next(missing, rebuilding), expected, "{before:?}");
        }
        let names = Phase::ALL.map(Phase::name);
        assert_eq!(names, ["healthy", "degraded", "rebuilding", "after"]);
    }
}
