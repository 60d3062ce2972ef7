//! What a persistent cache is made of that depends on whether it keeps its map over a power cut.

use super::areas::{DATA_BLOCKS_MAX, DurableAreas};
use super::checksums::Checksums;
use super::conduct::Conduct;
use super::disks::Disks;
use super::log::Log;
use super::mover::moved_at_a_time;
use super::records;
use super::settings::{PersistentCacheSettings, Reclaim};
use crate::durability::JournalSettings;
use crate::ledger::Ledger;
use crate::map::BandTable;
use crate::units::BlockCount;

/// The parts, and the choices, that go together.
#[derive(Debug)]
pub(super) struct Keeping {
    pub ledger: Ledger<u32>,
    pub log: Log,
    pub checksums: Checksums,
    pub conduct: Conduct,
}

impl Keeping {
    /// Those for such settings and bands, on such disks.
    pub fn new(settings: &PersistentCacheSettings, bands: &BandTable, disks: Disks<'_>) -> Keeping {
        let (slots, entries_max) = (settings.log_blocks, settings.entries_max);
        let packet_max = settings.packet_blocks_max;
        let reserve = moved_at_a_time(settings);
        match settings.durability {
            None => Keeping {
                ledger: Ledger::volatile(),
                log: match settings.host_aware.as_ref() {
                    Some(it) if it.reclaim == Reclaim::Zone => {
                        let log = Log::new(slots, packet_max, entries_max);
                        log.freed_by_zones(it.zones.zone_blocks, it.zones.zones())
                    }
                    _ => Log::new(slots, packet_max, entries_max).with_reserve(reserve),
                },
                checksums: Checksums::none(),
                conduct: Conduct::of_a_drive(settings),
            },
            Some(durability) => {
                let areas = DurableAreas::new(settings, &durability, bands);
                let journal = JournalSettings {
                    data: disks.data_at_home(records::BYPASS),
                    ..areas.journal_settings(disks)
                };
                let longest = packet_max.min(BlockCount(DATA_BLOCKS_MAX));
                Keeping {
                    ledger: Ledger::journaled(journal, durability, &[]),
                    log: Log::new_durable(slots, longest, entries_max).with_reserve(reserve),
                    checksums: Checksums::new(areas, slots.0, bands.bands()),
                    conduct: Conduct::with_a_journal(),
                }
            }
        }
    }
}
