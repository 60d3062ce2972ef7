//! RAID level 1 over any nodes that take writes anywhere.

use super::checksums::table_bytes;
use super::ports::{BelowNodes, PortNodes};
use super::raid::{LOST_AFTER_S, ask_members, check_copies, check_disks, with_spares};
use super::segment_geometry::blocks_of;
use super::span::JoinedPorts;
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, Place, Planned, Reported, World,
    wrong,
};
use crate::config::ConfigError;
use crate::durability::{BLOCKS_MAX, JournalKeys};
use imbrex_core::array::raid1::{RECORD_KINDS, Raid1, Raid1Keeping, Raid1Layout};
use imbrex_core::array::{Level, RaidRows};
use imbrex_core::counters::{ARRAY, ARRAY_CONTENTS, Group, JOURNAL, UNUSED};
use imbrex_core::disk::Geometry;
use imbrex_core::layer::Port;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration};
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use std::borrow::Cow;

/// What is compared after a crash where it was written, in bytes: four pages of checksums.
const REGION_BYTES: u64 = 4 * 1008 * BLOCK_BYTES;
/// The least and the most that a region may have.
const REGION_BYTES_MIN: u64 = 16 << 10;
const REGION_BYTES_MAX: u64 = 1 << 30;
/// Blocks of the ring of its journal at least.
const RING_BLOCKS_MIN: u64 = 10;

keys! {
    /// An array of copies.
    pub struct Raid1Config {
        /// Name of the node.
        name: String => "any";
        /// The members. As much of each is used as of the smallest.
        below: BelowNodes<JoinedPorts> => "a list of names";
        /// Nodes that take the place of members that are lost, in this order, and are rebuilt at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        spares: Option<Vec<String>> => "a list of names", "none";
        /// Whether it keeps a journal, as it does when it is served from files; not when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
        /// Blocks of the ring of its journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// Where it is durable: what is compared after a crash where anything of it was being written, and what a
        /// member that was away gets anew where anything of it was written meanwhile.
        #[serde(skip_serializing_if = "Option::is_none")]
        region: Option<Size> => "16 KiB to 1 GiB, a multiple of 4 KiB", "16128 KiB";
        /// Where it is durable: a member of which an operation takes longer than so many seconds is lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost_after_s: Option<u64> => 1..=86_400, "60";
        /// Memory for the tables of checksums.
        #[serde(skip_serializing_if = "Option::is_none")]
        table_memory: Option<Size> => "a size, at least 4 KiB", r#"`"64 MiB"`"#;
    }
}

impl Raid1Config {
    fn members(&self) -> &[String] {
        self.below.several("below")
    }

    fn spares(&self) -> &[String] {
        self.spares.as_deref().unwrap_or_default()
    }

    /// What each member can offer, and after that each spare.
    fn rooms(&self, world: &World<'_>, scale: u64) -> Result<Vec<BlockCount>, ConfigError> {
        let nodes = self.members().iter().chain(self.spares());
        nodes.map(|name| world.room(name, scale)).collect()
    }

    /// What is used of a member at most.
    fn room_of_members(&self, rooms: &[BlockCount]) -> Result<BlockCount, ConfigError> {
        let members = rooms[..self.members().len()].iter().copied();
        let rows = RaidRows::new(Level::Raid1, members).map_err(|error| wrong(&self.name, &error));
        Ok(rows?.used())
    }

    /// How it keeps what it knows, if it does.
    fn keeping(&self, world: &World<'_>) -> Result<Option<Raid1Keeping>, ConfigError> {
        let Some(durability) = self.journal().and_then(|it| it.settings(world.options)) else {
            return Ok(None);
        };
        check_copies(&self.name, self.members().len() + self.spares().len())?;
        if durability.ring_blocks < RING_BLOCKS_MIN {
            let words = format!(
                "ring_blocks = {}; accepted: {RING_BLOCKS_MIN} and more, two of which list the copies of the journal",
                durability.ring_blocks
            );
            return Err(wrong(&self.name, &words));
        }
        let region = self.region.map_or(REGION_BYTES, Size::bytes);
        if !(REGION_BYTES_MIN..=REGION_BYTES_MAX).contains(&region) {
            let words = format!("region = {region} B; accepted: 16 KiB to 1 GiB");
            return Err(wrong(&self.name, &words));
        }
        let region_rows = match self.region {
            Some(size) => blocks_of(&self.name, "region", size)?.0,
            None => REGION_BYTES / BLOCK_BYTES,
        };
        let memory_bytes = table_bytes(&self.name, self.table_memory)?;
        let lost_after = Duration::from_ms(self.lost_after_s.unwrap_or(LOST_AFTER_S) * 1000);
        Ok(Some(Raid1Keeping { durability, region_rows, memory_bytes, lost_after }))
    }
}

impl Kind for Raid1Config {
    const NAME: &'static str = Level::Raid1.name();
    const PLACE: Place = Place::Joint;
}

impl Node for Raid1Config {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        with_spares(self.below.ports(), self.spares())
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.members().first().map_or("", String::as_str),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            // It writes in place, and keeps nothing of what was not flushed.
            unflushed_blocks_max: None,
            others: [
                ("region", self.region.is_some()),
                ("lost_after_s", self.lost_after_s.is_some()),
                ("table_memory", self.table_memory.is_some()),
            ]
            .into_iter()
            .filter_map(|(key, is_stated)| is_stated.then_some(key))
            .collect(),
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        let columns = self.members().len();
        let name = |at: usize| match at.checked_sub(columns) {
            None => format!("member-{at}").into(),
            Some(spare) => format!("spare-{spare}").into(),
        };
        let ports = 0..columns + self.spares().len();
        ports.map(|at| (name(at), Port(at as u8))).collect()
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::ArrayOfCopies)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let room = self.room_of_members(&self.rooms(world, scale)?)?;
        let Some(keeping) = self.keeping(world)? else { return Ok(room) };
        let layout = Raid1Layout::within(&keeping, room.0);
        Ok(BlockCount(layout.map_or(0, |layout| layout.shape.data_rows)))
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        check_disks(&self.name, &self.below(), world.config)?;
        let rooms = self.rooms(world, asked.scale)?;
        let most = self.room(world, asked.scale)?;
        if asked.blocks > most {
            return Err(wrong(
                &self.name,
                &format_args!(
                    "{} B are asked of it; accepted: up to {} B",
                    asked.blocks.bytes(),
                    most.bytes()
                ),
            ));
        }
        let keeping = self.keeping(world)?;
        let used = match &keeping {
            Some(keeping) => Some(Raid1Layout::new(keeping, asked.blocks.0).member_blocks()),
            None => (asked.blocks != most).then_some(asked.blocks.0),
        };
        let planned = PlannedRaid1 {
            name: self.name.clone(),
            spares: self.spares().len(),
            asked: asked.blocks,
            keeping,
        };
        let asked = ask_members(rooms, used.map(BlockCount), asked.scale).collect();
        Ok((Box::new(planned), asked))
    }
}

struct PlannedRaid1 {
    name: String,
    spares: usize,
    asked: BlockCount,
    keeping: Option<Raid1Keeping>,
}

impl Planned for PlannedRaid1 {
    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let geometries: Vec<_> = below.offers.iter().map(|offer| &offer.geometry).collect();
        let built = Raid1::new(&geometries, self.spares, Some(self.asked), self.keeping);
        let (raid, geometry) = built.map_err(|error| wrong(&self.name, &error))?;
        let geometry = Geometry { blocks: self.asked, ..geometry };
        let facts = Facts {
            columns: below.offers.len() - self.spares,
            layout: self.keeping.map(|keeping| Raid1Layout::new(&keeping, self.asked.0)),
        };
        Ok(Part {
            body: Body::Layer(Box::new(raid)),
            offer: Offer::over(geometry),
            facts: super::Facts::Raid1(facts),
        })
    }
}

/// What reports, and whoever reads its members, need to know of an array of copies.
pub struct Facts {
    /// How many of the nodes below are members: the first ones. The others are spares.
    pub columns: usize,
    /// Where it keeps what on each of them; none where it keeps nothing.
    pub layout: Option<Raid1Layout>,
}

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        match self.layout.is_some() {
            true => vec![ARRAY, ARRAY_CONTENTS, UNUSED, JOURNAL],
            false => vec![ARRAY, ARRAY_CONTENTS, UNUSED],
        }
    }
}
