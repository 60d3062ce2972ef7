//! The drives that come with Imbrex, and those in files of the user's own.

use super::design::seek_curve;
use super::model::DriveModel;
use crate::toml_error::{TomlError, from_toml, nearest, read_text};
use sha2::{Digest, Sha256};
use std::path::Path;

macro_rules! drive {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../drives/", $name, ".toml")))
    };
    ($name:literal in $folder:literal) => {
        ($name, include_str!(concat!("../../../drives/", $folder, "/", $name, ".toml")))
    };
}

/// Names and files of the drives inside the binary, in the order of their names.
pub const LIBRARY: &[(&str, &str)] = &[
    drive!("850evo"),
    drive!("atlas10k"),
    drive!("barracuda-4lp"),
    drive!("cheetah-9lp"),
    drive!("cmr-500gb-7200"),
    drive!("hc620-14tb"),
    drive!("hc620-15tb"),
    drive!("ibm-18es"),
    drive!("intel320"),
    drive!("nvram"),
    drive!("pblaze4"),
    drive!("st5000as0011"),
    drive!("st8000as0002"),
    drive!("st8000as0022"),
    drive!("st8000dm004"),
    drive!("ultrastar-15k450"),
    drive!("wd-4tb-7200"),
    drive!("wd1002faex"),
    drive!("wd40efax"),
];

/// Drives of a few hundred blocks that nobody sells, inside the binary too: crash search takes them, and
/// whoever tests a host. They are found by name as those of the library, and no list of drives has them.
const TINY: &[(&str, &str)] = &[
    drive!("tiny-cmr" in "tiny"),
    drive!("tiny-cmr-2" in "tiny"),
    drive!("tiny-flash" in "tiny"),
    drive!("tiny-smr-1" in "tiny"),
    drive!("tiny-smr-2" in "tiny"),
    drive!("tiny-up-1" in "tiny"),
    drive!("tiny-up-2" in "tiny"),
    drive!("tiny-up-3" in "tiny"),
    drive!("tiny-wave-1" in "tiny"),
    drive!("tiny-wave-2" in "tiny"),
    drive!("tiny-wave-3" in "tiny"),
];

/// Why there is no such drive.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Neither a drive of the library nor a file.
    #[error("unknown drive `{name}`: {hint}; known are {known}, or the path of a TOML file", known = known_names())]
    Unknown {
        /// As asked for.
        name: String,
        /// The nearest name.
        hint: String,
    },
    /// The file cannot be read.
    #[error("{path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The file is no drive.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// The file describes a drive that cannot exist.
    #[error("{file}: {reason}")]
    Model {
        /// The file or the name of the drive.
        file: String,
        /// What is wrong and what is accepted.
        reason: String,
    },
}

/// The names of the library.
fn names() -> impl Iterator<Item = &'static str> {
    LIBRARY.iter().map(|(name, _)| *name)
}

fn known_names() -> String {
    names().collect::<Vec<_>>().join(", ")
}

/// Name and file of a drive of the library or of a tiny one; its name may be in any letter case.
fn of_library(name: &str) -> Option<(&'static str, &'static str)> {
    let mut drives = LIBRARY.iter().chain(TINY).copied();
    drives.find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// A drive model and where it came from.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Name in the library, or path.
    pub file: String,
    /// SHA-256 of the text, in hexadecimal.
    pub sha256: String,
    /// What it says.
    pub model: DriveModel,
}

impl Drive {
    /// Whether the drive of that name is in a file of its own rather than in the library.
    pub fn is_in_file(name: &str) -> bool {
        names().all(|known| known != name) && Path::new(name).exists()
    }

    /// The drive of that name in the library, in any letter case, or in the file at that path.
    /// `drives/NAME.toml` is the drive of the library when there is no such file, and so is a name in
    /// other case.
    ///
    /// # Errors
    /// When there is no such drive, or its file is not in order.
    pub fn open(name: &str) -> Result<Drive, DriveError> {
        if Drive::is_in_file(name) {
            let text = read_text(name).map_err(|error| DriveError::Read {
                path: name.to_string(),
                reason: error.to_string(),
            })?;
            return Drive::parse(name, &text);
        }
        let stem =
            name.strip_prefix("drives/").and_then(|n| n.strip_suffix(".toml")).unwrap_or(name);
        if let Some((name, text)) = of_library(stem) {
            return Drive::parse(name, text);
        }
        let hint = match nearest(&stem.to_ascii_lowercase(), names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "there is no such file".to_string(),
        };
        Err(DriveError::Unknown { name: name.to_string(), hint })
    }

    /// The file of a drive of the library, whose name may be in any letter case.
    ///
    /// # Errors
    /// When the library has no such drive.
    pub fn text_of_library(name: &str) -> Result<&'static str, DriveError> {
        of_library(name).map(|(_, text)| text).ok_or_else(|| DriveError::Unknown {
            name: name.to_string(),
            hint: match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "it is not in the library".to_string(),
            },
        })
    }

    /// The drive described by `text`, which came from `file`.
    ///
    /// # Errors
    /// When it is not TOML, not a drive, or not one that can exist.
    pub fn parse(file: &str, text: &str) -> Result<Drive, DriveError> {
        let model: DriveModel = from_toml(file, text)?;
        let wrong = |reason| DriveError::Model { file: file.to_string(), reason };
        model.check().map_err(wrong)?;
        if let Some(seek) = &model.seek {
            seek_curve(seek, u64::from(u16::MAX)).map_err(wrong)?;
        }
        let digest = Sha256::digest(text.as_bytes());
        Ok(Drive {
            file: file.to_string(),
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            model,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{DiskDesign, DiskOptions};

    #[test]
    fn every_drive_of_the_library_is_in_order() {
        let in_order = LIBRARY.is_sorted_by_key(|(name, _)| *name);
        assert!(in_order, "the drives are not in the order of their names");
        for &(name, _) in LIBRARY {
            let drive = Drive::open(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(drive.sha256.len(), 64);
            let by_path = Drive::open(&format!("drives/{name}.toml")).unwrap();
            assert_eq!(by_path.model, drive.model);
            // As disks report their models; the name is the library's own whatever was written.
            let in_capitals = Drive::open(&name.to_uppercase()).unwrap();
            assert_eq!((in_capitals.file.as_str(), in_capitals.model), (name, drive.model));
        }
    }

    #[test]
    fn every_number_of_the_library_has_a_source() {
        for &(name, text) in LIBRARY {
            for (index, line) in text.lines().enumerate() {
                let (code, comment) = line.split_once('#').unwrap_or((line, ""));
                let number = code.split_once('=').is_some_and(|(key, value)| {
                    key.trim() != "name" && value.contains(|c: char| c.is_ascii_digit())
                });
                assert!(
                    !number || comment.trim().len() > 5,
                    "drives/{name}.toml:{}: no source: {line}",
                    index + 1
                );
            }
        }
    }

    #[test]
    fn every_tiny_drive_of_the_folder_is_found_by_name_and_told_in_no_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/tiny");
        let files = std::fs::read_dir(folder).expect("the folder").count();
        assert_eq!(TINY.len(), files);
        for (name, _) in TINY {
            let drive = Drive::open(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(drive.model.name, *name);
            assert!(drive.model.capacity.bytes() <= 8 << 20 && !known_names().contains(name));
        }
    }

    #[test]
    fn an_unknown_drive_suggests_the_nearest() {
        let error = Drive::open("ST5000AS001").unwrap_err().to_string();
        let expected = format!(
            "unknown drive `ST5000AS001`: did you mean `st5000as0011`?; known are {}, or the path of \
             a TOML file",
            known_names()
        );
        assert_eq!(error, expected);
    }

    #[test]
    fn a_misspelt_key_names_file_line_and_nearest_key() {
        let text = Drive::text_of_library("cmr-500gb-7200").unwrap().replace("\nheads", "\nhaeds");
        let error = Drive::parse("my.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with("my.toml:"), "{error}");
        assert!(error.contains("unknown field `haeds`"), "{error}");
        assert!(error.ends_with("did you mean `heads`?"), "{error}");
    }

    #[test]
    fn a_drive_that_cannot_exist_is_refused() {
        let rows = [
            ("media = \"conventional\"", "media = \"shingled\"", "needs a table [shingles]"),
            (
                "media = \"conventional\"",
                "media = \"solid-state\"",
                "cannot have a table [platters]",
            ),
            ("average = \"8.9 ms\"", "average = \"80 ms\"", "no rising seek curve"),
            ("heads = 2", "heads = 0", "platters.heads = 0; accepted: 1 to 1024"),
            (
                "heads = 2",
                "head_rates = [1.0, 1.0]\nheads = 2",
                "platters.head_rates needs layout = \"surface-by-surface\"",
            ),
        ];
        for (from, to, expected) in rows {
            let text = Drive::text_of_library("cmr-500gb-7200").unwrap().replace(from, to);
            assert_ne!(
                text,
                Drive::text_of_library("cmr-500gb-7200").unwrap(),
                "{from} is in the file"
            );
            let error = Drive::parse("my.toml", &text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// What would overflow the clock or take all memory.
    #[test]
    fn what_is_far_beyond_any_drive_is_refused() {
        let step = "accepted: at most 1 s";
        let rows = [
            ("cheetah-9lp", "head_switch = \"0.03 ms\"", "head_switch = \"2 s\"", step),
            ("cheetah-9lp", "write_settle = \"0.461 ms\"", "write_settle = \"-2 s\"", step),
            ("cheetah-9lp", "read_sector = ", "read_sector = \"2 s\" #", step),
            ("cheetah-9lp", "[1, 0.831]", "[1, 1001]", "at most 1000 ms"),
            ("cheetah-9lp", "count = ", "count = 65537 #", "accepted: 1 to 65536"),
            (
                "cheetah-9lp",
                "latency = ",
                "latency = \"61 min\" #",
                "`61 min` is too long: a drive takes or waits 1 h",
            ),
            (
                "cmr-500gb-7200",
                "full_stroke = ",
                "full_stroke = \"2001 ms\" #",
                "[seek] takes 2001 ms over",
            ),
            (
                "cmr-500gb-7200",
                "zones = ",
                "zones = 100001 #",
                "platters.zones = 100001; accepted: 1 to 100000",
            ),
            (
                "cmr-500gb-7200",
                "read_ahead = ",
                "read_ahead = \"2 GiB\" #",
                "cache.read_ahead = \"2 GiB\"; accepted: at most 1 GiB",
            ),
            (
                "st8000as0002",
                "overlap_tracks = ",
                "overlap_tracks = 1048577 #",
                "accepted: at most 1048576",
            ),
            (
                "st8000as0022",
                "zone_size = ",
                "zone_size = \"4 KiB\" #",
                "accepted: at most 4194304",
            ),
            ("850evo", "channels = ", "channels = 65537 #", "accepted: 1 to 65536"),
            (
                "st8000as0002",
                "entries = ",
                "entries = 1099511627777 #",
                "expected 1 to 1099511627776 entries, or \"unlimited\"",
            ),
        ];
        for (drive, from, to, expected) in rows {
            let text = Drive::text_of_library(drive).unwrap();
            assert!(text.contains(from), "{from}");
            // A long stroke goes with a long average.
            let text =
                text.replace(from, to).replace("average = \"8.9 ms\"", "average = \"890 ms\"");
            let disk = Drive::parse("my.toml", &text)
                .and_then(|drive| DiskDesign::new(&drive, DiskOptions::default()));
            let error = disk.err().expect("no such drive").to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn shingles_are_checked() {
        let error = |keys: &str| {
            let text = Drive::text_of_library("st5000as0011").unwrap();
            let text = text.replace("[shingles]", &format!("[shingles]\n{keys}"));
            Drive::parse("my.toml", &text).unwrap_err().to_string()
        };
        let rows = [
            (
                "runs = [{ tracks = 0, direction = \"upwards\" }]",
                "shingles.runs: tracks = 0; accepted: 1 to 4294967296",
            ),
            (
                "runs = [{ tracks = 9, direction = \"inwards\" }]",
                "unknown variant `inwards`, expected `upwards` or `downwards`",
            ),
            (
                "conventional = [{ start = \"1 GiB\", size = \"0 B\" }]",
                "shingles.conventional: { start = \"1 GiB\", size = \"0 B\" }; accepted: a size above 0 \
                 that ends within the capacity and its spare share, 5751",
            ),
            ("conventional = [{ start = \"5 TB\", size = \"1 TB\" }]", "accepted: a size above 0"),
            ("conventional = [{ start = \"5 TB\", length = \"1 TB\" }]", "unknown field `length`"),
        ];
        for (keys, expected) in rows {
            let error = error(keys);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn listed_zones_and_segments_are_checked() {
        let rows = [
            (
                "sector = \"512 B\"",
                "sector = \"500 B\"",
                "sector = \"500 B\" is not a power of two",
            ),
            ("spares_every = 6", "spares_every = 7", "are not a multiple of spares_every"),
            ("spares_every = 6", "zones = 3", "or a `zone_table` instead of all three"),
            ("[0, 1127,", "[2000, 1127,", "cylinders do not ascend"),
            ("[0, 1127, 186,", "[0, 1127, 2,", "no sectors are left for data"),
            ("\"cylinder-by-cylinder\"", "\"surface-by-surface\"", "needs a layout by cylinders"),
            ("count = 3", "count = 0", "segments.count = 0; accepted: 1 to 65536"),
            (
                "size = \"",
                "size = \"1 B\" # \"",
                "segments.size = \"1 B\" is not a multiple of 512",
            ),
            ("[seek]", "[seek]\naverage = \"9 ms\"", "not several"),
        ];
        for (from, to, expected) in rows {
            let text = Drive::text_of_library("barracuda-4lp").unwrap().replace(from, to);
            assert_ne!(
                text,
                Drive::text_of_library("barracuda-4lp").unwrap(),
                "{from} is in the file"
            );
            let error = Drive::parse("my.toml", &text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
