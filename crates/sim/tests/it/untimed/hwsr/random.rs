//! All options at random, on small devices.

use super::equal::Case;
use super::*;
use imbrex_core::rng::Rng;
use imbrex_traces::{TraceOperation, TraceRecord};

/// Combinations of an everyday run.
const CASES: u64 = 1500;
/// Those of a long one.
const CASES_LONG: u64 = 60_000;

fn one_of<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

fn geometry(rng: &mut Rng) -> Geometry {
    Geometry {
        block_pages: one_of(rng, &[1, 2, 4, 16, 16, 64, 256]),
        segment_blocks: 1 + rng.below(8),
        region_segments: 2 + rng.below(7),
    }
}

fn buffer(rng: &mut Rng) -> BufferOptions {
    BufferOptions {
        capacity_blocks: one_of(rng, &[0, 0, 1, 2, 3, 5, 8, 12, 20]),
        policy: one_of(
            rng,
            &[Policy::Lwa, Policy::Lwa, Policy::LruBlock, Policy::LruSegment, Policy::Most],
        ),
        window: one_of(rng, &[0.05, 0.25, 0.5, 0.75, 1.0]),
        scope: one_of(rng, &[Scope::Window, Scope::WholeBuffer]),
        partial_read: one_of(rng, &[PartialRead::Memory, PartialRead::Flash]),
    }
}

fn cache(rng: &mut Rng) -> FlashOptions {
    FlashOptions {
        capacity_blocks: one_of(rng, &[0, 1, 2, 4, 9, 16, 40]),
        on_write: one_of(rng, &[OnWrite::Invalidate, OnWrite::Keep, OnWrite::Update]),
        fill_from_rewrite: rng.below(2) == 1,
    }
}

fn s_block(rng: &mut Rng, geometry: Geometry) -> HomeOptions {
    let ring = one_of(rng, &[None, Some(0), Some(1), Some(3), Some(10)]);
    // A ring notes in one word what it has of a block.
    let may_have_ring = geometry.block_pages <= 64;
    HomeOptions::SBlock(SBlockOptions {
        spare: one_of(rng, &[0.05, 0.1, 0.25, 0.4]),
        slots: one_of(rng, &[Slots::Extra, Slots::Inside]),
        prefill: one_of(
            rng,
            &[Prefill::All, Prefill::All, Prefill::Touched([].into()), Prefill::None],
        ),
        gc_order: one_of(rng, &[GcOrder::RoomAfter, GcOrder::InvalidateFirst]),
        fill: one_of(rng, &[Fill::Disk, Fill::Flash]),
        ring_blocks: if may_have_ring { ring } else { Some(0) },
    })
}

fn segments(rng: &mut Rng) -> HomeOptions {
    HomeOptions::Segments(SegmentsOptions {
        kappa: 1 + rng.below(4),
        rewrite: one_of(rng, &[Rewrite::Cascade, Rewrite::Whole]),
        valid: one_of(rng, &[Valid::All, Valid::Touched]),
    })
}

/// A case with its pages of a region, and those of the device.
fn case(rng: &mut Rng, drive: &str) -> (Case, u64, u64) {
    let geometry = geometry(rng);
    let mut more = vec![format!("disk.drive={drive}")];
    let home = match rng.below(2) {
        0 => {
            more.push(format!("translation.layout={}", one_of(rng, &["wave", "conventional"])));
            segments(rng)
        }
        _ => s_block(rng, geometry),
    };
    let held = match &home {
        HomeOptions::SBlock(options) => SBlocks::new(options.clone(), geometry).held(),
        HomeOptions::Segments(_) => geometry.region_segments,
    };
    let region = held * geometry.segment_blocks * geometry.block_pages;
    let device = region * (1 + rng.below(3));
    let case = Case {
        geometry,
        buffer: buffer(rng),
        cache: cache(rng),
        home,
        more,
        size_bytes: Some(device * 4096),
    };
    (case, region, device)
}

/// Whether several regions could rewrite at a time, and what one leaves in the cache is another's: the order of
/// that is the disk's.
fn depends_on_time(case: &Case) -> bool {
    let HomeOptions::SBlock(home) = &case.home else {
        return false;
    };
    case.buffer.capacity_blocks == 0 && (home.fill == Fill::Flash || case.cache.fill_from_rewrite)
}

/// Blocks that may be read where one may hold no data. Reading that takes no time, and the cache has 64 places
/// beside those of its copies for what is on its way to flash.
const READS_OF_NOTHING_MAX: u64 = 64;

fn may_read_nothing(case: &Case) -> bool {
    match &case.home {
        HomeOptions::Segments(home) => home.valid == Valid::Touched,
        HomeOptions::SBlock(home) => home.prefill != Prefill::All,
    }
}

fn requests(rng: &mut Rng, case: &Case, region: u64, device: u64) -> Vec<TraceRecord> {
    let count = 50 + rng.below(250);
    let write_share = 20 + rng.below(80);
    // Part of the requests go to a hot part of the device.
    let hot = 1 + rng.below(device);
    let longest = (3 * case.geometry.block_pages).min(device);
    let mut reads_left = match may_read_nothing(case) {
        true => READS_OF_NOTHING_MAX,
        false => u64::MAX,
    };
    let mut records = Vec::new();
    for _ in 0..count {
        let span = one_of(rng, &[hot, hot, device]);
        let mut pages = 1 + rng.below(longest);
        if rng.below(2) == 0 {
            pages = 1 + rng.below(pages);
        }
        let mut first = rng.below(span).min(device - pages);
        if rng.below(3) == 0 {
            first -= first % case.geometry.block_pages;
        }
        if depends_on_time(case) {
            pages = pages.min(region - first % region);
        }
        let size = case.geometry.block_pages;
        let blocks = (first + pages).div_ceil(size) - first / size;
        let is_write = rng.below(100) < write_share || reads_left < blocks;
        reads_left -= if is_write { 0 } else { blocks };
        records.push(TraceRecord {
            time_ns: 0,
            offset_bytes: first * 4096,
            length_bytes: pages * 4096,
            response_ns: None,
            device: 0,
            operation: match is_write {
                true => TraceOperation::Write,
                false => TraceOperation::Read,
            },
            fua: false,
        });
    }
    records
}

/// The drive of the stacks with 1 GiB: a layout of the whole of it would have millions of small regions.
fn small_drive() -> String {
    let text = include_str!("../../../../../../drives/wd1002faex.toml");
    let small = text.replace("1000204886016 B", "1 GiB");
    assert_ne!(text, small);
    let path = format!("{}/small-drive.toml", env!("CARGO_TARGET_TMPDIR"));
    // Tests that run beside this one write the same.
    std::fs::write(&path, small).expect("a place for a file");
    path
}

fn compare(cases: u64) {
    let (mut rewritten, mut filled, mut migrated) = (0, 0, 0);
    let drive = &small_drive();
    for number in 0..cases {
        let mut rng = Rng::new(number, 11);
        let (case, region, device) = case(&mut rng, drive);
        let requests = requests(&mut rng, &case, region, device);
        let counters = case.check(&requests);
        rewritten += u64::from(counters.home.segments_rewritten > 10);
        filled += u64::from(counters.cache.fill_blocks > 10);
        migrated += u64::from(counters.home.gc_migrations > 10);
    }
    println!("{cases} cases: {rewritten} rewrote, {filled} filled the cache, {migrated} migrated");
    assert!(rewritten > cases / 2 && filled > cases / 4 && migrated > cases / 10);
}

#[test]
fn every_counter_is_that_of_the_model_whatever_the_options() {
    compare(CASES);
}

#[test]
#[ignore = "long: for the soak"]
fn every_counter_is_that_of_the_model_whatever_the_options_at_length() {
    compare(CASES_LONG);
}
