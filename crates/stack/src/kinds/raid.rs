//! RAID levels 4 and 5 over any nodes that take writes anywhere.

use super::ports::{BelowNodes, PortNodes, several};
use super::span::JoinedPorts;
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, Place, Planned, Reported, World,
    Writer, wrong,
};
use crate::config::{ConfigError, StackConfig};
use imbrex_core::array::{Level, Raid, RaidRows};
use imbrex_core::counters::{ARRAY, Group, UNUSED};
use imbrex_core::disk::Geometry;
use imbrex_core::durability::membership::COPIES_MAX;
use imbrex_core::units::BlockCount;
use imbrex_drives::keys;
use imbrex_drives::keys::{Key, KeyError, Keys};
use serde::Serialize;

keys! {
    /// A RAID array.
    pub struct RaidKeys {
        /// Name of the node.
        name: String => "any";
        /// The members: of level 4 the one with the parity last. As much of each is used as of the smallest.
        below: BelowNodes<JoinedPorts> => "a list of names";
        /// Nodes that take the place of members that are lost, in this order, and are rebuilt at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        spares: Option<Vec<String>> => "a list of names", "none";
    }
}

impl RaidKeys {
    fn spares(&self) -> &[String] {
        self.spares.as_deref().unwrap_or_default()
    }

    fn members(&self) -> &[String] {
        self.below.several("below")
    }
}

/// Seconds that an operation of a member of a durable array may take.
pub(super) const LOST_AFTER_S: u64 = 60;

/// Finds a journal with too many copies.
pub(super) fn check_copies(name: &str, copies: usize) -> Result<(), ConfigError> {
    let words = || {
        format!(
            "its journal would have {copies} copies; accepted where the array is durable: up to {COPIES_MAX}, \
             on members and spares together"
        )
    };
    if copies > COPIES_MAX { Err(wrong(name, &words())) } else { Ok(()) }
}

/// The ports of an array and its spares behind them.
pub(super) fn with_spares<'a>(
    ports: Vec<PortNodes<'a>>,
    spares: &'a [String],
) -> Vec<PortNodes<'a>> {
    let nodes: Vec<&str> = spares.iter().map(String::as_str).collect();
    let spares = (!nodes.is_empty()).then_some(PortNodes { key: several("spares"), nodes });
    ports.into_iter().chain(spares).collect()
}

/// What an array of this version says where it is to be served.
pub(super) fn only_simulated(name: &str, kind: &str) -> String {
    format!(
        "node `{name}`: kind = \"{kind}\" keeps no journal, so a power cut could leave its members at odds; \
         accepted: arrays of kind \"raid1\" or \"raid4smr\", and stacks without arrays (imbrex compare takes \"{kind}\")"
    )
}

/// Finds two members of an array that stand on one disk, which would be lost together.
pub(super) fn check_disks(
    name: &str,
    members: &[&str],
    config: &StackConfig,
) -> Result<(), ConfigError> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for member in members {
        let mut below = vec![*member];
        while let Some(at) = below.pop() {
            let node = config.node(at).expect("a checked stack");
            if node.disk().is_none() {
                below.extend(node.below());
                continue;
            }
            if let Some((_, other)) = seen.iter().find(|(disk, _)| *disk == at) {
                return Err(wrong(
                    name,
                    &format_args!(
                        "its members `{other}` and `{member}` stand on one disk, `{at}`, and would be lost \
                         together; accepted: members on disks of their own"
                    ),
                ));
            }
            seen.push((at, member));
        }
    }
    Ok(())
}

/// What the members of an array are asked for.
pub(super) fn ask_members(
    rooms: Vec<BlockCount>,
    used: Option<BlockCount>,
    scale: u64,
) -> impl Iterator<Item = Asked> {
    rooms.into_iter().map(move |room| Asked {
        blocks: used.unwrap_or(room),
        scale,
        writer: Writer::Layer,
        is_part: false,
    })
}

/// Declares the kinds of the levels.
macro_rules! levels {
    ($($(#[$doc:meta])* $config:ident = $level:expr),* $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Serialize)]
            #[serde(transparent)]
            pub struct $config(RaidKeys);

            impl Keys for $config {
                const NAMES: &'static [&'static str] = RaidKeys::NAMES;

                fn keys() -> Vec<Key> {
                    RaidKeys::keys()
                }

                fn read(table: toml::Table) -> Result<$config, KeyError> {
                    RaidKeys::read(table).map($config)
                }
            }

            impl OfLevel for $config {
                const LEVEL: Level = $level;

                fn keys(&self) -> &RaidKeys {
                    &self.0
                }
            }

            impl Kind for $config {
                const NAME: &'static str = $level.name();
                const PLACE: Place = Place::Joint;
            }
        )*
    };
}

levels! {
    /// The last member has the parity.
    Raid4Config = Level::Raid4,
    /// Members have the parity by turns.
    Raid5Config = Level::Raid5,
}

/// The configuration of an array of one level.
trait OfLevel {
    const LEVEL: Level;

    fn keys(&self) -> &RaidKeys;

    /// What each member can offer, and after that each spare.
    fn rooms(&self, world: &World<'_>, scale: u64) -> Result<Vec<BlockCount>, ConfigError> {
        let keys = self.keys();
        let nodes = keys.members().iter().chain(keys.spares());
        nodes.map(|name| world.room(name, scale)).collect()
    }

    /// The rows over members with so much room.
    ///
    /// # Errors
    /// When there are too few or too many.
    fn map(&self, rooms: &[BlockCount]) -> Result<RaidRows, ConfigError> {
        let keys = self.keys();
        let members = rooms[..keys.members().len()].iter().copied();
        RaidRows::new(Self::LEVEL, members).map_err(|error| wrong(&keys.name, &error))
    }
}

impl<T: OfLevel + Kind> Node for T {
    fn name(&self) -> &str {
        &self.keys().name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        with_spares(self.keys().below.ports(), self.keys().spares())
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn refused_by_serving(&self) -> Option<String> {
        Some(only_simulated(self.name(), T::NAME))
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Unreadable("is an array with redundancy, which no image is yet"))
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        Ok(self.map(&self.rooms(world, scale)?)?.blocks())
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        check_disks(self.name(), &self.below(), world.config)?;
        let rooms = self.rooms(world, asked.scale)?;
        let map = self.map(&rooms)?;
        if asked.blocks > map.blocks() {
            return Err(wrong(
                self.name(),
                &format_args!(
                    "{} B are asked of it; accepted: up to {} B",
                    asked.blocks.bytes(),
                    map.blocks().bytes()
                ),
            ));
        }
        let rows = BlockCount(asked.blocks.0.div_ceil(map.data_columns()));
        let used = (asked.blocks != map.blocks()).then_some(rows);
        let planned = PlannedRaid {
            name: self.name().to_owned(),
            level: T::LEVEL,
            spares: self.keys().spares().len(),
            asked: asked.blocks,
        };
        Ok((Box::new(planned), ask_members(rooms, used, asked.scale).collect()))
    }
}

struct PlannedRaid {
    name: String,
    level: Level,
    spares: usize,
    asked: BlockCount,
}

impl Planned for PlannedRaid {
    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let geometries: Vec<_> = below.offers.iter().map(|offer| &offer.geometry).collect();
        let built = Raid::new(self.level, &geometries, self.spares);
        let (raid, geometry) = built.map_err(|error| wrong(&self.name, &error))?;
        let geometry = Geometry { blocks: self.asked, ..geometry };
        let facts = match self.level {
            Level::Raid4 => super::Facts::Raid4(Facts),
            _ => super::Facts::Raid5(Facts),
        };
        Ok(Part { body: Body::Layer(Box::new(raid)), offer: Offer::over(geometry), facts })
    }
}

/// What a report needs to know of an array: what it counts.
pub struct Facts;

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        vec![ARRAY, UNUSED]
    }
}
