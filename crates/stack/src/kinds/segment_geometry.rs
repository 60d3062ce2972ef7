//! Keys of translations that cut a disk into segments: where tracks come from, and shares of a region.

use super::wrong;
use crate::config::ConfigError;
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::{Size, parse_size};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A length in blocks of 4 KiB.
///
/// # Errors
/// When it is none, or no multiple of them.
pub(super) fn blocks_of(node: &str, key: &str, size: Size) -> Result<BlockCount, ConfigError> {
    match BlockCount::from_bytes_floor(size.bytes()) {
        blocks if blocks.bytes() == size.bytes() && blocks.0 > 0 => Ok(blocks),
        _ => Err(wrong(node, &format_args!("{key} = \"{size}\"; accepted: a multiple of 4 KiB"))),
    }
}

// The defaults of Luo et al., IEEE TPDS 2016, section 5.1; kappa is that of their Figure 7a.

pub(super) fn track_default() -> Track {
    Track::Size(Size(4 << 20))
}

pub(super) fn block_default() -> Size {
    Size(64 << 10)
}

pub(super) fn region_tracks_default() -> u64 {
    32
}

pub(super) fn kappa_default() -> u64 {
    3
}

/// Where tracks come from: a length, or the disk's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Track {
    /// All are this long, in the addresses of the disk.
    Size(Size),
    /// The disk's own.
    Disk,
}

impl TryFrom<String> for Track {
    type Error = String;

    fn try_from(text: String) -> Result<Track, String> {
        match text.trim() {
            "disk" => Ok(Track::Disk),
            other => match parse_size(other) {
                Ok(bytes) => Ok(Track::Size(Size(bytes))),
                Err(_) => Err(format!(
                    "track = \"{text}\"; accepted: a length like \"4MiB\", or \"disk\" for the tracks of \
                     the drive"
                )),
            },
        }
    }
}

impl From<Track> for String {
    fn from(track: Track) -> String {
        match track {
            Track::Size(size) => size.to_string(),
            Track::Disk => "disk".into(),
        }
    }
}

/// A share, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Percent(pub u64);

/// Millionths of one percent.
const ONE: f64 = 10_000.0;
/// The largest share, in percent.
const MOST: f64 = 1000.0;

impl TryFrom<String> for Percent {
    type Error = String;

    fn try_from(text: String) -> Result<Percent, String> {
        let number = text.trim().strip_suffix('%').map(str::trim);
        let number = number.and_then(|number| number.parse::<f64>().ok());
        match number {
            Some(percent) if (0.0..=MOST).contains(&percent) => {
                Ok(Percent((percent * ONE).round() as u64))
            }
            _ => Err(format!("`{text}` is no share: it is written like \"10 %\"")),
        }
    }
}

impl From<Percent> for String {
    fn from(share: Percent) -> String {
        share.to_string()
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0 as f64 / ONE)
    }
}

/// A share of a region's blocks, or so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "NumberOrText", into = "NumberOrText")]
pub enum PercentOrBlocks {
    /// A share.
    Percent(Percent),
    /// So many blocks.
    Blocks(u64),
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl TryFrom<NumberOrText> for PercentOrBlocks {
    type Error = String;

    fn try_from(from: NumberOrText) -> Result<PercentOrBlocks, String> {
        match from {
            NumberOrText::Number(blocks) => Ok(PercentOrBlocks::Blocks(blocks)),
            NumberOrText::Text(text) => match text.trim().parse() {
                Ok(blocks) => Ok(PercentOrBlocks::Blocks(blocks)),
                Err(_) => Percent::try_from(text).map(PercentOrBlocks::Percent),
            },
        }
    }
}

impl From<PercentOrBlocks> for NumberOrText {
    fn from(from: PercentOrBlocks) -> NumberOrText {
        match from {
            PercentOrBlocks::Blocks(blocks) => NumberOrText::Number(blocks),
            PercentOrBlocks::Percent(share) => NumberOrText::Text(share.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_and_shares_are_written_as_they_are_read() {
        for text in ["disk", "4 MiB"] {
            let track = Track::try_from(text.to_string()).unwrap();
            assert_eq!(String::from(track), text);
        }
        assert!(Track::try_from("4".to_string()).unwrap_err().contains("4MiB"));
        for (text, ppm) in [("10 %", 100_000), ("2.5%", 25_000), ("0 %", 0)] {
            assert_eq!(Percent::try_from(text.to_string()), Ok(Percent(ppm)));
        }
        assert_eq!(Percent(25_000).to_string(), "2.5 %");
        for text in ["10", "-1 %", "x %", "1001 %"] {
            assert!(Percent::try_from(text.to_string()).is_err(), "{text}");
        }
    }
}
