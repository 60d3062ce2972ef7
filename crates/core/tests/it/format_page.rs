//! The pages that draw the formats and the tables of the code say the same.

use imbrex_core::durability::RECORD_FIELDS;
use imbrex_core::durability::block::{Field, HEADER_FIELDS};
use imbrex_core::durability::superblock;
use std::path::Path;

/// The rows of the tables of fields under a heading: first byte, bytes, name.
fn fields_on_page(page: &str, heading: &str) -> Vec<(usize, usize, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats");
    let text = std::fs::read_to_string(path.join(page)).expect("the page");
    let section = text
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
    let expected: Vec<(usize, usize, String)> = fields
        .iter()
        .map(|field| (field.offset, field.bytes, field.name.to_owned()))
        .collect();
    assert_eq!(fields_on_page(page, heading), expected, "{page}: {heading}");
}

#[test]
fn the_page_of_the_journal_draws_what_the_code_writes() {
    check("journal.md", "Sealed block", &HEADER_FIELDS);
    check("journal.md", "Superblock", &superblock::FIELDS);
    check("journal.md", "Journal block", &RECORD_FIELDS);
}
