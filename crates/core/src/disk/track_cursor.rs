//! Guard tracks behind many places of a disk, one after another.

use super::TrackTable;

/// A place on the tracks of a disk that moves towards higher addresses alone. It finds what
/// [`TrackTable::start_after`] finds, without a search for each of the places of a whole disk.
#[derive(Clone, Debug)]
pub struct TrackCursor<'a> {
    tracks: &'a TrackTable,
    /// Index of the run of tracks that the last place was in.
    run: usize,
}

impl TrackTable {
    /// A cursor at the first track.
    pub fn cursor(&self) -> TrackCursor<'_> {
        TrackCursor { tracks: self, run: 0 }
    }
}

impl TrackCursor<'_> {
    /// As [`TrackTable::start_after`]. Panics when `end` lies before that of an earlier call, in
    /// another run of tracks.
    pub fn start_after(&mut self, end: u64, guard: u64) -> u64 {
        let runs = self.tracks.runs();
        while runs.get(self.run + 1).is_some_and(|next| next.first_block < end) {
            self.run += 1;
        }
        match runs.get(self.run) {
            Some(run) => self.tracks.start_after_in(run, end, guard),
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::units::BlockCount;
    use alloc::vec::Vec;

    /// Some runs of tracks, of which none overlap.
    fn table(rng: &mut Rng) -> TrackTable {
        let runs: Vec<_> =
            (0..1 + rng.below(6)).map(|_| (1 + rng.below(5), 1 + rng.below(9))).collect();
        let blocks = runs.iter().map(|(tracks, length)| tracks * length).sum();
        TrackTable::new(runs, BlockCount(blocks), 0)
    }

    /// What follows a place, by walking over all tracks.
    fn walked(tracks: &TrackTable, end: u64, guard: u64) -> u64 {
        let starts = (0..tracks.tracks()).map(|track| tracks.extent_of(track).start.0);
        let mut at_or_after = starts.skip_while(|start| *start < end);
        at_or_after.nth(guard as usize).unwrap_or(tracks.blocks())
    }

    #[test]
    fn a_cursor_and_a_search_find_the_track_that_a_walk_over_all_finds() {
        let mut rng = Rng::new(36, 0);
        for _ in 0..2_000 {
            let tracks = table(&mut rng);
            let mut cursor = tracks.cursor();
            let (mut end, guard) = (0, rng.below(4));
            while end < tracks.blocks() + 3 {
                let expected = match end {
                    // Nothing lies before the first block, so nothing needs a guard.
                    0 => 0,
                    _ => walked(&tracks, end, guard),
                };
                assert_eq!(tracks.start_after(end, guard), expected, "{tracks:?} {end} {guard}");
                assert_eq!(cursor.start_after(end, guard), expected, "{tracks:?} {end} {guard}");
                end += rng.below(12);
            }
        }
    }

    #[test]
    #[should_panic(expected = "a place before the run")]
    fn a_cursor_does_not_go_back() {
        let tracks = TrackTable::new([(2, 4), (2, 6)], BlockCount(20), 0);
        let mut cursor = tracks.cursor();
        cursor.start_after(15, 0);
        cursor.start_after(3, 0);
    }
}
