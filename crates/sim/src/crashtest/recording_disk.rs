//! A disk that finishes operations in any order and keeps a log of all it took.

use super::fault::{Fault, FaultKind, FaultState};
use super::log::{Log, LoggedFlush, LoggedWrite};
use super::medium::{Block, Medium, block_of};
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::rng::Rng;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;

/// Longest time of an ordinary operation.
const LATENCY_MAX: Duration = Duration::from_us(200);
/// How much longer an operation of a slow disk takes.
const SLOW_FACTOR: u64 = 100;
/// How long a stuck operation takes.
const STUCK: Duration = Duration::from_ms(30_000);

/// All members together, so that a power cut hits them at one instant.
pub struct World {
    /// What each member holds as long as the power is on.
    pub media: Vec<Medium>,
    /// What happened since the start.
    pub log: Log,
    /// What goes wrong.
    pub faults: FaultState,
}

impl World {
    /// Members with the given contents, all of it durable.
    pub fn new(media: Vec<Medium>, fault: Option<Fault>) -> Rc<RefCell<World>> {
        let faults = FaultState::new(fault, media.len());
        Rc::new(RefCell::new(World { media, log: Log::default(), faults }))
    }
}

/// One member of a [`World`].
pub struct RecordingDisk {
    geometry: Geometry,
    world: Rc<RefCell<World>>,
    member: usize,
    rng: Rng,
    queue: Vec<Pending>,
    serial: u64,
}

/// An operation in flight.
struct Pending {
    finish: Instant,
    serial: u64,
    op: DiskOp,
    /// Its place in the log; unused by reads.
    logged: usize,
    result: Result<(), IoError>,
}

impl RecordingDisk {
    /// The member of a world with this number.
    pub fn new(
        geometry: Geometry,
        world: Rc<RefCell<World>>,
        member: usize,
        seed: u64,
    ) -> RecordingDisk {
        RecordingDisk {
            geometry,
            world,
            member,
            rng: Rng::new(seed, 900 + member as u64),
            queue: Vec::new(),
            serial: 0,
        }
    }

    /// Writes an operation down as the medium will take it.
    fn log(&self, op: &DiskOp, fault: Option<FaultKind>, buffers: &Buffers) -> usize {
        let world = &mut *self.world.borrow_mut();
        let submitted = world.log.event();
        if op.operation == Operation::Flush {
            world.log.flushes.push(LoggedFlush {
                member: self.member,
                issued: submitted,
                completed: None,
            });
            return world.log.flushes.len() - 1;
        }
        let medium = &world.media[self.member];
        let mut data: Vec<Block> = match op.operation {
            Operation::Write { .. } => {
                let bytes = buffers.bytes(op.buffer).expect("buffers of bytes");
                let blocks = bytes.chunks_exact(BLOCK_BYTES as usize);
                blocks.map(block_of).collect()
            }
            _ => vec![Rc::clone(medium.zero()); op.extent.blocks.0 as usize],
        };
        let mut start = op.extent.start.0;
        match fault {
            Some(FaultKind::Error | FaultKind::NoSpace(_) | FaultKind::Dead) => data.clear(),
            Some(FaultKind::Lost) => {
                let faults = &mut world.faults;
                faults.note_astray(self.member, start, &data, None, medium);
                data.clear();
            }
            Some(FaultKind::Short) => data.truncate(data.len() / 2),
            Some(FaultKind::Misdirected(by)) => {
                let meant = start;
                start = (start + by) % (medium.len() - data.len() as u64 + 1);
                let faults = &mut world.faults;
                faults.note_astray(self.member, meant, &data, Some(start), medium);
            }
            _ => {}
        }
        world.log.writes.push(LoggedWrite {
            member: self.member,
            start,
            data,
            submitted,
            completed: None,
            durable: op.operation.is_durable(),
            dropped: false,
            cause: op.cause,
        });
        world.log.writes.len() - 1
    }

    /// Ends the next operation that is due as a disk does that goes meanwhile: a write stays one of which nobody
    /// knows whether it has reached the medium.
    pub fn break_off(&mut self, now: Instant) -> Option<RequestId> {
        self.take_due(now).map(|pending| pending.op.id)
    }

    fn take_due(&mut self, now: Instant) -> Option<Pending> {
        let due = (0..self.queue.len())
            .filter(|at| self.queue[*at].finish <= now)
            .min_by_key(|at| (self.queue[*at].finish, self.queue[*at].serial))?;
        Some(self.queue.swap_remove(due))
    }

    /// Lets an operation take effect.
    fn execute(&self, pending: &Pending, buffers: &mut Buffers) {
        let world = &mut *self.world.borrow_mut();
        let medium = &mut world.media[self.member];
        match pending.op.operation {
            Operation::Read => {
                if pending.result.is_ok() {
                    let bytes = buffers.bytes_mut(pending.op.buffer);
                    let bytes = bytes.expect("buffers of bytes");
                    let start = pending.op.extent.start.0;
                    for (at, target) in (start..).zip(bytes.chunks_exact_mut(BLOCK_BYTES as usize))
                    {
                        target.copy_from_slice(&medium.block(at)[..]);
                    }
                }
            }
            Operation::Flush => {
                let completed = world.log.event();
                let flush = &mut world.log.flushes[pending.logged];
                if pending.result.is_ok() {
                    flush.completed = Some(completed);
                    world.log.note_flushed(pending.logged);
                    return;
                }
                let failed = flush.issued;
                let covered = world.log.covered_by_flush(self.member);
                for write in &mut world.log.writes {
                    write.dropped |= write.member == self.member
                        && write
                            .completed
                            .is_some_and(|completed| (covered..failed).contains(&completed));
                }
            }
            _ => {
                let completed = world.log.event();
                let write = &mut world.log.writes[pending.logged];
                write.completed = Some(completed);
                medium.write(write.start, &write.data);
            }
        }
    }
}

impl Disk for RecordingDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let fault = {
            let faults = &mut self.world.borrow_mut().faults;
            faults.next(self.member, op.operation, op.extent)
        };
        let logged = match op.operation {
            Operation::Read => 0,
            _ => self.log(&op, fault, buffers),
        };
        let latency = Duration(1 + self.rng.below(LATENCY_MAX.0));
        let latency = match fault {
            Some(FaultKind::Slow) => Duration(latency.0 * SLOW_FACTOR),
            Some(FaultKind::Stuck) => STUCK,
            _ => latency,
        };
        let result = match fault {
            Some(FaultKind::Error | FaultKind::Short | FaultKind::Dead) => Err(IoError::Medium),
            Some(FaultKind::NoSpace(_)) => Err(IoError::NoSpace),
            _ => Ok(()),
        };
        self.serial += 1;
        self.queue.push(Pending { finish: now + latency, serial: self.serial, op, logged, result });
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let pending = self.take_due(now)?;
        self.execute(&pending, buffers);
        Some(DiskCompletion { id: pending.op.id, result: pending.result })
    }

    fn next_event(&self) -> Option<Instant> {
        self.queue.iter().map(|pending| pending.finish).min()
    }
}
