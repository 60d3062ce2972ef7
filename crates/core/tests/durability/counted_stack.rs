//! A stack of which a great part is mapped, on disks that count what is read and written and take no time.

use crate::common::harness::JumpingClock;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::cache::{Cache, CacheMode, CacheSettings, OpenZones, PeriodCounter};
use imbrex_core::cache::{PolicySettings, PopularityWindow, PoreSettings, ZoneSettings};
use imbrex_core::counters::Gauge;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media, Survival, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::map::BandTable;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::stack::{Arrival, NodeId, StackBuilder};
use imbrex_core::translation::{
    PersistentCache, PersistentCacheSettings, conventional_blocks_needed,
};
use imbrex_core::units::{BlockCount, Instant};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

pub const BLOCK: usize = 4096;
pub const SET: Uuid = Uuid([5; 16]);
const BAND_BLOCKS: u64 = 4096;
const TRACK_BLOCKS: u64 = 256;
/// Host requests in flight at once.
pub const DEPTH: usize = 64;

/// What a block holds: the host's blocks are zeroes behind one number, which keeps gigabytes of
/// them small.
enum Content {
    Number(u64),
    Bytes(Box<[u8]>),
}

/// What outlives the stop, and how much of it was read and written.
#[derive(Default)]
pub struct Medium {
    blocks: BTreeMap<u64, Content>,
    pub read_bytes: u64,
    pub written_blocks: u64,
}

impl Medium {
    fn write(&mut self, at: u64, data: &[u8]) {
        self.written_blocks += 1;
        let (number, rest) = data.split_at(8);
        let content = match rest.iter().all(|byte| *byte == 0) {
            true => Content::Number(u64::from_le_bytes(number.try_into().expect("8 bytes"))),
            false => Content::Bytes(data.into()),
        };
        self.blocks.insert(at, content);
    }

    fn read(&mut self, at: u64, target: &mut [u8]) {
        self.read_bytes += BLOCK as u64;
        target.fill(0);
        match self.blocks.get(&at) {
            Some(Content::Number(number)) => target[..8].copy_from_slice(&number.to_le_bytes()),
            Some(Content::Bytes(bytes)) => target.copy_from_slice(bytes),
            None => {}
        }
    }
}

/// A disk that takes no time.
struct CountedDisk {
    geometry: Geometry,
    medium: Rc<RefCell<Medium>>,
    done: VecDeque<DiskCompletion>,
}

impl Disk for CountedDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, _now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let mut medium = self.medium.borrow_mut();
        let extent = op.extent;
        let blocks = extent.start.0..extent.end().0;
        match op.operation {
            Operation::Read => {
                let bytes = buffers.bytes_mut(op.buffer).expect("bytes");
                for (at, target) in blocks.zip(bytes.chunks_exact_mut(BLOCK)) {
                    medium.read(at, target);
                }
            }
            Operation::Write { .. } => {
                let bytes = buffers.bytes(op.buffer).expect("bytes");
                for (at, data) in blocks.zip(bytes.chunks_exact(BLOCK)) {
                    medium.write(at, data);
                }
            }
            Operation::Zero { .. } => blocks.for_each(|at| {
                medium.blocks.remove(&at);
            }),
            _ => {}
        }
        let (id, result) = (op.id, Ok(()));
        self.done.push_back(DiskCompletion { id, result });
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.done.pop_front()
    }

    fn next_event(&self) -> Option<Instant> {
        (!self.done.is_empty()).then_some(Instant::ZERO)
    }
}

/// Writes, or reads and checks, `blocks`, each of one block and each with its own number in it.
pub struct Host<I> {
    blocks: I,
    next: Option<u64>,
    operation: Operation,
    depth: usize,
    in_flight: BTreeMap<u64, BufferSlice>,
}

impl<I: Iterator<Item = u64>> Host<I> {
    pub fn play(engine: &mut Engine, (operation, depth): (Operation, usize), mut blocks: I) {
        let next = blocks.next();
        let mut host = Host { blocks, next, operation, depth, in_flight: BTreeMap::new() };
        engine.run(&mut JumpingClock::default(), &mut host, &mut |_, _| ());
    }
}

impl<I: Iterator<Item = u64>> Frontend for Host<I> {
    fn next_arrival(&self) -> Option<Instant> {
        (self.next.is_some() && self.in_flight.len() < self.depth).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        let block = self.next?;
        self.next = self.blocks.next();
        let buffer = buffers.allocate(1);
        let bytes = buffers.bytes_mut(buffer).expect("bytes");
        bytes.fill(0);
        let operation = self.operation;
        if operation != Operation::Read {
            bytes[..8].copy_from_slice(&(block + 1).to_le_bytes());
        }
        self.in_flight.insert(block, buffer);
        Some(Arrival { tag: Tag(block), operation, extent: Extent::new(block, 1), buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let block = completion.tag.0;
        let buffer = self.in_flight.remove(&block).expect("one answer");
        assert_eq!(completion.result, Ok(()), "block {block}");
        if self.operation == Operation::Read {
            let bytes = buffers.bytes(buffer).expect("bytes");
            assert_eq!(bytes[..8], (block + 1).to_le_bytes(), "block {block}");
        }
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        self.next.is_none() && self.in_flight.is_empty()
    }
}

/// Which layer the mapped blocks are in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mapped {
    /// Dirty in a PORE cache over a translation.
    Cache,
    /// In the log of a translation.
    Log,
}

/// The stack over the media, with room for `mapped` blocks, and its upper layer.
pub fn engine(kind: Mapped, mapped: u64, media: &[Rc<RefCell<Medium>>; 2]) -> (Engine, NodeId) {
    let bands = 2 * mapped / BAND_BLOCKS + 1;
    let bands = Arc::new(BandTable::new((0..bands).map(|_| BlockCount(BAND_BLOCKS))));
    let durability = Some(DurabilitySettings::default());
    let log = match kind {
        Mapped::Cache => 2 * BAND_BLOCKS,
        Mapped::Log => mapped + mapped / 8 + 2 * BAND_BLOCKS,
    };
    let settings =
        PersistentCacheSettings { durability, ..PersistentCacheSettings::new(BlockCount(log)) };
    let needed = conventional_blocks_needed(&settings, &bands, BlockCount(TRACK_BLOCKS));
    let tracks = needed.0.div_ceil(TRACK_BLOCKS);
    let shingled = 2 * (2 * mapped + BAND_BLOCKS) / TRACK_BLOCKS + 1024;
    let runs = [(tracks + shingled, TRACK_BLOCKS)];
    let tracks = TrackTable::new(runs, BlockCount(tracks * TRACK_BLOCKS), 1);
    let disk = |geometry: &Geometry, medium: &Rc<RefCell<Medium>>| -> Box<dyn Disk> {
        Box::new(CountedDisk {
            geometry: geometry.clone(),
            medium: Rc::clone(medium),
            done: VecDeque::new(),
        })
    };
    let mut builder = StackBuilder::new(1);
    let geometry = Geometry {
        blocks: BlockCount(tracks.blocks()),
        media: Media::Shingled,
        tracks: Some(Arc::new(tracks)),
        bands: None,
        zones: None,
        log: None,
        survives: Survival::Power,
        is_blank: false,
        rewrite_block: None,
        tells_copies: false,
        copies: None,
    };
    let smr = builder.disk(geometry.clone());
    let mut disks = vec![disk(&geometry, &media[0])];
    let (layer, above) = PersistentCache::new(settings, bands, &geometry).expect("a layout");
    let mut top = builder.layer(Box::new(layer), above, &[smr]);
    if kind == Mapped::Cache {
        let flash = Geometry::plain(BlockCount(2 * mapped + 65_536), Media::SolidState);
        let ssd = builder.disk(flash.clone());
        disks.push(disk(&flash, &media[1]));
        let settings = CacheSettings {
            durability,
            destage: Durability::Durable,
            capacity_blocks: mapped + 64,
            spare_slots: None,
            destage_slots_max: 64,
            mode: CacheMode::ReadWrite,
            policy: PolicySettings::Pore(PoreSettings {
                zones: ZoneSettings::Equal(BAND_BLOCKS),
                batch: 1,
                period_blocks: mapped,
                period_counter: PeriodCounter::WriteMiss,
                popularity_window: PopularityWindow::Period,
                access_floor: 1,
                open_zones: OpenZones::Bl,
            }),
        };
        let (cache, above) =
            Cache::new(settings, builder.geometry(ssd), builder.geometry(top)).expect("settings");
        top = builder.layer(Box::new(cache), above, &[ssd, top]);
    }
    let engine = Engine {
        stack: builder.build(top),
        disks,
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: DEPTH as u32,
    };
    (engine, top)
}

/// Dirty blocks, or entries of the log, that the upper layer says it holds.
pub fn held(kind: Mapped, engine: &Engine, top: NodeId) -> u64 {
    let gauge = match kind {
        Mapped::Cache => Gauge::DirtyBlocks,
        Mapped::Log => Gauge::PersistentCacheEntries,
    };
    engine.stack.counts(top).gauge(gauge)
}

/// The time of the machine, which is printed and never judged.
#[expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "how long a recovery takes is told, no test depends on it"
)]
pub fn stopwatch() -> impl Fn() -> std::time::Duration {
    let began = std::time::Instant::now();
    move || began.elapsed()
}
