//! Simulated disks: mechanics, contents and the drive files that describe them.
//!
//! [`SimulatedDisk`] is the whole; [`DriveModel`] is what a drive file says. The equations are in
//! `docs/models`.

mod arm;
mod bus;
#[cfg(test)]
mod bus_any_tests;
mod bus_arm;
mod bus_drive;
#[cfg(test)]
mod bus_tests;
mod cleaning;
mod contents;
mod design;
mod due;
mod heat_map;
mod instant;
pub mod keys;
mod library;
mod measured;
mod mechanism;
mod model;
mod platters;
pub mod quantity;
mod read_ahead;
mod rotating;
mod schedulers;
mod seek;
mod segments;
mod shell_word;
mod shingles;
mod simulated;
mod solid_state;
mod statistics;
mod tallies;
pub mod time_buckets;
pub mod toml_error;
mod translation;
mod words;
mod write_cache;
mod zone_table;
mod zones;

pub use arm::Direction;
pub use bus::{BusModel, WriteAfterWrite};
pub use cleaning::IdleAfter;
pub use design::{DiskDesign, DiskOptions};
pub use heat_map::{HeatMap, HeatMapRecorder};
pub use instant::InstantDisk;
pub use library::{Drive, DriveError, LIBRARY};
pub use measured::MeasuredDisk;
pub use mechanism::Mechanism;
pub use model::{
    CacheModel, DriveModel, MediaModel, PlatterModel, QueueModel, SeekModel, SolidStateModel,
};
pub use platters::Layout;
pub use schedulers::Scheduler;
pub use seek::{DatasheetSeek, SeekCurve, SeekFormula};
pub use segments::{OverheadModel, ReadAheadTo, SegmentModel};
pub use shell_word::shell_word;
pub use shingles::{ConventionalRun, DirectionRun, ShingleDirection, ShingleModel, Shingles};
pub use simulated::SimulatedDisk;
pub use statistics::{AreaUse, DiskStatistics, OperationKind};
pub use tallies::Tallies;
pub use translation::{Bands, EntryLimit, MergeBuffer, TranslationSettings};
pub use words::{AnyWord, OnOff, Word};
pub use zone_table::{SparesAt, ZoneRow};
pub use zones::{DriveZones, HostManagedConfig, conventional_blocks};
