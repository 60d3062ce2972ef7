//! What a member of a mirrored journal says of the copies.

use super::findings::Findings;
use super::member::Member;
use imbrex_core::durability::membership::{Membership, Page};
use imbrex_core::durability::superblock::{FEATURE_MIRRORED, Superblock};

pub(super) fn is_mirrored(superblock: &Superblock) -> bool {
    superblock.required_features & FEATURE_MIRRORED != 0
}

/// The newer of the two membership pages, where the journal is mirrored. Says which copy the member
/// is, and what is wrong with its pages.
pub(super) fn read(superblock: &Superblock, member: &Member, into: &mut Findings) -> Option<Page> {
    if !is_mirrored(superblock) {
        return None;
    }
    let mut newest: Option<Page> = None;
    for (number, address) in (0..).zip([2, superblock.area_blocks - 3]) {
        match page(superblock, member, address) {
            Err(problem) => {
                let words = format!("page {number} at block {address}: {problem}");
                into.damage(member.name(), "membership", words);
            }
            Ok(page) => {
                let is_newer = |newest: &Page| page.membership.changes > newest.membership.changes;
                if newest.as_ref().is_none_or(is_newer) {
                    newest = Some(page);
                }
            }
        }
    }
    if let Some(page) = &newest {
        into.note(member.name(), words(page));
    }
    newest
}

pub(super) fn page(superblock: &Superblock, member: &Member, address: u64) -> Result<Page, String> {
    let mut bytes = Vec::new();
    let read = member.read(address, 1, &mut bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    let page = Membership::decode(&bytes, address).map_err(|error| error.message())?;
    match page.member == superblock.member {
        true => Ok(page),
        false => Err(format!("it is of member {}", page.member)),
    }
}

/// Which copies there are, as this one has it.
pub(super) fn words(page: &Page) -> String {
    let copies = &page.membership.copies;
    let own = usize::try_from(page.index).expect("one of the copies that were counted");
    let state = |is_in: bool| if is_in { "in" } else { "out" };
    let others: Vec<String> = (0..)
        .zip(copies)
        .filter(|(index, _)| *index != own)
        .map(|(index, copy)| format!("copy {index} (member {}) {}", copy.number, state(copy.is_in)))
        .collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; as it says, {}", others.join(", ")),
    };
    format!(
        "its journal is mirrored: copy {own} of {} (member {}), {}{others}",
        copies.len(),
        copies[own].number,
        state(copies[own].is_in)
    )
}
