//! A backup program on a journalling file system: segments of 5 MiB, each made durable before the
//! next (borgbackup/borg issue 2252: Borg on ext4).
//!
//! Nobody published the requests, so the workload is synthetic. It has the writes that ext4 and its
//! journal are known to make for a new file that is synced:
//!
//! 1. the data of the segment;
//! 2. a transaction of the journal: a descriptor and the metadata blocks that changed, in sequence;
//! 3. a flush, the block that commits the transaction, and a flush;
//! 4. a flush for the directory (Borg syncs that too), in which nothing new was written;
//! 5. later, in place, the bitmap that says which blocks the segment has. The bitmaps of sixteen
//!    groups of blocks (`flex_bg`) lie at the start of the first.
//!
//! Where a segment goes is drawn at random from the whole disk, as in a file system that has been in
//! use.

use super::drive_managed::{rewritten, silence_until_clean};
use super::subject::{BenchError, Subject};
use super::zoned_host::{Step, Stream, run_on};
use crate::fio::Session;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;
use std::collections::VecDeque;

/// Data of a segment.
const SEGMENT_BYTES: u64 = 5 << 20;
const SEGMENT_BLOCKS: u64 = SEGMENT_BYTES / BLOCK_BYTES;
/// What the host had written when it was measured.
const WRITTEN_BYTES: u64 = 14_000_000_000;
/// Where the cliff is looked for: more than the persistent cache holds.
const CLIFF_WITHIN_BYTES: u64 = 40_000_000_000;
/// The cliff is looked for between so many segments.
const SEGMENTS_PER_STEP: u64 = 10;
/// Blocks whose bitmaps lie together: sixteen groups of 32,768 (ext4 with blocks of 4 KiB).
const BITMAPS_TOGETHER_OVER: u64 = 16 * 32_768;
/// Blocks of the journal: 128 MiB.
const JOURNAL_BLOCKS: u64 = 32_768;
/// A transaction before its commit: a descriptor, and what a new file changes in the directory, in
/// the table and the bitmap of inodes, in the bitmap of blocks and in the descriptors of groups.
const TRANSACTION_BLOCKS: u64 = 6;
/// Segments from the write of a bitmap to the journal to its write in place: Linux writes back after
/// 30 s, and a segment takes about a tenth of a second.
const WRITTEN_BACK_AFTER: usize = 300;

/// What a backup took.
#[derive(Clone, Copy, Debug)]
pub struct Backup {
    /// MB/s of segments until the first band is cleaned, at most over the first 14 GB.
    pub burst_mb_per_s: f64,
    /// GB of segments when the first band is cleaned; `None` where that is not seen.
    pub burst_gb: Option<f64>,
    /// Hours until nothing is cleaned any more after 14 GB; `None` of a drive that does not clean in
    /// idle time.
    pub drain_hours: Option<f64>,
    /// Mean time of these cleans in s.
    pub clean_s: Option<f64>,
}

/// The file system, and where it is.
struct FileSystem {
    rng: Rng,
    blocks: u64,
    /// Blocks of the journal written so far.
    journal_written: u64,
    /// Where the bitmaps lie that are still to be written in place.
    bitmaps: VecDeque<u64>,
}

impl FileSystem {
    fn new(seed: u64, session: &Session) -> FileSystem {
        FileSystem {
            rng: Rng::new(seed, 19),
            blocks: session.device_bytes() / BLOCK_BYTES,
            journal_written: 0,
            bitmaps: VecDeque::new(),
        }
    }

    /// The next blocks of the journal, which lies in the middle of the disk.
    fn journal(&mut self, blocks: u64) -> Extent {
        if self.journal_written % JOURNAL_BLOCKS + blocks > JOURNAL_BLOCKS {
            self.journal_written = self.journal_written.next_multiple_of(JOURNAL_BLOCKS);
        }
        let at = self.blocks / 2 + self.journal_written % JOURNAL_BLOCKS;
        self.journal_written += blocks;
        Extent::new(at, blocks)
    }

    /// What is done for a segment.
    fn segment(&mut self) -> Vec<Step> {
        let flush = || Step::new(Operation::Flush, Extent::EMPTY);
        let write = |extent| Step::new(Operation::WRITE, extent);
        let start = self.rng.below(self.blocks / SEGMENT_BLOCKS) * SEGMENT_BLOCKS;
        let group = start / BITMAPS_TOGETHER_OVER * BITMAPS_TOGETHER_OVER;
        let in_groups = (start - group) / (BITMAPS_TOGETHER_OVER / 16);
        self.bitmaps.push_back(group + in_groups);
        let mut steps = vec![
            write(Extent::new(start, SEGMENT_BLOCKS)),
            write(self.journal(TRANSACTION_BLOCKS)),
            flush(),
            write(self.journal(1)),
            flush(),
            flush(),
        ];
        if self.bitmaps.len() > WRITTEN_BACK_AFTER {
            steps.extend(self.write_back());
        }
        steps
    }

    /// The oldest bitmap goes home.
    fn write_back(&mut self) -> Option<Step> {
        let bitmap = self.bitmaps.pop_front()?;
        Some(Step::new(Operation::WRITE, Extent::new(bitmap, 1)))
    }
}

/// Writes so many segments.
fn write(session: &mut Session, files: &mut FileSystem, segments: u64) -> Result<(), BenchError> {
    for _ in 0..segments {
        let steps = files.segment().into_iter();
        run_on(session, vec![Stream::new(1, steps)])
            .map_err(|error| BenchError::Words(format!("a backup: {error}")))?;
    }
    Ok(())
}

/// How fast a backup is until the drive cleans, when that is, and how long the drive then needs to
/// clean all that was written.
///
/// # Errors
/// When there is no such drive, or it fails.
pub fn backup(subject: &Subject) -> Result<Backup, BenchError> {
    let (burst_mb_per_s, burst_gb) = burst(subject)?;
    let mut session = subject.session()?;
    let mut files = FileSystem::new(subject.seed, &session);
    write(&mut session, &mut files, WRITTEN_BYTES / SEGMENT_BYTES)?;
    let rest: Vec<Step> = std::iter::from_fn(|| files.write_back()).collect();
    run_on(&mut session, vec![Stream::new(1, rest.into_iter())])
        .map_err(|error| BenchError::Words(format!("a backup: {error}")))?;
    let (bands, ns) = rewritten(&session);
    let silence = silence_until_clean(&mut session);
    let (all_bands, all_ns) = rewritten(&session);
    let cleaned = all_bands - bands;
    Ok(Backup {
        burst_mb_per_s,
        burst_gb,
        drain_hours: silence.map(|time| time.as_seconds() / 3600.0),
        clean_s: (cleaned > 0).then(|| (all_ns - ns) as f64 / cleaned as f64 / 1e9),
    })
}

/// MB/s until the first band is cleaned, and GB until then.
fn burst(subject: &Subject) -> Result<(f64, Option<f64>), BenchError> {
    let mut session = subject.session()?;
    let mut files = FileSystem::new(subject.seed, &session);
    let begun = session.now();
    let (mut bytes, mut rate) = (0, 0.0);
    while bytes < CLIFF_WITHIN_BYTES {
        write(&mut session, &mut files, SEGMENTS_PER_STEP)?;
        if rewritten(&session).0 > 0 {
            return Ok((rate, Some(bytes as f64 / 1e9)));
        }
        bytes += SEGMENTS_PER_STEP * SEGMENT_BYTES;
        if bytes <= WRITTEN_BYTES {
            rate = bytes as f64 / 1e6 / session.now().since(begun).as_seconds();
        }
    }
    Ok((rate, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(settings: &[&str]) -> Subject {
        Subject::quick("st8000as0002", settings)
    }

    #[test]
    fn a_segment_is_committed_by_two_flushes_and_its_bitmap_follows() {
        let session = subject(&[]).session().unwrap();
        let mut files = FileSystem::new(1, &session);
        let segments: Vec<Vec<Step>> = (0..2_000).map(|_| files.segment()).collect();
        let flushes = |steps: &[Step]| {
            let flush = |step: &&Step| step.operation == Operation::Flush;
            steps.iter().filter(flush).count()
        };
        assert!(segments.iter().all(|steps| flushes(steps) == 3));
        let bitmap = |index: usize| segments[index].get(6).map(|step| step.extent.start.0);
        assert_eq!(bitmap(WRITTEN_BACK_AFTER - 1), None);
        for index in WRITTEN_BACK_AFTER..segments.len() {
            let data = segments[index - WRITTEN_BACK_AFTER][0].extent.start.0;
            let bitmap = bitmap(index).expect("a bitmap");
            assert_eq!(data / BITMAPS_TOGETHER_OVER, bitmap / BITMAPS_TOGETHER_OVER);
            assert_eq!(data % BITMAPS_TOGETHER_OVER / 32_768, bitmap % BITMAPS_TOGETHER_OVER);
        }
        let journal = |steps: &Vec<Step>| [1, 3].map(|at: usize| steps[at].extent);
        let middle = files.blocks / 2;
        let is_in_journal = |it: Extent| {
            it.start.0 >= middle && it.end().0 <= middle + JOURNAL_BLOCKS && !it.is_empty()
        };
        assert!(segments.iter().flat_map(journal).all(is_in_journal));
    }

    /// Rows V19h and V10: a clean in idle time is slower than one for want of room, because the drive
    /// looks for requests between two tracks and loses its place.
    #[test]
    fn a_backup_drains_for_most_of_an_hour_because_idle_cleans_go_track_by_track() {
        let by_track = backup(&subject(&[])).unwrap();
        let at_once = backup(&subject(&["translation.idle_piece=band"])).unwrap();
        println!("{by_track:.2?}; in passes over the band: {at_once:.2?}");
        let drains = |it: &Backup| (0.7..=2.5).contains(&it.drain_hours.unwrap());
        let cleans = |it: &Backup| (0.6..=1.6).contains(&it.clean_s.unwrap());
        assert!(drains(&by_track) && cleans(&by_track));
        assert!(!drains(&at_once) && !cleans(&at_once));
    }
}
