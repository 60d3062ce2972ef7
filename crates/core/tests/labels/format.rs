//! A label of format version 1, as bytes: it is read, and written again, for as long as there is that version.

use imbrex_core::label::{Entry, Label, LabelCopy, Mark};
use imbrex_core::lifecycle::Uuid;

const BLOCK: usize = 4096;
/// A disk of one block, and its label: disk 2 of three, of which the third was away. The count has moved, and the first copy
/// was written when the second was not yet. `make_label.py` beside it has made it from the page of the format alone.
const DISK: &[u8] = include_bytes!("../fixtures/format-1/label.img");
const BLOCKS: u64 = 1;

fn mark(count: u32, random: u32) -> Mark {
    Mark { count, random }
}

/// What the copies say.
fn labels() -> [Label; 2] {
    let (older, old, new) =
        (mark(6, 0x0102_0304), mark(0x107, 0xf00d_cafe), mark(0x0001_0009, 0x8000_0001));
    let entry = |disk, last, before| Entry { disk, last, before };
    let label = |mark, from, entries| Label {
        set: Uuid(std::array::from_fn(|byte| byte as u8 * 17)),
        disk: 2,
        mark,
        from,
        entries,
        server: 0,
    };
    let away = entry(0x103, older, None);
    let first = [entry(1, new, Some(old)), entry(2, new, Some(old)), away];
    let second = [entry(1, old, None), entry(2, old, None), away];
    [label(new, Some(old), first.to_vec()), label(old, None, second.to_vec())]
}

#[test]
fn a_label_of_format_version_1_says_what_it_said_and_is_written_as_it_was() {
    assert_eq!(DISK.len(), 3 * BLOCK);
    for (copy, label) in LabelCopy::ALL.into_iter().zip(labels()) {
        let at = copy.address(BLOCKS) as usize * BLOCK;
        let block = &DISK[at..at + BLOCK];
        assert_eq!(Label::unseal(block, copy, BLOCKS), Ok(label.clone()));
        let sealed = label.seal(copy, BLOCKS).expect("a block holds it");
        assert!(sealed == block, "{copy:?}: other bytes");
    }
}
