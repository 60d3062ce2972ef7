//! How a controller is, for those who ask for the status.

use super::settings::{DecisionSettings, IdlePolicy};
use super::share::{ShareRule, ShareSettings};
use crate::units::Duration;

crate::words! {
    /// Who decides how long the drive is left idle.
    pub enum PolicyName {
        /// Nobody.
        None = "none",
        /// Fixed times.
        AtIc = "at-ic",
        /// As the media cache fills.
        Idler = "idler",
        /// The shortest idle periods that are enough.
        Sized = "sized",
        /// By how much of the media cache is left.
        Throttle = "throttle",
    }

    /// What becomes of requests that arrive.
    pub enum ControlPhase {
        /// They go down.
        Execution = "execution",
        /// They are held, and the drive has some left from before.
        Draining = "draining",
        /// They are held, and the drive has none.
        Idle = "idle",
    }
}

impl IdlePolicy {
    /// Its name.
    pub fn name(&self) -> PolicyName {
        match self {
            IdlePolicy::None => PolicyName::None,
            IdlePolicy::AtIc { .. } => PolicyName::AtIc,
            IdlePolicy::Idler(policy) => match policy.decision {
                DecisionSettings::Equations(_) => PolicyName::Idler,
                DecisionSettings::Share(ShareSettings { rule: ShareRule::Sized, .. }) => {
                    PolicyName::Sized
                }
                DecisionSettings::Share(ShareSettings { rule: ShareRule::Throttle, .. }) => {
                    PolicyName::Throttle
                }
            },
        }
    }
}

/// How a controller is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ControlStatus {
    /// Its policy.
    pub policy: PolicyName,
    /// It may hold requests. One that was switched off lets them pass.
    pub is_on: bool,
    /// What becomes of requests that arrive.
    pub phase: ControlPhase,
    /// U, the share of the media cache in use by its books; `None` of a policy that keeps none.
    pub used: Option<f64>,
    /// L, the idle period that was decided last; zero where the drive was left alone, `None` before the first decision.
    pub idle: Option<Duration>,
    /// Requests that are held.
    pub held: u32,
}
