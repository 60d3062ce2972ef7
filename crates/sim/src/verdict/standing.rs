//! How much of a drive file is measured and how much estimated.

use imbrex_drives::Drive;
use imbrex_drives::toml_error::read_text;
use serde::Serialize;

/// The word that drive files have beside a value which is nobody's measurement.
const ESTIMATED: &str = "*estimated*";

/// The key of the log of a drive.
const LOG_KEY: &str = "persistent_cache";

/// How far a drive file can be trusted, by the words beside its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Values that the file states.
    pub values: u32,
    /// Those that are nobody's measurement.
    pub estimated: u32,
    /// The size of its log is among them; null for a drive without one.
    pub log_is_estimated: Option<bool>,
}

impl Standing {
    /// That of a drive of the library, or of a file. Of a file that cannot be read nothing is known.
    pub(super) fn of(drive: &str) -> Standing {
        match Drive::text_of_library(drive) {
            Ok(text) => Standing::of_text(text),
            Err(_) => Standing::of_text(&read_text(drive).unwrap_or_default()),
        }
    }

    fn of_text(text: &str) -> Standing {
        let mut standing = Standing::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
                continue;
            };
            let is_estimated = value.contains(ESTIMATED);
            standing.values += 1;
            standing.estimated += u32::from(is_estimated);
            if key.trim() == LOG_KEY {
                standing.log_is_estimated = Some(is_estimated);
            }
        }
        standing
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let log = match self.log_is_estimated {
            None => "",
            Some(true) => ", that of its log among them",
            Some(false) => "; that of its log is not",
        };
        match self.estimated {
            0 => "no value of its model is marked as estimated".to_string(),
            estimated => {
                format!("of the {} values of its model {estimated} are estimated{log}", self.values)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_estimated_where_the_file_says_so() {
        let text = "# a = *estimated*\nname = \"x\"\n[seek]\naverage = \"9 ms\" # *estimated*, \"8 ms\": why\n\
                    [translation]\npersistent_cache = \"20 GB\" # measured\n";
        let standing = Standing::of_text(text);
        assert_eq!(standing, Standing { values: 3, estimated: 1, log_is_estimated: Some(false) });
        assert_eq!(
            standing.words(),
            "of the 3 values of its model 1 are estimated; that of its log is not"
        );
        assert_eq!(Standing::of("wd40efax").log_is_estimated, Some(true));
        assert_eq!(Standing::of("wd-4tb-7200").log_is_estimated, None);
    }
}
