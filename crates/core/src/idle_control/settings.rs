//! What can be set on an idle controller.

use super::decision::IdlerSettings;
use super::ghost::GhostSettings;
use super::share::ShareSettings;
use crate::units::Duration;

crate::words! {
    /// What a flush does that comes while requests are held back.
    pub enum OnFlush {
        /// It ends the idle period, and everything goes on in order.
        EndIdle = "end-idle",
        /// It is held like any other request.
        Hold = "hold",
    }
}

crate::words! {
    /// What V_m, measured while the drive works, is compared with what was cleaned over all the time as.
    pub enum TakenSpeed {
        /// Times the share of time in which the drive worked, of the report period before.
        OfAllTime = "of-all-time",
        /// As it was measured.
        Raw = "raw",
    }
}

/// Who decides how long the drive is left idle.
#[derive(Clone, PartialEq, Debug)]
pub enum IdlePolicy {
    /// Nobody: requests pass.
    None,
    /// Artificially triggered idle cleaning: so long of work, then so long of nothing (AT-IC; Idler, IEEE TC 2020).
    AtIc {
        /// The time of work.
        execution: Duration,
        /// The idle time after it.
        idle: Duration,
    },
    /// As the media cache fills.
    Idler(IdlerPolicy),
}

/// By what is decided how long the drive is left idle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DecisionSettings {
    /// Equations 1 and 2: Idler.
    Equations(IdlerSettings),
    /// As a share of the time.
    Share(ShareSettings),
}

/// What an Idler needs to know.
#[derive(Clone, PartialEq, Debug)]
pub struct IdlerPolicy {
    /// How it decides.
    pub decision: DecisionSettings,
    /// Requests of a sample (10).
    pub samples: u32,
    /// What V_m is.
    pub taken_speed: TakenSpeed,
    /// The drive.
    pub ghost: GhostSettings,
    /// How often the drive is asked for its zones, and V_c is measured (600 s).
    pub report_every: Duration,
}

/// What can be set on an [`IdleControl`](super::IdleControl).
#[derive(Clone, PartialEq, Debug)]
pub struct IdleControlSettings {
    /// Who decides.
    pub policy: IdlePolicy,
    /// What a flush does.
    pub on_flush: OnFlush,
    /// Nothing is held for longer, however long the drive takes to become idle (10 s).
    pub hold_max: Duration,
}
