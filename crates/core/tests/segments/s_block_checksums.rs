//! Checksums of S-blocks: whatever changes on the disk is an error until it is written again, over
//! rewrites, moves and restarts, and never data.

use crate::common::fixture;
use crate::common::harness::JumpingClock;
use crate::common::journal_disk::{ByteDisk, ByteMedium, Image, block_of};
use crate::common::journal_world::{Host, SET, Step, newest, random_steps, steps_around, wrong};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::Disk;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::durability::block::BlockKind;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::stack::StackBuilder;
use imbrex_core::translation::{
    ChecksumSettings, MILLION, Prefill, RingSize, SBlockLayout, SBlockSettings, SBlocks,
    TrackSource,
};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const DISK_BLOCKS: u64 = 1200;
/// Blocks of the device: two regions of four S-blocks.
const BLOCKS: u64 = 64;
/// Bytes of the table of an S-block in memory: it has eight blocks.
const PAGE_BYTES: u64 = 32;

/// What differs between the stacks: places of a ring, and pages of checksums in memory.
#[derive(Clone, Copy)]
struct Case {
    ring: u64,
    pages: u64,
    seed: u64,
}

fn settings(case: Case) -> SBlockSettings {
    SBlockSettings {
        block: BlockCount(2),
        track: TrackSource::Dense(BlockCount(8)),
        region_tracks: 4,
        spare_ppm: MILLION / 2,
        ring: RingSize::Blocks(case.ring),
        prefill: Prefill::None,
        wanted: Some(BlockCount(BLOCKS)),
        durability: Some(DurabilitySettings { ring_blocks: 16, unflushed_blocks_max: 24 }),
        checksums: Some(ChecksumSettings { memory_bytes: case.pages * PAGE_BYTES }),
        ..SBlockSettings::new()
    }
}

struct World {
    case: Case,
    layout: SBlockLayout,
    engine: Engine,
    clock: JumpingClock,
    medium: Rc<RefCell<ByteMedium>>,
}

impl World {
    fn over(case: Case, medium: ByteMedium) -> World {
        World::with(settings(case), case, medium)
    }

    fn with(settings: SBlockSettings, case: Case, medium: ByteMedium) -> World {
        let medium = Rc::new(RefCell::new(medium));
        let disk = ByteDisk::new(DISK_BLOCKS, &medium, case.seed, 1_000);
        let below = disk.geometry().clone();
        let mut builder = StackBuilder::new(case.seed);
        let node = builder.disk(below.clone());
        let built = SBlocks::new(settings, &below, None);
        let (layer, geometry) = built.expect("a layout");
        let layout = layer.layout().clone();
        let top = builder.layer(Box::new(layer), geometry, &[node]);
        World {
            case,
            layout,
            engine: Engine {
                stack: builder.build(top),
                disks: vec![Box::new(disk)],
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 64,
            },
            clock: JumpingClock::default(),
            medium,
        }
    }

    fn formatted(case: Case) -> World {
        let mut world = World::over(case, ByteMedium::default());
        world.open(Start::Format(SET)).expect("a format");
        world
    }

    fn open(&mut self, start: Start) -> Result<(), OpenError> {
        let opened = self.engine.open(&mut self.clock, start);
        opened.map_err(|(_, error)| error)
    }

    fn play(&mut self, host: &mut Host, steps: Vec<Step>) {
        host.begin(steps, &self.medium);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
        assert_eq!(self.engine.buffers.allocated(), 0, "buffers were lost");
    }

    /// The same disk under a new layer, after a close or without one.
    fn reborn(mut self, closes: bool) -> World {
        if closes {
            let closed = self.engine.close(&mut self.clock);
            closed.expect("a close");
        }
        let mut medium = self.medium.take();
        medium.operations.clear();
        let mut next = World::over(self.case, medium);
        let opened = next.open(Start::Recover(Some(SET)));
        assert_eq!(opened, Ok(()));
        next
    }

    fn read_all(&mut self) -> BTreeMap<u64, Result<u64, ()>> {
        let mut host = Host::new(4);
        let steps = (0..BLOCKS).map(|block| Step::Read(Extent::new(block, 1)));
        self.play(&mut host, steps.collect());
        host.found
    }

    /// Blocks of the device that cannot be read; all others are as they were written last.
    fn bad_blocks(&mut self, when: &str) -> BTreeSet<u64> {
        let found = self.read_all();
        let newest = newest(&self.medium.borrow().happenings);
        assert_eq!(wrong(&found, &newest, true), None, "{when}");
        let bad = found.into_iter().filter(|(_, found)| found.is_err());
        bad.map(|(block, _)| block).collect()
    }

    /// Where the disk has what was last written to a block: there, and where that was moved from.
    fn places_of(&self, block: u64) -> Vec<u64> {
        self.medium.borrow().places_of(block)
    }

    fn is_home(&self, address: u64) -> bool {
        let mut regions = (0..).zip(&self.layout.places);
        regions.any(|(region, place)| {
            let mut all = (0..place.shape.positions()).map(|at| self.layout.position(region, at));
            all.any(|position| position.covers(Extent::new(address, 1)))
        })
    }

    fn flip(&self, address: u64) {
        self.medium.borrow_mut().flip(address);
    }
}

fn write(start: u64, blocks: u64) -> Step {
    Step::Write(Extent::new(start, blocks))
}

/// Writes everywhere, so that each S-block is somewhere, then flushes.
fn filled(case: Case) -> (World, Host) {
    let mut world = World::formatted(case);
    let mut host = Host::new(1);
    let mut steps: Vec<Step> = (0..BLOCKS / 4).map(|at| write(at * 4, 4)).collect();
    steps.push(Step::Flush);
    world.play(&mut host, steps);
    assert_eq!(host.failures, []);
    (world, host)
}

/// Random writes that leave a block alone: they rewrite its S-block, and move it.
fn around(seed: u64, bad: u64) -> Vec<Step> {
    steps_around(seed, 90, BLOCKS, bad)
}

const CASES: [(u64, u64); 4] = [(0, 100), (5, 100), (5, 1), (0, 1)];

fn cases(seeds: u64) -> impl Iterator<Item = Case> {
    let case = |seed, (ring, pages)| Case { ring, pages, seed };
    (0..seeds).flat_map(move |seed| CASES.map(|of_case| case(seed, of_case)))
}

#[test]
fn a_flipped_bit_is_an_error_until_it_is_written() {
    let (mut at_home, mut in_ring) = (0, 0);
    for case in cases(12) {
        let bad = Rng::new(case.seed, 3).below(BLOCKS);
        let (mut world, mut host) = filled(case);
        if case.ring > 0 && case.seed % 2 == 0 {
            world.play(&mut host, vec![write(bad, 1), Step::Flush]);
        }
        let places = world.places_of(bad);
        match places.iter().any(|place| world.is_home(*place)) {
            true => at_home += 1,
            false => in_ring += 1,
        }
        places.iter().for_each(|place| world.flip(*place));
        let only = BTreeSet::from([bad]);
        assert_eq!(world.bad_blocks("flipped"), only);
        for life in 0..4 {
            world.play(&mut host, around(case.seed * 9 + life, bad));
            assert_eq!(host.failures, [], "a rewrite fails for it");
            assert_eq!(world.bad_blocks("rewritten"), only, "life {life}");
            world = world.reborn(life % 2 == 0);
            assert_eq!(world.bad_blocks("restarted"), only, "life {life}");
        }
        world.play(&mut host, vec![write(bad, 1), Step::Flush]);
        assert_eq!(world.bad_blocks("written"), BTreeSet::new());
        world.play(&mut host, around(case.seed, BLOCKS));
        let mut world = world.reborn(false);
        assert_eq!(world.bad_blocks("written, and later"), BTreeSet::new());
    }
    assert!(at_home > 20 && in_ring > 8, "{at_home} {in_ring}");
}

#[test]
fn a_checksum_of_what_was_read_would_be_noticed() {
    let case = Case { ring: 0, pages: 100, seed: 1 };
    let (mut world, mut host) = filled(case);
    world.engine.stack.plant(PlantedBug::SumOfWhatWasRead);
    let places = world.places_of(9);
    places.iter().for_each(|place| world.flip(*place));
    world.play(&mut host, vec![write(8, 1), Step::Flush]);
    let mut reader = Host::new(1);
    let read = || world.play(&mut reader, vec![Step::Read(Extent::new(9, 1))]);
    // The host finds bytes that nobody wrote.
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    assert!(read.is_err());
}

#[test]
fn a_block_that_cannot_be_read_goes_on_as_an_error_and_stops_no_rewrite() {
    for case in cases(6).filter(|case| case.ring == 0) {
        let bad = Rng::new(case.seed, 4).below(BLOCKS);
        let (mut world, mut host) = filled(case);
        let places = world.places_of(bad);
        world.medium.borrow_mut().unreadable.extend(&places);
        let only = BTreeSet::from([bad]);
        assert_eq!(world.bad_blocks("unreadable"), only);
        // The rewrite of its S-block.
        world.play(&mut host, vec![write(bad ^ 2, 1), Step::Flush]);
        // Where it is now the disk reads all of it, and has zeroes.
        world.medium.borrow_mut().unreadable.clear();
        assert_eq!(world.bad_blocks("rewritten"), only);
        world.play(&mut host, around(case.seed, bad));
        assert_eq!(host.failures, []);
        let mut world = world.reborn(case.seed % 2 == 0);
        assert_eq!(world.bad_blocks("moved"), only);
        world.play(&mut host, vec![write(bad, 1), Step::Flush]);
        let mut world = world.reborn(true);
        assert_eq!(world.bad_blocks("written"), BTreeSet::new());
    }
}

#[test]
fn one_read_that_fails_once_costs_nothing() {
    let mut failed = 0;
    for case in cases(3) {
        for nth in 0..20 {
            let (mut world, mut host) = filled(case);
            let next = world.medium.borrow().operations.len() + nth;
            world.medium.borrow_mut().fails = Some(next);
            world.play(&mut host, around(case.seed, BLOCKS));
            let medium = Rc::clone(&world.medium);
            let is_read = |medium: &ByteMedium| {
                let (operation, _) = medium.operations[next];
                operation == imbrex_core::operation::Operation::Read
            };
            if !is_read(&medium.borrow()) {
                continue;
            }
            failed += 1;
            assert_eq!(host.failures, []);
            assert_eq!(world.bad_blocks("after it"), BTreeSet::new());
        }
    }
    assert!(failed > 30, "only {failed}");
}

#[test]
fn a_damaged_page_makes_errors_and_never_wrong_data() {
    for case in cases(6) {
        let (world, _) = filled(case);
        let kind = (BlockKind::ChecksumTable as u16).to_le_bytes();
        let image = world.medium.borrow().image.clone();
        let pages = image.iter().filter(|(_, bytes)| bytes[10..12] == kind);
        let pages: Vec<u64> = pages.map(|(address, _)| *address).collect();
        let inside = |page: &u64| world.layout.tables.covers(Extent::new(*page, 1));
        assert!(pages.len() > 4 && pages.iter().all(inside));
        let page = pages[Rng::new(case.seed, 5).below(pages.len() as u64) as usize];
        world.flip(page);
        let mut world = world.reborn(case.seed % 2 == 0);
        let segment = world.layout.segment;
        let bad = world.bad_blocks("a damaged page");
        let segments: BTreeSet<u64> = bad.iter().map(|block| block / segment).collect();
        // None where the S-block was superseded.
        assert!(segments.len() <= 1 && bad.len() as u64 == segments.len() as u64 * segment);
        let mut host = Host::new(1);
        let all = (0..BLOCKS / 4).map(|at| write(at * 4, 4));
        world.play(&mut host, all.collect());
        assert_eq!(host.failures, []);
        world.medium.borrow_mut().happenings.clear();
        host = Host::new(1);
        let all = (0..BLOCKS / 4).map(|at| write(at * 4, 4));
        world.play(&mut host, all.collect());
        assert_eq!(world.bad_blocks("written"), BTreeSet::new());
    }
}

#[test]
fn no_damage_of_any_block_is_ever_data() {
    let mut errors = 0;
    for case in cases(2) {
        let (mut world, mut host) = filled(case);
        world.play(&mut host, random_steps(case.seed, 60, BLOCKS));
        // The journal block of the last write says what the flush has made durable.
        world.play(&mut host, vec![Step::Flush, write(0, 1)]);
        let closes = case.seed == 0;
        if closes {
            let closed = world.engine.close(&mut world.clock);
            closed.expect("a close");
        }
        let (image, happenings) = {
            let medium = world.medium.borrow();
            (medium.image.clone(), medium.happenings.clone())
        };
        for address in image.keys() {
            errors += damaged(case, (&image, *address), &happenings);
        }
    }
    assert!(errors > 500, "only {errors}");
}

/// Comes up with a flipped bit; counts the blocks that cannot be read.
fn damaged(
    case: Case,
    (image, address): (&Image, u64),
    happenings: &[crate::common::journal_disk::Happening],
) -> usize {
    let medium = ByteMedium { image: image.clone(), ..ByteMedium::default() };
    let mut world = World::over(case, medium);
    world.flip(address);
    if world.open(Start::Recover(Some(SET))).is_err() {
        return 0;
    }
    let found = world.read_all();
    let allowed = crate::common::journal_world::allowed(happenings);
    let when = format!("block {address}, seed {}", case.seed);
    assert_eq!(wrong(&found, &allowed, true), None, "{when}");
    found.values().filter(|found| found.is_err()).count()
}

/// Whose disk is kept as a fixture: it was not closed, and its checkpoint and its records have parts of
/// rings.
const FIXTURE: Case = Case { ring: 5, pages: 100, seed: 4 };

/// The device of the fixture, as it stood when it was cut off.
fn of_fixture() -> World {
    let (mut world, mut host) = filled(FIXTURE);
    world.play(&mut host, random_steps(FIXTURE.seed, 40, BLOCKS));
    let mut world = world.reborn(true);
    let mut host = Host::new(1);
    let steps = [write(3, 1), write(21, 2), write(40, 8), write(22, 1)];
    world.play(&mut host, [&steps[..], &[Step::Flush, write(60, 1)]].concat());
    world
}

#[test]
fn a_disk_of_format_version_1_opens_and_holds_what_it_held() {
    let packed = include_bytes!("../fixtures/format-1/s-blocks.img.xz");
    let image = fixture::image_of(&fixture::unpacked(packed));
    assert_eq!(image.len() as u64, DISK_BLOCKS);
    let medium = ByteMedium { image, ..ByteMedium::default() };
    let mut world = World::over(FIXTURE, medium);
    assert_eq!(world.open(Start::Recover(Some(SET))), Ok(()));
    let (found, same) = (world.read_all(), of_fixture().read_all());
    assert!(found.values().all(|found| found.is_ok()));
    assert_eq!(found, same);

    let mut settings = settings(FIXTURE);
    settings.checksums = None;
    let error = refusal_of(settings, &world);
    assert!(
        matches!(error, OpenError::Settings { .. }),
        "with settings that have no checksums: {error}"
    );
}

/// Why a disk does not open with other settings.
fn refusal_of(settings: SBlockSettings, of: &World) -> OpenError {
    let mut world = World::with(settings, of.case, of.medium.take());
    let opened = world.open(Start::Recover(Some(SET)));
    opened.expect_err("a disk with checksums")
}

/// Writes the disk of [`a_disk_of_format_version_1_opens_and_holds_what_it_held`] again: only for a new
/// version of the format, never for this one.
#[test]
#[ignore = "writes the fixture"]
fn write_the_fixture() {
    let world = of_fixture();
    let image = world.medium.borrow().image.clone();
    let blocks = (0..DISK_BLOCKS).flat_map(|address| block_of(&image, address).to_vec());
    fixture::write("s-blocks.img.xz", blocks.collect());
}
