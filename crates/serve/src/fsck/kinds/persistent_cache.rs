//! A persistent cache over bands on a disk.

use super::Device;
use crate::fsck::data::Through;
use crate::fsck::member::Member;
use crate::fsck::translation::TranslationState;
use crate::fsck::{LayerState, Reader};
use imbrex_core::durability::LayerKind;
use std::cell::RefCell;
use std::rc::Rc;

/// Reads the translation on a disk.
pub fn read(disk: &Member, reader: &mut Reader<'_>) -> Option<Device> {
    let names = reader.take_names();
    let journal = reader.journal(disk, LayerKind::PersistentCache, names.first());
    let through = journal.as_ref().and_then(|journal| {
        let state = Rc::new(TranslationState::read(journal, disk, reader.findings())?);
        let member = journal.superblock.member;
        let mut through = Through::new(Rc::clone(&state), disk.clone(), member);
        through.check_tables(reader.findings());
        if reader.checks.data {
            through.check_data(reader.findings());
        }
        Some((state, through))
    });
    let Some((state, through)) = through else {
        reader.keep(disk, journal, LayerState::Unknown);
        return None;
    };
    reader.keep(disk, journal, LayerState::Translation(state));
    let blocks = through.blocks();
    let through = RefCell::new(through);
    Some(Device {
        disk: disk.name().to_owned(),
        blocks,
        read: Rc::new(move |address, into| through.borrow_mut().read(address, into)),
        is_disk: None,
    })
}
