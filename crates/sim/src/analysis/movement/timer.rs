//! What the visits of a head take on a drive.

use imbrex_drives::{Direction, Mechanism};
use serde::Serialize;

/// The mechanism of a drive, block n of the model being its block n.
#[derive(Clone, Debug)]
pub struct Timer {
    mechanism: Mechanism,
    /// The first block that was visited beyond the drive.
    beyond: Option<u64>,
}

/// What a model's visits took.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ModelTime {
    /// Seconds in which the arm moved.
    pub seek_s: f64,
    /// Seconds of seek, rotation and transfer.
    pub service_s: f64,
}

impl Timer {
    /// A drive at rest.
    pub fn new(mechanism: Mechanism) -> Timer {
        Timer { mechanism, beyond: None }
    }

    /// Reads or writes neighbouring blocks in one transfer.
    pub fn run(&mut self, first: u64, blocks: u64, direction: Direction) {
        let last = first + (blocks - 1);
        if last >= self.mechanism.blocks() {
            self.beyond = self.beyond.or(Some(last));
        } else if self.beyond.is_none() {
            self.mechanism.access(first, blocks, direction);
        }
    }

    /// What all of it took, or the first block beyond the drive and the number of its blocks.
    pub fn finish(&self) -> Result<ModelTime, (u64, u64)> {
        match self.beyond {
            Some(block) => Err((block, self.mechanism.blocks())),
            None => Ok(ModelTime {
                seek_s: self.mechanism.seek_s(),
                service_s: self.mechanism.service_s(),
            }),
        }
    }
}
