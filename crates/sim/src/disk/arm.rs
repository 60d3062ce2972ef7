//! The arm over turning platters: what one access takes.

use super::platters::{Place, Platters};
use super::seek::SeekCurve;
use imbrex_core::extent::Extent;
use imbrex_core::units::Instant;

/// Direction of a transfer between the heads and the platters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the platters.
    Read,
    /// To the platters.
    Write,
}

/// How the time of an access was spent, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessTime {
    /// Moving the arm, switching heads and settling.
    pub seek_ns: u64,
    /// Waiting for the block to come round.
    pub rotation_ns: u64,
    /// Under the head.
    pub transfer_ns: u64,
}

/// An access that has been carried out.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// When the last block had passed.
    pub end: Instant,
    /// What it was made of.
    pub time: AccessTime,
}

/// Blocks that the drive goes on reading after a read, until something else is to be done.
#[derive(Clone, Copy, Debug)]
struct ReadAhead {
    /// First block held.
    from: u64,
    /// Block the head has got to ...
    reached: u64,
    /// ... and when.
    reached_at: u64,
    /// Where the buffer ends.
    stop: u64,
}

/// The arm, its position and the platters under it.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Where blocks lie.
    pub platters: Platters,
    /// How long the arm takes.
    pub curve: SeekCurve,
    head_switch_ns: u64,
    write_settle_ns: u64,
    read_ahead_blocks: u64,
    /// Angle of the platters at time zero.
    phase_ns: u64,
    cylinder: u64,
    surface: u64,
    /// The block after the last one transferred ...
    next_block: u64,
    /// ... and in which direction.
    last: Direction,
    ahead: Option<ReadAhead>,
}

impl Arm {
    /// An arm at rest on the outermost cylinder. `phase_ns` is the angle of the platters at time
    /// zero: spindles of different drives are not synchronised.
    pub fn new(
        platters: Platters,
        curve: SeekCurve,
        head_switch_ns: u64,
        write_settle_ns: u64,
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
            cylinder: 0,
            surface: 0,
            next_block: 0,
            last: Direction::Read,
            ahead: None,
        }
    }

    /// Time to get onto the track of `place`, and to settle there before writing.
    #[inline]
    fn move_ns(&self, cylinder: u64, surface: u64, place: &Place, direction: Direction) -> u64 {
        let seek = self.curve.time_ns(cylinder.abs_diff(place.cylinder));
        let switch = if surface == place.surface {
            0
        } else {
            self.head_switch_ns
        };
        let settle = match direction {
            Direction::Write => self.write_settle_ns,
            Direction::Read => 0,
        };
        seek.max(switch) + settle
    }

    /// Time from `at_ns` until block `offset` of the track of `place` is under the head.
    #[inline]
    fn wait_ns(&self, at_ns: u64, place: &Place, offset: u64) -> u64 {
        let revolution_ns = self.platters.revolution_ns();
        let now_ns = (at_ns + self.phase_ns) % revolution_ns;
        let target_ns = self.platters.angle_ns(place, offset);
        if target_ns >= now_ns {
            target_ns - now_ns
        } else {
            target_ns + revolution_ns - now_ns
        }
    }

    /// When the first block of an access begun at `start` would be under the head by plan: a
    /// rotational wait shorter than `guard_ns` is not trusted and counts a revolution more, unless
    /// the access goes on where the last one ended.
    #[inline]
    pub fn planned_ns(
        &self,
        start: Instant,
        block: u64,
        place: &Place,
        direction: Direction,
        guard_ns: u64,
    ) -> u64 {
        if direction == Direction::Read && self.streams(block) {
            return start.0;
        }
        let (move_ns, wait_ns) = self.position_ns(start, block, place, direction);
        let missed = wait_ns < guard_ns && block != self.next_block;
        let penalty_ns = if missed {
            self.platters.revolution_ns()
        } else {
            0
        };
        start.0 + move_ns + wait_ns + penalty_ns
    }

    #[inline]
    fn position_ns(
        &self,
        start: Instant,
        block: u64,
        place: &Place,
        direction: Direction,
    ) -> (u64, u64) {
        // A write that goes on along its track has settled already.
        let goes_on = block == self.next_block && place.offset > 0 && direction == self.last;
        let move_ns = if goes_on {
            0
        } else {
            self.move_ns(self.cylinder, self.surface, place, direction)
        };
        let wait_ns = self.wait_ns(start.0 + move_ns, place, place.offset);
        (move_ns, wait_ns)
    }

    /// Carries out an access begun at `start`, all positioning included.
    pub fn access(
        &mut self,
        start: Instant,
        extent: Extent,
        place: &Place,
        direction: Direction,
    ) -> Access {
        if direction == Direction::Read && self.streams(extent.start.0) {
            return self.stream(start, extent);
        }
        let (seek_ns, rotation_ns) = self.position_ns(start, extent.start.0, place, direction);
        let mut time = AccessTime {
            seek_ns,
            rotation_ns,
            transfer_ns: 0,
        };
        let begin_ns = start.0 + seek_ns + rotation_ns;
        let end_ns = self.transfer(begin_ns, *place, extent.blocks.0, direction, &mut time);
        self.next_block = extent.end().0;
        self.last = direction;
        self.ahead = match direction {
            Direction::Read if self.read_ahead_blocks > 0 => Some(ReadAhead {
                from: extent.start.0,
                reached: self.next_block,
                reached_at: end_ns,
                stop: self.ahead_stop(),
            }),
            _ => None,
        };
        Access {
            end: Instant(end_ns),
            time,
        }
    }

    fn ahead_stop(&self) -> u64 {
        (self.next_block + self.read_ahead_blocks).min(self.platters.tracks().blocks())
    }

    /// Moves `blocks` blocks from `place` on, its first block being under the head at `at_ns`, and
    /// returns the end. Leaves the arm on the last track.
    fn transfer(
        &mut self,
        at_ns: u64,
        mut place: Place,
        mut blocks: u64,
        direction: Direction,
        time: &mut AccessTime,
    ) -> u64 {
        let mut at_ns = at_ns;
        loop {
            let part = blocks.min(place.blocks_per_track - place.offset);
            let sweep_ns = self.platters.sweep_ns(&place, place.offset + part)
                - self.platters.sweep_ns(&place, place.offset);
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
            time.rotation_ns += wait_ns;
            place = next;
        }
    }

    /// True when a read from `block` finds the look-ahead there.
    #[inline]
    fn streams(&self, block: u64) -> bool {
        self.ahead.is_some_and(|ahead| {
            ahead.from <= block && block <= ahead.stop && block < self.blocks()
        })
    }

    fn blocks(&self) -> u64 {
        self.platters.tracks().blocks()
    }

    /// A read that the look-ahead has begun already.
    fn stream(&mut self, start: Instant, extent: Extent) -> Access {
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
        ahead.from = extent.start.0;
        ahead.stop = self.ahead_stop().max(ahead.reached);
        self.ahead = Some(ahead);
        Access {
            end: Instant(end_ns),
            time,
        }
    }

    fn advance(&mut self, ahead: &mut ReadAhead, to: u64) {
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
    use super::super::platters::{Layout, PlatterShape};
    use super::super::seek::DatasheetSeek;
    use super::*;
    use imbrex_core::units::BlockCount;

    const REVOLUTION_NS: u64 = 10_000_000;

    fn arm(read_ahead_blocks: u64) -> Arm {
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
        let platters = Platters::new(shape, BlockCount(4_000_000), BlockCount::ZERO, 0);
        let figures = DatasheetSeek {
            track_to_track_ms: 1.0,
            average_ms: 8.0,
            full_stroke_ms: 16.0,
        };
        let curve = SeekCurve::solve(figures, platters.cylinders()).unwrap();
        Arm::new(platters, curve, 700_000, 500_000, read_ahead_blocks, 0)
    }

    fn access(arm: &mut Arm, at_ns: u64, extent: Extent, direction: Direction) -> Access {
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
        let next = access(
            &mut arm,
            write.end.0,
            Extent::new(400 * 6, 4),
            Direction::Write,
        );
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
    fn a_plan_distrusts_a_short_wait() {
        let mut arm = arm(0);
        access(&mut arm, 0, Extent::new(0, 1), Direction::Read);
        let place = arm.platters.place(10);
        let (start, guard) = (Instant(0), 500_000);
        let plan = arm.planned_ns(start, 10, &place, Direction::Read, guard);
        assert_eq!(plan, 250_000 + REVOLUTION_NS);
        let place = arm.platters.place(1);
        let plan = arm.planned_ns(Instant(25_000), 1, &place, Direction::Read, guard);
        assert_eq!(plan, 25_000, "the next block needs no guard");
    }

    #[test]
    fn read_ahead_turns_late_sequential_reads_into_a_stream() {
        let mut arm = arm(256);
        let mut at_ns = access(&mut arm, 0, Extent::new(0, 16), Direction::Read)
            .end
            .0;
        let begin_ns = at_ns;
        for i in 1..500 {
            at_ns += 200_000;
            at_ns = access(&mut arm, at_ns, Extent::new(i * 16, 16), Direction::Read)
                .end
                .0;
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
}
