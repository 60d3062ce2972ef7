//! Hand-counted cases of the model itself.

use super::buffer::Found;
use super::*;

/// Blocks of two pages, segments of eight blocks, regions of four segments.
const SMALL: Geometry = Geometry { block_pages: 2, segment_blocks: 8, region_segments: 4 };

fn segments(kappa: u64, rewrite: Rewrite, valid: Valid) -> SegmentsOptions {
    SegmentsOptions { kappa, rewrite, valid }
}

fn model(buffer_blocks: u64, cache: FlashOptions, home: HomeOptions) -> Model {
    let buffer = BufferOptions::new(buffer_blocks, Policy::Lwa);
    Model::new(SMALL, buffer, cache, home)
}

/// The paper's Figure 10: of the segment with most blocks in the window the blocks 12, 13 and 15 leave; one that lies before the
/// window stays.
#[test]
fn lwa_takes_the_blocks_of_the_fullest_segment_in_the_window() {
    let options = BufferOptions { window: 0.5, ..BufferOptions::new(16, Policy::Lwa) };
    let mut buffer = Buffer::new(options, SMALL);
    // From the head on; the number after the point is the place in the segment.
    let of_list = [
        (1, 0),
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 1),
        (4, 0),
        (4, 1),
        (5, 0), // the working region
        (2, 2),
        (2, 3),
        (3, 2),
        (6, 0),
        (1, 1),
        (1, 2),
        (4, 2),
        (1, 3), // the window
    ];
    for (segment, index) in of_list.iter().rev() {
        assert!(buffer.write(segment * 8 + index, 0..2).1.is_none());
    }
    let victims = buffer.write(7 * 8, 0..2).1.expect("the buffer was full");
    assert_eq!((victims.segment, victims.blocks), (1, vec![11, 10, 9]));
    assert!(matches!(buffer.read(8, 0..2), Found::All), "block 0 of the list stays");
    assert!(matches!(buffer.read(9, 0..2), Found::Nothing));
}

#[test]
fn every_policy_takes_its_own_victims() {
    // Oldest first: segments 1, 2, 2, 1, 3, 3, 3; the window has two blocks.
    let order = [8, 16, 17, 9, 24, 25, 26];
    for (policy, scope, expected) in [
        (Policy::Lwa, Scope::Window, vec![8]), // a tie goes to the tail
        (Policy::Lwa, Scope::WholeBuffer, vec![8, 9]),
        (Policy::LruBlock, Scope::Window, vec![8]),
        (Policy::LruSegment, Scope::Window, vec![16, 17]),
        (Policy::Most, Scope::Window, vec![24, 25, 26]),
    ] {
        let options = BufferOptions { window: 0.3, scope, ..BufferOptions::new(7, policy) };
        let mut buffer = Buffer::new(options, SMALL);
        for block in order {
            buffer.write(block, 0..2);
        }
        let victims = buffer.write(0, 0..2).1.expect("the buffer was full");
        assert_eq!(victims.blocks, expected, "{policy:?} {scope:?}");
    }
}

/// Read and written besides the dirty blocks, and what a rewrite of these places costs.
fn rewrite(options: SegmentsOptions, touched: &[u64], dirty: &[u64]) -> (u64, u64) {
    let mut flash = Flash::new(FlashOptions::new(0));
    let mut disk = Segments::new(options, SMALL);
    touched.iter().for_each(|index| disk.touch(8 + index));
    disk.destage(1, dirty, &[], &mut flash);
    let counters = disk.counters;
    assert_eq!(counters.destaged_blocks, dirty.len() as u64);
    assert_eq!(counters.segments_rewritten, 1);
    (counters.rewrite_blocks_read, counters.rewrite_blocks_written)
}

#[test]
fn a_rewrite_writes_what_the_writes_before_it_damage() {
    let cascade = |kappa, valid| segments(kappa, Rewrite::Cascade, valid);
    // All blocks hold data: with any overlap the cascade goes to the end of the segment.
    for (kappa, others) in [(1, 0), (2, 4), (3, 4), (4, 4)] {
        let cost = rewrite(cascade(kappa, Valid::All), &[], &[2, 5]);
        assert_eq!(cost, (others, others), "kappa {kappa}");
    }
    // Data in 0, 4 and 7 only: a gap of kappa - 1 blocks without data stops it.
    for (kappa, others) in [(1, 0), (2, 0), (3, 1), (4, 2)] {
        let cost = rewrite(cascade(kappa, Valid::Touched), &[0, 4, 7], &[2]);
        assert_eq!(cost, (others, others), "kappa {kappa}");
    }
    let whole = |valid| segments(3, Rewrite::Whole, valid);
    assert_eq!(rewrite(whole(Valid::All), &[], &[2, 5]), (6, 6));
    assert_eq!(rewrite(whole(Valid::Touched), &[0, 4, 7], &[2]), (3, 3));
}

#[test]
fn a_rewrite_reads_from_flash_what_is_there() {
    let all = segments(3, Rewrite::Cascade, Valid::All);
    for fill_from_rewrite in [false, true] {
        let cache = FlashOptions { fill_from_rewrite, ..FlashOptions::new(4) };
        let mut model = model(1, cache, HomeOptions::Segments(all));
        model.request(false, 14, 2); // block 7 goes to flash
        model.request(true, 8, 2); // block 4 is dirty
        model.request(true, 100, 1); // and leaves: blocks 5 to 7 are written, 5 and 6 read
        let counters = model.counters();
        assert_eq!(counters.home.rewrite_blocks_read, 2);
        assert_eq!(counters.home.rewrite_blocks_written, 3);
        assert_eq!(counters.cache.fill_blocks, 1 + 2 * u64::from(fill_from_rewrite));
    }
}

#[test]
fn a_write_drops_keeps_or_updates_the_copy_in_flash() {
    let all = segments(3, Rewrite::Cascade, Valid::All);
    for (on_write, dropped_by_write, dropped_by_destage) in
        [(OnWrite::Invalidate, 1, 1), (OnWrite::Keep, 0, 1), (OnWrite::Update, 0, 0)]
    {
        let cache = FlashOptions { on_write, ..FlashOptions::new(4) };
        let mut model = model(1, cache, HomeOptions::Segments(all));
        model.request(false, 8, 2);
        model.request(true, 8, 1);
        assert_eq!(model.counters().cache.dropped_blocks, dropped_by_write);
        model.request(true, 100, 1);
        assert_eq!(model.counters().cache.dropped_blocks, dropped_by_destage);
        assert_eq!(model.counters().buffer.fill_blocks_read, 1);
    }
}

#[test]
fn a_partial_read_fills_memory_or_flash() {
    let all = segments(3, Rewrite::Cascade, Valid::All);
    for (partial_read, second, fills) in [(PartialRead::Memory, 1, 0), (PartialRead::Flash, 0, 1)] {
        let buffer = BufferOptions { partial_read, ..BufferOptions::new(4, Policy::Lwa) };
        let home = HomeOptions::Segments(all);
        let mut model = Model::new(SMALL, buffer, FlashOptions::new(4), home);
        model.request(true, 9, 1);
        model.request(false, 8, 2);
        model.request(false, 8, 2);
        let Counters { buffer, cache, .. } = model.counters();
        assert_eq!((buffer.partial_reads, buffer.hit_block_reads), (2 - second, second));
        assert_eq!((cache.fill_blocks, cache.miss_blocks), (fills, 1));
    }
}

#[test]
fn without_a_buffer_a_request_rewrites_each_segment_it_touches() {
    let all = segments(3, Rewrite::Cascade, Valid::All);
    let mut model = model(0, FlashOptions::new(0), HomeOptions::Segments(all));
    model.request(true, 13, 6); // half of block 6, 7, and 8 and half of 9 of the next segment
    let home = model.counters().home;
    assert_eq!((home.segments_rewritten, home.destaged_blocks), (2, 4));
    // Two halves are read first, and blocks 10 to 15 are shifted.
    assert_eq!((home.rewrite_blocks_read, home.rewrite_blocks_written), (8, 6));
}

#[test]
fn without_a_buffer_s_blocks_gather_in_a_ring() {
    let options = SBlockOptions { ring_blocks: Some(2), ..SBlockOptions::new(0.25) };
    let mut model = model(0, FlashOptions::new(0), HomeOptions::SBlock(options));
    model.request(true, 0, 4); // blocks 0 and 1
    model.request(true, 2, 2); // block 1 again
    assert_eq!(model.counters().home, HomeCounters::default());
    model.request(true, 16, 1); // block 8: S-block 0 leaves the ring
    let home = model.counters().home;
    assert_eq!((home.destaged_blocks, home.rewrite_blocks_read), (2, 6));
}

/// Appends to S-blocks of a region of four with one spare slot.
#[test]
fn the_tail_is_dropped_or_moved_until_a_slot_is_free() {
    for (order, migrations) in [
        (GcOrder::RoomAfter, [0, 3, 3]),
        (GcOrder::RoomFirst, [0, 0, 3]),
        (GcOrder::InvalidateFirst, [0, 0, 3]),
    ] {
        let options = SBlockOptions { gc_order: order, ..SBlockOptions::new(0.25) };
        let mut disk = SBlocks::new(options, SMALL);
        let mut flash = Flash::new(FlashOptions::new(0));
        for expected in migrations {
            disk.destage(0, &[0], &mut flash);
            assert_eq!(disk.counters.gc_migrations, expected, "{order:?}");
        }
        assert_eq!(disk.counters.segments_rewritten, 3 + 3);
        // A migration reads and writes eight blocks, a destage the seven that were missing.
        assert_eq!(disk.counters.rewrite_blocks_read, 3 * 7 + 3 * 8);
    }
}

#[test]
fn an_s_block_that_held_nothing_is_not_read() {
    for (prefill, read) in [
        (Prefill::All, 7),
        (Prefill::Touched([0].into()), 7),
        (Prefill::Touched([1].into()), 0),
        (Prefill::None, 0),
    ] {
        let mut disk = SBlocks::new(SBlockOptions { prefill, ..SBlockOptions::new(0.25) }, SMALL);
        disk.destage(0, &[3], &mut Flash::new(FlashOptions::new(0)));
        assert_eq!(disk.counters.rewrite_blocks_read, read);
    }
}

#[test]
fn missing_blocks_of_an_s_block_may_come_from_flash() {
    for (fill, read) in [(Fill::Disk, 7), (Fill::Flash, 6)] {
        let mut flash = Flash::new(FlashOptions::new(4));
        flash.insert(5);
        let options = SBlockOptions { fill, ..SBlockOptions::new(0.25) };
        let mut disk = SBlocks::new(options, SMALL);
        disk.destage(0, &[3], &mut flash);
        assert_eq!(disk.counters.rewrite_blocks_read, read);
    }
}

/// Migrations per collection after many updates of S-blocks chosen by `choose`.
fn omega(region_segments: u64, options: SBlockOptions, choose: impl Fn(u64) -> u64) -> f64 {
    let geometry = Geometry { block_pages: 1, segment_blocks: 1, region_segments };
    let mut disk = SBlocks::new(options, geometry);
    let mut flash = Flash::new(FlashOptions::new(0));
    let warm = 20 * region_segments;
    let mut before = HomeCounters::default();
    for turn in 0..20 * warm {
        if turn == warm {
            before = disk.counters;
        }
        disk.destage(choose(turn), &[0], &mut flash);
    }
    let migrations = disk.counters.gc_migrations - before.gc_migrations;
    migrations as f64 / (disk.counters.gc_runs - before.gc_runs) as f64
}

#[test]
fn a_hot_s_block_moves_the_others_once_a_round() {
    for (spare, slots) in [(0.05, 3.0), (0.1, 6.0), (0.3, 19.0)] {
        let expected = 63.0 / (slots + 1.0);
        let measured = omega(64, SBlockOptions::new(spare), |_| 0);
        assert!((measured / expected - 1.0).abs() < 0.01, "{spare}: {measured}, not {expected}");
    }
    // Spares inside the track leave fewer S-blocks to move.
    let inside = SBlockOptions { slots: Slots::Inside, ..SBlockOptions::new(0.1) };
    let measured = omega(64, inside, |_| 0);
    assert!((measured / (57.0 / 7.0) - 1.0).abs() < 0.01, "{measured}");
}

#[test]
fn uniform_updates_move_what_is_still_valid_after_a_round() {
    // A multiplicative hash of the turn stands for a random S-block.
    let choose = |turn: u64| {
        let mixed = (turn + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)) % 1000
    };
    for (spare, slots) in [(0.05, 1050.0), (0.1, 1100.0), (0.3, 1300.0)] {
        // The share v that is still valid when the tail reaches it solves (1 - v) / -ln v = n / slots.
        let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
        for _ in 0..100 {
            let v: f64 = (low + high) / 2.0;
            match (1.0 - v) / -v.ln() < 1000.0 / slots {
                true => low = v,
                false => high = v,
            }
        }
        let expected = low / (1.0 - low);
        let measured = omega(1000, SBlockOptions::new(spare), choose);
        println!("spare {spare}: {measured:.3} moved per collection, {expected:.3} expected");
        assert!((measured / expected - 1.0).abs() < 0.05, "{spare}: {measured}, not {expected}");
    }
}
