//! Which bands are to be rewritten anyhow, as far as the blocks that were sent down tell.

use crate::disk::LogSize;
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec;
use alloc::vec::Vec;

/// What the log has taken in, in the two quantities that it has a limit of.
#[derive(Clone, Copy, PartialEq, Eq, Default, SavedValue)]
struct Appended {
    blocks: u64,
    /// Runs of adjoining blocks: a write of one run is one entry of the map.
    runs: u64,
}

/// The windows of all bands.
#[derive(SavedValue)]
pub(super) struct Windows {
    /// What the log holds. A window lasts for as much.
    log: Appended,
    /// What has been sent down so far.
    appended: Appended,
    /// The block that would go on with the run.
    next: Option<Lba>,
    /// By band, the last append that is inside its window.
    last: Vec<Appended>,
}

impl Windows {
    /// No window of so many bands is open.
    pub fn new(log: LogSize, bands: usize) -> Windows {
        // A saved window is as long as 32 bits can tell. A window that is too short costs little.
        let blocks = log.blocks.0.min(u64::from(u32::MAX));
        Windows {
            log: Appended { blocks, runs: log.entries.unwrap_or(blocks).min(blocks) },
            appended: Appended::default(),
            next: None,
            last: vec![Appended::default(); bands],
        }
    }

    /// What comes next is not in one write with what came before.
    pub fn end_run(&mut self) {
        self.next = None;
    }

    /// A block is sent down. True when it opens a window of its band.
    pub fn append(&mut self, band: u32, lba: Lba) -> bool {
        self.appended.blocks += 1;
        self.appended.runs += u64::from(self.next != Some(lba));
        self.next = Some(Lba(lba.0 + 1));
        let last = &mut self.last[band as usize];
        let opens = last.blocks < self.appended.blocks || last.runs < self.appended.runs;
        if opens {
            *last = Appended {
                blocks: self.appended.blocks + self.log.blocks,
                runs: self.appended.runs + self.log.runs,
            };
        }
        opens
    }

    /// Whether the next block would be inside the window of a band, sent down in a write of its own.
    #[inline]
    pub fn is_open(&self, band: u32) -> bool {
        let last = self.last[band as usize];
        last.blocks > self.appended.blocks && last.runs > self.appended.runs
    }

    /// Writes down the open windows, the last to close first if there are more than `words_max`
    /// words have room for. What is left out counts as closed.
    pub fn save(&self, words_max: u64, state: &mut StateWriter) {
        let mut open: Vec<u32> = (0..self.last.len() as u32).collect();
        open.retain(|band| self.is_open(*band));
        let kept = (words_max / 2) as usize;
        if open.len() > kept {
            open.sort_by_key(|band| core::cmp::Reverse(self.last[*band as usize].blocks));
            open.truncate(kept);
            open.sort_unstable();
        }
        state.put_u64(self.appended.blocks);
        state.put_u64(self.appended.runs);
        state.put_u64(open.len() as u64);
        for band in open {
            let last = self.last[band as usize];
            let blocks = last.blocks - self.appended.blocks;
            state.put_u64(u64::from(band) << 32 | blocks);
            state.put_u64(last.runs - self.appended.runs);
        }
    }

    /// Takes back what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// When a window is of no band, closed, or there twice.
    pub fn restore(&mut self, state: &mut StateReader<'_>) -> Result<(), StateError> {
        self.appended = Appended { blocks: state.take_u64()?, runs: state.take_u64()? };
        if self.appended.runs > self.appended.blocks || self.appended.blocks > u64::MAX / 2 {
            return Err(StateError::new("more was sent down in the saved cache than can be"));
        }
        let mut next_band = 0;
        for _ in 0..state.take_u64()? {
            let (word, runs) = (state.take_u64()?, state.take_u64()?);
            let (band, blocks) = ((word >> 32) as usize, word & u64::from(u32::MAX));
            if band < next_band || band >= self.last.len() || blocks.min(runs) == 0 {
                return Err(StateError::new(
                    "a window of the saved cache is of no band, there twice or closed",
                ));
            }
            // The log may have become smaller since then, when a drive file was put right.
            let (blocks, runs) = (blocks.min(self.log.blocks), runs.min(self.log.runs));
            next_band = band + 1;
            self.last[band] =
                Appended { blocks: self.appended.blocks + blocks, runs: self.appended.runs + runs };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BlockCount;

    fn windows(blocks: u64, entries: Option<u64>) -> Windows {
        let blocks = BlockCount(blocks);
        Windows::new(LogSize { blocks, entries }, 4)
    }

    #[test]
    fn a_window_lasts_for_the_blocks_of_the_log() {
        let mut windows = windows(3, None);
        assert!(windows.append(0, Lba(0)));
        let opened: Vec<bool> = [10, 20, 2].map(|lba| windows.append(0, Lba(lba))).into();
        assert_eq!(opened, [false, false, false]);
        assert!(!windows.is_open(0));
        assert!(windows.append(0, Lba(1)), "the fifth append is past the window");
    }

    #[test]
    fn a_window_is_no_longer_than_a_log_that_has_shrunk() {
        let mut before = windows(10, None);
        assert!(before.append(2, Lba(0)));
        let mut state = StateWriter::default();
        before.save(8, &mut state);
        let mut after = windows(2, None);
        let bytes = state.into_bytes();
        let restored = after.restore(&mut StateReader::new(&bytes));
        restored.expect("a sound state");
        let opened: Vec<bool> = [1, 2, 3].map(|lba| after.append(2, Lba(lba * 5))).into();
        assert_eq!(opened, [false, false, true]);
    }

    #[test]
    fn a_run_of_blocks_is_one_entry_of_the_log() {
        let mut windows = windows(100, Some(2));
        assert!(windows.append(0, Lba(0)));
        for lba in 1..9 {
            assert!(!windows.append(0, Lba(lba)), "the run goes on");
        }
        assert!(windows.append(1, Lba(50)));
        assert!(!windows.append(0, Lba(20)), "the third run is the last inside");
        assert!(!windows.is_open(0) && windows.is_open(1));
    }
}
