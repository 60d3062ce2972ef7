//! The reader of members: what is in order is clean, what is damaged is named, and nothing makes it
//! panic or go on for ever.

use crate::fsck_images::{BLOCK, Blocks, SET, disk, disk_that_holds, flash, stack};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::rng::Rng;
use imbrex_serve::fsck::{
    self, Checks, Findings, LayerState, Member, MemberState, Reading, Shape, Where,
};
use serde_json::{Value, json};
use std::path::Path;

pub const EVERYTHING: Checks = Checks { data: true, repair: false };
pub const REPAIR: Checks = Checks { data: true, repair: true };

fn read_in(dir: &Path, flash: &Blocks, disk: &Blocks, checks: Checks) -> Reading {
    let shape = stack(dir, flash, disk, checks.repair);
    fsck::read(&shape, Some(SET), checks)
}

fn findings(flash: &Blocks, disk: &Blocks) -> Findings {
    let dir = tempfile::tempdir().expect("a directory");
    read_in(dir.path(), flash, disk, EVERYTHING).findings
}

/// The problems, each with its member and structure.
pub fn problems(findings: &Findings) -> Vec<String> {
    findings
        .kept
        .iter()
        .map(|found| format!("{}: {}: {}", found.member, found.structure, found.problem))
        .collect()
}

#[test]
fn members_in_order_are_clean_and_say_what_they_hold() {
    let dir = tempfile::tempdir().expect("a directory");
    let reading = read_in(dir.path(), &flash(), &disk(), EVERYTHING);
    assert_eq!(problems(&reading.findings), Vec::<String>::new());
    let LayerState::Translation(state) = &reading.members[0].layer else {
        panic!("no translation");
    };
    let kinds = |lba| match state.find(lba).expect("a block of the device") {
        Where::Log(address, _) => format!("log {address}"),
        Where::Home(address, ..) => format!("home {address}"),
        Where::Zeroes => "zeroes".to_owned(),
        Where::Lost => "lost".to_owned(),
    };
    // In this order: the table of the map on the page of the format.
    let expected = [
        (0, "home 66"),
        (2, "zeroes"),
        (3, "log 26"),
        (5, "log 34"),
        (7, "home 43"),
        (19, "home 55"),
        (20, "home 90"),
        (27, "home 97"),
        (28, "zeroes"),
        (30, "log 30"),
        (31, "log 36"),
        (32, "zeroes"),
        (41, "lost"),
        (50, "lost"),
        (61, "home 135"),
        (62, "log 28"),
    ];
    for (lba, place) in expected {
        assert_eq!(kinds(lba), place, "block {lba}");
    }
    assert_eq!(state.find(64), None);
    let LayerState::Cache(cache, intent) = &reading.members[1].layer else {
        panic!("no cache");
    };
    let dirty: Vec<(u64, u32)> =
        cache.dirty.iter().map(|(lba, place)| (*lba, place.slot)).collect();
    assert_eq!(dirty, [(3, 2), (20, 6)], "what never became durable is rolled back");
    assert_eq!(intent.newest().expect("a page").marked, [0, 1, 2]);
}

#[test]
fn a_damaged_superblock_is_named_and_repaired() {
    for address in [0, 1, 14, 15] {
        let mut broken = disk();
        broken.block(address)[70] ^= 4;
        let dir = tempfile::tempdir().expect("a directory");
        let found = read_in(dir.path(), &flash(), &broken, EVERYTHING).findings;
        assert_eq!((found.left, found.repaired), (1, 0));
        let found = read_in(dir.path(), &flash(), &broken, REPAIR).findings;
        assert_eq!((found.left, found.repaired), (0, 1), "{:?}", found.kept);
        let mut repaired = disk();
        let bytes = std::fs::read(dir.path().join("disk")).expect("the file");
        assert_eq!(&bytes[..BLOCK * 16], &repaired.0[..BLOCK * 16]);
        assert_eq!(repaired.block(0).len(), BLOCK);
    }
    // Without the first two, the others are found by looking for them.
    let mut broken = disk();
    for address in [0, 1, 14] {
        broken.block(address).fill(0xee);
    }
    let dir = tempfile::tempdir().expect("a directory");
    let found = read_in(dir.path(), &flash(), &broken, REPAIR).findings;
    assert_eq!((found.left, found.repaired), (0, 3), "{:?}", found.kept);
}

#[test]
fn every_damage_is_named() {
    type Break = fn(&mut Blocks, &mut Blocks);
    let cases: [(Break, &str); 12] = [
        (
            |_, disk| [0, 1, 14, 15].into_iter().for_each(|at| disk.block(at)[9] ^= 1),
            "disk: superblock",
        ),
        (|_, disk| disk.block(4)[200] ^= 1, "disk: checkpoint"),
        (|_, disk| disk.block(6 + 22 % 8)[80] ^= 1, "disk: journal: block 22 is missing"),
        (
            |_, disk| disk.block(16)[80] ^= 1,
            "disk: table of checksums: page 0 of the table of band 0",
        ),
        (|_, disk| disk.block(66)[80] ^= 1, "disk: data: block 0"),
        (|_, disk| disk.block(50)[80] ^= 1, "disk: data: block 14"),
        (|_, disk| disk.block(26)[80] ^= 1, "disk: data: block 3"),
        (|_, disk| disk.block(28)[80] ^= 1, "disk: write-intent page: page 0"),
        (|flash, _| flash.block(16 + 2)[80] ^= 1, "flash: data: dirty block 3 in slot 2"),
        (|flash, _| flash.block(16 + 5)[80] ^= 1, "flash: data: clean block in slot 5"),
        (
            |flash, _| flash.0.truncate(20 * BLOCK),
            "flash: superblock: it is of a member of 26 blocks",
        ),
        (|flash, _| flash.0.fill(0), "flash: superblock: no copy was found"),
    ];
    for (damage, expected) in cases {
        let (mut flash, mut disk) = (flash(), disk());
        damage(&mut flash, &mut disk);
        let found = problems(&findings(&flash, &disk));
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn members_of_another_image_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let shape = stack(dir.path(), &flash(), &disk(), false);
    let other = Some(Uuid([1; 16]));
    let found = fsck::read(&shape, other, Checks::default()).findings;
    assert_eq!(found.left, 2, "{:?}", found.kept);
    assert!(found.kept[0].problem.starts_with("it belongs to image 31313131-3131"));
}

/// Random damage, with and without making the checksums right again so that what is behind them is
/// reached. It must come to an end without a panic; with the checksums left wrong, damage within
/// what is in use must be found.
#[test]
fn any_bytes_come_to_an_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut rng = Rng::new(11, 1);
    let (mut unnoticed, mut reached) = (0, 0);
    for _ in 0..1500 {
        let (mut flash, mut disk) = (flash(), disk());
        let which = rng.below(2) == 0;
        let blocks = if which { &mut flash } else { &mut disk };
        let fixed = rng.below(4) > 0;
        for _ in 0..1 + rng.below(3) {
            // Superblocks, the checkpoint's page, the journal, and now and then anything.
            let address = match rng.below(8) {
                0 => [0, 1, 14, 15][rng.below(4) as usize],
                1..=3 => 4,
                4..=6 => 6 + rng.below(8),
                _ => rng.below((blocks.0.len() / BLOCK) as u64),
            };
            let block = blocks.block(address);
            let length = u64::from(u32::from_le_bytes(block[12..16].try_into().expect("4 bytes")));
            let used = 64 + length.clamp(1, 4032);
            for _ in 0..1 + rng.below(4) {
                let at = match rng.below(6) {
                    0 => 8 + rng.below(56),
                    _ => 64 + rng.below(used - 63),
                } as usize;
                match rng.below(4) {
                    0 => block[at] ^= 1 << rng.below(8),
                    1 => block[at] = rng.next_u64() as u8,
                    2 => block[at] = 0xff,
                    _ => {
                        // A whole number, as large or as small as it gets.
                        let word = at / 8 * 8;
                        let value = [0, 1, u64::MAX, u64::MAX / 2, 1 << 40, 1 << 24];
                        let value = value[rng.below(6) as usize];
                        block[word..word + 8].copy_from_slice(&value.to_le_bytes());
                    }
                }
            }
            if fixed && address < 16 {
                blocks.fix(address);
                fix_checkpoint(blocks);
            }
        }
        let findings = read_in(dir.path(), &flash, &disk, EVERYTHING).findings;
        if fixed && findings.kept.iter().all(|found| found.structure != "superblock") {
            reached += 1;
        }
        unnoticed += u32::from(!fixed && findings.left == 0 && findings.notes.is_empty());
    }
    assert!(reached > 400, "what is behind the checksums was reached {reached} times");
    assert!(unnoticed < 225, "{unnoticed}: most blocks are in use");
}

/// Makes the checksum of the checkpoint right again, in every copy of the superblock.
fn fix_checkpoint(blocks: &mut Blocks) {
    for address in [0, 1, 14, 15] {
        let length =
            u64::from_le_bytes(blocks.block(address)[136..144].try_into().expect("8 bytes"));
        let page = blocks.block(4);
        let payload = u32::from_le_bytes(page[12..16].try_into().expect("4 bytes"));
        let bytes = &page[64..64 + u64::from(payload).min(length).min(4032) as usize];
        let checksum = crc32c::crc32c(bytes);
        blocks.block(address)[132..136].copy_from_slice(&checksum.to_le_bytes());
        blocks.fix(address);
    }
}

/// The members of format version 1 that are kept with the tests of the core.
fn fixture(name: &str) -> std::path::PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/fixtures/format-1");
    fixtures.join(name)
}

/// Disks of translations: one that rewrites bands whole, and one that does so in stretches.
const TRANSLATIONS: [&str; 2] = ["translation", "stretches"];

/// The member of a translation of format version 1, in a file.
pub fn kept_translation(name: &str, dir: &Path) -> std::path::PathBuf {
    let packed = fixture(&format!("{name}.img.xz"));
    let packed = std::fs::File::open(packed).expect("the fixture");
    let path = dir.join("translation.img");
    let mut file = std::fs::File::create(&path).expect("a file");
    let mut blocks = liblzma::read::XzDecoder::new(packed);
    std::io::copy(&mut blocks, &mut file).expect("a copy");
    path
}

#[test]
fn members_of_format_version_1_are_clean() {
    let member = |name: &str| Member::open(name, &fixture(name), false).expect("a member");
    let shape = Shape::Cache {
        flash: Box::new(Shape::Disk(member("flash.img"))),
        backing: Box::new(Shape::Disk(member("backing.img"))),
    };
    let found = fsck::read(&shape, None, EVERYTHING).findings;
    assert_eq!(problems(&found), Vec::<String>::new());
    let dir = tempfile::tempdir().expect("a directory");
    for name in TRANSLATIONS {
        let path = kept_translation(name, dir.path());
        let member = Member::open("disk", &path, false).expect("a member");
        let found = fsck::read(&Shape::PersistentCache(member), None, EVERYTHING).findings;
        assert_eq!(problems(&found), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_scratch_band_that_holds_what_it_cannot_is_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = |held: &[u64]| {
        problems(&read_in(dir.path(), &flash(), &disk_that_holds(held), EVERYTHING).findings)
    };
    // Blocks 4 to 20 of band 0, in the only place and in a second one.
    assert_eq!(said(&[1, 0, 4, 16]), Vec::<String>::new());
    assert_eq!(said(&[2, 0, 4, 16, 44]), Vec::<String>::new());
    for held in [
        &[1, 0, u64::MAX, 2][..],
        &[1, 0, 4, u64::MAX],
        &[1, 0, 4, 17],
        &[1, 3, 0, 4],
        &[1, u64::MAX, 0, 4],
        &[2, 0, 4, 16, u64::MAX],
        &[2, 0, 4, 16, 39],
        &[2, 0, 4, 16, 66],
        &[3, 0, 4, 16, 44],
    ] {
        let said = said(held);
        assert!(said.iter().any(|it| it.contains("scratch band")), "{held:?}: {said:?}");
    }
}

/// The second reader, which was written from the pages alone, finds what this one finds.
#[test]
fn a_reader_written_from_the_pages_agrees() {
    let dir = tempfile::tempdir().expect("a directory");
    let read = |shape: &Shape| fsck::read(shape, None, Checks::default());
    let by_hand = stack(dir.path(), &flash(), &disk(), false);
    agree(&read(&by_hand).members[0], "disk", &dir.path().join("disk"));
    agree(&read(&by_hand).members[1], "flash", &dir.path().join("flash"));
    let member = |name: &str| Member::open(name, &fixture(name), false).expect("a member");
    let kept = Shape::Cache {
        flash: Box::new(Shape::Disk(member("flash.img"))),
        backing: Box::new(Shape::Disk(member("backing.img"))),
    };
    agree(&read(&kept).members[0], "flash", &fixture("flash.img"));
    for name in TRANSLATIONS {
        let path = kept_translation(name, dir.path());
        let member = Member::open("disk", &path, false).expect("a member");
        let kept = Shape::PersistentCache(member);
        agree(&read(&kept).members[0], "disk", &path);
    }
}

/// Both readers find one journal; answers what the second one has found.
pub fn agree_on(state: &MemberState, kind: &str, path: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/format_reader.py");
    let output = std::process::Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg(kind)
        .arg(path)
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let journal = state.journal.as_ref().expect("a journal");
    assert_eq!(theirs["blocks"], json!(state.blocks));
    let copies: Vec<Value> = journal
        .superblocks
        .copies
        .iter()
        .map(|copy| {
            let found = copy.found.as_ref().expect("a good copy");
            json!([copy.address, found.generation, found.epoch, found.clean, found.set.to_string()])
        })
        .collect();
    let keys = ["address", "generation", "epoch", "clean", "set"];
    let their_copies = theirs["superblocks"].as_array().expect("copies").iter();
    let their_copies: Vec<Value> =
        their_copies.map(|copy| keys.iter().map(|key| copy[*key].clone()).collect()).collect();
    assert_eq!(their_copies, copies);
    let ours: Vec<Value> = journal
        .records
        .iter()
        .map(|record| {
            let payload: String = record.payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let missing = (0..record.checksums.len()).filter(|index| record.is_missing(*index));
            json!({
                "lsn": record.lsn,
                "kind": record.kind,
                "payload": payload,
                "data": record.data.map(|data| [data.start.0, data.blocks.0]),
                "checksums": record.checksums,
                "missing": missing.collect::<Vec<usize>>(),
            })
        })
        .collect();
    assert_eq!(theirs["journal"]["every_record"], json!(ours));
    assert_eq!(theirs["journal"]["next"], json!(journal.next));
    assert_eq!(theirs["journal"]["mark"], json!(journal.mark));
    assert_eq!(theirs["journal"]["checkpoint_bytes"], json!(journal.checkpoint.len()));
    theirs
}

fn agree(state: &MemberState, kind: &str, path: &Path) {
    let theirs = agree_on(state, kind, path);
    match &state.layer {
        LayerState::Cache(cache, _) => {
            let dirty = cache.dirty.iter();
            let dirty: Vec<Value> =
                dirty.map(|(lba, place)| json!([lba, place.slot, place.checksum])).collect();
            assert!(!dirty.is_empty());
            assert_eq!(theirs["cache"]["dirty"], json!(dirty));
            assert_eq!(theirs["cache"]["slots"], json!(cache.slots));
        }
        LayerState::Translation(state) => {
            let map = &theirs["translation"];
            let logged = state.logged.iter();
            let logged: Vec<Value> = logged
                .map(|(lba, logged)| json!([lba, logged.position, logged.checksum]))
                .collect();
            let bands = state.bands.iter();
            let bands: Vec<Value> = bands
                .map(|band| json!([band.home, band.blocks, band.table, band.pointer]))
                .collect();
            assert_eq!(map["logged"], json!(logged));
            assert_eq!(map["bands"], json!(bands));
            assert_eq!(map["zeroed"], json!(state.zeroed.runs().collect::<Vec<_>>()));
            assert_eq!(map["lost"], json!(state.lost.runs().collect::<Vec<_>>()));
            assert_eq!(map["open"], json!(state.open.iter().collect::<Vec<_>>()));
            assert_eq!([&map["head"], &map["tail"]], [&json!(state.head), &json!(state.tail)]);
        }
        _ => panic!("neither a cache nor a translation was read"),
    }
}
