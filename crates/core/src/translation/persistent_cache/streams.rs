//! The most recent sequential streams of writes: a long one may go around the log.
//!
//! A drive whose flushes have records cannot know that a flush will come, so it goes by those that came:
//!
//! * A flush *stops* every stream that has come since the last one, after what it brought since. It has
//!   not stopped a stream that goes on later where it was.
//! * A stream goes around the log when it is longer than `after`, and longer than what each of the
//!   others that are followed had brought when a flush stopped it, but for `after_max` at most.
//! * One that goes around keeps that over a flush. One that does not begins anew, unless it brought
//!   `after` since the flush before: so a stream that is flushed after each short write goes to the log.
//! * A forced write is flushed by itself: it goes to the log, and its stream is stopped and begins anew.

use super::settings::BypassSettings;
use crate::extent::Extent;
use crate::saved::{Saved, SavedValue};
use crate::units::Lba;

/// Streams followed at once.
const STREAMS_MAX: usize = 16;

/// From which of its blocks on a write goes around the log that goes to the log with all of them.
pub(super) const NEVER: u64 = u64::MAX;

/// The most recent sequential streams of writes.
#[derive(Clone, Debug, Saved)]
pub(super) struct Streams {
    streams: [Stream; STREAMS_MAX],
    clock: u64,
    #[saved(keep)]
    bypass: BypassSettings,
    /// Flushes, and writes that are forced, have records.
    has_records: bool,
}

#[derive(Clone, Copy, Debug, Default, SavedValue)]
struct Stream {
    next: Lba,
    /// Blocks since it began.
    blocks: u64,
    /// Of these, since the last flush.
    unflushed: u64,
    /// What it had brought when a flush stopped it; 0 of one that goes on.
    stopped_after: u64,
    goes_around: bool,
    /// When it came last; 0 of one that never came.
    used: u64,
}

impl Streams {
    /// Follows none yet.
    pub fn new(bypass: BypassSettings, has_records: bool) -> Streams {
        Streams { streams: Default::default(), clock: 0, bypass, has_records }
    }

    /// Takes note of a write, and returns from which of its blocks on it goes around the log.
    pub fn follow(&mut self, extent: Extent, is_forced: bool) -> u64 {
        self.clock += 1;
        let index = self.stream_of(extent.start);
        let long = self.long();
        let stream = &mut self.streams[index];
        let from = match stream.goes_around {
            true => 0,
            false => long.saturating_sub(stream.blocks),
        };
        stream.next = extent.end();
        stream.blocks += extent.blocks.0;
        stream.unflushed += extent.blocks.0;
        stream.used = self.clock;
        if self.has_records && is_forced {
            stream.stop();
            (stream.blocks, stream.goes_around) = (0, false);
            return NEVER;
        }
        stream.goes_around = from < extent.blocks.0;
        from
    }

    /// A flush comes behind the writes so far.
    pub fn flush(&mut self) {
        if self.has_records {
            self.streams.iter_mut().for_each(Stream::stop);
        }
    }

    /// The place of the stream that a write at `start` continues, or of a new one instead of that
    /// which came last the longest time ago.
    fn stream_of(&mut self, start: Lba) -> usize {
        let continues = |stream: &Stream| stream.used > 0 && stream.next == start;
        if let Some(index) = self.streams.iter().position(continues) {
            self.streams[index].go_on(self.bypass.after_blocks.0);
            return index;
        }
        let ages = self.streams.iter().enumerate();
        let (oldest, _) = ages.min_by_key(|(_, stream)| stream.used).expect("some");
        self.streams[oldest] = Stream::default();
        oldest
    }

    /// How long a stream has to be to go around the log.
    fn long(&self) -> u64 {
        let stopped = self.streams.iter().map(|stream| stream.stopped_after);
        let longest = stopped.max().unwrap_or(0).min(self.bypass.after_max_blocks.0);
        longest.max(self.bypass.after_blocks.0)
    }
}

impl Stream {
    fn stop(&mut self) {
        if self.unflushed > 0 {
            self.stopped_after = self.unflushed;
            self.unflushed = 0;
        }
    }

    /// It comes again. One that was stopped after fewer blocks than `after` begins anew.
    fn go_on(&mut self, after: u64) {
        if self.stopped_after > 0 && self.stopped_after < after && !self.goes_around {
            self.blocks = 0;
        }
        self.stopped_after = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BlockCount;

    const AFTER: u64 = 16;
    const AFTER_MAX: u64 = 1000;

    fn streams(has_records: bool) -> Streams {
        let bypass = BypassSettings {
            after_max_blocks: BlockCount(AFTER_MAX),
            ..BypassSettings::after(BlockCount(AFTER))
        };
        Streams::new(bypass, has_records)
    }

    /// Writes of `length` blocks from `at` on, `count` of them in sequence; how many of their blocks
    /// go around the log.
    fn write(streams: &mut Streams, at: u64, length: u64, count: u64) -> u64 {
        let around = |from: u64| length.saturating_sub(from);
        (0..count)
            .map(|i| around(streams.follow(Extent::new(at + i * length, length), false)))
            .sum()
    }

    #[test]
    fn a_stream_that_nobody_flushes_goes_around_from_the_first_block_after_so_many() {
        for has_records in [false, true] {
            let mut streams = streams(has_records);
            assert_eq!(write(&mut streams, 0, 5, 20), 100 - AFTER);
            assert_eq!(write(&mut streams, 5_000, 100, 1), 100 - AFTER, "in one");
            assert_eq!(write(&mut streams, 100, 5, 1), 5, "it goes on");
        }
    }

    #[test]
    fn without_records_flushes_and_forced_writes_are_as_others() {
        let mut streams = streams(false);
        for i in 0..20 {
            let from = streams.follow(Extent::new(i * 5, 5), true);
            assert_eq!(from, AFTER.saturating_sub(i * 5));
            streams.flush();
        }
    }

    #[test]
    fn long_writes_that_are_flushed_one_by_one_go_to_the_log_after_the_first() {
        for length in [20, 100, AFTER_MAX] {
            let mut streams = streams(true);
            for i in 0..40 {
                let expected = if i == 0 { length - AFTER } else { 0 };
                assert_eq!(write(&mut streams, i * 10_000, length, 1), expected);
                streams.flush();
            }
            // One that is not flushed shows in time that it is longer.
            let longer = write(&mut streams, 1_000_000, 1, 2 * AFTER_MAX);
            assert_eq!(longer, 2 * AFTER_MAX - length);
        }
    }

    #[test]
    fn no_flush_makes_a_stream_wait_for_more_than_the_most() {
        let mut streams = streams(true);
        write(&mut streams, 0, 100, 50);
        streams.flush();
        assert_eq!(write(&mut streams, 1_000_000, 100, 50), 5_000 - AFTER_MAX);
    }

    #[test]
    fn a_copy_that_is_flushed_now_and_then_goes_around() {
        let mut streams = streams(true);
        let mut around = 0;
        for i in 0..100 {
            around += write(&mut streams, i * 500, 50, 10);
            // The journal of the file system.
            assert_eq!(write(&mut streams, 1_000_000 + i % 8 * 3, 1, 3), 0);
            streams.flush();
        }
        assert_eq!(around, 50_000 - AFTER);
    }

    #[test]
    fn a_copy_of_files_that_end_between_flushes_comes_back_to_going_around() {
        let mut streams = streams(true);
        let (mut around, mut written) = (0, 0);
        for file in 0..10 {
            for i in 0..73 {
                around += write(&mut streams, file * 10_000 + i * 50, 50, 1);
                written += 50;
                if written % 500 == 0 {
                    streams.flush();
                }
            }
        }
        assert!(around * 10 > written * 7, "{around} of {written}");
    }

    #[test]
    fn a_stream_that_is_flushed_after_each_short_write_goes_to_the_log() {
        let mut streams = streams(true);
        for i in 0..100 {
            assert_eq!(write(&mut streams, i * 5, 5, 1), 0);
            streams.flush();
        }
    }

    #[test]
    fn a_forced_write_goes_to_the_log_and_stops_its_stream_alone() {
        let mut streams = streams(true);
        write(&mut streams, 0, 50, 1);
        write(&mut streams, 1_000, 50, 1);
        assert_eq!(streams.follow(Extent::new(50, 50), true), NEVER);
        assert_eq!(write(&mut streams, 1_050, 5, 1), 5, "the other goes on");
        assert_eq!(write(&mut streams, 100, 5, 4), 20 - AFTER, "it begins anew");
        let from = streams.follow(Extent::new(5_000, 200), false);
        assert_eq!(from, AFTER, "what went on later was not stopped");
        streams.follow(Extent::new(9_000, 100), true);
        let from = streams.follow(Extent::new(5_200, 200), false);
        assert_eq!(from, 0, "one that goes around keeps that");
        let from = streams.follow(Extent::new(7_000, 200), false);
        assert_eq!(from, 100, "longer than what was forced at last");
    }
}
