//! The arm over turning platters: what one access takes.

use super::bus_arm::Noted;
use super::platters::{Place, Platters};
use super::read_ahead::ReadAhead;
use super::seek::SeekCurve;
use super::segments::Segments;
use imbrex_core::extent::Extent;
use imbrex_core::saved::{Saved, SavedValue};
use imbrex_core::units::Instant;

/// Direction of a transfer between the heads and the platters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Direction {
    /// From the platters.
    Read,
    /// To the platters.
    Write,
}

/// How the time of an access was spent, in nanoseconds, and how far the arm went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessTime {
    /// Moving the arm, switching heads and settling.
    pub seek_ns: u64,
    /// Waiting for the block to come round.
    pub rotation_ns: u64,
    /// Under the head.
    pub transfer_ns: u64,
    /// Cylinders that the arm passed.
    pub seek_tracks: u64,
}

/// An access that has been carried out.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// When the first block came under the head, if it was not in memory already.
    pub first: Option<Instant>,
    /// When the last block had passed.
    pub end: Instant,
    /// What it was made of.
    pub time: AccessTime,
}

/// The arm, its position and the platters under it.
#[derive(Clone, Debug, Saved)]
pub struct Arm {
    /// Where blocks lie.
    #[saved(keep)]
    pub platters: Platters,
    /// How long the arm takes.
    #[saved(keep)]
    pub curve: SeekCurve,
    #[saved(keep)]
    head_switch_ns: u64,
    /// May be negative: the seek curve is that of reads.
    #[saved(keep)]
    write_settle_ns: i64,
    #[saved(keep)]
    pub(super) read_ahead_blocks: u64,
    /// Angle of the platters at time zero.
    #[saved(keep)]
    phase_ns: u64,
    /// False when every block is under its head as soon as the arm is on its track.
    #[saved(keep)]
    rotates: bool,
    pub(super) cylinder: u64,
    pub(super) surface: u64,
    /// The block after the last one transferred ...
    pub(super) next_block: u64,
    /// ... and in which direction.
    pub(super) last: Direction,
    pub(super) ahead: Option<ReadAhead>,
    /// What was read and written before; `None` for a drive that keeps only what it read last.
    #[saved(each)]
    pub(super) segments: Option<Box<Segments>>,
    /// What the arm of a drive on a bus notes.
    pub(super) noted: Option<Box<Noted>>,
}

impl Arm {
    /// An arm at rest on the outermost cylinder. `phase_ns` is the angle of the platters at time
    /// zero: spindles of different drives are not synchronised.
    pub fn new(
        platters: Platters,
        curve: SeekCurve,
        head_switch_ns: u64,
        write_settle_ns: i64,
        read_ahead_blocks: u64,
        phase_ns: u64,
    ) -> Arm {
        Arm {
            platters,
            curve,
            head_switch_ns,
            write_settle_ns,
            read_ahead_blocks,
            phase_ns,
            rotates: true,
            cylinder: 0,
            surface: 0,
            next_block: 0,
            last: Direction::Read,
            ahead: None,
            segments: None,
            noted: None,
        }
    }

    /// Takes rotational latency out unless `rotates`: the arm moves, settles and transfers as
    /// before, and waits for no block to come round.
    pub fn with_rotation(mut self, rotates: bool) -> Arm {
        self.rotates = rotates;
        self
    }

    /// Time to get onto the track of `place`, and to settle there before writing.
    #[inline]
    pub(super) fn move_ns(
        &self,
        cylinder: u64,
        surface: u64,
        place: &Place,
        direction: Direction,
    ) -> u64 {
        let seek = self.curve.time_ns(cylinder.abs_diff(place.cylinder));
        let switch = if surface == place.surface { 0 } else { self.head_switch_ns };
        let reach = seek.max(switch);
        match direction {
            Direction::Read => reach,
            Direction::Write => self.settled_ns(reach),
        }
    }

    /// Time to reach a track and to settle there. The arm of a drive on a bus settles only where it
    /// has moved.
    #[inline]
    fn settled_ns(&self, reach_ns: u64) -> u64 {
        match self.noted.is_some() && reach_ns == 0 {
            true => 0,
            false => reach_ns.saturating_add_signed(self.write_settle_ns),
        }
    }

    /// Whether blocks have to come round.
    pub(super) fn rotates(&self) -> bool {
        self.rotates
    }

    /// Time from `at_ns` until block `offset` of the track of `place` is under the head.
    #[inline]
    pub(super) fn wait_ns(&self, at_ns: u64, place: &Place, offset: u64) -> u64 {
        if !self.rotates {
            return 0;
        }
        let revolution_ns = self.platters.revolution_ns();
        let now_ns = (at_ns + self.phase_ns) % revolution_ns;
        let target_ns = self.platters.angle_ns(place, offset);
        if target_ns >= now_ns { target_ns - now_ns } else { target_ns + revolution_ns - now_ns }
    }

    /// When the first block of an access begun at `start` would be under the head by plan: a
    /// rotational wait shorter than `guard_ns` is not trusted and counts a revolution more, unless
    /// the access goes on where the last one ended. `None` where that is not before `limit_ns`.
    #[inline]
    pub fn planned_ns_before(
        &self,
        limit_ns: u64,
        start: Instant,
        block: u64,
        place: &Place,
        direction: Direction,
        guard_ns: u64,
    ) -> Option<u64> {
        let mut planned_ns = start.0;
        if direction == Direction::Write || !self.streams(block) {
            planned_ns += self.reach_ns(block, place, direction);
            // How long it would wait then need not be worked out.
            if planned_ns >= limit_ns {
                return None;
            }
            let wait_ns = self.wait_ns(planned_ns, place, place.offset);
            let missed = self.rotates && wait_ns < guard_ns && block != self.next_block;
            let penalty_ns = if missed { self.platters.revolution_ns() } else { 0 };
            planned_ns += wait_ns + penalty_ns;
        }
        (planned_ns < limit_ns).then_some(planned_ns)
    }

    #[inline]
    pub(super) fn position_ns(
        &self,
        start: Instant,
        block: u64,
        place: &Place,
        direction: Direction,
    ) -> (u64, u64) {
        let move_ns = self.reach_ns(block, place, direction);
        let wait_ns = self.wait_ns(start.0 + move_ns, place, place.offset);
        (move_ns, wait_ns)
    }

    /// Time to get onto the track of a block and to settle there.
    #[inline]
    fn reach_ns(&self, block: u64, place: &Place, direction: Direction) -> u64 {
        // A write that goes on along its track has settled already.
        let goes_on = block == self.next_block && place.offset > 0 && direction == self.last;
        match goes_on {
            true => 0,
            false => self.move_ns(self.cylinder, self.surface, place, direction),
        }
    }

    /// Carries out an access begun at `start`, all positioning included.
    pub fn access(
        &mut self,
        start: Instant,
        extent: Extent,
        place: &Place,
        direction: Direction,
    ) -> Access {
        if self.segments.is_some() {
            return self.access_with_segments(start, extent, direction);
        }
        if direction == Direction::Read && self.streams(extent.start.0) {
            return self.stream(start, extent);
        }
        let access = self.position_and_transfer(start, extent, place, direction);
        self.ahead = match direction {
            Direction::Read if self.read_ahead_blocks > 0 => Some(ReadAhead {
                from: extent.start.0,
                reached: self.next_block,
                reached_at: access.end.0,
                stop: self.ahead_stop(),
            }),
            _ => None,
        };
        access
    }

    pub(super) fn position_and_transfer(
        &mut self,
        start: Instant,
        extent: Extent,
        place: &Place,
        direction: Direction,
    ) -> Access {
        let (seek_ns, rotation_ns) = self.position_ns(start, extent.start.0, place, direction);
        let seek_tracks = self.cylinder.abs_diff(place.cylinder);
        let mut time = AccessTime { seek_ns, rotation_ns, transfer_ns: 0, seek_tracks };
        let begin_ns = start.0 + seek_ns + rotation_ns;
        let end_ns = self.transfer(begin_ns, *place, extent.blocks.0, direction, &mut time);
        self.next_block = extent.end().0;
        self.last = direction;
        Access { first: Some(Instant(begin_ns)), end: Instant(end_ns), time }
    }

    /// Moves `blocks` blocks from `place` on, its first block being under the head at `at_ns`, and
    /// returns the end. Leaves the arm on the last track.
    pub(super) fn transfer(
        &mut self,
        at_ns: u64,
        mut place: Place,
        mut blocks: u64,
        direction: Direction,
        time: &mut AccessTime,
    ) -> u64 {
        let mut at_ns = at_ns;
        loop {
            let part = blocks.min(place.end - place.offset);
            let sweep_ns = self.platters.sweep_ns(&place, place.offset + part)
                - self.platters.sweep_ns(&place, place.offset);
            self.note(at_ns, part, &place);
            at_ns += sweep_ns;
            time.transfer_ns += sweep_ns;
            blocks -= part;
            if blocks == 0 {
                self.cylinder = place.cylinder;
                self.surface = place.surface;
                return at_ns;
            }
            let next = self.platters.next_track(&place);
            let move_ns = self.move_ns(place.cylinder, place.surface, &next, direction);
            let wait_ns = self.wait_ns(at_ns + move_ns, &next, 0);
            at_ns += move_ns + wait_ns;
            time.seek_ns += move_ns;
            time.seek_tracks += place.cylinder.abs_diff(next.cylinder);
            time.rotation_ns += wait_ns;
            place = next;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::platters::{Layout, PlatterShape};
    use super::super::seek::DatasheetSeek;
    use super::super::shingles::Shingles;
    use super::*;
    use imbrex_core::units::BlockCount;

    pub const REVOLUTION_NS: u64 = 10_000_000;

    pub fn arm(read_ahead_blocks: u64) -> Arm {
        let shape = PlatterShape {
            heads: 4,
            zones: 1,
            outer_track_blocks: 400,
            inner_track_blocks: 400,
            layout: Layout::SurfaceBySurface,
            head_rates: Vec::new(),
            revolution_ns: REVOLUTION_NS,
            head_skew_ns: 1_500_000,
            track_skew_ns: 1_500_000,
        };
        let platters = Platters::new(shape, BlockCount(4_000_000), &Shingles::default());
        let figures =
            DatasheetSeek { track_to_track_ms: 1.0, average_ms: 8.0, full_stroke_ms: 16.0 };
        let curve = SeekCurve::solve(figures, platters.cylinders()).unwrap();
        Arm::new(platters, curve, 700_000, 500_000, read_ahead_blocks, 0)
    }

    pub fn access(arm: &mut Arm, at_ns: u64, extent: Extent, direction: Direction) -> Access {
        let place = arm.platters.place(extent.start.0);
        arm.access(Instant(at_ns), extent, &place, direction)
    }

    #[test]
    fn a_long_write_loses_the_skew_on_each_track_and_nothing_else() {
        let mut arm = arm(0);
        let write = access(&mut arm, 0, Extent::new(400, 400 * 5), Direction::Write);
        assert_eq!(write.time.transfer_ns, 5 * REVOLUTION_NS);
        assert_eq!(write.time.seek_ns, 5 * 1_500_000);
        assert_eq!(write.time.rotation_ns, 0);
        // One surface after the other: each track is a cylinder further.
        assert_eq!(write.time.seek_tracks, 5);
        let next = access(&mut arm, write.end.0, Extent::new(400 * 6, 4), Direction::Write);
        assert_eq!(next.time.seek_ns + next.time.rotation_ns, 1_500_000);
    }

    #[test]
    fn a_rewrite_of_the_same_block_waits_a_revolution() {
        let mut arm = arm(0);
        let first = access(&mut arm, 0, Extent::new(50, 1), Direction::Write);
        let second = access(&mut arm, first.end.0, Extent::new(50, 1), Direction::Write);
        assert_eq!(second.end.0 - first.end.0, REVOLUTION_NS);
    }

    #[test]
    fn without_rotation_there_are_seeks_and_transfers_and_no_waits() {
        let (mut turning, mut still) = (arm(0), arm(0).with_rotation(false));
        for start in [50, 3_000_050, 50, 420, 1_999_990] {
            let extent = Extent::new(start, 30);
            let waited = access(&mut turning, 0, extent, Direction::Write).time;
            let access = access(&mut still, 0, extent, Direction::Write);
            assert_eq!(access.time.rotation_ns, 0);
            assert_eq!(access.time.seek_ns, waited.seek_ns);
            assert_eq!(access.time.transfer_ns, waited.transfer_ns);
            assert_eq!(access.end.0, waited.seek_ns + waited.transfer_ns);
        }
        // Nor does a plan count a revolution that a short wait might miss.
        let place = still.platters.place(10);
        let plan =
            still.planned_ns_before(u64::MAX, Instant(0), 10, &place, Direction::Read, 500_000);
        assert!(plan.is_some_and(|plan| plan < REVOLUTION_NS), "{plan:?}");
    }

    #[test]
    fn a_plan_distrusts_a_short_wait() {
        let mut arm = arm(0);
        access(&mut arm, 0, Extent::new(0, 1), Direction::Read);
        let place = arm.platters.place(10);
        let (start, guard) = (Instant(0), 500_000);
        let plan = arm.planned_ns_before(u64::MAX, start, 10, &place, Direction::Read, guard);
        assert_eq!(plan, Some(250_000 + REVOLUTION_NS));
        for (limit, expected) in [(250_001 + REVOLUTION_NS, plan), (250_000 + REVOLUTION_NS, None)]
        {
            let before = arm.planned_ns_before(limit, start, 10, &place, Direction::Read, guard);
            assert_eq!(before, expected);
        }
        let place = arm.platters.place(1);
        let plan =
            arm.planned_ns_before(u64::MAX, Instant(25_000), 1, &place, Direction::Read, guard);
        assert_eq!(plan, Some(25_000), "the next block needs no guard");
    }
}
