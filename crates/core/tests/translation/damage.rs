//! Whatever is damaged on the disk of a durable translation: it is repaired or reported, and never
//! wrong.

use crate::common::damage::{Damage, Target, add_fields, data, fields_of_block};
use crate::common::fixture;
use crate::common::harness::JumpingClock;
use crate::common::journal_disk::{ByteDisk, ByteMedium, Happening, Image, block_of};
use crate::common::journal_world::{Host, SET, Step, allowed, newest, random_steps, wrong};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::durability::block::{
    self, BlockKind, Expected, Field, HEADER_BYTES, PAYLOAD_BYTES,
};
use imbrex_core::durability::superblock::Superblock;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::map::BandTable;
use imbrex_core::rng::Rng;
use imbrex_core::stack::StackBuilder;
use imbrex_core::translation::records::RECORDS;
use imbrex_core::translation::{
    BypassSettings, PersistentCache, PersistentCacheSettings, RewriteSettings, codec,
};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

const DISK_BLOCKS: u64 = 4096;
const BLOCKS: u64 = 60;
/// Whose disk is kept as a fixture: its checkpoint has every part that a checkpoint can have.
const FIXTURE_SEED: u64 = 167;
/// Whose checkpoint, when bands are rewritten in stretches, has one in the scratch band.
const STRETCH_SEED: u64 = 6;
/// Forced writes after which the small ring has made a checkpoint necessary.
const CHECKPOINT_AFTER: u64 = 10;

/// How a life ends, without a close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// A little after a checkpoint.
    AfterCheckpoint,
    /// The same, and the checkpoint has room for records behind its map, for the log is longer.
    AfterRecordParts,
    /// Wherever the random requests end.
    Anywhere,
    /// With a stream that fills the last band, which was empty.
    WithStream,
    /// With a write of [`FAILED`] that fails.
    WithFailedWrite,
}

/// The block whose write has failed.
const FAILED: u64 = 20;

/// Whether bands are rewritten in stretches, and what the device lives through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    seed: u64,
    in_stretches: bool,
    end: End,
}

/// The disk of the fixture, others, and some whose bands of 20 and 24 blocks go through a buffer of 8:
/// together their journals and checkpoints have everything that there is.
const CASES: [Case; 9] = [
    Case::whole(1),
    Case::whole(FIXTURE_SEED),
    Case::whole(22).ending(End::Anywhere),
    Case::whole(1).ending(End::WithStream),
    Case::whole(1).ending(End::WithFailedWrite),
    Case::whole(1).ending(End::AfterRecordParts),
    Case::in_stretches(19),
    Case::in_stretches(STRETCH_SEED),
    Case::in_stretches(22).ending(End::Anywhere),
];

impl Case {
    const fn whole(seed: u64) -> Case {
        Case { seed, in_stretches: false, end: End::AfterCheckpoint }
    }

    pub const fn in_stretches(seed: u64) -> Case {
        Case { seed, in_stretches: true, end: End::AfterCheckpoint }
    }

    const fn ending(self, end: End) -> Case {
        Case { end, ..self }
    }
}

pub struct World {
    engine: Engine,
    clock: JumpingClock,
    pub medium: Rc<RefCell<ByteMedium>>,
}

impl World {
    pub fn over(case: Case, image: &Image) -> World {
        let medium =
            Rc::new(RefCell::new(ByteMedium { image: image.clone(), ..ByteMedium::default() }));
        let disk = ByteDisk::new(DISK_BLOCKS, &medium, 1, 1_000);
        let settings = PersistentCacheSettings {
            durability: Some(DurabilitySettings { ring_blocks: 16, unflushed_blocks_max: 24 }),
            bypass: Some(BypassSettings::after(BlockCount(2))),
            rewrite: RewriteSettings {
                merge_buffer_blocks: case.in_stretches.then_some(BlockCount(8)),
                ..RewriteSettings::default()
            },
            ..PersistentCacheSettings::new(BlockCount(match case.end {
                End::AfterRecordParts => 400,
                _ => 24,
            }))
        };
        let bands = Arc::new(BandTable::new([20, 24, 16].map(BlockCount)));
        let mut builder = StackBuilder::new(3);
        let mut below = disk.geometry().clone();
        if case.in_stretches {
            let tracks = TrackTable::new([(DISK_BLOCKS / 4, 4)], BlockCount(3000), 1);
            below.tracks = Some(Arc::new(tracks));
        }
        let node = builder.disk(below.clone());
        let (layer, geometry) = PersistentCache::new(settings, bands, &below).expect("a layout");
        let top = builder.layer(Box::new(layer), geometry, &[node]);
        World {
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

    pub fn open(&mut self, start: Start) -> Result<(), OpenError> {
        let opened = self.engine.open(&mut self.clock, start);
        opened.map_err(|(_, error)| error)
    }

    pub fn play(&mut self, host: &mut Host, steps: Vec<Step>) {
        host.begin(steps, &self.medium);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
    }

    pub fn read_all(&mut self) -> BTreeMap<u64, Result<u64, ()>> {
        let mut host = Host::new(4);
        let steps = (0..BLOCKS).map(|block| Step::Read(Extent::new(block, 1)));
        self.play(&mut host, steps.collect());
        host.found
    }
}

/// A disk that stopped without a close, and all that happened to it.
fn stopped(case: Case) -> (Image, Vec<Happening>) {
    let mut world = World::over(case, &Image::new());
    world.open(Start::Format(SET)).expect("a format");
    let mut host = Host::new(4);
    world.play(&mut host, random_steps(case.seed, 120, BLOCKS));
    host.queue_depth = 1;
    match case.end {
        End::AfterCheckpoint | End::AfterRecordParts => {
            after_a_checkpoint(&mut world, &mut host);
        }
        End::Anywhere => world.play(&mut host, vouched_for()),
        End::WithStream => {
            // Few requests, so that no checkpoint takes their records away.
            let stream = [(40, 4), (44, 8), (52, 8)];
            let stream = stream.map(|(at, blocks)| Step::Write(Extent::new(at, blocks)));
            let empty = [Step::Zero(Extent::new(44, 16)), Step::Flush];
            let steps = empty.into_iter().chain(stream).chain(vouched_for());
            world.play(&mut host, steps.collect());
        }
        End::WithFailedWrite => {
            world.play(&mut host, vouched_for());
            let next = world.medium.borrow().operations.len();
            world.medium.borrow_mut().fails = Some(next);
            world.play(&mut host, vec![Step::Write(Extent::new(FAILED, 1))]);
            assert_eq!(host.failures.len(), 1);
            host.failures.clear();
        }
    }
    assert_eq!(host.failures, []);
    let medium = world.medium.borrow();
    (medium.image.clone(), medium.happenings.clone())
}

/// A flush, and a journal block behind it that says what was durable.
fn vouched_for() -> Vec<Step> {
    vec![Step::Flush, Step::Write(Extent::new(FAILED, 1))]
}

fn after_a_checkpoint(world: &mut World, host: &mut Host) {
    // A stream into an empty band goes straight home; a checkpoint follows.
    let stream =
        [(42, 2), (44, 3), (47, 2)].map(|(at, blocks)| Step::Write(Extent::new(at, blocks)));
    let mut steps = vec![Step::Zero(Extent::new(44, 16))];
    steps.extend(stream);
    steps.extend((0..CHECKPOINT_AFTER).map(|_| Step::WriteDurable(Extent::new(1, 1))));
    world.play(host, steps);
    let several = Step::Write(Extent::new(8, 3));
    let last = Step::Write(Extent::new(20, 1));
    let forced = Step::WriteDurable(Extent::new(3, 1));
    world.play(host, vec![forced, several, Step::Flush, last]);
}

/// What a checkpoint is made of.
const CHECKPOINT_TABLES: [&[Field]; 11] = [
    &codec::HEAD_FIELDS,
    &codec::ENTRY_FIELDS,
    &codec::CHECKSUM_FIELDS,
    &codec::RANGES_FIELDS,
    &codec::RANGE_FIELDS,
    &codec::SCRATCH_HELD_FIELDS,
    &codec::SCRATCH_FIELDS,
    &codec::STRETCH_FIELDS,
    &codec::BAND_FIELDS,
    &codec::OPEN_BANDS_FIELDS,
    &codec::OPEN_FIELDS,
];

/// Every field of the checkpoint, found by its tables alone.
struct CheckpointFields {
    bytes: Vec<u8>,
    at: usize,
    targets: Vec<Target>,
    start: u64,
}

impl CheckpointFields {
    /// Takes a structure, and returns where it begins.
    fn take(&mut self, fields: &[Field]) -> usize {
        let from = self.at;
        // No structure lies in two pages: each field is a word or a part of one.
        for field in fields {
            let at = from + field.offset;
            let address = self.start + (at / PAYLOAD_BYTES) as u64;
            let in_page = Field { offset: 0, ..*field };
            let place = HEADER_BYTES + at % PAYLOAD_BYTES;
            add_fields(&mut self.targets, "checkpoint", address, place, &[in_page]);
            self.at = at + field.bytes;
        }
        from
    }

    /// The number at a place.
    fn number(&self, at: usize, bytes: usize) -> u64 {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&self.bytes[at..at + bytes]);
        u64::from_le_bytes(word)
    }

    /// Takes a structure whose field of that name says how often something follows.
    fn count(&mut self, fields: &[Field], name: &str) -> u64 {
        let at = self.take(fields);
        let mut named = fields.iter().filter(|field| field.name == name);
        let field = named.next().expect("a field of the table");
        self.number(at + field.offset, field.bytes)
    }

    fn checksums(&mut self, count: u64) {
        (0..count).for_each(|_| _ = self.take(&codec::CHECKSUM_FIELDS));
        self.at = self.at.next_multiple_of(8);
    }
}

fn checkpoint_fields(image: &Image, root: &Superblock) -> Vec<Target> {
    let start = 2 + u64::from(root.checkpoint_place) * root.checkpoint_blocks;
    let mut bytes = Vec::new();
    let mut of_map = None;
    for page in 0..root.pages() {
        let expected = Expected::new(BlockKind::CheckpointPage, Some(root.member), start + page);
        let block = block_of(image, start + page);
        let (header, payload) = block::unseal(&block, expected).expect("a page");
        if *of_map.get_or_insert(header.generation) == header.generation {
            bytes.extend_from_slice(payload);
        }
    }
    let length = bytes.len();
    let mut fields = CheckpointFields { bytes, at: 0, targets: Vec::new(), start };
    let entries = fields.count(&codec::HEAD_FIELDS, "log_entries");
    let bands = codec::HEAD_FIELDS.iter().find(|field| field.name == "bands");
    let bands = fields.number(bands.expect("a field").offset, 8);
    for _ in 0..entries {
        let blocks = fields.count(&codec::ENTRY_FIELDS, "entry_blocks");
        fields.checksums(blocks);
    }
    for _ in ["zeroed", "lost"] {
        for _ in 0..fields.count(&codec::RANGES_FIELDS, "ranges") {
            fields.take(&codec::RANGE_FIELDS);
        }
    }
    let held = fields.count(&codec::SCRATCH_HELD_FIELDS, "scratch_held");
    if held > 0 {
        fields.take(&codec::SCRATCH_FIELDS);
    }
    if held == 2 {
        fields.take(&codec::STRETCH_FIELDS);
    }
    (0..bands).for_each(|_| _ = fields.take(&codec::BAND_FIELDS));
    for _ in 0..fields.count(&codec::OPEN_BANDS_FIELDS, "open_bands") {
        let checksums = fields.count(&codec::OPEN_FIELDS, "open_checksums");
        fields.checksums(checksums);
    }
    assert_eq!(fields.at, length, "every byte of the checkpoint is a field");
    fields.targets
}

fn record_fields(kind: u8) -> (&'static str, &'static [Field]) {
    let record = RECORDS.iter().find(|record| record.kind == kind);
    record.map(|record| (record.name, record.fields)).expect("a kind of record")
}

#[test]
fn damage_to_anything_of_a_translation_is_repaired_or_reported() {
    let mut cases = 0;
    let mut names = BTreeSet::new();
    for case in CASES {
        let (image, happenings) = stopped(case);
        let root = Superblock::decode(&block_of(&image, 0), 0, false).expect("a superblock");
        let mut targets: Vec<(Target, bool)> = Vec::new();
        let mut add = |found: Vec<Target>, strict: bool| {
            targets.extend(found.into_iter().map(|target| (target, strict)));
        };
        for address in [0, 1, root.area_blocks - 2, root.area_blocks - 1] {
            add(fields_of_block(&image, address, BlockKind::Superblock, record_fields), true);
        }
        let start = 2 + u64::from(root.checkpoint_place) * root.checkpoint_blocks;
        add(checkpoint_fields(&image, &root), true);
        assert_eq!(root.has_record_parts(), case.end == End::AfterRecordParts, "{case:?}");
        for address in start..start + root.pages() {
            add(fields_of_block(&image, address, BlockKind::CheckpointPage, record_fields), true);
        }
        let ring_start = 2 + 2 * root.checkpoint_blocks;
        let ring = root.area_blocks - 2 - ring_start;
        let (mut found, mut mark) = (Vec::new(), root.replay_from);
        for lsn in root.replay_from.. {
            let address = ring_start + lsn % ring;
            let expected = Expected::new(BlockKind::Journal, Some(root.member), address);
            match block::unseal(&block_of(&image, address), expected) {
                Ok((header, _)) if header.sequence == lsn => mark = mark.max(header.mark),
                _ => break,
            }
            found.push((lsn, address));
        }
        for (lsn, address) in found {
            add(fields_of_block(&image, address, BlockKind::Journal, record_fields), lsn < mark);
        }
        // Tables, the log, the scratch band and the bands.
        for address in image.keys().filter(|address| **address >= root.area_blocks) {
            let table = Expected::new(BlockKind::ChecksumTable, Some(root.member), *address);
            if block::unseal(&block_of(&image, *address), table).is_ok() {
                add(
                    fields_of_block(&image, *address, BlockKind::ChecksumTable, record_fields),
                    false,
                );
            }
            add(vec![data("data", *address)], false);
        }
        names.extend(targets.iter().map(|(target, _)| target.name.clone()));
        let mut rng = Rng::new(case.seed, 3);
        for (target, strict) in &targets {
            for damage in Damage::ALL {
                let mut damaged = image.clone();
                if !damage.apply(&mut damaged, target, &mut rng) {
                    continue;
                }
                cases += 1;
                let mut world = World::over(case, &damaged);
                if world.open(Start::Recover(Some(SET))).is_ok() {
                    let expected = match strict {
                        true => newest(&happenings),
                        false => allowed(&happenings),
                    };
                    let mut found = world.read_all();
                    if case.end == End::WithFailedWrite {
                        let known = allowed(&happenings);
                        if let Some(Ok(version)) = found.remove(&FAILED) {
                            let is_known = version == 0 || known[&FAILED].contains(&version);
                            assert!(is_known, "{case:?}: {damage:?} of {target:?}: {version}");
                        }
                    }
                    let problem = wrong(&found, &expected, !target.name.contains("superblock"));
                    assert_eq!(problem, None, "{case:?}: {damage:?} of {target:?}");
                }
            }
        }
    }
    for field in CHECKPOINT_TABLES.into_iter().flatten() {
        let name = format!("checkpoint: {}", field.name);
        assert!(names.contains(&name), "no checkpoint has {name}");
    }
    for record in RECORDS {
        for field in record.fields {
            let name = format!("record {}: {}", record.name, field.name);
            assert!(names.contains(&name), "no journal has {name}");
        }
    }
    assert!(cases > 10_000, "{cases} cases");
    println!("{cases} cases");
}

/// Members of format version 1 that a translation of this build has left without a close.
const FIXTURES: [(Case, &str, &[u8]); 2] = [
    (
        Case::whole(FIXTURE_SEED),
        "translation",
        include_bytes!("../fixtures/format-1/translation.img.xz"),
    ),
    (
        Case::in_stretches(STRETCH_SEED),
        "stretches",
        include_bytes!("../fixtures/format-1/stretches.img.xz"),
    ),
];

#[test]
fn members_of_format_version_1_open_and_hold_what_they_held() {
    for (case, name, packed) in FIXTURES {
        let (_, happenings) = stopped(case);
        let image = fixture::image_of(&fixture::unpacked(packed));
        assert_eq!(image.len() as u64, DISK_BLOCKS);
        let mut world = World::over(case, &image);
        assert_eq!(world.open(Start::Recover(Some(SET))), Ok(()), "{name}");
        let found = world.read_all();
        assert_eq!(wrong(&found, &newest(&happenings), false), None, "{name}");

        let other = Case { in_stretches: !case.in_stretches, ..case };
        let refused = World::over(other, &image).open(Start::Recover(Some(SET)));
        let error = refused.expect_err("a member whose bands are rewritten otherwise");
        assert!(matches!(error, OpenError::Settings { .. }), "{name}: {error}");
    }
}

/// Writes the members of [`members_of_format_version_1_open_and_hold_what_they_held`] again: only
/// for a new version of the format, never for this one.
#[test]
#[ignore = "writes the fixture"]
fn write_the_fixture() {
    for (case, name, _) in FIXTURES {
        let (image, _) = stopped(case);
        let blocks = (0..DISK_BLOCKS).flat_map(|address| block_of(&image, address).to_vec());
        fixture::write(&format!("{name}.img.xz"), blocks.collect());
    }
}
