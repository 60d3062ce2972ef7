//! An array of copies: a journal with a copy on each member and each spare, tables, and blocks.

use super::Device;
use crate::fsck::array::ArrayState;
use crate::fsck::array_blocks::ArrayBlocks;
use crate::fsck::array_member::ARRAY;
use crate::fsck::copies::Judged;
use crate::fsck::findings::Findings;
use crate::fsck::mirrored::{self, GONE, Mirrored, Port};
use crate::fsck::{LayerState, Reader, Shape};
use imbrex_core::array::raid1::Raid1Layout;
use std::rc::Rc;

/// Reads the array and what it stands on, the members first and the spares behind them.
pub fn read(
    below: &[(String, Shape)],
    columns: usize,
    layout: &Raid1Layout,
    reader: &mut Reader<'_>,
) -> Option<Device> {
    let names = reader.take_names();
    let found = mirrored::read(below, layout.journal_blocks, &names, reader)?;
    let Mirrored { ports, judged, set } = found;
    let base = &ports[judged.base];
    let (journal, member) = (base.journal.as_ref()?, base.member.as_ref()?);
    let nodes: Vec<String> = below.iter().map(|(node, _)| node.clone()).collect();
    let on = (member, reader.findings());
    let state = ArrayState::read(journal, (&nodes, columns), layout.shape, on).map(Rc::new);
    let layer = state.clone().map_or(LayerState::Unknown, LayerState::Array);
    mirrored::keep_all(&ports, judged.base, layer, reader);
    let state = state?;
    let counting = |port: usize| ports[port].member.clone().filter(|_| judged.counts[port]);
    let members = state.members.iter().map(|it| counting(it.port)).collect();
    let blocks = ArrayBlocks::new(&state, members, set, layout.journal_blocks);
    tell_of_state(&state, &ports, &judged, reader.findings());
    if !blocks.are_all_there() {
        let words = "no member that is there has all of its blocks";
        reader.findings().damage(&nodes[..columns].join(", "), ARRAY, words);
    }
    blocks.check_tables(reader.findings());
    if reader.checks.data {
        blocks.check_data(reader.findings());
    }
    let disks: Vec<&str> = ports[..columns].iter().map(Port::name).collect();
    Some(Device {
        disk: disks.join(", "),
        blocks: layout.shape.data_rows,
        read: Rc::new(move |address, into| blocks.read(address, into)),
        is_disk: None,
    })
}

/// Tells what members lack, and what is perhaps not the same on all.
fn tell_of_state(state: &ArrayState, ports: &[Port], judged: &Judged, into: &mut Findings) {
    for (column, member) in state.members.iter().enumerate() {
        let name = ports[member.port].name();
        let is_gone = !judged.counts[member.port];
        let words = state.words_of(column).or_else(|| is_gone.then(|| GONE.to_owned()));
        if let Some(words) = words {
            into.note(name, format!("member {column} of the array: {words}"));
        }
    }
    let name = ports[judged.base].name();
    if !state.marked.is_empty() {
        let (marked, all) = (state.marked.len(), state.shape.regions);
        let words =
            format!("{marked} of {all} regions of the array are marked: members may differ");
        into.note(name, words);
    }
    if !state.unreadable.is_empty() {
        let rows = state.unreadable.len();
        into.note(name, format!("no member has {rows} blocks of the array any more"));
    }
}
