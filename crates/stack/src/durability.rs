//! Whether a layer keeps a journal, and of which size.
//!
//! A layer is durable when its node says `durable = true`, and in a stack that is served from files
//! always: there a `durable = false` is refused.

use super::config::ConfigError;
use super::kinds::NodeConfig;
use super::options::BuildOptions;
use imbrex_core::durability::DurabilitySettings;

/// Most blocks of a ring, and of data without a flush: 4 GiB. *Estimated*: far more than the
/// journal of any layer can use.
pub(crate) const BLOCKS_MAX: u64 = 1 << 20;

/// What a node says of its journal.
pub(super) struct JournalKeys<'a> {
    /// The node below that the journal lies on.
    pub below: &'a str,
    /// Whether it keeps one.
    pub durable: Option<bool>,
    /// Blocks of its ring.
    pub ring_blocks: Option<u64>,
    /// Blocks of data that may be written without a flush.
    pub unflushed_blocks_max: Option<u64>,
    /// Other keys that it states and that say something of durable nodes alone.
    pub others: Vec<&'static str>,
}

impl JournalKeys<'_> {
    /// The journal, if the node keeps one.
    pub fn settings(&self, options: &BuildOptions) -> Option<DurabilitySettings> {
        let default = DurabilitySettings::default();
        let is_durable = options.durable || self.durable == Some(true);
        is_durable.then(|| DurabilitySettings {
            ring_blocks: self.ring_blocks.unwrap_or(default.ring_blocks),
            unflushed_blocks_max: self.unflushed_blocks_max.unwrap_or(default.unflushed_blocks_max),
        })
    }
}

fn says_of_checksums(node: &NodeConfig) -> bool {
    let keys = node.checksum_keys();
    keys.is_some_and(|keys| keys.checksums.is_some() || keys.table_memory.is_some())
}

/// Finds what does not fit the use of a stack: one that is served from files always keeps journals,
/// a simulated one where its nodes say so.
pub(super) fn check_use(nodes: &[NodeConfig], is_served: bool) -> Result<(), ConfigError> {
    for node in nodes {
        let Some(keys) = node.node().journal() else {
            continue;
        };
        let with = "accepted: together with durable = true";
        let said = match is_served {
            true if keys.durable == Some(false) => {
                "durable = false; accepted in a stack that is served from files: true, or no such \
                 key"
                .to_owned()
            }
            true => continue,
            false if keys.durable == Some(true) => continue,
            false if keys.ring_blocks.is_some() => {
                format!("ring_blocks is about a journal; {with}")
            }
            false if keys.unflushed_blocks_max.is_some() => {
                format!("unflushed_blocks_max is about a journal; {with}")
            }
            false if says_of_checksums(node) => {
                format!("checksums and table_memory are about a durable node; {with}")
            }
            false => match keys.others.first() {
                Some(key) => format!("{key} is about a durable node; {with}"),
                None => continue,
            },
        };
        return Err(ConfigError::words(format!("node `{}`: {said}", node.name())));
    }
    Ok(())
}
