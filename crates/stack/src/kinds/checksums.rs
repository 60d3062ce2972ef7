//! Keys of translations that keep tables of checksums.

use super::{NodeConfig, wrong};
use crate::config::{ConfigError, StackConfig};
use imbrex_core::translation::ChecksumSettings;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::quantity::Size;
use imbrex_drives::{OnOff, Word};

/// What a node says of its checksums.
#[derive(Clone, Copy, Default)]
pub(crate) struct ChecksumKeys {
    /// Whether it keeps them, where it keeps a journal; on when absent.
    pub checksums: Option<Word<OnOff>>,
    /// Memory for their tables.
    pub table_memory: Option<Size>,
}

impl ChecksumKeys {
    /// Whether it keeps them, where it keeps a journal.
    pub fn are_kept(&self) -> bool {
        self.checksums != Some(Word(OnOff::Off))
    }

    /// The checksums of a node that keeps a journal, if it keeps any.
    pub fn settings(&self, node: &str) -> Result<Option<ChecksumSettings>, ConfigError> {
        let is_on = self.are_kept();
        let memory = self.table_memory.map(Size::bytes);
        match memory {
            Some(_) if !is_on => Err(wrong(
                node,
                &"table_memory is about checksums; accepted: together with checksums = \"on\"",
            )),
            _ => {
                let memory_bytes = table_bytes(node, self.table_memory)?;
                Ok(is_on.then_some(ChecksumSettings { memory_bytes }))
            }
        }
    }
}

/// Bytes of tables of checksums in memory, as a node's `table_memory` says.
pub(super) fn table_bytes(node: &str, table_memory: Option<Size>) -> Result<u64, ConfigError> {
    match table_memory.map(Size::bytes) {
        Some(bytes) if bytes < BLOCK_BYTES => {
            Err(wrong(node, &format_args!("table_memory = {bytes} B; accepted: 4 KiB or more")))
        }
        Some(bytes) => Ok(bytes),
        None => Ok(ChecksumSettings::default().memory_bytes),
    }
}

impl StackConfig {
    /// States of every node that can keep checksums whether it does, where the stack does not say:
    /// `create` does so, since an image that says nothing has none.
    pub fn state_checksums(&mut self, key: OnOff) {
        for node in &mut self.node {
            if let Some(stated) = node.checksums_mut() {
                stated.get_or_insert(Word(key));
            }
        }
    }

    /// Takes over from another stack with the same nodes what this one does not say of checksums.
    pub fn take_checksums(&mut self, of: &StackConfig) {
        for (node, other) in self.node.iter_mut().zip(&of.node) {
            if let (Some(stated), Some(other)) = (node.checksums_mut(), other.checksum_keys()) {
                *stated = stated.or(other.checksums);
            }
        }
    }

    /// The nodes that could keep checksums and do not.
    pub fn without_checksums(&self) -> impl Iterator<Item = &str> {
        self.node.iter().filter_map(|node| {
            let keys = node.checksum_keys()?;
            (keys.checksums == Some(Word(OnOff::Off))).then_some(node.name())
        })
    }
}

impl NodeConfig {
    /// The keys of a node that can keep checksums.
    pub(crate) fn checksum_keys(&self) -> Option<ChecksumKeys> {
        match self {
            NodeConfig::Segments(segments) => Some(segments.checksums()),
            NodeConfig::SBlock(translation) => Some(translation.checksums()),
            _ => None,
        }
    }

    /// Whether the node keeps checksums, as it says itself, if it can keep any.
    fn checksums_mut(&mut self) -> Option<&mut Option<Word<OnOff>>> {
        match self {
            NodeConfig::Segments(segments) => Some(&mut segments.checksums),
            NodeConfig::SBlock(translation) => Some(&mut translation.checksums),
            _ => None,
        }
    }
}
