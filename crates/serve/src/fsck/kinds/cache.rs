//! A write-back cache.

use super::Device;
use crate::fsck::cache::CacheState;
use crate::fsck::intent::{self, IntentState, PAGES};
use crate::fsck::member::Member;
use crate::fsck::{LayerState, Reader, Shape, other_member, walk};
use imbrex_core::durability::LayerKind;
use std::rc::Rc;

/// Reads the cache and what it stands on.
pub fn read(flash: &Shape, backing: &Shape, reader: &mut Reader<'_>) -> Option<Device> {
    let names = reader.take_names();
    let backing = walk(backing, reader);
    let flash = walk(flash, reader)?.member();
    let journal = reader.journal(&flash, None, LayerKind::Cache, names.first());
    let state =
        journal.as_ref().and_then(|journal| CacheState::read(journal, &flash, reader.findings()));
    if reader.checks.data
        && let Some(state) = &state
    {
        state.check_data(&flash, reader.findings());
    }
    let intent = backing.as_ref().map(|backing| {
        let intent =
            IntentState::read(backing.blocks, |address, into| (backing.read)(address, into));
        let generation = journal.as_ref().map(|journal| journal.superblock.generation);
        let cache = state.as_ref().zip(generation);
        intent.check(cache, &backing.disk, reader.findings());
        let page = intent.newest();
        if let Some(words) = page.and_then(|it| other_member(reader.set, it.member, names.get(1))) {
            reader.findings().damage(&backing.disk, intent::STRUCTURE, words);
        }
        intent
    });
    let Some(state) = state.map(Rc::new) else {
        reader.keep(&flash, journal, LayerState::Unknown);
        return None;
    };
    let layer = LayerState::Cache(Rc::clone(&state), intent.unwrap_or_default());
    reader.keep(&flash, journal, layer);
    Some(device(state, flash, backing?))
}

/// What a cache offers: its dirty blocks, and all others from what it caches.
fn device(state: Rc<CacheState>, flash: Member, backing: Device) -> Device {
    let below = backing.read;
    Device {
        disk: backing.disk,
        blocks: backing.blocks.saturating_sub(PAGES),
        read: Rc::new(move |address, into| match state.dirty.get(&address) {
            Some(place) => state.read_slot(place.slot, place.checksum, &flash, into),
            None => below(address, into),
        }),
        is_disk: None,
    }
}
