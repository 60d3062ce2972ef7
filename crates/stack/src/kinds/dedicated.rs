//! Nodes joined one after another, where the requests of each source go to one of them, or each request in its turn.

use super::ports::{BelowNodes, PortNodes};
use super::span::JoinedPorts;
use super::{Asked, Keeps, Kind, Node, Place, Planned, SpanConfig, Windows, WindowsBy, World};
use crate::config::ConfigError;
use imbrex_core::units::BlockCount;
use imbrex_drives::{AnyWord, Word, keys};

keys! {
    /// A span whose windows are devices of a trace, or take requests in turn. It is simulated alone.
    pub struct DedicatedConfig {
        /// Name of the node.
        name: String => "any";
        /// The nodes, that of device 0 first.
        below: BelowNodes<JoinedPorts> => "a list of 1 to 64 names";
        /// Which requests each node gets: those of the device of the trace with its number, or one after the other in
        /// turn, whatever their device.
        by: Word<DealtBy> = Word(DealtBy::Device) => AnyWord;
    }
}

imbrex_core::words! {
    /// Which requests a dedicated node gets.
    pub enum DealtBy {
        /// Those of the device with its number.
        Device = "device",
        /// Each in its turn.
        Turn = "turn",
    }
}

impl DedicatedConfig {
    /// The nodes as a span joins them.
    fn span(&self) -> SpanConfig {
        SpanConfig { name: self.name.clone(), below: self.below.clone(), by: None }
    }
}

impl Kind for DedicatedConfig {
    const NAME: &'static str = "dedicated";
    const PLACE: Place = Place::Joint;
}

impl Node for DedicatedConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn windows(&self) -> Option<Windows<'_>> {
        let by = match self.by.0 {
            DealtBy::Device => WindowsBy::Source,
            DealtBy::Turn => WindowsBy::Turn,
        };
        Some(Windows { nodes: self.below(), by })
    }

    fn check_place(&self, user: Option<&str>) -> Result<(), String> {
        match user {
            None => Ok(()),
            Some(user) => Err(format!(
                "node `{}`: kind = \"dedicated\" below `{user}`, whose operations are of no device of a \
                 trace; accepted: at the top of the stack, or kind = \"span\"",
                self.name
            )),
        }
    }

    fn refused_by_serving(&self) -> Option<String> {
        let why = match self.by.0 {
            DealtBy::Device => "and no device number to choose a node by",
            DealtBy::Turn => "and find what they wrote at one place, whatever their turn",
        };
        Some(format!(
            "node `{}`: kind = \"dedicated\" cannot be served: requests of a client have one address \
             space {why}; accepted: kind = \"span\", where each node \
             below is an export of its own too (imbrex compare takes \"dedicated\")",
            self.name
        ))
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Unreadable("is dedicated, which no image is"))
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        self.span().room(world, scale)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        self.span().plan(asked, world)
    }
}
