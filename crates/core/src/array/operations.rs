//! Operations of an array that are in flight.

use super::RowMap;
use super::rows::Owner;
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::map::Slab;
use crate::operation::{Cause, Operation, Tag};

#[derive(Clone, Copy, Debug)]
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
#[derive(Debug, Default)]
pub(super) struct Operations(Slab<InFlight>);

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
            let entry = InFlight { owner, column, port, is_read, rows: of_rows, buffer: part };
            let tag = Tag(u64::from(self.0.add(entry)));
            ctx.issue(Issue { port, operation, extent, buffer: part, cause, tag });
            (issued, done) = (issued + 1, done + extent.blocks.0);
            if done == rows.blocks.0 {
                return issued;
            }
        }
    }

    /// Empties a zone of a column.
    pub fn reset_zone(
        &mut self,
        owner: Owner,
        (column, port): (usize, Port),
        extent: Extent,
        ctx: &mut Context<'_>,
    ) {
        let (rows, buffer) = (Extent::EMPTY, BufferSlice::EMPTY);
        let entry = InFlight { owner, column, port, is_read: false, rows, buffer };
        let tag = Tag(u64::from(self.0.add(entry)));
        let (operation, cause) = (Operation::ZoneReset, Cause::Cleaning);
        ctx.issue(Issue { port, operation, extent, buffer, cause, tag });
    }

    /// What an operation that has ended was.
    pub fn take(&mut self, tag: Tag) -> Done {
        let InFlight { owner, column, port, is_read, rows, buffer } = self.0.take(tag.0 as u32);
        Done { owner, column, port, is_read, rows, buffer }
    }
}
