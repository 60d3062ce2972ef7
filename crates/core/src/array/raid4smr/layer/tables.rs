//! Tables of checksums are read and written.

use super::Raid4Smr;
use crate::array::raid4smr::on_the_way::Quiet;
use crate::array::raid4smr::table_writes::Behind;
use crate::array::raid4smr::word::Word;
use crate::array::task::Piece;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::units::BlockCount;

impl Raid4Smr {
    /// Takes a step with tables that are read or written. False when there is none to take.
    pub(super) fn tables_on(&mut self, ctx: &mut Context<'_>) -> bool {
        let Raid4Smr { table_writes, rows, contents, notes, .. } = self;
        let Some((behind, result)) = table_writes.go_on(rows, contents, notes, ctx) else {
            return self.read_tables(ctx);
        };
        match behind {
            Behind::Opening => match result {
                Ok(()) => self.flush_members(Word::Opening, ctx),
                Err(_) => self.tables_flushed(result, ctx),
            },
            Behind::Checkpoint => {
                if let Err(error) = result {
                    self.notes.keeper.ledger.fail(error);
                }
                self.gate.quiet = Quiet::Flushing;
                self.flush_members(Word::Quiet, ctx);
            }
            Behind::Collection(number) => {
                self.collector.ended(number, result);
                let (collector, mut around) = self.around(ctx);
                collector.go_on(&mut around);
            }
        }
        true
    }

    /// Begins to read the tables that somebody waits for. True when one is known already.
    pub(super) fn read_tables(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut came = false;
        while let Some((table, is_written)) =
            self.contents.sums.as_mut().and_then(|sums| sums.next_wanted())
        {
            match is_written {
                true => self.read_table(table, ctx),
                false => {
                    self.settle_table(table);
                    came = true;
                }
            }
        }
        if came {
            self.rows.sums_came(&mut self.contents, ctx);
        }
        came
    }

    fn settle_table(&mut self, table: u64) {
        self.contents.sums.iter_mut().for_each(|sums| sums.settle(table));
    }

    fn read_table(&mut self, table: u64, ctx: &mut Context<'_>) {
        let Some(of_table) = self.contents.sums.as_ref().map(|sums| sums.row_of(table)) else {
            return;
        };
        let data = self.contents.data();
        let block = ctx.allocate(BlockCount(1));
        let word = Word::TableRead(table).number();
        let job = self.rows.jobs.begin_own(word, (Operation::Read, Cause::Metadata), block);
        let whole = Piece { in_request: 0, in_rows: 0, blocks: 1 };
        self.rows.read(job, data, of_table, &[whole], &mut self.contents, ctx);
        self.rows.jobs.end_part(job, Ok(()));
    }

    /// A table was read. Where no disk can give it, nothing is known of its rows.
    pub(super) fn table_read(
        &mut self,
        table: u64,
        block: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        if let (Some(sums), Ok(())) = (&mut self.contents.sums, result) {
            sums.take(table, block, ctx);
        }
        ctx.release(block);
        self.settle_table(table);
        self.rows.sums_came(&mut self.contents, ctx);
    }

    /// A table was written, or could not be.
    pub(super) fn table_written(&mut self, table: u64, result: Result<(), IoError>) {
        if let Some(sums) = &mut self.contents.sums {
            self.table_writes.ended(table, result, sums);
        }
    }
}
