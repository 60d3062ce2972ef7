//! RAID 4SMR over homes whose tracks overlap.

use super::super::workload;
use super::{BufferBound, Kind, REQUESTS, shingled_disk};
use imbrex_core::array::raid4smr::{
    BandSource, FirstWrite, Placement, Raid4Smr, Raid4SmrSettings, SlotOrder,
};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::units::BlockCount;

/// Homes.
const HOMES: usize = 3;
/// Blocks of a band: two tracks, of which the second is not full.
const BAND: (u64, u64) = (3, 2);

/// An array of three homes, with bands on their tracks and so many slots. It remembers nothing over a start.
pub fn raid4smr(placement: Placement, collect_at: Option<u64>, slots: u64) -> Kind {
    let plain = Geometry::plain(BlockCount(150), Media::Conventional);
    let home = shingled_disk(BlockCount::ZERO);
    let disks = vec![home.clone(), home.clone(), home, plain.clone(), plain];
    let settings = Raid4SmrSettings {
        homes: HOMES,
        spares: 0,
        bands: BandSource::OfDisk,
        track_blocks: BAND.0,
        band_tracks: BAND.1,
        placement,
        first_write: FirstWrite::Rule,
        collect_at,
        slots: SlotOrder::Lowest,
        data_capacity: Some(BlockCount(slots)),
        offered: Some(BlockCount(100)),
    };
    let band = BAND.0 * BAND.1;
    // A request may be one part for each of its blocks.
    let of_requests = REQUESTS * workload::LONGEST * 2 * (HOMES as u64 + 2);
    let buffers = BufferBound {
        blocks: 2 * of_requests + 16 * band,
        because: "what each request changes, and what it replaces, of every member; of a collection the band \
                  of a home, the sum of all, and the parity before and after",
    };
    Kind::new(disks, false, buffers, move |below| {
        let below: Vec<_> = below.iter().collect();
        Raid4Smr::new(settings.clone(), &below).expect("three homes")
    })
}
