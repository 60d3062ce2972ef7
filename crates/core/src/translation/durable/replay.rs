//! Recovery: the checkpoint, and the records after it one by one.

use super::LOST_BLOCKS_MAX;
use super::bypass::append_sums;
use super::checkpoint::GENERATION_MAX;
use super::checksums::Table;
use super::log_replay::LogReplay;
use super::records::Entry;
use crate::durability::{Recovery, Replayed};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::OpenError;
use crate::map::BandId;
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::PersistentCache;
use crate::units::Lba;
use alloc::vec::Vec;

fn damaged(detail: &'static str) -> OpenError {
    OpenError::damaged("journal", detail)
}

impl PersistentCache {
    /// Takes back what recovery has found.
    pub(super) fn take_back(
        &mut self,
        recovery: &Recovery,
        ctx: &Context<'_>,
    ) -> Result<(), OpenError> {
        let mut log = self.decode_checkpoint(&recovery.checkpoint)?;
        for record in &recovery.records {
            let entry = Entry::decode(record.kind, &record.payload)
                .ok_or(damaged("a record is of no known kind or length"))?;
            self.replay(&entry, record, &mut log, ctx)?;
        }
        let mut gone = Vec::new();
        let whole = Extent::new(0, self.bands.blocks().0);
        if !log.finish(whole, &mut self.log, &mut gone) {
            return Err(damaged("the log's records contradict each other"));
        }
        for extent in gone {
            self.lost.insert(extent);
        }
        self.scratch_band = self.salvage.map(|salvage| salvage.band);
        // The places of checkpoints are as large as so many ranges need.
        let ranges = self.lost.len() as u64;
        if ranges > LOST_BLOCKS_MAX {
            return Err(damaged("more blocks are lost than writes can have failed"));
        }
        // Another failed write must fit, and writes that split the ranges: else there are none.
        if self.lost_blocks() > LOST_BLOCKS_MAX || ranges > LOST_BLOCKS_MAX / 2 {
            self.durable().failed = Some(IoError::Medium);
        }
        Ok(())
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
                let slot = self.log.slot(position) as usize;
                self.durable().slot_sums[slot..slot + record.checksums.len()]
                    .copy_from_slice(&record.checksums);
                for (at, blocks) in intact_runs(record) {
                    let extent = Extent::new(lba.0 + at, blocks);
                    log.append(extent, position + at);
                    self.zeroed.remove(extent);
                    self.lost.remove(extent);
                }
            }
            Entry::Zero(_) if ctx.is_planted(PlantedBug::TrimForgottenOnReplay) => {}
            Entry::Zero(extent) => {
                log.remove(extent);
                self.apply_zero(extent);
            }
            Entry::Lost(extent) => {
                log.remove(extent);
                self.zeroed.remove(extent);
                self.lost.insert(extent);
            }
            Entry::Scratch {
                band,
                from,
                blocks,
                table,
                place,
            } => {
                if let Some(salvage) = self.salvage_of(band, from, blocks, place) {
                    self.apply_scratch(salvage, table);
                }
            }
            Entry::Home {
                band,
                gathered_before,
                table,
            } => {
                if self.salvage.is_none() {
                    // Only a planted bug leaves the scratch copy out.
                    self.apply_table(band, table);
                    self.write_pointers[band.0 as usize] =
                        self.bands.extent_of(band).blocks.0 as u32;
                    self.zeroed.remove(self.bands.extent_of(band));
                }
                self.salvage = None;
                let mut before = gathered_before;
                if ctx.is_planted(PlantedBug::RemapIgnoresOverwrite) {
                    before = u64::MAX;
                }
                log.remove_before(self.bands.extent_of(band), before);
            }
            Entry::Bypass { lba } => self.replay_bypass(lba, record, log),
            Entry::Table { band, table } => self.apply_table(band, table),
        }
        Ok(())
    }

    /// Blocks that the bypass wrote are there from the first that is to the last before one that
    /// is not: what lies above a missing block cannot be read.
    fn replay_bypass(&mut self, lba: Lba, record: &Replayed, log: &mut LogReplay) {
        let band = self.bands.band_of(lba);
        let offset = lba.offset_from(self.bands.extent_of(band).start);
        let first = intact_runs(record).next();
        let Some((0, blocks)) = first else {
            return;
        };
        if offset > self.readable_blocks(band) {
            return;
        }
        let extent = Extent::new(lba.0, blocks);
        log.remove(extent);
        self.zeroed.remove(extent);
        self.lost.remove(extent);
        let sums = &record.checksums[..blocks as usize];
        append_sums(&mut self.durable().open, band, offset, sums);
        let pointer = &mut self.write_pointers[band.0 as usize];
        *pointer = (*pointer).max((offset + blocks) as u32);
    }

    /// Refuses a record that names what is not there.
    fn check_replayed(&self, entry: &Entry, record: &Replayed) -> Result<(), OpenError> {
        let blocks = record.checksums.len() as u64;
        let in_bands = |start: Lba, blocks: u64| {
            let end = start.0.checked_add(blocks);
            end.is_some_and(|end| end <= self.bands.blocks().0)
        };
        let is_band = |band: BandId| band.0 < self.bands.bands();
        let is_table = |table: Table| table.generation() <= GENERATION_MAX;
        let good = match *entry {
            Entry::Append { lba, position } => {
                let slot = self.log.slot(position);
                in_bands(lba, blocks)
                    && slot + blocks <= self.settings.log_blocks.0
                    && position < u64::MAX / 2
                    && record.data == Some(self.log_extent(position, blocks))
            }
            Entry::Zero(extent) | Entry::Lost(extent) => in_bands(extent.start, extent.blocks.0),
            Entry::Scratch {
                band,
                from,
                blocks,
                table,
                place,
            } => {
                is_band(band)
                    && is_table(table)
                    && self.salvage_of(band, from, blocks, place).is_some()
            }
            Entry::Home { band, table, .. } | Entry::Table { band, table } => {
                is_band(band) && is_table(table)
            }
            Entry::Bypass { lba } => {
                in_bands(lba, blocks.max(1)) && {
                    let band = self.bands.band_of(lba);
                    let whole = self.bands.extent_of(band);
                    let home = self.layout.home(band, lba.offset_from(whole.start), blocks);
                    lba.0 + blocks <= whole.end().0 && record.data == Some(home)
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
        let end = (start..count)
            .find(|at| !record.intact.block(*at))
            .unwrap_or(count);
        next = end;
        Some((start as u64, (end - start) as u64))
    })
}
