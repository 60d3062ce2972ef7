//! A part of a node that is no disk.

use super::Device;
use imbrex_core::extent::Extent;
use std::rc::Rc;

/// What a part of a node offers.
pub fn of(below: Device, part: Extent) -> Device {
    let Device { disk, blocks, read, .. } = below;
    Device {
        disk,
        blocks: part.blocks.0.min(blocks.saturating_sub(part.start.0)),
        read: Rc::new(move |address, into| read(part.start.0.saturating_add(address), into)),
        is_disk: None,
    }
}
