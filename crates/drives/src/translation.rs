//! How a drive-managed drive hides its shingles, as a drive file or a stack states it.

use super::cleaning::{IdleAfter, IdleOnArrival, IdlePiece, IdleResume, IdleVictim};
use crate::quantity::{QuantityError, Size, SizeOrShare, Span};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Settings of a drive-managed translation. What a stack leaves out it takes from the drive.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationSettings {
    /// How the addresses are cut into bands.
    pub bands: Option<Bands>,
    /// Room of the log that takes random writes.
    pub persistent_cache: Option<SizeOrShare>,
    /// Extents that the log may hold.
    pub entries: Option<EntryLimit>,
    /// What a write does to an older entry for the same blocks.
    pub update: Option<Update>,
    /// Whether sequential streams go round the log.
    pub bypass: Option<Bypass>,
    /// How a band is rewritten.
    pub rewrite: Option<Rewrite>,
    /// Which part of it.
    pub rewrite_extent: Option<RewriteExtent>,
    /// What becomes of what the log holds of it; it is read and copied like the rest when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite_covered: Option<RewriteCovered>,
    /// Time the firmware takes for a rewrite beside its disk operations: a calibrated parameter
    /// (docs/models/drive-managed.md).
    pub rewrite_overhead: Option<Span>,
    /// How much of a band is merged at a time; all of it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_buffer: Option<MergeBuffer>,
    /// Share of slots and of entries down to which cleaning for want of room goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocking_low: Option<f64>,
    /// Longest cleaning for want of room between two requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocking_slice: Option<Span>,
    /// Idle time after which bands are cleaned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<IdleAfter>,
    /// Longest time on the medium for which a request waits when it interrupts that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_chunk: Option<Span>,
    /// Longest rest of a band that is finished though a request has arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_finish: Option<Span>,
    /// Whether an interrupted clean goes on where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_resume: Option<IdleResume>,
    /// Which band is cleaned next in idle time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_victim: Option<IdleVictim>,
    /// How far idle cleaning goes before the drive looks for requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_piece: Option<IdlePiece>,
    /// What idle cleaning does when a request arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_on_arrival: Option<IdleOnArrival>,
    /// How long a stream must have been sequential before it may go round the log; 1 MiB when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_after: Option<Size>,
    /// How long it must have been at most where the streams before it ended at a flush;
    /// `bypass_after` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_after_max: Option<Size>,
    /// Shortest write that may go round the log; any when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_min: Option<Size>,
    /// What a trim does; it leaves the log when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<Trim>,
    /// After how many records of its map's journal the drive writes the map out; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_every_records: Option<u64>,
    /// How long writes wait for that at least ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_stall: Option<Span>,
    /// ... and how much longer for each MiB of log that records of flushes took since the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_stall_per_mib: Option<Span>,
    /// Room in the log that the record of a flush takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_per_flush: Option<Size>,
    /// Data that goes to the log in one go, with one record, unless a flush comes before; 0 lets the
    /// log take data as it comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_transaction: Option<Size>,
    /// Time the firmware takes for the record of a flush or of a transaction: a calibrated parameter
    /// (docs/models/drive-managed.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_overhead: Option<Span>,
}

impl TranslationSettings {
    /// These settings, and those of `drive` where they are silent.
    pub fn or(self, drive: TranslationSettings) -> TranslationSettings {
        TranslationSettings {
            bands: self.bands.or(drive.bands),
            persistent_cache: self.persistent_cache.or(drive.persistent_cache),
            entries: self.entries.or(drive.entries),
            update: self.update.or(drive.update),
            bypass: self.bypass.or(drive.bypass),
            rewrite: self.rewrite.or(drive.rewrite),
            rewrite_extent: self.rewrite_extent.or(drive.rewrite_extent),
            rewrite_covered: self.rewrite_covered.or(drive.rewrite_covered),
            rewrite_overhead: self.rewrite_overhead.or(drive.rewrite_overhead),
            merge_buffer: self.merge_buffer.or(drive.merge_buffer),
            blocking_low: self.blocking_low.or(drive.blocking_low),
            blocking_slice: self.blocking_slice.or(drive.blocking_slice),
            idle_after: self.idle_after.or(drive.idle_after),
            idle_chunk: self.idle_chunk.or(drive.idle_chunk),
            idle_finish: self.idle_finish.or(drive.idle_finish),
            idle_resume: self.idle_resume.or(drive.idle_resume),
            idle_victim: self.idle_victim.or(drive.idle_victim),
            idle_piece: self.idle_piece.or(drive.idle_piece),
            idle_on_arrival: self.idle_on_arrival.or(drive.idle_on_arrival),
            bypass_after: self.bypass_after.or(drive.bypass_after),
            bypass_after_max: self.bypass_after_max.or(drive.bypass_after_max),
            bypass_min: self.bypass_min.or(drive.bypass_min),
            trim: self.trim.or(drive.trim),
            journal_every_records: self.journal_every_records.or(drive.journal_every_records),
            journal_stall: self.journal_stall.or(drive.journal_stall),
            journal_stall_per_mib: self.journal_stall_per_mib.or(drive.journal_stall_per_mib),
            log_per_flush: self.log_per_flush.or(drive.log_per_flush),
            log_transaction: self.log_transaction.or(drive.log_transaction),
            flush_overhead: self.flush_overhead.or(drive.flush_overhead),
        }
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

/// What a write does to an older entry for the same blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// The new data goes to the head of the log, the older entry is void.
    Append,
    /// The new data takes the place of the old.
    InPlace,
}

/// Whether sequential streams go round the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bypass {
    /// They do.
    On,
    /// Every write goes through the log.
    Off,
}

/// What a trim does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trim {
    /// The drive has no TRIM, and is sent zeroes instead: they are written like data.
    None,
    /// What is trimmed leaves the log.
    FromLog,
    /// And what lies behind the last block in use of a band is not rewritten.
    Frees,
}

/// How a band is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rewrite {
    /// The merged band goes to a scratch band first, so that the old content lives until the new
    /// is complete.
    CopyThenHome,
    /// The merged band overwrites the old one.
    InPlace,
}

/// Which part of a band is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewriteExtent {
    /// All of it.
    Band,
    /// From its first block with an entry in the log to its end, as if all of it had been written.
    FromFirstDirty,
    /// From there to the end of what was ever written to it.
    FromFirstDirtyToWritten,
}

/// What becomes of the blocks of a band that the log holds, when the band is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewriteCovered {
    /// They are read at home and copied to the scratch band like all others.
    AsOthers,
    /// They are not read at home, and not copied where the log holds all that is written home.
    FromLog,
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
        let both = node.or(drive.clone());
        assert_eq!(both.entries, Some(EntryLimit::Unlimited));
        assert_eq!(both.bypass, Some(Bypass::Off));
        assert_eq!(both.merge_buffer, Some(MergeBuffer::None));
        assert_eq!(both.rewrite_covered, Some(RewriteCovered::FromLog));
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
