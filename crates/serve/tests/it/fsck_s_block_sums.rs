//! Checksums of S-blocks as the readers of members see them: a disk that the layer has left, which is
//! kept with the tests of the core.

use crate::fsck::{EVERYTHING, agree_on, kept_translation, problems};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::translation::{
    ChecksumSettings, MILLION, Prefill, RingSize, SBlockLayout, SBlockSettings, TrackSource,
};
use imbrex_core::units::BlockCount;
use imbrex_serve::fsck::{self, LayerState, Member, Reading, SBlockPart, Shape};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

const DISK_BLOCKS: u64 = 1200;
const BLOCKS: u64 = 64;

/// The layout of the disk that is kept.
fn layout() -> SBlockLayout {
    let settings = SBlockSettings {
        block: BlockCount(2),
        track: TrackSource::Dense(BlockCount(8)),
        region_tracks: 4,
        spare_ppm: MILLION / 2,
        ring: RingSize::Blocks(5),
        prefill: Prefill::None,
        wanted: Some(BlockCount(BLOCKS)),
        durability: Some(DurabilitySettings { ring_blocks: 16, unflushed_blocks_max: 24 }),
        checksums: Some(ChecksumSettings::default()),
        ..SBlockSettings::new()
    };
    let below = Geometry::plain(BlockCount(DISK_BLOCKS), Media::Conventional);
    SBlockLayout::new(&settings, &below).expect("a layout")
}

fn read(path: &Path) -> Reading {
    let disk = Member::open("s-blocks", path, false).expect("a member");
    let shape = Shape::SBlocks {
        disk: Box::new(Shape::Disk(disk)),
        blocks: BLOCKS,
        layout: Box::new(layout()),
    };
    fsck::read(&shape, None, EVERYTHING)
}

/// What a reader finds wrong that was written from the pages alone: blocks of the disk.
fn wrong_by_the_pages(path: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/format_reader.py");
    let output = std::process::Command::new("python3")
        .args(["-B".as_ref(), script.as_os_str(), "s-blocks-data".as_ref()])
        .arg(path)
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    document["wrong_blocks"].clone()
}

#[test]
fn checksums_are_compared_and_a_reader_written_from_the_pages_agrees() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = kept_translation("s-blocks", dir.path());
    let whole = read(&path);
    assert_eq!(problems(&whole.findings), Vec::<String>::new());
    assert!(whole.findings.notes.is_empty(), "everything was compared");
    assert_eq!(wrong_by_the_pages(&path), json!([]));
    let theirs = agree_on(&whole.members[0], "s-blocks", &path);
    let LayerState::SBlocks(state) = &whole.members[0].layer else {
        panic!("no S-blocks");
    };
    for (theirs, ours) in (0..).zip(&state.regions).map(|(at, ours)| {
        let theirs = &theirs["s_blocks"]["every_region"][at as usize];
        (theirs, ours)
    }) {
        assert_eq!(theirs["owners"], json!(ours.owners));
        assert_eq!(theirs["tables"], json!(ours.tables));
    }

    let places: Vec<SBlockPart> = (0..BLOCKS).filter_map(|lba| state.find(lba)).collect();
    let (mut homes, mut rings, mut rolled_back) = (0, 0, 0);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let file = file.expect("the disk");
    for place in places {
        let (address, named) = match place {
            SBlockPart::Ring(address, checksum) => {
                rings += 1;
                assert!(checksum.is_some(), "every checksum of a ring is known");
                (address, "ring")
            }
            SBlockPart::Position(address) => {
                homes += 1;
                (address, "data")
            }
            SBlockPart::Zeroes => continue,
        };
        let mut byte = [0];
        let at = address * 4096 + 1000;
        file.read_exact_at(&mut byte, at).expect("read");
        file.write_all_at(&[byte[0] ^ 1], at).expect("written");
        let found = read(&path).findings;
        let said = problems(&found);
        let is_told =
            |it: &String| it.contains(named) && it.contains("its data does not match its checksum");
        // Data of the newest record, which nothing vouches for, looks like a power cut: that is noted.
        let mut notes = found.notes.iter();
        let is_rolled_back = notes.any(|note| note.contains("never became durable"));
        rolled_back += u32::from(is_rolled_back);
        let is_named = said.len() == 1 && is_told(&said[0]);
        assert!(is_named != is_rolled_back, "{said:?}");
        // It is slow.
        if is_named && (homes + rings < 3 || rings == 2) {
            assert_eq!(wrong_by_the_pages(&path), json!([address]));
        }
        file.write_all_at(&byte, at).expect("written");
    }
    assert!(homes > 20 && rings > 4 && rolled_back == 1, "{homes} {rings} {rolled_back}");
}
