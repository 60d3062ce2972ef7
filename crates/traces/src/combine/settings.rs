//! What a combination says: its sources, their order and where they lie.

use std::fmt;
use std::str::FromStr;

use imbrex_drives::quantity::Size;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SourceSummary;
use super::source::SourceConfig;
use crate::BlockRule;
use crate::error::TraceError;

/// Devices a trace can have, and so sources that can each become one.
const SOURCES_MAX: usize = 1 << 16;

/// One trace made of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Combination {
    /// The sources. Their order counts.
    pub traces: Vec<SourceConfig>,
    /// In what order the requests follow each other.
    #[serde(default)]
    pub order: Order,
    /// Requests of a burst; one when absent. Belongs to [`Order::Bursts`].
    pub burst_requests: Option<BurstRequests>,
    /// Where the addresses lie.
    #[serde(default)]
    pub place: Place,
    /// To what the span of each source is rounded up, such as the size of a disk; a block of 4 KiB when absent. Belongs to
    /// [`Place::Concatenate`].
    pub align: Option<Size>,
    /// Which blocks a request covers. Belongs to [`Place::Pack`].
    pub blocks: Option<BlockRule>,
    /// Seed of what is drawn; 1 when absent.
    pub seed: Option<u64>,
}

/// Seed of a combination that states none.
pub const SEED_DEFAULT: u64 = 1;

/// In what order the requests of the sources follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A source that has requests left is drawn, and its next requests follow as one burst.
    #[default]
    Bursts,
    /// By time stamp; of equal ones that of the source listed first comes first.
    Merge,
    /// One source after another.
    Concatenate,
    /// A random permutation of all requests. The instants of arrival keep their order.
    Shuffle,
}

/// Where the addresses of the sources lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// As they are, one source over the other.
    #[default]
    Overlay,
    /// One source behind the other.
    Concatenate,
    /// Every distinct block behind the one before, in the order of first touch, source by source.
    Pack,
    /// As they are, each source on a device of its own.
    Separate,
}

/// How many requests of a source follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstRequests {
    /// So many, or all that are left if they are fewer.
    Count(u64),
    /// All of the source: the sources run to their ends in the order in which they are listed.
    All,
}

const BURST_ACCEPTED: &str = "accepted: a number of 1 or more, or \"all\"";

impl FromStr for BurstRequests {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "all" => Ok(Self::All),
            Ok(count) if count > 0 => Ok(Self::Count(count)),
            _ => Err(format!("burst_requests = {text}; {BURST_ACCEPTED}")),
        }
    }
}

impl fmt::Display for BurstRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::All => f.write_str("all"),
        }
    }
}

impl Serialize for BurstRequests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::All => serializer.serialize_str("all"),
        }
    }
}

impl<'de> Deserialize<'de> for BurstRequests {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct CountOrAll;
        impl serde::de::Visitor<'_> for CountOrAll {
            type Value = BurstRequests;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of 1 or more, or \"all\"")
            }

            fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<BurstRequests, E> {
                count.to_string().parse().map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<BurstRequests, E> {
                count.to_string().parse().map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<BurstRequests, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_any(CountOrAll)
    }
}

impl Combination {
    /// The sources as they are, in bursts of one request.
    pub fn of(traces: Vec<SourceConfig>) -> Self {
        Self {
            traces,
            order: Order::default(),
            burst_requests: None,
            place: Place::default(),
            align: None,
            blocks: None,
            seed: None,
        }
    }

    /// Finds what can be found wrong before a source is opened.
    pub(super) fn check(&self) -> Result<(), TraceError> {
        if !(1..=SOURCES_MAX).contains(&self.traces.len()) {
            return Err(wrong(format!(
                "{} traces; accepted: 1 to {SOURCES_MAX}",
                self.traces.len()
            )));
        }
        if self.order != Order::Bursts
            && let Some(burst) = self.burst_requests
        {
            return Err(wrong(format!(
                "burst_requests = {burst}: the order {} has no bursts; accepted: the order bursts",
                name(&self.order)
            )));
        }
        if self.place != Place::Concatenate && self.align.is_some() {
            return Err(wrong(format!(
                "align: the placement {} has no use for it; accepted: the placement concatenate",
                name(&self.place)
            )));
        }
        if let (true, Some(rule)) = (self.place != Place::Pack, self.blocks) {
            return Err(wrong(format!(
                "blocks = {}: the placement {} has no use for it; accepted: the placement pack",
                name(&rule),
                name(&self.place)
            )));
        }
        if self.align.is_some_and(|align| align.bytes() == 0) {
            return Err(wrong("align = 0; accepted: 1 byte or more".to_owned()));
        }
        self.traces.iter().try_for_each(SourceConfig::check)
    }

    /// True when every address of a source comes to the same place.
    pub(super) fn lies_as(&self, other: &Self) -> bool {
        (&self.traces, self.place, self.align, self.blocks)
            == (&other.traces, other.place, other.align, other.blocks)
    }

    /// Refuses an order by time of sources without times.
    pub(super) fn check_times(&self, sources: &[SourceSummary]) -> Result<(), TraceError> {
        match sources.iter().find(|source| !source.has_times) {
            Some(source) if self.order == Order::Merge => Err(wrong(format!(
                "{}: the format says nothing of times, by which the order merge goes; accepted: traces with times, or the \
                 order bursts or concatenate",
                source.path
            ))),
            _ => Ok(()),
        }
    }

    /// Seed of what is drawn.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED_DEFAULT)
    }

    /// Requests of a burst.
    pub(super) fn burst(&self) -> BurstRequests {
        self.burst_requests.unwrap_or(BurstRequests::Count(1))
    }

    /// How many sources it has, in words.
    pub(super) fn counted(&self) -> String {
        match self.traces.len() {
            1 => "1 trace".to_owned(),
            count => format!("{count} traces combined"),
        }
    }

    /// All but the sources, in words.
    pub(super) fn parameters(&self) -> String {
        let mut words = format!("{}, order {}", self.counted(), name(&self.order));
        if self.order == Order::Bursts {
            words.push_str(&format!(", burst_requests {}", self.burst()));
        }
        words.push_str(&format!(", place {}", name(&self.place)));
        if let Some(align) = self.align {
            words.push_str(&format!(", align {align}"));
        }
        if let Some(rule) = self.blocks {
            words.push_str(&format!(", blocks {}", name(&rule)));
        }
        words.push_str(&format!(", seed {}", self.seed()));
        words
    }
}

/// The name by which a file or an option calls a value.
fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => unreachable!("a variant without fields is its name"),
    }
}

/// An error about the combination itself.
pub(super) fn wrong(reason: String) -> TraceError {
    TraceError::Combination { reason }
}
