//! A part of a node, so that several nodes stand on one.

use super::ports::{PortNodes, one};
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, NodeConfig, Offer, OnDisk, Part, Planned,
    Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use imbrex_core::counters::Counter;
use imbrex_core::extent::Extent;
use imbrex_core::slice::Slice;
use imbrex_core::units::BlockCount;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{OperationKind, Tallies};
use std::ops::Range;
use std::rc::Rc;

keys! {
    /// A part of a node.
    pub struct SliceConfig {
        /// Name of the node.
        name: String => "any";
        /// What it is a part of.
        below: String => "a node";
        /// Where it begins there.
        offset: Size => r#"a size, or `"0"`"#;
        /// How long it is.
        size: Size => "a size of at least 4 KiB that ends within the node";
    }
}

impl SliceConfig {
    /// The bytes of the node below, undivided.
    fn bytes(&self) -> Range<u64> {
        let start = self.offset.bytes();
        start..start.saturating_add(self.size.bytes())
    }

    /// The blocks of the node below, when the drives there are divided by `scale`.
    fn window(&self, scale: u64) -> Extent {
        let blocks = |size: Size| BlockCount::from_bytes_floor(size.bytes() / scale);
        Extent::new(blocks(self.offset).0, blocks(self.size).0)
    }
}

/// Finds two slices of one node that overlap.
pub(crate) fn check_overlaps(nodes: &[NodeConfig]) -> Result<(), String> {
    let slices = || {
        nodes.iter().filter_map(|node| match node {
            NodeConfig::Slice(slice) => Some(&**slice),
            _ => None,
        })
    };
    for (index, slice) in slices().enumerate() {
        let overlaps = |other: &&SliceConfig| {
            let (mine, theirs) = (slice.bytes(), other.bytes());
            other.below == slice.below && mine.start < theirs.end && theirs.start < mine.end
        };
        if let Some(other) = slices().take(index).find(overlaps) {
            return Err(format!(
                "nodes `{}` and `{}` overlap on `{}`: offset = \"{}\" with size = \"{}\", and offset = \
                 \"{}\" with size = \"{}\"; accepted: slices that do not",
                other.name,
                slice.name,
                slice.below,
                other.offset,
                other.size,
                slice.offset,
                slice.size
            ));
        }
    }
    Ok(())
}

impl Kind for SliceConfig {
    const NAME: &'static str = "slice";
}

impl Node for SliceConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        vec![PortNodes { key: one("below"), nodes: vec![&self.below] }]
    }

    fn is_clear(&self) -> bool {
        true
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn part(&self) -> Option<Range<u64>> {
        Some(self.bytes())
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Part)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let window = self.window(scale);
        let below = world.room(&self.below, scale)?;
        if window.is_empty() {
            let words = format!("size = \"{}\"; accepted: one block (4096 B) or more", self.size);
            return Err(wrong(&self.name, &words));
        }
        if window.end().0 > below.0 {
            let words = format!(
                "offset = \"{}\" with size = \"{}\" ends at {} B, and `{}` has {} B; accepted: a slice \
                 that ends there or before",
                self.offset,
                self.size,
                BlockCount(window.end().0).bytes(),
                self.below,
                below.bytes()
            );
            return Err(wrong(&self.name, &words));
        }
        Ok(window.blocks)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        self.room(world, asked.scale)?;
        let window = self.window(asked.scale);
        let planned = PlannedSlice {
            name: self.name.clone(),
            window,
            asked: asked.blocks,
            is_for_tracks: matches!(asked.writer, Writer::Tracks { .. }),
            track_blocks: world.drive_below(self).map_or(BlockCount::ZERO, |drive| {
                super::persistent_cache::longest_track(&drive.model)
            }),
        };
        let below = Asked { blocks: BlockCount(window.end().0), is_part: true, ..asked };
        Ok((Box::new(planned), vec![below]))
    }
}

struct PlannedSlice {
    name: String,
    window: Extent,
    /// Blocks that the node above needs.
    asked: BlockCount,
    /// The node above knows tracks: it leaves room for what the slice does not offer.
    is_for_tracks: bool,
    /// The longest track of the drive below.
    track_blocks: BlockCount,
}

impl Planned for PlannedSlice {
    fn conventional(
        &self,
        _: &Known<'_>,
        above: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        // It begins at the first whole track.
        let below = above.iter().map(|part| {
            let start = self.window.start.0 + part.start.0;
            let blocks = part.blocks.0 + self.track_blocks.0;
            (0, Extent::new(start, blocks.min(self.window.end().0.saturating_sub(start))))
        });
        Ok(below.collect())
    }

    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let node = below.offers[0];
        // As much as is needed, where that is known to the block.
        let blocks = match self.is_for_tracks {
            true => self.window.blocks,
            false => self.window.blocks.min(self.asked),
        };
        let wanted = Extent { blocks, ..self.window };
        let (slice, geometry) = Slice::new(wanted, &node.geometry, &node.flush_failure)
            .map_err(|error| wrong(&self.name, &error))?;
        let part = slice.extent();
        let part_of_disk = node.on_disk.as_ref().map(|disk| {
            let Extent { start, blocks } = slice.extent();
            Extent::new(disk.start + start.0, blocks.0)
        });
        let on_disk = node.on_disk.as_ref().map(|disk| OnDisk {
            statistics: Rc::clone(&disk.statistics),
            start: disk.start + slice.extent().start.0,
            area_prefix: format!("{}.", self.name),
        });
        let tallies = node.on_disk.as_ref().map(|disk| {
            let start = disk.start + self.window.start.0;
            let all = Extent::new(start, self.window.blocks.0);
            disk.statistics.count_part(all)
        });
        Ok(Part {
            body: Body::Part(Box::new(slice)),
            offer: Offer { on_disk, mean_band: node.mean_band, ..Offer::over(geometry) },
            facts: super::Facts::Slice(Facts { tallies, part, on_disk: part_of_disk }),
        })
    }
}

/// What a report needs to know of a slice.
pub struct Facts {
    /// What its disk has counted of it; none where it is not cut from a disk.
    tallies: Option<Rc<Tallies>>,
    /// The blocks of the node below that it offers.
    pub part: Extent,
    /// The blocks of its disk that it offers; none where it is not cut from a disk.
    pub on_disk: Option<Extent>,
}

impl Reported for Facts {
    fn others(&self) -> Vec<(Counter, u64)> {
        let Some(tallies) = &self.tallies else {
            return vec![];
        };
        let mut counts = use_of(tallies);
        counts.push((Counter::Flushes, tallies.operations_of(OperationKind::Flush)));
        counts
    }
}

/// What was done on a disk or a part of it.
pub(super) fn use_of(tallies: &Tallies) -> Vec<(Counter, u64)> {
    vec![
        (Counter::Reads, tallies.operations_of(OperationKind::Read)),
        (Counter::Writes, tallies.operations_of(OperationKind::Write)),
        (Counter::ReadBlocks, tallies.blocks_of(OperationKind::Read)),
        (Counter::WrittenBlocks, tallies.blocks_of(OperationKind::Write)),
        (Counter::SeekNs, tallies.seek_time().0),
        (Counter::SeekTracks, tallies.seek_tracks()),
        (Counter::BusyNs, tallies.busy_total().0),
    ]
}
