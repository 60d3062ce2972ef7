//! The references of stack files and drive files name every key that is not declared with `keys!`.

use std::fs;
use std::path::{Path, PathBuf};

/// A page, the source it explains, and the structures of that source whose fields are keys.
const REFERENCES: [(&str, &str, &[&str]); 7] = [
    ("docs/stacks.md", "stack/src/config.rs", &["StackConfig"]),
    (
        "docs/drives.md",
        "drives/src/model.rs",
        &["DriveModel", "PlatterModel", "SeekModel", "QueueModel", "CacheModel", "SolidStateModel"],
    ),
    ("docs/drives.md", "drives/src/seek.rs", &["SeekFormula"]),
    ("docs/drives.md", "drives/src/segments.rs", &["SegmentModel", "OverheadModel"]),
    ("docs/drives.md", "drives/src/bus.rs", &["BusModel", "WriteAfterWrite"]),
    ("docs/drives.md", "drives/src/zones.rs", &["DriveZones"]),
    (
        "docs/drives.md",
        "drives/src/shingles.rs",
        &["ShingleModel", "DirectionRun", "ConventionalRun"],
    ),
];

#[test]
fn the_references_name_every_key() {
    let mut missing = Vec::new();
    for (page, source, structures) in REFERENCES {
        let text = read(&root().join(page));
        let source = read(&root().join("crates").join(source));
        for structure in structures {
            for key in fields(&source, structure) {
                let is_named = [
                    format!("`{key}`"),
                    format!("`[{key}]`"),
                    format!("{key} = "),
                    format!("[[{key}]]"),
                ]
                .iter()
                .any(|form| text.contains(form));
                if !is_named {
                    missing.push(format!("{page}: {key} ({structure})"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "these keys are in no reference:\n  {}", missing.join("\n  "));
}

/// The public fields of a structure of a source.
fn fields(source: &str, structure: &str) -> Vec<String> {
    let start = format!("pub struct {structure} {{\n");
    let from = source.find(&start).expect("a structure of the source") + start.len();
    let body = &source[from..];
    let body = &body[..body.find("\n}").expect("the end of the structure")];
    let fields: Vec<String> = body
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next())
        .map(str::to_owned)
        .collect();
    assert!(!fields.is_empty(), "{structure} has no fields");
    fields
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
