//! Segments, S-blocks and write buffers as the reader of members sees them: what they hold, what is
//! damaged, and that nothing makes it panic or go on for ever.

use crate::fsck::{EVERYTHING, REPAIR, agree_on, problems};
use crate::fsck_images::{Area, Blocks, REPLAY_FROM, SET};
use crate::fsck_layer_images::{
    LOG_AREA, LOG_PLACES, S_BLOCKS_AREA, SEGMENTS_AREA, SUMMED_S_BLOCKS_AREA, SUMMED_SEGMENTS_AREA,
    buffer_on, log, log_on_segments, s_blocks, s_blocks_on, segments, segments_on, summed_s_blocks,
    summed_s_blocks_on, summed_segments, summed_segments_on,
};
use imbrex_core::rng::Rng;
use imbrex_serve::fsck::{
    self, Checks, LayerState, Member, Noted, Reading, SBlockPart, SegmentPlace, Shape,
};
use serde_json::json;
use std::path::Path;

/// A member that is damaged, the shape that it is read in, and where its journal lies.
struct Image {
    name: &'static str,
    blocks: fn() -> Blocks,
    area: Area,
    shape: fn(&Path, &Blocks, bool) -> Shape,
}

const IMAGES: [Image; 3] = [
    Image { name: "segments", blocks: segments, area: SEGMENTS_AREA, shape: segments_on },
    Image { name: "s-blocks", blocks: s_blocks, area: S_BLOCKS_AREA, shape: s_blocks_on },
    Image {
        name: "log",
        blocks: log,
        area: LOG_AREA,
        shape: |dir, log, for_repair| buffer_on(dir, log, &segments(), for_repair),
    },
];

/// The same with tables of checksums.
const SUMMED: [Image; 2] = [
    Image {
        name: "segments",
        blocks: summed_segments,
        area: SUMMED_SEGMENTS_AREA,
        shape: summed_segments_on,
    },
    Image {
        name: "s-blocks",
        blocks: summed_s_blocks,
        area: SUMMED_S_BLOCKS_AREA,
        shape: summed_s_blocks_on,
    },
];

fn all() -> impl Iterator<Item = &'static Image> {
    IMAGES.iter().chain(&SUMMED)
}

impl Image {
    fn read(&self, blocks: &Blocks, checks: Checks) -> Reading {
        let dir = tempfile::tempdir().expect("a directory");
        let shape = (self.shape)(dir.path(), blocks, checks.repair);
        fsck::read(&shape, Some(SET), checks)
    }

    fn said(&self, blocks: &Blocks) -> Vec<String> {
        problems(&self.read(blocks, EVERYTHING).findings)
    }
}

#[test]
fn members_in_order_are_clean_and_say_what_they_hold() {
    for image in all() {
        assert_eq!(image.said(&(image.blocks)()), Vec::<String>::new());
    }
    let reading = IMAGES[0].read(&segments(), EVERYTHING);
    let LayerState::Segments(state) = &reading.members[0].layer else {
        panic!("no segments");
    };
    let rewrite =
        |segment, written: [bool; 3]| Noted::Rewrite { segment, written: written.to_vec() };
    let expected = [(0, rewrite(1, [false, true, true])), (1, rewrite(7, [true, false, true]))];
    assert_eq!(state.noted, expected, "what never became durable is forgotten");
    let places = [2, 7, 8, 42, 44, 46, 54].map(|lba| state.find(lba));
    let (home, slot) = (SegmentPlace::Home, SegmentPlace::Slot);
    let expected = [home(50), home(41), slot(16), slot(20), home(88), slot(24), home(104)];
    assert_eq!(places, expected.map(Some));
    assert_eq!(state.find(72), None);

    let reading = IMAGES[1].read(&s_blocks(), EVERYTHING);
    let LayerState::SBlocks(state) = &reading.members[0].layer else {
        panic!("no S-blocks");
    };
    let logs: Vec<(u16, u16)> = state.regions.iter().map(|it| (it.tail, it.used)).collect();
    assert_eq!(logs, [(4, 5), (0, 2)]);
    assert_eq!(state.regions[0].owners[1..3], [Some(1), Some(0)]);
    let found: Vec<String> = [0, 6, 12, 18, 19, 24, 36, 37]
        .map(|lba| match state.find(lba) {
            Some(SBlockPart::Position(at)) => format!("{at}"),
            Some(SBlockPart::Ring(at, sum)) => format!("ring {at} {}", sum.is_some()),
            Some(SBlockPart::Zeroes) => "zeroes".to_owned(),
            None => "nothing".to_owned(),
        })
        .to_vec();
    let expected = "30, 24, zeroes, ring 58 false, ring 61 true, zeroes, ring 100 true, 69";
    assert_eq!(found.join(", "), expected);
    assert_eq!(state.find(48), None);

    let reading = IMAGES[2].read(&log(), EVERYTHING);
    let LayerState::Buffer(state) = &reading.members[1].layer else {
        panic!("no log");
    };
    let live: Vec<(u64, u32)> = state.live.iter().map(|(lba, it)| (*lba, it.place)).collect();
    assert_eq!(live, [(6, 5), (7, 6), (20, 8)]);
}

/// The log of a buffer on segments: it is read in its slots and at home.
#[test]
fn a_journal_is_read_through_segments() {
    let reading = IMAGES[0].read(&segments(), EVERYTHING);
    let LayerState::Segments(state) = &reading.members[0].layer else {
        panic!("no segments");
    };
    let read = |log: &Blocks| {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = log_on_segments(log, state);
        let shape = Shape::MemoryBuffer {
            log: Some((Box::new(segments_on(dir.path(), &disk, false)), LOG_PLACES)),
            below: Box::new(s_blocks_on(dir.path(), &s_blocks(), false)),
            blocks: 48,
        };
        fsck::read(&shape, Some(SET), EVERYTHING)
    };
    let whole = read(&log());
    assert_eq!(problems(&whole.findings), Vec::<String>::new());
    assert_eq!(whole.members.len(), 3);
    let mut broken = log();
    broken.block(LOG_AREA.blocks() + 5)[9] ^= 1;
    let said = problems(&read(&broken).findings);
    let expected = "segments, through its layers: data: block 6 in place 5";
    assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
}

#[test]
fn a_damaged_superblock_is_named_and_repaired() {
    for image in all() {
        for address in image.area.superblocks() {
            let mut broken = (image.blocks)();
            broken.block(address)[70] ^= 4;
            let found = image.read(&broken, EVERYTHING).findings;
            assert_eq!((found.left, found.repaired), (1, 0), "{:?}", found.kept);
            let found = image.read(&broken, REPAIR).findings;
            assert_eq!((found.left, found.repaired), (0, 1), "{:?}", found.kept);
        }
    }
}

/// Every structure with a flipped bit, as zeroes, and cut off: it is named.
#[test]
fn every_damage_is_named() {
    let newest = REPLAY_FROM + 2;
    for image in all() {
        let (area, name) = (image.area, image.name);
        let structures = [
            (area.page(), "checkpoint"),
            (area.journal_block(REPLAY_FROM), "journal"),
            (area.journal_block(REPLAY_FROM + 1), "journal"),
        ];
        for (address, structure) in structures {
            let breaks: [fn(&mut [u8]); 2] = [|block| block[80] ^= 1, |block| block.fill(0)];
            for damage in breaks {
                let mut broken = (image.blocks)();
                damage(broken.block(address));
                let said = image.said(&broken);
                let expected = format!("{name}: {structure}: ");
                assert!(said.iter().any(|it| it.starts_with(&expected)), "{expected}: {said:?}");
            }
        }
        // The newest journal block may be torn: that is told.
        let mut broken = (image.blocks)();
        broken.block(area.journal_block(newest))[80] ^= 1;
        let notes = image.read(&broken, EVERYTHING).findings.notes;
        assert!(notes.iter().any(|it| it.contains("damaged or torn")), "{notes:?}");
        let mut broken = (image.blocks)();
        let blocks = broken.0.len() / 4096;
        broken.0.truncate((blocks - 1) * 4096);
        let said = image.said(&broken);
        let expected = format!("{name}: superblock: it is of a member of {blocks} blocks");
        assert!(said[0].starts_with(&expected), "{said:?}");
        let mut broken = (image.blocks)();
        broken.0.fill(0);
        let expected = format!("{name}: superblock: no copy was found");
        assert!(image.said(&broken)[0].starts_with(&expected));
    }
}

#[test]
fn damaged_data_is_named() {
    let damage = |image: &Image, address: u64| {
        let mut broken = (image.blocks)();
        broken.block(address)[80] ^= 1;
        image.said(&broken)
    };
    let [segments, s_blocks, log] = &IMAGES;
    for (image, address, expected) in [
        (segments, 20, "segments: slot: block 0 of slot 1, of segment 7: "),
        (s_blocks, 61, "s-blocks: ring: part 1 of block 9 in place 3 of region 0: "),
        (log, LOG_AREA.blocks() + 6, "log: data: block 7 in place 6: "),
    ] {
        let said = damage(image, address);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
    }
    // Nothing is known of what a place held before.
    assert_eq!(damage(log, LOG_AREA.blocks() + 4), Vec::<String>::new());
}

/// Every block that a table speaks of, and every page of a table, is compared; what nobody knows
/// anything of is not.
#[test]
fn damage_below_tables_of_checksums_is_named() {
    let [segments, s_blocks] = &SUMMED;
    let damage = |image: &Image, address: u64, data: bool| {
        let mut broken = (image.blocks)();
        broken.block(address)[80] ^= 1;
        let checks = Checks { data, ..EVERYTHING };
        problems(&image.read(&broken, checks).findings)
    };
    // Segment 2 lies at home: its block 3 in the second track of the first region. Its table is the
    // third one. The table of segment 7 is in slot 1, behind its blocks.
    let home = 65 + 12 + 2 * 2 + 1;
    let (table, slot) = (14 + 28 + 2, 14 + 7);
    let page = "its checksums: its checksum does not match its bytes";
    // Position 2 of region 0 has S-block 0, and position 1 of region 1 has S-block 2.
    let position = 30 + 2 * 6 + 5;
    for (image, address, is_data, expected) in [
        (
            segments,
            home,
            true,
            "segments: data: block 15, block 3 of segment 2: its data does not match its checksum"
                .to_owned(),
        ),
        (
            segments,
            slot,
            true,
            "segments: data: block 42, block 0 of segment 7: its data does not match its checksum"
                .to_owned(),
        ),
        (
            segments,
            table,
            false,
            format!("segments: table of checksums: segment 2: page 0 of {page}"),
        ),
        (
            segments,
            slot + 6,
            false,
            format!("segments: table of checksums: segment 7: page 0 of {page}"),
        ),
        (
            s_blocks,
            position,
            true,
            "s-blocks: data: block 5 of S-block 0 of region 0: its data does not match its checksum"
                .to_owned(),
        ),
        (
            s_blocks,
            18 + 6 + 1,
            false,
            format!("s-blocks: table of checksums: S-block 2 of region 1: page 0 of {page}"),
        ),
    ] {
        assert_eq!(damage(image, address, true), [expected.as_str()]);
        let without_data = damage(image, address, false);
        assert_eq!(without_data.is_empty(), is_data, "{without_data:?}");
    }
    // Of segment 5 nothing is known; position 0 of region 0 has nothing that is valid.
    assert_eq!(damage(segments, 65 + 5 * 2, true), Vec::<String>::new());
    assert_eq!(damage(s_blocks, 30, true), Vec::<String>::new());
    assert_eq!(damage(s_blocks, 18, true), Vec::<String>::new());
}

/// A page of the checkpoint that is whole and says what cannot be.
#[test]
fn a_checkpoint_that_says_what_cannot_be_is_damage() {
    type Change = (usize, &'static str, &'static [u8]);
    let [segments, s_blocks, log] = &IMAGES;
    let cases: [(&Image, &[Change]); 3] = [
        (
            segments,
            &[
                (5 * 8, "its `kappa` is 3", &[3]),
                (6 * 8, "it is shorter than it says", &[3]),
                (9 * 8, "there is no slot 4", &[4]),
                (10 * 8, "it names segments from 12 on", &[12]),
                (7 * 8, "a slot is noted by a record of kind 9", &[9]),
                (14 * 8, "slot 2 is noted twice", &[2]),
                (16 * 8, "it has not as many bits", &[0xff]),
            ],
        ),
        (
            s_blocks,
            &[
                (8, "its `block_blocks` is 3", &[3]),
                (24, "region 0: its `region_data` is 3", &[3]),
                (24 + 6, "region 0: its log of 3 from position 6", &[6]),
                (36 + 8, "region 0: S-block 0 lies in positions 0 and 4", &[0]),
                (36 + 8, "region 0: there is no S-block 4", &[4]),
                (48, "region 0: block 4 in place 4 lies outside", &[4]),
                (48 + 16, "region 0: block 9 in place 1 or", &[1]),
            ],
        ),
        (
            log,
            &[
                (0, "its log has 13 places", &[13]),
                (8, "it is shorter than it says", &[4]),
                (16 + 8, "block 5 is said to lie past the last place", &[12]),
                (16, "block 72 lies past the device", &[72]),
                (32, "block 5 has two places", &[5]),
                (32 + 8, "place 0 is given to blocks 5 and 6", &[0]),
            ],
        ),
    ];
    for (image, changes) in cases {
        for (at, expected, bytes) in changes {
            let mut broken = (image.blocks)();
            let page = broken.block(image.area.page());
            page[64 + at..64 + at + bytes.len()].copy_from_slice(bytes);
            broken.fix(image.area.page());
            broken.fix_checkpoint(image.area);
            let said = image.said(&broken);
            let expected = format!("{}: checkpoint: {expected}", image.name);
            assert!(said[0].starts_with(&expected), "{expected}: {said:?}");
        }
    }
}

/// A record that is whole and says what cannot be.
#[test]
fn a_record_that_says_what_cannot_be_is_damage() {
    type Change = (u64, usize, &'static str, u8);
    let [segments, s_blocks, log] = &IMAGES;
    // Each record begins with 8 bytes, and its payload follows.
    let cases: [(&Image, &[Change]); 3] = [
        (
            segments,
            &[
                (0, 8, "its data does not lie in slot 3", 3),
                (1, 8, "there is no slot 9", 9),
                (1, 0, "it is of the unknown kind 7, without data", 7),
            ],
        ),
        (
            s_blocks,
            &[
                (0, 8, "there is no region 2", 2),
                (0, 12, "S-block 4 lies at no position", 4),
                (0, 14, "position 0 is given to S-blocks 0 and 1", 0),
                (0, 16, "its log of 6 positions had no room", 6),
                (1, 0, "it is of the unknown kind 9, without data", 9),
            ],
        ),
        (
            log,
            &[
                (0, 8, "block 72 lies past the device", 71),
                (1, 8 + 12, "blocks from 5 on left places past the last", 13),
                (1, 0, "it is of the unknown kind 4, without data", 4),
            ],
        ),
    ];
    for (image, changes) in cases {
        for (block, at, expected, byte) in changes {
            let mut broken = (image.blocks)();
            let address = image.area.journal_block(REPLAY_FROM + block);
            broken.block(address)[64 + at] = *byte;
            broken.fix(address);
            let said = image.said(&broken);
            let lsn = REPLAY_FROM + block;
            let expected =
                format!("{}: journal: record in journal block {lsn}: {expected}", image.name);
            assert!(said.contains(&expected), "{expected}: {said:?}");
        }
    }
}

/// Random damage, with and without making the checksums right again. It must come to an end without
/// a panic, and what is read through the layers too.
#[test]
fn any_bytes_come_to_an_end() {
    let mut rng = Rng::new(12, 1);
    let (mut found, mut clean) = (0, 0);
    for _ in 0..1500 {
        let image = all().nth(rng.below(5) as usize).expect("an image");
        let area = image.area;
        let mut broken = (image.blocks)();
        let fixed = rng.below(4) > 0;
        for _ in 0..1 + rng.below(3) {
            let address = match rng.below(6) {
                0 => area.superblocks()[rng.below(4) as usize],
                1 | 2 => area.page(),
                _ => area.journal_block(REPLAY_FROM + rng.below(3)),
            };
            let block = broken.block(address);
            let length = u32::from_le_bytes(block[12..16].try_into().expect("4 bytes"));
            let used = 64 + u64::from(length).clamp(1, 4032);
            let at = (64 + rng.below(used - 64)) as usize;
            let word = at / 8 * 8;
            match rng.below(4) {
                0 => block[at] ^= 1 << rng.below(8),
                1 => block[at] = rng.next_u64() as u8,
                2 => block[at] = 0xff,
                _ => {
                    let value = [0, 1, u64::MAX, u64::MAX / 2, 1 << 40, 1 << 24];
                    let value = value[rng.below(6) as usize];
                    block[word..word + 8].copy_from_slice(&value.to_le_bytes());
                }
            }
            if fixed {
                broken.fix(address);
                if address == area.page() {
                    broken.fix_checkpoint(area);
                }
            }
        }
        let reading = image.read(&broken, EVERYTHING);
        found += u32::from(reading.findings.left > 0);
        clean += u32::from(reading.findings.left == 0);
        for member in &reading.members {
            assert!(match &member.layer {
                LayerState::Segments(state) => (0..72).all(|lba| state.find(lba).is_some()),
                LayerState::SBlocks(state) => (0..48).all(|lba| state.find(lba).is_some()),
                _ => true,
            });
        }
    }
    assert!(found > 700 && clean > 50, "{found} damaged, {clean} clean");
}

/// The second reader, which was written from the pages alone, finds what this one finds.
#[test]
fn a_reader_written_from_the_pages_agrees() {
    let dir = tempfile::tempdir().expect("a directory");
    for (image, kind, part) in [
        (&IMAGES[0], "segments", "segments"),
        (&IMAGES[1], "s-blocks", "s_blocks"),
        (&IMAGES[2], "memory-buffer", "memory_buffer"),
    ] {
        let shape = (image.shape)(dir.path(), &(image.blocks)(), false);
        let reading = fsck::read(&shape, None, Checks::default());
        let member = reading.members.iter().find(|it| it.name == image.name);
        let member = member.expect("the member");
        let theirs = agree_on(member, kind, &dir.path().join(image.name));
        let theirs = &theirs[part];
        match &member.layer {
            LayerState::Segments(_) => {
                let expected = json!([
                    { "slot": 0, "segment": 1, "written": [1, 2] },
                    { "slot": 1, "segment": 7, "written": [0, 2] },
                ]);
                assert_eq!(theirs["noted"], expected);
            }
            LayerState::SBlocks(state) => {
                let regions = theirs["every_region"].as_array().expect("regions");
                for (theirs, ours) in regions.iter().zip(&state.regions) {
                    assert_eq!(theirs["owners"], json!(ours.owners));
                    assert_eq!([&theirs["tail"], &theirs["used"]], [ours.tail, ours.used]);
                    let ring = ours.ring.places.iter();
                    let ring = ring.map(|(place, it)| json!([place, it.block, it.parts]));
                    assert_eq!(theirs["ring"], json!(ring.collect::<Vec<_>>()));
                }
                assert_eq!(regions.len(), state.regions.len());
            }
            LayerState::Buffer(state) => {
                let live = state.live.iter();
                let live = live.map(|(lba, it)| json!([lba, it.place, it.checksum]));
                assert_eq!(theirs["dirty"], json!(live.collect::<Vec<_>>()));
            }
            _ => panic!("{kind} was not read"),
        }
    }
}

/// A node that several nodes stand on is read once, and a read cache is told of once.
#[test]
fn a_shared_node_is_read_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let shared = || -> Shape { segments_on(dir.path(), &segments(), false) };
    let node = std::rc::Rc::new(shared());
    let part = |start| {
        let part = imbrex_core::extent::Extent::new(start, 20);
        let below = Shape::Shared("segments".to_owned(), std::rc::Rc::clone(&node));
        Shape::Slice(part, Box::new(below))
    };
    let flash = Member::in_memory("flash", 8, Box::new(|_, into| into.fill(0)));
    let cache = Shape::ReadCache("cache".to_owned(), Box::new(Shape::Disk(flash)));
    let cache = std::rc::Rc::new(cache);
    let copies = || Box::new(Shape::Shared("cache".to_owned(), std::rc::Rc::clone(&cache)));
    let beside = |start| Shape::WithCopies(copies(), Box::new(part(start)));
    let shape = Shape::Joined {
        joint: fsck::Joint::Span,
        blocks: None,
        below: vec![beside(0), beside(30)],
    };
    let reading = fsck::read(&shape, Some(SET), Checks::default());
    assert_eq!(problems(&reading.findings), Vec::<String>::new());
    assert_eq!(reading.members.len(), 1);
    let told = "cache: a read cache keeps nothing over a start: there is nothing to check";
    let notes = reading.findings.notes.iter();
    assert_eq!(notes.filter(|note| *note == told).count(), 1);
}
