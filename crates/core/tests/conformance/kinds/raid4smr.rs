//! RAID 4SMR over homes whose tracks overlap.

use super::super::workload;
use super::{BufferBound, Kind, REQUESTS, shingled_disk};
use imbrex_core::array::raid4smr::{
    BandSource, FirstWrite, HomeBands, Placement, Raid4Smr, Raid4SmrKeeping, Raid4SmrLayout,
    Raid4SmrSettings, SlotOrder,
};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::units::{BlockCount, Duration};

/// Homes.
const HOMES: usize = 3;
/// Blocks of a band: two tracks, of which the second is not full.
const BAND: (u64, u64) = (3, 2);

/// An array of three homes, with bands on their tracks and so many slots. It remembers nothing over a start.
pub fn raid4smr(placement: Placement, collect_at: Option<u64>, slots: u64) -> Kind {
    kind((placement, collect_at, slots), None)
}

/// The same with a journal.
pub fn durable_raid4smr(placement: Placement, collect_at: Option<u64>, slots: u64) -> Kind {
    let durability = DurabilitySettings { ring_blocks: 200, unflushed_blocks_max: 64 };
    kind((placement, collect_at, slots), Some(durability))
}

fn kind(
    (placement, collect_at, slots): (Placement, Option<u64>, u64),
    durability: Option<DurabilitySettings>,
) -> Kind {
    let home = shingled_disk(BlockCount::ZERO);
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
    let bands = HomeBands::new(&settings, &[&home, &home, &home]).expect("bands");
    let keeping = durability.map(|durability| {
        let layout = Raid4SmrLayout::new(&durability, HOMES, &bands, slots);
        Raid4SmrKeeping {
            durability,
            layout,
            memory_bytes: 1 << 12,
            lost_after: Duration::from_ms(60_000),
        }
    });
    let journal_blocks = keeping.map_or(0, |keeping| keeping.layout.first_block());
    let checked_from = keeping.map(|keeping| {
        let first = (keeping.layout.tables().start.0, keeping.layout.first_block());
        [(0, 0); HOMES].into_iter().chain([first, first]).collect()
    });
    let plain = Geometry::plain(BlockCount(150 + journal_blocks), Media::Conventional);
    let disks = vec![home.clone(), home.clone(), home, plain.clone(), plain];
    let band = BAND.0 * BAND.1;
    // A request may be one part for each of its blocks.
    let of_requests = REQUESTS * workload::LONGEST * 2 * (HOMES as u64 + 2);
    let buffers = BufferBound {
        blocks: 2 * of_requests + 16 * band,
        because: "what each request changes, and what it replaces, of every member; of a collection the band \
                  of a home, the sum of all, and the parity before and after",
    };
    let lengths = disks.iter().map(|disk| disk.blocks.0).collect();
    let kind = Kind::new(disks, keeping.is_some(), buffers, move |below| {
        let below: Vec<_> = below.iter().collect();
        Raid4Smr::new(settings.clone(), keeping, &below).expect("three homes")
    });
    Kind { whole_blocks: lengths, checked_from, ..kind }
}
