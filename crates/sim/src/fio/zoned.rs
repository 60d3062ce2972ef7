//! `zonemode=zbd`: requests are put where a zoned device takes them, by the rules of fio 3.33.
//!
//! A job draws its requests as ever. A write to a zone with a write pointer then goes to the pointer,
//! and a full zone is reset before; a read stays within what was written. A zone belongs to one job
//! while requests of it are in flight there, so that writes reach it in the order of its pointer.

use super::job::{Access, Direction, Job, JobError, ZonedAccess};
use super::offsets::Place;
use imbrex_core::extent::Extent;
use imbrex_core::units::{BLOCK_BYTES, Lba};
use imbrex_core::zone::{ZoneGeometry, ZoneId, ZoneModel};
use std::ops::Range;
use std::sync::Arc;

/// Zones of the device as the jobs know them: from what they wrote, beginning with none of it.
pub(super) struct Zones {
    geometry: Arc<ZoneGeometry>,
    zones: Vec<Zone>,
    /// The zones that are written, in the order in which that began.
    open: Vec<u32>,
    /// Bytes in front of the write pointers.
    written_bytes: u64,
    /// Writes until the next reset that `zone_reset_frequency` asks for.
    until_reset: Option<u64>,
}

#[derive(Clone, Copy)]
struct Zone {
    /// First byte that is not written; the end of a conventional zone.
    pointer: u64,
    /// The clone whose requests are in flight, when there are any.
    owner: u32,
    in_flight: u32,
    is_open: bool,
    /// Is reset before it is written again.
    reset_due: bool,
}

/// A clone of a job among the zones of its region.
pub(super) struct Zoned {
    clone: u32,
    access: ZonedAccess,
    is_random: bool,
    region: Range<u64>,
    zones: Range<u32>,
    /// The shortest request, by direction.
    shortest: [u64; 3],
}

/// A request that is drawn and not issued yet.
#[derive(Clone, Copy)]
pub(super) struct Drawn {
    pub direction: Direction,
    pub place: Place,
    /// Was counted towards the next periodic reset.
    counted: bool,
}

impl Drawn {
    pub fn new(direction: Direction, place: Place) -> Drawn {
        Drawn { direction, place, counted: false }
    }
}

/// What may be done with a drawn request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    /// Issue it there; when it is in a zone with a write pointer, tell when it is done.
    Go(Place, Option<u32>),
    /// Reset the zone, tell when that is done, and ask again.
    Reset(u32),
    /// Ask again when something was answered.
    Wait,
    /// No zone of the region has anything to read, or room to write.
    Over,
}

impl Zones {
    pub fn new(geometry: &Arc<ZoneGeometry>) -> Zones {
        let mut zones = Zones {
            geometry: Arc::clone(geometry),
            zones: Vec::new(),
            open: Vec::new(),
            written_bytes: 0,
            until_reset: None,
        };
        zones.zones = (0..geometry.zones())
            .map(|zone| Zone {
                pointer: match geometry.is_conventional(ZoneId(zone)) {
                    true => zones.bytes_of(zone).end,
                    false => zones.bytes_of(zone).start,
                },
                owner: 0,
                in_flight: 0,
                is_open: false,
                reset_due: false,
            })
            .collect();
        zones
    }

    fn bytes_of(&self, zone: u32) -> Range<u64> {
        let extent = self.geometry.extent_of(ZoneId(zone));
        extent.start.0 * BLOCK_BYTES..extent.end().0 * BLOCK_BYTES
    }

    /// The blocks of a zone.
    pub fn extent_of(&self, zone: u32) -> Extent {
        self.geometry.extent_of(ZoneId(zone))
    }

    fn zone_of(&self, byte: u64) -> u32 {
        self.geometry.zone_of(Lba(byte / BLOCK_BYTES)).0
    }

    fn has_pointer(&self, zone: u32) -> bool {
        !self.geometry.is_conventional(ZoneId(zone))
    }

    fn written(&self, zone: u32) -> u64 {
        self.zones[zone as usize].pointer - self.bytes_of(zone).start
    }

    fn set_pointer(&mut self, zone: u32, pointer: u64) {
        let before = std::mem::replace(&mut self.zones[zone as usize].pointer, pointer);
        self.written_bytes = self.written_bytes + pointer - before;
    }

    /// Takes note of a write of a job that does not look at zones: it moves the pointer that it starts
    /// at, and on a host-aware device any that it goes past.
    pub fn follow(&mut self, extent: Extent) {
        let mut next = extent.start.0 * BLOCK_BYTES;
        let end = extent.end().0 * BLOCK_BYTES;
        while next < end {
            let zone = self.zone_of(next);
            let part = end.min(self.bytes_of(zone).end);
            let pointer = self.zones[zone as usize].pointer;
            let moves = next == pointer || self.geometry.model == ZoneModel::HostAware;
            if self.has_pointer(zone) && moves {
                self.set_pointer(zone, pointer.max(part));
            }
            next = part;
        }
    }

    /// The region in whole zones, when it has any with a write pointer: its start rounded up and its
    /// end down. Returns its start and length, which may be nothing.
    pub fn whole_zones(&self, start: u64, length: u64) -> (u64, u64) {
        let end = start + length;
        let (first, last) = (self.zone_of(start), self.zone_of(end - 1));
        if !(first..=last).any(|zone| self.has_pointer(zone)) {
            return (start, length);
        }
        let start = match self.bytes_of(first) {
            zone if zone.start == start => start,
            zone => zone.end,
        };
        let end = match self.bytes_of(last) {
            zone if zone.end == end => end,
            zone => zone.start,
        };
        (start, end.saturating_sub(start))
    }

    /// What a job may do among the zones, in the region of a clone.
    pub fn of_clone(
        &self,
        job: &Job,
        access: ZonedAccess,
        clone: u32,
        region: Range<u64>,
    ) -> Zoned {
        Zoned {
            clone,
            access,
            is_random: matches!(job.access, Access::Random { .. }),
            zones: self.zone_of(region.start)..self.zone_of(region.end - 1) + 1,
            region,
            shortest: Direction::ALL.map(|direction| job.block_sizes[direction as usize].min()),
        }
    }

    /// True when jobs have left something to read, or conventional zones hold it from the start.
    pub fn has_data(&self, clone: &Zoned) -> bool {
        clone.access.read_beyond_pointer
            || self.written_bytes > 0
            || !self.has_pointer(clone.zones.start)
    }

    /// What may be done with a request of a clone that has `in_flight` others in flight.
    pub fn admit(&mut self, clone: &Zoned, drawn: &mut Drawn, in_flight: u32) -> Admission {
        let zone = self.zone_of(drawn.place.offset);
        match drawn.direction {
            Direction::Trim => self.admit_trim(clone, drawn.place, zone),
            _ if !self.has_pointer(zone) => Admission::Go(self.within_kind(clone, drawn), None),
            Direction::Read if clone.access.read_beyond_pointer => Admission::Go(drawn.place, None),
            Direction::Read => self.admit_read(clone, drawn.place, zone),
            Direction::Write => self.admit_write(clone, drawn, zone, in_flight),
        }
    }

    /// A request in a conventional zone, cut where the zones with a write pointer begin.
    fn within_kind(&self, clone: &Zoned, drawn: &Drawn) -> Place {
        let Place { offset, bytes } = drawn.place;
        let conventional = u64::from(self.geometry.conventional_zones);
        let end = conventional * self.zone_bytes();
        let shortest = clone.shortest[drawn.direction as usize];
        let room = end - offset;
        let bytes = match room / shortest * shortest {
            _ if bytes <= room => bytes,
            0 => room,
            whole => whole,
        };
        Place { offset, bytes }
    }

    fn admit_read(&mut self, clone: &Zoned, place: Place, drawn: u32) -> Admission {
        let shortest = clone.shortest[Direction::Read as usize];
        let Place { mut offset, bytes } = place;
        let is_past = !clone.is_random && offset + shortest > self.zones[drawn as usize].pointer;
        let mut zone = drawn;
        if self.written(drawn) < shortest || is_past {
            let Some(other) = self.next_written(clone, drawn, shortest) else {
                return Admission::Over;
            };
            zone = other;
            if !clone.is_random {
                offset = self.bytes_of(zone).start;
            }
        }
        if self.is_anothers(zone, clone) {
            return Admission::Wait;
        }
        let (start, written) = (self.bytes_of(zone).start, self.written(zone));
        if clone.is_random {
            let choice = written.saturating_sub(bytes).max(1);
            let within = (offset - self.bytes_of(drawn).start) % choice;
            offset = start + within / shortest * shortest;
        }
        let bytes = bytes.min(start + written - offset) / shortest * shortest;
        self.go(zone, clone, Place { offset, bytes })
    }

    /// The zone nearest to `zone` that holds as much as the shortest request; for sequential requests
    /// the next one, the first following the last.
    fn next_written(&self, clone: &Zoned, zone: u32, shortest: u64) -> Option<u32> {
        let Range { start, end } = clone.zones;
        let holds = |zone: &u32| self.written(*zone) >= shortest;
        if !clone.is_random {
            return (zone + 1..end).chain(start..=zone).find(holds);
        }
        let farthest = (end - zone).max(zone + 1 - start);
        (1..farthest)
            .flat_map(|distance| [zone.checked_add(distance), zone.checked_sub(distance)])
            .flatten()
            .filter(|zone| clone.zones.contains(zone))
            .find(holds)
    }

    fn admit_trim(&mut self, clone: &Zoned, place: Place, drawn: u32) -> Admission {
        if !self.has_pointer(drawn) {
            return Admission::Go(place, None);
        }
        let mut zone = drawn;
        if clone.is_random && self.written(drawn) == 0 {
            let Some(other) = self.next_written(clone, drawn, 1) else {
                return Admission::Over;
            };
            zone = other;
        }
        if self.is_anothers(zone, clone) {
            return Admission::Wait;
        }
        let whole = self.bytes_of(zone);
        if self.has_pointer(zone) {
            self.set_pointer(zone, whole.start);
        }
        let place = Place { offset: whole.start, bytes: whole.end - whole.start };
        self.go(zone, clone, place)
    }

    fn admit_write(
        &mut self,
        clone: &Zoned,
        drawn: &mut Drawn,
        zone: u32,
        in_flight: u32,
    ) -> Admission {
        if self.is_anothers(zone, clone) {
            return Admission::Wait;
        }
        let zone = match self.open(clone, zone) {
            true => zone,
            false => match self.open_zone_for(clone, drawn.place) {
                Some(zone) => zone,
                None => return Admission::Over,
            },
        };
        // Another zone than the one that was asked for before.
        if self.is_anothers(zone, clone) {
            return Admission::Wait;
        }
        let shortest = clone.shortest[Direction::Write as usize];
        if !drawn.counted {
            drawn.counted = true;
            self.zones[zone as usize].reset_due |= self.periodic_reset(clone);
        }
        let Range { start, end } = self.bytes_of(zone);
        let pointer = self.zones[zone as usize].pointer;
        if self.zones[zone as usize].reset_due || pointer + shortest > end {
            // What is in flight is answered first, as a host waits before it resets.
            if in_flight > 0 {
                return Admission::Wait;
            }
            self.zones[zone as usize].reset_due = false;
            self.set_pointer(zone, start);
            self.take(zone, clone);
            return Admission::Reset(zone);
        }
        let bytes = drawn.place.bytes.min(end - pointer) / shortest * shortest;
        self.set_pointer(zone, pointer + bytes);
        let offset = pointer;
        self.go(zone, clone, Place { offset, bytes })
    }

    /// Counts a write towards the next periodic reset; true when it is due.
    fn periodic_reset(&mut self, clone: &Zoned) -> bool {
        let ZonedAccess { reset_threshold, reset_frequency, .. } = clone.access;
        let region = (clone.region.end - clone.region.start) as f64;
        if reset_frequency == 0.0 || (self.written_bytes as f64) < region * reset_threshold {
            return false;
        }
        let every = (1.0 / reset_frequency) as u64;
        let left = self.until_reset.unwrap_or(every) - 1;
        self.until_reset = (left > 0).then_some(left);
        left == 0
    }

    /// Opens a zone for writing, unless too many are. A zone that what is in flight will fill counts as
    /// full.
    fn open(&mut self, clone: &Zoned, zone: u32) -> bool {
        let Some(limit) = clone.open_max(&self.geometry) else {
            return true;
        };
        let state = &mut self.zones[zone as usize];
        if state.is_open {
            return state.in_flight == 0 || state.pointer < self.bytes_of(zone).end;
        }
        if self.open.len() >= limit as usize {
            return false;
        }
        state.is_open = true;
        self.open.push(zone);
        true
    }

    /// Of the zones that are open, the one in the place among them that the request has in the region,
    /// or the next one that the clone may write.
    fn open_zone_for(&self, clone: &Zoned, place: Place) -> Option<u32> {
        let Range { start, end } = clone.region;
        let count = self.open.len();
        let share = u128::from(place.offset - start) * count as u128 / u128::from(end - start);
        let from = share as usize;
        let mut candidates = (from..count).chain(0..from).map(|index| self.open[index]);
        candidates.find(|zone| clone.zones.contains(zone))
    }

    fn is_anothers(&self, zone: u32, clone: &Zoned) -> bool {
        let zone = self.zones[zone as usize];
        zone.in_flight > 0 && zone.owner != clone.clone
    }

    fn take(&mut self, zone: u32, clone: &Zoned) {
        let zone = &mut self.zones[zone as usize];
        zone.owner = clone.clone;
        zone.in_flight += 1;
    }

    fn go(&mut self, zone: u32, clone: &Zoned, place: Place) -> Admission {
        if !self.has_pointer(zone) {
            return Admission::Go(place, None);
        }
        self.take(zone, clone);
        Admission::Go(place, Some(zone))
    }

    /// A request or a reset in a zone is answered. A zone that is full is no longer open.
    pub fn done(&mut self, zone: u32) {
        let end = self.bytes_of(zone).end;
        let state = &mut self.zones[zone as usize];
        state.in_flight -= 1;
        if state.is_open && state.in_flight == 0 && state.pointer == end {
            state.is_open = false;
            self.open.retain(|open| *open != zone);
        }
    }

    /// Where a sequential job goes on behind a request: past a zone that it is done with it leaves
    /// `zoneskip` bytes out.
    pub fn next_of(&self, clone: &Zoned, direction: Direction, place: Place) -> u64 {
        let next = place.offset + place.bytes;
        let zone = self.zone_of(place.offset);
        let end = self.bytes_of(zone).end;
        let is_read_up = direction == Direction::Read
            && !clone.access.read_beyond_pointer
            && next >= self.zones[zone as usize].pointer;
        match clone.access.skip_bytes {
            skip if skip > 0 && !clone.is_random && (next >= end || is_read_up) => end + skip,
            _ => next,
        }
    }
}

impl Zoned {
    /// Zones that jobs may write at once.
    fn open_max(&self, geometry: &ZoneGeometry) -> Option<u32> {
        self.access.open_max.or(geometry.open_max)
    }
}

/// Checks jobs against the zones of the device they are to run on.
///
/// # Errors
/// Names the option, its value and what is accepted.
pub(super) fn check(
    jobs: &[Job],
    zones: Option<&Zones>,
    device_bytes: u64,
) -> Result<(), JobError> {
    let zoned = || jobs.iter().filter_map(|job| Some((job, job.zones?)));
    let Some((job, first)) = zoned().next() else {
        return Ok(());
    };
    let Some(zones) = zones else {
        let accepted = "none or strided, because this drive has no zones";
        return job.wrong("zonemode", "zbd", accepted);
    };
    for (job, access) in zoned() {
        zones.check_access(job, &access)?;
        if access.open_max != first.open_max {
            let accepted = format!(
                "the same for all jobs ({} before), because they write the zones together",
                first.open_max.unwrap_or(0)
            );
            return job.wrong("max_open_zones", access.open_max.unwrap_or(0), accepted);
        }
    }
    for (job, _) in zoned() {
        zones.check_lengths(job)?;
        zones.check_regions(job, device_bytes)?;
    }
    Ok(())
}

impl Zones {
    fn zone_bytes(&self) -> u64 {
        self.geometry.zone_blocks.bytes()
    }

    /// What a job says of the zones is true of this device.
    fn check_access(&self, job: &Job, access: &ZonedAccess) -> Result<(), JobError> {
        let zone_bytes = self.zone_bytes();
        if let Some(bytes) = access.zone_bytes.filter(|bytes| *bytes != zone_bytes) {
            let accepted = format!("{zone_bytes}, the size of the zones of this drive, or none");
            return job.wrong("zonesize", bytes, accepted);
        }
        if !access.skip_bytes.is_multiple_of(zone_bytes) {
            let accepted = format!("a multiple of the size of the zones, {zone_bytes}");
            return job.wrong("zoneskip", access.skip_bytes, accepted);
        }
        if let (Some(open), Some(limit)) = (access.open_max, self.geometry.open_max)
            && open > limit
        {
            let accepted = format!("0 to {limit}, as many as this drive can have open");
            return job.wrong("max_open_zones", open, accepted);
        }
        Ok(())
    }

    /// A request is at most a zone, and a trim all of one.
    fn check_lengths(&self, job: &Job) -> Result<(), JobError> {
        let zone_bytes = self.zone_bytes();
        for direction in Direction::ALL.into_iter().filter(|d| job.mix.has(*d)) {
            let sizes = &job.block_sizes[direction as usize];
            let whole_zones = sizes.min() == zone_bytes && sizes.max() == zone_bytes;
            if direction == Direction::Trim && !whole_zones {
                let accepted = format!("{zone_bytes}, because a trim resets a zone");
                return job.wrong("bs", sizes.max(), accepted);
            }
            if sizes.max() > zone_bytes {
                let accepted = format!("at most the size of the zones, {zone_bytes}");
                return job.wrong("bs", sizes.max(), accepted);
            }
        }
        Ok(())
    }

    /// What is left of the region of each clone, in whole zones, has room for a request.
    fn check_regions(&self, job: &Job, device_bytes: u64) -> Result<(), JobError> {
        for clone in 0..job.numjobs {
            let (start, length) = job.region(clone, device_bytes).unwrap_or((0, 1));
            let (_, whole) = self.whole_zones(start, length);
            if whole < job.smallest_block() {
                let value = format!("{length} at offset {start}");
                let accepted = format!("at least one whole zone of {} bytes", self.zone_bytes());
                return job.wrong("size", value, accepted);
            }
        }
        Ok(())
    }
}
