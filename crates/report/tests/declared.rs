//! What the core declares stands in the document of reports and in their schema as it was declared.
//! `IMBREX_RECORD=1 cargo test --release -p imbrex-report --test declared` writes it there.

use imbrex_core::counters::{Declared, GROUPS, Kind};
use imbrex_core::operation::Cause;
use std::fmt::Write as _;
use std::path::Path;

/// A part of a file that follows from declarations.
struct Part {
    /// Of the repository.
    file: &'static str,
    /// How what stands before it ends, but for the rest of a line.
    begin: &'static str,
    /// The line after it.
    end: &'static str,
    /// What stands between.
    text: String,
}

fn parts() -> [Part; 4] {
    let in_document = |begin, end, text| Part { file: "docs/reports.md", begin, end, text };
    let in_schema =
        |begin, text| Part { file: "docs/schema/report.schema.json", begin, end: "      },", text };
    [
        in_document("<!-- counters: ", "<!-- end of counters -->", tables_of_counters()),
        in_document("<!-- causes: ", "<!-- end of causes -->", table_of_causes()),
        in_schema("    \"node_counts\": {\n", schema_of_counters()),
        in_schema("    \"by_cause\": {\n", schema_of_causes()),
    ]
}

/// A table for each group.
fn tables_of_counters() -> String {
    let mut text = String::new();
    for group in GROUPS {
        let _ = write!(
            text,
            "\n{}\n\n| Name | Unit | Kind | Several nodes | What it is |\n|---|---|---|---|---|\n",
            group.of
        );
        for Declared { name, unit, kind, together, sentence } in group.declared() {
            let (unit, kind, together) = (unit.name(), kind.name(), together.name());
            let _ = writeln!(text, "| `{name}` | {unit} | {kind} | {together} | {sentence} |");
        }
    }
    text + "\n"
}

fn table_of_causes() -> String {
    let mut text = "\n| Cause | Who wanted it |\n|---|---|\n".to_string();
    for cause in Cause::ALL {
        let _ = writeln!(text, "| `{}` | {} |", cause.name(), cause.sentence());
    }
    text + "\n"
}

fn schema_of_counters() -> String {
    let declared = GROUPS.iter().flat_map(|group| group.declared());
    properties(declared.map(|declared| {
        let Declared { name, unit, kind, sentence, .. } = declared;
        let of = match kind {
            Kind::Share => "share",
            Kind::Count | Kind::Present | Kind::Greatest => "count",
        };
        let says = format!("{sentence} ({}, {})", unit.name(), kind.name());
        (*name, says, format!(", \"$ref\": \"#/$defs/{of}\""))
    }))
}

fn schema_of_causes() -> String {
    let causes = Cause::ALL.into_iter();
    properties(causes.map(|cause| (cause.name(), cause.sentence().to_string(), String::new())))
}

/// The lines of properties: the name, the description, and what follows it.
fn properties(all: impl Iterator<Item = (&'static str, String, String)>) -> String {
    let line = |(name, says, rest): (&str, String, String)| {
        assert!(!says.contains(['"', '\\']), "{says}");
        format!("        \"{name}\": {{\"description\": \"{says}\"{rest}}}")
    };
    let lines: Vec<String> = all.map(line).collect();
    lines.join(",\n") + "\n"
}

#[test]
fn the_document_and_the_schema_say_what_is_declared() {
    for Part { file, begin, end, text } in parts() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let found =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let start = found.find(begin).expect(begin) + begin.len();
        let start = start + found[start..].find('\n').expect("a line") + 1;
        let there = start..start + found[start..].find(end).expect(end);
        if std::env::var_os("IMBREX_RECORD").is_some() {
            let whole = format!("{}{text}{}", &found[..there.start], &found[there.end..]);
            std::fs::write(&path, whole).unwrap_or_else(|error| panic!("{file}: {error}"));
        } else {
            let wrong = "does not say what is declared; IMBREX_RECORD=1 writes it";
            assert!(found[there] == text, "{file} {wrong}");
        }
    }
}
