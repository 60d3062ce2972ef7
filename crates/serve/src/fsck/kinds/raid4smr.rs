//! A parity array: homes, a data disk, a parity disk and spares. All but homes have a copy of its journal each.

use super::Device;
use crate::fsck::Has;
use crate::fsck::array_member::ARRAY;
use crate::fsck::findings::Findings;
use crate::fsck::mirrored::{self, GONE, Mirrored, Port};
use crate::fsck::parity_array::ParityArrayState;
use crate::fsck::parity_blocks::ParityBlocks;
use crate::fsck::parity_disks::ParityDisks;
use crate::fsck::parity_replay::replay;
use crate::fsck::{LayerState, Reader, Shape};
use imbrex_core::array::raid4smr::Raid4SmrShape;
use std::rc::Rc;

/// Reads the array and what it stands on: the homes, the data disk and the parity disk, and the spares behind them.
pub fn read(
    below: &[(String, Shape)],
    blocks: u64,
    shape: &Raid4SmrShape,
    reader: &mut Reader<'_>,
) -> Option<Device> {
    let numbers = reader.numbers.clone();
    let names = reader.take_names();
    let (homes, others) = below.split_at_checked(shape.bands.homes())?;
    let names = names.get(homes.len()..).unwrap_or_default();
    let mut ports: Vec<Port> =
        homes.iter().map(|(node, shape)| mirrored::read_bare((node, shape), reader)).collect();
    for port in &mut ports {
        mirrored::tell(port, true, reader.findings());
    }
    let copies = mirrored::read(others, shape.layout.journal_blocks, names, reader)?;
    let Mirrored { ports: with_copies, judged, set } = copies;
    let base = &with_copies[judged.base];
    let (journal, member) = (base.journal.as_ref()?, base.member.as_ref()?);
    let nodes: Vec<String> = below.iter().map(|(node, _)| node.clone()).collect();
    let on = (member, reader.findings());
    let state = ParityArrayState::read(journal, nodes, (shape, blocks), on);
    let Some(mut state) = state else {
        mirrored::keep_all(&with_copies, judged.base, LayerState::Unknown, reader);
        return None;
    };
    let counting = state.members.iter().map(|member| match member.port.checked_sub(homes.len()) {
        // The disk that was recorded may never have been described, and an older one be there.
        None => {
            let is_it = numbers.get(member.port).is_none_or(|number| *number == member.number);
            ports[member.port].member.clone().filter(|_| is_it)
        }
        Some(at) => {
            // Where the journal on a disk is out and the disk is not, nothing was promised without it.
            let port = &with_copies[at];
            let is_listed = port.whose == Some(set.member(judged.listed[at].number));
            let has_all = is_listed && member.has == Has::All;
            port.member.clone().filter(|_| judged.counts[at] || has_all)
        }
    });
    let counting = counting.collect();
    state.missed = state.regions_missed();
    let disks = ParityDisks::new(&state, counting);
    let base_name = member.name().to_owned();
    let doubts = replay(&mut state, &disks, &base_name, reader.findings());
    for problem in state.problems() {
        reader.findings().damage(&base_name, ARRAY, problem);
    }
    let state = Rc::new(state);
    let layer = LayerState::ParityArray(Rc::clone(&state));
    mirrored::keep_all(&with_copies, judged.base, layer, reader);
    ports.extend(with_copies);
    tell_of_state(&state, (&ports, &disks), &base_name, reader.findings());
    let blocks_of = ParityBlocks::new(&state, disks, doubts, set);
    blocks_of.check_tables(reader.findings());
    if reader.checks.data {
        blocks_of.check_data(reader.findings());
    }
    let disks: Vec<&str> = ports.iter().map(Port::name).collect();
    Some(Device {
        disk: disks.join(", "),
        blocks,
        read: Rc::new(move |address, into| blocks_of.read(address, into)),
        is_disk: None,
    })
}

/// Tells what members lack, and what nobody knows.
fn tell_of_state(
    state: &ParityArrayState,
    (ports, disks): (&[Port], &ParityDisks),
    base: &str,
    into: &mut Findings,
) {
    let name = |column: usize| ports[state.members[column].port].name();
    for column in 0..=state.parity() {
        let is_gone = disks.member(column).is_none();
        let words = state.words_of(column).or_else(|| is_gone.then(|| GONE.to_owned()));
        if let Some(words) = words {
            into.note(name(column), format!("member {column} of the array: {words}"));
        }
    }
    if state.in_doubt > 0 {
        let words = "writes of the array may be on its members or not: the next start finds out";
        into.note(base, format!("{} {words}", state.in_doubt));
    }
    if state.is_collecting {
        let words =
            "a band row was on its way to the spare one: the next start leaves it where it was";
        into.note(base, words);
    }
    let lacking = (0..=state.parity()).filter(|column| !disks.has_all(*column));
    let lacking: Vec<&str> = lacking.map(name).collect();
    if lacking.len() > 1 {
        let words =
            "each of them lacks blocks of the array, and it can do without one member alone";
        into.damage(&lacking.join(", "), ARRAY, words);
    }
}
