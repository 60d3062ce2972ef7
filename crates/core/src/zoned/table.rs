//! The states of zones and the rules that change them (ZBC-2, sections 4.4 and 4.5).

use crate::error::IoError;
use crate::extent::Extent;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Lba};
use crate::zone::{ZoneCondition, ZoneDescriptor, ZoneGeometry, ZoneId};
use alloc::sync::Arc;
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, SavedValue)]
struct Zone {
    condition: ZoneCondition,
    /// Blocks from the start of the zone to its write pointer.
    pointer: u32,
    /// Blocks from the start of the zone that were written; less than `pointer` in a zone that was
    /// finished.
    written: u32,
    /// When it was last written or opened, in steps of the table's clock.
    used: u64,
}

/// The zones of a host-managed disk. Every change is atomic and takes no time; what a refused
/// change would have done is not done.
#[derive(Clone, Debug, Saved)]
pub struct ZoneTable {
    #[saved(keep)]
    geometry: Arc<ZoneGeometry>,
    zones: Vec<Zone>,
    /// The zones that are open.
    open: Vec<ZoneId>,
    /// How many zones are closed.
    closed: u32,
    clock: u64,
    closed_for_others: u64,
}

impl ZoneTable {
    /// All zones empty.
    pub fn new(geometry: Arc<ZoneGeometry>) -> ZoneTable {
        let zone = |zone| Zone {
            condition: match geometry.is_conventional(ZoneId(zone)) {
                true => ZoneCondition::NoWritePointer,
                false => ZoneCondition::Empty,
            },
            pointer: 0,
            written: 0,
            used: 0,
        };
        ZoneTable {
            zones: (0..geometry.zones()).map(zone).collect(),
            open: Vec::new(),
            closed: 0,
            clock: 0,
            closed_for_others: 0,
            geometry,
        }
    }

    /// How the device is cut into zones.
    pub fn geometry(&self) -> &Arc<ZoneGeometry> {
        &self.geometry
    }

    /// How many zones are open.
    pub fn open_zones(&self) -> u32 {
        self.open.len() as u32
    }

    /// How many zones are written in part and not open.
    pub fn closed_zones(&self) -> u32 {
        self.closed
    }

    /// How many zones were closed so that another could be open, since this was last asked.
    pub fn take_closed_for_others(&mut self) -> u64 {
        core::mem::take(&mut self.closed_for_others)
    }

    /// The state of a zone.
    pub fn describe(&self, zone: ZoneId) -> ZoneDescriptor {
        let extent = self.geometry.extent_of(zone);
        let Zone { condition, pointer, .. } = self.zones[zone.0 as usize];
        let is_valid = condition.is_open()
            || matches!(condition, ZoneCondition::Empty | ZoneCondition::Closed);
        ZoneDescriptor {
            condition,
            non_sequential: false,
            extent,
            write_pointer: is_valid.then(|| extent.start + BlockCount(u64::from(pointer))),
        }
    }

    /// The first block of a zone that was not written since the zone was last empty; its end for a
    /// conventional zone, where the table does not know.
    #[inline]
    pub fn written_end(&self, zone: ZoneId) -> Lba {
        let extent = self.geometry.extent_of(zone);
        match self.zones[zone.0 as usize] {
            Zone { condition: ZoneCondition::NoWritePointer, .. } => extent.end(),
            Zone { written, .. } => extent.start + BlockCount(u64::from(written)),
        }
    }

    /// Moves the write pointer over a write.
    ///
    /// # Errors
    /// When the rules of zones refuse it.
    #[inline]
    pub fn write(&mut self, extent: Extent) -> Result<(), IoError> {
        let zone = self.geometry.zone_of(extent.start);
        let whole = self.geometry.extent_of(zone);
        if self.geometry.is_conventional(zone) {
            return self.write_conventional(zone, extent);
        }
        let state = self.zones[zone.0 as usize];
        self.check_online(zone)?;
        if state.condition == ZoneCondition::ReadOnly {
            return Err(IoError::ZoneReadOnly);
        }
        if extent.end() > whole.end() {
            return Err(IoError::WriteBoundary);
        }
        if state.condition == ZoneCondition::Full {
            return Err(IoError::InvalidField);
        }
        if extent.start.offset_from(whole.start) != u64::from(state.pointer) {
            return Err(IoError::UnalignedWrite);
        }
        if !state.condition.is_open() {
            self.take_resources(zone)?;
            self.enter(zone, ZoneCondition::ImplicitlyOpen);
        }
        self.clock += 1;
        let state = &mut self.zones[zone.0 as usize];
        state.used = self.clock;
        state.pointer += extent.blocks.0 as u32;
        state.written = state.pointer;
        if extent.end() == whole.end() {
            self.enter(zone, ZoneCondition::Full);
        }
        Ok(())
    }

    /// A write may cross conventional zones, but not into the others.
    fn write_conventional(&self, first: ZoneId, extent: Extent) -> Result<(), IoError> {
        let last = self.geometry.zone_of(Lba(extent.end().0 - 1));
        for zone in first.0..=last.0 {
            if !self.geometry.is_conventional(ZoneId(zone)) {
                return Err(IoError::WriteBoundary);
            }
            self.check_online(ZoneId(zone))?;
            if self.zones[zone as usize].condition == ZoneCondition::ReadOnly {
                return Err(IoError::ZoneReadOnly);
            }
        }
        Ok(())
    }

    /// Whether a read of an extent is permitted; `unrestricted` is URSWRZ.
    ///
    /// # Errors
    /// When the rules of zones refuse it.
    #[inline]
    pub fn read(&self, extent: Extent, unrestricted: bool) -> Result<(), IoError> {
        let first = self.geometry.zone_of(extent.start);
        let last = self.geometry.zone_of(Lba(extent.end().0 - 1));
        for zone in first.0..=last.0 {
            self.check_online(ZoneId(zone))?;
        }
        if unrestricted || self.geometry.is_conventional(last) {
            return Ok(());
        }
        if first != last {
            return Err(IoError::ReadBoundary);
        }
        let state = self.zones[last.0 as usize];
        let has_pointer = !matches!(state.condition, ZoneCondition::Full | ZoneCondition::ReadOnly);
        let pointer = self.geometry.extent_of(last).start + BlockCount(u64::from(state.pointer));
        if has_pointer && extent.end() > pointer {
            return Err(IoError::ReadInvalidData);
        }
        Ok(())
    }

    /// OPEN ZONE: keeps a zone open until it is closed, finished, reset or full.
    ///
    /// # Errors
    /// When the zone has no write pointer or is lost, or the limits leave no room for it.
    pub fn open(&mut self, zone: ZoneId) -> Result<(), IoError> {
        match self.commanded(zone)? {
            ZoneCondition::Empty | ZoneCondition::Closed => self.take_resources(zone)?,
            ZoneCondition::ImplicitlyOpen => {}
            _ => return Ok(()),
        }
        self.clock += 1;
        self.zones[zone.0 as usize].used = self.clock;
        self.enter(zone, ZoneCondition::ExplicitlyOpen);
        Ok(())
    }

    /// CLOSE ZONE: gives up the resources of an open zone.
    ///
    /// # Errors
    /// When the zone has no write pointer or is lost.
    pub fn close(&mut self, zone: ZoneId) -> Result<(), IoError> {
        if self.commanded(zone)?.is_open() {
            self.close_open(zone);
        }
        Ok(())
    }

    /// RESET WRITE POINTER: empties a zone.
    ///
    /// # Errors
    /// When the zone has no write pointer or is lost.
    pub fn reset(&mut self, zone: ZoneId) -> Result<(), IoError> {
        self.commanded(zone)?;
        self.enter(zone, ZoneCondition::Empty);
        let state = &mut self.zones[zone.0 as usize];
        (state.pointer, state.written) = (0, 0);
        Ok(())
    }

    /// FINISH ZONE: moves the write pointer to the end. What was not written reads as zeroes.
    ///
    /// # Errors
    /// When the zone has no write pointer or is lost, or it is not open and the limits leave no
    /// room for it to be.
    pub fn finish(&mut self, zone: ZoneId) -> Result<(), IoError> {
        let condition = self.commanded(zone)?;
        if matches!(condition, ZoneCondition::Empty | ZoneCondition::Closed) {
            self.take_resources(zone)?;
        }
        self.enter(zone, ZoneCondition::Full);
        self.zones[zone.0 as usize].pointer = self.geometry.extent_of(zone).blocks.0 as u32;
        Ok(())
    }

    /// A zone can no longer be written. What it holds stays readable.
    pub fn set_read_only(&mut self, zone: ZoneId) {
        self.enter(zone, ZoneCondition::ReadOnly);
    }

    /// A write from `offset` on, which had moved the write pointer, has failed: the zone can no
    /// longer be written, and holds what was written before.
    pub fn write_failed(&mut self, zone: ZoneId, offset: u64) {
        let state = &mut self.zones[zone.0 as usize];
        state.written = state.written.min(offset as u32);
        self.enter(zone, ZoneCondition::ReadOnly);
    }

    /// A zone can no longer be read or written.
    pub fn set_offline(&mut self, zone: ZoneId) {
        self.enter(zone, ZoneCondition::Offline);
    }

    /// The condition of a zone that a command is for.
    fn commanded(&self, zone: ZoneId) -> Result<ZoneCondition, IoError> {
        self.check_online(zone)?;
        if self.geometry.is_conventional(zone) {
            return Err(IoError::InvalidField);
        }
        match self.zones[zone.0 as usize].condition {
            ZoneCondition::ReadOnly => Err(IoError::ZoneReadOnly),
            condition => Ok(condition),
        }
    }

    #[inline]
    fn check_online(&self, zone: ZoneId) -> Result<(), IoError> {
        match self.zones[zone.0 as usize].condition {
            ZoneCondition::Offline => Err(IoError::ZoneOffline),
            _ => Ok(()),
        }
    }

    /// Makes room for an empty or closed zone among those that are open. At the limit the zone
    /// that was opened implicitly and is longest unused is closed for it; when all were opened
    /// explicitly there is no room (ZBC-2, 4.5.3.4.2).
    fn take_resources(&mut self, zone: ZoneId) -> Result<(), IoError> {
        let becomes_active = self.zones[zone.0 as usize].condition == ZoneCondition::Empty;
        let active = self.open_zones() + self.closed;
        if becomes_active && self.geometry.active_max.is_some_and(|max| active >= max) {
            return Err(IoError::ZoneResources);
        }
        if self.geometry.open_max.is_some_and(|max| self.open_zones() >= max) {
            let zones = &self.zones;
            let implicit =
                self.open.iter().copied().filter(|open| {
                    zones[open.0 as usize].condition == ZoneCondition::ImplicitlyOpen
                });
            let oldest = implicit.min_by_key(|open| zones[open.0 as usize].used);
            self.close_open(oldest.ok_or(IoError::ZoneResources)?);
            self.closed_for_others += 1;
        }
        Ok(())
    }

    fn close_open(&mut self, zone: ZoneId) {
        let closed = match self.zones[zone.0 as usize].pointer {
            0 => ZoneCondition::Empty,
            _ => ZoneCondition::Closed,
        };
        self.enter(zone, closed);
    }

    /// Changes the condition of a zone and what is counted.
    fn enter(&mut self, zone: ZoneId, condition: ZoneCondition) {
        let before = core::mem::replace(&mut self.zones[zone.0 as usize].condition, condition);
        match (before.is_open(), condition.is_open()) {
            (false, true) => self.open.push(zone),
            (true, false) => self.open.retain(|open| *open != zone),
            _ => {}
        }
        self.closed -= u32::from(before == ZoneCondition::Closed);
        self.closed += u32::from(condition == ZoneCondition::Closed);
    }
}
