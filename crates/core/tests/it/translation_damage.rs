//! Whatever is damaged on the disk of a durable translation: it is repaired or reported, and never
//! wrong.

use crate::damage::{Damage, Target, data, fields_of_block};
use crate::harness::JumpingClock;
use crate::journal_disk::{ByteDisk, ByteMedium, Happening, Image, block_of};
use crate::journal_world::{Host, SET, Step, allowed, newest, random_steps, wrong};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::Disk;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::durability::block::{self, BlockKind, Expected};
use imbrex_core::durability::superblock::Superblock;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::map::BandTable;
use imbrex_core::rng::Rng;
use imbrex_core::stack::StackBuilder;
use imbrex_core::translation::{PersistentCache, PersistentCacheSettings};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const DISK_BLOCKS: u64 = 4096;
const BLOCKS: u64 = 60;

struct World {
    engine: Engine,
    clock: JumpingClock,
    medium: Rc<RefCell<ByteMedium>>,
}

impl World {
    fn over(image: &Image) -> World {
        let medium = Rc::new(RefCell::new(ByteMedium {
            image: image.clone(),
            ..ByteMedium::default()
        }));
        let disk = ByteDisk::new(DISK_BLOCKS, &medium, 1, 1_000);
        let settings = PersistentCacheSettings {
            durability: Some(DurabilitySettings {
                ring_blocks: 16,
                unflushed_blocks_max: 24,
            }),
            ..PersistentCacheSettings::new(BlockCount(24))
        };
        let bands = Arc::new(BandTable::new([20, 24, 16].map(BlockCount)));
        let mut builder = StackBuilder::new(3);
        let below = builder.disk(disk.geometry().clone());
        let (layer, geometry) =
            PersistentCache::new(settings, bands, disk.geometry()).expect("a layout");
        let top = builder.layer(Box::new(layer), geometry, &[below]);
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

    fn open(&mut self, start: Start) -> Result<(), OpenError> {
        let opened = self.engine.open(&mut self.clock, start);
        opened.map_err(|(_, error)| error)
    }

    fn play(&mut self, host: &mut Host, steps: Vec<Step>) {
        host.begin(steps, &self.medium);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
    }

    fn read_all(&mut self) -> BTreeMap<u64, Result<u64, ()>> {
        let mut host = Host::new(4);
        let steps = (0..BLOCKS).map(|block| Step::Read(Extent::new(block, 1)));
        self.play(&mut host, steps.collect());
        host.found
    }
}

/// A disk that stopped without a close, and all that happened to it.
fn stopped(seed: u64) -> (Image, Vec<Happening>) {
    let mut world = World::over(&Image::new());
    world.open(Start::Format(SET)).expect("a format");
    let mut host = Host::new(4);
    world.play(&mut host, random_steps(seed, 120, BLOCKS));
    host.queue_depth = 1;
    let several = Step::Write(Extent::new(8, 3));
    let last = Step::Write(Extent::new(20, 1));
    let forced = Step::WriteDurable(Extent::new(3, 1));
    world.play(&mut host, vec![forced, several, Step::Flush, last]);
    assert_eq!(host.failures, []);
    let medium = world.medium.borrow();
    (medium.image.clone(), medium.happenings.clone())
}

#[test]
fn damage_to_anything_of_a_translation_is_repaired_or_reported() {
    let mut cases = 0;
    for seed in 0..2 {
        let (image, happenings) = stopped(seed);
        let root = Superblock::decode(&block_of(&image, 0), 0, false).expect("a superblock");
        let mut targets: Vec<(Target, bool)> = Vec::new();
        let mut add = |found: Vec<Target>, strict: bool| {
            targets.extend(found.into_iter().map(|target| (target, strict)));
        };
        for address in [0, 1, root.area_blocks - 2, root.area_blocks - 1] {
            add(
                fields_of_block(&image, address, BlockKind::Superblock),
                true,
            );
        }
        let start = 2 + u64::from(root.checkpoint_place) * root.checkpoint_blocks;
        for address in start..start + root.checkpoint_bytes.div_ceil(4032).max(1) {
            add(
                fields_of_block(&image, address, BlockKind::CheckpointPage),
                true,
            );
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
            add(
                fields_of_block(&image, address, BlockKind::Journal),
                lsn < mark,
            );
        }
        // Tables, the log, the scratch band and the bands.
        for address in image.keys().filter(|address| **address >= root.area_blocks) {
            let table = Expected::new(BlockKind::ChecksumTable, Some(root.member), *address);
            if block::unseal(&block_of(&image, *address), table).is_ok() {
                add(
                    fields_of_block(&image, *address, BlockKind::ChecksumTable),
                    false,
                );
            }
            add(vec![data("data", *address)], false);
        }
        let mut rng = Rng::new(seed, 3);
        for (target, strict) in &targets {
            for damage in Damage::ALL {
                let mut damaged = image.clone();
                if !damage.apply(&mut damaged, target, &mut rng) {
                    continue;
                }
                cases += 1;
                let mut world = World::over(&damaged);
                if world.open(Start::Recover(Some(SET))).is_ok() {
                    let expected = match strict {
                        true => newest(&happenings),
                        false => allowed(&happenings),
                    };
                    let found = world.read_all();
                    let problem = wrong(&found, &expected, !target.name.contains("superblock"));
                    assert_eq!(problem, None, "{seed}: {damage:?} of {target:?}");
                }
            }
        }
    }
    assert!(cases > 1000, "{cases} cases");
    println!("{cases} cases");
}
