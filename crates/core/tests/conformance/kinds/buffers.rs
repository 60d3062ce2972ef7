//! Write buffers in memory.

use super::{BufferBound, DURABILITY, JOURNAL_PAGES, Kind, REQUESTS};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::map::BandTable;
use imbrex_core::memory_buffer::{
    BufferBelow, BufferPolicy, MemoryBuffer, MemoryBufferSettings, PartialRead, Persistence,
};
use imbrex_core::read_cache::{OnWrite, ReadCacheSettings};
use imbrex_core::units::BlockCount;
use std::sync::Arc;

/// Blocks of 4 KiB in a block of a buffer, and blocks in its memory.
const BUFFER_PARTS: u64 = 4;
const BUFFER_BLOCKS: u32 = 5;

pub fn buffering(policy: BufferPolicy) -> MemoryBufferSettings {
    MemoryBufferSettings {
        capacity_blocks: BUFFER_BLOCKS,
        block: BlockCount(BUFFER_PARTS),
        window_blocks: 3,
        policy,
        partial_read: PartialRead::Memory,
        persistence: None,
    }
}

pub fn kept(persistence: Persistence, settings: MemoryBufferSettings) -> MemoryBufferSettings {
    MemoryBufferSettings { persistence: Some(persistence), ..settings }
}

/// A buffer over a plain disk with segments of 6 blocks, behind a log where it keeps one, and a read
/// cache where there is one.
pub fn buffer(settings: MemoryBufferSettings) -> Kind {
    buffer_over(settings, None)
}

/// The same with a read cache beside it.
pub fn buffer_with_copies(settings: MemoryBufferSettings, on_write: OnWrite) -> Kind {
    let copies = ReadCacheSettings {
        block: settings.block,
        capacity_blocks: 4,
        on_write,
        fill_from_rewrite: false,
    };
    buffer_over(settings, Some(copies))
}

fn buffer_over(settings: MemoryBufferSettings, copies: Option<ReadCacheSettings>) -> Kind {
    let segments = [6, 6, 6, 6, 6, 3].map(|blocks| BlockCount(blocks * settings.block.0));
    let below = Geometry {
        bands: Some(Arc::new(BandTable::new(segments))),
        // The last block of the device is cut short.
        ..Geometry::plain(BlockCount(131), Media::Conventional)
    };
    let mut disks = vec![below];
    if let Some(copies) = &copies {
        disks.insert(0, Geometry::plain(copies.flash_blocks(), Media::SolidState));
    }
    if settings.has_log() {
        disks.insert(0, Geometry::plain(settings.log_blocks(), Media::SolidState));
    }
    let store = copies.map(|copies| (usize::from(settings.has_log()), copies));
    let passes_on = settings.capacity_blocks == 0;
    let is_durable = settings.persistence.is_some() && !passes_on;
    // After a power cut the log may have as many blocks as it has places.
    let memory = match settings.has_log() {
        true => settings.log_places(),
        false => u64::from(settings.capacity_blocks),
    };
    let journal = if settings.has_log() { DURABILITY.ring_blocks + JOURNAL_PAGES } else { 0 };
    let moved = (REQUESTS * 4 + 16 * 6 * 2) * settings.block.0;
    let buffers = BufferBound {
        blocks: memory * settings.block.0 + moved + journal,
        because: "its memory is there from the first use on; reads and fills take whole blocks, and \
                  batches whose blocks adjoin go down from one buffer; a log has a journal beside",
    };
    let destages = is_durable && !settings.has_log();
    let kept_buffers = memory as usize;
    let whole_blocks = disks.iter().enumerate();
    let whole_blocks = whole_blocks.map(|(port, disk)| match port + 1 == disks.len() {
        true => disk.blocks.0,
        false => 0,
    });
    let whole_blocks = whole_blocks.collect();
    let kind = Kind::new(
        disks,
        is_durable || passes_on && settings.persistence.is_some(),
        buffers,
        move |disks| {
            let below = disks.last().expect("a disk below");
            let below = BufferBelow {
                log: settings.has_log().then(|| &disks[0]),
                copies: store.map(|(port, _)| &disks[port]),
                below,
            };
            MemoryBuffer::new(settings, &below).expect("settings that fit")
        },
    );
    Kind { whole_blocks, kept_buffers, never_spoils: destages, passes_on, store, ..kind }
}
