//! Nodes joined one after another under one top.

use super::ports::{BelowNodes, Form, PortKey, PortNodes, Ports, several};
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, Place, Planned, Reported, Windows,
    WindowsBy, World, Writer, wrong,
};
use crate::config::ConfigError;
use imbrex_core::span::Span;
use imbrex_core::units::BlockCount;
use imbrex_drives::{AnyWord, Word, keys};

keys! {
    /// Nodes joined one after another: each is a window of the device, under its own name.
    pub struct SpanConfig {
        /// Name of the node.
        name: String => "any";
        /// The nodes, the one at address 0 first.
        below: BelowNodes<JoinedPorts> => "a list of 1 to 64 names";
        /// Which requests of a trace each node gets: those to its addresses, or those of the device of the trace with its
        /// number, at addresses of the node. A client that is served chooses by addresses, or by an export.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Word<JoinedBy>> => AnyWord, r#"`"address"`"#;
    }
}

imbrex_core::words! {
    /// Which requests of a trace a joined node gets.
    pub enum JoinedBy {
        /// Those to its addresses.
        Address = "address",
        /// Those of the device with its number.
        Device = "device",
    }
}

/// The nodes that are joined.
pub struct JoinedPorts;

impl Ports for JoinedPorts {
    const PORTS: &'static [PortKey] = &[several("below")];
    const FORM: Form = Form::Short;
}

impl SpanConfig {
    /// Blocks of each node that it joins.
    fn rooms(&self, world: &World<'_>, scale: u64) -> Result<Vec<BlockCount>, ConfigError> {
        let rooms = self.below.several("below").iter().map(|name| world.room(name, scale));
        rooms.collect()
    }
}

impl Kind for SpanConfig {
    const NAME: &'static str = "span";
    const PLACE: Place = Place::Joint;
}

impl Node for SpanConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn exports(&self) -> Vec<&str> {
        self.below()
    }

    fn windows(&self) -> Option<Windows<'_>> {
        let by = match Word::or(self.by, JoinedBy::Address) {
            JoinedBy::Address => WindowsBy::Address,
            JoinedBy::Device => WindowsBy::Source,
        };
        Some(Windows { nodes: self.below(), by })
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Spanned)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let rooms = self.rooms(world, scale)?;
        Ok(BlockCount(rooms.iter().map(|room| room.0).sum()))
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let rooms = self.rooms(world, asked.scale)?;
        let all: u64 = rooms.iter().map(|room| room.0).sum();
        if asked.blocks.0 != all {
            return Err(wrong(
                &self.name,
                &format_args!(
                    "{} B are asked of it, and the nodes that it joins have {} B together; accepted: \
                     as much as they have, with no `size` of the device",
                    asked.blocks.bytes(),
                    BlockCount(all).bytes()
                ),
            ));
        }
        let below = rooms.into_iter().map(|blocks| Asked {
            blocks,
            scale: asked.scale,
            writer: Writer::Layer,
            is_part: false,
        });
        let planned = PlannedSpan { name: self.name.clone() };
        Ok((Box::new(planned), below.collect()))
    }
}

struct PlannedSpan {
    name: String,
}

impl Planned for PlannedSpan {
    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let geometries: Vec<_> = below.offers.iter().map(|offer| &offer.geometry).collect();
        let (span, geometry) = Span::new(&geometries).map_err(|error| wrong(&self.name, &error))?;
        Ok(Part {
            body: Body::Layer(Box::new(span)),
            offer: Offer::over(geometry),
            facts: super::Facts::Span(Facts),
        })
    }
}

/// What a report needs to know of a span: nothing, for what it passes on is counted below.
pub struct Facts;

impl Reported for Facts {}
