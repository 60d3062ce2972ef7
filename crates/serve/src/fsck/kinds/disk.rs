//! A disk: its blocks are those of the member.

use super::Device;
use crate::fsck::member::Member;
use std::rc::Rc;

/// What a disk offers.
pub fn device(disk: &Member) -> Device {
    let member = disk.clone();
    Device {
        disk: disk.name().to_owned(),
        blocks: disk.disk_blocks(),
        read: Rc::new(move |address, into| {
            let read = member.read(address, 1, into);
            read.map_err(|error| error.to_string())
        }),
        is_disk: Some(disk.clone()),
    }
}
