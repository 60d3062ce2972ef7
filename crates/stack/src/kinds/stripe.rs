//! Nodes as one node whose chunks go round over them.

use super::ports::{BelowNodes, PortNodes};
use super::segment_geometry::blocks_of;
use super::span::JoinedPorts;
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, Place, Planned, Reported, World,
    Writer, wrong,
};
use crate::config::ConfigError;
use imbrex_core::counters::{Group, UNUSED};
use imbrex_core::disk::Geometry;
use imbrex_core::stripe::{Stripe, StripeLayout};
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;

keys! {
    /// Nodes as one node: chunk k lies on node k modulo their number.
    pub struct StripeConfig {
        /// Name of the node.
        name: String => "any";
        /// The nodes, the one of the first chunk first.
        below: BelowNodes<JoinedPorts> => "a list of 1 to 64 names";
        /// What lies on one node in one piece; a block as in Le's thesis, 64 KiB and more as
        /// administrators choose it.
        chunk: Size = Size(BLOCK_BYTES) => "a multiple of 4 KiB, up to the size of the smallest node";
    }
}

/// A chunk, and what all nodes together can offer.
struct Room {
    chunk: BlockCount,
    /// Blocks that each node can offer at most.
    of_each: Vec<BlockCount>,
    /// Blocks of each node that are used when the whole stripe is.
    used_of_each: BlockCount,
}

impl Room {
    fn blocks(&self) -> BlockCount {
        BlockCount(self.used_of_each.0 * self.of_each.len() as u64)
    }
}

impl StripeConfig {
    /// Blocks of a chunk.
    ///
    /// # Errors
    /// When it is none, or no multiple of 4 KiB.
    pub fn chunk(&self) -> Result<BlockCount, ConfigError> {
        blocks_of(&self.name, "chunk", self.chunk)
    }

    fn whole_room(&self, world: &World<'_>, scale: u64) -> Result<Room, ConfigError> {
        let chunk = self.chunk()?;
        let rooms = self.below.several("below").iter().map(|name| world.room(name, scale));
        let of_each = rooms.collect::<Result<Vec<_>, _>>()?;
        let layout = StripeLayout::new(of_each.len(), chunk);
        let smallest = of_each.iter().min().copied().unwrap_or_default();
        let used_of_each = layout.used_of_each(smallest);
        if used_of_each == BlockCount::ZERO {
            return Err(wrong(
                &self.name,
                &format_args!(
                    "chunk = \"{}\", and the smallest node below has {} B; accepted: a multiple of 4 KiB up \
                     to that",
                    self.chunk,
                    smallest.bytes()
                ),
            ));
        }
        Ok(Room { chunk, of_each, used_of_each })
    }
}

impl Kind for StripeConfig {
    const NAME: &'static str = "stripe";
    const PLACE: Place = Place::Joint;
}

impl Node for StripeConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Striped(self.chunk()?))
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        Ok(self.whole_room(world, scale)?.blocks())
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let room = self.whole_room(world, asked.scale)?;
        if asked.blocks > room.blocks() {
            return Err(wrong(
                &self.name,
                &format_args!(
                    "{} B are asked of it; accepted: up to {} B, which is what whole chunks of \"{}\" on each \
                     node come to, as many as the smallest has",
                    asked.blocks.bytes(),
                    room.blocks().bytes(),
                    self.chunk
                ),
            ));
        }
        let of_each = match asked.blocks == room.blocks() {
            true => room.of_each,
            // A row more than is asked of it where that ends inside of one.
            false => {
                let row = room.chunk.0 * room.of_each.len() as u64;
                let used = BlockCount(asked.blocks.0.div_ceil(row) * room.chunk.0);
                vec![used; room.of_each.len()]
            }
        };
        let below = of_each.into_iter().map(|blocks| Asked {
            blocks,
            scale: asked.scale,
            writer: Writer::Layer,
            is_part: false,
        });
        let planned =
            PlannedStripe { name: self.name.clone(), chunk: room.chunk, asked: asked.blocks };
        Ok((Box::new(planned), below.collect()))
    }
}

struct PlannedStripe {
    name: String,
    chunk: BlockCount,
    asked: BlockCount,
}

impl Planned for PlannedStripe {
    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let geometries: Vec<_> = below.offers.iter().map(|offer| &offer.geometry).collect();
        let (stripe, geometry) =
            Stripe::new(&geometries, self.chunk).map_err(|error| wrong(&self.name, &error))?;
        let geometry = Geometry { blocks: self.asked, ..geometry };
        Ok(Part {
            body: Body::Layer(Box::new(stripe)),
            offer: Offer::over(geometry),
            facts: super::Facts::Stripe(Facts),
        })
    }
}

/// What a report needs to know of a stripe: what it passes on is counted below.
pub struct Facts;

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        vec![UNUSED]
    }
}
