//! A part of a node that is no disk.

use super::Device;
use crate::fsck::{Reader, Shape, walk};
use imbrex_core::extent::Extent;
use std::rc::Rc;

/// Reads the node that it is a part of.
pub fn read(below: &Shape, part: Extent, reader: &mut Reader<'_>) -> Option<Device> {
    let Device { disk, blocks, read, .. } = walk(below, reader)?;
    Some(Device {
        disk,
        blocks: part.blocks.0.min(blocks.saturating_sub(part.start.0)),
        read: Rc::new(move |address, into| read(part.start.0.saturating_add(address), into)),
        is_disk: None,
    })
}
