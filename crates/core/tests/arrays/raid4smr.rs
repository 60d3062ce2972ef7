//! The counts of RAID 4SMR, and that every row sums to zero.

use crate::host::{Deed, Host, Known};
use crate::naive::{Counts, Naive};
use crate::worlds::{TRACK, World, plain, shingled};
use imbrex_core::array::raid4smr::{
    BandSource, FirstWrite, Placement, Raid4Smr, Raid4SmrError, Raid4SmrSettings, SlotOrder,
};
use imbrex_core::buffer::Stamp;
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::Geometry;
use imbrex_core::extent::Extent;
use imbrex_core::rng::Rng;
use imbrex_core::units::{BlockCount, Lba};

/// Bands of two tracks.
pub const BAND: u64 = 2 * TRACK.0;
/// Blocks from the start of a band to that of the next, guards between them.
const STRIDE: u64 = (2 + TRACK.1) * TRACK.0;

pub fn settings(rng: &mut Rng) -> Raid4SmrSettings {
    let placement = [Placement::Append, Placement::Static][rng.below(2) as usize];
    let collect_at = [None, Some(1), Some(3), Some(BAND)][rng.below(4) as usize];
    Raid4SmrSettings {
        homes: 2 + rng.below(3) as usize,
        spares: 0,
        bands: BandSource::OfDisk,
        track_blocks: TRACK.0,
        band_tracks: 2,
        placement,
        first_write: FirstWrite::Rule,
        collect_at,
        slots: [SlotOrder::Lowest, SlotOrder::Fifo][rng.below(2) as usize],
        data_capacity: Some(BlockCount([2, 9, 40][rng.below(3) as usize])),
        offered: None,
    }
}

/// Homes of twelve bands, and room for the data disk and the parity.
pub fn geometries(settings: &Raid4SmrSettings) -> Vec<Geometry> {
    let home = shingled(12 * (2 + TRACK.1));
    let homes = core::iter::repeat_n(home, settings.homes);
    homes.chain([plain(100), plain(100)]).collect()
}

pub fn random_extent(rng: &mut Rng, blocks: u64) -> Extent {
    let length = 1 + rng.below(7);
    let span = if rng.below(2) == 0 { blocks / 6 } else { blocks };
    Extent::new(rng.below(span - length), length)
}

fn counts(world: &World) -> Counts {
    let counts = world.engine.stack.counts(world.array);
    let counter = |counter| counts.counter(counter);
    Counts {
        first_writes: counter(Counter::FirstWrites),
        updates: counter(Counter::Updates),
        unsafe_first_writes: counter(Counter::UnsafeFirstWrites),
        redirected: counter(Counter::Redirected),
        collections: counter(Counter::Collections),
        forced_collections: counter(Counter::ForcedCollections),
        collected_blocks: counter(Counter::CollectedBlocks),
        map_entries: counts.gauge(Gauge::MapEntries),
        slots_peak: counts.gauge(Gauge::SlotsPeak),
    }
}

#[test]
fn counts_are_those_of_blocks_one_by_one_and_every_row_sums_to_zero() {
    let mut collections = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed, 0);
        let settings = settings(&mut rng);
        let geometries = geometries(&settings);
        let mut world = World::raid4smr(&settings, geometries, seed);
        let slots = settings.data_capacity.expect("slots").0;
        let mut naive = Naive::new(settings.clone(), BAND, slots);
        let mut known = Known::default();
        let blocks = world.blocks();
        for batch in 0..12 {
            let mut deeds = Vec::new();
            for _ in 0..1 + rng.below(8) {
                let extent = random_extent(&mut rng, blocks);
                match rng.below(3) {
                    0 => deeds.push(Deed::Read(extent)),
                    _ => {
                        (extent.start.0..extent.end().0).for_each(|block| naive.write(block));
                        deeds.push(Deed::Write(extent));
                    }
                }
            }
            let World { engine, clock, .. } = &mut world;
            let played = Host::play(engine, clock, &mut known, deeds, 1);
            let told = |what: &str| format!("seed {seed}, batch {batch}, {settings:?}: {what}");
            played.unwrap_or_else(|mistake| panic!("{}", told(&mistake)));
            assert_eq!(counts(&world), naive.counts, "{}", told("counts"));
            if let Some(row) = first_uneven_row(&world, &naive) {
                panic!("{}", told(&format!("row {row} does not sum to zero")));
            }
        }
        collections += naive.counts.collections + naive.counts.forced_collections;
    }
    assert!(collections > 1000, "{collections} collections");
}

/// Where a row of a column lies on its disk.
fn address(column: usize, homes: usize, row: u64) -> u64 {
    if column < homes { row / BAND * STRIDE + row % BAND } else { row }
}

fn first_uneven_row(world: &World, naive: &Naive) -> Option<u64> {
    let homes = naive.settings.homes;
    (0..100).find(|row| {
        let mut sum = Stamp::ZERO;
        for column in (0..homes + 2).filter(|column| naive.has(*column, *row)) {
            let medium = world.media[column].borrow();
            let stamp = medium.blocks.get(&address(column, homes, *row)).copied();
            let stamp = stamp.unwrap_or(Stamp::ZERO);
            sum.lba = Lba(sum.lba.0 ^ stamp.lba.0);
            sum.version ^= stamp.version;
        }
        sum != Stamp::ZERO
    })
}

#[test]
fn a_single_block_is_appended_redirected_and_collected_as_worked_by_hand() {
    // Two homes, bands of 8: a band row has 16 places. A row is collected at its third block on the data disk.
    let settings = Raid4SmrSettings {
        homes: 2,
        placement: Placement::Append,
        collect_at: Some(3),
        data_capacity: Some(BlockCount(9)),
        ..settings(&mut Rng::new(0, 0))
    };
    let mut world = World::raid4smr(&settings, geometries(&settings), 1);
    let write = |block| Deed::Write(Extent::new(block, 1));
    let deeds = [70, 3, 70, 70, 3, 9, 9].map(write).into_iter().collect();
    let mut known = Known::default();
    let World { engine, clock, .. } = &mut world;
    Host::play(engine, clock, &mut known, deeds, 1).expect("no mistake");
    let expected = Counts {
        first_writes: 3,
        updates: 4,
        redirected: 4,
        collections: 1,
        collected_blocks: 3,
        slots_peak: 3,
        ..Counts::default()
    };
    assert_eq!(counts(&world), expected);
    // The three blocks are at home again, in band row 0, which was spare.
    let home_0 = world.media[0].borrow();
    assert_eq!(home_0.blocks[&0].lba, Lba(70));
    assert_eq!(home_0.blocks[&1].lba, Lba(9));
    assert_eq!(world.media[1].borrow().blocks[&0].lba, Lba(3));
}

#[test]
fn settings_that_cannot_be_are_refused_with_what_would_be_accepted() {
    let base = Raid4SmrSettings { data_capacity: None, ..settings(&mut Rng::new(1, 0)) };
    let refusal = |change: &dyn Fn(&mut Raid4SmrSettings), geometries: Vec<Geometry>| {
        let mut settings = Raid4SmrSettings { homes: 2, ..base.clone() };
        change(&mut settings);
        let below: Vec<&Geometry> = geometries.iter().collect();
        Raid4Smr::new(settings, None, &below).err().map(|error: Raid4SmrError| error.to_string())
    };
    let good = || vec![shingled(48), shingled(48), plain(100), plain(100)];
    assert_eq!(refusal(&|_| {}, good()), None);
    let words =
        |change: &dyn Fn(&mut Raid4SmrSettings), below| refusal(change, below).expect("a refusal");
    let few = words(&|it| it.homes = 1, good()[1..].to_vec());
    assert_eq!(few, "homes: 1 given; accepted: 2 to 62 nodes");
    for collect_at in [0, 2 * BAND] {
        let never = words(&|it| it.collect_at = Some(collect_at), good());
        assert!(never.ends_with("accepted: 1 to 15, \"band\" or \"never\""), "{never}");
    }
    let slots = words(&|it| it.data_capacity = Some(BlockCount(101)), good());
    assert!(slots.contains("accepted: 4096 B to 409600 B"), "{slots}");
    let short = vec![shingled(3), shingled(48), plain(100), plain(100)];
    assert!(words(&|_| {}, short).starts_with("home 0 has 49152 B; accepted: 65536 B or more"));
    let short = vec![shingled(48), shingled(48), plain(100), plain(15)];
    assert!(words(&|_| {}, short).starts_with("the parity disk has 61440 B"));
    let with_spare = |spare| vec![shingled(48), shingled(48), plain(100), plain(100), spare];
    let overlaps = words(&|it| it.spares = 1, with_spare(shingled(300)));
    assert!(overlaps.starts_with("the tracks of spare 0 overlap"), "{overlaps}");
    let short = words(&|it| it.spares = 1, with_spare(plain(120)));
    assert!(short.starts_with("spare 0 has 491520 B; accepted: 753664 B"), "{short}");
    let free = |it: &mut Raid4SmrSettings| {
        (it.first_write, it.placement) = (FirstWrite::Free, Placement::Append);
    };
    assert!(words(&free, good()).contains("accepted: with placement = \"static\""));
    let offered = words(&|it| it.offered = Some(BlockCount(177)), good());
    assert!(offered.contains("accepted: up to 720896 B"), "{offered}");
}
