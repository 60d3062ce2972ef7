//! The tables of keys in the documentation are those that the declarations give.
//!
//! `IMBREX_RECORD=1 cargo test --release -p imbrex-stack --test reference` writes them.

use imbrex_drives::TranslationSettings;
use imbrex_drives::keys::{Key, Keys};
use imbrex_report::{Column, TableOfKind};
use imbrex_stack::{KindKeys, kinds, policy_key};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const END: &str = "<!-- end of keys -->";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// A row of each key.
fn table(keys: &[Key]) -> String {
    let mut text = "| Key | Meaning | Accepted | Default |\n|---|---|---|---|\n".to_string();
    for key in keys {
        let older = key.older.map_or(String::new(), |older| format!(", once `{older}`"));
        let Key { name, sentence, accepted, .. } = key;
        let default = key.default.as_deref().unwrap_or("needed");
        let sentence = sentence.trim_end_matches('.');
        writeln!(text, "| `{name}`{older} | {sentence} | {accepted} | {default} |")
            .expect("memory");
    }
    text
}

/// The tables of a kind: its own, and one for each policy that has keys.
fn tables(kind: &KindKeys) -> String {
    let mut keys = kind.keys.clone();
    if !kind.of_policies.is_empty() {
        keys.push(policy_key());
    }
    let mut text = table(&keys);
    for (policy, keys) in kind.of_policies.iter().filter(|(_, keys)| !keys.is_empty()) {
        write!(text, "\nUnder `policy = \"{policy}\"` alone:\n\n{}", table(keys)).expect("memory");
    }
    text
}

#[test]
fn the_tables_of_keys_are_those_of_the_declarations() {
    let path = page("stacks.md");
    let was = fs::read_to_string(&path).expect("the page");
    let mut page = was.clone();
    for kind in kinds() {
        let begin = format!("<!-- keys of {} -->\n", kind.kind);
        let from = page.find(&begin).unwrap_or_else(|| panic!("{begin} in docs/stacks.md"));
        let from = from + begin.len();
        let to = from + page[from..].find(END).unwrap_or_else(|| panic!("{END} behind {begin}"));
        page.replace_range(from..to, &tables(kind));
    }
    if std::env::var_os("IMBREX_RECORD").is_some() {
        fs::write(&path, page).expect("the page can be written");
        return;
    }
    let line = was.lines().zip(page.lines()).find(|(was, is)| was != is);
    assert!(
        was == page,
        "docs/stacks.md is old, IMBREX_RECORD=1 writes it; the first line that differs: {line:?}"
    );
}

/// A table of the columns of each table and series that a kind makes of its nodes.
fn tables_of_kinds() -> String {
    let mut text = String::new();
    for kind in kinds() {
        for table in kind.tables {
            let (file, sentence, name) = (table.file(kind.kind), table.sentence, kind.kind);
            write!(
                text,
                "\n`{file}`, of every `{name}`: {sentence}\n\n| Column | Unit | What it is |\n|---|---|---|\n"
            )
            .expect("memory");
            for Column { name, unit, sentence } in table.columns {
                writeln!(text, "| `{name}` | {unit} | {sentence} |").expect("memory");
            }
        }
    }
    text + "\n"
}

#[test]
fn the_document_of_reports_has_the_tables_of_kinds_as_they_are_declared() {
    let path = page("reports.md");
    let was = fs::read_to_string(&path).expect("the page");
    let begin = was.find("<!-- tables of kinds: ").expect("the first marker");
    let from = begin + was[begin..].find('\n').expect("a line") + 1;
    let to = from + was[from..].find("<!-- end of tables of kinds -->").expect("the second marker");
    let is = format!("{}{}{}", &was[..from], tables_of_kinds(), &was[to..]);
    if std::env::var_os("IMBREX_RECORD").is_some() {
        fs::write(&path, is).expect("the page can be written");
        return;
    }
    assert!(was == is, "docs/reports.md is old, IMBREX_RECORD=1 writes it");
}

#[test]
fn the_tables_of_a_kind_say_what_they_are() {
    for kind in kinds() {
        for table in kind.tables {
            let (file, columns) = (table.file(kind.kind), table.columns);
            let said = columns.iter().map(|column| column.sentence).chain([table.sentence]);
            assert!(said.into_iter().all(|sentence| sentence.ends_with('.')), "{file}");
            assert!(!table.title.is_empty() && !columns.is_empty(), "{file}");
            assert_eq!(table.over_time, columns[0] == TableOfKind::TIME, "{file}");
        }
    }
}

#[test]
fn the_reference_of_drive_files_names_the_keys_of_the_translation() {
    let page = fs::read_to_string(page("drives.md")).expect("the page");
    let missing: Vec<&&str> = TranslationSettings::NAMES
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/drives.md names no {missing:?}");
}

#[test]
fn every_key_says_what_it_is() {
    for kind in kinds() {
        let of_policies = kind.of_policies.iter().flat_map(|(_, keys)| keys);
        for key in kind.keys.iter().chain(of_policies) {
            let is_said = !key.sentence.is_empty() && !key.accepted.is_empty();
            assert!(is_said && key.sentence.ends_with('.'), "{}.{}", kind.kind, key.name);
        }
    }
}
