//! A layer that updates regions in place keeps its data when it writes each region in the direction
//! in which its tracks overlap and leaves guard tracks where two regions face each other.

use super::tiny::TinyStack;
use super::{play_case as play_ready_made, workload};
use crate::harness::{play_on, random_steps};
use imbrex_core::buffer::{BufferSlice, ContentKind};
use imbrex_core::disk::{Disk, Geometry, Media, Shingling, TrackTable};
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::operation::{Completion, Operation, Request, Tag};
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::BlockCount;
use imbrex_drives::{DiskOptions, Drive, SimulatedDisk};
use imbrex_stack::{BuildOptions, Plan, StackConfig};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

const BELOW: Port = Port(0);
/// Cases of the layer that is right, and within which one that is wrong must be found.
const CASES: u64 = 40;

/// What the layer does about the direction of its regions.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    ShingleOrder,
    AddressOrder,
    ShingleOrderWithoutGuards,
}

/// Tracks that are written in one go.
struct Region {
    /// Where the host sees it.
    first: u64,
    extent: Extent,
    /// Its tracks in the order of writing.
    tracks: Vec<Extent>,
}

/// Serves one request at a time, region by region: reads the region, changes it, and writes it back
/// track by track.
struct InPlace {
    regions: Vec<Region>,
    waiting: VecDeque<Request>,
    /// Room for the longest region.
    memory: Option<BufferSlice>,
    region: usize,
    /// Tracks of it that are written; `None` while it is read.
    written: Option<usize>,
}

impl InPlace {
    fn new(tracks: &TrackTable, habit: Habit) -> InPlace {
        let mut regions = Vec::new();
        let mut first = 0;
        for used in usable_tracks(tracks, habit) {
            let is_downwards = tracks.shingling_of(used.start) == Shingling::Downwards;
            let mut order: Vec<Extent> = used.map(|track| tracks.extent_of(track)).collect();
            let extent = Extent::between(order[0].start, order[order.len() - 1].end());
            if is_downwards && habit != Habit::AddressOrder {
                order.reverse();
            }
            regions.push(Region { first, extent, tracks: order });
            first += extent.blocks.0;
        }
        InPlace { regions, waiting: VecDeque::new(), memory: None, region: 0, written: None }
    }

    fn blocks(&self) -> BlockCount {
        BlockCount(self.regions.iter().map(|region| region.extent.blocks.0).sum())
    }

    /// The part of a request in the region at hand: where it lies in the region and in the request.
    fn part(&self, request: &Request) -> Option<(u64, u64, u64)> {
        let region = self.regions.get(self.region)?;
        let seen = Extent::new(region.first, region.extent.blocks.0);
        let part = request.extent.intersection(seen)?;
        let (start, blocks) = (part.start.0, part.blocks.0);
        Some((start - region.first, start - request.extent.start.0, blocks))
    }

    /// Goes on to the next region that the request at hand touches, or to the next request.
    fn next_region(&mut self, ctx: &mut Context<'_>) {
        self.written = None;
        while let Some(request) = self.waiting.front().copied() {
            if request.operation == Operation::Flush {
                return self.issue(Operation::Flush, request.extent, BufferSlice::EMPTY, ctx);
            }
            while self.region < self.regions.len() {
                if self.part(&request).is_some() {
                    let region = self.regions[self.region].extent;
                    let longest = self.regions.iter().map(|region| region.extent.blocks);
                    let longest = longest.max().unwrap_or(BlockCount::ZERO);
                    let memory = *self.memory.get_or_insert_with(|| ctx.allocate(longest));
                    let memory = memory.part(0, region.blocks.0);
                    return self.issue(Operation::Read, region, memory, ctx);
                }
                self.region += 1;
            }
            self.answer(Ok(()), ctx);
        }
        if let Some(memory) = self.memory.take() {
            ctx.release(memory);
        }
    }

    fn answer(&mut self, result: Result<(), imbrex_core::error::IoError>, ctx: &mut Context<'_>) {
        let request = self.waiting.pop_front().expect("a request at hand");
        self.region = 0;
        ctx.finish(request.id, result);
    }

    fn issue(
        &self,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) {
        let request = self.waiting.front().expect("a request at hand");
        ctx.issue(Issue {
            port: BELOW,
            operation,
            extent,
            buffer,
            cause: request.cause,
            tag: Tag(0),
        });
    }
}

impl Layer for InPlace {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.waiting.push_back(request);
        if self.waiting.len() == 1 {
            self.next_region(ctx);
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        completion.result.expect("a disk without faults");
        let request = *self.waiting.front().expect("a request at hand");
        if request.operation == Operation::Flush {
            self.answer(Ok(()), ctx);
            return self.next_region(ctx);
        }
        let memory = self.memory.expect("the region");
        let written = match self.written {
            Some(written) => written + 1,
            None => {
                let (at, from, blocks) = self.part(&request).expect("a part in the region");
                let inside = memory.part(at, blocks);
                match request.operation {
                    Operation::Read => ctx.copy(inside, request.buffer.part(from, blocks)),
                    Operation::Zero { .. } => ctx.zero(inside),
                    _ => ctx.copy(request.buffer.part(from, blocks), inside),
                }
                0
            }
        };
        self.written = Some(written);
        let region = &self.regions[self.region];
        match region.tracks.get(written) {
            Some(track) if request.operation != Operation::Read => {
                let at = track.start.0 - region.extent.start.0;
                let part = memory.part(at, track.blocks.0);
                self.issue(Operation::WRITE_DURABLE, *track, part, ctx);
            }
            _ => {
                self.region += 1;
                self.next_region(ctx);
            }
        }
    }
}

/// The tracks of each run without the guards that an upward and a downward one share.
fn usable_tracks(tracks: &TrackTable, habit: Habit) -> Vec<Range<u64>> {
    let guard = match habit {
        Habit::ShingleOrderWithoutGuards => 0,
        Habit::ShingleOrder | Habit::AddressOrder => tracks.overlap_tracks,
    };
    let runs = tracks.shingle_runs();
    let mut used = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let faces = |shingling| runs.get(index + 1).is_some_and(|it| it.shingling == shingling);
        let is_faced = match run.shingling {
            Shingling::Upwards => faces(Shingling::Downwards) || faces(Shingling::Apart),
            Shingling::Apart => faces(Shingling::Downwards),
            Shingling::Downwards => false,
        };
        let end = run.first_track + run.tracks;
        used.push(run.first_track..end - if is_faced { guard } else { 0 });
    }
    used.retain(|tracks| !tracks.is_empty());
    used
}

/// A shingled drive of a few hundred blocks.
fn fixture() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives/tiny-smr.toml");
    std::fs::read_to_string(file).expect("the fixture")
}

/// A wave with regions of five tracks, two tracks of guard where they face each other, and two
/// conventional parts.
fn wave_text() -> String {
    let wave = "overlap_tracks = 2\n\
        runs = [{ tracks = 7, direction = \"upwards\" }, { tracks = 5, direction = \"downwards\" }]\n\
        conventional = [{ start = \"0 B\", size = \"60 KiB\" }, { start = \"956 KiB\", size = \"96 KiB\" }]";
    fixture().replace("overlap_tracks = 2", wave)
}

fn wave_disk(seed: u64) -> SimulatedDisk {
    let drive = Drive::parse("wave.toml", &wave_text()).expect("a drive");
    let options = DiskOptions {
        capacity: Some(BlockCount(400)),
        contents: ContentKind::Stamped,
        seed,
        ..DiskOptions::default()
    };
    SimulatedDisk::new(&drive, &options).expect("a disk")
}

fn play_case(seed: u64, habit: Habit) -> Result<(), String> {
    let disk = wave_disk(seed);
    let tracks = disk.geometry().tracks.clone().expect("tracks");
    let layer = InPlace::new(&tracks, habit);
    let blocks = layer.blocks();
    let mut builder = StackBuilder::new(seed);
    let below = builder.disk(disk.geometry().clone());
    let geometry =
        Geometry { tracks: Some(Arc::clone(&tracks)), ..Geometry::plain(blocks, Media::Shingled) };
    let top = builder.layer(Box::new(layer), geometry, &[below]);
    let steps = random_steps(seed, 60, blocks.0, 12);
    let engine = play_on(builder.build(top), vec![Box::new(disk)], Vec::new(), steps, 4)?;
    assert_eq!(engine.buffers.allocated(), 0);
    Ok(())
}

#[test]
fn the_wave_has_runs_of_each_kind() {
    let disk = wave_disk(0);
    let tracks = disk.geometry().tracks.clone().expect("tracks");
    let runs: Vec<_> =
        tracks.shingle_runs().iter().map(|run| (run.shingling, run.tracks)).collect();
    use Shingling::{Apart, Downwards, Upwards};
    assert_eq!(
        runs,
        [
            (Apart, 3),
            (Upwards, 4),
            (Downwards, 5),
            (Upwards, 7),
            (Downwards, 5),
            (Upwards, 7),
            (Downwards, 5),
            (Upwards, 7),
            (Downwards, 5),
            (Upwards, 3),
            (Apart, 7),
            (Downwards, 2),
            (Upwards, 7),
            (Downwards, 5),
            (Upwards, 7),
            (Downwards, 5),
            (Upwards, 7),
            (Downwards, 5),
        ]
    );
}

#[test]
fn the_direction_of_the_run_keeps_the_data() {
    for seed in 0..CASES {
        if let Err(failure) = play_case(seed, Habit::ShingleOrder) {
            panic!("seed {seed}: {failure}");
        }
    }
}

#[test]
fn the_wrong_direction_loses_data() {
    let lost = (0..CASES).filter(|seed| play_case(*seed, Habit::AddressOrder).is_err());
    assert_eq!(lost.count() as u64, CASES);
}

#[test]
fn without_guards_regions_that_face_each_other_lose_data() {
    let habit = Habit::ShingleOrderWithoutGuards;
    assert!((0..CASES).any(|seed| play_case(seed, habit).is_err()));
}

/// Bands may lie across conventional parts: those are only written with less harm than expected.
#[test]
fn bands_lie_on_conventional_parts_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("islands.toml");
    let islands = "overlap_tracks = 2\n\
        conventional = [{ start = \"600 KiB\", size = \"90 KiB\" }, { start = \"1 MiB\", size = \"300 KiB\" }]";
    let text = fixture().replace("overlap_tracks = 2", islands);
    std::fs::write(&path, text).expect("a file");
    let drive = format!("smr.drive={}", path.display());
    for system in ["smr-only", "lru"] {
        let stack = TinyStack::new(system, &[&drive]);
        for seed in 0..CASES {
            let seen = play_ready_made(&stack, seed, workload::random, None);
            seen.unwrap_or_else(|failure| panic!("{system}, seed {seed}: {failure}"));
        }
    }
}

/// A translation and zones are written upwards, so they are refused when they are planned.
#[test]
fn layers_that_write_upwards_refuse_the_wave() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wave.toml");
    std::fs::write(&path, wave_text()).expect("a file");
    let disk = format!(
        "name = 'wave'\n[[node]]\nname = 'smr'\nkind = 'disk'\ndrive = '{}'\n",
        path.display()
    );
    let translation =
        "kind = 'persistent-cache'\nbands = 'fixed:64KiB'\npersistent_cache = '64KiB'";
    let zones = "kind = 'host-managed'\nzone_size = '64KiB'";
    for (layer, written) in [(translation, "bands"), (zones, "zones")] {
        let text = format!("{disk}[[node]]\nname = 'top'\nbelow = 'smr'\n{layer}\n");
        let config = StackConfig::from_text("stack.toml", &text, &[]).expect("a stack");
        let plan = Plan::new(&config, &BuildOptions::simulate(1)).expect("a plan");
        let built = plan.build(None, None, ContentKind::Counted);
        let error = built.err().expect("a refusal").to_string();
        let expected = format!(
            "node `top`: the tracks from block 35 of the disk on overlap downwards, and {written} are \
             written upwards; accepted: tracks that overlap upwards or not at all"
        );
        assert_eq!(error, expected);
    }
}
