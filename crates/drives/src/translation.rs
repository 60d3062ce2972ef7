//! How a drive-managed drive hides its shingles, as a drive file or a stack states it.

use crate::keys::Keys;
use crate::quantity::{QuantityError, Size};
use crate::words::{OnOff, Word};
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Declares a structure with the keys of a drive-managed translation, and others before and between them.
///
/// The `[translation]` table of a drive file and the node of a stack have the same keys. Images have those of
/// the node in the order that this gives.
#[macro_export]
macro_rules! translation_keys {
    (
        $(#[$($attribute:tt)*])*
        pub struct $name:ident {
            first { $($first:tt)* }
            after_bands { $($after_bands:tt)* }
            after_rewrites { $($after_rewrites:tt)* }
        }
    ) => {
        $crate::keys! {
            $(#[$($attribute)*])*
            pub struct $name {
                $($first)*
                /// How addresses are cut into bands.
                bands: Option<$crate::Bands> => r#"`"uniform:17MiB..36MiB"` (sizes drawn evenly, ends included), `"fixed:18MiB"`, `"ascending"` (18 to 36 MiB in steps of 1 MiB, sorted by address); refused over a host-aware drive, whose zones are its bands"#;
                $($after_bands)*
                /// Room of the log that takes random writes.
                persistent_cache: Option<$crate::quantity::SizeOrShare> => "a size from 4 KiB to the capacity of the drive that holds it, or a share";
                /// Extents (of at most 512 KiB) that the map of the log may hold.
                entries: Option<$crate::EntryLimit> => r#"a whole number from 1 to 2^40, `"unlimited"`"#, r#"`"unlimited"`"#;
                /// What a write does to an older entry for the same blocks.
                update: Option<$crate::Word<imbrex_core::translation::UpdateMethod>> => r#"`"append"`: it goes to the head of the log; `"in-place"`: it takes its place (refused where durable)"#, r#"`"append"`"#;
                /// How much of the device, from its first address on, lies on tracks that do not overlap: every write
                /// goes home there ([more](models/drive-managed.md#a-part-that-is-written-in-place)).
                #[serde(skip_serializing_if = "Option::is_none")]
                in_place: Option<$crate::quantity::Size> => "a size, rounded up to whole bands (refused where durable, and over a host-aware drive, whose zones say it)", r#"`"0"`"#;
                /// Whether sequential streams go round the log, straight home.
                bypass: Option<$crate::Word<$crate::OnOff>> => $crate::AnyWord, r#"`"off"`"#;
                /// How a band is rewritten.
                rewrite: Option<$crate::Word<imbrex_core::translation::RewriteMethod>> => r#"`"copy-then-home"`: to a scratch band first; `"in-place"`: over the old one (refused where durable)"#, r#"`"copy-then-home"`"#;
                /// Which part of it.
                rewrite_extent: Option<$crate::Word<imbrex_core::translation::RewriteExtent>> => r#"`"band"`, `"from-first-dirty"`: from its first block in the log to its end"#, r#"`"band"`"#;
                /// What becomes of what the log holds of it
                /// ([more](models/drive-managed.md#what-the-log-holds-of-a-band)).
                #[serde(skip_serializing_if = "Option::is_none")]
                rewrite_covered: Option<$crate::Word<imbrex_core::translation::CoveredBlocks>> => r#"`"as-others"`: it is read at home and copied like the rest; `"from-log"`: it is not read at home, and a stretch that the log holds in full is not copied (as `"as-others"` where durable)"#, r#"`"as-others"`"#;
                /// When what the log holds of it is read, in a clean for want of room.
                #[serde(skip_serializing_if = "Option::is_none")]
                gather: Option<$crate::Word<imbrex_core::translation::Gather>> => r#"`"after"`: when home is read; `"beside"`: at the same time, by the other disk where log and home lie on two"#, r#"`"after"`"#;
                /// Where cleaning puts the oldest blocks of the log when a write has no slot
                /// ([more](models/drive-managed.md#the-model)).
                #[serde(skip_serializing_if = "Option::is_none")]
                clean_to: Option<$crate::Word<imbrex_core::translation::CleanTo>> => r#"`"home"`: their band is rewritten; `"log"`: once to the head of the log, and only then home"#, r#"`"home"`"#;
                /// Time of the firmware for a rewrite beside its disk operations.
                rewrite_overhead: Option<$crate::quantity::Span> => "a time", r#"`"0 ms"`"#;
                $($after_rewrites)*
                /// Memory of the drive through which a band is merged, in as many stretches as that takes (one
                /// to three, for the Seagate disks).
                #[serde(skip_serializing_if = "Option::is_none")]
                merge_buffer: Option<$crate::MergeBuffer> => r#"a size of at least one track more than the overlap; `"none"`: the whole band at once. Only `"none"` over a host-aware drive"#, r#"`"none"`"#;
                /// Share of slots and of entries down to which cleaning for want of room goes on.
                #[serde(skip_serializing_if = "Option::is_none")]
                blocking_low: Option<f64> => 0.0..=1.0, "`1.0`: as much as the write needs";
                /// Longest cleaning for want of room between two requests.
                #[serde(skip_serializing_if = "Option::is_none")]
                blocking_slice: Option<$crate::quantity::Span> => "a time", "none: until there is room";
                /// Time without a request after which bands are cleaned.
                #[serde(skip_serializing_if = "Option::is_none")]
                idle_after: Option<$crate::IdleAfter> => r#"a time, `"off"`"#, r#"`"off"`"#;
                /// Longest time on the medium for which a request then waits.
                #[serde(skip_serializing_if = "Option::is_none")]
                idle_chunk: Option<$crate::quantity::Span> => "a time", r#"`"1 ms"`"#;
                /// Longest rest of a band that is finished though a request has arrived.
                #[serde(skip_serializing_if = "Option::is_none")]
                idle_finish: Option<$crate::quantity::Span> => "a time", r#"`"100 ms"`"#;
                /// Whether an interrupted clean goes on where it was.
                #[serde(skip_serializing_if = "Option::is_none")]
                idle_resume: Option<$crate::Word<$crate::OnOff>> => $crate::AnyWord, r#"`"on"`"#;
                /// Which band is next.
                #[serde(skip_serializing_if = "Option::is_none")]
                idle_victim: Option<$crate::Word<imbrex_core::translation::Victim>> => r#"`"fifo"`: that of the oldest entry; `"most-dirty"`; `"lba"`: the lowest address; `"cheapest"`: the one that takes the least time for an entry that it frees"#, r#"`"fifo"`"#;
                /// Of a host-aware drive: how much of each zone with a write pointer holds data at the start.
                #[serde(skip_serializing_if = "Option::is_none")]
                zones_filled: Option<f64> => 0.0..=1.0, "`0.0`: empty";
                /// Of a host-aware drive: when space of the log is free again.
                #[serde(skip_serializing_if = "Option::is_none")]
                reclaim: Option<$crate::Word<imbrex_core::translation::Reclaim>> => r#"`"tail"`: from the oldest entry on; `"zone"`: that of a zone when it is cleaned, wherever it lies ([more](models/host-aware.md#when-space-is-free-again)), not with `log_per_flush`"#, r#"`"tail"`"#;
                /// How far the clean goes before the drive looks for requests, and loses its place on the
                /// platter.
                #[serde(skip_serializing_if = "Option::is_none")]
                idle_piece: Option<$crate::Word<imbrex_core::translation::IdlePiece>> => r#"`"band"`: it never does; `"track"`"#, r#"`"band"`"#;
                /// What a request does to the clean.
                #[serde(skip_serializing_if = "Option::is_none")]
                idle_on_arrival: Option<$crate::Word<imbrex_core::translation::OnArrival>> => r#"`"finish-if-short"`, `"finish-chunk"`, `"finish-band"`, `"abort"`"#, r#"`"finish-if-short"`"#;
                /// How long a stream must have been sequential for that.
                #[serde(skip_serializing_if = "Option::is_none")]
                bypass_after: Option<$crate::quantity::Size> => "a size", r#"`"1 MiB"`"#;
                /// How long at most, where streams before it ended at a flush
                /// ([more](models/drive-managed.md#which-streams-go-around-the-log)); without effect where
                /// `log_per_flush` is `"0"`.
                #[serde(skip_serializing_if = "Option::is_none")]
                bypass_after_max: Option<$crate::quantity::Size> => "a size of `bypass_after` or more", "`bypass_after`";
                /// Shortest write that may.
                #[serde(skip_serializing_if = "Option::is_none")]
                bypass_min: Option<$crate::quantity::Size> => "a size", r#"`"0"`: any"#;
                /// Instead of `bypass_after`: each write that goes on with one of so many streams goes around the log,
                /// and each long one ([more](models/drive-managed.md#which-streams-go-around-the-log)).
                #[serde(skip_serializing_if = "Option::is_none")]
                bypass_streams: Option<u64> => "1 to 1024, with `bypass = \"on\"`", "none: streams that have lasted";
                /// With `bypass_streams`: how far behind the end of a stream such a write may begin.
                #[serde(skip_serializing_if = "Option::is_none")]
                bypass_gap: Option<$crate::quantity::Size> => "a size", r#"`"64 KiB"`"#;
                /// With `bypass_streams`: the length of a write that is long.
                #[serde(skip_serializing_if = "Option::is_none")]
                bypass_large: Option<$crate::quantity::Size> => "a size", r#"`"256 KiB"`"#;
                /// What a trim does.
                #[serde(skip_serializing_if = "Option::is_none")]
                trim: Option<$crate::Word<imbrex_core::translation::TrimMethod>> => r#"`"none"`: zeroes are written to the log like data; `"from-log"`: it takes the blocks out of the log; `"frees"`: and a band is rewritten to the end of what is in use, and takes streams from there on ([more](models/drive-managed.md#trims))"#, r#"`"from-log"`"#;
                /// Records of the map's journal after which the drive writes the map out, and writes wait.
                #[serde(skip_serializing_if = "Option::is_none")]
                journal_every_records: Option<u64> => "a whole number; 0: never", "`0`";
                /// How long they wait at least.
                #[serde(skip_serializing_if = "Option::is_none")]
                journal_stall: Option<$crate::quantity::Span> => "a time", r#"`"0 ms"`"#;
                /// And how much longer for each MiB of log that records of flushes took since the last time.
                #[serde(skip_serializing_if = "Option::is_none")]
                journal_stall_per_mib: Option<$crate::quantity::Span> => "a time; both together at most 1 h", r#"`"0 ms"`"#;
                /// Room in the log that the record of a flush takes.
                #[serde(skip_serializing_if = "Option::is_none")]
                log_per_flush: Option<$crate::quantity::Size> => "a size", r#"`"0"`"#;
                /// Data that goes to the log in one go, with one record, unless a flush comes before.
                #[serde(skip_serializing_if = "Option::is_none")]
                log_transaction: Option<$crate::quantity::Size> => r#"a size; `"0"`: the log takes data as it comes"#, r#"`"0"`"#;
                /// Time of the firmware for the record of a flush or of a transaction.
                #[serde(skip_serializing_if = "Option::is_none")]
                flush_overhead: Option<$crate::quantity::Span> => "a time", r#"`"0 ms"`"#;
            }
        }
    };
}

translation_keys! {
    /// Settings of a drive-managed translation. What a stack leaves out it takes from the drive.
    #[derive(PartialEq, Default)]
    pub struct TranslationSettings {
        first {}
        after_bands {}
        after_rewrites {}
    }
}

impl TranslationSettings {
    /// Refuses keys of the bypass that do nothing, or cannot be.
    pub fn check_bypass(&self) -> Result<(), String> {
        let Some(streams) = self.bypass_streams else {
            let limits = [
                ("bypass_gap", self.bypass_gap.is_some()),
                ("bypass_large", self.bypass_large.is_some()),
            ];
            return match limits.into_iter().find(|(_, is_stated)| *is_stated) {
                Some((key, _)) => Err(format!(
                    "`{key}` says which writes are sequential by themselves, and `bypass_streams` is not there: \
                     accepted together with it"
                )),
                None => Ok(()),
            };
        };
        let of_lasting = [
            ("bypass_after", self.bypass_after.is_some()),
            ("bypass_after_max", self.bypass_after_max.is_some()),
        ];
        if let Some((key, _)) = of_lasting.into_iter().find(|(_, is_stated)| *is_stated) {
            return Err(format!(
                "`{key}` is about streams that have lasted, and `bypass_streams = {streams}` about each write by \
                 itself: accepted is one of both"
            ));
        }
        if self.bypass != Some(Word(OnOff::On)) {
            return Err(format!(
                "bypass_streams = {streams} without a bypass: accepted with bypass = \"on\""
            ));
        }
        if !(1..=1024).contains(&streams) {
            return Err(format!("bypass_streams = {streams}: accepted are 1 to 1024"));
        }
        Ok(())
    }

    /// The settings that a table of keys states, and those of `drive` where it is silent. The table may have
    /// other keys.
    ///
    /// # Panics
    /// When a value is none that was written by these settings.
    pub fn of_table(stated: toml::Table, drive: &TranslationSettings) -> TranslationSettings {
        let written = "what was read can be written and read again";
        let mut table = toml::Table::try_from(drive).expect(written);
        let is_known = |(key, _): &(String, _)| TranslationSettings::NAMES.contains(&key.as_str());
        table.extend(stated.into_iter().filter(is_known));
        TranslationSettings::read(table).expect(written)
    }
}

impl<'de> Deserialize<'de> for TranslationSettings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TranslationSettings, D::Error> {
        let table = toml::Table::deserialize(from)?;
        TranslationSettings::read(table).map_err(|error| D::Error::custom(error.message))
    }
}

/// How addresses are cut into bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Bands {
    /// Sizes drawn from an even distribution, both ends included.
    Uniform {
        /// Smallest.
        min: Size,
        /// Largest.
        max: Size,
    },
    /// All of one size.
    Fixed(Size),
    /// 18 to 36 MiB in MiB steps, sorted by address, as many bands of each size.
    Ascending,
}

impl Bands {
    /// The largest band.
    pub fn largest(&self) -> Size {
        match self {
            Bands::Uniform { max, .. } => *max,
            Bands::Fixed(size) => *size,
            Bands::Ascending => Size(36 << 20),
        }
    }

    /// The mean length of a band.
    pub fn mean(&self) -> Size {
        match self {
            Bands::Uniform { min, max } => Size(min.0 + (max.0 - min.0) / 2),
            Bands::Fixed(size) => *size,
            Bands::Ascending => Size(27 << 20),
        }
    }
}

impl FromStr for Bands {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Bands, QuantityError> {
        let fail = || {
            QuantityError::new(format!(
                "`{text}` is no way to cut bands: accepted are `uniform:17MiB..36MiB`, \
                 `fixed:18MiB` and `ascending`"
            ))
        };
        let block = |size: Size| match size.0 {
            4096.. => Ok(size),
            _ => Err(fail()),
        };
        match text.split_once(':') {
            None if text == "ascending" => Ok(Bands::Ascending),
            Some(("fixed", size)) => Ok(Bands::Fixed(block(size.parse()?)?)),
            Some(("uniform", range)) => {
                let (min, max) = range.split_once("..").ok_or_else(fail)?;
                let (min, max) = (block(min.parse()?)?, block(max.parse()?)?);
                if min > max {
                    return Err(fail());
                }
                Ok(Bands::Uniform { min, max })
            }
            _ => Err(fail()),
        }
    }
}

impl TryFrom<String> for Bands {
    type Error = QuantityError;
    fn try_from(text: String) -> Result<Bands, QuantityError> {
        text.parse()
    }
}

impl From<Bands> for String {
    fn from(bands: Bands) -> String {
        let tight = |size: Size| size.to_string().replace(' ', "");
        match bands {
            Bands::Uniform { min, max } => format!("uniform:{}..{}", tight(min), tight(max)),
            Bands::Fixed(size) => format!("fixed:{}", tight(size)),
            Bands::Ascending => "ascending".to_string(),
        }
    }
}

/// How many extents the log may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryLimit {
    /// At most so many.
    Entries(u64),
    /// As many as fit.
    Unlimited,
}

impl Serialize for EntryLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EntryLimit::Entries(entries) => serializer.serialize_u64(*entries),
            EntryLimit::Unlimited => serializer.serialize_str("unlimited"),
        }
    }
}

impl<'de> Deserialize<'de> for EntryLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EntryLimit, D::Error> {
        deserializer.deserialize_any(EntryLimitVisitor)
    }
}

/// More than any disk has blocks, and small enough to be multiplied.
const ENTRIES_MAX: u64 = 1 << 40;

struct EntryLimitVisitor;

impl Visitor<'_> for EntryLimitVisitor {
    type Value = EntryLimit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 to {ENTRIES_MAX} entries, or \"unlimited\"")
    }

    fn visit_u64<E: serde::de::Error>(self, entries: u64) -> Result<EntryLimit, E> {
        match (1..=ENTRIES_MAX).contains(&entries) {
            false => Err(E::invalid_value(Unexpected::Unsigned(entries), &self)),
            true => Ok(EntryLimit::Entries(entries)),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, entries: i64) -> Result<EntryLimit, E> {
        match u64::try_from(entries) {
            Ok(entries) => self.visit_u64(entries),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(entries), &self)),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<EntryLimit, E> {
        match text {
            "unlimited" => Ok(EntryLimit::Unlimited),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

/// How much of a band a drive has memory to merge at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MergeBuffer {
    /// The whole of any band.
    None,
    /// So much, and the tracks that the writing of it destroys.
    Of(Size),
}

impl FromStr for MergeBuffer {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<MergeBuffer, QuantityError> {
        match text {
            "none" => Ok(MergeBuffer::None),
            _ => text.parse().map(MergeBuffer::Of).map_err(|_| {
                QuantityError::new(format!(
                    "`{text}` is no merge_buffer: accepted are a size, as in `14 MiB`, and `none`"
                ))
            }),
        }
    }
}

impl TryFrom<String> for MergeBuffer {
    type Error = QuantityError;
    fn try_from(text: String) -> Result<MergeBuffer, QuantityError> {
        text.parse()
    }
}

impl From<MergeBuffer> for String {
    fn from(buffer: MergeBuffer) -> String {
        match buffer {
            MergeBuffer::None => "none".to_string(),
            MergeBuffer::Of(size) => size.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{OnOff, Word};
    use imbrex_core::translation::CoveredBlocks;

    #[test]
    fn settings_of_a_stack_come_before_those_of_the_drive() {
        let drive: TranslationSettings = toml::from_str(
            "bands = 'uniform:17MiB..36MiB'\npersistent_cache = '20 GB'\nentries = 200000\n\
             update = 'append'\nbypass = 'on'\nrewrite = 'copy-then-home'\n\
             rewrite_extent = 'from-first-dirty'\n\
             rewrite_covered = 'from-log'\n\
             merge_buffer = '14 MiB'\n\
             rewrite_overhead = '300 ms'\njournal_every_records = 240\n\
             log_per_flush = '1 MiB'\nlog_transaction = '4 MiB'",
        )
        .unwrap();
        let node: TranslationSettings = toml::from_str(
            "merge_buffer = 'none'\nentries = 'unlimited'\nbypass = 'off'\npersistent_cache = '1/256 of touched bands'\n\
             journal_every_records = 0\nlog_transaction = '0'",
        )
        .unwrap();
        let stated = toml::Table::try_from(&node).unwrap();
        let both = TranslationSettings::of_table(stated, &drive);
        assert_eq!(both.entries, Some(EntryLimit::Unlimited));
        assert_eq!(both.bypass, Some(Word(OnOff::Off)));
        assert_eq!(both.merge_buffer, Some(MergeBuffer::None));
        assert_eq!(both.rewrite_covered, Some(Word(CoveredBlocks::FromLog)));
        assert_eq!(drive.merge_buffer, Some("14 MiB".parse().unwrap()));
        assert_eq!(both.bands, drive.bands);
        assert_eq!(both.journal_every_records, Some(0));
        assert_eq!(both.log_per_flush, Some("1 MiB".parse().unwrap()));
        assert_eq!(both.log_transaction, Some("0".parse().unwrap()));
        assert_eq!(both.rewrite_overhead, Some("300 ms".parse().unwrap()));
        assert_eq!(both.persistent_cache, Some("1/256 of touched bands".parse().unwrap()));
        let written = toml::to_string(&both).unwrap();
        assert_eq!(toml::from_str::<TranslationSettings>(&written).unwrap(), both);
    }

    #[test]
    fn other_bands_and_entries_are_refused() {
        for text in ["uniform:36MiB..17MiB", "uniform:17MiB", "fixed:1kB", "random", "fixed"] {
            let error = text.parse::<Bands>().unwrap_err().to_string();
            assert!(error.contains("`fixed:18MiB`"), "{error}");
        }
        assert!("fixed:18".parse::<Bands>().unwrap_err().to_string().contains("has no unit"));
        let error = "14".parse::<MergeBuffer>().unwrap_err().to_string();
        assert!(error.contains("`14 MiB`, and `none`"), "{error}");
        for entries in ["0", "-1", "'many'"] {
            let error = toml::from_str::<TranslationSettings>(&format!("entries = {entries}"));
            let error = error.unwrap_err().to_string();
            assert!(error.contains("1 to 1099511627776 entries"), "{error}");
        }
    }
}
