//! The arm of a drive on a bus: what it finds in memory, and when each sector passes the head.

use super::arm::{Access, AccessTime, Arm, Direction};
use super::bus::{Arrivals, Run};
use super::platters::Place;
use imbrex_core::extent::Extent;
use imbrex_core::saved::SavedValue;
use imbrex_core::units::Instant;

/// What the arm of a drive on a bus notes.
#[derive(Clone, Debug, Default, SavedValue)]
pub(super) struct Noted {
    /// The sectors of the last access.
    pub runs: Vec<Run>,
    /// Least time of a seek before a write that does not go on from another.
    pub least_write_seek_ns: u64,
    /// When the last access ended.
    pub end_ns: u64,
}

/// What memory has of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// All of it.
    Whole,
    /// The first blocks, and the head is at those that follow or stopped there.
    Stream,
    /// The first blocks, in a segment of before.
    Segment(Extent),
    /// Not the first block.
    Nothing,
}

/// The data of a write on their way to the drive.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Feed {
    /// When the first sector began to cross the bus.
    pub begin_ns: u64,
    /// Time of each.
    pub sector_ns: u64,
    /// How many must have come before the head begins.
    pub head_start: u64,
}

impl Arm {
    /// Makes it the arm of a drive on a bus.
    pub fn with_bus(mut self, least_write_seek_ns: u64) -> Arm {
        self.noted = Some(Box::new(Noted { runs: Vec::new(), least_write_seek_ns, end_ns: 0 }));
        self
    }

    /// When the sectors of the last access, beyond the first `held`, were in memory.
    pub(super) fn arrivals(&self, held: u64) -> Arrivals<'_> {
        let runs = self.noted.as_ref().map_or(&[][..], |noted| &noted.runs);
        Arrivals { held, runs }
    }

    /// Notes sectors of the track of `place` that begin to pass the head at `at_ns`.
    pub(super) fn note(&mut self, at_ns: u64, sectors: u64, place: &Place) {
        if let Some(noted) = &mut self.noted {
            noted.runs.push(Run {
                begin_ns: at_ns,
                sectors,
                track_sectors: place.blocks_per_track,
                revolution_ns: self.platters.revolution_ns(),
            });
        }
    }

    /// Forgets the sectors of the access before.
    fn forget(&mut self) {
        if let Some(noted) = &mut self.noted {
            noted.runs.clear();
        }
    }

    /// A read is looked for in memory at `at`. Reading ahead ends unless the read is of its stream. A
    /// hit makes the stream go on; one that has stopped goes on at `ready` where `after_hit` says so.
    /// Memory has a block when it has passed the head: one that is about to come is a miss.
    pub(super) fn look_up(&mut self, at: Instant, ready: Instant, extent: Extent) -> Found {
        self.read_on_until(at);
        let (start, end) = (extent.start.0, extent.end().0);
        if let Some(ahead) = self.ahead
            && ahead.from <= start
            && start < ahead.reached
        {
            if end > ahead.reached {
                return Found::Stream;
            }
            let runs = ahead.reached < ahead.stop;
            if runs || self.segments.as_ref().is_some_and(|s| s.after_hit) {
                self.resume(ready);
                self.extend_ahead(extent);
            }
            return Found::Whole;
        }
        self.end_stream();
        let Some(segments) = &mut self.segments else {
            return Found::Nothing;
        };
        if segments.covers(extent) {
            return Found::Whole;
        }
        match segments.take_start(extent) {
            Some(held) if held.end().0 > start => Found::Segment(held),
            Some(held) => {
                segments.keep(held);
                Found::Nothing
            }
            None => Found::Nothing,
        }
    }

    /// When all sectors were in memory before.
    pub(super) fn all_held(sectors: u64) -> Arrivals<'static> {
        Arrivals { held: sectors, runs: &[] }
    }

    /// When the arm can begin what a read asks for at `at`: at once where reading ahead has its
    /// first block.
    pub(super) fn end_step_unless_read(&mut self, at: Instant, extent: Extent) -> Instant {
        self.read_on_until(at);
        let goes_on = self
            .ahead
            .is_some_and(|ahead| ahead.from <= extent.start.0 && extent.start.0 < ahead.reached);
        match goes_on {
            true => at,
            false => self.end_step(at),
        }
    }

    /// When the arm can begin something else, being asked at `at`: a step to the next track that
    /// reading ahead has begun is ended first.
    pub(super) fn end_step(&mut self, at: Instant) -> Instant {
        self.read_on_until(at);
        let Some(ahead) = self.ahead else {
            return at;
        };
        let place = self.platters.place(ahead.reached.min(self.platters.blocks() - 1));
        if ahead.reached >= ahead.stop || place.offset > 0 || ahead.reached_at > at.0 {
            return at;
        }
        let step_ns = self.move_ns(self.cylinder, self.surface, &place, Direction::Read);
        self.cylinder = place.cylinder;
        self.surface = place.surface;
        Instant(at.0.max(ahead.reached_at + step_ns))
    }

    /// Reads what memory does not have of `extent`, from `start` on, and goes on as a stream.
    /// Returns how many sectors memory had.
    pub(super) fn read_rest(
        &mut self,
        start: Instant,
        extent: Extent,
        found: Found,
    ) -> (u64, Access) {
        self.forget();
        let first = extent.start.0;
        match found {
            Found::Stream => self.go_on(start, extent),
            Found::Segment(held) => {
                let access = self.read_from(start, extent, held.end().0, Some(held.start.0));
                (held.end().0 - first, access)
            }
            Found::Whole | Found::Nothing => (0, self.read_from(start, extent, first, None)),
        }
    }

    /// Goes on with the stream that has the first block.
    fn go_on(&mut self, start: Instant, extent: Extent) -> (u64, Access) {
        let mut ahead = self.ahead.expect("a stream that holds the first block");
        let held = ahead.reached - extent.start.0;
        let place = self.platters.place(ahead.reached);
        if ahead.reached >= ahead.stop {
            // The head had stopped: its place has to come round again.
            ahead.reached_at = start.0;
            if place.offset > 0 {
                ahead.reached_at += self.wait_ns(start.0, &place, place.offset);
            }
        }
        let begin_ns = ahead.reached_at;
        self.advance(&mut ahead, extent.end().0);
        self.next_block = extent.end().0;
        self.last = Direction::Read;
        let end = Instant(ahead.reached_at);
        self.ahead = Some(ahead);
        self.extend_ahead(extent);
        let time = AccessTime { transfer_ns: end.0 - begin_ns, ..AccessTime::default() };
        let first = None;
        (held, Access { first, end, time })
    }

    /// Writes from `start` on. A turn more passes for a sector that is under the head before its
    /// data have come.
    pub(super) fn write_fed(
        &mut self,
        start: Instant,
        extent: Extent,
        feed: Option<Feed>,
    ) -> Access {
        self.forget();
        let place = self.platters.place(extent.start.0);
        let (mut seek_ns, mut rotation_ns) =
            self.position_ns(start, extent.start.0, &place, Direction::Write);
        let noted = self.noted.as_ref();
        let least_ns = noted.map_or(0, |noted| match noted.end_ns == start.0 {
            true => 0,
            false => noted.least_write_seek_ns,
        });
        if seek_ns < least_ns {
            seek_ns = least_ns;
            rotation_ns = self.wait_ns(start.0 + seek_ns, &place, place.offset);
        }
        let mut begin_ns = start.0 + seek_ns + rotation_ns;
        if let Some(feed) = feed {
            let part = extent.blocks.0.min(place.end - place.offset);
            let past_ns = self.platters.sweep_ns(&place, place.offset);
            let last_ns = self.platters.sweep_ns(&place, place.offset + part - 1) - past_ns;
            let needed_ns = feed.begin_ns + part * feed.sector_ns;
            // The first sectors can come late too, where the bus is the quicker side.
            let first = feed.head_start.clamp(1, extent.blocks.0);
            let needed_ns = needed_ns.max(feed.begin_ns + first * feed.sector_ns + last_ns);
            let late_ns = needed_ns.saturating_sub(begin_ns + last_ns);
            let wait_ns = self.whole_turns(late_ns);
            rotation_ns += wait_ns;
            begin_ns += wait_ns;
        }
        let seek_tracks = self.cylinder.abs_diff(place.cylinder);
        let mut time = AccessTime { seek_ns, rotation_ns, transfer_ns: 0, seek_tracks };
        let direction = Direction::Write;
        let end_ns = self.transfer(begin_ns, place, extent.blocks.0, direction, &mut time);
        self.next_block = extent.end().0;
        self.last = direction;
        if let Some(noted) = &mut self.noted {
            noted.end_ns = end_ns;
        }
        Access { first: Some(Instant(begin_ns)), end: Instant(end_ns), time }
    }

    /// The least time that is not below `ns` after which the same block is under the head.
    fn whole_turns(&self, ns: u64) -> u64 {
        match self.rotates() {
            true => ns.next_multiple_of(self.platters.revolution_ns()),
            false => ns,
        }
    }
}
