//! What the drive goes on reading after a read, and the segments that keep it.

use super::arm::{Access, AccessTime, Arm, Direction};
use super::platters::Place;
use super::segments::{ReadAheadTo, Segments};
use imbrex_core::extent::Extent;
use imbrex_core::saved::SavedValue;
use imbrex_core::units::Instant;

/// Blocks that the drive goes on reading after a read, until something else is to be done.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct ReadAhead {
    /// First block held.
    pub from: u64,
    /// Block the head has got to ...
    pub reached: u64,
    /// ... and when.
    pub reached_at: u64,
    /// Where the buffer ends.
    pub stop: u64,
}

impl Arm {
    /// Gives the drive segments.
    pub fn with_segments(mut self, segments: Option<Segments>) -> Arm {
        self.segments = segments.map(Box::new);
        self
    }

    /// Whether a segment holds all of `extent` at `now`. Tells the segments of a read.
    #[inline]
    pub fn holds(&mut self, now: Instant, extent: Extent) -> bool {
        self.segments.is_some() && self.segments_hold(now, extent)
    }

    fn segments_hold(&mut self, now: Instant, extent: Extent) -> bool {
        self.read_on_until(now);
        let Some(segments) = &mut self.segments else {
            return false;
        };
        let active = self.ahead.is_some_and(|ahead| {
            let covered = ahead.from <= extent.start.0 && extent.end().0 <= ahead.reached;
            covered && ahead.reached_at <= now.0
        });
        let held = active || segments.covers(extent);
        if active && segments.after_hit {
            self.resume(now);
            self.extend_ahead(extent);
        }
        held
    }

    /// A stream that had stopped because its segment was full has to wait until its place comes
    /// round again.
    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(mut ahead) = self.ahead
            && ahead.reached == ahead.stop
            && ahead.reached_at < now.0
            && ahead.reached < self.platters.blocks()
        {
            let place = self.platters.place(ahead.reached);
            // At the start of a track the wait comes after the step to it.
            ahead.reached_at = now.0;
            if place.offset > 0 {
                ahead.reached_at += self.wait_ns(now.0, &place, place.offset);
            }
            self.ahead = Some(ahead);
        }
    }

    /// Tells the segments of blocks that are written.
    #[inline]
    pub fn wrote(&mut self, now: Instant, extent: Extent) {
        if self.segments.is_some() {
            self.read_on_until(now);
            self.end_stream();
            if let Some(segments) = &mut self.segments {
                segments.written(extent);
            }
        }
    }

    /// The stream is over: what it has read becomes a segment like the others.
    pub(super) fn end_stream(&mut self) {
        if let (Some(ahead), Some(segments)) = (self.ahead.take(), &mut self.segments) {
            segments.keep(Extent::new(ahead.from, ahead.reached - ahead.from));
        }
    }

    /// Brings the look-ahead to what the head has passed by `now`.
    pub(super) fn read_on_until(&mut self, now: Instant) {
        let Some(mut ahead) = self.ahead else {
            return;
        };
        while ahead.reached < ahead.stop && ahead.reached_at < now.0 {
            let place = self.platters.place(ahead.reached);
            let begin_ns = ahead.reached_at + self.step_ns(ahead.reached_at, &place);
            let part = (ahead.stop - ahead.reached).min(place.end - place.offset);
            let past_ns = self.platters.sweep_ns(&place, place.offset);
            let sweep = |blocks| self.platters.sweep_ns(&place, place.offset + blocks) - past_ns;
            let turn_ns = self.platters.revolution_ns();
            let passed = now.0.saturating_sub(begin_ns) * place.blocks_per_track / turn_ns;
            if passed == 0 {
                break;
            }
            ahead.reached += part.min(passed);
            ahead.reached_at = begin_ns + sweep(part.min(passed));
            self.cylinder = place.cylinder;
            self.surface = place.surface;
            if passed < part {
                break;
            }
        }
        self.ahead = Some(ahead);
    }

    /// What the head takes at `at_ns` to get to a track that it has yet to begin.
    #[inline]
    fn step_ns(&self, at_ns: u64, place: &Place) -> u64 {
        if place.offset > 0 {
            return 0;
        }
        let move_ns = self.move_ns(self.cylinder, self.surface, place, Direction::Read);
        move_ns + self.wait_ns(at_ns + move_ns, place, 0)
    }

    /// An access of a drive with segments: a read takes its first blocks from a segment that holds
    /// them, and becomes the stream.
    pub(super) fn access_with_segments(
        &mut self,
        start: Instant,
        extent: Extent,
        direction: Direction,
    ) -> Access {
        self.read_on_until(start);
        if direction == Direction::Read && self.streams(extent.start.0) {
            return self.stream(start, extent);
        }
        self.end_stream();
        if direction == Direction::Write {
            let place = self.platters.place(extent.start.0);
            return self.position_and_transfer(start, extent, &place, direction);
        }
        let segments = self.segments.as_mut().expect("a drive with segments");
        match segments.take_start(extent) {
            Some(held) => self.read_from(start, extent, held.end().0, Some(held.start.0)),
            None => self.read_from(start, extent, extent.start.0, None),
        }
    }

    /// Reads `extent` from block `from` on, what is before it being in a segment that begins at
    /// `held`, and goes on as a stream.
    pub(super) fn read_from(
        &mut self,
        start: Instant,
        extent: Extent,
        from: u64,
        held: Option<u64>,
    ) -> Access {
        let missing = Extent::new(from, extent.end().0 - from);
        let place = self.platters.place(from);
        let access = self.position_and_transfer(start, missing, &place, Direction::Read);
        let passed = match self.segments.as_ref().is_some_and(|s| s.keeps_passed) {
            true => {
                access.time.rotation_ns * place.blocks_per_track / self.platters.revolution_ns()
            }
            false => 0,
        };
        self.ahead = Some(ReadAhead {
            from: held.unwrap_or(from - passed.min(place.offset)),
            reached: self.next_block,
            reached_at: access.end.0,
            stop: self.next_block,
        });
        if let Some(segments) = &mut self.segments {
            segments.make_room();
        }
        self.extend_ahead(extent);
        access
    }

    /// The stream reads on after a read of `extent`, as far as a drive with segments does, and
    /// drops what no longer fits its segment.
    pub(super) fn extend_ahead(&mut self, extent: Extent) {
        let end = extent.end().0;
        let (Some(ahead), Some(segments)) = (&mut self.ahead, &mut self.segments) else {
            return;
        };
        let mut stop = (end + self.read_ahead_blocks)
            .min(extent.start.0 + segments.blocks)
            .min(self.platters.blocks());
        if segments.read_ahead_to != ReadAheadTo::Segment {
            let next_block = end.min(self.platters.blocks() - 1);
            let place = self.platters.place(next_block);
            let mut last_end = next_block + place.end - place.offset;
            let mut next = self.platters.next_track(&place);
            match segments.read_ahead_to {
                // The stream has come from an earlier track.
                ReadAheadTo::Track if ahead.from < next_block.saturating_sub(place.offset) => {
                    last_end += next.end - next.offset;
                }
                ReadAheadTo::CylinderEnd => {
                    while next.cylinder == place.cylinder && next.surface != place.surface {
                        last_end += next.end - next.offset;
                        next = self.platters.next_track(&next);
                    }
                }
                _ => {}
            }
            stop = stop.min(last_end);
        }
        ahead.stop = stop.max(ahead.reached);
        ahead.from = ahead.from.max(ahead.stop.saturating_sub(segments.blocks));
    }

    pub(super) fn ahead_stop(&self) -> u64 {
        (self.next_block + self.read_ahead_blocks).min(self.platters.blocks())
    }

    /// True when a read from `block` finds the look-ahead there.
    #[inline]
    pub(super) fn streams(&self, block: u64) -> bool {
        self.ahead.is_some_and(|ahead| {
            ahead.from <= block && block <= ahead.stop && block < self.platters.blocks()
        })
    }

    /// A read that the look-ahead has begun already.
    pub(super) fn stream(&mut self, start: Instant, extent: Extent) -> Access {
        let mut ahead = self.ahead.expect("a look-ahead that reaches the read");
        let end = extent.end().0;
        let mut time = AccessTime::default();
        // The head stops where the buffer is full. When it had stopped before this read made room,
        // it has to wait for the place to come round again.
        let (before, cylinder, surface) = (ahead, self.cylinder, self.surface);
        let stop = ahead.stop;
        self.advance(&mut ahead, stop);
        let paused = ahead.reached_at < start.0;
        if paused {
            let place = self.platters.place(ahead.reached);
            // At the start of a track the wait comes after the step to it, in `advance`.
            let wait_ns = match place.offset {
                0 => 0,
                offset => self.wait_ns(start.0, &place, offset),
            };
            ahead.reached_at = start.0 + wait_ns;
        } else {
            (ahead, self.cylinder, self.surface) = (before, cylinder, surface);
        }
        let held = end <= ahead.reached;
        self.advance(&mut ahead, end);
        let end_ns = match held {
            true => start.0,
            false => ahead.reached_at.max(start.0),
        };
        time.transfer_ns = end_ns - start.0;
        self.next_block = end;
        self.last = Direction::Read;
        if self.segments.is_some() {
            self.ahead = Some(ahead);
            self.extend_ahead(extent);
        } else {
            ahead.from = extent.start.0;
            ahead.stop = self.ahead_stop().max(ahead.reached);
            self.ahead = Some(ahead);
        }
        Access { first: None, end: Instant(end_ns), time }
    }

    pub(super) fn advance(&mut self, ahead: &mut ReadAhead, to: u64) {
        if to > ahead.reached {
            let place = self.platters.place(ahead.reached);
            let mut unused = AccessTime::default();
            // At the first block of a track the head has yet to get there.
            let mut begin_ns = ahead.reached_at;
            if place.offset == 0 && ahead.reached > 0 {
                let move_ns = self.move_ns(self.cylinder, self.surface, &place, Direction::Read);
                begin_ns += move_ns;
                begin_ns += self.wait_ns(begin_ns, &place, 0);
            }
            let blocks = to - ahead.reached;
            ahead.reached_at = self.transfer(begin_ns, place, blocks, Direction::Read, &mut unused);
            ahead.reached = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arm::tests::{REVOLUTION_NS, access, arm};
    use super::super::segments::SegmentModel;
    use super::*;
    use crate::quantity::Size;

    #[test]
    fn read_ahead_turns_late_sequential_reads_into_a_stream() {
        let mut arm = arm(256);
        let mut at_ns = access(&mut arm, 0, Extent::new(0, 16), Direction::Read).end.0;
        let begin_ns = at_ns;
        for i in 1..500 {
            at_ns += 200_000;
            at_ns = access(&mut arm, at_ns, Extent::new(i * 16, 16), Direction::Read).end.0;
        }
        let tracks = 499.0 * 16.0 / 400.0;
        let expected_ns = tracks * (REVOLUTION_NS + 1_500_000) as f64;
        let ratio = (at_ns - begin_ns) as f64 / expected_ns;
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
    }

    #[test]
    fn read_ahead_stops_when_its_buffer_is_full() {
        let mut arm = arm(100);
        access(&mut arm, 0, Extent::new(0, 10), Direction::Read);
        let late_ns = 95_000_000;
        let held = access(&mut arm, late_ns, Extent::new(10, 100), Direction::Read);
        assert_eq!(held.end.0, late_ns, "all of it is in the buffer");
        let next = access(&mut arm, late_ns, Extent::new(110, 50), Direction::Read);
        assert!(next.end.0 > late_ns, "the head had stopped at block 110");
        assert!(next.end.0 <= late_ns + REVOLUTION_NS + 50 * 25_000);
    }

    fn with_segments(count: u32, after_hit: bool) -> Arm {
        let model = SegmentModel {
            count,
            size: Size(200 * 4096),
            read_ahead_to: ReadAheadTo::Segment,
            after_hit,
            keeps_passed: false,
            keeps_written: false,
            separate_write_segment: false,
        };
        arm(150).with_segments(Some(Segments::new(&model, 4096)))
    }

    /// Three slow readers in turn: with a segment for each, most of what they ask for is there.
    #[test]
    fn each_of_several_streams_keeps_its_segment() {
        let held_of = |count: u32| {
            let mut arm = with_segments(count, true);
            let (mut at_ns, mut held) = (0, 0);
            for i in 0..300 {
                at_ns += 40_000_000;
                let extent = Extent::new(i % 3 * 1_000_000 + i / 3 * 10, 10);
                if arm.holds(Instant(at_ns), extent) {
                    held += 1;
                } else {
                    at_ns = access(&mut arm, at_ns, extent, Direction::Read).end.0;
                }
            }
            held
        };
        let (one, many) = (held_of(1), held_of(4));
        assert_eq!(one, 0, "each reader drives out the one before it");
        assert!(many > 250, "{many} of 300");
    }

    #[test]
    fn a_full_segment_is_read_on_from_where_the_head_is() {
        for after_hit in [false, true] {
            let mut arm = with_segments(2, after_hit);
            access(&mut arm, 0, Extent::new(0, 10), Direction::Read);
            let late_ns = 95_000_000;
            assert!(arm.holds(Instant(late_ns), Extent::new(10, 100)));
            let soon = Extent::new(160, 40);
            assert!(!arm.holds(Instant(late_ns), soon), "the head had stopped");
            let later = Instant(late_ns + 2 * REVOLUTION_NS);
            assert_eq!(arm.holds(later, soon), after_hit);
        }
    }

    #[test]
    fn blocks_that_are_written_are_held_no_more() {
        let mut arm = with_segments(4, false);
        access(&mut arm, 0, Extent::new(0, 10), Direction::Read);
        assert!(arm.holds(Instant(50_000_000), Extent::new(20, 10)));
        arm.wrote(Instant(50_000_000), Extent::new(25, 1));
        assert!(!arm.holds(Instant(50_000_000), Extent::new(20, 10)));
    }
}
