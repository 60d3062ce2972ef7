//! What must be read so that the parity of a row stays right.

use super::bad_rows::BadRows;
use super::{Columns, Members, Redundancy, RowMap};
use crate::extent::Extent;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// How the new parity of rows is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Method {
    /// From the old parity, what is replaced and what replaces it.
    Modify,
    /// From what the row will be.
    Reconstruct,
    /// Not at all: there is none, or its column is missing.
    None,
    /// Two blocks of the row are missing, so it cannot be kept.
    Impossible,
}

/// Rows that are changed in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Segment {
    /// The rows.
    pub rows: Extent,
    /// The column with their parity, where that changes.
    pub parity: usize,
    /// Columns of which there is new data.
    pub written: Columns,
    /// Columns that must be read first, parity among them.
    pub read: Columns,
    /// What becomes of their parity.
    pub method: Method,
}

impl Segment {
    /// Columns that get new blocks, whether they are there or not.
    pub fn changed(&self) -> Columns {
        match self.method {
            Method::Modify | Method::Reconstruct => self.written.or(Columns::of(self.parity)),
            Method::None => self.written,
            Method::Impossible => Columns::NONE,
        }
    }
}

/// Plans the writing of rows: of each the columns with new data. Blocks that are `bad` are there, and cannot be
/// read.
pub fn plan_write<M: RowMap>(
    map: &M,
    members: &Members,
    bad: &BadRows,
    rows: Extent,
    written: &[Columns],
    segments: &mut Vec<Segment>,
) {
    segments.clear();
    for (row, written) in (rows.start.0..).zip(written) {
        let mut segment = match map.redundancy() {
            Redundancy::Copies => plan_copies(members, row, *written),
            Redundancy::Parity => plan_row(map, members, bad.at(row), row, *written),
        };
        segment.rows = Extent::new(row, 1);
        // Where a rebuild has come to, other columns have the rows.
        let is_apart = !members.is_whole() && row > rows.start.0;
        match is_apart && members.alike_from(row - 1) == 1 {
            true => segments.push(segment),
            false => add_segment(segments, segment),
        }
    }
}

/// Adds a row to segments in the order of their rows.
pub fn add_segment(segments: &mut Vec<Segment>, segment: Segment) {
    match segments.last_mut() {
        Some(last)
            if last.rows.end() == segment.rows.start
                && Segment { rows: last.rows, ..segment } == *last =>
        {
            last.rows.blocks.0 += segment.rows.blocks.0;
        }
        _ => segments.push(segment),
    }
}

fn plan_copies(members: &Members, row: u64, written: Columns) -> Segment {
    let method = match written.and(members.with_row(row)).is_empty() {
        true => Method::Impossible,
        false => Method::None,
    };
    Segment { rows: Extent::EMPTY, parity: 0, written, read: Columns::NONE, method }
}

fn plan_row<M: RowMap>(
    map: &M,
    members: &Members,
    unreadable: Columns,
    row: u64,
    written: Columns,
) -> Segment {
    let parity = map.parity_of(row);
    let held = map.held(row);
    let there = members.with_row(row);
    let can_read = there.without(unreadable);
    let (replaced, kept) = (held.and(written), held.without(written));
    let missing = held.or(written).without(there);
    let (method, read) = if missing.len() > 1 && !written.and(missing).is_empty() {
        (Method::Impossible, Columns::NONE)
    } else if !there.has(parity) {
        match written.without(there).is_empty() {
            true => (Method::None, Columns::NONE),
            false => (Method::Impossible, Columns::NONE),
        }
    } else {
        let old_parity = if held.is_empty() { Columns::NONE } else { Columns::of(parity) };
        let modify = replaced.or(old_parity);
        let can_modify = modify.without(can_read).is_empty();
        let can_reconstruct = kept.without(can_read).is_empty();
        match (can_modify, can_reconstruct) {
            (true, true) if kept.len() < modify.len() => (Method::Reconstruct, kept),
            (true, _) => (Method::Modify, modify),
            (false, true) => (Method::Reconstruct, kept),
            (false, false) => (Method::Impossible, Columns::NONE),
        }
    };
    Segment { rows: Extent::EMPTY, parity, written, read, method }
}

/// What must be read to find the block of a column in a row again. None when it cannot be found.
pub fn sources<M: RowMap>(
    map: &M,
    members: &Members,
    unreadable: Columns,
    column: usize,
    row: u64,
) -> Option<Columns> {
    let can_read = members.with_row(row).without(unreadable).without(Columns::of(column));
    match map.redundancy() {
        Redundancy::Copies => can_read.iter().next().map(Columns::of),
        Redundancy::Parity => {
            let parity = map.parity_of(row);
            let held = map.held(row);
            let others = match held.is_empty() {
                true => Columns::NONE,
                false => held.or(Columns::of(parity)).without(Columns::of(column)),
            };
            others.without(can_read).is_empty().then_some(others)
        }
    }
}

/// Plans how the blocks of one column are found from the others, in those rows that are `wanted`.
pub fn plan_column<M: RowMap>(
    map: &M,
    members: &Members,
    bad: &BadRows,
    (column, rows): (usize, Extent),
    wanted: impl Fn(u64) -> bool,
    segments: &mut Vec<Segment>,
) {
    segments.clear();
    let end = rows.end().0;
    let mut row = rows.start.0;
    while let Some(next) = map.next_held(column, row).filter(|next| *next < end) {
        row = next;
        let alike = map.alike_from(row).min(members.alike_from(row)).min(end - row);
        let alike = alike.min(bad.alike_from(row));
        if !wanted(row) {
            row += alike;
            continue;
        }
        let found = sources(map, members, bad.at(row), column, row);
        let method = if found.is_some() { Method::None } else { Method::Impossible };
        let read = found.unwrap_or_default();
        let (written, rows) = (Columns::of(column), Extent::new(row, alike));
        add_segment(segments, Segment { rows, parity: column, written, read, method });
        row += alike;
    }
}
