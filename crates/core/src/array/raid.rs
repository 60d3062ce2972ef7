//! The layer of RAID levels 1, 4 and 5.

use super::read_runs::ReadRuns;
use super::status::ArrayStatus;
use super::{COLUMNS_MAX, RaidRows, RowMap, Rows};
use crate::command::{Command, CommandError, CommandId, CommandKind, OnReplacement, Without};
use crate::counters::Gauge;
use crate::disk::Geometry;
use crate::error::IoError;
use crate::extent::Extent;
use crate::joined::{JoinError, joined};
use crate::layer::{Context, Layer, Port};
use crate::lifecycle::{OpenError, Start};
use crate::operation::{Completion, Operation, Request};
use crate::saved::Saved;
use crate::units::{BlockCount, Instant};
use alloc::vec::Vec;
use core::fmt;

/// How a RAID array keeps its redundancy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Every member has a copy.
    Raid1,
    /// The last member has the parity.
    Raid4,
    /// Members have the parity by turns.
    Raid5,
}

impl Level {
    /// The word that configurations use.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Raid1 => "raid1",
            Level::Raid4 => "raid4",
            Level::Raid5 => "raid5",
        }
    }

    /// The least and the most members.
    pub const fn members(self) -> (usize, usize) {
        match self {
            Level::Raid1 => (2, 4),
            Level::Raid4 | Level::Raid5 => (3, COLUMNS_MAX),
        }
    }
}

/// Why nodes make no array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrayError {
    /// They cannot be joined.
    Join(JoinError),
    /// There are too few or too many.
    Members {
        /// How many there are.
        found: usize,
        /// Of which level.
        level: Level,
    },
    /// There is no room on the smallest member for what is asked of it and for what the array keeps.
    NoRoom(BlockCount),
    /// A spare is shorter than what is used of a member.
    ShortSpare {
        /// Which spare, from 0.
        spare: usize,
        /// What it has.
        blocks: BlockCount,
        /// What is used of a member.
        needed: BlockCount,
    },
}

impl From<JoinError> for ArrayError {
    fn from(error: JoinError) -> ArrayError {
        ArrayError::Join(error)
    }
}

impl fmt::Display for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArrayError::Join(error) => error.fmt(f),
            ArrayError::Members { found, level } => {
                let ((least, most), kind) = (level.members(), level.name());
                let accepted = format_args!("{least} to {most} nodes of kind = \"{kind}\"");
                write!(f, "below: {found} given; accepted: {accepted}")
            }
            ArrayError::NoRoom(blocks) => write!(
                f,
                "its smallest member has {} B, too little for what is asked of it and for what it keeps; \
                 accepted: longer members, or a smaller `size` or `ring_blocks`",
                blocks.bytes()
            ),
            ArrayError::ShortSpare { spare, blocks, needed } => write!(
                f,
                "spare {spare} has {} B; accepted: {} B or more, which is what is used of a member",
                blocks.bytes(),
                needed.bytes()
            ),
        }
    }
}

/// RAID level 1, 4 or 5 over any nodes that take writes anywhere, which loses members and rebuilds them.
///
/// It keeps nothing but its blocks: what it knows of its members ends with the process.
#[derive(Debug, Saved)]
pub struct Raid {
    #[saved(keep)]
    map: RaidRows,
    rows: Rows,
    /// Blocks of the members that are in no row.
    #[saved(keep)]
    unused: BlockCount,
    reads: ReadRuns,
}

impl Raid {
    /// An array over the nodes `below`, the last `spares` of which are spares, and what these tell the node
    /// above together. As much of each is used as of the smallest.
    ///
    /// # Errors
    /// When there are too few members or too many, one has zones that must be written in sequence, or a
    /// spare is too short.
    pub fn new(
        level: Level,
        below: &[&Geometry],
        spares: usize,
    ) -> Result<(Raid, Geometry), ArrayError> {
        let members = &below[..below.len() - spares];
        let map = RaidRows::new(level, members.iter().map(|it| it.blocks))?;
        let geometry = joined(below, BlockCount::ZERO)?;
        let used = map.used();
        check_spares(&below[members.len()..], used)?;
        let offered: u64 = members.iter().map(|it| it.blocks.0).sum();
        let raid = Raid {
            map,
            rows: Rows::new(members.len(), spares, true),
            unused: BlockCount(offered - used.0 * members.len() as u64),
            reads: ReadRuns::new(members.len()),
        };
        Ok((raid, Geometry { blocks: map.blocks(), ..geometry }))
    }

    fn read(&mut self, job: u32, extent: Extent, ctx: &mut Context<'_>) {
        for block in extent.start.0..extent.end().0 {
            let (at, in_request) = (self.map.place(block), Some(block - extent.start.0));
            self.reads.read(job, at, in_request, (&mut self.rows, &mut self.map), ctx);
        }
        self.reads.end(job, (&mut self.rows, &mut self.map), ctx);
    }

    fn write(&mut self, job: u32, extent: Extent, operation: Operation, ctx: &mut Context<'_>) {
        let task = self.rows.new_write(job);
        let (_, first) = self.map.place(extent.start.0);
        let (_, last) = self.map.place(extent.end().0 - 1);
        self.rows.set_rows(task, Extent::new(first, last - first + 1));
        let buffer = self.rows.jobs.request(job).buffer;
        let copies = match self.map.redundancy() {
            super::Redundancy::Copies => self.map.columns(),
            super::Redundancy::Parity => 1,
        };
        for at in 0..extent.blocks.0 {
            let (column, row) = self.map.place(extent.start.0 + at);
            let data = operation.has_data().then(|| buffer.part(at, 1));
            for copy in 0..copies {
                self.rows.put(task, column + copy, row, data, ctx);
            }
        }
        self.rows.start(task, None, &mut self.map, ctx);
    }
}

/// Finds a spare that is shorter than what is used of a member.
pub(super) fn check_spares(spares: &[&Geometry], needed: BlockCount) -> Result<(), ArrayError> {
    let short = spares.iter().position(|spare| spare.blocks < needed);
    short.map_or(Ok(()), |spare| {
        Err(ArrayError::ShortSpare { spare, blocks: spares[spare].blocks, needed })
    })
}

impl Layer for Raid {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        // Blocks of those that have failed are old or new, wherever they are: nothing is to be undone.
        while self.rows.next_failed_write().is_some() {}
        let job = self.rows.jobs.begin(request);
        match request.operation {
            Operation::Flush => self.rows.flush(job, &self.map, ctx),
            Operation::Read => self.read(job, request.extent, ctx),
            _ => self.write(job, request.extent, request.operation, ctx),
        }
        self.rows.jobs.end_part(job, Ok(()));
        self.rows.answer(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        self.rows.complete(completion, &mut self.map, ctx);
        self.rows.answer(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        self.rows.go_on(&mut self.map, ctx);
        self.rows.answer(ctx);
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::UnusedBytes, self.unused.bytes());
        let opened = self.rows.open(&mut self.map, ctx);
        ctx.opened(if opened { Ok(()) } else { Err(OpenError::Io(IoError::Lost)) });
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        self.rows.lost(port, &mut self.map, ctx);
        self.rows.answer(ctx);
        if self.rows.members.lacking() == self.map.columns() {
            ctx.lose();
        }
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        self.rows.without(is_lost, self.map.redundancy())
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        self.rows.replaced(port, command, &mut self.map, ctx);
        self.rows.answer(ctx);
    }

    fn takes(&self, kind: CommandKind) -> bool {
        matches!(kind, CommandKind::Rebuild(_))
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        match command.kind {
            CommandKind::Rebuild(rate) => {
                self.rows.ask_rebuild(command.id, rate, &mut self.map, ctx);
                self.rows.answer(ctx);
            }
            _ => ctx.answer_command(command.id, Err(CommandError::NotTaken)),
        }
    }

    fn array(&self, now: Instant, is_lost: &dyn Fn(Port) -> bool) -> Option<ArrayStatus> {
        Some(self.rows.array_status(&self.map, now, is_lost))
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        self.rows.status(facts);
        facts.push(("unused_bytes", self.unused.bytes()));
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
