//! Operations of an array that are in flight.

use super::RowMap;
use super::missed::Missed;
use super::patience::Patience;
use super::unflushed::Unflushed;
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::map::Slab;
use crate::operation::{Cause, Operation, Tag};
use crate::saved::{Saved, SavedValue};

/// Whom an operation below is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Owner {
    /// Work on rows.
    Task(u32),
    /// A flush that was asked for.
    Flush(u32),
    /// The layer's own work, by the word that it chose.
    Layer(u64),
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct InFlight {
    owner: Owner,
    column: usize,
    /// The node that stood for the column.
    port: Port,
    is_read: bool,
    /// The rows; none of a flush and of a zone that is emptied.
    rows: Extent,
    /// What is moved.
    buffer: BufferSlice,
    /// Which of all operations it is.
    serial: u64,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub owner: Owner,
    pub column: usize,
    /// The node that stood for the column when it was sent. Another one may have taken its place.
    pub port: Port,
    pub is_read: bool,
    /// Of a read: the rows, and where they were read to.
    pub rows: Extent,
    pub buffer: BufferSlice,
}

/// The operations that are in flight, each with whom it is for.
#[derive(Debug, Default, Saved)]
pub(super) struct Operations {
    in_flight: Slab<InFlight>,
    serial: u64,
    /// How long they may take, where that is bounded.
    #[saved(each)]
    pub patience: Option<Patience>,
    /// What was written and may not be durable, where somebody remembers what members have missed.
    pub unflushed: Option<Unflushed>,
}

impl Operations {
    /// Sends an operation on rows of a column to its member: several where the rows do not lie one behind the
    /// other there. Returns how many.
    #[allow(clippy::too_many_arguments)]
    pub fn issue<M: RowMap>(
        &mut self,
        owner: Owner,
        (column, port): (usize, Port),
        (operation, cause): (Operation, Cause),
        rows: Extent,
        buffer: BufferSlice,
        map: &M,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let is_read = operation == Operation::Read;
        if let Some(unflushed) = self.unflushed.as_mut().filter(|_| !is_read) {
            unflushed.wrote(column, rows);
        }
        let mut issued = 0;
        let mut done = 0;
        loop {
            let left = rows.blocks.0 - done;
            let (extent, part) = match rows.is_empty() {
                true => (Extent::EMPTY, buffer),
                false => {
                    let (start, run) = map.place_of(column, rows.start.0 + done);
                    let blocks = left.min(run);
                    let part = match operation.has_data() {
                        true => buffer.part(done, blocks),
                        false => BufferSlice::EMPTY,
                    };
                    (Extent::new(start.0, blocks), part)
                }
            };
            let of_rows = Extent::new(rows.start.0 + done, extent.blocks.0);
            let serial = self.serial;
            let entry =
                InFlight { owner, column, port, is_read, rows: of_rows, buffer: part, serial };
            let tag = self.add(entry, ctx);
            ctx.issue(Issue { port, operation, extent, buffer: part, cause, tag });
            (issued, done) = (issued + 1, done + extent.blocks.0);
            if done == rows.blocks.0 {
                return issued;
            }
        }
    }

    /// Sends an operation on blocks of a member that are in no row, or on a zone of it.
    pub fn issue_at(
        &mut self,
        owner: Owner,
        (column, port): (usize, Port),
        (operation, cause): (Operation, Cause),
        extent: Extent,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) {
        let (rows, serial) = (Extent::EMPTY, self.serial);
        let is_read = operation == Operation::Read;
        let entry = InFlight { owner, column, port, is_read, rows, buffer, serial };
        let tag = self.add(entry, ctx);
        ctx.issue(Issue { port, operation, extent, buffer, cause, tag });
    }

    fn add(&mut self, entry: InFlight, ctx: &Context<'_>) -> Tag {
        let number = self.in_flight.add(entry);
        if let Some(patience) = &mut self.patience {
            patience.sent(ctx.now(), number, self.serial);
        }
        self.serial += 1;
        Tag(u64::from(number))
    }

    /// A member takes no longer for its label than for an operation.
    pub fn bound_labels(&self, ctx: &mut Context<'_>) {
        if let Some(patience) = &self.patience {
            ctx.wait_for_labels_at_most(patience.lost_after());
        }
    }

    /// A port of which something has taken too long.
    pub fn late(&mut self, ctx: &Context<'_>) -> Option<Port> {
        let patience = self.patience.as_mut()?;
        let all = &self.in_flight;
        let late = patience.next_late(ctx.now(), |number, serial| all[number].serial != serial);
        let late = late.map(|number| all[number].port);
        patience.look(ctx).or(late)
    }

    /// A column is lost: regions of it that may lack what was written to them are missed.
    pub fn tell_unflushed(&self, column: usize, missed: &mut Missed) {
        let Some(unflushed) = &self.unflushed else { return };
        unflushed.regions(column).for_each(|region| missed.add(region));
        let is_write = |it: &&InFlight| it.serial != u64::MAX && !it.is_read && !it.rows.is_empty();
        for it in self.in_flight.iter().filter(is_write).filter(|it| it.column == column) {
            missed.add_rows(it.rows);
        }
    }

    /// What an operation that has ended was.
    pub fn take(&mut self, tag: Tag) -> Done {
        let entry = &mut self.in_flight[tag.0 as u32];
        entry.serial = u64::MAX;
        let InFlight { owner, column, port, is_read, rows, buffer, .. } =
            self.in_flight.take(tag.0 as u32);
        if let Some(unflushed) = self.unflushed.as_mut().filter(|_| !is_read) {
            unflushed.wrote(column, rows);
        }
        Done { owner, column, port, is_read, rows, buffer }
    }
}
