//! The block writes of a trace, and per band how the blocks return from one cell of time to another.

use imbrex_core::extent::Extent;
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::units::Lba;
use std::collections::{BTreeMap, HashMap};

/// The block writes of a trace in their order.
///
/// A block that the trace also trims or zeroes is left out altogether: a disk may forget it, so
/// nothing can be said of how long it must be kept. With fewer writes the bound is lower, never higher.
#[derive(Debug)]
pub struct BlockWrites {
    /// Each block write, as the number of its block.
    blocks: Vec<u32>,
    /// The band of each block, as an index into `bands`.
    band_of: Vec<u32>,
    /// Every band with a block, in ascending order.
    bands: Vec<BandId>,
    /// Blocks of each of these bands.
    lengths: Vec<u64>,
    /// How many block writes there were at the end of each write request, ascending.
    request_ends: Vec<u32>,
}

/// Collects [`BlockWrites`].
#[derive(Debug)]
pub struct BlockWritesBuilder<'a> {
    table: &'a BandTable,
    numbers: HashMap<Lba, u32>,
    lbas: Vec<Lba>,
    forgotten: Vec<bool>,
    blocks: Vec<u32>,
    request_ends: Vec<u32>,
}

impl<'a> BlockWritesBuilder<'a> {
    /// No writes yet, over the bands of a table.
    pub fn new(table: &'a BandTable) -> BlockWritesBuilder<'a> {
        BlockWritesBuilder {
            table,
            numbers: HashMap::new(),
            lbas: Vec::new(),
            forgotten: Vec::new(),
            blocks: Vec::new(),
            request_ends: Vec::new(),
        }
    }

    /// A write request. Panics after `u32::MAX` block writes and beyond the last band.
    pub fn write(&mut self, extent: Extent) {
        for lba in (extent.start.0..extent.end().0).map(Lba) {
            let block = self.number(lba);
            self.blocks.push(block);
        }
        let end = u32::try_from(self.blocks.len()).expect("fewer than 2^32 block writes");
        self.request_ends.push(end);
    }

    /// A trim or a zero request: its blocks are left out.
    pub fn forget(&mut self, extent: Extent) {
        for lba in (extent.start.0..extent.end().0).map(Lba) {
            let block = self.number(lba);
            self.forgotten[block as usize] = true;
        }
    }

    fn number(&mut self, lba: Lba) -> u32 {
        let new = self.lbas.len() as u32;
        let number = *self.numbers.entry(lba).or_insert(new);
        if number == new {
            self.lbas.push(lba);
            self.forgotten.push(false);
        }
        number
    }

    /// The writes, those of forgotten blocks left out.
    pub fn finish(self) -> BlockWrites {
        let mut blocks = Vec::with_capacity(self.blocks.len());
        let mut request_ends = Vec::with_capacity(self.request_ends.len());
        let mut at = 0;
        for end in self.request_ends {
            let request = &self.blocks[at..end as usize];
            at = end as usize;
            blocks.extend(request.iter().filter(|it| !self.forgotten[**it as usize]));
            request_ends.push(blocks.len() as u32);
        }
        request_ends.retain(|end| *end > 0);
        request_ends.dedup();
        let band_ids: Vec<u32> = self.lbas.iter().map(|lba| self.table.band_of(*lba).0).collect();
        let mut used = vec![false; self.table.bands() as usize];
        for block in &blocks {
            used[band_ids[*block as usize] as usize] = true;
        }
        let bands: Vec<BandId> =
            (0..self.table.bands()).filter(|band| used[*band as usize]).map(BandId).collect();
        let indices: BTreeMap<u32, u32> = bands.iter().map(|it| it.0).zip(0..).collect();
        let index_of = |id: u32| indices.get(&id).copied().unwrap_or(u32::MAX);
        BlockWrites {
            blocks,
            band_of: band_ids.into_iter().map(index_of).collect(),
            lengths: bands.iter().map(|band| self.table.extent_of(*band).blocks.0).collect(),
            bands,
            request_ends,
        }
    }
}

impl BlockWrites {
    /// How many block writes there are.
    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Every band that is written, in ascending order.
    pub fn bands(&self) -> &[BandId] {
        &self.bands
    }

    /// Blocks of each band that is written.
    pub fn band_blocks(&self) -> &[u64] {
        &self.lengths
    }

    /// The ends of at most `count` cells that hold about equally many block writes. Every cell ends
    /// where a request does, because only there must all that was written be somewhere.
    pub fn cell_ends(&self, count: u32) -> Vec<u32> {
        let writes = self.len();
        let mut ends: Vec<u32> = (1..=u64::from(count))
            .map(|cell| (writes * cell / u64::from(count)) as u32)
            .filter(|end| *end > 0)
            .map(|end| {
                let request = self.request_ends.partition_point(|it| *it < end);
                self.request_ends[request]
            })
            .collect();
        ends.dedup();
        ends
    }

    /// Which blocks return when, per band and in the order of [`bands`](Self::bands), where time is
    /// cut into cells at `ends`.
    pub fn by_band(&self, ends: &[u32]) -> Vec<BandCells> {
        let mut bands: Vec<BandBuilder> = vec![BandBuilder::default(); self.bands.len()];
        // The cell of its band in which a block was last written.
        let mut last: Vec<u32> = vec![u32::MAX; self.band_of.len()];
        let mut from = 0;
        for (cell, end) in ends.iter().enumerate() {
            for block in &self.blocks[from..*end as usize] {
                let band = &mut bands[self.band_of[*block as usize] as usize];
                if band.cells.last() != Some(&(cell as u32)) {
                    band.cells.push(cell as u32);
                }
                let now = band.cells.len() as u32 - 1;
                let before = std::mem::replace(&mut last[*block as usize], now);
                if before != now && before != u32::MAX {
                    band.returns.push((before, now));
                }
            }
            from = *end as usize;
        }
        for (block, last) in last.into_iter().enumerate() {
            if last != u32::MAX {
                let band = &mut bands[self.band_of[block] as usize];
                band.returns.push((last, u32::MAX));
            }
        }
        bands.into_iter().map(BandBuilder::finish).collect()
    }
}

#[derive(Clone, Default)]
struct BandBuilder {
    cells: Vec<u32>,
    /// For every block in every cell in which it is written: that cell of the band, and the next one.
    returns: Vec<(u32, u32)>,
}

impl BandBuilder {
    fn finish(mut self) -> BandCells {
        self.returns.sort_unstable();
        let mut returns: Vec<Return> = Vec::new();
        let mut first = vec![0; self.cells.len() + 1];
        let mut before = None;
        for pair in self.returns {
            match returns.last_mut() {
                Some(last) if before == Some(pair) => last.blocks += 1,
                _ => returns.push(Return { next: pair.1, blocks: 1 }),
            }
            before = Some(pair);
            first[pair.0 as usize + 1] = returns.len() as u32;
        }
        let last = returns.iter().filter(|it| it.next == u32::MAX);
        BandCells {
            cells: self.cells,
            blocks: last.map(|it| u64::from(it.blocks)).sum(),
            returns,
            first,
        }
    }
}

/// Blocks that are written in one cell and next in another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Return {
    /// The next cell of the band in which they are written; `u32::MAX` if they never are again.
    pub next: u32,
    /// How many blocks.
    pub blocks: u32,
}

/// What one band has to do with the cells of time.
#[derive(Debug)]
pub struct BandCells {
    /// The cells in which the band is written, ascending. The band counts them from 0.
    pub(super) cells: Vec<u32>,
    /// The blocks of the band that are written at all.
    pub(super) blocks: u64,
    returns: Vec<Return>,
    /// Where the returns of each cell of the band begin.
    first: Vec<u32>,
}

impl BandCells {
    /// How many cells write to the band.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The blocks written in a cell of the band, by the cell in which they return, the soonest first.
    pub(super) fn returns(&self, cell: usize) -> &[Return] {
        &self.returns[self.first[cell] as usize..self.first[cell + 1] as usize]
    }

    /// Makes of `distinct[g]`, the number of blocks written in the cells `cell + 1 ..= g` of the band,
    /// the number of those written in `cell ..= g`, for each `g` below `end`.
    pub(super) fn widen(&self, cell: usize, end: usize, distinct: &mut [u32]) {
        let returns = self.returns(cell);
        let mut alone: u32 = returns.iter().map(|it| it.blocks).sum();
        let mut at = cell;
        for it in returns {
            let until = (it.next as usize).min(end);
            for count in &mut distinct[at..until.max(at)] {
                *count += alone;
            }
            at = until.max(at);
            alone -= it.blocks;
        }
    }
}
