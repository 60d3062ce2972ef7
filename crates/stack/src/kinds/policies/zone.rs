//! The parts of the address space that a policy tells apart.

use super::PolicyGiven;
use crate::config::ConfigError;
use crate::kinds::write_back_cache::at_least_a_block;
use imbrex_core::cache::ZoneSettings;
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::{QuantityError, Size};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The parts of the address space that a policy tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Zones of this length each.
    Of(Size),
    /// The bands below.
    Bands,
}

impl Zone {
    /// The settings in the core, for the cache `node`.
    ///
    /// # Errors
    /// When a zone is shorter than a block.
    pub(in crate::kinds) fn settings(self, node: &str) -> Result<ZoneSettings, ConfigError> {
        match self {
            Zone::Bands => Ok(ZoneSettings::Bands),
            Zone::Of(size) => {
                let zone = at_least_a_block(node, "zone", size)?;
                Ok(ZoneSettings::Equal(BlockCount::from_bytes_floor(zone.bytes()).0))
            }
        }
    }
}

/// The settings in the core of a policy that goes by bands where nothing else is said: the bands below, or
/// over a drive that hides them their mean length.
///
/// # Errors
/// When a zone is shorter than a block.
pub(super) fn bands_or(
    zone: Option<Zone>,
    given: &PolicyGiven<'_>,
) -> Result<ZoneSettings, ConfigError> {
    match (zone, given.mean_band) {
        (Some(zone), _) => zone.settings(given.node),
        (None, Some(mean)) => Ok(ZoneSettings::Equal(mean.0)),
        (None, None) => Ok(ZoneSettings::Bands),
    }
}

impl FromStr for Zone {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Zone, QuantityError> {
        match text {
            "bands" => Ok(Zone::Bands),
            _ => match text.parse() {
                Ok(size) => Ok(Zone::Of(size)),
                Err(error) => Err(QuantityError::new(format!("{error}; or `bands`"))),
            },
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Zone::Of(size) => size.fmt(f),
            Zone::Bands => f.write_str("bands"),
        }
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Zone, D::Error> {
        let value = toml::Value::deserialize(from)?;
        match value.as_str() {
            Some(text) => text.parse().map_err(D::Error::custom),
            None => Size::deserialize(value)
                .map(Zone::Of)
                .map_err(|error| D::Error::custom(error.message())),
        }
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
