//! The SCSI bus of a drive: when the data of a request cross it.

use crate::model::at_most_a_step;
use crate::quantity::Span;
use imbrex_core::saved::{Saved, SavedValue};
use imbrex_core::units::Instant;
use serde::{Deserialize, Serialize};

/// The table `[bus]` of a drive file: a parallel SCSI bus that all requests of the drive share, and
/// firmware that works on one request at a time. Without it every request in flight has all of the
/// interface. The keys are those of DiskSim's disks (`docs/models/conventional.md`).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusModel {
    /// Time of a sector on the bus, reading.
    pub read_sector: Span,
    /// Time of a sector on the bus, writing.
    pub write_sector: Span,
    /// A read that has begun to cross the bus keeps it until its end, instead of leaving it when
    /// the medium has delivered no more.
    #[serde(default)]
    pub held_for_whole_read: bool,
    /// A write that finds the buffer full keeps the bus, instead of leaving it until there is room.
    #[serde(default)]
    pub held_for_whole_write: bool,
    /// A command keeps the bus until it is answered; the next one cannot come before.
    #[serde(default)]
    pub never_released: bool,
    /// Share of a read that must be in memory before it takes the bus again; at least a sector.
    #[serde(default)]
    pub read_watermark: f64,
    /// Whether writes are taken while the arm is busy, up to `cache.write_segments` of them.
    #[serde(default)]
    pub takes_writes_early: bool,
    /// Sectors of a write that must have come before the head begins; at least one, at most all.
    #[serde(default)]
    pub write_head_start: u64,
    /// Leaving the bus to wait for the medium, reading after a read.
    #[serde(default)]
    pub leave_read_after_read: Span,
    /// The same after a write.
    #[serde(default)]
    pub leave_read_after_write: Span,
    /// The same, writing.
    #[serde(default)]
    pub leave_write: Span,
    /// Taking the bus again.
    #[serde(default)]
    pub reselect: Span,
    /// Before the data of a request begin to cross, each time.
    #[serde(default)]
    pub prepare_data: Span,
    /// From the last sector of a read to its answer.
    #[serde(default)]
    pub complete_read: Span,
    /// From the last sector of a write, on the bus or the medium, to its answer.
    #[serde(default)]
    pub complete_write: Span,
    /// Where a write that follows a write elsewhere leaves the bus before its data cross.
    pub write_after_write: Option<WriteAfterWrite>,
}

/// The steps of a write that follows a write elsewhere, on a drive that leaves the bus for it
/// before it takes the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteAfterWrite {
    /// The command, instead of the overhead of a write.
    pub command: Span,
    /// Leaving the bus, the first time.
    pub leave: Span,
    /// Away from the bus, before the data cross.
    pub away: Span,
    /// Leaving it again, after the data.
    pub leave_again: Span,
    /// Taking it again, for the answer.
    pub reselect_again: Span,
    /// From the end of the command to the start of the arm.
    pub seek_after: Span,
}

impl BusModel {
    /// Checks what the type of a field cannot say.
    ///
    /// # Errors
    /// A sentence that names the field, its value and what is accepted.
    pub(super) fn check(&self) -> Result<(), String> {
        for (key, span) in [("read_sector", self.read_sector), ("write_sector", self.write_sector)]
        {
            if span.0.0 == 0 {
                return Err(format!("bus.{key} = \"0 ms\"; accepted: more than 0"));
            }
            at_most_a_step(&format!("bus.{key}"), span.0)?;
        }
        if !(0.0..=1.0).contains(&self.read_watermark) {
            return Err(format!(
                "bus.read_watermark = {}; accepted: a share from 0 to 1",
                self.read_watermark
            ));
        }
        if !self.never_released {
            return Ok(());
        }
        let unused = [
            ("leave_read_after_read", self.leave_read_after_read),
            ("leave_read_after_write", self.leave_read_after_write),
            ("leave_write", self.leave_write),
            ("reselect", self.reselect),
        ];
        let unused = unused.iter().find(|(_, span)| span.0.0 > 0);
        let unused = unused.map(|(key, _)| *key);
        let unused = unused.or(self.write_after_write.map(|_| "write_after_write"));
        match unused {
            Some(key) => Err(format!(
                "bus.{key} has no meaning where bus.never_released = true; accepted: one of the two"
            )),
            None => Ok(()),
        }
    }
}

/// Sectors that passed the head one after another on one track.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Run {
    /// When the first one came under the head.
    pub begin_ns: u64,
    /// How many.
    pub sectors: u64,
    /// Sectors on the track ...
    pub track_sectors: u64,
    /// ... and the time of a turn.
    pub revolution_ns: u64,
}

impl Run {
    /// When so many of its sectors have passed.
    fn passed_ns(&self, sectors: u64) -> u64 {
        self.begin_ns + sectors * self.revolution_ns / self.track_sectors
    }
}

/// When each sector of a read is in the memory of the drive: some are from the start, the others
/// come from the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals<'a> {
    /// Sectors that memory has already.
    pub held: u64,
    /// Where the others pass the head.
    pub runs: &'a [Run],
}

impl Arrivals<'_> {
    /// When the first `sectors` sectors are in memory.
    fn of(&self, sectors: u64) -> u64 {
        let mut left = sectors.saturating_sub(self.held);
        if left == 0 {
            return 0;
        }
        for run in self.runs {
            if left <= run.sectors {
                return run.passed_ns(left);
            }
            left -= run.sectors;
        }
        self.runs.last().map_or(0, |run| run.passed_ns(run.sectors))
    }

    /// Sectors in memory at `at_ns`, of `sectors`.
    fn by(&self, at_ns: u64, sectors: u64) -> u64 {
        let mut all = self.held;
        for run in self.runs {
            // The last one that has passed whole.
            let since = at_ns.saturating_sub(run.begin_ns);
            let mut passed = since * run.track_sectors / run.revolution_ns;
            if run.passed_ns(passed + 1) <= at_ns {
                passed += 1;
            }
            if passed < run.sectors {
                all += passed;
                break;
            }
            all += run.sectors;
        }
        all.min(sectors)
    }
}

/// Whether a read has the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Connection {
    /// It has it from then on.
    Connected(u64),
    /// It may take it again from then on.
    Released(u64),
}

/// The bus of a drive and who has it.
#[derive(Clone, Copy, Debug, Saved)]
pub(super) struct Bus {
    /// What the drive file says.
    #[saved(keep)]
    pub model: BusModel,
    /// Since when it is taken without a break ...
    taken_from_ns: u64,
    /// ... and when it is free again.
    free_ns: u64,
}

impl Bus {
    /// A free bus.
    pub fn new(model: BusModel) -> Bus {
        Bus { model, taken_from_ns: 0, free_ns: 0 }
    }

    /// When a command that the host has at `now` reaches the drive.
    pub fn received(&self, now: Instant) -> Instant {
        match (self.taken_from_ns..self.free_ns).contains(&now.0) {
            true => Instant(self.free_ns),
            false => now,
        }
    }

    /// When the bus can be had from `at_ns` on: data cross in the order in which the arm serves.
    fn granted(&self, at_ns: u64) -> u64 {
        at_ns.max(self.free_ns)
    }

    /// Notes that a request has the bus.
    fn take(&mut self, from_ns: u64, until_ns: u64) {
        if from_ns > self.free_ns {
            self.taken_from_ns = from_ns;
        }
        self.free_ns = self.free_ns.max(until_ns);
    }

    /// Takes the bus for a command until it is answered: nobody else has it.
    pub fn keep(&mut self, from: Instant, until: Instant) {
        if self.model.never_released {
            self.take(from.0, until.0);
        }
    }

    /// Carries the data of a read of `sectors` sectors and returns its answer.
    pub fn carry_read(
        &mut self,
        connection: Connection,
        sectors: u64,
        arrivals: &Arrivals<'_>,
        leave_ns: u64,
    ) -> Instant {
        let model = self.model;
        let sector_ns = model.read_sector.0.0;
        let stays = model.held_for_whole_read || model.never_released;
        let watermark = ((sectors as f64 * model.read_watermark) as u64).max(1);
        let mut done = 0;
        let mut connection = connection;
        let (mut from_ns, mut at_ns) = (0, 0);
        while done < sectors {
            match connection {
                Connection::Connected(ns) => {
                    from_ns = self.granted(ns);
                    at_ns = from_ns;
                }
                Connection::Released(ns) => {
                    let enough = arrivals.of((done + watermark).min(sectors));
                    from_ns = self.granted(ns.max(enough));
                    at_ns = from_ns + model.reselect.0.0 + model.prepare_data.0.0;
                }
            }
            while done < sectors {
                let mut ready = arrivals.by(at_ns, sectors);
                if ready <= done {
                    if !stays {
                        break;
                    }
                    at_ns = arrivals.of(done + 1);
                    ready = done + 1;
                }
                at_ns += (ready - done) * sector_ns;
                done = ready;
            }
            if done < sectors {
                connection = Connection::Released(at_ns + leave_ns);
                self.take(from_ns, at_ns + leave_ns);
            }
        }
        let end_ns = at_ns + model.complete_read.0.0;
        self.take(from_ns, end_ns);
        Instant(end_ns)
    }

    /// When the first sector of a write begins to cross.
    pub fn begin_write(&self, connection: Connection) -> u64 {
        let prepare_ns = self.model.prepare_data.0.0;
        match connection {
            Connection::Connected(ns) => self.granted(ns),
            Connection::Released(ns) => self.granted(ns) + self.model.reselect.0.0 + prepare_ns,
        }
    }

    /// Carries `sectors` sectors of a write from `begin_ns` on and returns when they have crossed.
    pub fn carry_write(&mut self, begin_ns: u64, sectors: u64) -> u64 {
        let end_ns = begin_ns + sectors * self.model.write_sector.0.0;
        self.take(begin_ns, end_ns);
        end_ns
    }

    /// Takes the bus once more at `at_ns`, for the answer alone, which takes `answer_ns`.
    pub fn answer(&mut self, at_ns: u64, answer_ns: u64) -> Instant {
        let from_ns = self.granted(at_ns);
        self.take(from_ns, from_ns + answer_ns);
        Instant(from_ns + answer_ns)
    }
}
