//! Reads in flight: which bands they read at home, and which slots of the log they hold.

use super::block_map::ReadPiece;
use super::requests::Job;
use super::writes::remove_one;
use crate::map::BandId;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// What is known of reads.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Reads {
    /// Requests that wait until their band has been rewritten.
    pub waiting: Vec<u32>,
    /// The bands whose home blocks are being read for a request, once for each such read.
    at_home: Vec<BandId>,
    /// The lowest log position each read in flight needs.
    holds: Vec<u64>,
    /// Scratch space.
    pub plan: Vec<ReadPiece>,
}

impl Reads {
    /// Home blocks of a band are read for a request.
    pub fn begin_at_home(&mut self, band: BandId) {
        self.at_home.push(band);
    }

    /// Home blocks of a band have been read.
    pub fn end_at_home(&mut self, band: BandId) {
        remove_one(&mut self.at_home, band);
    }

    /// True while home blocks of a band are being read for a request.
    pub fn is_read_at_home(&self, band: BandId) -> bool {
        self.at_home.contains(&band)
    }

    /// Keeps the slots from `position` on from being used again until the job is answered.
    pub fn hold(&mut self, job: &mut Job, position: u64) {
        match &mut job.hold {
            None => {
                job.hold = Some(position);
                self.holds.push(position);
            }
            Some(held) if position < *held => {
                let index = self.holds.iter().position(|hold| hold == held);
                self.holds[index.expect("a hold that was taken")] = position;
                *held = position;
            }
            Some(_) => {}
        }
    }

    /// A job is answered, and holds its position no longer.
    pub fn release(&mut self, position: u64) {
        remove_one(&mut self.holds, position);
    }

    /// The lowest position that is held.
    pub fn lowest_hold(&self) -> Option<u64> {
        self.holds.iter().copied().min()
    }
}
