//! Nodes joined one after another, where the requests of each source go to one of them.

use super::ports::PortNodes;
use super::{Asked, Keeps, Kind, Node, Place, Planned, SpanConfig, Windows, World};
use crate::config::ConfigError;
use imbrex_core::units::BlockCount;
use imbrex_drives::keys::{Key, KeyError, Keys};
use serde::Serialize;

/// A span whose windows are devices of a trace. It is simulated alone.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct DedicatedConfig(SpanConfig);

impl Keys for DedicatedConfig {
    const NAMES: &'static [&'static str] = SpanConfig::NAMES;

    fn keys() -> Vec<Key> {
        SpanConfig::keys()
    }

    fn read(table: toml::Table) -> Result<DedicatedConfig, KeyError> {
        SpanConfig::read(table).map(DedicatedConfig)
    }
}

impl Kind for DedicatedConfig {
    const NAME: &'static str = "dedicated";
    const PLACE: Place = Place::Joint;
}

impl Node for DedicatedConfig {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.0.ports()
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn windows(&self) -> Option<Windows<'_>> {
        Some(Windows { is_by_source: true, ..self.0.windows()? })
    }

    fn check_place(&self, user: Option<&str>) -> Result<(), String> {
        match user {
            None => Ok(()),
            Some(user) => Err(format!(
                "node `{}`: kind = \"dedicated\" below `{user}`, whose operations are of no device of a \
                 trace; accepted: at the top of the stack, or kind = \"span\"",
                self.0.name
            )),
        }
    }

    fn refused_by_serving(&self) -> Option<String> {
        Some(format!(
            "node `{}`: kind = \"dedicated\" cannot be served: requests of a client have one address \
             space and no device number to choose a node by; accepted: kind = \"span\", where each node \
             below is an export of its own too (imbrex compare takes \"dedicated\")",
            self.0.name
        ))
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Unreadable("is dedicated, which no image is"))
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        self.0.room(world, scale)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        self.0.plan(asked, world)
    }
}
