//! The zones of a drive one by one, as a drive file lists them.

use super::model::{PlatterModel, within};
use super::platters::{Layout, ZoneShape};
use serde::{Deserialize, Serialize};

/// Numbers of a row at least, and at most: the last two may be left out.
const NUMBERS: std::ops::RangeInclusive<usize> = 6..=8;
/// Far beyond any disk, and small enough for the arithmetic of tracks and angles.
const NUMBER_MAX: u64 = 1 << 24;

/// A row of `platters.zone_table`: a zone of equally long tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct ZoneRow {
    /// Outermost cylinder.
    pub first_cylinder: u64,
    /// Innermost cylinder.
    pub last_cylinder: u64,
    /// Sectors on a track.
    pub track_sectors: u64,
    /// Skew at a head switch, in sectors.
    pub head_skew: u64,
    /// Skew at a cylinder switch, in sectors.
    pub cylinder_skew: u64,
    /// Spare sectors, where `spares_at` says.
    pub spares: u64,
    /// By how many sectors the first one of the zone starts late.
    pub first_offset: u64,
    /// Sectors before the first one that can be addressed, spares not counted.
    pub reserved: u64,
}

impl TryFrom<Vec<u64>> for ZoneRow {
    type Error = String;
    fn try_from(numbers: Vec<u64>) -> Result<ZoneRow, String> {
        if !NUMBERS.contains(&numbers.len()) {
            return Err(format!(
                "a row of zone_table has {} numbers; accepted: first cylinder, last cylinder, sectors \
                 a track, skew at a head switch, skew at a cylinder switch, spare sectors, and after \
                 them, where not 0, the offset of the first sector and the sectors reserved before it",
                numbers.len()
            ));
        }
        let number = |index: usize| numbers.get(index).copied().unwrap_or(0);
        Ok(ZoneRow {
            first_cylinder: number(0),
            last_cylinder: number(1),
            track_sectors: number(2),
            head_skew: number(3),
            cylinder_skew: number(4),
            spares: number(5),
            first_offset: number(6),
            reserved: number(7),
        })
    }
}

impl From<ZoneRow> for Vec<u64> {
    fn from(row: ZoneRow) -> Vec<u64> {
        let mut numbers = vec![
            row.first_cylinder,
            row.last_cylinder,
            row.track_sectors,
            row.head_skew,
            row.cylinder_skew,
            row.spares,
            row.first_offset,
            row.reserved,
        ];
        while numbers.len() > *NUMBERS.start() && numbers.last() == Some(&0) {
            numbers.pop();
        }
        numbers
    }
}

/// Where the spare sectors of a zone lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SparesAt {
    /// At the end of the zone, or of each `spares_every` cylinders.
    #[default]
    End,
    /// At their start.
    Start,
    /// At the end of each track, so many on each.
    Track,
}

impl PlatterModel {
    pub(super) fn check_zone_table(&self, table: &[ZoneRow]) -> Result<(), String> {
        if self.layout == Layout::SurfaceBySurface {
            return Err("platters.zone_table needs a layout by cylinders".to_string());
        }
        if table.is_empty() {
            return Err("platters.zone_table must have more than 0 rows".to_string());
        }
        if let Some(every) = self.spares_every {
            within("platters.spares_every", every, NUMBER_MAX)?;
            if self.spares_at == SparesAt::Track {
                return Err(
                    "platters.spares_every has no meaning for spares_at = \"track\"; accepted: one \
                     of the two"
                        .to_string(),
                );
            }
        }
        let mut from = 0;
        for row in table {
            let numbers: Vec<u64> = (*row).into();
            let wrong = |what: &str| Err(format!("platters.zone_table, row {numbers:?}: {what}"));
            if numbers.iter().any(|number| *number > NUMBER_MAX) {
                return wrong(&format!("accepted: numbers up to {NUMBER_MAX}"));
            }
            if row.first_cylinder < from || row.last_cylinder < row.first_cylinder {
                return wrong("cylinders do not ascend");
            }
            from = row.last_cylinder + 1;
            let cylinders = row.last_cylinder - row.first_cylinder + 1;
            let every = self.spares_every.unwrap_or(cylinders);
            if cylinders % every != 0 {
                return wrong("its cylinders are not a multiple of spares_every");
            }
            let left = match self.spares_at {
                SparesAt::Track => {
                    row.track_sectors.saturating_sub(row.spares) * cylinders * self.heads
                }
                SparesAt::End | SparesAt::Start => {
                    let group = every * self.heads * row.track_sectors;
                    group.saturating_sub(row.spares) * (cylinders / every)
                }
            };
            if row.track_sectors == 0 || left <= row.reserved {
                return wrong("no sectors are left for data");
            }
        }
        Ok(())
    }

    /// The zones on a disk `scale` times smaller: every zone has fewer cylinders.
    pub(super) fn listed_zones(&self, scale: u64) -> Vec<ZoneShape> {
        let zone = |row: &ZoneRow| {
            let cylinders = (row.last_cylinder - row.first_cylinder + 1).div_ceil(scale);
            let (cylinders, spares_every, spare_blocks) = match self.spares_every {
                Some(every) => (cylinders.next_multiple_of(every), every, row.spares),
                None if self.spares_at == SparesAt::Track => (cylinders, cylinders, row.spares),
                None => (cylinders, cylinders, row.spares / scale),
            };
            ZoneShape {
                first_cylinder: row.first_cylinder / scale,
                cylinders,
                track_blocks: row.track_sectors,
                head_skew_blocks: row.head_skew,
                cylinder_skew_blocks: row.cylinder_skew,
                spare_blocks,
                spares_every,
                spares_at: self.spares_at,
                first_offset_blocks: row.first_offset,
                reserved_blocks: row.reserved / scale,
            }
        };
        self.zone_table.iter().flatten().map(zone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::platters::{PlatterShape, Platters};
    use super::*;

    fn platters(layout: Layout, zones: &[ZoneShape]) -> Platters {
        let shape = PlatterShape {
            heads: 2,
            zones: 0,
            outer_track_blocks: 0,
            inner_track_blocks: 0,
            layout,
            head_rates: Vec::new(),
            revolution_ns: 1_000_000,
            head_skew_ns: 0,
            track_skew_ns: 0,
        };
        Platters::of_zones(shape, zones)
    }

    fn zone(spares_at: SparesAt, spare_blocks: u64, spares_every: u64) -> ZoneShape {
        ZoneShape {
            first_cylinder: 1,
            cylinders: 2,
            track_blocks: 10,
            head_skew_blocks: 0,
            cylinder_skew_blocks: 0,
            spare_blocks,
            spares_every,
            spares_at,
            first_offset_blocks: 0,
            reserved_blocks: 0,
        }
    }

    /// Cylinder, surface and offset of each block, by hand for each kind of sparing.
    #[test]
    fn spares_are_where_they_are_said_to_be() {
        let kinds = [
            // Three at the end of a cylinder of two tracks of ten.
            (zone(SparesAt::End, 3, 1), [(0, 10), (0, 7), (0, 10), (0, 7)]),
            // The same, once in the zone.
            (zone(SparesAt::End, 3, 2), [(0, 10), (0, 10), (0, 10), (0, 7)]),
            // A whole spare track and two sectors.
            (zone(SparesAt::End, 12, 2), [(0, 10), (0, 10), (0, 8), (0, 0)]),
            // At the start of each cylinder.
            (zone(SparesAt::Start, 3, 1), [(3, 10), (0, 10), (3, 10), (0, 10)]),
            (zone(SparesAt::Start, 12, 2), [(0, 0), (2, 10), (0, 10), (0, 10)]),
            // Two on each track.
            (zone(SparesAt::Track, 2, 2), [(0, 8), (0, 8), (0, 8), (0, 8)]),
        ];
        for (shape, tracks) in kinds {
            for reserved in [0, 1, 9] {
                let shape = ZoneShape { reserved_blocks: reserved, ..shape };
                let platters = platters(Layout::CylinderByCylinder, &[shape]);
                let expected = tracks.iter().enumerate().flat_map(|(track, (from, to))| {
                    let track = track as u64;
                    (*from..*to).map(move |offset| (1 + track / 2, track % 2, offset))
                });
                let expected: Vec<_> = expected.skip(reserved as usize).collect();
                assert_eq!(platters.blocks(), expected.len() as u64, "{shape:?}");
                for (block, expected) in expected.iter().enumerate() {
                    let place = platters.place(block as u64);
                    assert_eq!((place.cylinder, place.surface, place.offset), *expected);
                    let next = platters.place((block as u64 + 1) % platters.blocks());
                    if next.cylinder != place.cylinder || next.surface != place.surface {
                        assert_eq!(place.end, place.offset + 1, "{shape:?} {block}");
                        let step = platters.next_track(&place);
                        assert_eq!(step, next, "{shape:?} {block}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_zone_may_begin_late_and_serpentines_count_from_its_first_cylinder() {
        let mut late = zone(SparesAt::End, 0, 2);
        late.first_offset_blocks = 3;
        let listed = platters(Layout::CylinderByCylinder, &[late]);
        assert_eq!(listed.angle_ns(&listed.place(0), 0), 300_000);
        let surfaces = |layout| {
            let listed = platters(layout, &[zone(SparesAt::End, 0, 2)]);
            [0, 10, 20, 30].map(|block| listed.place(block).surface)
        };
        assert_eq!(surfaces(Layout::CylinderSerpentine), [1, 0, 0, 1]);
        assert_eq!(surfaces(Layout::ZoneSerpentine), [0, 1, 1, 0]);
    }

    #[test]
    fn a_row_has_six_to_eight_numbers() {
        let row = ZoneRow::try_from(vec![0, 9, 100, 1, 2, 3]).unwrap();
        assert_eq!((row.spares, row.first_offset, row.reserved), (3, 0, 0));
        assert_eq!(Vec::from(row), [0, 9, 100, 1, 2, 3]);
        let row = ZoneRow::try_from(vec![0, 9, 100, 1, 2, 3, 0, 5]).unwrap();
        assert_eq!(Vec::from(row), [0, 9, 100, 1, 2, 3, 0, 5]);
        let error = ZoneRow::try_from(vec![0; 9]).unwrap_err();
        assert!(error.contains("has 9 numbers; accepted:"), "{error}");
    }
}
