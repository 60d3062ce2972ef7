//! The arm of a drive alone, for counting times without a stack, a queue or a cache.

use super::arm::{Arm, Direction};
use super::design::{DiskOptions, RotatingMedium, platters_of};
use super::library::{Drive, DriveError};
use super::simulated::bare_arm;
use imbrex_core::extent::Extent;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};

/// Seek, rotation and transfer of one access after another, each begun when the one before ends.
///
/// There is no overhead of commands, no read-ahead and no write buffer, and of a shingled drive no
/// translation: block n is the n-th of its tracks.
#[derive(Clone, Debug)]
pub struct Mechanism {
    arm: Arm,
    blocks: u64,
    sectors_per_block: u64,
    /// Time within a revolution: nothing else depends on the time at which an access begins.
    phase: Instant,
    seek_ns: u128,
    service_ns: u128,
}

impl Mechanism {
    /// The arm of a rotating drive, at rest on its outermost cylinder.
    ///
    /// # Errors
    /// When the drive has no arm or its figures contradict each other.
    pub fn new(drive: &Drive) -> Result<Mechanism, DriveError> {
        let model = &drive.model;
        let wrong = |reason| DriveError::Model { file: drive.file.clone(), reason };
        let Some(platters) = &model.platters else {
            return Err(wrong("it has no arm; accepted: a rotating drive".to_string()));
        };
        let user = model.user_blocks(1);
        let blocks = model.physical_blocks(user, BlockCount::ZERO);
        let options = DiskOptions::default();
        let RotatingMedium { platters: medium, curve } =
            platters_of(model, blocks, &options).map_err(wrong)?;
        let arm = bare_arm(platters, medium, curve, &options);
        Ok(Mechanism {
            arm,
            blocks: blocks.0,
            sectors_per_block: BLOCK_BYTES / model.sector_bytes(),
            phase: Instant::ZERO,
            seek_ns: 0,
            service_ns: 0,
        })
    }

    /// Blocks of 4 KiB that the drive has.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Reads or writes neighbouring blocks, which must be on the drive, in one transfer.
    pub fn access(&mut self, first: u64, blocks: u64, direction: Direction) {
        let sectors = self.sectors_per_block;
        let extent = Extent::new(first * sectors, blocks * sectors);
        let place = self.arm.platters.place(extent.start.0);
        let access = self.arm.access(self.phase, extent, &place, direction);
        self.seek_ns += u128::from(access.time.seek_ns);
        self.service_ns += u128::from(access.end.since(self.phase).0);
        self.phase = Instant(access.end.0 % self.arm.platters.revolution_ns());
    }

    /// Seconds in which the arm moved, heads were switched or settled.
    pub fn seek_s(&self) -> f64 {
        self.seek_ns as f64 / 1e9
    }

    /// Seconds of all accesses: seek, rotation and transfer.
    pub fn service_s(&self) -> f64 {
        self.service_ns as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_take_the_times_of_the_drive() {
        let drive = Drive::open("wd-4tb-7200").unwrap();
        let revolution_s = 60.0 / drive.model.platters.as_ref().unwrap().rpm as f64;
        let mut mechanism = Mechanism::new(&drive).unwrap();
        mechanism.access(0, 1, Direction::Read);
        let (first_s, seek_s) = (mechanism.service_s(), mechanism.seek_s());
        assert!(first_s <= revolution_s && seek_s == 0.0);
        // The same block again comes round after one revolution.
        mechanism.access(0, 1, Direction::Read);
        let again_s = mechanism.service_s() - first_s;
        assert!((again_s / revolution_s - 1.0).abs() < 1e-6, "{again_s}");
        // A far block needs a seek.
        mechanism.access(mechanism.blocks() - 1, 1, Direction::Read);
        assert!(mechanism.seek_s() > 0.001);
    }

    #[test]
    fn a_drive_without_an_arm_is_refused() {
        let error = Mechanism::new(&Drive::open("intel320").unwrap()).unwrap_err();
        assert!(error.to_string().contains("has no arm; accepted:"), "{error}");
    }
}
