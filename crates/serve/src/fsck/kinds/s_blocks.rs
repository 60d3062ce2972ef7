//! A translation by S-blocks.

use super::Device;
use crate::fsck::s_blocks::SBlocksState;
use crate::fsck::{LayerState, Reader, Shape, walk};
use imbrex_core::durability::LayerKind;
use imbrex_core::translation::SBlockLayout;
use std::rc::Rc;

/// Reads the translation on its disk.
pub fn read(
    disk: &Shape,
    blocks: u64,
    layout: &SBlockLayout,
    reader: &mut Reader<'_>,
) -> Option<Device> {
    let names = reader.take_names();
    let below = walk(disk, reader)?;
    let disk = below.member();
    let journal = reader.journal(&disk, None, LayerKind::SBlocks, names.first());
    let state = journal
        .as_ref()
        .and_then(|journal| SBlocksState::read(journal, layout, &disk, reader.findings()));
    let Some(state) = state.map(Rc::new) else {
        reader.keep(&disk, journal, LayerState::Unknown);
        return None;
    };
    if layout.has_sums() {
        state.check_tables(&disk, reader.findings());
    } else {
        let words = "the S-blocks have no checksums: a block that has changed on the disk is served as it is";
        reader.findings().note(&below.disk, words);
    }
    if reader.checks.data {
        state.check_rings(&disk, reader.findings());
        state.check_positions(&disk, reader.findings());
    }
    reader.keep(&disk, journal, LayerState::SBlocks(Rc::clone(&state)));
    Some(Device {
        disk: below.disk,
        blocks,
        read: Rc::new(move |address, into| state.read_block(address, &disk, into)),
        is_disk: None,
    })
}
