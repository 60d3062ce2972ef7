//! A persistent cache with its log on one disk and its bands on another: what lies where, and what
//! becomes of it when one of the disks is lost while it runs.

use crate::common::harness::{JumpingClock, MemoryDisk, Step, random_steps};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media, Survival, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::map::BandTable;
use imbrex_core::operation::{Completion, Durability, Operation, RequestId, Tag};
use imbrex_core::stack::{Arrival, DiskId, NodeId, StackBuilder};
use imbrex_core::translation::{
    BypassSettings, HostAware, LayoutError, PersistentCache, PersistentCacheSettings, Reclaim,
    RewriteExtent, RewriteMethod, RewriteSettings, conventional_blocks_needed,
};
use imbrex_core::units::{BlockCount, Duration, Instant};
use imbrex_core::zone::{ZoneGeometry, ZoneModel};
use std::collections::BTreeMap;
use std::sync::Arc;

const TRACK: u64 = 4;

fn bands() -> Arc<BandTable> {
    Arc::new(BandTable::new([16, 13, 24, 20, 11].map(BlockCount)))
}

fn settings(is_durable: bool) -> PersistentCacheSettings {
    PersistentCacheSettings {
        bypass: Some(BypassSettings::after(BlockCount(4))),
        packet_blocks_max: BlockCount(8),
        durability: is_durable
            .then_some(DurabilitySettings { ring_blocks: 24, unflushed_blocks_max: 24 }),
        ..PersistentCacheSettings::new(BlockCount(24))
    }
}

/// A disk without tracks that holds the log and no block more.
fn log_disk(settings: &PersistentCacheSettings) -> Geometry {
    let needed = conventional_blocks_needed(settings, &bands(), BlockCount(256));
    Geometry::plain(needed, Media::SolidState)
}

/// A disk of which every track overlaps.
fn home_disk() -> Geometry {
    let tracks = TrackTable::new([(60, TRACK)], BlockCount::ZERO, 2);
    Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    }
}

#[test]
fn log_and_bands_fill_their_disks_from_the_start() {
    for is_durable in [false, true] {
        let settings = settings(is_durable);
        let (log, home) = (log_disk(&settings), home_disk());
        let (layer, above) = PersistentCache::on_two(settings, bands(), &log, &home).unwrap();
        let areas = layer.areas();
        assert_eq!(areas.metadata.extent.start.0, 0);
        assert_eq!(areas.metadata.extent.end(), areas.persistent_cache.extent.start);
        assert_eq!(areas.persistent_cache.extent.end().0, log.blocks.0);
        assert_eq!(areas.scratch.extent, Extent::new(0, 24));
        // Six tracks of scratch band and two of guard.
        assert_eq!(areas.bands.extent.start.0, 8 * TRACK);
        for area in [areas.metadata, areas.persistent_cache] {
            assert_eq!(area.port, PersistentCache::LOG);
        }
        for area in [areas.scratch, areas.bands] {
            assert_eq!(area.port, PersistentCache::HOME);
        }
        assert_eq!((above.media, above.blocks), (Media::Shingled, BlockCount(84)));
    }
}

#[test]
fn a_translation_survives_what_both_of_its_disks_survive() {
    let (log, home) = (log_disk(&settings(true)), home_disk());
    for (log_survives, home_survives, least) in [
        (Survival::Power, Survival::Process, Survival::Process),
        (Survival::Nothing, Survival::Power, Survival::Nothing),
    ] {
        let (log, home) = (log.clone(), home.clone());
        let log = Geometry { survives: log_survives, ..log };
        let home = Geometry { survives: home_survives, ..home };
        let (_, above) = PersistentCache::on_two(settings(true), bands(), &log, &home).unwrap();
        assert_eq!(above.survives, least);
    }
}

#[test]
fn what_does_not_fit_on_either_disk_is_an_error() {
    let settings = settings(true);
    let (log, home) = (log_disk(&settings), home_disk());
    let short = Geometry { blocks: BlockCount(log.blocks.0 - 1), ..log.clone() };
    let built = PersistentCache::on_two(settings.clone(), bands(), &short, &home);
    let expected =
        LayoutError::LogPastConventional { needed: log.blocks, conventional: short.blocks };
    assert_eq!(built.map(|_| ()), Err(expected));
    let built = PersistentCache::on_two(settings.clone(), bands(), &home, &home);
    assert!(matches!(built.map(|_| ()), Err(LayoutError::LogPastConventional { .. })));
    let short = Geometry { blocks: BlockCount(100), ..home };
    let error = PersistentCache::on_two(settings, bands(), &log, &short).expect_err("no room");
    let words = error.to_string();
    assert!(words.contains("beside the scratch band"), "{words}");
}

#[test]
fn a_host_aware_disk_is_one_disk() {
    let zones = ZoneGeometry {
        model: ZoneModel::HostAware,
        blocks: BlockCount(40),
        zone_blocks: BlockCount(20),
        conventional_zones: 0,
        open_max: None,
        active_max: None,
        optimal_open: None,
        optimal_non_sequential: None,
    };
    let host_aware = PersistentCacheSettings {
        bypass: None,
        rewrite: RewriteSettings {
            method: RewriteMethod::InPlace,
            extent: RewriteExtent::FromFirstDirty,
            ..settings(false).rewrite
        },
        host_aware: Some(HostAware {
            filled_permille: 0,
            reclaim: Reclaim::Tail,
            zones: Arc::new(zones),
            command: Duration(1),
            report: Duration(1),
        }),
        ..settings(false)
    };
    let log = log_disk(&host_aware);
    let bands = Arc::new(BandTable::new([20, 20].map(BlockCount)));
    let built = PersistentCache::on_two(host_aware, bands, &log, &home_disk());
    assert_eq!(built.map(|_| ()), Err(LayoutError::ZonesOnTwoDisks));
}

/// A disk of which every operation from some number on ends with the error of a lost one.
struct Losing {
    disk: MemoryDisk,
    left: u64,
    lost: Vec<RequestId>,
}

impl Losing {
    fn new(disk: MemoryDisk, after: u64) -> Losing {
        Losing { disk, left: after, lost: Vec::new() }
    }
}

impl Disk for Losing {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        if self.left == 0 {
            self.lost.push(op.id);
        }
        self.left = self.left.saturating_sub(1);
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let done = self.disk.poll(now, buffers)?;
        let is_lost = self.lost.contains(&done.id);
        self.lost.retain(|id| *id != done.id);
        let result = if is_lost { Err(IoError::Lost) } else { done.result };
        Some(DiskCompletion { result, ..done })
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }
}

/// A host that keeps so many requests in flight and takes note of the answers.
struct Host {
    steps: Vec<Step>,
    next: usize,
    depth: usize,
    in_flight: BTreeMap<u64, BufferSlice>,
    answers: Vec<Result<(), IoError>>,
}

impl Host {
    fn new(steps: Vec<Step>, depth: usize) -> Host {
        Host { steps, next: 0, depth, in_flight: BTreeMap::new(), answers: Vec::new() }
    }
}

impl Frontend for Host {
    fn next_arrival(&self) -> Option<Instant> {
        let may_send = self.next < self.steps.len() && self.in_flight.len() < self.depth;
        may_send.then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        let zero = Operation::Zero { durability: Durability::Cached, may_unmap: true };
        let (operation, extent, has_data) = match self.steps[self.next] {
            Step::Read(extent) => (Operation::Read, extent, true),
            Step::Write(extent) => (Operation::WRITE, extent, true),
            Step::WriteDurable(extent) => (Operation::WRITE_DURABLE, extent, true),
            Step::Zero(extent) => (zero, extent, false),
            Step::Flush => (Operation::Flush, Extent::EMPTY, false),
        };
        let blocks = if has_data { extent.blocks.0 } else { 0 };
        let buffer = buffers.allocate(blocks);
        let tag = Tag(self.next as u64);
        self.in_flight.insert(tag.0, buffer);
        self.next += 1;
        Some(Arrival { tag, operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let buffer = self.in_flight.remove(&completion.tag.0).expect("in flight");
        buffers.release(buffer);
        self.answers.push(completion.result);
    }

    fn finished(&self) -> bool {
        self.answers.len() == self.steps.len()
    }
}

/// The translation over disks of which one is lost after so many operations, and its node.
fn losing(is_durable: bool, port: usize, after: u64) -> (Engine, NodeId) {
    let settings = settings(is_durable);
    let geometries = [log_disk(&settings), home_disk()];
    let mut builder = StackBuilder::new(after);
    let below = geometries.each_ref().map(|it| builder.disk(it.clone()));
    let [log, home] = &geometries;
    let (layer, above) = PersistentCache::on_two(settings, bands(), log, home).expect("a layout");
    let node = builder.layer(Box::new(layer), above, &below);
    let mut disks: Vec<Box<dyn Disk>> = Vec::new();
    for (number, geometry) in geometries.into_iter().enumerate() {
        let disk = MemoryDisk::new(geometry, after, 1_000);
        let after = if number == port { after } else { u64::MAX };
        disks.push(Box::new(Losing::new(disk, after)));
    }
    let engine = Engine {
        stack: builder.build(node),
        disks,
        buffers: Buffers::new(ContentKind::Stamped),
        in_flight_max: 64,
    };
    (engine, node)
}

#[test]
fn with_one_of_its_disks_lost_from_the_start_a_translation_does_not_come_up() {
    for is_durable in [false, true] {
        for port in 0..2 {
            for start in [Start::Format(Uuid([1; 16])), Start::Recover(None)] {
                let (mut engine, node) = losing(is_durable, port, u64::MAX);
                engine.stack.lose_disk(DiskId(port as u16));
                let opened = engine.open(&mut JumpingClock::default(), start);
                assert_eq!(opened, Err((node, OpenError::Io(IoError::Lost))));
            }
        }
    }
}

#[test]
fn with_one_of_its_disks_lost_a_translation_is_lost_itself_and_answers_all() {
    for is_durable in [false, true] {
        for port in 0..2 {
            let mut whole_runs = 0;
            for after in 0..240 {
                let (mut engine, node) = losing(is_durable, port, after);
                let clock = &mut JumpingClock::default();
                if engine.open(clock, Start::Format(Uuid([1; 16]))).is_err() {
                    continue;
                }
                let steps = random_steps(after, 150, 84, 12);
                let mut host = Host::new(steps, [1, 4, 16][after as usize % 3]);
                engine.run(clock, &mut host, &mut |_, _| {});
                assert!(host.finished());
                assert!(engine.stack.is_lost(node) || after > 150, "after {after}");
                if !engine.stack.is_lost(node) {
                    whole_runs += 1;
                    continue;
                }
                let what = format!("durable {is_durable}, port {port}, after {after}");
                assert!(host.answers.contains(&Err(IoError::Lost)), "{what}: {:?}", host.answers);
                // Nothing is answered as if it were there.
                let more = [Step::Read(Extent::new(3, 2)), Step::Flush];
                let mut later = Host::new(more.to_vec(), 1);
                engine.run(clock, &mut later, &mut |_, _| {});
                assert_eq!(later.answers, [Err(IoError::Lost); 2], "{what}");
            }
            assert!(whole_runs < 120, "{whole_runs} runs lost no disk");
        }
    }
}
