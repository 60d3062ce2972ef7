//! The nodes of an array that its journal has copies on, one each: which of the copies count.

use super::array_member::ARRAY;
use super::copies::{self, Judged, Whole};
use super::findings::Findings;
use super::journal::JournalState;
use super::member::Member;
use super::superblocks::Superblocks;
use super::{LayerState, Reader, STRUCTURE, Shape, other_member, read_journal, walk};
use imbrex_core::durability::LayerKind;
use imbrex_core::lifecycle::Uuid;

/// What becomes of a member that does not count, though it is recorded with all that it had.
pub(super) const GONE: &str =
    "the next start records it out, and brings it up to date if it is there";

/// What is behind a port.
pub(super) struct Port {
    node: String,
    /// None when there is nothing, or nothing that can be read.
    pub member: Option<Member>,
    /// Why nothing is there.
    pub missing: Option<String>,
    /// Whose superblock lies there.
    pub whose: Option<Uuid>,
    pub journal: Option<JournalState>,
    copy: Option<Whole>,
    found: Findings,
}

impl Port {
    /// Its name, for findings.
    pub fn name(&self) -> &str {
        self.member.as_ref().map_or(&self.node, |member| member.name())
    }
}

/// Nodes with copies of a journal, of which some count.
pub(super) struct Mirrored {
    /// What is behind each port.
    pub ports: Vec<Port>,
    /// Which of them count.
    pub judged: Judged,
    /// The set that they belong to.
    pub set: Uuid,
}

/// Reads nodes with a copy each, and what they stand on. None where nothing can be said of the array.
pub(super) fn read(
    below: &[(String, Shape)],
    journal_blocks: u64,
    names: &[Uuid],
    reader: &mut Reader<'_>,
) -> Option<Mirrored> {
    let ports = (0..).zip(below).map(|(port, (node, shape))| {
        let place = (port, below.len(), journal_blocks);
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
    Some(Mirrored { ports, judged, set })
}

/// Keeps what was read of every port; what the journal says with the one that is gone by.
pub(super) fn keep_all(ports: &[Port], base: usize, layer: LayerState, reader: &mut Reader<'_>) {
    let mut layer = Some(layer);
    for (at, port) in ports.iter().enumerate() {
        let own = layer.take_if(|_| at == base);
        keep(port, own.unwrap_or(LayerState::Unknown), reader);
    }
}

/// Reads what is behind a port and has no copy.
pub(super) fn read_bare((node, shape): (&str, &Shape), reader: &mut Reader<'_>) -> Port {
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
    match walk(shape, reader) {
        Some(device) => port.member = Some(device.member()),
        None => port.missing = Some("what it stands on cannot be read".to_owned()),
    }
    port
}

fn read_port(
    (node, shape): (&str, &Shape),
    (at, ports, journal_blocks): (usize, usize, u64),
    name: Option<&Uuid>,
    reader: &mut Reader<'_>,
) -> Port {
    let mut port = read_bare((node, shape), reader);
    let Some(member) = port.member.take() else { return port };
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
pub(super) fn tell(port: &mut Port, is_damage: bool, into: &mut Findings) {
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
