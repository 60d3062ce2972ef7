//! The pages that draw the formats and the tables of the code say the same.

use imbrex_core::array;
use imbrex_core::array::raid1;
use imbrex_core::cache::codec;
use imbrex_core::durability::RECORD_FIELDS;
use imbrex_core::durability::block::{Field, HEADER_FIELDS};
use imbrex_core::durability::{membership, superblock};
use imbrex_core::label;
use imbrex_core::memory_buffer::codec as buffer;
use imbrex_core::translation::codec as translation;
use imbrex_core::translation::records::RECORDS;
use imbrex_core::translation::s_block_records as s_block;
use imbrex_core::translation::segment::codec as segment;

const ARRAY: &str = include_str!("../../../../docs/formats/array.md");
const LABEL: &str = include_str!("../../../../docs/formats/label.md");
const JOURNAL: &str = include_str!("../../../../docs/formats/journal.md");
const TRANSLATION: &str = include_str!("../../../../docs/formats/translation.md");
const CACHE: &str = include_str!("../../../../docs/formats/cache.md");

const MEMORY_BUFFER: &str = include_str!("../../../../docs/formats/memory-buffer.md");
const SEGMENTS: &str = include_str!("../../../../docs/formats/segments.md");
const S_BLOCK: &str = include_str!("../../../../docs/formats/s-block.md");

/// The rows of the tables of fields under a heading: first byte, bytes, name.
fn fields_on_page(page: &str, heading: &str) -> Vec<(usize, usize, String)> {
    let section = page
        .lines()
        .skip_while(|line| line.trim_start_matches('#').trim() != heading)
        .skip(1)
        .take_while(|line| !line.starts_with('#'));
    section.filter_map(row).collect()
}

/// A row `| byte | bytes | `name` | ...`.
fn row(line: &str) -> Option<(usize, usize, String)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let offset = cells.next()?.parse().ok()?;
    let bytes = cells.next()?.parse().ok()?;
    let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    Some((offset, bytes, name.to_owned()))
}

fn check(page: &str, heading: &str, fields: &[Field]) {
    let expected: Vec<(usize, usize, String)> =
        fields.iter().map(|field| (field.offset, field.bytes, field.name.to_owned())).collect();
    assert_eq!(fields_on_page(page, heading), expected, "{heading}");
}

#[test]
fn the_page_of_the_journal_draws_what_the_code_writes() {
    check(JOURNAL, "Sealed block", &HEADER_FIELDS);
    check(JOURNAL, "Superblock", &superblock::FIELDS);
    check(JOURNAL, "Journal block", &RECORD_FIELDS);
    check(JOURNAL, "Membership page", &membership::FIELDS);
}

#[test]
fn the_page_of_arrays_draws_what_the_code_writes() {
    check(ARRAY, "Member", &array::MEMBER_FIELDS);
    check(ARRAY, "Head", &raid1::CHECKPOINT_FIELDS);
    for (kind, name) in raid1::RECORD_KINDS {
        let row = format!("| {kind} | `{name}` |");
        assert!(ARRAY.contains(&row), "the page has no row {row}");
    }
}

#[test]
fn the_page_of_labels_draws_what_the_code_writes() {
    check(LABEL, "Head", &label::HEAD_FIELDS);
    check(LABEL, "Entry", &label::ENTRY_FIELDS);
    check(LABEL, "Mark", &label::MARK_FIELDS);
}

#[test]
fn the_page_of_the_cache_draws_what_the_code_writes() {
    check(CACHE, "Checkpoint", &codec::CHECKPOINT_FIELDS);
    check(CACHE, "Part", &codec::PART_FIELDS);
    check(CACHE, "Mapping", &codec::MAPPING_FIELDS);
    check(CACHE, "Clean slot", &codec::CLEAN_FIELDS);
    check(CACHE, "Map", &codec::MAP_FIELDS);
    check(CACHE, "Free", &codec::FREE_FIELDS);
    check(CACHE, "Write-intent page", &codec::INTENT_FIELDS);
    for (kind, name) in codec::RECORD_KINDS {
        let row = format!("| {kind} | `{name}` |");
        assert!(CACHE.contains(&row), "the page has no row {row}");
    }
}

#[test]
fn the_page_of_segments_draws_what_the_code_writes() {
    check(SEGMENTS, "Checkpoint", &segment::HEAD_FIELDS);
    check(SEGMENTS, "Blank page", &segment::BLANK_FIELDS);
    check(SEGMENTS, "Slot", &segment::SLOT_FIELDS);
    check(SEGMENTS, "Rewrite", &segment::REWRITE_FIELDS);
    check(SEGMENTS, "Zero", &segment::ZERO_FIELDS);
    for (kind, name) in segment::RECORD_KINDS {
        let row = format!("| {kind} | `{name}` |");
        assert!(SEGMENTS.contains(&row), "the page has no row {row}");
    }
}

#[test]
fn the_page_of_s_blocks_draws_what_the_code_writes() {
    check(S_BLOCK, "Checkpoint", &s_block::HEAD_FIELDS);
    check(S_BLOCK, "Region", &s_block::REGION_FIELDS);
    check(S_BLOCK, "Place", &s_block::PLACE_FIELDS);
    check(S_BLOCK, "Appended", &s_block::APPENDED_FIELDS);
    check(S_BLOCK, "Ring", &s_block::RING_FIELDS);
    check(S_BLOCK, "Trimmed", &s_block::TRIMMED_FIELDS);
    for (kind, name) in s_block::RECORD_KINDS {
        let row = format!("| {kind} | `{name}` |");
        assert!(S_BLOCK.contains(&row), "the page has no row {row}");
    }
}

#[test]
fn the_page_of_the_translation_draws_the_checkpoint_of_the_code() {
    check(TRANSLATION, "Checkpoint", &translation::HEAD_FIELDS);
    check(TRANSLATION, "Log entry", &translation::ENTRY_FIELDS);
    check(TRANSLATION, "Checksums", &translation::CHECKSUM_FIELDS);
    check(TRANSLATION, "Ranges", &translation::RANGES_FIELDS);
    check(TRANSLATION, "Range", &translation::RANGE_FIELDS);
    check(TRANSLATION, "Scratch held", &translation::SCRATCH_HELD_FIELDS);
    check(TRANSLATION, "Scratch", &translation::SCRATCH_FIELDS);
    check(TRANSLATION, "Stretch", &translation::STRETCH_FIELDS);
    check(TRANSLATION, "Band", &translation::BAND_FIELDS);
    check(TRANSLATION, "Open bands", &translation::OPEN_BANDS_FIELDS);
    check(TRANSLATION, "Open band", &translation::OPEN_FIELDS);
}

#[test]
fn the_page_of_the_translation_lists_the_records_of_the_code() {
    for record in RECORDS {
        let row = format!("| {} | `{}` | ", record.kind, record.name);
        let found = TRANSLATION.lines().find(|line| line.starts_with(&row));
        let cells: Vec<&str> = found.expect(&row).split('|').map(str::trim).collect();
        assert_eq!(cells[3] != "none", record.has_data, "{row}");
        let fields: Vec<String> =
            record.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        assert_eq!(cells[4], fields.join(", "), "{row}");
        let mut next = 0;
        for field in record.fields {
            assert_eq!((field.offset, field.bytes), (next, 8), "a row of words");
            next += 8;
        }
    }
}

#[test]
fn the_page_of_the_memory_buffer_draws_what_the_code_writes() {
    check(MEMORY_BUFFER, "Checkpoint", &buffer::CHECKPOINT_FIELDS);
    check(MEMORY_BUFFER, "Live block", &buffer::LIVE_FIELDS);
    check(MEMORY_BUFFER, "Written", &buffer::WRITTEN_FIELDS);
    check(MEMORY_BUFFER, "Clean", &buffer::CLEAN_FIELDS);
    check(MEMORY_BUFFER, "Zeroed", &buffer::ZEROED_FIELDS);
    for (kind, name) in buffer::RECORD_KINDS {
        let row = format!("| {kind} | `{name}` |");
        assert!(MEMORY_BUFFER.contains(&row), "the page has no row {row}");
    }
}
