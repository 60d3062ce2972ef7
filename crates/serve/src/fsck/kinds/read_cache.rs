//! A read cache: its copies are gone after a start, so nothing on its flash counts.

use super::Device;
use crate::fsck::{Reader, Shape, walk};

/// Reads what the flash lies on, and says that the cache keeps nothing there.
pub fn read(node: &str, flash: &Shape, reader: &mut Reader<'_>) -> Option<Device> {
    let words = "a read cache keeps nothing over a start: there is nothing to check";
    reader.findings().note(node, words);
    walk(flash, reader)
}
