//! The host-managed disk over a shingled medium that destroys what a write overlaps.

use crate::common::harness::{JumpingClock, MemoryDisk, Step, play};
use crate::common::zoned::settings;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind, Stamp};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media, TrackTable};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, NodeId, Stack, StackBuilder};
use imbrex_core::units::{BlockCount, Duration, Instant, Lba};
use imbrex_core::zone::{DESCRIPTOR_BYTES, ZoneCondition, ZoneDescriptor, ZoneGeometry, ZoneModel};
use imbrex_core::zoned::{HostManaged, HostManagedSettings};
use std::sync::Arc;

/// Zones of 20 blocks on tracks of 6 and 4: two conventional, six others and a runt of 9.
pub const ZONE: u64 = 20;
pub const CONVENTIONAL: u64 = 2;
pub const ZONES: u64 = 9;
pub const BLOCKS: u64 = 8 * ZONE + 9;

pub fn zones(open_max: Option<u32>, active_max: Option<u32>) -> ZoneGeometry {
    ZoneGeometry {
        model: ZoneModel::HostManaged,
        blocks: BlockCount(BLOCKS),
        zone_blocks: BlockCount(ZONE),
        conventional_zones: CONVENTIONAL as u32,
        open_max,
        active_max,
        optimal_open: None,
        optimal_non_sequential: None,
    }
}

fn shingled_disk(seed: u64) -> MemoryDisk {
    let tracks = TrackTable::new([(8, 6), (80, 4)], BlockCount(48), 1 + seed % 3);
    let geometry = Geometry {
        tracks: Some(Arc::new(tracks)),
        ..Geometry::plain(BlockCount(48 + 80 * 4), Media::Shingled)
    };
    MemoryDisk::new(geometry, seed, 1_000).destructive()
}

pub fn stack(
    seed: u64,
    settings: HostManagedSettings,
    zones: ZoneGeometry,
    disk: &dyn Disk,
) -> (Stack, NodeId) {
    let mut builder = StackBuilder::new(seed);
    let below = builder.disk(disk.geometry().clone());
    let (layer, geometry) = HostManaged::new(settings, zones, disk.geometry()).expect("a layout");
    let node = builder.layer(Box::new(layer), geometry, &[below]);
    (builder.build(node), node)
}

/// One operation at a time, with the stamps it wrote or read.
pub struct Host {
    pub engine: Engine,
    pub node: NodeId,
    clock: JumpingClock,
    now: Instant,
    version: u64,
}

struct One {
    arrival: Option<(Operation, Extent, BufferSlice)>,
    at: Instant,
    result: Option<(Result<(), IoError>, Instant)>,
}

impl Frontend for One {
    fn next_arrival(&self) -> Option<Instant> {
        self.arrival.map(|_| self.at)
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        let (operation, extent, buffer) = self.arrival.take()?;
        Some(Arrival { tag: Tag(0), operation, extent, buffer })
    }

    fn reply(&mut self, now: Instant, completion: Completion, _buffers: &mut Buffers) {
        self.result = Some((completion.result, now));
    }

    fn finished(&self) -> bool {
        self.result.is_some()
    }
}

impl Host {
    pub fn new(stack: (Stack, NodeId), disk: Box<dyn Disk>, kind: ContentKind) -> Host {
        Host {
            engine: Engine {
                stack: stack.0,
                disks: vec![disk],
                buffers: Buffers::new(kind),
                in_flight_max: 1,
            },
            node: stack.1,
            clock: JumpingClock::default(),
            now: Instant::ZERO,
            version: 0,
        }
    }

    pub fn over(seed: u64, settings: HostManagedSettings, zones: ZoneGeometry) -> Host {
        let disk = shingled_disk(seed);
        let stack = stack(seed, settings, zones, &disk);
        Host::new(stack, Box::new(disk), ContentKind::Stamped)
    }

    fn run(
        &mut self,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
    ) -> (Result<(), IoError>, Duration) {
        let mut one =
            One { arrival: Some((operation, extent, buffer)), at: self.now, result: None };
        let began = self.now;
        self.engine.run(&mut self.clock, &mut one, &mut |_, _| {});
        let (result, now) = one.result.expect("an answer");
        self.now = now;
        (result, now.since(began))
    }

    pub fn command(&mut self, operation: Operation, zone: u64) -> Result<(), IoError> {
        let blocks = ZONE.min(BLOCKS - zone * ZONE);
        let extent = Extent::new(zone * ZONE, blocks);
        self.run(operation, extent, BufferSlice::EMPTY).0
    }

    /// Writes with a version of its own, which is returned.
    pub fn write(&mut self, start: u64, blocks: u64) -> Result<u64, IoError> {
        self.version += 1;
        let buffer = self.engine.buffers.allocate(blocks);
        if let Some(stamps) = self.engine.buffers.stamps_mut(buffer) {
            for (i, stamp) in (start..).zip(stamps) {
                *stamp = Stamp { lba: Lba(i), version: self.version };
            }
        }
        let (result, _) = self.run(Operation::WRITE, Extent::new(start, blocks), buffer);
        self.engine.buffers.release(buffer);
        result.map(|()| self.version)
    }

    /// The versions of the blocks; none is of another address.
    pub fn read(&mut self, start: u64, blocks: u64) -> Result<Vec<u64>, IoError> {
        let buffer = self.engine.buffers.allocate(blocks);
        let (result, _) = self.run(Operation::Read, Extent::new(start, blocks), buffer);
        let stamps = self.engine.buffers.stamps(buffer).expect("stamped").to_vec();
        self.engine.buffers.release(buffer);
        result?;
        for (block, stamp) in (start..).zip(&stamps) {
            let is_own = *stamp == Stamp::ZERO || stamp.lba == Lba(block);
            assert!(is_own, "block {block} reads {stamp:?}");
        }
        Ok(stamps.iter().map(|stamp| stamp.version).collect())
    }

    fn count(&self, counter: Counter) -> u64 {
        self.engine.stack.counts(self.node).counter(counter)
    }
}

/// Writes at the write pointers of random zones, and reads anywhere.
pub fn sequential_steps(seed: u64, count: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 6);
    let mut pointers = [0; ZONES as usize];
    let mut steps = Vec::new();
    for _ in 0..count {
        let zone = rng.below(ZONES);
        let end = ZONE.min(BLOCKS - zone * ZONE);
        let pointer = &mut pointers[zone as usize];
        let extent = |at: u64, blocks| Extent::new(zone * ZONE + at, blocks);
        steps.push(match rng.below(10) {
            0..=5 if zone < CONVENTIONAL => {
                let at = rng.below(end);
                Step::Write(extent(at, 1 + rng.below(end - at)))
            }
            0..=6 if *pointer < end => {
                let blocks = 1 + rng.below((end - *pointer).min(7));
                let at = *pointer;
                *pointer += blocks;
                match rng.below(8) {
                    0 => Step::Zero(extent(at, blocks)),
                    1 => Step::WriteDurable(extent(at, blocks)),
                    _ => Step::Write(extent(at, blocks)),
                }
            }
            9 => Step::Flush,
            // Reads end at the write pointer: one past it would hold back a write to what it
            // reads, and the write behind that one would come first.
            _ => {
                let end = if zone < CONVENTIONAL { end } else { *pointer };
                let start = rng.below(end.max(1));
                match end {
                    0 => Step::Flush,
                    _ => Step::Read(extent(start, 1 + rng.below(end - start))),
                }
            }
        });
    }
    steps
}

#[test]
fn writes_in_flight_reach_a_destructive_medium_in_order() {
    for seed in 0..300 {
        let disk = shingled_disk(seed);
        let (stack, _) = stack(seed, settings(), zones(Some(3), None), &disk);
        let depth = [1, 2, 8, 16][(seed % 4) as usize];
        let engine = play(stack, vec![disk], sequential_steps(seed, 150), depth)
            .unwrap_or_else(|failure| panic!("seed {seed}, queue depth {depth}: {failure}"));
        assert!(engine.stack.is_quiet() && engine.buffers.allocated() == 0);
    }
}

#[test]
fn at_the_open_limit_only_implicitly_open_zones_give_way() {
    let mut host = Host::over(1, settings(), zones(Some(2), None));
    let error = {
        host.write(3 * ZONE, 4).unwrap();
        host.command(Operation::ZoneOpen, 4).unwrap();
        // Zone 3 is closed for zone 5, as the only one that was opened by a write.
        host.write(5 * ZONE, 1).unwrap();
        assert_eq!(host.count(Counter::ZonesClosedForOthers), 1);
        host.command(Operation::ZoneOpen, 5).unwrap();
        host.write(3 * ZONE + 4, 1).unwrap_err()
    };
    assert_eq!(error, IoError::ZoneResources);
    assert_eq!(
        error.to_string(),
        "no further zone can be open (CHECK CONDITION, DATA PROTECT, INSUFFICIENT ZONE RESOURCES)"
    );
    assert_eq!(host.command(Operation::ZoneOpen, 6), Err(error));
    assert_eq!(host.command(Operation::ZoneFinish, 6), Err(error));
    assert_eq!(host.count(Counter::WritesWithoutZoneResources), 1);
    let counts = host.engine.stack.counts(host.node);
    assert_eq!(counts.gauge(Gauge::OpenZones), 2);
    assert_eq!(counts.gauge(Gauge::ClosedZones), 1);
    assert_eq!(host.read(3 * ZONE, 6).unwrap(), [1, 1, 1, 1, 0, 0]);
    // A closed zone makes room.
    host.command(Operation::ZoneClose, 5).unwrap();
    host.write(3 * ZONE + 4, 1).unwrap();
}

#[test]
fn refused_writes_are_counted_by_reason_and_change_nothing() {
    let mut host = Host::over(2, settings(), zones(None, None));
    host.write(2 * ZONE, ZONE).unwrap();
    let rows = [
        (2 * ZONE, 1, IoError::InvalidField, Counter::WritesToFullZones),
        (3 * ZONE + 1, 1, IoError::UnalignedWrite, Counter::WritesOffPointer),
        (3 * ZONE, ZONE + 1, IoError::WriteBoundary, Counter::WritesAcrossZones),
        (2 * ZONE - 1, 2, IoError::WriteBoundary, Counter::WritesAcrossZones),
    ];
    for (start, blocks, error, counter) in rows {
        let before = host.count(counter);
        assert_eq!(host.write(start, blocks), Err(error));
        assert_eq!(host.count(counter), before + 1);
    }
    assert_eq!(host.read(0, BLOCKS).unwrap().iter().sum::<u64>(), ZONE);
    assert_eq!(host.count(Counter::ReadsPastPointer), 1);
}

#[test]
fn restricted_reads_end_at_the_write_pointer_and_at_the_zone() {
    let restricted = HostManagedSettings { unrestricted_reads: false, ..settings() };
    let mut host = Host::over(3, restricted, zones(None, None));
    host.write(2 * ZONE, 5).unwrap();
    assert_eq!(host.read(2 * ZONE, 5).unwrap(), [1; 5]);
    assert_eq!(host.read(2 * ZONE, 6), Err(IoError::ReadInvalidData));
    assert_eq!(host.read(3 * ZONE, 1), Err(IoError::ReadInvalidData));
    assert_eq!(host.read(3 * ZONE - 1, 2), Err(IoError::ReadBoundary));
    assert_eq!(host.read(ZONE - 1, 2).unwrap(), [0; 2], "both are conventional");
    host.command(Operation::ZoneFinish, 2).unwrap();
    assert_eq!(host.read(2 * ZONE, ZONE).unwrap()[..6], [1, 1, 1, 1, 1, 0]);
    assert_eq!(host.count(Counter::ZoneReadsRefused), 3);
}

#[test]
fn lost_zones_say_so() {
    let injected =
        HostManagedSettings { read_only_zones: vec![1, 3], offline_zones: vec![4], ..settings() };
    let mut host = Host::over(4, injected, zones(None, None));
    for (zone, error) in
        [(1, IoError::ZoneReadOnly), (3, IoError::ZoneReadOnly), (4, IoError::ZoneOffline)]
    {
        assert_eq!(host.write(zone * ZONE, 1), Err(error));
        assert!(host.command(Operation::ZoneReset, zone).is_err());
    }
    assert_eq!(host.read(3 * ZONE, 1).unwrap(), [0]);
    assert_eq!(host.read(4 * ZONE - 1, 2), Err(IoError::ZoneOffline));
    assert_eq!(host.count(Counter::WritesToLostZones), 3);
}

/// A disk on which one block cannot be written.
struct BadBlock {
    disk: MemoryDisk,
    block: u64,
    failed: Vec<DiskCompletion>,
}

impl Disk for BadBlock {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let is_write = matches!(op.operation, Operation::Write { .. });
        if is_write && op.extent.contains(Lba(self.block)) {
            let result = Err(IoError::Medium);
            return self.failed.push(DiskCompletion { id: op.id, result });
        }
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.failed.pop().or_else(|| self.disk.poll(now, buffers))
    }

    fn next_event(&self) -> Option<Instant> {
        match self.failed.is_empty() {
            true => self.disk.next_event(),
            false => Some(Instant::ZERO),
        }
    }
}

#[test]
fn a_write_that_fails_below_makes_its_zone_read_only() {
    let disk = shingled_disk(0);
    let stack = stack(0, settings(), zones(None, None), &disk);
    // Zone 2 is the first behind the conventional ones, which end at block 40 in track 7.
    let bad = BadBlock { disk, block: 42 + 7, failed: Vec::new() };
    let mut host = Host::new(stack, Box::new(bad), ContentKind::Stamped);
    host.write(2 * ZONE, 5).unwrap();
    assert_eq!(host.write(2 * ZONE + 5, 5), Err(IoError::Medium));
    assert_eq!(host.write(2 * ZONE + 10, 1), Err(IoError::ZoneReadOnly));
    assert_eq!(host.command(Operation::ZoneReset, 2), Err(IoError::ZoneReadOnly));
    assert_eq!(host.read(2 * ZONE, 7).unwrap(), [1, 1, 1, 1, 1, 0, 0]);
    let counts = host.engine.stack.counts(host.node);
    assert_eq!(counts.gauge(Gauge::OpenZones), 0);
}

#[test]
fn a_report_tells_the_state_of_every_zone_and_takes_its_time() {
    let disk = shingled_disk(5);
    let injected = HostManagedSettings { offline_zones: vec![7], ..settings() };
    let stack = stack(5, injected, zones(None, None), &disk);
    let geometry = disk.geometry().clone();
    drop(disk);
    // A disk of bytes, so that the report can be read.
    let bytes = BytesDisk { geometry, done: Vec::new() };
    let mut host = Host::new(stack, Box::new(bytes), ContentKind::Bytes);
    host.write(2 * ZONE, 7).unwrap();
    host.write(3 * ZONE, ZONE).unwrap();
    host.command(Operation::ZoneOpen, 4).unwrap();
    host.write(5 * ZONE, 3).unwrap();
    host.command(Operation::ZoneClose, 5).unwrap();
    let buffer = host.engine.buffers.allocate(1);
    let (result, took) = host.run(Operation::ZoneReport, Extent::new(ZONE, 1), buffer);
    assert_eq!((result, took), (Ok(()), Duration(100)));
    let bytes = host.engine.buffers.bytes(buffer).expect("bytes").to_vec();
    let zones: Vec<(ZoneCondition, Option<u64>)> = bytes
        .chunks_exact(DESCRIPTOR_BYTES)
        .skip(1)
        .map_while(|bytes| ZoneDescriptor::decode(bytes.try_into().unwrap()))
        .map(|zone| {
            let pointer = zone.write_pointer;
            (zone.condition, pointer.map(|p| p.offset_from(zone.extent.start)))
        })
        .collect();
    assert_eq!(
        zones,
        [
            (ZoneCondition::NoWritePointer, None),
            (ZoneCondition::ImplicitlyOpen, Some(7)),
            (ZoneCondition::Full, None),
            (ZoneCondition::ExplicitlyOpen, Some(0)),
            (ZoneCondition::Closed, Some(3)),
            (ZoneCondition::Empty, Some(0)),
            (ZoneCondition::Offline, None),
            (ZoneCondition::Empty, Some(0)),
        ]
    );
}

/// Answers at once and holds nothing.
struct BytesDisk {
    geometry: Geometry,
    done: Vec<DiskCompletion>,
}

impl Disk for BytesDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, _now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        let result = Ok(());
        self.done.push(DiskCompletion { id: op.id, result });
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.done.pop()
    }

    fn next_event(&self) -> Option<Instant> {
        (!self.done.is_empty()).then_some(Instant::ZERO)
    }
}
