//! A rotating drive on a SCSI bus: one request at a time has the arm, and their data share a bus.

use super::arm::{Access, Arm, Direction};
use super::bus::{Bus, BusModel, Connection};
use super::bus_arm::{Feed, Found};
use super::due::Due;
use super::model::QueueModel;
use super::rotating::Electronics;
use super::schedulers::{Choice, Command, Head, Queue, State};
use super::statistics::{DiskStatistics, Moved};
use imbrex_core::disk::DiskOp;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::saved::{Saved, SavedValue};
use imbrex_core::units::{Duration, Instant};
use std::collections::VecDeque;

/// Memory for writes that are answered before they are on the medium.
#[derive(Clone, Copy, Debug)]
pub struct WriteRoom {
    /// Blocks of a write, or of writes that continue one another.
    pub blocks: u64,
    /// Writes at once, for a drive that takes them early.
    pub writes: usize,
    /// Whether writes are answered before they are on the medium.
    pub answers_early: bool,
}

/// What is known of a command beside what the scheduler is told; `ready` there is when the arm may
/// begin.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Pending {
    /// When the drive had the command.
    received: Instant,
    /// Its overhead when the arm is needed.
    miss: Duration,
    /// Its overhead when memory has the first block.
    hit: Duration,
    /// What leaving the bus takes.
    leave: Duration,
    /// A write that was taken while the arm was busy, and is answered: its data.
    taken: Option<Feed>,
}

/// A write that the arm is at, or was last at.
#[derive(Clone, Copy, Debug, SavedValue)]
struct LastWrite {
    /// The block behind it.
    end: u64,
    /// Whether it was answered before it was on the medium.
    is_early: bool,
}

/// The state of a rotating drive with a table `[bus]`.
///
/// The firmware works on one request at a time: what comes while the arm is busy leaves the bus and
/// takes it again when its turn has come. So what was written is on the medium before anything
/// else is done, but for writes that continue the one the arm is at.
#[derive(Saved)]
pub struct BusDrive {
    arm: Arm,
    bus: Bus,
    #[saved(keep)]
    electronics: Electronics,
    #[saved(keep)]
    scheduling: QueueModel,
    #[saved(keep)]
    room: WriteRoom,
    /// In order of arrival; the first `depth` are visible to the scheduler.
    queue: VecDeque<Command>,
    /// What else is known of each of them.
    pending: VecDeque<Pending>,
    flushes: Vec<(DiskOp, u64)>,
    busy: bool,
    arm_free: Instant,
    last_arrival: Instant,
    last_direction: Direction,
    last_write: Option<LastWrite>,
    sequence: u64,
    choices: State,
}

impl BusDrive {
    /// An idle drive.
    pub fn new(
        arm: Arm,
        model: BusModel,
        electronics: Electronics,
        scheduling: QueueModel,
        room: WriteRoom,
    ) -> BusDrive {
        BusDrive {
            arm,
            bus: Bus::new(model),
            electronics,
            scheduling,
            room,
            queue: VecDeque::new(),
            pending: VecDeque::new(),
            flushes: Vec::new(),
            busy: false,
            arm_free: Instant::ZERO,
            last_arrival: Instant::ZERO,
            last_direction: Direction::Read,
            last_write: None,
            sequence: 0,
            choices: State::new(scheduling.age_window),
        }
    }

    /// Takes an operation.
    pub fn submit(&mut self, now: Instant, op: DiskOp, due: &mut Due, statistics: &DiskStatistics) {
        self.run(now, false, due, statistics);
        self.last_arrival = now;
        self.sequence += 1;
        match op.operation {
            Operation::Read => self.enqueue(now, op, Direction::Read, due),
            Operation::Write { .. } => self.enqueue(now, op, Direction::Write, due),
            Operation::Flush if self.is_dirty_before(self.sequence) => {
                self.flushes.push((op, self.sequence));
            }
            // Zeroes change a table of the drive, not the medium.
            _ => due.push(now + self.electronics.command_overhead, op),
        }
    }

    fn enqueue(&mut self, now: Instant, op: DiskOp, direction: Direction, due: &mut Due) {
        let received = self.bus.received(now);
        let overheads = &self.electronics.overheads;
        let last = self.last_direction;
        let hit = overheads.hit(direction, last);
        let miss = match direction {
            Direction::Write if self.is_early(&op) => hit,
            _ => overheads.miss(direction, last),
        };
        let model = &self.bus.model;
        let leave = match (direction, last) {
            (Direction::Write, _) => model.leave_write,
            (Direction::Read, Direction::Read) => model.leave_read_after_read,
            (Direction::Read, Direction::Write) => model.leave_read_after_write,
        };
        let mut pending = Pending { received, miss, hit, leave: leave.0, taken: None };
        if self.takes_early(&op) {
            pending.taken = Some(self.take(&op, received + hit, due));
        }
        self.queue.push_back(Command {
            place: self.arm.platters.place(op.extent.start.0),
            direction,
            ready: received + miss,
            sequence: self.sequence,
            op,
        });
        self.pending.push_back(pending);
    }

    /// Whether a write is answered before it is on the medium.
    fn is_early(&self, op: &DiskOp) -> bool {
        let fits = op.extent.blocks.0 <= self.room.blocks;
        self.room.answers_early && !op.operation.is_durable() && fits
    }

    /// Whether a write is taken though the arm is busy: it continues the one the arm is at, or the
    /// drive takes several.
    fn takes_early(&self, op: &DiskOp) -> bool {
        if !self.busy || !matches!(op.operation, Operation::Write { .. }) || !self.is_early(op) {
            return false;
        }
        let Some(last) = self.last_write.filter(|last| last.is_early) else {
            return false;
        };
        let taken = self.pending.iter().filter(|pending| pending.taken.is_some());
        let all_taken = taken.clone().count() == self.queue.len();
        let end = self.queue.back().map_or(last.end, |c| c.op.extent.end().0);
        let waiting: u64 = self.queue.iter().map(|c| c.op.extent.blocks.0).sum();
        let continues =
            end == op.extent.start.0 && waiting + op.extent.blocks.0 <= self.room.blocks;
        let early = self.bus.model.takes_writes_early && taken.count() + 1 < self.room.writes;
        all_taken && (continues || early)
    }

    /// Takes the data of a write and answers it.
    fn take(&mut self, op: &DiskOp, at: Instant, due: &mut Due) -> Feed {
        let prepare_ns = self.bus.model.prepare_data.0.0;
        let begin_ns = self.bus.begin_write(Connection::Connected(at.0 + prepare_ns));
        let crossed_ns = self.bus.carry_write(begin_ns, op.extent.blocks.0);
        let complete_ns = self.bus.model.complete_write.0.0;
        due.push(Instant(crossed_ns + complete_ns), *op);
        self.last_direction = Direction::Write;
        Feed {
            begin_ns,
            sector_ns: self.bus.model.write_sector.0.0,
            head_start: self.bus.model.write_head_start,
        }
    }

    /// True when something answered before operation `sequence` is not yet on the medium.
    fn is_dirty_before(&self, sequence: u64) -> bool {
        let waits = self.queue.iter().zip(&self.pending);
        let mut waits = waits.filter(|(command, _)| command.sequence < sequence);
        let arm_writes = self.busy && self.last_write.is_some_and(|last| last.is_early);
        arm_writes || waits.any(|(_, pending)| pending.taken.is_some())
    }

    /// Brings the drive to `now`: what is decided at `now` itself only when `inclusive`.
    pub fn run(
        &mut self,
        now: Instant,
        inclusive: bool,
        due: &mut Due,
        statistics: &DiskStatistics,
    ) {
        let is_past = |at: Instant| at < now || (inclusive && at == now);
        loop {
            if self.busy {
                if !is_past(self.arm_free) {
                    return;
                }
                self.busy = false;
                self.end_flushes(due);
            }
            let start = self.next_start();
            if self.queue.is_empty() || !is_past(start) {
                return;
            }
            self.start(start, due, statistics);
        }
    }

    /// When the idle arm starts a command that waits.
    fn next_start(&self) -> Instant {
        let start = self.arm_free.max(self.last_arrival);
        match self.bus.model.never_released {
            true => self.bus.received(start),
            false => start,
        }
    }

    fn end_flushes(&mut self, due: &mut Due) {
        let at = self.arm_free;
        let mut flushes = std::mem::take(&mut self.flushes);
        flushes.retain(|(op, sequence)| {
            let waits = self.is_dirty_before(*sequence);
            if !waits {
                due.push(at, *op);
            }
            waits
        });
        self.flushes = flushes;
    }

    /// When a visible change is next due inside the drive; completions apart.
    pub fn next_event(&self) -> Option<Instant> {
        if self.queue.is_empty() && self.flushes.is_empty() {
            return None;
        }
        match self.busy {
            true => Some(self.arm_free),
            false => Some(self.next_start()),
        }
    }

    fn start(&mut self, at: Instant, due: &mut Due, statistics: &DiskStatistics) {
        let index = self.choose(at);
        let mut command = self.queue.remove(index).expect("a chosen command");
        let mut pending = self.pending.remove(index).expect("what is known of it");
        if self.bus.model.never_released && at > pending.received {
            // The bus was not free before.
            pending.received = at;
            command.ready = at + pending.miss;
        }
        let (access, begun, answer) = match command.direction {
            Direction::Read => match self.read(at, &command, &pending) {
                (None, answer) => {
                    statistics.hit();
                    self.bus.keep(pending.received, answer);
                    due.push(answer, command.op);
                    self.last_direction = Direction::Read;
                    return;
                }
                (Some((access, begun)), answer) => (access, begun, Some(answer)),
            },
            Direction::Write => self.write(at, &command, &pending),
        };
        if let Some(answer) = answer {
            self.bus.keep(pending.received, answer);
            due.push(answer, command.op);
            self.last_direction = command.direction;
        }
        let extent = self.electronics.counted(command.op.extent);
        let busy_ns = access.end.0.saturating_sub(begun.0);
        let (direction, cause) = (command.direction, command.op.cause);
        let Access { time, end, .. } = access;
        statistics.moved(&Moved { direction, cause, extent, busy_ns, time, end });
        self.busy = true;
        self.arm_free = end;
    }

    fn choose(&mut self, at: Instant) -> usize {
        let QueueModel { depth, scheduler, guard, .. } = self.scheduling;
        let queue = Queue::new(&self.queue, &[], depth as usize);
        let head = Head::new(&self.arm, at, guard.0.0);
        match scheduler.choose(&queue, &head, &mut self.choices) {
            Choice::Command(index) => index,
            Choice::Cached(_) => unreachable!("writes that are taken stay in the queue"),
        }
    }

    /// Serves a read whose turn has come at `at`: what the arm did and from when on, if anything,
    /// and when it is answered.
    fn read(
        &mut self,
        at: Instant,
        command: &Command,
        pending: &Pending,
    ) -> (Option<(Access, Instant)>, Instant) {
        self.last_write = None;
        let extent = command.op.extent;
        let sectors = extent.blocks.0;
        let leave_ns = pending.leave.0;
        let arm_ready = self.arm.end_step_unless_read(at, extent);
        let found = self.arm.look_up(at, arm_ready.max(command.ready), extent);
        let released_ns = (pending.received + pending.miss).0 + leave_ns;
        let prepare_ns = self.bus.model.prepare_data.0.0;
        let waited = at > pending.received;
        let connection = match (found, self.bus.model.never_released) {
            (Found::Nothing, false) => Connection::Released(released_ns),
            (Found::Nothing, true) => Connection::Connected(at.0.max(command.ready.0) + prepare_ns),
            (_, false) if waited => Connection::Released(at.0.max(released_ns)),
            (_, _) => {
                let overhead = pending.received + pending.hit;
                Connection::Connected(at.max(overhead).0 + prepare_ns)
            }
        };
        if found == Found::Whole {
            let arrivals = Arm::all_held(sectors);
            let answer = self.bus.carry_read(connection, sectors, &arrivals, leave_ns);
            return (None, answer);
        }
        let begun = arm_ready.max(command.ready);
        let (held, access) = self.arm.read_rest(begun, extent, found);
        let arrivals = self.arm.arrivals(held);
        let answer = self.bus.carry_read(connection, sectors, &arrivals, leave_ns);
        (Some((access, begun)), answer)
    }

    /// Serves a write whose turn has come at `at`. There is no answer where it has been given.
    fn write(
        &mut self,
        at: Instant,
        command: &Command,
        pending: &Pending,
    ) -> (Access, Instant, Option<Instant>) {
        let extent = command.op.extent;
        let arm_ready = self.arm.end_step(at);
        self.arm.wrote(at, extent);
        let begun = arm_ready.max(command.ready);
        let is_early = self.is_early(&command.op);
        let last = self.last_write.replace(LastWrite { end: extent.end().0, is_early });
        if let Some(feed) = pending.taken {
            let access = self.arm.write_fed(begun, extent, Some(feed));
            return (access, begun, None);
        }
        let split = match self.bus.model.write_after_write {
            Some(split) if at == pending.received => split,
            _ => return self.write_at_once(at, command, pending, begun),
        };
        if last.is_none_or(|last| last.end == extent.start.0) {
            return self.write_at_once(at, command, pending, begun);
        }
        // The write goes elsewhere than the one before: the bus is left before the data cross.
        let decoded = pending.received + split.command.0;
        let begun = arm_ready.max(decoded + split.seek_after.0);
        let back = decoded + split.leave.0 + split.away.0;
        let (access, crossed_ns) = self.move_data(begun, Connection::Released(back.0), extent);
        let answer = self.answer_write(&access, crossed_ns, is_early, split.leave_again.0, {
            split.reselect_again.0
        });
        (access, begun, Some(answer))
    }

    fn write_at_once(
        &mut self,
        at: Instant,
        command: &Command,
        pending: &Pending,
        begun: Instant,
    ) -> (Access, Instant, Option<Instant>) {
        let decoded = pending.received + pending.miss;
        let waited = at > pending.received && !self.bus.model.never_released;
        let connection = match waited {
            true => Connection::Released(at.max(decoded + pending.leave).0),
            false => {
                let prepare = self.bus.model.prepare_data.0;
                Connection::Connected((at.max(decoded) + prepare).0)
            }
        };
        let (access, crossed_ns) = self.move_data(begun, connection, command.op.extent);
        let is_early = self.is_early(&command.op);
        let reselect = self.bus.model.reselect.0;
        let answer = self.answer_write(&access, crossed_ns, is_early, pending.leave, reselect);
        (access, begun, Some(answer))
    }

    /// Moves the data of a write over the bus and onto the medium. What is longer than the memory
    /// goes in parts: a drive that leaves the bus takes the next part when the last one is
    /// written.
    fn move_data(
        &mut self,
        begun: Instant,
        connection: Connection,
        extent: Extent,
    ) -> (Access, u64) {
        let model = self.bus.model;
        let stays = model.held_for_whole_write || model.never_released;
        let part_max = match stays {
            true => extent.blocks.0,
            false => self.room.blocks.max(1),
        };
        let (mut begun, mut connection) = (begun, connection);
        let mut total: Option<Access> = None;
        let mut start = extent.start.0;
        loop {
            let part = Extent::new(start, part_max.min(extent.end().0 - start));
            let feed = Feed {
                begin_ns: self.bus.begin_write(connection),
                sector_ns: model.write_sector.0.0,
                head_start: model.write_head_start,
            };
            let crossed_ns = self.bus.carry_write(feed.begin_ns, part.blocks.0);
            let mut access = self.arm.write_fed(begun, part, Some(feed));
            if let Some(before) = total {
                access.first = before.first;
                access.time.seek_ns += before.time.seek_ns;
                access.time.seek_tracks += before.time.seek_tracks;
                access.time.rotation_ns += before.time.rotation_ns;
                access.time.transfer_ns += before.time.transfer_ns;
            }
            start = part.end().0;
            if start == extent.end().0 {
                return (access, crossed_ns);
            }
            let left_ns = crossed_ns + model.leave_write.0.0;
            connection = Connection::Released(access.end.0.max(left_ns));
            begun = access.end;
            total = Some(access);
        }
    }

    /// When a write is answered: when its data have crossed, or when they are on the medium too.
    fn answer_write(
        &mut self,
        access: &Access,
        crossed_ns: u64,
        is_early: bool,
        leave: Duration,
        reselect: Duration,
    ) -> Instant {
        let complete = self.bus.model.complete_write.0;
        if is_early {
            return self.bus.answer(crossed_ns, complete.0);
        }
        if self.bus.model.never_released {
            return access.end.max(Instant(crossed_ns)) + complete;
        }
        let left = Instant(crossed_ns) + leave;
        let back = access.end.max(left);
        self.bus.answer(back.0, reselect.0 + complete.0)
    }
}
