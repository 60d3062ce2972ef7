//! Zones of a disk's interface, as ZBC-2 defines them: runs of equal length, each conventional or
//! to be written in sequence from its write pointer.
//!
//! A *zone* belongs to the interface; a *band* to a translation that hides the shingles.

use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::{BLOCK_BYTES, BlockCount, Lba};
use alloc::vec;
use alloc::vec::Vec;

/// Bytes of one zone in a report, and of the head of a report (ZBC-2, REPORT ZONES).
pub const DESCRIPTOR_BYTES: usize = 64;

/// Longest report that is asked for at once: 512 KiB, 8,191 zones. Linux asks for what one request of the disk may be
/// long (`sd_zbc_alloc_report_buffer`), which is 512 KiB to a few MiB.
const REPORT_BLOCKS_MAX: u64 = 128;

/// Numbers the zones of a device from its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, SavedValue)]
pub struct ZoneId(pub u32);

crate::words! {
    /// Who must respect the write pointers.
    pub enum ZoneModel {
        /// Writes elsewhere are refused: sequential write required.
        HostManaged = "host-managed",
        /// Writes elsewhere are taken, and cost: sequential write preferred.
        HostAware = "host-aware",
    }
}

/// The zones of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneGeometry {
    /// Who must respect the write pointers.
    pub model: ZoneModel,
    /// Blocks of the device. The last zone, the *runt*, is shorter when they are no whole number
    /// of zones.
    pub blocks: BlockCount,
    /// Blocks of every zone but the runt.
    pub zone_blocks: BlockCount,
    /// Zones at the start of the device without a write pointer.
    pub conventional_zones: u32,
    /// Zones that may be open at once; `None` without limit.
    pub open_max: Option<u32>,
    /// Zones that may be open or closed at once; `None` without limit.
    pub active_max: Option<u32>,
    /// Host-aware: how many zones are best open at once.
    pub optimal_open: Option<u32>,
    /// Host-aware: how many zones are best written out of sequence at once.
    pub optimal_non_sequential: Option<u32>,
}

impl ZoneGeometry {
    /// The zones inside an extent, in addresses that begin at 0; `None` where it cuts a zone.
    pub fn part(&self, extent: Extent) -> Option<ZoneGeometry> {
        let first = extent.start.0 / self.zone_blocks.0;
        let is_whole = extent.start.0.is_multiple_of(self.zone_blocks.0)
            && (extent.end().0.is_multiple_of(self.zone_blocks.0)
                || extent.end().0 == self.blocks.0);
        let mut part = ZoneGeometry { blocks: extent.blocks, ..self.clone() };
        let conventional = u64::from(self.conventional_zones).saturating_sub(first);
        part.conventional_zones = conventional.min(u64::from(part.zones())) as u32;
        is_whole.then_some(part)
    }

    /// Zones in all, the runt included.
    pub fn zones(&self) -> u32 {
        self.blocks.0.div_ceil(self.zone_blocks.0) as u32
    }

    /// The zone that holds a block.
    #[inline]
    pub fn zone_of(&self, lba: Lba) -> ZoneId {
        ZoneId((lba.0 / self.zone_blocks.0) as u32)
    }

    /// The blocks of a zone.
    #[inline]
    pub fn extent_of(&self, zone: ZoneId) -> Extent {
        let start = u64::from(zone.0) * self.zone_blocks.0;
        Extent::new(start, self.zone_blocks.0.min(self.blocks.0 - start))
    }

    /// The extent of a request for a report of the zones from `first` on and before `end`; none where there are none. It is as long
    /// as the buffer for what is reported, which may not be all: a host asks for as much at a time as its requests may be long.
    /// Zones behind `end` may be reported too.
    pub fn report_extent(&self, first: ZoneId, end: ZoneId) -> Option<Extent> {
        let zones = end.0.min(self.zones()).checked_sub(first.0).filter(|zones| *zones > 0)?;
        let bytes = (u64::from(zones) + 1) * DESCRIPTOR_BYTES as u64;
        let start = self.extent_of(first).start;
        let blocks = bytes.div_ceil(BLOCK_BYTES).min(REPORT_BLOCKS_MAX);
        Some(Extent::between(start, start + BlockCount(blocks.min(self.blocks.0 - start.0))))
    }

    /// True for a zone without a write pointer.
    #[inline]
    pub fn is_conventional(&self, zone: ZoneId) -> bool {
        zone.0 < self.conventional_zones
    }
}

/// The state of a zone, with its code in a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
#[repr(u8)]
pub enum ZoneCondition {
    /// A conventional zone.
    NoWritePointer = 0x0,
    /// Nothing is written.
    Empty = 0x1,
    /// Opened by a write.
    ImplicitlyOpen = 0x2,
    /// Opened by a command.
    ExplicitlyOpen = 0x3,
    /// Written in part and not open.
    Closed = 0x4,
    /// Can be read and no longer written.
    ReadOnly = 0xd,
    /// Written to its end, or finished.
    Full = 0xe,
    /// Can be neither read nor written.
    Offline = 0xf,
}

impl ZoneCondition {
    /// True when the zone counts against the limit of open zones.
    pub fn is_open(self) -> bool {
        matches!(self, ZoneCondition::ImplicitlyOpen | ZoneCondition::ExplicitlyOpen)
    }
}

/// What a report says of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneDescriptor {
    /// Its state.
    pub condition: ZoneCondition,
    /// Host-aware: written elsewhere than at its write pointer.
    pub non_sequential: bool,
    /// Its blocks.
    pub extent: Extent,
    /// Where the next write belongs; `None` where a zone has no valid one.
    pub write_pointer: Option<Lba>,
}

impl ZoneDescriptor {
    /// Reads a descriptor; `None` when the bytes are none.
    pub fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Option<ZoneDescriptor> {
        const CONDITIONS: [ZoneCondition; 8] = [
            ZoneCondition::NoWritePointer,
            ZoneCondition::Empty,
            ZoneCondition::ImplicitlyOpen,
            ZoneCondition::ExplicitlyOpen,
            ZoneCondition::Closed,
            ZoneCondition::ReadOnly,
            ZoneCondition::Full,
            ZoneCondition::Offline,
        ];
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(word)
        };
        let is_zone = (1..=3).contains(&(bytes[0] & 0xf));
        let condition = CONDITIONS.into_iter().find(|c| *c as u8 == bytes[1] >> 4);
        Some(ZoneDescriptor {
            condition: condition.filter(|_| is_zone)?,
            non_sequential: bytes[1] & NON_SEQUENTIAL != 0,
            extent: Extent::new(word(16), word(8)),
            write_pointer: Some(Lba(word(24))).filter(|lba| *lba != NO_POINTER),
        })
    }

    fn encode(&self, model: ZoneModel, out: &mut [u8]) {
        out[0] = match (self.condition, model) {
            (ZoneCondition::NoWritePointer, _) => 1,
            (_, ZoneModel::HostManaged) => 2,
            (_, ZoneModel::HostAware) => 3,
        };
        out[1] = (self.condition as u8) << 4;
        if self.non_sequential {
            out[1] |= NON_SEQUENTIAL;
        }
        let pointer = self.write_pointer.unwrap_or(NO_POINTER);
        out[8..16].copy_from_slice(&self.extent.blocks.0.to_be_bytes());
        out[16..24].copy_from_slice(&self.extent.start.0.to_be_bytes());
        out[24..32].copy_from_slice(&pointer.0.to_be_bytes());
    }
}

/// Bit of a descriptor: written elsewhere than at the write pointer.
const NON_SEQUENTIAL: u8 = 1 << 1;
/// The write pointer of a zone that has no valid one.
const NO_POINTER: Lba = Lba(u64::MAX);

/// The part of a report that is about the zones inside `inside`, in addresses that begin at 0. A node
/// with the zones of `geometry` lies there, and `first` of them is asked for.
pub fn part_of_report(
    report: &[u8],
    inside: Extent,
    geometry: &ZoneGeometry,
    first: ZoneId,
) -> Vec<u8> {
    let mut bytes = report.to_vec();
    let list_bytes = (geometry.zones() - first.0) * DESCRIPTOR_BYTES as u32;
    bytes[0..4].copy_from_slice(&list_bytes.to_be_bytes());
    bytes[8..16].copy_from_slice(&(geometry.blocks.0 - 1).to_be_bytes());
    for out in bytes.chunks_exact_mut(DESCRIPTOR_BYTES).skip(1) {
        let known = ZoneDescriptor::decode(out[..].try_into().expect("the bytes of a zone"));
        out.fill(0);
        let Some(zone) = known.filter(|zone| inside.covers(zone.extent)) else {
            continue;
        };
        let extent = Extent::new(zone.extent.start.0 - inside.start.0, zone.extent.blocks.0);
        let write_pointer = zone.write_pointer.map(|lba| Lba(lba.0 - inside.start.0));
        let moved = ZoneDescriptor { extent, write_pointer, ..zone };
        moved.encode(geometry.model, out);
    }
    bytes
}

/// The zones in a report, up to the first that is none.
pub fn descriptors(report: &[u8]) -> impl Iterator<Item = ZoneDescriptor> + '_ {
    let zones = report.chunks_exact(DESCRIPTOR_BYTES).skip(1);
    zones.map_while(|zone| ZoneDescriptor::decode(zone.try_into().ok()?))
}

/// The zone behind those in a report of the zones from `first` on; none when it holds none.
pub fn next_to_report(report: &[u8], first: ZoneId) -> Option<ZoneId> {
    let reported = descriptors(report).count() as u32;
    (reported > 0).then_some(ZoneId(first.0 + reported))
}

/// The report of the zones from `first` on that fits `room`, in the layout of REPORT ZONES
/// (ZBC-2): a head of 64 bytes with the length of the whole list and the last address, then 64
/// bytes for each zone, big-endian, addresses and lengths in blocks of 4 KiB.
pub fn report(
    geometry: &ZoneGeometry,
    first: ZoneId,
    room: BlockCount,
    describe: impl Fn(ZoneId) -> ZoneDescriptor,
) -> Vec<u8> {
    let zones = geometry.zones() - first.0;
    let fits = (room.0 * BLOCK_BYTES) as usize / DESCRIPTOR_BYTES - 1;
    let reported = fits.min(zones as usize);
    let mut bytes = vec![0; (1 + reported) * DESCRIPTOR_BYTES];
    let list_bytes = zones * DESCRIPTOR_BYTES as u32;
    bytes[0..4].copy_from_slice(&list_bytes.to_be_bytes());
    bytes[8..16].copy_from_slice(&(geometry.blocks.0 - 1).to_be_bytes());
    let descriptors = bytes.chunks_exact_mut(DESCRIPTOR_BYTES).skip(1);
    for (zone, out) in (first.0..).zip(descriptors) {
        describe(ZoneId(zone)).encode(geometry.model, out);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20,000 zones of two blocks are asked for in three parts.
    #[test]
    fn many_zones_are_reported_in_parts() {
        let geometry = ZoneGeometry {
            model: ZoneModel::HostAware,
            blocks: BlockCount(40_000),
            zone_blocks: BlockCount(2),
            conventional_zones: 0,
            open_max: None,
            active_max: None,
            optimal_open: None,
            optimal_non_sequential: None,
        };
        let (mut first, mut asked, mut told) = (ZoneId(0), Vec::new(), Vec::new());
        let end = ZoneId(20_000);
        while let Some(extent) = geometry.report_extent(first, end) {
            asked.push(extent);
            let report = report(&geometry, first, extent.blocks, |zone| ZoneDescriptor {
                condition: ZoneCondition::Empty,
                non_sequential: false,
                extent: geometry.extent_of(zone),
                write_pointer: Some(geometry.extent_of(zone).start),
            });
            told.extend(descriptors(&report).map(|zone| zone.extent.start.0 / 2));
            first = next_to_report(&report, first).expect("a zone");
        }
        let rest = 20_000 - 2 * 8_191;
        let last = Extent::new(2 * 2 * 8_191, (rest + 1_u64).div_ceil(64));
        assert_eq!(asked, [Extent::new(0, 128), Extent::new(2 * 8_191, 128), last]);
        assert!(told.into_iter().eq(0..20_000));
        assert_eq!(next_to_report(&[0; 64], ZoneId(7)), None);
        assert_eq!(geometry.report_extent(end, end), None);
        let few = geometry.report_extent(ZoneId(100), ZoneId(163));
        assert_eq!(few, Some(Extent::new(200, 1)), "63 zones and the head");
    }

    #[test]
    fn a_report_has_the_layout_of_the_standard() {
        let geometry = ZoneGeometry {
            model: ZoneModel::HostManaged,
            blocks: BlockCount(250),
            zone_blocks: BlockCount(100),
            conventional_zones: 1,
            open_max: None,
            active_max: None,
            optimal_open: None,
            optimal_non_sequential: None,
        };
        let describe = |zone: ZoneId| ZoneDescriptor {
            condition: match zone.0 {
                0 => ZoneCondition::NoWritePointer,
                _ => ZoneCondition::Closed,
            },
            non_sequential: zone.0 == 2,
            extent: geometry.extent_of(zone),
            write_pointer: (zone.0 > 0).then_some(Lba(u64::from(zone.0) * 100 + 7)),
        };
        let bytes = report(&geometry, ZoneId(0), BlockCount(1), describe);
        assert_eq!(bytes.len(), 4 * 64);
        assert_eq!(bytes[0..4], [0, 0, 0, 3 * 64]);
        assert_eq!(bytes[15], 249, "the last address");
        assert_eq!(bytes[64..66], [1, 0], "conventional, no write pointer");
        assert_eq!(bytes[64 + 24..64 + 32], [0xff; 8]);
        assert_eq!(bytes[128..130], [2, 0x40], "sequential, closed");
        assert_eq!([bytes[128 + 15], bytes[128 + 23], bytes[128 + 31]], [100, 100, 107]);
        assert_eq!(bytes[192 + 1], 0x42, "closed, not sequential");
        assert_eq!(bytes[192 + 15], 50, "the runt");
        for zone in 0..3 {
            let at = 64 * (zone as usize + 1);
            let bytes = bytes[at..at + 64].try_into().unwrap();
            assert_eq!(ZoneDescriptor::decode(bytes), Some(describe(ZoneId(zone))));
        }
        assert_eq!(ZoneDescriptor::decode(&[0; 64]), None);
        let rest = report(&geometry, ZoneId(2), BlockCount(1), describe);
        assert_eq!((rest.len(), rest[3]), (2 * 64, 64));
    }
}
