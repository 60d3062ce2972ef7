//! Rows with parity that are compared, and made right where they are not.

use super::plan::{Method, Segment};
use super::scrub::{columns_of, tell_found};
use super::scrubbed::Scrubbed;
use super::task::{Task, Work};
use super::{Columns, RowMap, Rows};
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::extent::Extent;
use crate::layer::Context;
use crate::units::BlockCount;
use alloc::vec::Vec;

/// What is to be done with a row.
enum Finding {
    /// It is right, or a member lacks it.
    Right,
    /// The block of a column is another one than it must be, which is among the new ones.
    Wrong(usize),
    /// Blocks of these columns cannot be found. A parity among them can be computed without the others.
    Unreadable(Columns),
}

impl Rows {
    /// All that could be read of rows is there: what fails its checksum, or cannot be read, is found from all others;
    /// and where all blocks are right the parity must be their sum.
    pub(super) fn compare_sums<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.tasks[task];
        entry.error = None;
        entry.segments.clear();
        let rows = entry.rows;
        ctx.count(Counter::ComparedBlocks, rows.blocks.0);
        let mut found = Scrubbed::default();
        let sum = ctx.allocate(BlockCount(1));
        for row in rows.start.0..rows.end().0 {
            match look_at(entry, row, sum, map, ctx) {
                Finding::Right => {}
                Finding::Wrong(column) => {
                    tell_found(&self.members, Columns::of(column), (row, true), map, ctx);
                    found.wrong += 1;
                    let in_place = map.repairs_in_place(column, row);
                    *(if in_place { &mut found.repaired } else { &mut found.to_move }) += 1;
                    if in_place {
                        entry.segments.push(in_place_of(column, row, map));
                    }
                }
                Finding::Unreadable(columns) => {
                    let parity = Columns::of(map.parity_of(row));
                    let (lost, one) = (columns.without(parity), Extent::new(row, 1));
                    let mut listed = 0;
                    for column in lost.iter() {
                        listed += u64::from(map.list_unreadable(column, one, ctx));
                    }
                    tell_found(&self.members, lost, (row, false), map, ctx);
                    found.wrong += u64::from(columns.len());
                    found.unreadable += listed;
                    if listed == u64::from(lost.len()) && !map.held(row).is_empty() {
                        let rotten = columns.and(parity);
                        tell_found(&self.members, rotten, (row, true), map, ctx);
                        found.repaired += u64::from(rotten.len());
                        put_parity_of_rest(entry, row, sum, map, ctx);
                    }
                }
            }
        }
        ctx.release(sum);
        ctx.count(Counter::RepairedBlocks, found.repaired + found.to_move);
        if let Work::Scrub { found: of_task, .. } = &mut self.tasks[task].work {
            *of_task = found;
        }
        self.begin_writing(task, map, ctx);
    }
}

/// A block of a column is written again.
fn in_place_of<M: RowMap>(column: usize, row: u64, map: &M) -> Segment {
    Segment {
        rows: Extent::new(row, 1),
        parity: map.parity_of(row),
        written: Columns::of(column),
        read: Columns::NONE,
        method: Method::None,
    }
}

/// Blocks of a row are lost: its parity becomes the sum of the others, which are right. `sum` is a block of memory.
fn put_parity_of_rest<M: RowMap>(
    entry: &mut Task,
    row: u64,
    sum: BufferSlice,
    map: &M,
    ctx: &mut Context<'_>,
) {
    let (parity, one) = (map.parity_of(row), Extent::new(row, 1));
    ctx.zero(sum);
    for column in map.held(row).iter() {
        ctx.xor(entry.part(entry.old[column], one), sum);
    }
    entry.make_new(parity, ctx);
    ctx.copy(sum, entry.part(entry.new[parity], one));
    entry.segments.push(in_place_of(parity, row, map));
}

/// What is to be done with a row. `sum` is a block of memory.
fn look_at<M: RowMap>(
    entry: &mut Task,
    row: u64,
    sum: BufferSlice,
    map: &mut M,
    ctx: &mut Context<'_>,
) -> Finding {
    let columns = columns_of(map, row);
    let bad = entry.bad.at(row).and(columns);
    let was_read = entry.written[(row - entry.rows.start.0) as usize];
    let (parity, one) = (map.parity_of(row), Extent::new(row, 1));
    if columns.is_empty() || !columns.without(was_read).is_empty() {
        // That may have what is wrong here.
        return Finding::Right;
    }
    let column = match bad.len() {
        0 => parity,
        1 => bad.iter().next().expect("one"),
        _ => return Finding::Unreadable(bad),
    };
    ctx.zero(sum);
    for other in columns.without(Columns::of(column)).iter() {
        ctx.xor(entry.part(entry.old[other], one), sum);
    }
    if bad.is_empty() {
        let mut sums = Vec::new();
        ctx.checksum(sum, &mut sums);
        ctx.checksum(entry.part(entry.old[parity], one), &mut sums);
        if sums[0] == sums[1] {
            return Finding::Right;
        }
    }
    let mut is_right = true;
    map.find_wrong(column, one, sum, ctx, &mut |_| is_right = false);
    if !is_right {
        return Finding::Unreadable(bad);
    }
    entry.make_new(column, ctx);
    ctx.copy(sum, entry.part(entry.new[column], one));
    Finding::Wrong(column)
}
