//! Blocks of a request that lie one behind the other on a column are read together.

use super::task::Piece;
use super::{RowMap, Rows};
use crate::extent::Extent;
use crate::layer::Context;
use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// Of each column the rows that are to be read, and where in the request they go.
#[derive(Debug, SavedValue)]
pub(super) struct ReadRuns(Vec<(Extent, Vec<Piece>)>);

impl ReadRuns {
    /// Nothing to be read of so many columns.
    pub fn new(columns: usize) -> ReadRuns {
        ReadRuns(vec![(Extent::EMPTY, Vec::new()); columns])
    }

    /// Reads a block of a column with its neighbours: for `in_request`, or for nobody.
    pub fn read<M: RowMap>(
        &mut self,
        job: u32,
        (column, row): (usize, u64),
        in_request: Option<u64>,
        (rows, map): (&mut Rows, &mut M),
        ctx: &mut Context<'_>,
    ) {
        let (run, _) = self.0[column];
        if !run.is_empty() && run.end().0 != row {
            self.send(job, column, rows, map, ctx);
        }
        let (run, pieces) = &mut self.0[column];
        if run.is_empty() {
            *run = Extent::new(row, 0);
        }
        let in_rows = run.blocks.0;
        run.blocks.0 += 1;
        let Some(in_request) = in_request else { return };
        match pieces.last_mut() {
            Some(last)
                if last.in_request + last.blocks == in_request
                    && last.in_rows + last.blocks == in_rows =>
            {
                last.blocks += 1;
            }
            _ => pieces.push(Piece { in_request, in_rows, blocks: 1 }),
        }
    }

    /// All blocks of a request are known: what is left of them is read.
    pub fn end<M: RowMap>(
        &mut self,
        job: u32,
        (rows, map): (&mut Rows, &mut M),
        ctx: &mut Context<'_>,
    ) {
        for column in 0..self.0.len() {
            if !self.0[column].0.is_empty() {
                self.send(job, column, rows, map, ctx);
            }
        }
    }

    fn send<M: RowMap>(
        &mut self,
        job: u32,
        column: usize,
        rows: &mut Rows,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let (run, pieces) = &mut self.0[column];
        rows.read(job, column, core::mem::replace(run, Extent::EMPTY), pieces, map, ctx);
        pieces.clear();
    }
}
