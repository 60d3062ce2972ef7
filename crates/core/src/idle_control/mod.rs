//! Idler: the host holds requests back for a while, so that a drive which cleans in idle time gets some ("Idler: I/O Workload
//! Controlling for Better Responsiveness on Host-Aware Shingled Magnetic Recording Drives", IEEE Trans. Computers 69(6), 2020).
//!
//! | Part | Says |
//! |---|---|
//! | `settings` | who decides, and by what |
//! | `ghost` | how full the media cache of the drive is, as far as a host can know |
//! | `sample` | how fast requests come, how long they take, how much of the media cache they fill |
//! | `decision` | how long the drive is left idle next |
//! | `share` | the same by other rules, beyond the paper |
//! | `log` | what was decided, for whoever watches |
//! | `status` | how it is, for whoever asks |
//! | `layer` | holds requests, asks for reports, issues and answers |
//!
//! A controller stands above any drive and uses nothing but its interface. Time goes round like this:
//!
//! ```text
//! Execution: held requests go down, and end -> ten new ones are sampled, and end -> decision
//!     -> no idle period: Execution
//!     -> L: Draining (requests are held, the drive finishes what it has) -> Idle for L -> Execution
//! ```

mod decision;
mod ghost;
mod layer;
mod log;
mod sample;
mod settings;
mod share;
mod status;

pub use decision::{IdlerSettings, Observed, Regime};
pub use ghost::{GhostEvent, GhostSettings};
pub use layer::IdleControl;
pub use log::{Decision, DecisionLog, Told};
pub use settings::{
    DecisionSettings, IdleControlSettings, IdlePolicy, IdlerPolicy, OnFlush, TakenSpeed,
};
pub use share::{ShareRule, ShareSettings};
pub use status::{ControlPhase, ControlStatus, PolicyName};
