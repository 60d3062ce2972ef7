//! Every kind of layer, a line each: what the conformance suite holds against its rules.
//!
//! A new layer is one line of [`every_kind`]: a name and a [`Kind`], which says over which disks it
//! lies (one for each port, in the order of the ports), whether it is durable, how many blocks its
//! own buffers may hold and why, and how it is built over the disks.

pub mod buffers;
mod caches;
mod passing;
mod raid4smr;
mod s_blocks;
mod segments;
pub mod variants;

use crate::common::brought::{Wrong, outside_lru};
use buffers::{buffer, buffer_with_copies, buffering, kept};
use caches::{
    BACKING_BLOCKS, cache, cache_over, durable, in_batches, lru, lru_band, most, plain, pore, ride,
    sac, with_policy, zone_buffer, zoned_backing,
};
use imbrex_core::array::Level;
use imbrex_core::array::raid4smr::Placement;
use imbrex_core::cache::{CacheMode, CacheSettings, OpenZones, PolicySettings, Split};
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::layer::Layer;
use imbrex_core::map::BandTable;
use imbrex_core::memory_buffer::{
    BufferPolicy, MemoryBufferSettings, PartialRead, Persistence, Scope,
};
use imbrex_core::operation::Durability;
use imbrex_core::read_cache::{OnWrite, ReadCacheSettings};
use imbrex_core::translation::segment::RegionLayout;
use imbrex_core::translation::{
    BlockingCleaning, BypassSettings, CleanTo, Gather, HostAware, IdleCleaning, IdlePiece, MILLION,
    MapJournalSettings, OnArrival, PersistentCache, PersistentCacheSettings, Reclaim,
    RewriteExtent, RewriteMethod, RewriteSettings, RingSize, TrimMethod, UpdateMethod, Victim,
    conventional_band_blocks, conventional_blocks_needed, log_blocks_needed,
};
use imbrex_core::units::{BlockCount, Duration};
use imbrex_core::zone::{ZoneGeometry, ZoneId, ZoneModel};
use imbrex_core::zoned::HostManaged;
use passing::{durable_raid1, idle_control, raid, raid1, scheduler, slice, span, stripe};
use raid4smr::{durable_raid4smr, raid4smr};
use s_blocks::{
    durable_s_block, invalidate_first, on_tracks, overlapping, plain_disk, s_block, s_block_summed,
    s_blocks, spare_inside,
};
use segments::{
    apart, cut, segments, segments_with_copies, settings, summed, touched, unjournaled, wave, whole,
};
use std::sync::Arc;

/// Calls a macro with the line of every kind.
macro_rules! every_kind {
    ($with:ident) => {
        $with! {
            cache_lru: cache(lru()),
            cache_fifo: cache(plain("fifo")),
            cache_clock: cache(plain("clock")),
            cache_sieve: cache(plain("sieve")),
            cache_s3_fifo: cache(plain("s3-fifo")),
            cache_two_q: cache(plain("2q")),
            cache_arc: cache(plain("arc")),
            cache_lru_band: cache(lru_band()),
            cache_brought: cache(with_policy(outside_lru(0, Wrong::Nothing))),
            cache_most: cache(most()),
            cache_sac: cache(sac()),
            cache_pore_cf: cache(pore(OpenZones::Cf)),
            cache_pore_pf: cache(pore(OpenZones::Pf)),
            cache_pore_bl: cache(pore(OpenZones::Bl)),
            cache_pore_all: cache(pore(OpenZones::All)),
            cache_pore_batches: cache(in_batches(pore(OpenZones::Bl))),
            cache_ride: cache(ride(Split::Adaptive)),
            cache_ride_fixed: cache(ride(Split::Fixed)),
            cache_unlimited: cache(CacheSettings { capacity_blocks: BACKING_BLOCKS, ..with_policy(PolicySettings::UNLIMITED) }),
            cache_opt: cache(with_policy(PolicySettings::Opt { next_uses: (1..1000).rev().collect() })),
            cache_write_only: cache(CacheSettings { mode: CacheMode::WriteOnly, ..lru() }),
            cache_destaging_unforced: cache(CacheSettings { destage: Durability::Cached, ..lru() }),
            durable_cache_lru: cache(durable(lru())),
            durable_cache_fifo: cache(durable(plain("fifo"))),
            durable_cache_clock: cache(durable(plain("clock"))),
            durable_cache_sieve: cache(durable(plain("sieve"))),
            durable_cache_s3_fifo: cache(durable(plain("s3-fifo"))),
            durable_cache_two_q: cache(durable(plain("2q"))),
            durable_cache_arc: cache(durable(plain("arc"))),
            durable_cache_lru_band: cache(durable(lru_band())),
            durable_cache_most: cache(durable(most())),
            durable_cache_sac: cache(durable(sac())),
            durable_cache_pore_cf: cache(durable(pore(OpenZones::Cf))),
            durable_cache_pore_pf: cache(durable(pore(OpenZones::Pf))),
            durable_cache_pore_bl: cache(durable(pore(OpenZones::Bl))),
            durable_cache_pore_all: cache(durable(pore(OpenZones::All))),
            durable_cache_ride: cache(durable(ride(Split::Adaptive))),
            durable_cache_pore_batches: cache(durable(in_batches(pore(OpenZones::Bl)))),
            durable_cache_lru_band_batches: cache(durable(in_batches(lru_band()))),
            cache_write_allocate: cache(CacheSettings { mode: CacheMode::WriteAllocate, ..lru() }),
            durable_cache_write_only: cache(durable(CacheSettings { mode: CacheMode::WriteOnly, ..lru() })),
            translation_plain: translation(log(24)),
            translation_from_first_dirty: translation(from_first_dirty(log(24))),
            translation_in_place: translation(in_place(log(24))),
            translation_updating_in_place: translation(PersistentCacheSettings { update: UpdateMethod::InPlace, ..log(24) }),
            translation_to_written: translation(to_written(bypassing(log(24)))),
            translation_bypass: translation(bypassing(log(24))),
            translation_stretches: translation(in_stretches(log(24))),
            translation_stretches_from_first_dirty: translation(in_stretches(from_first_dirty(log(24)))),
            translation_stretches_in_place: translation(in_stretches(in_place(log(24)))),
            translation_stretches_bypass: translation(in_stretches(bypassing(log(24)))),
            translation_idle_aborting: translation(idle(OnArrival::Abort, log(24))),
            translation_idle_by_chunks: translation(idle(OnArrival::FinishChunk, in_stretches(log(24)))),
            translation_idle_by_bands: translation(idle(OnArrival::FinishBand, bypassing(log(24)))),
            translation_in_slices: translation(in_slices(log(24))),
            translation_few_entries: translation(PersistentCacheSettings { entries_max: Some(6), ..log(24) }),
            translation_moving_in_log: translation(moving_in_log(bypassing(log(24)))),
            translation_with_an_in_place_part: translation(with_an_in_place_part(bypassing(log(24)))),
            translation_map_journal: translation(with_map_journal(log(24))),
            durable_translation: translation(durably(log(24))),
            durable_translation_from_first_dirty: translation(durably(from_first_dirty(log(24)))),
            durable_translation_bypass: translation(durably(bypassing(log(24)))),
            durable_translation_stretches: translation(durably(in_stretches(from_first_dirty(log(24))))),
            durable_translation_stretches_bypass: translation(durably(in_stretches(bypassing(log(24))))),
            durable_translation_idle: translation(durably(idle(OnArrival::FinishChunk, in_stretches(log(24))))),
            durable_translation_in_slices: translation(durably(in_slices(bypassing(log(24))))),
            durable_translation_few_entries: translation(durably(PersistentCacheSettings { entries_max: Some(6), ..log(24) })),
            durable_translation_moving_in_log: translation(durably(moving_in_log(log(24)))),
            durable_translation_map_journal: translation(durably(with_map_journal(log(24)))),
            translation_on_two_disks_with_an_in_place_part: on_two_disks(with_an_in_place_part(idle(OnArrival::FinishChunk, log(24)))),
            durable_translation_on_two_disks_moving_in_log: on_two_disks(durably(moving_in_log(bypassing(log(24))))),
            translation_on_two_disks: on_two_disks(bypassing(log(24))),
            translation_on_two_disks_idle: on_two_disks(idle(OnArrival::FinishChunk, in_stretches(log(24)))),
            durable_translation_on_two_disks: on_two_disks(durably(from_first_dirty(log(24)))),
            durable_translation_on_two_disks_bypass: on_two_disks(durably(bypassing(log(24)))),
            durable_translation_on_two_disks_stretches: on_two_disks(durably(in_stretches(bypassing(log(24))))),
            durable_translation_on_two_disks_idle: on_two_disks(durably(idle(OnArrival::FinishChunk, bypassing(log(24))))),
            host_aware_blocking: host_aware(log(24)),
            host_aware_idle: host_aware(idle(OnArrival::FinishIfShort, log(24))),
            host_aware_freed_by_zones: host_aware_freed_by(Reclaim::Zone, idle(OnArrival::FinishIfShort, log(24))),
            cache_over_zones: stacked(cache(lru()), host_aware(log(24))),
            zone_lru_buffer: cache(zone_buffer(8, 0)),
            durable_zone_lru_buffer: cache(durable(zone_buffer(8, 0))),
            zone_lru_buffer_over_zoned_disk: cache_over(zone_buffer(20, 20), zoned_backing()),
            durable_zone_lru_buffer_over_zoned_disk: cache_over(durable(zone_buffer(20, 20)), zoned_backing()),
            zone_lru_buffer_over_zones: stacked(cache_over(zone_buffer(20, 20), zoned_backing()), host_aware(log(24))),
            zone_lru_buffer_over_control_by_the_clock: stacked(cache(zone_buffer(8, 0)), idle_control(false)),
            zone_lru_buffer_over_control_and_zones: stacked(cache_over(zone_buffer(20, 20), zoned_backing()), stacked(idle_control(true), host_aware(log(24)))),
            memory_buffer_over_zones: stacked(buffer(buffering(BufferPolicy::LruBlock)), host_aware(log(24))),
            host_managed_with_limits: host_managed(Some(3)),
            host_managed_without_limits: host_managed(None),
            segments_kappa_1: segments(unjournaled(wave(1))),
            segments_kappa_2: segments(unjournaled(wave(2))),
            segments_kappa_3: segments(wave(3)),
            segments_kappa_4: segments(wave(4)),
            segments_conventional: segments(settings(3, RegionLayout::Conventional)),
            segments_conventional_kappa_1: segments(settings(1, RegionLayout::Conventional)),
            segments_whole: segments(whole(wave(2))),
            segments_touched: segments(touched(wave(3))),
            segments_touched_whole: segments(touched(whole(wave(2)))),
            segments_cut: segments(cut(wave(2))),
            durable_segments_kappa_1: segments(segments::durably(wave(1))),
            durable_segments_kappa_3: segments(segments::durably(wave(3))),
            checked_segments_kappa_4: segments(summed(0, wave(4))),
            durable_segments_conventional: segments(segments::durably(settings(2, RegionLayout::Conventional))),
            checked_segments_whole: segments(summed(3, whole(wave(2)))),
            checked_segments_cut: segments(summed(1000, cut(wave(3)))),
            checked_segments_kappa_3: segments(summed(2, wave(3))),
            checked_segments_beside_copies: segments_with_copies(summed(2, wave(3))),
            checked_segments_journal_apart: segments(summed(2, apart(wave(3)))),
            segments_beside_copies: segments_with_copies(unjournaled(wave(3))),
            durable_segments_beside_copies: segments_with_copies(segments::durably(wave(3))),
            durable_segments_journal_apart: segments(segments::durably(apart(wave(3)))),
            s_block_dense: s_blocks(s_block(RingSize::Blocks(0)), plain_disk()),
            s_block_dense_with_ring: s_blocks(s_block(RingSize::Blocks(5)), plain_disk()),
            s_block_invalidate_first: s_blocks(invalidate_first(s_block(RingSize::Blocks(0))), plain_disk()),
            s_block_spare_inside: s_blocks(spare_inside(s_block(RingSize::Share(MILLION / 5))), plain_disk()),
            s_block_on_tracks_kappa_1: s_blocks(on_tracks(s_block(RingSize::Blocks(0))), overlapping(0)),
            s_block_on_tracks_kappa_2: s_blocks(on_tracks(s_block(RingSize::Blocks(0))), overlapping(1)),
            s_block_on_tracks_kappa_3: s_blocks(on_tracks(s_block(RingSize::Blocks(4))), overlapping(2)),
            s_block_on_tracks_kappa_4: s_blocks(invalidate_first(on_tracks(s_block(RingSize::Blocks(4)))), overlapping(3)),
            durable_s_block_dense: s_blocks(durable_s_block(s_block(RingSize::Blocks(0))), plain_disk()),
            durable_s_block_dense_with_ring: s_blocks(durable_s_block(s_block(RingSize::Blocks(5))), plain_disk()),
            durable_s_block_invalidate_first: s_blocks(durable_s_block(invalidate_first(s_block(RingSize::Blocks(3)))), plain_disk()),
            durable_s_block_on_tracks_kappa_1: s_blocks(durable_s_block(on_tracks(s_block(RingSize::Blocks(4)))), overlapping(0)),
            durable_s_block_on_tracks_kappa_2: s_blocks(durable_s_block(on_tracks(s_block(RingSize::Blocks(0)))), overlapping(1)),
            durable_s_block_on_tracks_kappa_3: s_blocks(durable_s_block(on_tracks(s_block(RingSize::Blocks(4)))), overlapping(2)),
            durable_s_block_on_tracks_kappa_4: s_blocks(durable_s_block(spare_inside(on_tracks(s_block(RingSize::Blocks(4))))), overlapping(3)),
            checked_s_block_dense: s_blocks(s_block_summed(100, s_block(RingSize::Blocks(0))), plain_disk()),
            checked_s_block_and_ring: s_blocks(s_block_summed(2, s_block(RingSize::Blocks(5))), plain_disk()),
            checked_s_block_invalidate_first: s_blocks(s_block_summed(3, invalidate_first(s_block(RingSize::Blocks(3)))), plain_disk()),
            checked_s_block_on_tracks: s_blocks(s_block_summed(1, on_tracks(s_block(RingSize::Blocks(4)))), overlapping(2)),
            checked_s_block_spare_inside: s_blocks(s_block_summed(2, spare_inside(on_tracks(s_block(RingSize::Blocks(4))))), overlapping(3)),
            memory_buffer_lwa: buffer(buffering(BufferPolicy::Lwa(Scope::Window))),
            memory_buffer_lwa_whole: buffer(buffering(BufferPolicy::Lwa(Scope::WholeBuffer))),
            memory_buffer_most: buffer(buffering(BufferPolicy::Most)),
            memory_buffer_lru_block: buffer(buffering(BufferPolicy::LruBlock)),
            memory_buffer_lru_segment: buffer(MemoryBufferSettings { partial_read: PartialRead::Flash, ..buffering(BufferPolicy::LruSegment) }),
            memory_buffer_single: buffer(MemoryBufferSettings { block: BlockCount(1), ..buffering(BufferPolicy::Most) }),
            memory_buffer_without_memory: buffer(MemoryBufferSettings { capacity_blocks: 0, ..buffering(BufferPolicy::LruBlock) }),
            durable_memory_buffer: buffer(kept(Persistence::Log(DURABILITY), buffering(BufferPolicy::Lwa(Scope::Window)))),
            durable_memory_buffer_lru_block: buffer(kept(Persistence::Log(DURABILITY), buffering(BufferPolicy::LruBlock))),
            durable_memory_buffer_whole: buffer(MemoryBufferSettings { partial_read: PartialRead::Flash, ..kept(Persistence::Log(DURABILITY), buffering(BufferPolicy::Lwa(Scope::WholeBuffer))) }),
            durable_memory_buffer_destaging: buffer(kept(Persistence::Destage, buffering(BufferPolicy::Most))),
            durable_memory_buffer_without_memory: buffer(MemoryBufferSettings { capacity_blocks: 0, ..kept(Persistence::Destage, buffering(BufferPolicy::LruBlock)) }),
            memory_buffer_with_copies: buffer_with_copies(buffering(BufferPolicy::Lwa(Scope::Window)), OnWrite::Invalidate),
            memory_buffer_with_copies_kept: buffer_with_copies(MemoryBufferSettings { partial_read: PartialRead::Flash, ..buffering(BufferPolicy::Most) }, OnWrite::Keep),
            durable_memory_buffer_with_copies: buffer_with_copies(kept(Persistence::Log(DURABILITY), buffering(BufferPolicy::Lwa(Scope::Window))), OnWrite::Invalidate),
            memory_buffer_around_with_copies_updated: buffer_with_copies(MemoryBufferSettings { capacity_blocks: 0, ..buffering(BufferPolicy::LruBlock) }, OnWrite::Update),
            scheduler_of_a_plain_disk: scheduler(),
            idle_control_by_the_clock: idle_control(false),
            idle_control_by_its_books: idle_control(true),
            slice_of_a_plain_disk: slice(),
            span_of_three_disks: span(),
            stripe_of_blocks: stripe([41, 43, 60], 1),
            stripe_of_chunks: stripe([41, 47, 60], 3),
            stripe_of_one_disk: stripe([70, 0, 0], 4),
            raid_1: raid1(&[90, 93]),
            raid_1_of_three: raid1(&[90, 93, 91]),
            durable_raid_1: durable_raid1(2),
            durable_raid_1_of_three: durable_raid1(3),
            raid_4: raid(Level::Raid4, &[41, 43, 60, 42]),
            raid_5: raid(Level::Raid5, &[41, 43, 60, 42]),
            raid4smr_append: raid4smr(Placement::Append, Some(4), 40),
            raid4smr_static: raid4smr(Placement::Static, Some(4), 40),
            raid4smr_with_little_room: raid4smr(Placement::Append, None, 5),
            raid4smr_static_with_little_room: raid4smr(Placement::Static, Some(9), 7),
        }
    };
}
pub(crate) use every_kind;

/// Arrays of RAID 4SMR with a journal. After a power cut they come up with all of their members alone, so no
/// operation may fail.
pub fn durable_raid4smrs() -> [Kind; 4] {
    [
        durable_raid4smr(Placement::Append, Some(4), 40),
        durable_raid4smr(Placement::Static, Some(4), 40),
        durable_raid4smr(Placement::Append, None, 5),
        durable_raid4smr(Placement::Static, Some(9), 7),
    ]
}

macro_rules! functions {
    ($($name:ident: $kind:expr,)+) => {
        /// Makes each kind.
        pub mod made {
            use super::*;

            $(pub fn $name() -> Kind {
                $kind
            })+
        }
    };
}
every_kind!(functions);

/// What the blocks of a node's own buffers are, and how many there may be at once: the layers do
/// not say it themselves.
#[derive(Clone, Copy)]
pub struct BufferBound {
    pub blocks: u64,
    pub because: &'static str,
}

/// Faults that layers still have. The suite steps around them, and a test that is ignored plays each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownFault {
    /// Two blocks that a volatile translation writes for itself, pages of its map or notes of an
    /// aborted rewrite, are on their way to one place.
    OwnBlocksOverlap,
}

/// Makes the layer over disks, and says what it tells the node above.
type Build = dyn Fn(&[Geometry]) -> (Box<dyn Layer>, Geometry);

/// A kind of layer.
pub struct Kind {
    /// The disks below, one for each port.
    pub disks: Vec<Geometry>,
    /// Whether it keeps over a restart what was flushed.
    pub is_durable: bool,
    /// How much its buffers may hold.
    pub buffers: BufferBound,
    /// What it had not written again is lost when a write fails: then the drive has to say that it
    /// cannot read what the tracks beside a write held.
    pub loses_on_failure: bool,
    /// For each port, how many blocks from the first a power cut leaves whole: those of data without
    /// checksums, for which the disk is trusted.
    pub whole_blocks: Vec<u64>,
    /// For each port the first block of those whose changes are noticed, and mended from other members: that of tables
    /// of checksums, and that of what they are of.
    pub checked_from: Option<Vec<(u64, u64)>>,
    /// How many buffers it may keep when it is quiet: those of what it holds in memory.
    pub kept_buffers: usize,
    /// A write or a flush that fails below leaves each block as it was before or as it should be: it
    /// stands on a node that takes care of that.
    pub never_spoils: bool,
    /// It keeps nothing and writes nothing of its own: who stands on it flushes before it goes down.
    pub passes_on: bool,
    /// A read cache stands on the disk behind this port.
    pub store: Option<(usize, ReadCacheSettings)>,
    /// Other layers stand on the disk behind a port, the lowest first.
    pub beneath: Vec<(usize, Box<Build>)>,
    /// A fault of the layer that is known.
    pub known: Option<KnownFault>,
    /// Builds it.
    pub build: Box<Build>,
}

impl Kind {
    pub fn new<L: Layer + 'static>(
        disks: Vec<Geometry>,
        is_durable: bool,
        buffers: BufferBound,
        build: impl Fn(&[Geometry]) -> (L, Geometry) + 'static,
    ) -> Kind {
        Kind {
            whole_blocks: vec![0; disks.len()],
            checked_from: None,
            kept_buffers: 0,
            never_spoils: false,
            store: None,
            beneath: vec![],
            passes_on: false,
            known: None,
            disks,
            is_durable,
            buffers,
            loses_on_failure: false,
            build: Box::new(move |below| {
                let (layer, above) = build(below);
                (Box::new(layer), above)
            }),
        }
    }
}

/// A kind of layer over another one instead of its last disk.
pub fn stacked(upper: Kind, lower: Kind) -> Kind {
    let port = upper.disks.len() - 1;
    let mut disks = upper.disks;
    disks[port] = lower.disks[0].clone();
    let mut beneath: Vec<_> = lower.beneath.into_iter().map(|(_, build)| (port, build)).collect();
    beneath.push((port, lower.build));
    Kind {
        whole_blocks: vec![0; disks.len()],
        disks,
        buffers: BufferBound {
            blocks: upper.buffers.blocks + lower.buffers.blocks,
            because: "two layers have theirs",
        },
        loses_on_failure: upper.loses_on_failure || lower.loses_on_failure,
        beneath,
        ..upper
    }
}

/// Requests that the suite has in flight at most.
pub const REQUESTS: u64 = 4;
/// Pages of a checkpoint that a journal has in flight, and copies of its superblock.
pub const JOURNAL_PAGES: u64 = 32 + 4;
/// What a small durable layer keeps in its journal and may leave without a flush.
pub const DURABILITY: DurabilitySettings =
    DurabilitySettings { ring_blocks: 24, unflushed_blocks_max: 24 };

// Translations.

/// Blocks of the tracks of the bands.
const TRACK_BLOCKS: u64 = 4;
/// Tracks that a write destroys beside it.
const OVERLAP_TRACKS: u64 = 2;
/// Blocks of the tracks that do not overlap.
const CONVENTIONAL_TRACK_BLOCKS: u64 = 6;

fn bands() -> Arc<BandTable> {
    let lengths = [16, 13, 24, 20, 11, 28, 14, 19];
    Arc::new(BandTable::new(lengths.map(BlockCount)))
}

fn log(blocks: u64) -> PersistentCacheSettings {
    PersistentCacheSettings {
        packet_blocks_max: BlockCount(8),
        ..PersistentCacheSettings::new(BlockCount(blocks))
    }
}

fn from_first_dirty(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirty,
            overhead: Duration::from_us(2),
            ..settings.rewrite
        },
        ..settings
    }
}

fn to_written(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirtyToWritten,
            ..settings.rewrite
        },
        ..settings
    }
}

fn in_place(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        update: UpdateMethod::InPlace,
        rewrite: RewriteSettings { method: RewriteMethod::InPlace, ..settings.rewrite },
        ..settings
    }
}

fn bypassing(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings { bypass: Some(BypassSettings::after(BlockCount(4))), ..settings }
}

/// The smallest memory to merge bands in.
fn in_stretches(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        rewrite: RewriteSettings {
            merge_buffer_blocks: Some(BlockCount(TRACK_BLOCKS * (OVERLAP_TRACKS + 1))),
            ..settings.rewrite
        },
        ..settings
    }
}

fn idle(on_arrival: OnArrival, settings: PersistentCacheSettings) -> PersistentCacheSettings {
    let idle = IdleCleaning::new(Duration(400), BlockCount(1), Duration::from_us(1));
    PersistentCacheSettings {
        idle: Some(IdleCleaning {
            on_arrival,
            victim: Victim::MostDirty,
            resumes: on_arrival == OnArrival::FinishChunk,
            piece: match on_arrival {
                OnArrival::Abort => IdlePiece::Track,
                _ => IdlePiece::Band,
            },
            ..idle
        }),
        ..settings
    }
}

fn in_slices(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        blocking: BlockingCleaning {
            low_permille: 500,
            slice: Some(Duration::from_us(8)),
            to: CleanTo::Home,
        },
        ..settings
    }
}

fn moving_in_log(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        blocking: BlockingCleaning { to: CleanTo::Log, ..settings.blocking },
        ..settings
    }
}

/// Its first 30 blocks, so its first three bands.
fn with_an_in_place_part(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings { in_place_blocks: BlockCount(30), ..settings }
}

fn with_map_journal(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        map_journal: MapJournalSettings {
            every_records: 5,
            stall: Duration::from_us(2),
            log_per_flush: BlockCount(3),
            transaction: BlockCount(5),
            flush_overhead: Duration::from_us(1),
            ..MapJournalSettings::default()
        },
        ..settings
    }
}

fn durably(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings { durability: Some(DURABILITY), ..settings }
}

/// A disk with enough tracks apart for a log, and enough that overlap for the bands.
fn shingled_disk(conventional: BlockCount) -> Geometry {
    let tracks = conventional.0.div_ceil(CONVENTIONAL_TRACK_BLOCKS);
    let runs = [(tracks, CONVENTIONAL_TRACK_BLOCKS), (100, TRACK_BLOCKS)];
    let conventional = BlockCount(tracks * CONVENTIONAL_TRACK_BLOCKS);
    let runs = runs.into_iter().filter(|(tracks, _)| *tracks > 0);
    let tracks = TrackTable::new(runs, conventional, OVERLAP_TRACKS);
    Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    }
}

/// How much the buffers of a translation may hold when a stretch is `stretch` blocks long.
fn translation_buffers(settings: &PersistentCacheSettings, stretch: u64) -> BufferBound {
    let carried = OVERLAP_TRACKS * TRACK_BLOCKS;
    let merged = bands().largest().0.min(stretch + carried);
    let tables = 2 * (1 + u64::from(bands().bands()));
    let zeroes = match settings.trim {
        TrimMethod::None => REQUESTS * settings.packet_blocks_max.0,
        TrimMethod::FromLog | TrimMethod::Frees => 0,
    };
    let journal = DURABILITY.ring_blocks + JOURNAL_PAGES;
    BufferBound {
        blocks: merged * if settings.rewrite.gather == Gather::Beside { 2 } else { 1 }
            + 1
            + REQUESTS
            + zeroes
            + settings.durability.map_or(0, |_| tables + journal),
        because: "one stretch of a band is merged at a time, behind the tracks that the last one has \
                  destroyed, with its note, and with what the log has of it where that is read beside; a request may write a record of the map, or zeroes; a durable one writes its journal, the pages of a checkpoint and of the checksums \
                  beside",
    }
}

fn translation(settings: PersistentCacheSettings) -> Kind {
    let track = BlockCount(CONVENTIONAL_TRACK_BLOCKS);
    let disk = shingled_disk(conventional_blocks_needed(&settings, &bands(), track));
    translation_over(settings, vec![disk])
}

/// A translation whose log is on port 0, a disk that is just large enough, and whose bands are on port
/// 1, a disk of which all tracks overlap but those that are written in place.
fn on_two_disks(settings: PersistentCacheSettings) -> Kind {
    let track = BlockCount(CONVENTIONAL_TRACK_BLOCKS);
    let needed = log_blocks_needed(&settings, &bands(), track);
    let tracks = needed.0.div_ceil(CONVENTIONAL_TRACK_BLOCKS);
    let blocks = BlockCount(tracks * CONVENTIONAL_TRACK_BLOCKS);
    let tracks = TrackTable::new([(tracks, CONVENTIONAL_TRACK_BLOCKS)], blocks, 0);
    let log =
        Geometry { tracks: Some(Arc::new(tracks)), ..Geometry::plain(blocks, Media::Conventional) };
    let home = shingled_disk(conventional_band_blocks(&settings, &bands()));
    translation_over(settings, vec![log, home])
}

fn translation_over(settings: PersistentCacheSettings, disks: Vec<Geometry>) -> Kind {
    let longest = bands().largest();
    let stretch = settings.rewrite.merge_buffer_blocks.unwrap_or(longest).0;
    let buffers = translation_buffers(&settings, stretch);
    let is_durable = settings.durability.is_some();
    let loses_on_failure = settings.rewrite.method == RewriteMethod::InPlace;
    let aborts = |idle: IdleCleaning| idle.on_arrival == OnArrival::Abort;
    let journal = settings.map_journal;
    let records = journal.every_records > 0 || journal.log_per_flush > BlockCount(0);
    let overlaps = records || settings.idle.is_some_and(aborts);
    let known = (overlaps && !is_durable).then_some(KnownFault::OwnBlocksOverlap);
    let kind = Kind::new(disks, is_durable, buffers, move |below| {
        let built = match below {
            [log, home] => PersistentCache::on_two(settings.clone(), bands(), log, home),
            _ => PersistentCache::new(settings.clone(), bands(), &below[0]),
        };
        built.expect("a layout")
    });
    Kind { loses_on_failure, known, ..kind }
}

// Disks with zones.

/// Two conventional zones, six others and a runt.
fn zones(model: ZoneModel, open_max: Option<u32>) -> ZoneGeometry {
    const ZONE_BLOCKS: u64 = 20;
    ZoneGeometry {
        model,
        blocks: BlockCount(8 * ZONE_BLOCKS + 9),
        zone_blocks: BlockCount(ZONE_BLOCKS),
        conventional_zones: 2,
        open_max,
        active_max: None,
        optimal_open: None,
        optimal_non_sequential: None,
    }
}

fn host_aware(settings: PersistentCacheSettings) -> Kind {
    host_aware_freed_by(Reclaim::Tail, settings)
}

fn host_aware_freed_by(reclaim: Reclaim, settings: PersistentCacheSettings) -> Kind {
    let zones = zones(ZoneModel::HostAware, None);
    let lengths = (0..zones.zones()).map(|zone| zones.extent_of(ZoneId(zone)).blocks);
    let bands = Arc::new(BandTable::new(lengths));
    let buffers = translation_buffers(&settings, zones.zone_blocks.0);
    let settings = PersistentCacheSettings {
        rewrite: RewriteSettings {
            method: RewriteMethod::InPlace,
            extent: RewriteExtent::FromFirstDirty,
            ..settings.rewrite
        },
        host_aware: Some(HostAware {
            filled_permille: 0,
            reclaim,
            zones: Arc::new(zones),
            command: Duration(10),
            report: Duration(100),
        }),
        ..settings
    };
    let disk = shingled_disk(BlockCount(24 * CONVENTIONAL_TRACK_BLOCKS));
    let kind = Kind::new(vec![disk], false, buffers, move |below| {
        PersistentCache::new(settings.clone(), Arc::clone(&bands), &below[0]).expect("a layout")
    });
    Kind { loses_on_failure: true, ..kind }
}

fn host_managed(open_max: Option<u32>) -> Kind {
    let disk = shingled_disk(BlockCount(8 * CONVENTIONAL_TRACK_BLOCKS));
    let buffers =
        BufferBound { blocks: 0, because: "data goes from the host to the disk and back" };
    let zones = zones(ZoneModel::HostManaged, open_max);
    Kind::new(vec![disk], false, buffers, move |below| {
        HostManaged::new(crate::common::zoned::settings(), zones.clone(), &below[0])
            .expect("a layout")
    })
}
