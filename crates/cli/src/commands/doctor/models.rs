//! What is known of disks by their model.

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// How a disk records, and who keeps the rules of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Tracks apart: any block may be written at any time.
    Conventional,
    /// Shingled, and the disk hides it.
    DriveManaged,
    /// Shingled with zones; out-of-order writes are taken and cost.
    HostAware,
    /// Shingled with zones; out-of-order writes are refused.
    HostManaged,
    /// No moving parts.
    SolidState,
    /// Nothing says.
    Unknown,
}

impl Kind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Conventional => "conventional recording (CMR)",
            Kind::DriveManaged => "drive-managed shingled recording (SMR)",
            Kind::HostAware => "host-aware shingled recording (SMR)",
            Kind::HostManaged => "host-managed shingled recording (SMR)",
            Kind::SolidState => "a solid-state disk",
            Kind::Unknown => "not known",
        }
    }
}

/// A line of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModel {
    /// What the model string looks like; `*` stands for any characters, `?` for one.
    pub pattern: String,
    /// How it records.
    pub kind: Kind,
    /// Maker and product.
    pub name: String,
    /// The nearest drive of the library.
    pub drive: Option<String>,
    /// Who says so.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<KnownModel>,
}

/// The table, in its order.
pub static KNOWN: LazyLock<Vec<KnownModel>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("models.toml")).expect("the table is in order");
    file.model
});

/// The first line of the table for a model string, as the disk reports it.
pub fn lookup(model: &str) -> Option<&'static KnownModel> {
    // Disks of some makers put the maker's name before the model.
    let words = || std::iter::once(model.trim()).chain(model.split_whitespace());
    KNOWN
        .iter()
        .find(|known| words().any(|word| matches(&known.pattern, word)))
}

/// Whether a text looks like a pattern, without regard to case.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    // Where the last `*` stood, and how far the text was then.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_as_disks_report_them() {
        let rows = [
            ("ST8000AS0002-1NA17Z", Kind::DriveManaged),
            ("ST8000AS0022-1WL17Z", Kind::HostAware),
            ("WDC WD40EFAX-68JH4N0", Kind::DriveManaged),
            ("wd60efax", Kind::DriveManaged),
            ("HGST HSH721415ALN6M0", Kind::HostManaged),
            ("TOSHIBA HDWD240", Kind::DriveManaged),
        ];
        for (model, kind) in rows {
            assert_eq!(lookup(model).map(|known| known.kind), Some(kind), "{model}");
        }
        // The successor of the EFAX records conventionally.
        assert!(lookup("WDC WD40EFRX-68N32N0").is_none());
        assert!(lookup("WDC WD80EFZX").is_none());
    }

    #[test]
    fn every_line_of_the_table_can_be_reached() {
        for (index, known) in KNOWN.iter().enumerate() {
            let example = known.pattern.replace('*', "").replace('?', "4");
            let found = KNOWN
                .iter()
                .position(|other| matches(&other.pattern, &example));
            assert!(
                found == Some(index) || known.pattern.contains('?'),
                "{}",
                known.pattern
            );
            assert!(known.source.len() > 5, "{}: no source", known.pattern);
        }
    }

    #[test]
    fn a_star_stands_for_any_characters_and_a_question_mark_for_one() {
        assert!(matches("a*c", "abbc") && matches("a*c", "ac") && matches("*", ""));
        assert!(matches("a?c", "abc") && !matches("a?c", "ac") && !matches("a*c", "abd"));
    }
}
