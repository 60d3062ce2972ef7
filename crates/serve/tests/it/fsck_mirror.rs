//! The reader of members and the second reader on a member of a mirrored journal, written by hand.

use crate::fsck_images::{BLOCK, SET};
use imbrex_core::durability::LayerKind;
use imbrex_core::durability::block::{BlockKind, Header, seal};
use imbrex_core::durability::membership::{Listed, Membership};
use imbrex_core::durability::superblock::{FEATURE_MIRRORED, Superblock};
use imbrex_serve::fsck::{self, Checks, Member, Reading, Shape};
use serde_json::{Value, json};
use std::path::Path;

const CHECKPOINT_BLOCKS: u64 = 2;
const RING_BLOCKS: u64 = 8;
/// Three blocks at each end: two superblocks and a membership page.
const AREA_BLOCKS: u64 = 6 + 2 * CHECKPOINT_BLOCKS + RING_BLOCKS;
const RING_START: u64 = 3 + 2 * CHECKPOINT_BLOCKS;
const NUMBER: u16 = 4;

/// A member whose pages have seen so many changes.
fn member(changes: [u64; 2]) -> Vec<u8> {
    let mut bytes = vec![0; 40 * BLOCK];
    let mut put = |address: u64, block: &[u8]| {
        let at = address as usize * BLOCK;
        bytes[at..at + BLOCK].copy_from_slice(block);
    };
    let member = SET.member(NUMBER);
    let superblock = Superblock {
        compatible_features: 0,
        read_only_features: 0,
        required_features: FEATURE_MIRRORED,
        layer: LayerKind::PersistentCache as u32,
        set: SET,
        member,
        generation: 3,
        epoch: 2,
        member_blocks: 40,
        area_blocks: AREA_BLOCKS,
        checkpoint_blocks: CHECKPOINT_BLOCKS,
        checkpoint_place: 1,
        clean: false,
        checkpoint_checksum: crc32c::crc32c(b"map"),
        checkpoint_bytes: 3,
        replay_from: 9,
        checkpoint_pages: 0,
    };
    for address in [0, 1, AREA_BLOCKS - 2, AREA_BLOCKS - 1] {
        put(address, &superblock.encode(address));
    }
    for (address, changes) in [2, AREA_BLOCKS - 3].into_iter().zip(changes) {
        let listed = |number, is_in| Listed { number, is_in };
        // The older page knows nothing of the loss.
        let membership =
            Membership { changes, copies: vec![listed(3, changes < 7), listed(NUMBER, true)] };
        let mut block = vec![0; BLOCK];
        membership.seal_into(member, 1, address, &mut block);
        put(address, &block);
    }
    let header = |kind, address, generation, sequence, mark| Header {
        kind,
        member,
        address,
        generation,
        sequence,
        mark,
    };
    let address = 3 + CHECKPOINT_BLOCKS;
    let page = header(BlockKind::CheckpointPage, address, 3, 0, 1);
    put(address, &seal(&page, b"map"));
    let address = RING_START + 9 % RING_BLOCKS;
    let journal = header(BlockKind::Journal, address, 2, 9, 9);
    put(address, &seal(&journal, &[1, 0, 2, 0, 0, 0, 0, 0, 5, 6]));
    bytes
}

fn read(path: &Path) -> Reading {
    let member = Member::open("disk", path, false).expect("a member");
    fsck::read(&Shape::PersistentCache(member), Some(SET), Checks::default())
}

#[test]
fn a_member_of_a_mirrored_journal_says_which_copy_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk");
    for changes in [[7, 7], [7, 6], [6, 7]] {
        std::fs::write(&path, member(changes)).expect("a file");
        let reading = read(&path);
        let note = "disk: its journal is mirrored: copy 1 of 2 (member 4), in; as it says, copy 0 \
                    (member 3) out";
        assert!(reading.findings.notes.contains(&note.to_owned()), "{:?}", reading.findings.notes);
        let journal = reading.members[0].journal.as_ref().expect("a journal");
        assert_eq!((journal.checkpoint.as_slice(), journal.next), (&b"map"[..], 10));
        assert_eq!(journal.records[0].payload, [5, 6]);
        let theirs = second_reader(&path);
        let copies = json!([{"number": 3, "is_in": false}, {"number": 4, "is_in": true}]);
        let mirror = json!({"copy": 1, "changes": 7, "copies": copies});
        assert_eq!(theirs["journal"]["mirror"], mirror);
        assert_eq!(theirs["journal"]["ring_start"], json!(RING_START));
        assert_eq!(theirs["journal"]["ring_blocks"], json!(RING_BLOCKS));
        assert_eq!(theirs["journal"]["every_record"][0]["payload"], json!("0506"));
    }
}

#[test]
fn a_damaged_membership_page_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk");
    let mut bytes = member([7, 7]);
    bytes[2 * BLOCK + 100] ^= 1;
    std::fs::write(&path, bytes).expect("a file");
    let problem = "page 0 at block 2: its checksum does not match its bytes";
    let found = read(&path).findings.kept;
    let is_named = found
        .iter()
        .any(|found| (found.structure, found.problem.as_str()) == ("membership", problem));
    assert!(is_named, "{found:?}");
}

fn second_reader(path: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/format_reader.py");
    let output = std::process::Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg("journal")
        .arg(path)
        .output()
        .expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("a document")
}
