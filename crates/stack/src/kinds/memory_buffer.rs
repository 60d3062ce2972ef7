//! A write buffer in memory that hands blocks down by segments.

use super::memory::DiskMedia;
use super::ports::{BelowNodes, Form, PortKey, PortNodes, Ports, one, optional};
use super::segment_geometry::block_default;
use super::{
    Asked, Below, Body, BufferedIn, Keeps, Kind, Known, Node, NodeConfig, Offer, Part, Planned,
    Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use crate::durability::BLOCKS_MAX;
use crate::durability::JournalKeys;
use imbrex_core::counters::{DIRTY, Group, JOURNAL, MEMORY_BUFFER, TABLES};
use imbrex_core::disk::Survival;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::layer::Port;
use imbrex_core::memory_buffer::codec::RECORD_KINDS;
use imbrex_core::memory_buffer::{
    self as core, BufferBelow, MemoryBuffer, MemoryBufferSettings, PartialRead, Scope,
};
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_core::words;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, Word};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

keys! {
    /// A write buffer in memory.
    pub struct MemoryBufferConfig {
        /// Name of the node.
        name: String => "any";
        /// Where blocks are handed down; a store of copies that is asked before reads go there; where
        /// the log lies, which a durable buffer needs unless `persistence` is `"destage"`.
        below: BelowNodes<MemoryBufferPorts> => r#"`{ below = "NODE", copies = "NODE", log = "NODE" }`, the last two or not"#;
        /// Size of the memory; with 0 there is none, and the buffer conducts reads and passes writes
        /// on.
        capacity: Size = Size(64 << 20) => r#"`"0"`, or a size of at least a block"#;
        /// Unit of the memory; where the node below rewrites blocks, the same as there.
        block: Size = block_default() => "a size from 4 KiB to 8 MiB, a multiple of 4 KiB";
        /// Who leaves when a block needs room.
        policy: Word<BufferPolicy> = Word(BufferPolicy::Lwa) => r#"`"lwa"`: of the segment with most blocks in the window; `"most"`: the segment with most blocks; `"lru-block"`: the least recently used block alone; `"lru-segment"`: the segment whose most recently used block is the oldest. Of equal segments that of the least recently used block leaves"#;
        /// The least recently used blocks among which `"lwa"` chooses, as a share of the memory,
        /// rounded down, at least one.
        lookup_window: Percent = Percent::default() => "a share above 0 % up to 100 %";
        /// What leaves with `"lwa"`.
        scope: Word<Scope> = Word(Scope::Window) => r#"`"window"`: the blocks of the segment that are in the window; `"whole-buffer"`: all of its blocks"#;
        /// What a read does that finds its block without some of what it asks for.
        partial_read: Word<PartialRead> = Word(PartialRead::Memory) => r#"`"memory"`: the whole block is read and memory keeps it; `"flash"`: what is missing is read like a block that is not in memory, and memory stays as it is"#;
        /// What a durable buffer promises by.
        persistence: Word<Persistence> = Word(Persistence::Journal) => AnyWord;
        /// Whether it is durable, as it is when it is served from files; not when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
        /// Blocks of the ring of its journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// Blocks of data it may write without a flush.
        #[serde(skip_serializing_if = "Option::is_none")]
        unflushed_blocks_max: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
    }
}

/// Where blocks are handed down, a store of copies, and where the log lies.
pub struct MemoryBufferPorts;

impl Ports for MemoryBufferPorts {
    const PORTS: &'static [PortKey] = &[optional("log"), optional("copies"), one("below")];
    const FORM: Form = Form::Table;
}

words! {
    /// Who leaves when there is no room.
    pub enum BufferPolicy {
        /// The segment with most blocks in the window.
        Lwa = "lwa",
        /// The least recently used block.
        LruBlock = "lru-block",
        /// The segment whose most recently used block is the oldest.
        LruSegment = "lru-segment",
        /// The segment with most blocks.
        Most = "most",
    }
}

words! {
    /// How a durable buffer keeps what it has promised.
    pub enum Persistence {
        /// By a log on flash.
        Journal = "journal",
        /// By a log in memory that survives a power cut.
        Nvram = "nvram",
        /// By handing all down before a flush is answered.
        Destage = "destage",
    }
}

/// A share in thousandths of a percent, above 0 and at most all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Percent(u64);

const WHOLE: u64 = 100_000;

impl Default for Percent {
    fn default() -> Percent {
        Percent(WHOLE / 4)
    }
}

impl Percent {
    /// So much of a number, rounded down, and at least 1.
    fn of(self, whole: u64) -> u64 {
        (whole * self.0 / WHOLE).max(1)
    }

    fn parse(text: &str) -> Option<Percent> {
        let number = text.strip_suffix('%')?.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || fraction.len() > 3 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let thousandths: u64 = format!("{fraction:0<3}").parse().ok()?;
        let part = whole.parse::<u64>().ok()?.checked_mul(1000)?;
        let part = part.checked_add(thousandths)?;
        (1..=WHOLE).contains(&part).then_some(Percent(part))
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Percent, D::Error> {
        let text = String::deserialize(from)?;
        Percent::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "\"{text}\"; accepted: a share above 0 % up to 100 %, such as \"25 %\""
            ))
        })
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let fraction = format!("{:03}", self.0 % 1000);
        let text = match fraction.trim_end_matches('0') {
            "" => format!("{} %", self.0 / 1000),
            fraction => format!("{}.{fraction} %", self.0 / 1000),
        };
        to.serialize_str(&text)
    }
}

impl Kind for MemoryBufferConfig {
    const NAME: &'static str = "memory-buffer";
}

impl Node for MemoryBufferConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.optional("log").unwrap_or(self.below.one("below")),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            unflushed_blocks_max: self.unflushed_blocks_max,
            others: vec![],
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        match self.keeps_log() && self.below.optional("log").is_some() {
            true => vec![("log".into(), Port(0))],
            false => vec![],
        }
    }

    fn checks(&self, below: &str) -> bool {
        self.below.optional("log") == Some(below)
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::BufferLog)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        world.room(self.below.one("below"), scale)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let durability = self.journal().and_then(|it| it.settings(world.options));
        let settings = self.settings(durability)?;
        self.check_log(settings, world)?;
        let part = Asked {
            blocks: asked.blocks,
            scale: asked.scale,
            writer: Writer::Layer,
            is_part: false,
        };
        let log = Asked {
            // One that is not durable leaves its log alone; no node is of no blocks.
            blocks: settings.log_blocks().max(BlockCount(1)),
            scale: 1,
            ..part
        };
        let mut needs = Vec::new();
        needs.extend(self.below.optional("log").map(|_| log));
        needs.extend(self.below.optional("copies").map(|_| part));
        needs.push(part);
        let planned = PlannedBuffer { config: self.clone(), settings };
        Ok((Box::new(planned), needs))
    }
}

impl MemoryBufferConfig {
    /// Whether it has a log where it is durable.
    fn keeps_log(&self) -> bool {
        self.capacity.bytes() > 0 && self.persistence.0 != Persistence::Destage
    }

    fn settings(
        &self,
        durability: Option<DurabilitySettings>,
    ) -> Result<MemoryBufferSettings, ConfigError> {
        let bytes = self.block.bytes();
        if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES) {
            let words = format!(
                "block = \"{}\"; accepted: 4 KiB to 8 MiB, a multiple of 4 KiB",
                self.block
            );
            return Err(wrong(&self.name, &words));
        }
        let blocks = self.capacity.bytes() / bytes;
        let capacity_blocks = u32::try_from(blocks).ok();
        let fits = |blocks: &u32| *blocks < 1 << 30 && (*blocks > 0) == (self.capacity.bytes() > 0);
        let Some(capacity_blocks) = capacity_blocks.filter(fits) else {
            let words = format!(
                "capacity = \"{}\"; accepted: \"0\", or one block ({bytes} B) to 2^30 blocks",
                self.capacity
            );
            return Err(wrong(&self.name, &words));
        };
        Ok(MemoryBufferSettings {
            capacity_blocks,
            block: BlockCount(bytes / BLOCK_BYTES),
            window_blocks: self.lookup_window.of(u64::from(capacity_blocks)) as u32,
            policy: match self.policy.0 {
                BufferPolicy::Lwa => core::BufferPolicy::Lwa(self.scope.0),
                BufferPolicy::LruBlock => core::BufferPolicy::LruBlock,
                BufferPolicy::LruSegment => core::BufferPolicy::LruSegment,
                BufferPolicy::Most => core::BufferPolicy::Most,
            },
            partial_read: self.partial_read.0,
            persistence: durability.map(|durability| match self.persistence.0 {
                Persistence::Destage => core::Persistence::Destage,
                Persistence::Journal | Persistence::Nvram => core::Persistence::Log(durability),
            }),
        })
    }

    /// Finds a log that is missing, or that a power cut would take.
    fn check_log(
        &self,
        settings: MemoryBufferSettings,
        world: &World<'_>,
    ) -> Result<(), ConfigError> {
        if !settings.has_log() {
            return Ok(());
        }
        let Some(log) = self.below.optional("log") else {
            let words = "it is durable, and its below has no log; accepted: below = { below = .., log = \
                         \"NODE\" }, or persistence = \"destage\"";
            return Err(wrong(&self.name, &words));
        };
        if self.persistence.0 != Persistence::Nvram {
            return Ok(());
        }
        let name = world.below_clear(log);
        match world.config.node(name).and_then(NodeConfig::disk) {
            Some(disk)
                if disk.media == Some(Word(DiskMedia::Memory))
                    && disk.survives == Some(Word(Survival::Power)) =>
            {
                Ok(())
            }
            _ => {
                let words = format!(
                    "persistence = \"nvram\" with its log on `{name}`; accepted: a disk with media = \
                     \"memory\" and survives = \"power\""
                );
                Err(wrong(&self.name, &words))
            }
        }
    }
}

struct PlannedBuffer {
    config: MemoryBufferConfig,
    settings: MemoryBufferSettings,
}

impl Planned for PlannedBuffer {
    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let keys = &self.config.below;
        let mut offers = below.offers.iter().map(|offer| &offer.geometry);
        let mut next = |is_there: bool| if is_there { offers.next() } else { None };
        let log = next(keys.optional("log").is_some());
        let copies = next(keys.optional("copies").is_some());
        let on = BufferBelow { log, copies, below: next(true).expect("a node below") };
        let (layer, geometry) = MemoryBuffer::new(self.settings, &on)
            .map_err(|error| wrong(&self.config.name, &error))?;
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(geometry),
            facts: super::Facts::MemoryBuffer(Facts {
                has_log: self.settings.has_log(),
                log_places: self.settings.log_places(),
                capacity_bytes: self.config.capacity.bytes(),
            }),
        })
    }
}

/// What a report needs to know of a buffer.
pub struct Facts {
    /// Whether it keeps a log.
    pub has_log: bool,
    /// Places of the log, where it keeps one.
    pub log_places: u64,
    /// Bytes of its memory.
    pub capacity_bytes: u64,
}

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        let mut groups = vec![MEMORY_BUFFER, DIRTY, TABLES];
        groups.extend(self.has_log.then_some(JOURNAL));
        groups
    }

    fn buffers(&self) -> Option<BufferedIn> {
        Some(BufferedIn::Memory(self.capacity_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_share_rounded_down_and_at_least_a_block() {
        let of = |text: &str, blocks| Percent::parse(text).map(|share| share.of(blocks));
        assert_eq!(of("25 %", 1024), Some(256));
        assert_eq!(of("25%", 7), Some(1));
        assert_eq!(of("5 %", 3), Some(1));
        assert_eq!(of("12.5 %", 100), Some(12));
        assert_eq!(of("100 %", 9), Some(9));
        for wrong in ["0 %", "101 %", "25", "-1 %", " 5 %", "1.0001 %", "%", ""] {
            assert_eq!(of(wrong, 9), None, "{wrong}");
        }
    }
}
