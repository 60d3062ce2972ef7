//! Bugs planted on purpose, so that tests can show that they would be found.
//!
//! The switch exists only with the feature `planted-bugs`; without it
//! [`Context::is_planted`](crate::layer::Context::is_planted) is always false.

/// A bug that a test may plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlantedBug {
    /// A band rewrite leaves out one write that restores what an earlier one destroyed.
    RestoringWriteSkipped,
    /// A band rewrite drops a log entry that was appended while it ran.
    EntryDroppedDuringRewrite,
    /// A log slot is used again while its entry is live.
    SlotReusedEarly,
    /// A cache slot is used again before its destage is durable below.
    DestageSlotFreedEarly,
}
