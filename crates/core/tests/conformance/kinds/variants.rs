//! Translations with settings drawn from a seed: what one setting does beside any other.

use super::{
    Kind, KnownFault, OVERLAP_TRACKS, TRACK_BLOCKS, durably, host_aware, log, on_two_disks,
    translation,
};
use imbrex_core::rng::Rng;
use imbrex_core::translation::{
    BlockingCleaning, BypassSettings, CleanTo, CoveredBlocks, Gather, IdleCleaning, IdlePiece,
    MapJournalSettings, OnArrival, PersistentCacheSettings, RewriteExtent, RewriteMethod,
    RewriteSettings, StreamClasses, TrimMethod, UpdateMethod, Victim,
};
use imbrex_core::units::{BlockCount, Duration};

/// A translation on one disk or on two, with zones or without, durable or not.
pub fn any_translation(seed: u64) -> Kind {
    let mut rng = Rng::new(seed, 71);
    let settings = with_later_choices(seed, any_settings(&mut rng));
    let kind = match rng.below(6) {
        0 => host_aware(PersistentCacheSettings {
            trim: TrimMethod::FromLog,
            update: UpdateMethod::Append,
            bypass: None,
            rewrite: RewriteSettings {
                covered: CoveredBlocks::AsOthers,
                gather: Gather::After,
                merge_buffer_blocks: None,
                ..settings.rewrite
            },
            blocking: BlockingCleaning { to: CleanTo::Home, ..settings.blocking },
            ..settings
        }),
        1 => translation(with_any_part_in_place(seed, for_any_medium(&mut rng, settings))),
        2 => on_two_disks(with_any_part_in_place(seed, for_any_medium(&mut rng, settings))),
        3 => on_two_disks(durably(settings)),
        _ => translation(durably(settings)),
    };
    // At depth 2 and more the records of a volatile map may meet on one page.
    let known = (!kind.is_durable).then_some(KnownFault::OwnBlocksOverlap);
    Kind { known, ..kind }
}

/// The settings that are drawn from a seed, before the kind of medium has its say.
pub fn describe(seed: u64) -> String {
    format!("{:?}", with_later_choices(seed, any_settings(&mut Rng::new(seed, 71))))
}

/// The same, where every second one that may reads log and home at the same time, and every second one that may
/// moves blocks to the head of its log once.
fn with_later_choices(seed: u64, mut settings: PersistentCacheSettings) -> PersistentCacheSettings {
    if settings.blocking.slice.is_none() {
        let mut rng = Rng::new(seed, 72);
        settings.rewrite.gather = one_of(&mut rng, [Gather::After, Gather::Beside]);
    }
    if settings.log_blocks.0 > 1 && settings.update == UpdateMethod::Append {
        let mut rng = Rng::new(seed, 73);
        settings.blocking.to = one_of(&mut rng, [CleanTo::Home, CleanTo::Log]);
    }
    settings
}

fn any_settings(rng: &mut Rng) -> PersistentCacheSettings {
    let log_blocks = one_of(rng, [12, 16, 24, 40]);
    PersistentCacheSettings {
        entries_max: one_of(rng, [None, None, Some(6)]),
        bypass: (rng.below(2) == 0).then(|| BypassSettings {
            after_blocks: BlockCount(one_of(rng, [0, 3, 12])),
            min_blocks: BlockCount(rng.below(5)),
            after_max_blocks: BlockCount(12),
            classes: one_of(rng, [false, false, true]).then(|| StreamClasses {
                streams: one_of(rng, [1, 4]),
                gap_blocks: BlockCount(rng.below(4)),
                large_blocks: BlockCount(one_of(rng, [0, 3, 9])),
            }),
        }),
        trim: one_of(rng, [TrimMethod::None, TrimMethod::FromLog, TrimMethod::Frees]),
        rewrite: RewriteSettings {
            covered: one_of(rng, [CoveredBlocks::AsOthers, CoveredBlocks::FromLog]),
            extent: one_of(rng, [RewriteExtent::Band, RewriteExtent::FromFirstDirty]),
            merge_buffer_blocks: one_of(rng, [None, Some(TRACK_BLOCKS * (OVERLAP_TRACKS + 1))])
                .map(BlockCount),
            overhead: Duration::from_us(rng.below(3)),
            ..log(log_blocks).rewrite
        },
        blocking: BlockingCleaning {
            low_permille: one_of(rng, [1000, 700, 300]),
            slice: one_of(rng, [None, Some(8)]).map(Duration::from_us),
            to: CleanTo::Home,
        },
        idle: (rng.below(2) == 0).then(|| any_idle_cleaning(rng)),
        map_journal: any_map_journal(rng),
        ..log(log_blocks)
    }
}

fn any_idle_cleaning(rng: &mut Rng) -> IdleCleaning {
    IdleCleaning {
        victim: one_of(rng, [Victim::Fifo, Victim::MostDirty, Victim::Lba]),
        piece: one_of(rng, [IdlePiece::Band, IdlePiece::Track]),
        on_arrival: one_of(
            rng,
            // Not `Abort`: the suite knows that chunks are then written anew while they are in flight.
            [OnArrival::FinishIfShort, OnArrival::FinishChunk, OnArrival::FinishBand],
        ),
        resumes: rng.below(2) == 0,
        ..IdleCleaning::new(Duration(400), BlockCount(1), Duration::from_us(1))
    }
}

fn any_map_journal(rng: &mut Rng) -> MapJournalSettings {
    MapJournalSettings {
        every_records: one_of(rng, [0, 0, 1, 5]),
        stall: Duration::from_us(2),
        log_per_flush: BlockCount(one_of(rng, [0, 0, 1, 3])),
        transaction: BlockCount(one_of(rng, [0, 1, 2, 5, 9, 50])),
        flush_overhead: Duration::from_us(rng.below(2)),
        ..MapJournalSettings::default()
    }
}

/// Settings that a translation has only where its map ends with it.
fn for_any_medium(rng: &mut Rng, settings: PersistentCacheSettings) -> PersistentCacheSettings {
    let to_written = rng.below(3) == 0;
    let update = one_of(rng, [UpdateMethod::Append, UpdateMethod::InPlace]);
    let to = match update {
        UpdateMethod::Append => settings.blocking.to,
        UpdateMethod::InPlace => CleanTo::Home,
    };
    PersistentCacheSettings {
        update,
        blocking: BlockingCleaning { to, ..settings.blocking },
        rewrite: RewriteSettings {
            method: one_of(rng, [RewriteMethod::CopyThenHome, RewriteMethod::InPlace]),
            extent: match to_written {
                true => RewriteExtent::FromFirstDirtyToWritten,
                false => settings.rewrite.extent,
            },
            ..settings.rewrite
        },
        ..settings
    }
}

/// The same, of which every second one writes its first bands in place.
fn with_any_part_in_place(seed: u64, settings: PersistentCacheSettings) -> PersistentCacheSettings {
    let in_place_blocks = BlockCount(one_of(&mut Rng::new(seed, 74), [0, 0, 1, 40]));
    PersistentCacheSettings { in_place_blocks, ..settings }
}

fn one_of<T: Copy, const N: usize>(rng: &mut Rng, choices: [T; N]) -> T {
    choices[rng.below(N as u64) as usize]
}
