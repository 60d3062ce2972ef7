//! A durable persistent cache of which many writes fail at once, as on a host's file system that is
//! full.

use crate::common::crash_disk::{CrashDisk, Medium, Shared};
use crate::common::harness::JumpingClock;
use crate::crash::SET;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Geometry, Media, Survival, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Start;
use imbrex_core::map::BandTable;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, StackBuilder};
use imbrex_core::translation::{
    PersistentCache, PersistentCacheSettings, conventional_blocks_needed,
};
use imbrex_core::units::{BlockCount, Instant};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Blocks of a write of 32 MiB, the longest that NBD has.
const LONGEST: u64 = 8192;
const TRACK: u64 = 64;

fn bands() -> Arc<BandTable> {
    Arc::new(BandTable::new((0..3).map(|_| BlockCount(4096))))
}

fn settings() -> PersistentCacheSettings {
    PersistentCacheSettings {
        packet_blocks_max: BlockCount(128),
        durability: Some(DurabilitySettings::default()),
        ..PersistentCacheSettings::new(BlockCount(3 * LONGEST))
    }
}

fn geometry() -> Geometry {
    let conventional = conventional_blocks_needed(&settings(), &bands(), BlockCount(TRACK));
    let tracks = conventional.0.div_ceil(TRACK);
    // Three bands, the scratch band and a guard for each.
    let table = TrackTable::new([(tracks + 300, TRACK)], BlockCount(tracks * TRACK), 2);
    Geometry {
        blocks: BlockCount(table.blocks()),
        media: Media::Shingled,
        tracks: Some(Arc::new(table)),
        bands: None,
        zones: None,
        log: None,
        survives: Survival::Power,
        is_blank: false,
        rewrite_block: None,
        tells_copies: false,
        copies: None,
    }
}

/// The layer over the medium, and the first block of its log.
fn up(medium: &Medium, start: Start) -> (Engine, Rc<RefCell<Shared>>, u64) {
    let disk = CrashDisk::new(medium, 5, u64::MAX);
    let shared = disk.shared();
    let geometry = geometry();
    let mut builder = StackBuilder::new(5);
    let below = builder.disk(geometry.clone());
    let (layer, above) = PersistentCache::new(settings(), bands(), &geometry).expect("a layout");
    let log = layer.areas().persistent_cache.extent.start.0;
    let node = builder.layer(Box::new(layer), above, &[below]);
    let mut engine = Engine {
        stack: builder.build(node),
        disks: vec![Box::new(disk)],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 128,
    };
    let opened = engine.open(&mut JumpingClock::default(), start);
    opened.unwrap_or_else(|(_, error)| panic!("it does not open: {error}"));
    (engine, shared, log)
}

/// One request.
struct One {
    operation: Operation,
    extent: Extent,
    sent: bool,
    buffer: BufferSlice,
    result: Option<Result<(), IoError>>,
}

impl Frontend for One {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.sent).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        self.sent = true;
        self.buffer = buffers.allocate(self.extent.blocks.0);
        Some(Arrival {
            tag: Tag(0),
            operation: self.operation,
            extent: self.extent,
            buffer: self.buffer,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        buffers.release(self.buffer);
        self.result = Some(completion.result);
    }

    fn finished(&self) -> bool {
        self.result.is_some()
    }
}

fn ask(engine: &mut Engine, operation: Operation, start: u64, blocks: u64) -> Result<(), IoError> {
    let mut one = One {
        operation,
        extent: Extent::new(start, blocks),
        sent: false,
        buffer: BufferSlice::EMPTY,
        result: None,
    };
    engine.run(&mut JumpingClock::default(), &mut one, &mut |_, _| {});
    one.result.expect("an answer")
}

#[test]
fn a_device_of_which_a_long_write_has_failed_opens_again_and_is_mended_by_writing() {
    let mut unreadable = 0;
    for cut in 0..12 {
        let empty = Medium::new(geometry());
        let (mut engine, shared, log) = up(&empty, Start::Format(SET));
        shared.borrow_mut().fails_from = log;
        let failed = ask(&mut engine, Operation::WRITE, 0, LONGEST);
        assert_eq!(failed, Err(IoError::NoSpace));
        let medium = shared.borrow_mut().after_the_cut(&mut Rng::new(cut, 2));
        let (mut engine, _, _) = up(&medium, Start::Recover(Some(SET)));
        let blocks = (0..LONGEST).step_by(64);
        let lost = blocks.filter(|at| ask(&mut engine, Operation::Read, *at, 1).is_err());
        unreadable += lost.count();
        assert_eq!(ask(&mut engine, Operation::WRITE, 0, LONGEST), Ok(()));
        assert_eq!(ask(&mut engine, Operation::Flush, 0, 0), Ok(()));
        assert_eq!(ask(&mut engine, Operation::Read, 0, LONGEST), Ok(()));
    }
    assert!(unreadable > 0, "no cut has kept the records of a loss");
}

#[test]
fn what_is_lost_and_written_again_does_not_add_up() {
    for cut in 0..6 {
        let empty = Medium::new(geometry());
        let (mut engine, shared, log) = up(&empty, Start::Format(SET));
        for round in 0..5 {
            let start = round * 1000;
            shared.borrow_mut().fails_from = log;
            let failed = ask(&mut engine, Operation::WRITE, start, 3000);
            assert_eq!(failed, Err(IoError::NoSpace));
            shared.borrow_mut().fails_from = u64::MAX;
            assert_eq!(ask(&mut engine, Operation::WRITE, start, 3000), Ok(()));
        }
        let medium = shared.borrow_mut().after_the_cut(&mut Rng::new(cut, 2));
        let (mut engine, _, _) = up(&medium, Start::Recover(Some(SET)));
        assert_eq!(ask(&mut engine, Operation::WRITE, 0, LONGEST), Ok(()));
        assert_eq!(ask(&mut engine, Operation::Flush, 0, 0), Ok(()));
    }
}
