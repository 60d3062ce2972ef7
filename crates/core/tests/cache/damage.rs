//! Whatever is damaged on the members of a durable cache: it is repaired or reported, and never
//! wrong. The data below a cache that stands on a bare disk has no checksums, and is left alone.

use crate::common::damage::{Damage, Target, add_fields, data, fields_of_block};
use crate::common::fixture;
use crate::common::harness::JumpingClock;
use crate::common::journal_disk::{ByteDisk, ByteMedium, Happening, Image, block_of};
use crate::common::journal_world::{Host, SET, Step, allowed, newest, random_steps, wrong};
use crate::stacks::settings;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::cache::{Cache, CacheMode, CacheSettings, PolicySettings, codec};
use imbrex_core::disk::{Disk, Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::durability::block::{self, BlockKind, Expected, Field, HEADER_BYTES};
use imbrex_core::durability::superblock::Superblock;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::rng::Rng;
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Blocks of the backing; the cache serves all but the last two.
const BLOCKS: u64 = 130;

fn cache() -> CacheSettings {
    CacheSettings {
        durability: Some(DurabilitySettings { ring_blocks: 16, unflushed_blocks_max: 24 }),
        ..settings(20, 2, CacheMode::ReadWrite, PolicySettings::LRU)
    }
}

/// What the two members hold: flash and backing.
type Members = [Image; 2];

/// A cache over members that hold something, not open yet.
struct World {
    engine: Engine,
    clock: JumpingClock,
    media: [Rc<RefCell<ByteMedium>>; 2],
}

impl World {
    fn over(members: &Members) -> World {
        let media = members.clone().map(|image| {
            let medium = ByteMedium { image, ..ByteMedium::default() };
            Rc::new(RefCell::new(medium))
        });
        let flash = ByteDisk::new(cache().flash_blocks().0, &media[0], 1, 1_000);
        let backing = ByteDisk::new(BLOCKS, &media[1], 2, 1_000);
        let mut builder = StackBuilder::new(3);
        let below = [flash.geometry().clone(), backing.geometry().clone()];
        let below = below.map(|geometry| builder.disk(geometry));
        let backing_geometry = Geometry::plain(BlockCount(BLOCKS), Media::SolidState);
        let (layer, geometry) =
            Cache::new(cache(), flash.geometry(), &backing_geometry).expect("settings that fit");
        let top = builder.layer(Box::new(layer), geometry, &below);
        World {
            engine: Engine {
                stack: builder.build(top),
                disks: vec![Box::new(flash), Box::new(backing)],
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 64,
            },
            clock: JumpingClock::default(),
            media,
        }
    }

    fn open(&mut self, start: Start) -> Result<(), OpenError> {
        let opened = self.engine.open(&mut self.clock, start);
        opened.map_err(|(_, error)| error)
    }

    fn play(&mut self, host: &mut Host, steps: Vec<Step>) {
        host.begin(steps, &self.media[0]);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
    }

    fn read_all(&mut self) -> BTreeMap<u64, Result<u64, ()>> {
        let mut host = Host::new(4);
        let blocks = self.engine.stack.geometry().blocks.0;
        let steps = (0..blocks).map(|block| Step::Read(Extent::new(block, 1)));
        self.play(&mut host, steps.collect());
        host.found
    }

    fn members(&self) -> Members {
        [0, 1].map(|member| self.media[member].borrow().image.clone())
    }
}

/// The members of a cache that stopped without a close, and all that happened. What every flush
/// has covered is known to be durable by the last block of the journal.
fn stopped(seed: u64) -> (Members, Vec<Happening>) {
    ended(seed, false)
}

/// The same, closed in good order or not.
fn ended(seed: u64, in_order: bool) -> (Members, Vec<Happening>) {
    let mut world = World::over(&[Image::new(), Image::new()]);
    world.open(Start::Format(SET)).expect("a format");
    let mut host = Host::new(4);
    world.play(&mut host, random_steps(seed, 150, BLOCKS - 2));
    host.queue_depth = 1;
    let forced = Step::WriteDurable(Extent::new(3, 1));
    let several = Step::Write(Extent::new(8, 3));
    let zeroed = Step::Zero(Extent::new(9, 1));
    let last = Step::Write(Extent::new(20, 1));
    world.play(&mut host, vec![forced, several, zeroed, Step::Flush, last]);
    assert_eq!(host.failures, []);
    if in_order {
        assert!(world.engine.close(&mut world.clock).is_ok());
    }
    let happenings = world.media[0].borrow().happenings.clone();
    (world.members(), happenings)
}

fn superblock(flash: &Image) -> Superblock {
    Superblock::decode(&block_of(flash, 0), 0, false).expect("a superblock")
}

/// The journal blocks that are replayed, by LSN with their addresses, and the greatest mark.
fn replayed(flash: &Image) -> (Vec<(u64, u64)>, u64) {
    let root = superblock(flash);
    let start = 2 + 2 * root.checkpoint_blocks;
    let ring = root.area_blocks - 2 - start;
    let (mut found, mut mark) = (Vec::new(), root.replay_from);
    for lsn in (root.replay_from..).take_while(|_| !root.clean) {
        let address = start + lsn % ring;
        let expected = Expected::new(BlockKind::Journal, Some(root.member), address);
        match block::unseal(&block_of(flash, address), expected) {
            Ok((header, _)) if header.sequence == lsn => mark = mark.max(header.mark),
            _ => break,
        }
        found.push((lsn, address));
    }
    (found, mark)
}

/// Every field of the checkpoint in its first page.
fn checkpoint_fields(flash: &Image, address: u64) -> Vec<Target> {
    let bytes = block_of(flash, address);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let mappings = word(HEADER_BYTES + 8) as usize;
    let mut targets = Vec::new();
    let head = HEADER_BYTES;
    add_fields(&mut targets, "cache", address, head, &codec::CHECKPOINT_FIELDS);
    let mut at = head + 32;
    for _ in 0..mappings {
        add_fields(&mut targets, "cache", address, at, &codec::MAPPING_FIELDS);
        at += 16;
    }
    for _ in 0..word(HEADER_BYTES + 16) {
        add_fields(&mut targets, "cache", address, at, &codec::CLEAN_FIELDS);
        at += 8;
    }
    assert!(at <= BLOCK_BYTES as usize, "all of them are in the first page");
    targets
}

fn record_fields(kind: u8) -> (&'static str, &'static [Field]) {
    let known = codec::RECORD_KINDS.iter().find(|(known, _)| *known == kind);
    let (_, name) = known.expect("a kind of record");
    let fields: &[Field] = match *name {
        "map" => &codec::MAP_FIELDS,
        _ => &codec::FREE_FIELDS,
    };
    (name, fields)
}

#[test]
fn damage_to_any_field_of_a_cache_is_repaired_or_reported() {
    let mut cases = 0;
    let mut names = BTreeSet::new();
    for (seed, in_order) in [(0, false), (1, false), (2, false), (0, true)] {
        let (members, happenings) = ended(seed, in_order);
        let [flash, backing] = &members;
        let root = superblock(flash);
        let (blocks, mark) = replayed(flash);
        // The member, the target, and whether the newest state must be there.
        let mut targets: Vec<(usize, Target, bool)> = Vec::new();
        let mut add = |member: usize, found: Vec<Target>, strict: bool| {
            targets.extend(found.into_iter().map(|target| (member, target, strict)));
        };
        for address in [0, 1, root.area_blocks - 2, root.area_blocks - 1] {
            add(0, fields_of_block(flash, address, BlockKind::Superblock, record_fields), true);
        }
        let start = 2 + u64::from(root.checkpoint_place) * root.checkpoint_blocks;
        let pages = root.checkpoint_bytes.div_ceil(4032).max(1);
        for address in start..start + pages {
            add(0, fields_of_block(flash, address, BlockKind::CheckpointPage, record_fields), true);
        }
        add(0, checkpoint_fields(flash, start), true);
        for (lsn, address) in blocks {
            let strict = lsn < mark;
            add(0, fields_of_block(flash, address, BlockKind::Journal, record_fields), strict);
        }
        for address in root.area_blocks..cache().flash_blocks().0 {
            add(0, vec![data("slot", address)], false);
        }
        for address in [BLOCKS - 2, BLOCKS - 1] {
            add(1, fields_of_block(backing, address, BlockKind::WriteIntent, record_fields), true);
            let mut fields = Vec::new();
            add_fields(&mut fields, "write-intent page", address, 0, &codec::INTENT_FIELDS);
            add(1, fields, true);
        }
        names.extend(targets.iter().map(|(_, target, _)| target.name.clone()));
        let mut rng = Rng::new(seed, 3);
        for (member, target, strict) in &targets {
            for damage in Damage::ALL {
                let mut damaged = members.clone();
                if damage.apply(&mut damaged[*member], target, &mut rng) {
                    cases += 1;
                    check(
                        &damaged,
                        &happenings,
                        *strict,
                        &format!("{seed}: {damage:?} of {target:?}"),
                    );
                }
            }
        }
    }
    let tables: [(&str, &[Field]); 4] = [
        ("cache", &codec::CHECKPOINT_FIELDS),
        ("cache", &codec::MAPPING_FIELDS),
        ("cache", &codec::CLEAN_FIELDS),
        ("write-intent page", &codec::INTENT_FIELDS),
    ];
    let records = codec::RECORD_KINDS.map(|(kind, _)| record_fields(kind));
    let records = records.map(|(name, fields)| (format!("record {name}"), fields));
    let tables = tables.map(|(name, fields)| (name.to_owned(), fields));
    for (structure, fields) in tables.into_iter().chain(records) {
        for field in fields {
            let name = format!("{structure}: {}", field.name);
            assert!(names.contains(&name), "no member has {name}");
        }
    }
    assert!(cases > 4_000, "{cases} cases");
    println!("{cases} cases");
}

fn check(members: &Members, happenings: &[Happening], strict: bool, name: &str) {
    let mut world = World::over(members);
    if world.open(Start::Recover(Some(SET))).is_ok() {
        let expected = match strict {
            true => newest(happenings),
            false => allowed(happenings),
        };
        let found = world.read_all();
        assert_eq!(wrong(&found, &expected, true), None, "{name}");
        let superblock_is_damaged = name.contains("superblock");
        if superblock_is_damaged {
            assert_eq!(wrong(&found, &expected, false), None, "{name}: it has good copies");
        }
    }
}

/// Members of format version 1 that a cache of this build has left without a close.
const FLASH: &[u8] = include_bytes!("../fixtures/format-1/flash.img");
const BACKING: &[u8] = include_bytes!("../fixtures/format-1/backing.img");

#[test]
fn members_of_format_version_1_open_and_hold_what_they_held() {
    let (_, happenings) = stopped(0);
    let mut world = World::over(&[fixture::image_of(FLASH), fixture::image_of(BACKING)]);
    assert_eq!(world.open(Start::Recover(Some(SET))), Ok(()));
    let found = world.read_all();
    assert_eq!(wrong(&found, &newest(&happenings), false), None);
}

/// Writes the members of [`members_of_format_version_1_open_and_hold_what_they_held`] again: only
/// for a new version of the format, never for this one.
#[test]
#[ignore = "writes the fixture"]
fn write_the_fixture() {
    let (members, _) = stopped(0);
    let lengths = [cache().flash_blocks().0, BLOCKS];
    for ((name, image), blocks) in ["flash", "backing"].iter().zip(&members).zip(lengths) {
        let blocks = (0..blocks).flat_map(|address| block_of(image, address).to_vec());
        fixture::write(&format!("{name}.img"), blocks.collect());
    }
}
