//! What the blocks of simulated disks hold, and what a shingled write destroys.

use super::rig::Rig;
use imbrex_core::buffer::{ContentKind, Stamp};
use imbrex_core::disk::{Disk, TrackTable};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::units::{BlockCount, Lba};
use imbrex_drives::{DiskOptions, Drive, LIBRARY};
use proptest::prelude::*;
use std::collections::BTreeMap;

const ZERO: Operation = Operation::Zero { durability: Durability::Cached, may_unmap: true };

/// The library's shingled drive shrunk to tracks of 12 and 8 blocks.
fn tiny(overlap_tracks: u64) -> Drive {
    let text = LIBRARY.iter().find(|(name, _)| *name == "st5000as0011").unwrap().1;
    let text = text
        .replace("outer_track = \"1856 KiB\"", "outer_track = \"48 KiB\"")
        .replace("inner_track = \"964 KiB\"", "inner_track = \"32 KiB\"")
        .replace("zones = 223", "zones = 2")
        .replace("overlap_tracks = 1", &format!("overlap_tracks = {overlap_tracks}"));
    Drive::parse("tiny", &text).unwrap()
}

fn rig(overlap_tracks: u64, contents: ContentKind) -> Rig {
    let options = DiskOptions {
        capacity: Some(BlockCount(300)),
        conventional: vec![Extent::new(0, 30)],
        contents,
        ..DiskOptions::default()
    };
    Rig::of(&tiny(overlap_tracks), options)
}

fn tracks(rig: &Rig) -> TrackTable {
    TrackTable::clone(rig.disk().geometry().tracks.as_deref().unwrap())
}

fn stamp(lba: u64, version: u64) -> Stamp {
    Stamp { lba: Lba(lba), version }
}

/// Writes every track from last to first, so that nothing is destroyed when the test begins.
fn fill(rig: &mut Rig) {
    let tracks = tracks(rig);
    for track in 0..tracks.tracks() {
        rig.write(tracks.extent_of(track), 1);
    }
    let all = Extent::new(0, tracks.blocks());
    let intact = |block: u64, seen: &Stamp| *seen == stamp(block, 1);
    assert!(rig.read(all).iter().zip(0..).all(|(seen, block)| intact(block, seen)));
}

#[test]
fn a_shingled_write_destroys_the_tracks_that_follow_and_nothing_else() {
    for overlap in [1, 2, 3] {
        let mut rig = rig(overlap, ContentKind::Stamped);
        let tracks = tracks(&rig);
        assert_eq!(tracks.conventional_prefix(), BlockCount(36), "three tracks of twelve");
        for track in 3..tracks.tracks() {
            fill(&mut rig);
            rig.write(tracks.extent_of(track), 2);
            let seen = rig.read(Extent::new(0, tracks.blocks()));
            for (block, seen) in (0..).zip(seen) {
                let at = tracks.track_of(block);
                let expected = match at {
                    _ if at == track => stamp(block, 2),
                    _ if at > track && at <= track + overlap => Stamp::DESTROYED,
                    _ => stamp(block, 1),
                };
                assert_eq!(seen, expected, "block {block}, track {at} after track {track}");
            }
        }
    }
}

#[test]
fn a_part_of_a_track_destroys_the_same_angle_of_the_next() {
    let mut rig = rig(1, ContentKind::Stamped);
    let tracks = tracks(&rig);
    let inner = tracks.runs()[1];
    let last_outer = tracks.extent_of(inner.first_track - 1);
    fill(&mut rig);
    // Blocks 3..6 of 12 are a quarter to a half of the turn: blocks 2..4 of 8.
    rig.write(Extent::new(last_outer.start.0 + 3, 3), 2);
    let next = tracks.extent_of(inner.first_track);
    let destroyed: Vec<bool> = rig.read(next).iter().map(|s| *s == Stamp::DESTROYED).collect();
    assert_eq!(destroyed, [false, false, true, true, false, false, false, false]);
}

#[test]
fn the_conventional_part_takes_writes_in_any_order() {
    let mut rig = rig(2, ContentKind::Stamped);
    fill(&mut rig);
    for track in (0..3).rev() {
        rig.write(tracks(&rig).extent_of(track), 2);
    }
    let seen = rig.read(Extent::new(0, rig.blocks()));
    for (block, seen) in (0..).zip(seen) {
        assert_eq!(seen, stamp(block, if block < 36 { 2 } else { 1 }));
    }
}

#[test]
fn a_conventional_disk_destroys_nothing() {
    let options =
        DiskOptions { scale: 4096, contents: ContentKind::Stamped, ..DiskOptions::default() };
    let mut rig = Rig::new("cmr-500gb-7200", options);
    let tracks = tracks(&rig);
    for track in [5, 4, 3] {
        rig.write(tracks.extent_of(track), 1);
    }
    for track in [3, 4, 5] {
        let extent = tracks.extent_of(track);
        assert!(rig.read(extent).iter().zip(extent.start.0..).all(|(s, b)| *s == stamp(b, 1)));
    }
}

#[test]
fn bytes_are_kept_in_memory_and_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contents");
    for contents_file in [None, Some(path.clone())] {
        let options = DiskOptions {
            capacity: Some(BlockCount(300)),
            conventional: vec![Extent::new(0, 30)],
            contents: ContentKind::Bytes,
            contents_file,
            ..DiskOptions::default()
        };
        let mut rig = Rig::of(&tiny(1), options);
        rig.write(Extent::new(36, 24), 7);
        rig.write(Extent::new(36, 12), 8);
        rig.one(ZERO, Extent::new(40, 3), 0).result.unwrap();
        let mut seen = rig.one(Operation::Read, Extent::new(30, 50), 0).bytes;
        seen.dedup();
        assert_eq!(seen, [0, 8, 0, 8, 0xdb, 0]);
    }
    let mut reopened = Rig::of(
        &tiny(1),
        DiskOptions {
            capacity: Some(BlockCount(300)),
            contents: ContentKind::Bytes,
            contents_file: Some(path),
            ..DiskOptions::default()
        },
    );
    let bytes = reopened.one(Operation::Read, Extent::new(39, 2), 0).bytes;
    assert_eq!((bytes[0], bytes[4096]), (8, 0), "the file outlives the disk");
}

#[test]
fn zone_commands_are_refused() {
    let mut rig = rig(1, ContentKind::Stamped);
    let answer = rig.one(Operation::ZoneReset, Extent::new(0, 1), 0);
    assert_eq!(answer.result, Err(IoError::Invalid));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Against a map from block to stamp, on the conventional part and off any track boundary.
    #[test]
    fn a_disk_reads_what_was_written(ops in prop::collection::vec((0..3u8, 0..500u64, 1..80u64), 1..60)) {
        let options = DiskOptions {
            capacity: Some(BlockCount(600)),
            conventional: vec![Extent::new(0, 600)],
            contents: ContentKind::Stamped,
            ..DiskOptions::default()
        };
        let mut rig = Rig::of(&tiny(2), options);
        let mut model = BTreeMap::new();
        for (version, (kind, start, blocks)) in (1..).zip(ops) {
            let extent = Extent::new(start, blocks);
            match kind {
                0 => {
                    rig.write(extent, version);
                    model.extend((start..start + blocks).map(|block| (block, stamp(block, version))));
                }
                1 => {
                    rig.one(ZERO, extent, 0).result.unwrap();
                    model.retain(|block, _| !extent.contains(Lba(*block)));
                }
                _ => {
                    for (block, seen) in (start..).zip(rig.read(extent)) {
                        prop_assert_eq!(seen, model.get(&block).copied().unwrap_or(Stamp::ZERO));
                    }
                }
            }
        }
    }
}
