//! Host-aware zones: the bands of a translation as the host sees them, with write pointers that it
//! should respect and need not (ZBC-2; Idler, IEEE TC 2020).
//!
//! A write that starts at the write pointer of a sequential zone goes home and moves the pointer.
//! Any other write goes to the log and makes the zone non-sequential: then all later writes go to
//! the log too, until the zone is rewritten with everything the log holds of it.

use super::layout_error::LayoutError;
use super::settings::HostAware;
use crate::error::IoError;
use crate::map::{BandId, BandTable};
use crate::operation::Operation;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Instant, Lba};
use crate::zone::{ZoneCondition, ZoneDescriptor, ZoneGeometry, ZoneId, report};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The zones of a host-aware disk.
#[derive(Debug, Saved)]
pub(super) struct Zones {
    #[saved(keep)]
    settings: HostAware,
    states: Vec<ZoneState>,
    non_sequential: u64,
    /// Zone commands and reports, in the order in which they will be answered.
    due: VecDeque<(Instant, u32)>,
    electronics_free: Instant,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct ZoneState {
    condition: ZoneCondition,
    /// Blocks from the start of the zone to the end of what was written last in it: at home, or in
    /// the log.
    pointer: u32,
    is_sequential: bool,
}

/// Where a write to a zone belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Belongs {
    /// Home, wherever in the zone: it is conventional.
    Anywhere,
    /// Home, at the write pointer.
    AtPointer,
    /// Into the log.
    InLog,
}

/// Checks that the bands of a translation are the zones of its disk.
pub(super) fn check_zones(zones: &ZoneGeometry, bands: &BandTable) -> Result<(), LayoutError> {
    let is_band = |zone| bands.extent_of(BandId(zone)) == zones.extent_of(ZoneId(zone));
    let are_bands = zones.blocks == bands.blocks()
        && zones.zones() == bands.bands()
        && (0..zones.zones()).all(is_band);
    match are_bands && zones.conventional_zones <= zones.zones() {
        true => Ok(()),
        false => Err(LayoutError::ZonesAreNotBands),
    }
}

/// Blocks of a zone that hold data at the start; none of a conventional one, which has no write pointer.
fn filled_blocks(settings: &HostAware, zone: ZoneId) -> u64 {
    match settings.zones.is_conventional(zone) {
        true => 0,
        false => {
            let blocks = settings.zones.extent_of(zone).blocks.0;
            blocks * u64::from(settings.filled_permille) / 1000
        }
    }
}

impl Zones {
    pub fn new(settings: HostAware) -> Zones {
        let geometry = &settings.zones;
        let state = |zone| {
            let blocks = geometry.extent_of(ZoneId(zone)).blocks.0;
            let filled = filled_blocks(&settings, ZoneId(zone));
            ZoneState {
                condition: match filled {
                    _ if geometry.is_conventional(ZoneId(zone)) => ZoneCondition::NoWritePointer,
                    0 => ZoneCondition::Empty,
                    filled if filled == blocks => ZoneCondition::Full,
                    _ => ZoneCondition::Closed,
                },
                pointer: filled as u32,
                is_sequential: true,
            }
        };
        Zones {
            states: (0..geometry.zones()).map(state).collect(),
            settings,
            non_sequential: 0,
            due: VecDeque::new(),
            electronics_free: Instant::ZERO,
        }
    }

    /// Where a write of part of a zone belongs. One that does not belong home makes the zone
    /// non-sequential.
    pub fn place(&mut self, zone: BandId, offset: u64) -> Belongs {
        let takes_home = self.takes_home(zone, offset);
        let state = &mut self.states[zone.0 as usize];
        if takes_home {
            return match state.condition {
                ZoneCondition::NoWritePointer => Belongs::Anywhere,
                _ => Belongs::AtPointer,
            };
        }
        if core::mem::replace(&mut state.is_sequential, false) {
            self.non_sequential += 1;
        }
        Belongs::InLog
    }

    /// True when a write of part of a zone belongs home.
    pub fn takes_home(&self, zone: BandId, offset: u64) -> bool {
        let state = self.states[zone.0 as usize];
        match state.condition {
            ZoneCondition::NoWritePointer => true,
            ZoneCondition::Full => false,
            _ => state.is_sequential && offset == u64::from(state.pointer),
        }
    }

    /// Moves the write pointer behind a write that reaches further.
    pub fn advance(&mut self, zone: BandId, end: u64) {
        let length = self.settings.zones.extent_of(ZoneId(zone.0)).blocks.0;
        let state = &mut self.states[zone.0 as usize];
        if state.condition == ZoneCondition::NoWritePointer {
            return;
        }
        state.pointer = state.pointer.max(end as u32);
        state.condition = match state.condition {
            _ if end == length => ZoneCondition::Full,
            ZoneCondition::Empty | ZoneCondition::Closed => ZoneCondition::ImplicitlyOpen,
            condition => condition,
        };
    }

    /// Blocks from the start of the zone to the end of what was written in it.
    pub fn written_end(&self, zone: BandId) -> u64 {
        u64::from(self.states[zone.0 as usize].pointer)
    }

    /// Everything of a zone is at home.
    pub fn cleaned(&mut self, zone: BandId) {
        let state = &mut self.states[zone.0 as usize];
        if !core::mem::replace(&mut state.is_sequential, true) {
            self.non_sequential -= 1;
        }
    }

    /// How many zones are not sequential.
    pub fn non_sequential(&self) -> u64 {
        self.non_sequential
    }

    /// True when something that is written from an offset on moves the write pointer of a zone.
    pub fn moves_pointer(&self, zone: BandId, offset: u64) -> bool {
        let state = self.states[zone.0 as usize];
        let is_open_ended =
            !matches!(state.condition, ZoneCondition::NoWritePointer | ZoneCondition::Full);
        is_open_ended && state.is_sequential && offset == u64::from(state.pointer)
    }

    /// Obeys a zone command.
    ///
    /// # Errors
    /// When the zone is conventional.
    pub fn obey(&mut self, operation: Operation, zone: BandId) -> Result<(), IoError> {
        if self.settings.zones.is_conventional(ZoneId(zone.0)) {
            return Err(IoError::InvalidField);
        }
        let state = &mut self.states[zone.0 as usize];
        match operation {
            Operation::ZoneOpen if state.condition != ZoneCondition::Full => {
                state.condition = ZoneCondition::ExplicitlyOpen;
            }
            Operation::ZoneClose if state.condition.is_open() => {
                state.condition = match state.pointer {
                    0 => ZoneCondition::Empty,
                    _ => ZoneCondition::Closed,
                };
            }
            Operation::ZoneFinish => state.condition = ZoneCondition::Full,
            Operation::ZoneReset => {
                (state.condition, state.pointer) = (ZoneCondition::Empty, 0);
                self.cleaned(zone);
            }
            _ => {}
        }
        Ok(())
    }

    /// The electronics, which do one command after another, answer a job later; returns when the
    /// first of all answers is due.
    pub fn answer_later(&mut self, job: u32, operation: Operation, now: Instant) -> Instant {
        let time = match operation {
            Operation::ZoneReport => self.settings.report,
            _ => self.settings.command,
        };
        self.electronics_free = self.electronics_free.max(now) + time;
        self.due.push_back((self.electronics_free, job));
        self.due[0].0
    }

    /// The next job whose answer is due by now.
    pub fn next_due(&mut self, now: Instant) -> Option<u32> {
        self.due.front().filter(|(at, _)| *at <= now)?;
        self.due.pop_front().map(|(_, job)| job)
    }

    /// When the next answer is due.
    pub fn due_at(&self) -> Option<Instant> {
        self.due.front().map(|(at, _)| *at)
    }

    /// The report of the zones from the one that holds `start` on, as much as fits.
    pub fn report(&self, start: Lba, blocks: BlockCount) -> Vec<u8> {
        let geometry = &self.settings.zones;
        let first = geometry.zone_of(start);
        report(geometry, first, blocks, |zone| self.describe(zone))
    }

    fn describe(&self, zone: ZoneId) -> ZoneDescriptor {
        let extent = self.settings.zones.extent_of(zone);
        let state = self.states[zone.0 as usize];
        let has_pointer =
            !matches!(state.condition, ZoneCondition::NoWritePointer | ZoneCondition::Full);
        let pointer = extent.start + BlockCount(u64::from(state.pointer));
        ZoneDescriptor {
            condition: state.condition,
            non_sequential: !state.is_sequential,
            extent,
            write_pointer: has_pointer.then_some(pointer),
        }
    }
}
