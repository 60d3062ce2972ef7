//! The zone-LRU buffer over disks with and without zones, by the rules of the SSD write buffer of Idler
//! (IEEE TC 2020).

use crate::common::check::disk_geometry;
use crate::common::harness::{MemoryDisk, Step, play, play_opened};
use crate::stacks::{cache_stack, settings};
use imbrex_core::cache::{
    Cache, CacheMode, CacheSettings, PolicySettings, ZoneLruSettings, ZoneSettings,
};
use imbrex_core::counters::Counter;
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::map::BandTable;
use imbrex_core::operation::{Completion, Operation, Request, RequestId, Tag};
use imbrex_core::stack::{NodeId, StackBuilder};
use imbrex_core::translation::{
    HostAware, PersistentCache, PersistentCacheSettings, Reclaim, RewriteExtent, RewriteMethod,
    RewriteSettings,
};
use imbrex_core::units::{BlockCount, Duration};
use imbrex_core::zone::{ZoneGeometry, ZoneId, ZoneModel};
use std::sync::Arc;

const ZONE: u64 = 1024;
const ZONES: u64 = 6;
const CAPACITY: u64 = 1000;
const LOG: u64 = 4000;

fn buffer(
    capacity: u64,
    zone: u64,
    rewrite_blocks: u64,
    staging_blocks: u32,
) -> Result<CacheSettings, String> {
    let policy = PolicySettings::ZoneLru(ZoneLruSettings {
        zones: ZoneSettings::Equal(zone),
        rewrite_blocks,
        staging_blocks,
    });
    let settings = settings(capacity, 8, CacheMode::WriteAllocate, policy);
    let flash = Geometry::plain(settings.flash_blocks(), Media::SolidState);
    let backing = Geometry::plain(BlockCount(ZONES * zone), Media::Conventional);
    let made = Cache::new(settings.clone(), &flash, &backing);
    made.map(|_| settings).map_err(|error| error.message)
}

/// What the buffer and the drive below it have counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Counted {
    zones_evicted: u64,
    zones_rewritten: u64,
    blocks_evicted: u64,
    blocks_fetched: u64,
    bypassed: u64,
    /// Of the drive.
    zones_reset: u64,
    out_of_sequence: u64,
    /// As the buffer has seen it.
    reports_failed: u64,
}

/// Passes everything on, but for its first reports of zones, which fail.
struct FailsReports {
    left: u32,
    waiting: Vec<RequestId>,
}

impl Layer for FailsReports {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation == Operation::ZoneReport && self.left > 0 {
            self.left -= 1;
            return ctx.finish(request.id, Err(IoError::Medium));
        }
        self.waiting.push(request.id);
        let Request { operation, extent, buffer, cause, .. } = request;
        let tag = Tag(self.waiting.len() as u64 - 1);
        ctx.issue(Issue { port: Port(0), operation, extent, buffer, cause, tag });
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        ctx.finish(self.waiting[completion.tag.0 as usize], completion.result);
    }
}

/// Plays steps on the buffer over a host-aware drive whose medium is destroyed by what overlaps it.
fn over_zones(filled_permille: u32, depth: usize, steps: Vec<Step>) -> Counted {
    over_failing_reports(0, filled_permille, depth, steps)
}

/// The same, where the first so many reports of zones fail.
fn over_failing_reports(
    failing: u32,
    filled_permille: u32,
    depth: usize,
    steps: Vec<Step>,
) -> Counted {
    let zones = ZoneGeometry {
        model: ZoneModel::HostAware,
        blocks: BlockCount(ZONES * ZONE),
        zone_blocks: BlockCount(ZONE),
        conventional_zones: 1,
        open_max: None,
        active_max: None,
        optimal_open: None,
        optimal_non_sequential: None,
    };
    let lengths = (0..zones.zones()).map(|zone| zones.extent_of(ZoneId(zone)).blocks);
    let bands = Arc::new(BandTable::new(lengths));
    let drive = PersistentCacheSettings {
        rewrite: RewriteSettings {
            method: RewriteMethod::InPlace,
            extent: RewriteExtent::FromFirstDirty,
            ..RewriteSettings::default()
        },
        host_aware: Some(HostAware {
            filled_permille,
            reclaim: Reclaim::Tail,
            zones: Arc::new(zones),
            command: Duration(10),
            report: Duration(100),
        }),
        ..PersistentCacheSettings::new(BlockCount(LOG))
    };
    let conventional = 3 * LOG / 100 * 100;
    let tracks = TrackTable::new(
        [(conventional / 100, 100), (ZONES * ZONE / 64 + 40, 64)],
        BlockCount(conventional),
        1,
    );
    let geometry = Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    };
    let smr = MemoryDisk::new(geometry, 1, 1_000).destructive();
    let settings = buffer(CAPACITY, ZONE, 400, ZONE as u32).expect("settings that fit");
    let flash = Geometry::plain(settings.flash_blocks(), Media::SolidState);
    let flash = MemoryDisk::new(flash, 2, 1_000);
    let mut builder = StackBuilder::new(1);
    let below = [builder.disk(disk_geometry(&flash)), builder.disk(disk_geometry(&smr))];
    let made = PersistentCache::new(drive, bands, builder.geometry(below[1]));
    let (drive, geometry) = made.expect("a layout");
    let drive = builder.layer(Box::new(drive), geometry.clone(), &below[1..]);
    let fails = FailsReports { left: failing, waiting: Vec::new() };
    let fails = builder.layer(Box::new(fails), geometry, &[drive]);
    let made = Cache::new(settings, builder.geometry(below[0]), builder.geometry(fails));
    let (cache, geometry) = made.expect("settings that fit");
    let cache = builder.layer(Box::new(cache), geometry, &[below[0], fails]);
    let stack = builder.build(cache);
    let engine = play_opened(stack, vec![flash, smr], steps, depth);
    let engine = engine.expect("every block reads what was written");
    let count = |node: NodeId, counter| engine.stack.counts(node).counter(counter);
    Counted {
        zones_evicted: count(cache, Counter::ZonesEvicted),
        zones_rewritten: count(cache, Counter::ZonesRewritten),
        blocks_evicted: count(cache, Counter::DirtyEvictions),
        blocks_fetched: count(cache, Counter::RewriteFetchedBlocks),
        bypassed: count(cache, Counter::CacheBypassedBlocks),
        zones_reset: count(drive, Counter::ZonesReset),
        out_of_sequence: count(drive, Counter::BlocksOutOfSequence),
        reports_failed: count(cache, Counter::ZoneReportsFailed),
    }
}

fn write(zone: u64, offset: u64, blocks: u64) -> Step {
    Step::Write(Extent::new(zone * ZONE + offset, blocks))
}

/// Every second block of a zone, so many of them, then as many blocks of other zones as fill the buffer and one
/// more.
fn scattered(zone: u64, blocks: u64) -> Vec<Step> {
    let others = CAPACITY + 1 - blocks;
    let scattered = (0..blocks).map(|at| write(zone, 2 * at, 1));
    scattered.chain((0..others).map(|at| write(zone + 1, at, 1))).collect()
}

#[test]
fn a_zone_is_rewritten_when_more_than_400_of_its_blocks_leave() {
    let none = Counted {
        zones_evicted: 1,
        zones_rewritten: 0,
        blocks_evicted: 400,
        blocks_fetched: 0,
        bypassed: 0,
        zones_reset: 0,
        out_of_sequence: 400,
        reports_failed: 0,
    };
    for depth in [1, 8] {
        assert_eq!(over_zones(1000, depth, scattered(2, 400)), none);
        let rewritten = Counted {
            zones_rewritten: 1,
            blocks_evicted: 401,
            blocks_fetched: ZONE - 401,
            zones_reset: 1,
            out_of_sequence: 0,
            ..none
        };
        assert_eq!(over_zones(1000, depth, scattered(2, 401)), rewritten);
    }
    let in_conventional = over_zones(1000, 1, scattered(0, 401));
    let as_they_are = Counted { blocks_evicted: 401, out_of_sequence: 0, ..none };
    assert_eq!(in_conventional, as_they_are, "a zone without a pointer");
}

#[test]
fn a_report_that_has_failed_is_asked_for_again_with_the_next_write() {
    let known = over_zones(1000, 1, scattered(2, 401));
    let known_later = over_failing_reports(3, 1000, 1, scattered(2, 401));
    assert_eq!(known_later, Counted { reports_failed: 3, ..known });
    let never = over_failing_reports(u32::MAX, 1000, 1, scattered(2, 401));
    assert_eq!((never.zones_rewritten, never.out_of_sequence), (0, 401));
    assert_eq!(never.reports_failed, CAPACITY + 1, "once with each write");
}

#[test]
fn a_rewrite_ends_where_the_zone_is_written() {
    // 0.3 of the zone are 307 blocks: the last of those that leave is block 800.
    let found = over_zones(300, 4, scattered(2, 401));
    assert_eq!((found.zones_rewritten, found.blocks_fetched), (1, 801 - 401));
    // What is written behind that goes home at the pointer, once more than one buffer full of it.
    let mut steps = scattered(2, 401);
    steps.extend((0..200).map(|at| write(2, 801 + at, 1)));
    steps.extend((0..900).map(|at| write(4, at, 1)));
    let found = over_zones(300, 4, steps);
    assert_eq!(found.zones_rewritten, 1 + 1, "zone 2, then zone 3");
    assert_eq!(found.out_of_sequence, 0);
}

#[test]
fn what_continues_a_zone_goes_home_in_order_without_a_rewrite() {
    // Requests come in any order: 500 blocks from the pointer on.
    let mut steps: Vec<Step> = [3, 0, 4, 1, 2].map(|part| write(2, part * 100, 100)).into();
    steps.extend((0..6).map(|part| write(1, part * 100, 100)));
    let found = over_zones(0, 1, steps);
    assert_eq!((found.zones_evicted, found.blocks_evicted), (1, 500));
    assert_eq!((found.zones_rewritten, found.out_of_sequence), (0, 0));
}

#[test]
fn requests_larger_than_the_buffer_go_around_it_in_order() {
    let large = || Step::Write(Extent::new(ZONE + 500, CAPACITY + 1));
    for depth in [1, 4] {
        let mut steps = scattered(1, 401);
        steps.extend([write(1, 600, 3), large(), write(1, 601, 1), large()]);
        steps.push(Step::Read(Extent::new(ZONE, CAPACITY + 9)));
        steps.extend(scattered(1, 500));
        steps.push(large());
        let found = over_zones(1000, depth, steps);
        assert_eq!(found.bypassed, 3 * (CAPACITY + 1) + CAPACITY + 9);
        assert!(found.zones_rewritten > 0);
    }
}

#[test]
fn the_least_recently_used_zone_leaves_whole_and_in_ascending_order() {
    let settings = buffer(6, 8, 6, 0).expect("settings that fit");
    let (stack, disks, _) = cache_stack(settings, 48, 1, 0);
    let medium = disks[1].medium();
    let at = |lba| Extent::new(lba, 1);
    let mut steps: Vec<Step> = [13, 9, 15, 20, 17].map(|lba| Step::Write(at(lba))).into();
    // The read makes the first zone newer than the second one, which therefore leaves.
    steps.extend([Step::Read(at(13)), Step::Write(at(30)), Step::Write(at(31))]);
    // Then the first one does.
    steps.extend([Step::Write(at(28)), Step::Write(at(40))]);
    play(stack, disks, steps, 1).expect("every block reads what was written");
    let written: Vec<u64> = medium.borrow().write_log.iter().map(|write| write.start.0).collect();
    assert_eq!(written, [17, 20, 9, 13, 15]);
}

#[test]
fn a_buffer_smaller_than_what_is_rewritten_is_refused() {
    assert!(buffer(400, 512, 400, 0).is_ok());
    let words =
        "capacity_blocks 399 and rewrite_blocks 400; accepted: a buffer of at least rewrite_blocks";
    assert_eq!(buffer(399, 512, 400, 0), Err(words.to_string()));
}
