//! What PORE opens, and who leaves.

use super::*;
use crate::cache::PolicySettings;
use crate::disk::Media;
use crate::map::BandTable;
use crate::units::BlockCount;
use alloc::sync::Arc;
use proptest::prelude::*;

const ZONE: u64 = 4;

fn settings(open_zones: OpenZones, period_blocks: u64) -> PoreSettings {
    PoreSettings {
        zones: ZoneSettings::Equal(ZONE),
        batch: 1,
        period_blocks,
        period_counter: PeriodCounter::WriteMiss,
        popularity_window: PopularityWindow::Period,
        access_floor: 1,
        open_zones,
    }
}

/// Bands of 3, 5, 1, 7, 4, 3, 5... blocks.
fn device() -> Geometry {
    let lengths = [3, 5, 1, 7, 4].iter().cycle().take(100);
    let mut device = Geometry::plain(BlockCount(400), Media::Conventional);
    device.bands = Some(Arc::new(BandTable::new(lengths.map(|length| BlockCount(*length)))));
    device
}

fn with(settings: PoreSettings, capacity_blocks: u64) -> Pore {
    let zones = settings.zones.of("pore", &device(), 1 << 30);
    Pore::new(settings, capacity_blocks, zones.expect("zones"))
}

fn policy(open_zones: OpenZones, period_blocks: u64, capacity_blocks: u64) -> Pore {
    with(settings(open_zones, period_blocks), capacity_blocks)
}

/// A policy whose cache was filled with the given `(zone, dirty blocks, accesses of each)`.
fn divided(open_zones: OpenZones, period_blocks: u64, fill: &[(u64, u64, u64)]) -> Pore {
    let capacity = fill.iter().map(|(_, dirty, _)| dirty).sum();
    let mut pore = policy(open_zones, period_blocks, capacity);
    let mut events = PolicyEvents::default();
    let blocks = fill
        .iter()
        .flat_map(|(zone, dirty, accesses)| (0..*dirty).map(move |b| (*zone, b, *accesses)));
    for (entry, (zone, block, accesses)) in (0..).zip(blocks) {
        pore.on_insert(entry, Lba(zone * ZONE + block), AccessKind::Write, &mut events);
        assert_eq!(pore.divided, u64::from(entry) + 1 == capacity);
        for _ in 1..accesses {
            pore.on_access(entry, AccessKind::Read, &mut events);
        }
    }
    // The last accesses came after the division that the last insertion brought about.
    pore.divide(&mut events);
    pore
}

fn open(pore: &Pore) -> Vec<usize> {
    let zones = 0..pore.zones.len();
    zones.filter(|zone| pore.zones[*zone].open).collect()
}

/// One hot full zone, half-covered lukewarm ones and cold single blocks: what is opened for a
/// period of four blocks shows what each scheme looks for.
#[test]
fn coverage_opens_the_fewest_zones_and_popularity_the_most() {
    // The hot zone comes first, so that all its accesses fall before the division.
    let mut fill = vec![(3, 4, 9), (10, 3, 2), (11, 3, 2)];
    fill.extend((20..26).map(|zone| (zone, 1, 1)));
    let capacity: u64 = fill.iter().map(|(_, dirty, _)| dirty).sum();
    let first_division = |open_zones| {
        let mut pore = policy(open_zones, 4, capacity);
        let mut events = PolicyEvents::default();
        let mut entry = 0;
        for (zone, dirty, accesses) in &fill {
            for block in 0..*dirty {
                let lba = Lba(zone * ZONE + block);
                pore.on_insert(entry, lba, AccessKind::Write, &mut events);
                for _ in 1..*accesses {
                    pore.on_access(entry, AccessKind::Write, &mut events);
                }
                entry += 1;
            }
        }
        assert_eq!(events.amount(Counter::RegionDivisions), 1);
        open(&pore)
    };
    // Coverage: 4, 3, 3, 1...: the hot zone alone is enough.
    assert_eq!(first_division(OpenZones::Cf), [3]);
    // Accesses a block, the floor included: 10, 3, 3, 2...: the six coldest come first.
    assert_eq!(first_division(OpenZones::Pf), [20, 21, 22, 23]);
    // Divided by the dirty blocks: 2.5, 1, 1, 2...
    assert_eq!(first_division(OpenZones::Bl), [10, 11]);
}

#[test]
fn among_equal_zones_the_lower_is_opened() {
    let pore = divided(OpenZones::Bl, 2, &[(7, 2, 1), (5, 2, 1), (6, 2, 1)]);
    assert_eq!(open(&pore), [5]);
}

#[test]
fn fewer_dirty_blocks_than_a_period_open_every_zone_that_has_one() {
    let pore = divided(OpenZones::Cf, 100, &[(1, 2, 1), (9, 1, 1)]);
    assert_eq!(open(&pore), [1, 9]);
}

/// Writes blocks to an empty policy whose cache they fill, and says which zones are opened.
fn opened_by(settings: PoreSettings, lbas: &[u64]) -> Vec<usize> {
    let mut pore = with(settings, lbas.len() as u64);
    let mut events = PolicyEvents::default();
    for (entry, lba) in (0..).zip(lbas) {
        pore.on_insert(entry, Lba(*lba), AccessKind::Write, &mut events);
    }
    open(&pore)
}

/// Bands 0 to 3 begin at 0, 3, 8 and 9; the only block of band 2 covers it whole.
#[test]
fn coverage_of_bands_is_a_share_of_their_length() {
    let lbas = [0, 1, 3, 4, 5, 8, 9, 10, 11, 12];
    let opened = |open_zones, zones| {
        let settings = PoreSettings { zones, ..settings(open_zones, 1) };
        opened_by(settings, &lbas)
    };
    // Covered are 2 of 3, 3 of 5, 1 of 1 and 4 of 7.
    assert_eq!(opened(OpenZones::Cf, ZoneSettings::Bands), [2]);
    assert_eq!(opened(OpenZones::Bl, ZoneSettings::Bands), [2]);
    // Of the zones of 4 blocks, the one at 8 is covered whole.
    assert_eq!(opened(OpenZones::Cf, ZoneSettings::Equal(ZONE)), [2]);
}

/// Images keep these words, so they may not change.
#[test]
fn the_settings_of_a_saved_state_are_those_of_older_images_where_there_are_no_batches() {
    let words = |settings| -> Vec<u64> {
        let words = PolicySettings::Pore(settings).identity();
        words.into_iter().map(|(_, word)| word).collect()
    };
    let plain = settings(OpenZones::Bl, 9);
    assert_eq!(words(plain), [2, ZONE, 9, 0, 0, 1, 2]);
    let zones = ZoneSettings::Bands;
    assert_eq!(words(PoreSettings { zones, ..plain }), [2, 0, 9, 0, 0, 1, 2]);
    let batch = 32;
    assert_eq!(words(PoreSettings { batch, ..plain }), [6, ZONE, 9, 0, 0, 1, 2, 32]);
    let lru_band = |batch| PolicySettings::LruBand { bands: None, batch }.identity();
    assert_eq!(lru_band(None), [("policy number", 1)]);
    let batches = [("policy number", 7), ("destage_batch", 32)];
    assert_eq!(lru_band(Some(32)), batches);
}

#[test]
fn a_setting_out_of_range_is_refused() {
    let refused = |settings: PoreSettings, device: &Geometry| {
        let built = settings.build(8, device);
        built.err().expect("a refusal").message
    };
    let plain = settings(OpenZones::Bl, 9);
    let none = PoreSettings { batch: 0, ..plain };
    assert_eq!(refused(none, &device()), "destage_batch is 0: the policy pore needs 1 or more");
    let bands = PoreSettings { zones: ZoneSettings::Bands, ..plain };
    let conventional = Geometry::plain(BlockCount(400), Media::Conventional);
    assert_eq!(
        refused(bands, &conventional),
        "the policy pore needs bands, and the device below has none: set zone to a size"
    );
}

/// The block that should leave first: of those that are clean or in an open zone, the one used longest ago.
fn first_to_leave(pore: &Pore, order: &[u32]) -> Option<u32> {
    let may_leave = |entry: &&u32| {
        let block = pore.blocks[**entry as usize];
        !block.is_dirty() || pore.zones[block.zone()].open
    };
    order.iter().find(may_leave).copied()
}

/// What a policy writes down, and which blocks are dirty. Entries keep their numbers: the cache is
/// full.
fn saved(pore: &Pore, cached: &[Option<Lba>]) -> (Vec<u8>, Vec<bool>) {
    let numbers: Vec<u32> = (0..cached.len() as u32).collect();
    let mut state = StateWriter::default();
    pore.save(&numbers, &mut state);
    let dirty = pore.blocks.iter().map(|block| block.is_dirty());
    (state.into_bytes(), dirty.collect())
}

/// The victims of a policy that takes back what another has written down before it chose its own.
fn restored_victims(
    pore: &mut Pore,
    cached: &[Option<Lba>],
    (saved, dirty): &(Vec<u8>, Vec<bool>),
) -> Vec<Option<Lba>> {
    let blocks = cached
        .iter()
        .zip(dirty)
        .map(|(lba, dirty)| CachedBlock { lba: lba.expect("a full cache"), dirty: *dirty });
    let blocks: Vec<CachedBlock> = blocks.collect();
    pore.restore(&blocks, &mut StateReader::new(saved)).expect("a sound state");
    let mut victims = Vec::new();
    pore.victims(&mut victims, &mut PolicyEvents::default());
    let lbas = victims.iter().map(|victim| cached[*victim as usize]);
    lbas.collect()
}

proptest! {
    /// The open zones hold a period's worth of dirty blocks, and no dirty block of a forbidden
    /// zone is a victim unless the eviction is counted as forced. The first victim is the block used longest ago that
    /// may leave.
    #[test]
    fn victims_are_clean_or_in_an_open_zone(
        steps in prop::collection::vec((0u64..60, any::<bool>()), 1..400),
        scheme in 0usize..3,
        period in 1u64..12,
        batch in prop_oneof![Just(1u64), 2u64..6],
        zones in prop_oneof![Just(ZoneSettings::Equal(ZONE)), Just(ZoneSettings::Bands)],
    ) {
        let capacity = 12;
        let scheme = [OpenZones::Cf, OpenZones::Pf, OpenZones::Bl][scheme];
        let settings = PoreSettings { zones, batch, ..settings(scheme, period) };
        let mut pore = with(settings, capacity);
        let mut cached: Vec<Option<Lba>> = vec![None; capacity as usize];
        let mut order: Vec<u32> = Vec::new();
        for (lba, write) in steps {
            let lba = Lba(lba);
            let kind = if write { AccessKind::Write } else { AccessKind::Read };
            let mut events = PolicyEvents::default();
            if let Some(entry) = cached.iter().position(|c| *c == Some(lba)) {
                pore.on_access(entry as u32, kind, &mut events);
                order.retain(|other| *other != entry as u32);
                order.push(entry as u32);
            } else {
                if !cached.contains(&None) {
                    let before = open(&pore);
                    let saved = saved(&pore, &cached);
                    let mut victims = Vec::new();
                    let expected = first_to_leave(&pore, &order);
                    pore.victims(&mut victims, &mut events);
                    let expected = expected.or_else(|| first_to_leave(&pore, &order));
                    prop_assert_eq!(victims.first().copied(), expected);
                    prop_assert!(!victims.is_empty() && victims.len() as u64 <= batch);
                    let first = pore.blocks[victims[0] as usize];
                    prop_assert!(first.is_dirty() || victims.len() == 1);
                    let allowed = !first.is_dirty() || before.contains(&first.zone());
                    prop_assert_eq!(allowed, events.amount(Counter::ForcedEvictions) == 0);
                    let mut again = with(settings, capacity);
                    let expected: Vec<Option<Lba>> = victims.iter().map(|v| cached[*v as usize]).collect();
                    prop_assert_eq!(restored_victims(&mut again, &cached, &saved), expected);
                    for victim in victims {
                        let block = pore.blocks[victim as usize];
                        prop_assert_eq!((block.is_dirty(), block.zone()), (first.is_dirty(), first.zone()));
                        pore.on_remove(victim);
                        order.retain(|other| *other != victim);
                        cached[victim as usize] = None;
                    }
                }
                let entry = cached.iter().position(Option::is_none).expect("room");
                cached[entry] = Some(lba);
                pore.on_insert(entry as u32, lba, kind, &mut events);
                order.push(entry as u32);
            }
            if events.amount(Counter::RegionDivisions) > 0 && events.amount(Counter::ForcedEvictions) == 0 {
                let dirty = |zone: &Zone| u64::from(zone.dirty);
                let in_open: u64 = pore.zones.iter().filter(|z| z.open).map(dirty).sum();
                let in_all: u64 = pore.zones.iter().map(dirty).sum();
                prop_assert!(in_open >= period.min(in_all));
            }
        }
    }
}
