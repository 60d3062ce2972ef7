//! What a buffer knows of the zones below it. It alone writes there, so from a report on it knows how
//! far each zone is written.

use crate::extent::Extent;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Lba};
use crate::zone::{ZoneCondition, ZoneGeometry, ZoneId, descriptors};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// The books. Without a report they say of no zone that it has a pointer.
#[derive(Debug, Saved)]
pub(super) struct ZoneBooks {
    #[saved(keep)]
    geometry: Arc<ZoneGeometry>,
    zones: Vec<BookedZone>,
}

#[derive(Clone, Copy, Debug, Default, SavedValue)]
struct BookedZone {
    /// It has a write pointer, and can be reset.
    has_pointer: bool,
    /// All that was written to it was written in sequence. A zone that the drive has cleaned since is
    /// not known to be so again.
    is_sequential: bool,
    /// Blocks from its start to the end of what was written.
    written: u32,
}

impl ZoneBooks {
    /// Books of which nothing is written yet.
    pub fn new(geometry: Arc<ZoneGeometry>) -> ZoneBooks {
        let zones = vec![BookedZone::default(); geometry.zones() as usize];
        ZoneBooks { geometry, zones }
    }

    /// The extent of a request for a report of the zones from one on; none behind the last.
    pub fn report_extent(&self, first: ZoneId) -> Option<Extent> {
        self.geometry.report_extent(first, ZoneId(self.geometry.zones()))
    }

    /// Takes a report of zones. What was written since it was asked for may stand in
    /// it or not.
    pub fn take_report(&mut self, report: &[u8]) {
        for reported in descriptors(report) {
            let extent = reported.extent;
            let number = extent.start.0 / self.geometry.zone_blocks.0;
            let Some(zone) = self.zones.get_mut(number as usize) else {
                return;
            };
            let no_pointer = matches!(
                reported.condition,
                ZoneCondition::NoWritePointer | ZoneCondition::ReadOnly | ZoneCondition::Offline
            );
            let pointer = reported.write_pointer.unwrap_or(extent.end());
            *zone = BookedZone {
                has_pointer: !no_pointer,
                is_sequential: !reported.non_sequential && zone.written == 0,
                written: zone.written.max(pointer.offset_from(extent.start) as u32),
            };
        }
    }

    /// The zone of a block, if it has a write pointer.
    pub fn zone_with_pointer(&self, lba: Lba) -> Option<Extent> {
        let zone = self.geometry.zone_of(lba);
        let has_pointer = self.zones.get(zone.0 as usize).is_some_and(|zone| zone.has_pointer);
        has_pointer.then(|| self.geometry.extent_of(zone))
    }

    /// The first block behind everything that was written to the zone of a block.
    pub fn written_end(&self, lba: Lba) -> Lba {
        let zone = self.geometry.zone_of(lba);
        let written = self.zones[zone.0 as usize].written;
        self.geometry.extent_of(zone).start + BlockCount(u64::from(written))
    }

    /// True when a write that begins at a block goes home, because it continues its zone.
    pub fn continues(&self, lba: Lba) -> bool {
        let zone = self.geometry.zone_of(lba);
        self.zones[zone.0 as usize].is_sequential && self.written_end(lba) == lba
    }

    /// Blocks are being written.
    pub fn write(&mut self, extent: Extent) {
        for (zone, part) in self.parts(extent) {
            let continues = self.continues(part.start);
            let start = self.geometry.extent_of(zone).start;
            let zone = &mut self.zones[zone.0 as usize];
            zone.is_sequential &= continues;
            zone.written = zone.written.max(part.end().offset_from(start) as u32);
        }
    }

    /// Blocks are being made zeroes. That moves a write pointer and makes no zone non-sequential.
    pub fn zero(&mut self, extent: Extent) {
        for (_, part) in self.parts(extent) {
            if self.continues(part.start) {
                self.write(part);
            }
        }
    }

    /// Something was written to a zone elsewhere than at its pointer.
    pub fn disturb(&mut self, start: Lba) {
        let zone = self.geometry.zone_of(start);
        self.zones[zone.0 as usize].is_sequential = false;
    }

    /// A zone was reset, or will be.
    pub fn reset(&mut self, start: Lba) {
        let zone = self.geometry.zone_of(start);
        let zone = &mut self.zones[zone.0 as usize];
        (zone.is_sequential, zone.written) = (true, 0);
    }

    /// The parts of an extent that lie in one zone each.
    fn parts(&self, extent: Extent) -> impl Iterator<Item = (ZoneId, Extent)> + use<> {
        let geometry = Arc::clone(&self.geometry);
        let mut next = extent.start;
        core::iter::from_fn(move || {
            (next < extent.end()).then(|| {
                let zone = geometry.zone_of(next);
                let part = Extent::between(next, extent.end().min(geometry.extent_of(zone).end()));
                next = part.end();
                (zone, part)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::{ZoneDescriptor, ZoneModel, report};

    fn books() -> ZoneBooks {
        books_with(&[])
    }

    /// The books when a report comes that knows nothing of some writes.
    fn books_with(writes: &[Extent]) -> ZoneBooks {
        let geometry = ZoneGeometry {
            model: ZoneModel::HostAware,
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
                1 => ZoneCondition::Closed,
                _ => ZoneCondition::Full,
            },
            non_sequential: false,
            extent: geometry.extent_of(zone),
            write_pointer: (zone.0 == 1).then_some(Lba(130)),
        };
        let told = report(&geometry, ZoneId(0), BlockCount(1), describe);
        let mut books = ZoneBooks::new(Arc::new(geometry));
        assert_eq!(books.zone_with_pointer(Lba(100)), None, "nothing is known yet");
        writes.iter().for_each(|write| books.write(*write));
        books.take_report(&told);
        books
    }

    #[test]
    fn a_report_says_which_zones_have_a_pointer_and_where() {
        let books = books();
        assert_eq!(books.zone_with_pointer(Lba(99)), None, "conventional");
        assert_eq!(books.zone_with_pointer(Lba(199)), Some(Extent::new(100, 100)));
        assert_eq!(books.zone_with_pointer(Lba(200)), Some(Extent::new(200, 50)), "the runt");
        assert_eq!([100, 200].map(|lba| books.written_end(Lba(lba)).0), [130, 250]);
        assert!(books.continues(Lba(130)) && !books.continues(Lba(131)));
        assert!(!books.continues(Lba(249)), "full");
    }

    #[test]
    fn what_was_written_while_the_report_was_on_its_way_counts() {
        let books = books_with(&[Extent::new(120, 5), Extent::new(140, 5)]);
        assert_eq!(books.written_end(Lba(100)), Lba(145));
        assert!(!books.continues(Lba(145)) && !books.continues(Lba(130)));
        assert_eq!(books_with(&[Extent::new(120, 5)]).written_end(Lba(100)), Lba(130));
    }

    #[test]
    fn writes_move_the_pointer_and_out_of_sequence_it_counts_for_nothing() {
        let mut books = books();
        books.write(Extent::new(130, 10));
        assert!(books.continues(Lba(140)));
        books.zero(Extent::new(150, 5));
        assert!(books.continues(Lba(140)), "zeroes elsewhere move nothing");
        books.zero(Extent::new(140, 5));
        assert!(books.continues(Lba(145)));
        books.write(Extent::new(160, 5));
        assert_eq!(books.written_end(Lba(100)), Lba(165));
        assert!(!books.continues(Lba(165)), "not sequential");
        books.reset(Lba(100));
        assert!(books.continues(Lba(100)));
        books.write(Extent::new(100, 110));
        assert_eq!(books.written_end(Lba(100)), Lba(200), "up to its end, and on in the next");
        assert!(!books.continues(Lba(150)));
    }
}
