//! A persistent cache over bands, on a disk or on two.

use super::Device;
use crate::fsck::data::Through;
use crate::fsck::disks::Disks;
use crate::fsck::translation::TranslationState;
use crate::fsck::{LayerState, Reader};
use imbrex_core::durability::LayerKind;
use imbrex_core::lifecycle::Uuid;
use std::cell::RefCell;
use std::rc::Rc;

/// Reads the translation on its disks. `name` is that of the member with the log.
pub fn read(disks: Disks, name: Option<&Uuid>, reader: &mut Reader<'_>) -> Option<Device> {
    let log = disks.log().clone();
    let journal = reader.journal(&log, disks.elsewhere(), LayerKind::PersistentCache, name);
    let through = journal.as_ref().and_then(|journal| {
        let state = Rc::new(TranslationState::read(journal, &disks, reader.findings())?);
        let member = journal.superblock.member;
        let mut through = Through::new(Rc::clone(&state), disks.clone(), member);
        through.check_tables(reader.findings());
        if reader.checks.data {
            through.check_data(reader.findings());
        }
        Some((state, through))
    });
    let Some((state, through)) = through else {
        reader.keep(&log, journal, LayerState::Unknown);
        return None;
    };
    reader.keep(&log, journal, LayerState::Translation(state));
    let blocks = through.blocks();
    let through = RefCell::new(through);
    Some(Device {
        disk: disks.home().name().to_owned(),
        blocks,
        read: Rc::new(move |address, into| through.borrow_mut().read(address, into)),
        is_disk: None,
    })
}
