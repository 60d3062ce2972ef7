//! What is known of disks by their model.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// Models of one maker that record alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// How they record.
    pub kind: Kind,
    /// Maker and product.
    pub name: String,
    /// The drive of the library that is one of them, or nearest to them.
    pub drive: Option<String>,
    /// Who says so.
    pub source: String,
    /// How their model strings begin, with their nominal capacities in TB.
    models: BTreeMap<String, f64>,
}

/// A model of the table.
#[derive(Clone, Copy, Debug)]
pub struct KnownModel {
    /// How its model string begins.
    model: &'static str,
    /// Nominal.
    pub capacity_bytes: u64,
    /// Its fellows, and who speaks of them.
    pub family: &'static Family,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<Family>,
}

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("models.toml")).expect("the table is in order");
    file.model
});

/// Characters of a model that sysfs gives: those of SCSI's INQUIRY data, to which longer ones are cut.
const INQUIRY_CHARS: usize = 16;
/// What is left of a model that was cut must be so long to tell it from others.
const CUT_CHARS_MIN: usize = 8;

/// Every model of the table.
fn known() -> impl Iterator<Item = KnownModel> {
    FAMILIES.iter().flat_map(|family| {
        let models = family.models.iter();
        models.map(move |(model, terabytes)| KnownModel {
            model,
            capacity_bytes: (terabytes * 1e12) as u64,
            family,
        })
    })
}

/// The model of the table that a string begins with, as a disk reports it or a user writes it: in any
/// letter case, perhaps after the maker's name, perhaps cut.
pub fn lookup(reported: &str) -> Option<KnownModel> {
    let begins = |text: &str, with: &str| {
        let start = text.as_bytes().get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
    };
    let words = || reported.split_whitespace();
    let whole = known()
        .filter(|known| words().any(|word| begins(word, known.model)))
        .max_by_key(|known| known.model.len());
    let cut = || {
        let word = words()
            .last()
            .filter(|word| reported.trim().len() == INQUIRY_CHARS && word.len() >= CUT_CHARS_MIN)?;
        known().find(|known| begins(known.model, word))
    };
    whole.or_else(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(model: &str) -> Option<Kind> {
        lookup(model).map(|known| known.family.kind)
    }

    #[test]
    fn models_are_found_as_disks_report_them_and_as_users_write_them() {
        let rows = [
            ("ST8000AS0002-1NA17Z", Kind::DriveManaged),
            ("ST8000AS0022-1WL17Z", Kind::HostAware),
            ("WDC WD40EFAX-68JH4N0", Kind::DriveManaged),
            ("wd60efax", Kind::DriveManaged),
            ("HGST HSH721415ALN6M0", Kind::HostManaged),
            ("WDC  WSH722020AL", Kind::HostManaged),
            ("TOSHIBA HDWD240", Kind::DriveManaged),
            ("hdwd240uzsva", Kind::DriveManaged),
            ("Toshiba DT02ABA400V", Kind::DriveManaged),
            // Cut to 16 characters by sysfs.
            ("TOSHIBA MQ04ABF1", Kind::DriveManaged),
            ("TOSHIBA DT02ABA6", Kind::DriveManaged),
        ];
        for (model, expected) in rows {
            assert_eq!(kind(model), Some(expected), "{model}");
        }
        for unknown in [
            "",
            " ",
            "WD",
            "TOSHIBA",
            "nonsense",
            "TOSHIBA MQ04ABF0",
            "MQ04ABF1",
            "ST8000",
            "XST8000AS0002",
        ] {
            assert_eq!(kind(unknown), None, "{unknown}");
        }
    }

    /// Sizes that share the letters of a model, and those at which its recording changes.
    #[test]
    fn what_is_known_of_a_model_ends_where_its_sources_do() {
        use Kind::{Conventional, DriveManaged};
        let terabytes = |sizes: &[u32], letters: &str| -> Vec<String> {
            let sizes = sizes.iter();
            sizes.map(|size| format!("WD{}{letters}", size * 10)).collect()
        };
        let rows: [(&str, &[u32], Kind); 9] = [
            ("EFAX", &[2, 3, 4, 6], DriveManaged),
            ("EFAX", &[8, 10, 12], Conventional),
            ("EZAZ", &[2, 3, 4, 6], DriveManaged),
            ("EZAZ", &[8, 10], Conventional),
            ("EDAZ", &[2, 3, 4, 6], DriveManaged),
            ("EDAZ", &[8], Conventional),
            ("SPZX", &[1, 2], DriveManaged),
            ("EFRX", &[1, 2, 3, 4, 5, 6], Conventional),
            ("EFZX", &[2, 3, 4, 6, 8], Conventional),
        ];
        for letters in ["EFAX", "EZAZ", "EDAZ", "SPZX", "EFRX", "EFZX"] {
            let sizes: Vec<u32> = (1..=14).collect();
            for (size, model) in sizes.iter().zip(terabytes(&sizes, letters)) {
                let row =
                    rows.iter().find(|(row, sizes, _)| *row == letters && sizes.contains(size));
                assert_eq!(kind(&model), row.map(|(_, _, kind)| *kind), "{model}");
            }
        }
        let rows = [
            ("WD101EFAX", Some(Conventional)),
            ("ST2000DM005", Some(DriveManaged)),
            ("ST2000DM006", Some(Conventional)),
            ("ST2000DM007", Some(Conventional)),
            ("ST2000DM008", Some(DriveManaged)),
            ("ST4000DM004", Some(DriveManaged)),
            ("ST4000DM005", Some(DriveManaged)),
            ("ST4000DM006", Some(Conventional)),
            ("ST6000DM003", Some(DriveManaged)),
            ("ST6000DM004", Some(Conventional)),
            ("ST8000DM004", Some(DriveManaged)),
            ("ST8000DM005", Some(Conventional)),
            ("ST10000DM0004", Some(Conventional)),
            ("ST1000DM003", None),
            ("ST4000DM000", None),
            ("ST5000DM000", Some(DriveManaged)),
            ("ST6000DM001", None),
            ("ST1000LM024", None),
            ("ST1000LM035", Some(DriveManaged)),
            ("ST1000LM048", Some(DriveManaged)),
            ("ST1000LM049", None),
            ("ST2000LM003", None),
            ("ST2000LM015", Some(DriveManaged)),
            ("ST5000LM000", Some(DriveManaged)),
            ("ST3000AS0011", None),
            ("ST8000AS0003", None),
            ("HDWD130", Some(Conventional)),
            ("HDWD220", Some(DriveManaged)),
            ("HDWD230", None),
            ("HDWL110", Some(DriveManaged)),
            ("HDWL120", Some(DriveManaged)),
            ("HDWJ110", Some(Conventional)),
            ("DT02ABA200", None),
            ("DT02ABA400", Some(DriveManaged)),
            ("MQ04ABF050", None),
            ("MQ04ABF100", Some(DriveManaged)),
            ("MQ04ABD200", Some(DriveManaged)),
            ("HUH721010ALE600", None),
            ("WSH722222ALE604", None),
        ];
        for (model, expected) in rows {
            assert_eq!(kind(model), expected, "{model}");
        }
    }

    #[test]
    fn every_model_of_the_table_is_found_with_its_own_size_kind_and_source() {
        for known in known() {
            let found = lookup(&known.model.to_lowercase()).expect("a model of the table");
            assert_eq!(found.model, known.model, "in the table twice");
            assert_eq!(found.family.name, known.family.name, "{}", known.model);
            assert!(known.family.source.len() > 5, "{}: no source", known.model);
            let kind = known.family.kind;
            assert!(kind != Kind::Unknown && kind != Kind::SolidState, "{}", known.model);
            // Makers write the size into the model: GB at Seagate's, and tenths of TB or GB at Western
            // Digital's.
            let digits: String =
                known.model[2..].chars().take_while(char::is_ascii_digit).collect();
            let number: f64 = digits.parse().unwrap_or_default();
            let bytes = match (&known.model[..2], digits.len()) {
                ("ST", _) => number * 1e9,
                ("WD", 4) => (number / 1000.0).floor() * 1e12,
                ("WD", _) => (number / 10.0).floor() * 1e12,
                _ => continue,
            };
            assert_eq!(known.capacity_bytes, bytes as u64, "{}", known.model);
        }
    }

    #[test]
    fn the_library_has_the_drives_that_the_table_names() {
        for family in FAMILIES.iter() {
            let Some(drive) = &family.drive else { continue };
            let drive = imbrex_drives::Drive::open(drive).expect("a drive of the library");
            let shingled =
                matches!(family.kind, Kind::DriveManaged | Kind::HostAware | Kind::HostManaged);
            let media = drive.model.translation.is_some() || drive.model.zones.is_some();
            assert_eq!(media, shingled, "{}", family.name);
        }
    }
}
