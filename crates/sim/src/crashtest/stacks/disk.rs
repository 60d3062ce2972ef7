//! A disk under test.

use super::{Assembly, BAND_BLOCKS, BANDS};
use crate::crashtest::subject::Member;
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::stack::NodeId;
use imbrex_core::units::BlockCount;

/// Adds a conventional disk of the size of a device.
pub fn conventional(assembly: &mut Assembly, name: &'static str) -> NodeId {
    let blocks = BlockCount(BANDS * BAND_BLOCKS);
    add(assembly, name, Geometry::plain(blocks, Media::Conventional))
}

/// Adds a flash disk of so many blocks.
pub fn flash(assembly: &mut Assembly, name: &'static str, blocks: BlockCount) -> NodeId {
    add(assembly, name, Geometry::plain(blocks, Media::SolidState))
}

/// Adds a disk.
pub fn add(assembly: &mut Assembly, name: &'static str, geometry: Geometry) -> NodeId {
    assembly.members.push(Member {
        name,
        geometry: geometry.clone(),
        // Nothing checks the data on a plain disk.
        is_trusted: geometry.media == Media::Conventional,
        data_of: None,
        parts: Vec::new(),
        kept: None,
    });
    assembly.builder.disk(geometry)
}
