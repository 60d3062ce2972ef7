//! Recovery: the checkpoint, and the records after it one by one.

use super::apply::{apply_scratch, apply_zero};
use super::areas::LOST_BLOCKS_MAX;
use super::block_map::BlockMap;
use super::checkpoint::{GENERATION_MAX, decode_checkpoint};
use super::checksums::Checksums;
use super::log_replay::LogReplay;
use super::records::Entry;
use super::salvage::Salvage;
use super::shape::Shape;
use super::table::Table;
use crate::durability::{Recovery, Replayed};
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::OpenError;
use crate::map::{BandId, ExtentMap};
use crate::planted::PlantedBug;
use crate::units::Lba;
use alloc::vec::Vec;

fn damaged(detail: &'static str) -> OpenError {
    OpenError::damaged("journal", detail)
}

/// The maps of a translation that is coming up.
#[derive(Debug)]
pub(super) struct Recovering<'a> {
    shape: &'a Shape,
    blocks: &'a mut BlockMap,
    checksums: &'a mut Checksums,
}

impl<'a> Recovering<'a> {
    /// Maps in which nothing is.
    pub fn new(
        shape: &'a Shape,
        blocks: &'a mut BlockMap,
        checksums: &'a mut Checksums,
    ) -> Recovering<'a> {
        Recovering { shape, blocks, checksums }
    }

    /// Takes back what recovery has found; false when so much is lost that the translation can
    /// take no write any more.
    ///
    /// # Errors
    /// When it contradicts itself or the shape.
    pub fn take_back(&mut self, recovery: &Recovery, ctx: &Context<'_>) -> Result<bool, OpenError> {
        let mut log =
            decode_checkpoint(&recovery.checkpoint, self.shape, self.blocks, self.checksums)?;
        for record in &recovery.records {
            let entry = Entry::decode(record.kind, &record.payload)
                .ok_or(damaged("a record is of no known kind or length"))?;
            self.replay(&entry, record, &mut log, ctx)?;
        }
        let mut gone = Vec::new();
        let whole = self.shape.whole();
        if !log.finish(whole, &mut self.blocks.log, &mut gone) {
            return Err(damaged("the log's records contradict each other"));
        }
        for extent in gone {
            self.blocks.lost.insert(extent);
        }
        // The places of checkpoints are as large as so many ranges need.
        let ranges = self.blocks.lost.len() as u64;
        if ranges > LOST_BLOCKS_MAX {
            return Err(damaged("more blocks are lost than writes can have failed"));
        }
        // Another failed write must fit, and writes that split the ranges: else there are none.
        Ok(self.blocks.lost_blocks() <= LOST_BLOCKS_MAX && ranges <= LOST_BLOCKS_MAX / 2)
    }

    fn replay(
        &mut self,
        entry: &Entry,
        record: &Replayed,
        log: &mut LogReplay,
        ctx: &Context<'_>,
    ) -> Result<(), OpenError> {
        self.check_replayed(entry, record)?;
        match *entry {
            Entry::Append { lba, position } => {
                log.reach(position + record.checksums.len() as u64);
                let slot = self.shape.slot(position);
                self.checksums.set_slots(slot, &record.checksums);
                for (at, blocks) in intact_runs(record) {
                    let extent = Extent::new(lba.0 + at, blocks);
                    log.append(extent, position + at);
                    self.blocks.zeroed.remove(extent);
                    self.blocks.lost.remove(extent);
                }
            }
            Entry::Zero(_) if ctx.is_planted(PlantedBug::TrimForgottenOnReplay) => {}
            Entry::Zero(extent) => {
                log.remove(extent);
                apply_zero(extent, self.shape, self.blocks, self.checksums);
            }
            Entry::Lost(extent) => {
                log.remove(extent);
                self.blocks.zeroed.remove(extent);
                self.blocks.lost.insert(extent);
            }
            Entry::Scratch { band, from, blocks, table, place } => {
                if let Some(salvage) = Salvage::recorded(self.shape, band, from, blocks, place) {
                    apply_scratch(salvage, table, self.shape, self.blocks, self.checksums);
                }
            }
            Entry::Home { band, gathered_before, table } => {
                if self.blocks.salvage.is_none() {
                    // Only a planted bug leaves the scratch copy out.
                    let whole = self.shape.bands.extent_of(band);
                    self.checksums.apply_table(band, table);
                    self.blocks.set_pointer(band, whole.blocks.0);
                    self.blocks.zeroed.remove(whole);
                }
                self.blocks.salvage = None;
                let mut before = gathered_before;
                if ctx.is_planted(PlantedBug::RemapIgnoresOverwrite) {
                    before = u64::MAX;
                }
                log.remove_before(self.shape.bands.extent_of(band), before);
            }
            Entry::Bypass { lba } => self.replay_bypass(lba, record, log),
            Entry::Table { band, table } => self.checksums.apply_table(band, table),
        }
        Ok(())
    }

    /// Blocks that the bypass wrote are there from the first that is to the last before one that
    /// is not: what lies above a missing block cannot be read.
    fn replay_bypass(&mut self, lba: Lba, record: &Replayed, log: &mut LogReplay) {
        let (band, offset) = self.shape.band_and_offset(lba);
        let first = intact_runs(record).next();
        let Some((0, blocks)) = first else {
            return;
        };
        if offset > self.blocks.readable_blocks(band) {
            return;
        }
        let extent = Extent::new(lba.0, blocks);
        log.remove(extent);
        self.blocks.zeroed.remove(extent);
        self.blocks.lost.remove(extent);
        let sums = &record.checksums[..blocks as usize];
        self.checksums.append_home(band, offset, sums);
        self.blocks.raise_pointer(band, offset + blocks);
    }

    /// Refuses a record that names what is not there.
    fn check_replayed(&self, entry: &Entry, record: &Replayed) -> Result<(), OpenError> {
        let blocks = record.checksums.len() as u64;
        let in_bands = |start: Lba, blocks: u64| {
            let end = start.0.checked_add(blocks);
            end.is_some_and(|end| end <= self.shape.bands.blocks().0)
        };
        let is_band = |band: BandId| band.0 < self.shape.bands.bands();
        let is_table = |table: Table| table.generation() <= GENERATION_MAX;
        let good = match *entry {
            Entry::Append { lba, position } => {
                let slot = self.shape.slot(position);
                in_bands(lba, blocks)
                    && slot + blocks <= self.shape.settings.log_blocks.0
                    && position < ExtentMap::ADDRESSES / 2
                    && record.data == Some(self.shape.log_area(position, blocks).extent)
            }
            Entry::Zero(extent) | Entry::Lost(extent) => in_bands(extent.start, extent.blocks.0),
            Entry::Scratch { band, from, blocks, table, place } => {
                is_band(band)
                    && is_table(table)
                    && Salvage::recorded(self.shape, band, from, blocks, place).is_some()
            }
            Entry::Home { band, table, .. } | Entry::Table { band, table } => {
                is_band(band) && is_table(table)
            }
            Entry::Bypass { lba } => {
                in_bands(lba, blocks.max(1)) && {
                    let band = self.shape.bands.band_of(lba);
                    let whole = self.shape.bands.extent_of(band);
                    let home = self.shape.layout.home(band, lba.offset_from(whole.start), blocks);
                    lba.0 + blocks <= whole.end().0 && record.data == Some(home.extent)
                }
            }
        };
        match good {
            true => Ok(()),
            false => Err(damaged("a record names blocks that are not there")),
        }
    }
}

/// The runs of blocks of a record's data that are there, as index and length.
fn intact_runs(record: &Replayed) -> impl Iterator<Item = (u64, u64)> + '_ {
    let count = record.checksums.len();
    let mut next = 0;
    core::iter::from_fn(move || {
        let start = (next..count).find(|at| record.intact.block(*at))?;
        let end = (start..count).find(|at| !record.intact.block(*at)).unwrap_or(count);
        next = end;
        Some((start as u64, (end - start) as u64))
    })
}
