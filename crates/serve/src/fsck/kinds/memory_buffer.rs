//! A write buffer in memory: its log, and all other blocks from what lies below.

use super::Device;
use crate::fsck::buffer::BufferState;
use crate::fsck::{LayerState, Reader, Shape, walk};
use imbrex_core::durability::LayerKind;
use std::rc::Rc;

/// Reads the buffer and what it stands on. One without a log has handed down all that it has promised
/// to keep.
pub fn read(
    log: Option<(&Shape, u64)>,
    below: &Shape,
    blocks: u64,
    reader: &mut Reader<'_>,
) -> Option<Device> {
    let names = reader.take_names();
    let below = walk(below, reader);
    let Some((log, places)) = log else {
        return below;
    };
    let log = walk(log, reader)?.member();
    let journal = reader.journal(&log, None, LayerKind::MemoryBuffer, names.first());
    let state = journal
        .as_ref()
        .and_then(|journal| BufferState::read(journal, (places, blocks), &log, reader.findings()));
    let Some(state) = state.map(Rc::new) else {
        reader.keep(&log, journal, LayerState::Unknown);
        return None;
    };
    if reader.checks.data {
        state.check_data(&log, reader.findings());
    }
    reader.keep(&log, journal, LayerState::Buffer(Rc::clone(&state)));
    let below = below?;
    let read = below.read;
    Some(Device {
        disk: below.disk,
        blocks,
        read: Rc::new(move |address, into| match state.live.get(&address) {
            Some(place) => state.read_place(*place, &log, into),
            None => read(address, into),
        }),
        is_disk: None,
    })
}
