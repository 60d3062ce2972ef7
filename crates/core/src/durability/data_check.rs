//! The last step of a recovery: the data is read of which nothing says that it was durable.

use super::events::Intact;
use super::journal::Journal;
use super::opening::Opening;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use alloc::vec;
use alloc::vec::Vec;

impl Journal {
    /// The data of a record has been read, or one block of it. After a read of all has failed each
    /// block is read: one that cannot be read says nothing of the others. Where the journal is
    /// mirrored, the next copy is asked for a block that is not there: one copy that has it is
    /// enough.
    pub(super) fn data_read(
        &mut self,
        opening: &mut Opening,
        number: u64,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let part = DataPart::from_number(number);
        let record = &mut opening.records[part.record as usize].1;
        let (kind, blocks) = (record.kind, record.checksums.len());
        let mut found = Vec::new();
        if result.is_ok() {
            ctx.checksum(buffer, &mut found);
        }
        let first = part.block.unwrap_or(0) as usize;
        let is_there = |at: usize| found.get(at - first) == Some(&record.checksums[at]);
        match (&mut record.intact, part.block) {
            (Intact::Blocks(intact), Some(_)) => intact[first] = is_there(first),
            _ if result.is_err() => record.intact = Intact::Blocks(vec![false; blocks]),
            _ => {
                let intact: Vec<bool> = (0..blocks).map(is_there).collect();
                if intact.contains(&false) {
                    record.intact = Intact::Blocks(intact);
                }
            }
        }
        let extent = record.data.expect("a record with data");
        let asked = match part.block {
            None => 0..blocks,
            Some(_) => first..first + 1,
        };
        let missing = |at: &usize| !record.intact.block(*at);
        let missing: Vec<usize> = asked.filter(missing).collect();
        // A block by itself was read at this copy; that all could not be read says less.
        let is_settled = part.block.is_some() || result.is_ok();
        let copy = match is_settled {
            true => self.next_copy_with_data(usize::from(part.copy)),
            false => Some(usize::from(part.copy)),
        };
        let Some(copy) = copy else {
            return;
        };
        for block in missing {
            let part =
                DataPart { record: part.record, block: Some(block as u64), copy: copy as u8 };
            let one = Extent::new(extent.start.0 + block as u64, 1);
            opening.outstanding += 1;
            self.read_data(part, kind, one, ctx);
        }
    }

    /// Begins to read the data of a record of some kind.
    pub(super) fn read_data_of(
        &mut self,
        record: usize,
        kind: u8,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) {
        let copy = self.mirror.as_deref().map_or(0, |mirror| mirror.read.current);
        let part = DataPart { record: record as u64, block: None, copy: copy as u8 };
        self.read_data(part, kind, extent, ctx);
    }

    fn read_data(&mut self, part: DataPart, kind: u8, extent: Extent, ctx: &mut Context<'_>) {
        if self.is_mirrored() {
            return self.read_copy(usize::from(part.copy), part.number(), extent, ctx);
        }
        let (port, _) = self.settings.data_port(kind);
        self.read_on(port, part.number(), extent, ctx);
    }

    /// The copy that is asked after this one; the first that is asked is the one that the journal
    /// goes by.
    fn next_copy_with_data(&self, after: usize) -> Option<usize> {
        let mirror = self.mirror.as_deref()?;
        let (base, is_in) = (mirror.read.current, mirror.is_in());
        let from = if after == base { 0 } else { after + 1 };
        (from..mirror.copies.len()).find(|copy| *copy != base && is_in.has(*copy))
    }
}

/// What a read of data is of, as the number of an operation.
#[derive(Clone, Copy)]
struct DataPart {
    /// Which record.
    record: u64,
    /// The block of its data; all of them with `None`.
    block: Option<u64>,
    /// The copy at whose port it is read.
    copy: u8,
}

impl DataPart {
    const RECORD_BITS: u32 = 32;
    const BLOCK_BITS: u32 = 16;

    fn number(self) -> u64 {
        let block = self.block.map_or(0, |block| block + 1);
        (u64::from(self.copy) << Self::BLOCK_BITS | block) << Self::RECORD_BITS | self.record
    }

    fn from_number(number: u64) -> DataPart {
        let above = number >> Self::RECORD_BITS;
        DataPart {
            record: number & ((1 << Self::RECORD_BITS) - 1),
            block: (above & ((1 << Self::BLOCK_BITS) - 1)).checked_sub(1),
            copy: (above >> Self::BLOCK_BITS) as u8,
        }
    }
}
