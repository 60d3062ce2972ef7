//! What the journal on a member can still tell, so that the search asks for no more: a block that
//! no later journal block calls durable cannot be told from one that never reached the medium.

use super::medium::Medium;
use super::subject::Member;
use imbrex_core::durability::block::{BlockKind, Expected, Header, unseal};
use imbrex_core::durability::records;
use imbrex_core::extent::Extent;
use std::rc::Rc;

/// The journal blocks of the newest life of a member, or of a slice of one.
pub struct JournalView {
    /// Where the slice begins.
    first: u64,
    /// Address and header of every whole block.
    blocks: Vec<(u64, Header)>,
    /// Data that the records of blocks speak of which no later block calls durable.
    unsure: Vec<Extent>,
}

/// The header of a block that was written for address `at`, if it is a whole journal block.
pub fn journal_header(block: &[u8], at: u64) -> Option<Header> {
    let expected = Expected::new(BlockKind::Journal, None, at);
    unseal(block, expected).ok().map(|(header, _)| header)
}

impl JournalView {
    /// The journal of the part of the member with a number that holds block `near`, and what it, or
    /// that of another member, says of data there; empty when there is none.
    pub fn of(members: &[Member], media: &[Medium], number: usize, near: u64) -> JournalView {
        let own = JournalView::on(&media[number], near, |kind| {
            let name = &members[number].name;
            let is_of = |(journal, of): &(Rc<str>, u8)| journal == name && *of == kind;
            !members.iter().any(|other| other.data_of.as_ref().is_some_and(is_of))
        });
        // Of a disk that is cut, a part with a journal has no data that others speak of.
        let is_part = media[number].part_of(near).blocks.0 < media[number].len();
        let has_journal = is_part && !own.blocks.is_empty();
        let Some((name, kind)) = members[number].data_of.as_ref().filter(|_| !has_journal) else {
            return own;
        };
        let other = members.iter().position(|member| &member.name == name);
        let other = other.expect("a member with a journal");
        let theirs = JournalView::on(&media[other], 0, |it| it == *kind);
        JournalView { unsure: theirs.unsure, ..own }
    }

    /// The journal of a part of a medium, and the data of records of some kinds.
    fn on(medium: &Medium, near: u64, takes: impl Fn(u8) -> bool) -> JournalView {
        let part = medium.part_of(near);
        let first = part.start.0;
        let whole = |at| Some((at, journal_header(&medium.block(first + at)[..], at)?));
        let addresses = 0..part.blocks.0;
        let mut blocks: Vec<(u64, Header)> = addresses.filter_map(whole).collect();
        let epoch = blocks.iter().map(|(_, header)| header.generation).max();
        blocks.retain(|(_, header)| Some(header.generation) == epoch);
        let mark = blocks.iter().map(|(_, header)| header.mark).max();
        let mut unsure = Vec::new();
        for (at, header) in &blocks {
            if Some(header.sequence) < mark {
                continue;
            }
            let expected = Expected::new(BlockKind::Journal, None, *at);
            if let Ok((_, payload)) = unseal(&medium.block(first + at)[..], expected) {
                let taken = records(payload).flatten().filter(|record| takes(record.kind));
                unsure.extend(taken.filter_map(|record| record.data));
            }
        }
        JournalView { first, blocks, unsure }
    }

    /// True when the loss of block `at` of the member, which held `before`, may look like a write that never
    /// came.
    pub fn is_unsure(&self, at: u64, before: &[u8]) -> bool {
        let at = at - self.first;
        if let Some(gone) = journal_header(before, at) {
            return !self.blocks.iter().any(|(_, later)| {
                later.member == gone.member
                    && later.generation == gone.generation
                    && later.sequence > gone.sequence
                    && later.mark > gone.sequence
            });
        }
        let extent = Extent::new(at, 1);
        self.unsure.iter().any(|data| data.overlaps(extent))
    }
}
