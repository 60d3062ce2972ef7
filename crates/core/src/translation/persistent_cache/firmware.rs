//! The firmware of a modelled drive: how it keeps its map of the log over a power cut, as far as
//! that takes time and room. A record for each flush, a stall every so many records, notes of band
//! rewrites.
//!
//! What a translation with a journal writes of its map is in its journal; it takes from here the
//! room and the stalls only, which belong to the drive that it stands for.

use super::settings::MapJournalSettings;
use super::transaction::{Takes, Transaction};
use crate::crc;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Duration, Instant, Lba};
use alloc::collections::VecDeque;

/// First word of a note: "imbrexPC", little-endian.
const NOTE_MAGIC: u64 = u64::from_le_bytes(*b"imbrexPC");
/// Words of a note, and its bytes with the checksum.
const NOTE_WORDS: usize = 10;
const NOTE_BYTES: usize = NOTE_WORDS * 8 + 4;

/// What a note says of a band rewrite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(super) enum Note {
    /// The scratch band holds the band from its offset on.
    ScratchComplete = 1,
    /// The band is complete at home.
    HomeComplete = 2,
}

/// What a flush needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FlushNeeds {
    /// The flush alone.
    Nothing,
    /// A record that says what was written before.
    Record,
}

/// What a record ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum RecordOf {
    /// The flush that is this job.
    Flush(u32),
    /// A transaction that was full.
    Transaction,
}

/// What has happened since the last flush and since the last stall.
#[derive(Clone, Debug, Saved)]
pub(super) struct Firmware {
    #[saved(keep)]
    settings: MapJournalSettings,
    /// Flushes with a record since the last stall.
    flushes: u64,
    /// Packets since the last flush or stall.
    packets: u64,
    is_stalled: bool,
    /// The address appended last ...
    newest: Lba,
    /// ... and whether no record tells of it.
    is_unrecorded: bool,
    /// Records that are to be written.
    in_flight: u32,
    /// Records that the firmware makes up, and until when.
    delayed: VecDeque<(Instant, RecordOf)>,
    /// What it takes from the host before it writes to the log.
    pub transaction: Transaction,
    /// Slots to be skipped before anything is appended.
    skip: u64,
    /// Notes written so far.
    notes: u64,
}

impl Firmware {
    /// The firmware of a drive on which nothing has happened.
    pub fn new(settings: MapJournalSettings) -> Firmware {
        Firmware {
            settings,
            flushes: 0,
            packets: 0,
            is_stalled: false,
            newest: Lba(0),
            is_unrecorded: false,
            in_flight: 0,
            delayed: VecDeque::new(),
            transaction: Transaction::new(settings.transaction),
            skip: 0,
            notes: 0,
        }
    }

    /// A run that begins at this address has been appended.
    #[inline]
    pub fn count_packet(&mut self, first: Lba) {
        self.packets += 1;
        self.newest = first;
        self.is_unrecorded = true;
    }

    /// How much of a run of blocks may go to the log now.
    #[inline]
    pub fn takes(&self, run: BlockCount) -> Takes {
        self.transaction.takes(run, self.in_flight)
    }

    /// A transaction is full and needs a record. The record is none of a flush: it is not counted
    /// for the stalls and takes no room in the log.
    pub fn begin_commit(&mut self) {
        self.transaction.begin_commit();
        self.is_unrecorded = false;
        self.in_flight += 1;
    }

    /// True while writes wait for the map to be written out.
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Begins a stall when one is due, and says how long it takes.
    #[inline]
    pub fn begin_stall(&mut self) -> Option<Duration> {
        let every = self.settings.every_records;
        if every == 0 || self.is_stalled || self.flushes.max(self.packets) < every {
            return None;
        }
        let per_mib = u128::from(self.settings.stall_per_mib.0);
        let log_bytes = u128::from(self.flushes) * u128::from(self.settings.log_per_flush.bytes());
        let growth_ns = (per_mib * log_bytes) >> 20;
        let stall = Duration(self.settings.stall.0 + growth_ns as u64);
        self.flushes = 0;
        self.packets = 0;
        self.is_stalled = stall > Duration::ZERO;
        self.is_stalled.then_some(stall)
    }

    /// The map is on the medium.
    pub fn end_of_stall(&mut self) {
        self.is_stalled = false;
    }

    /// True when a flush writes a record of what went to the log.
    pub fn flushes_have_records(&self) -> bool {
        self.settings.log_per_flush > BlockCount::ZERO
    }

    /// A flush has arrived.
    pub fn begin_flush(&mut self) -> FlushNeeds {
        let is_news = core::mem::take(&mut self.is_unrecorded);
        if is_news {
            self.flushes += 1;
            self.packets = 0;
        }
        self.transaction.close();
        let log_per_flush = self.settings.log_per_flush;
        // What another flush is about to record is not safe before that record is.
        if log_per_flush == BlockCount::ZERO || (!is_news && self.in_flight == 0) {
            return FlushNeeds::Nothing;
        }
        self.in_flight += 1;
        if is_news {
            self.skip += log_per_flush.0;
        }
        FlushNeeds::Record
    }

    /// Begins to make up a record; returns when the firmware is done with it, or `None` when it
    /// takes no time.
    pub fn make_up_record(&mut self, of: RecordOf, now: Instant) -> Option<Instant> {
        let overhead = self.settings.flush_overhead;
        if overhead == Duration::ZERO {
            return None;
        }
        let at = now + overhead;
        self.delayed.push_back((at, of));
        Some(at)
    }

    /// True when one record alone is being made up.
    pub fn makes_up_one(&self) -> bool {
        self.delayed.len() == 1
    }

    /// The oldest record that is made up by now.
    pub fn next_made_up(&mut self, now: Instant) -> Option<RecordOf> {
        self.delayed.front().filter(|(at, _)| *at <= now)?;
        self.delayed.pop_front().map(|(_, of)| of)
    }

    /// When the oldest record that is being made up is done.
    pub fn made_up_at(&self) -> Option<Instant> {
        self.delayed.front().map(|(at, _)| *at)
    }

    /// A record is written, or will not be.
    pub fn end_of_record(&mut self) {
        self.in_flight -= 1;
    }

    /// The address that a record is about.
    pub fn newest(&self) -> Lba {
        self.newest
    }

    /// Slots to be skipped before anything is appended: those that records of flushes take.
    pub fn slots_to_skip(&self) -> u64 {
        self.skip
    }

    /// So many slots were skipped.
    pub fn skipped(&mut self, blocks: BlockCount) {
        self.skip -= blocks.0;
    }

    /// The block of the metadata track, which has so many, that the next note goes to.
    pub fn note_block(&self, track_blocks: u64) -> u64 {
        self.notes % track_blocks
    }

    /// The next note: what has come to its end, and the words that tell of the rewrite and the log.
    pub fn write_note(&mut self, note: Note, words: [u64; NOTE_WORDS - 3]) -> [u8; NOTE_BYTES] {
        let head = [NOTE_MAGIC, self.notes, note as u64];
        self.notes += 1;
        let mut record = [0; NOTE_BYTES];
        let words = head.into_iter().chain(words);
        for (bytes, word) in record.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc::crc32c(&record[..NOTE_BYTES - 4]);
        record[NOTE_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firmware() -> Firmware {
        Firmware::new(MapJournalSettings {
            every_records: 2,
            stall: Duration::from_ms(5),
            stall_per_mib: Duration::from_ms(256),
            log_per_flush: BlockCount(4),
            transaction: BlockCount(8),
            flush_overhead: Duration::from_ms(1),
        })
    }

    #[test]
    fn a_flush_needs_a_record_when_it_brings_news_or_another_one_does() {
        let mut firmware = firmware();
        assert_eq!(firmware.begin_flush(), FlushNeeds::Nothing);
        firmware.count_packet(Lba(7));
        assert_eq!(firmware.begin_flush(), FlushNeeds::Record);
        assert_eq!(firmware.begin_flush(), FlushNeeds::Record, "not safe before it");
        assert_eq!(firmware.slots_to_skip(), 4, "one record in the log");
        firmware.end_of_record();
        firmware.end_of_record();
        assert_eq!(firmware.begin_flush(), FlushNeeds::Nothing);
        assert_eq!(firmware.newest(), Lba(7));
    }

    #[test]
    fn a_stall_comes_after_so_many_records_and_grows_with_the_log_they_took() {
        let mut firmware = firmware();
        for _ in 0..2 {
            assert_eq!(firmware.begin_stall(), None);
            firmware.count_packet(Lba(0));
            firmware.begin_flush();
        }
        // Two records of 16 KiB are 1/32 MiB.
        assert_eq!(firmware.begin_stall(), Some(Duration::from_ms(5 + 8)));
        assert!(firmware.is_stalled());
        assert_eq!(firmware.begin_stall(), None, "one at a time");
        firmware.end_of_stall();
        assert!(!firmware.is_stalled());
    }

    #[test]
    fn the_record_of_a_full_transaction_counts_for_no_stall_and_takes_no_log() {
        let mut firmware = firmware();
        firmware.count_packet(Lba(7));
        firmware.transaction.begin_run(BlockCount(8));
        firmware.transaction.end_run(BlockCount(8));
        assert_eq!(firmware.takes(BlockCount(2)), Takes::AfterCommit);
        firmware.begin_commit();
        assert_eq!(firmware.begin_flush(), FlushNeeds::Record, "not safe yet");
        firmware.end_of_record();
        firmware.transaction.end_commit(Ok(()));
        assert_eq!(firmware.takes(BlockCount(2)), Takes::Later, "the flush's");
        firmware.end_of_record();
        assert_eq!(firmware.takes(BlockCount(2)), Takes::Now(BlockCount(2)));
        assert_eq!(firmware.begin_flush(), FlushNeeds::Nothing, "it is told of");
        assert_eq!(firmware.slots_to_skip(), 0);
        assert_eq!(firmware.begin_stall(), None);
    }

    #[test]
    fn records_are_made_up_in_order() {
        let mut firmware = firmware();
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let flush = RecordOf::Flush(3);
        assert_eq!(firmware.make_up_record(flush, at(0)), Some(at(1)));
        assert!(firmware.makes_up_one());
        let of = RecordOf::Transaction;
        assert_eq!(firmware.make_up_record(of, at(5)), Some(at(6)));
        assert_eq!(firmware.next_made_up(at(1)), Some(flush));
        assert_eq!(firmware.next_made_up(at(1)), None);
        assert_eq!(firmware.made_up_at(), Some(at(6)));
    }
}
