//! A write buffer in memory under test: over a translation that rewrites in place or appends, with a
//! read cache beside both.

use super::{Assembly, Tree, disk, s_block, segments};
use crate::crashtest::subject::Kept;
use imbrex_core::disk::Geometry;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::memory_buffer::codec::RECORD_KINDS;
use imbrex_core::memory_buffer::{
    BufferBelow, BufferPolicy, MemoryBuffer, MemoryBufferSettings, PartialRead, Persistence, Scope,
};
use imbrex_core::read_cache::{OnWrite, ReadCache, ReadCacheSettings};
use imbrex_core::rng::Rng;
use imbrex_core::stack::NodeId;
use imbrex_core::units::BlockCount;

/// The member with the log.
pub const LOG: &str = "buffer-log";
/// The member with the copies.
const COPIES: &str = "copies";
/// More blocks than any device here has.
const DEVICE_MAX: BlockCount = BlockCount(1 << 20);

/// The name of a kind of record on the format's page.
pub fn record_name(kind: u8) -> Option<&'static str> {
    let known = RECORD_KINDS.iter().find(|(known, _)| *known == kind);
    known.map(|(_, name)| *name)
}

/// Adds a buffer over a translation, with a log and a read cache of their own.
pub fn build(assembly: &mut Assembly, below: &Tree) -> NodeId {
    let block = BlockCount(1 + assembly.rng.below(3));
    let copies = copies(assembly, block);
    let translation = match below {
        Tree::Segments(name) => segments::build(assembly, name, Some(copies)),
        Tree::SBlocks(name) => s_block::build(assembly, name, Some(copies)),
        _ => panic!("no translation that takes batches"),
    };
    let settings = settings(block, &mut assembly.rng);
    let log = disk::flash(assembly, LOG, settings.log_blocks());
    let member = assembly.members.last_mut().expect("a disk was added");
    member.kept = Some(Kept::Log(settings.log_places()));
    let told = |node| -> Geometry { assembly.builder.geometry(node).clone() };
    let (log_told, copies_told, below) = (told(log), told(copies), told(translation));
    let below = BufferBelow { log: Some(&log_told), copies: Some(&copies_told), below: &below };
    let built = MemoryBuffer::new(settings, &below);
    let (layer, told) = built.unwrap_or_else(|error| panic!("{error}"));
    let ports = [log, copies, translation];
    assembly.builder.layer(Box::new(layer), told, &ports)
}

fn copies(assembly: &mut Assembly, block: BlockCount) -> NodeId {
    let rng = &mut assembly.rng;
    let settings = ReadCacheSettings {
        block,
        capacity_blocks: 4 + rng.below(20) as u32,
        on_write: match rng.below(3) {
            0 => OnWrite::Invalidate,
            1 => OnWrite::Keep,
            _ => OnWrite::Update,
        },
        fill_from_rewrite: rng.below(2) == 0,
    };
    let flash = disk::flash(assembly, COPIES, settings.flash_blocks());
    let flash_told = assembly.builder.geometry(flash);
    let built = ReadCache::new(settings, DEVICE_MAX, flash_told);
    let (layer, told) = built.unwrap_or_else(|error| panic!("{error}"));
    assembly.builder.layer(Box::new(layer), told, &[flash])
}

fn settings(block: BlockCount, rng: &mut Rng) -> MemoryBufferSettings {
    let capacity_blocks = 4 + rng.below(12) as u32;
    let scope = match rng.below(2) {
        0 => Scope::Window,
        _ => Scope::WholeBuffer,
    };
    MemoryBufferSettings {
        capacity_blocks,
        block,
        window_blocks: 1 + rng.below(u64::from(capacity_blocks)) as u32,
        policy: match rng.below(4) {
            0 => BufferPolicy::LruBlock,
            1 => BufferPolicy::LruSegment,
            _ => BufferPolicy::Lwa(scope),
        },
        partial_read: match rng.below(2) {
            0 => PartialRead::Memory,
            _ => PartialRead::Flash,
        },
        persistence: Some(Persistence::Log(DurabilitySettings {
            ring_blocks: 16 + rng.below(8),
            unflushed_blocks_max: 8 + rng.below(24),
        })),
    }
}
