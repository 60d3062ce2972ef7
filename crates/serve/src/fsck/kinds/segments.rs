//! A segment layout: its slots and its disk.

use super::Device;
use crate::fsck::segment_sums::SegmentSums;
use crate::fsck::segments::{Place, SegmentGeometry, SegmentsState};
use crate::fsck::{LayerState, Reader, Shape, walk};
use imbrex_core::durability::LayerKind;
use std::cell::RefCell;
use std::rc::Rc;

/// Reads the layout on its disk, and on the node that takes its journal where there is one.
pub fn read(
    (disk, journal): (&Shape, Option<&Shape>),
    blocks: u64,
    geometry: &SegmentGeometry,
    reader: &mut Reader<'_>,
) -> Option<Device> {
    let names = reader.take_names();
    let disk = walk(disk, reader);
    let slots = match journal {
        Some(journal) => walk(journal, reader)?.member(),
        None => disk.as_ref()?.member(),
    };
    let journal = reader.journal(&slots, None, LayerKind::Segments, names.first());
    let state = journal
        .as_ref()
        .and_then(|journal| SegmentsState::read(journal, geometry, &slots, reader.findings()));
    let Some(state) = state.map(Rc::new) else {
        reader.keep(&slots, journal, LayerState::Unknown);
        return None;
    };
    let sums = journal.as_ref().and_then(|journal| {
        let sums = SegmentSums::new(&state, &slots, journal.superblock.member);
        sums.map(RefCell::new)
    });
    reader.keep(&slots, journal, LayerState::Segments(Rc::clone(&state)));
    let disk = disk?;
    match &sums {
        Some(sums) => {
            let sums = sums.borrow();
            sums.check_tables(blocks, reader.findings());
            if reader.checks.data {
                let on = (disk.disk.as_str(), disk.is_disk.as_ref());
                let home = |at, into: &mut _| (disk.read)(at, into);
                sums.check_data(blocks, on, home, reader.findings());
            }
        }
        None => {
            if reader.checks.data {
                state.check_slots(&slots, reader.findings());
            }
            let words = "the segments have no checksums: a block that has changed on the disk is served as it is";
            reader.findings().note(&disk.disk, words);
        }
    }
    let home = disk.read;
    Some(Device {
        disk: disk.disk,
        blocks,
        read: Rc::new(move |address, into| {
            match state.find(address) {
                None => return Err("it lies past the device".to_owned()),
                Some(Place::Home(at)) => home(at, into)?,
                Some(Place::Slot(at)) => state.read_slot(at, &slots, into)?,
                Some(Place::Zeroes) => {
                    super::zeroes(into);
                    return Ok(());
                }
            }
            match &sums {
                Some(sums) => sums.borrow_mut().compare(address, into),
                None => Ok(()),
            }
        }),
        is_disk: None,
    })
}
