//! An array of copies: a journal with a copy on each member and each spare, tables, and blocks.

use super::Device;
use crate::fsck::array::ArrayState;
use crate::fsck::array_blocks::ArrayBlocks;
use crate::fsck::copies::{self, Judged, Whole};
use crate::fsck::findings::Findings;
use crate::fsck::journal::JournalState;
use crate::fsck::member::Member;
use crate::fsck::superblocks::Superblocks;
use crate::fsck::{LayerState, Reader, STRUCTURE, Shape, other_member, read_journal, walk};
use imbrex_core::array::raid1::Raid1Layout;
use imbrex_core::durability::LayerKind;
use imbrex_core::lifecycle::Uuid;
use std::rc::Rc;

const ARRAY: &str = "array";

/// What is behind a port.
struct Port {
    node: String,
    /// None when there is nothing, or nothing that can be read.
    member: Option<Member>,
    /// Why nothing is there.
    missing: Option<String>,
    /// Whose superblock lies there.
    whose: Option<Uuid>,
    journal: Option<JournalState>,
    copy: Option<Whole>,
    found: Findings,
}

impl Port {
    fn name(&self) -> &str {
        self.member.as_ref().map_or(&self.node, |member| member.name())
    }
}

/// Reads the array and what it stands on, the members first and the spares behind them.
pub fn read(
    below: &[(String, Shape)],
    columns: usize,
    layout: &Raid1Layout,
    reader: &mut Reader<'_>,
) -> Option<Device> {
    let names = reader.take_names();
    let ports = (0..).zip(below).map(|(port, (node, shape))| {
        let place = (port, below.len(), layout.journal_blocks);
        read_port((node, shape), place, names.get(port), reader)
    });
    let mut ports: Vec<Port> = ports.collect();
    let copies: Vec<Option<Whole>> = ports.iter().map(|port| port.copy.clone()).collect();
    let judged = match copies::judge(&copies) {
        Ok(judged) => judged,
        Err(problem) => {
            for mut port in ports {
                tell(&mut port, true, reader.findings());
                keep(&port, LayerState::Unknown, reader);
            }
            let all: Vec<&str> = below.iter().map(|(node, _)| node.as_str()).collect();
            reader.findings().damage(&all.join(", "), ARRAY, problem);
            return None;
        }
    };
    let set = ports[judged.base].journal.as_ref()?.superblock.set;
    for (at, port) in ports.iter_mut().enumerate() {
        tell_of_copy(port, (at, set), &judged, reader.findings());
    }
    let base = &ports[judged.base];
    let (journal, member) = (base.journal.as_ref()?, base.member.as_ref()?);
    let nodes: Vec<String> = below.iter().map(|(node, _)| node.clone()).collect();
    let on = (member, reader.findings());
    let state = ArrayState::read(journal, (&nodes, columns), layout.shape, on).map(Rc::new);
    for (at, port) in ports.iter().enumerate() {
        let state = state.as_ref().filter(|_| at == judged.base);
        let layer = state.map_or(LayerState::Unknown, |it| LayerState::Array(Rc::clone(it)));
        keep(port, layer, reader);
    }
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

fn read_port(
    (node, shape): (&str, &Shape),
    (at, ports, journal_blocks): (usize, usize, u64),
    name: Option<&Uuid>,
    reader: &mut Reader<'_>,
) -> Port {
    let mut port = Port {
        node: node.to_owned(),
        member: None,
        missing: None,
        whose: None,
        journal: None,
        copy: None,
        found: Findings::default(),
    };
    if let Shape::Missing(why) = shape {
        port.missing = Some(why.clone());
        return port;
    }
    let Some(device) = walk(shape, reader) else {
        port.missing = Some("what it stands on cannot be read".to_owned());
        return port;
    };
    let member = device.member();
    let found = &mut port.found;
    let on = (&member, None);
    port.journal = read_journal(on, reader.set, LayerKind::Array, reader.checks, found);
    let superblock = match &port.journal {
        Some(journal) => Some(journal.superblock),
        None => Superblocks::find(&member).ok().and_then(|it| it.candidates.first().copied()),
    };
    port.whose = superblock.map(|it| it.member);
    if let Some(journal) = &port.journal {
        let whose = journal.superblock.member;
        if let Some(words) = other_member(reader.set, whose, name) {
            found.damage(member.name(), STRUCTURE, words);
        }
        if journal.takes(journal_blocks, &member, found) {
            match Whole::of(journal, &member, (at, ports)) {
                Ok(copy) => port.copy = Some(copy),
                Err(problem) => found.damage(member.name(), "membership", problem),
            }
        }
    }
    port.member = Some(member);
    port
}

fn keep(port: &Port, layer: LayerState, reader: &mut Reader<'_>) {
    if let Some(member) = &port.member {
        reader.keep(member, port.journal.clone(), layer);
    }
}

/// Tells what was found behind a port; as notes where it does not count.
fn tell(port: &mut Port, is_damage: bool, into: &mut Findings) {
    if let Some(why) = &port.missing {
        into.note(&port.node, format!("it is not there: {why}"));
    }
    let found = std::mem::take(&mut port.found);
    if is_damage {
        return into.extend(found);
    }
    into.repaired += found.repaired;
    found.notes.into_iter().for_each(|note| into.notes.push(note));
    for finding in found.kept {
        into.note(&finding.member, format!("{}: {}", finding.structure, finding.problem));
    }
}

/// Tells whether a copy of the journal counts.
fn tell_of_copy(port: &mut Port, (at, set): (usize, Uuid), judged: &Judged, into: &mut Findings) {
    let (counts, listed) = (judged.counts[at], judged.listed[at]);
    // A copy that should be in and is whole, but older, is no damage: the array does without it. So it does
    // without another disk than the one that is listed.
    let is_listed = port.whose.is_none_or(|whose| whose == set.member(listed.number));
    let is_broken = port.copy.is_none() && port.missing.is_none();
    let is_damage = counts || (listed.is_in && is_listed && is_broken);
    tell(port, is_damage, into);
    if is_damage {
        return;
    }
    let why = match (listed.is_in, &port.missing) {
        (false, _) => "the others have recorded it out",
        (true, None) => "it is not the disk, or not the state of it, that the others have recorded",
        (true, Some(_)) => "it cannot be read",
    };
    let words = format!("its copy of the journal of the array does not count: {why}");
    into.note(port.name(), words);
}

/// Tells what members lack, and what is perhaps not the same on all.
fn tell_of_state(state: &ArrayState, ports: &[Port], judged: &Judged, into: &mut Findings) {
    for (column, member) in state.members.iter().enumerate() {
        let name = ports[member.port].name();
        let words = state.words_of(column).or_else(|| {
            let gone = "the next start records it out, and brings it up to date if it is there";
            (!judged.counts[member.port]).then(|| gone.to_owned())
        });
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
