//! What a cache can be told, and whether it makes sense.

use super::durable::intent::INTENT_PAGES;
use super::durable::{self, Durable};
use super::lru::Lru;
use super::lru_band::LruBand;
use super::opt::Opt;
use super::pore::{self, PoreSettings};
use super::unlimited::Unlimited;
use super::{Cache, EvictionPolicy};
use crate::counters::Counter;
use crate::disk::Geometry;
use crate::durability::{DurabilitySettings, JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::map::BandTable;
use crate::operation::Durability;
use crate::units::BlockCount;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Entries and slots are numbered in 32 bits, one number kept for "none".
const SLOTS_MAX: u64 = u32::MAX as u64 - 2;

/// Slots that a durable cache has beyond its capacity and its destages, at least.
const SPARE_SLOTS_MIN: u64 = 8;
/// Smallest ring of journal blocks.
const RING_BLOCKS_MIN: u64 = 8;

/// Which requests bring blocks into a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheMode {
    /// Reads and writes.
    ReadWrite,
    /// Writes. A read neither allocates nor counts as a use, but takes cached blocks from the
    /// cache.
    WriteOnly,
}

/// The settings of a cache: plain values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheSettings {
    /// Blocks the cache holds.
    pub capacity_blocks: u64,
    /// Flash blocks beyond the capacity, for victims on their way below.
    pub destage_slots_max: u32,
    /// When a destage counts as done. `Cached` leaves it to the write cache of the device below, as
    /// PORE's prototype did: quick, but a power cut can lose blocks that were durable in the cache.
    pub destage: Durability,
    /// Which requests bring blocks in.
    pub mode: CacheMode,
    /// Who leaves when the cache is full.
    pub policy: PolicySettings,
    /// How dirty blocks outlive a crash; `None` keeps them until the cache is dropped.
    pub durability: Option<DurabilitySettings>,
}

/// The replacement policies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicySettings {
    /// The least recently used block leaves.
    Lru,
    /// With the least recently used block leave all cached blocks of its band.
    LruBand {
        /// The bands, where the node below publishes none.
        bands: Option<Arc<BandTable>>,
    },
    /// The least recently used block that is clean or lies in an open zone leaves (PORE).
    Pore(PoreSettings),
    /// No block leaves: the capacity must be that of the node below. An upper bound.
    Unlimited,
    /// The block that is used again last leaves (Belady). An upper bound for hits.
    Opt {
        /// For each block looked up, in order, the number of the next look-up of the same block,
        /// or `u32::MAX`: see [`next_uses`](super::next_uses).
        next_uses: Arc<[u32]>,
    },
}

/// A setting that cannot be: the words say which, its value and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheSettingsError {
    /// The setting, its value and what is accepted.
    pub message: String,
}

impl fmt::Display for CacheSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

pub(super) fn error<T>(message: String) -> Result<T, CacheSettingsError> {
    Err(CacheSettingsError { message })
}

impl CacheSettings {
    /// Blocks at the end of the device below that a cache keeps for itself.
    pub fn reserved_blocks(durability: Option<DurabilitySettings>) -> u64 {
        durability.map_or(0, |_| INTENT_PAGES)
    }

    /// Blocks of flash that the cache uses.
    pub fn flash_blocks(&self) -> BlockCount {
        BlockCount(self.journal_blocks().saturating_add(self.slots()))
    }

    /// Slots of the cache: its capacity, those of victims on their way below, and for a durable
    /// cache as many again, so that it never has to write over data that may still be needed.
    fn slots(&self) -> u64 {
        let destages = u64::from(self.destage_slots_max);
        let spare = match self.durability {
            Some(_) => destages.max(SPARE_SLOTS_MIN),
            None => 0,
        };
        self.capacity_blocks
            .saturating_add(destages)
            .saturating_add(spare)
    }

    /// Blocks of the journal before the slots.
    fn journal_blocks(&self) -> u64 {
        self.durability.map_or(0, |durability| {
            let slots = self.slots().min(SLOTS_MAX);
            let checkpoint = durable::checkpoint_blocks(slots);
            JournalSettings::area_blocks_for(checkpoint, durability.ring_blocks)
        })
    }

    /// Blocks that the cache serves over a backing of `backing` blocks.
    pub(super) fn served_blocks(&self, backing: BlockCount) -> BlockCount {
        BlockCount(backing.0 - CacheSettings::reserved_blocks(self.durability))
    }

    /// The durable parts, and the block of the flash where the slots begin.
    pub(super) fn build_durable(
        &self,
        flash: &Geometry,
        served: BlockCount,
        slots: u32,
    ) -> (Option<Box<Durable>>, u64) {
        let Some(durability) = self.durability else {
            return (None, 0);
        };
        let area = self.journal_blocks();
        let journal = JournalSettings {
            layer: LayerKind::Cache,
            port: Cache::FLASH,
            member_blocks: flash.blocks,
            area: Extent::new(0, area),
            checkpoint_blocks: durable::checkpoint_blocks(u64::from(slots)),
            required_features: 0,
        };
        // Destages may hold half of the slots that are not for cached blocks.
        let batch = (u64::from(slots) - self.capacity_blocks) / 2;
        let durable = Durable::new(durability, journal, slots, served.0, batch.max(1));
        (Some(Box::new(durable)), area)
    }

    /// Checks what only a durable cache asks for.
    fn check_durable(
        &self,
        durability: DurabilitySettings,
        backing: &Geometry,
    ) -> Result<(), CacheSettingsError> {
        if self.destage == Durability::Cached {
            return error(
                "destage is cached in a durable cache: a block may leave it only when it is \
                 durable below, so destage must be durable"
                    .into(),
            );
        }
        if matches!(self.policy, PolicySettings::Opt { .. }) {
            return error(
                "the policy opt in a durable cache: it foresees one run and cannot go on after \
                 another"
                    .into(),
            );
        }
        if durability.ring_blocks < RING_BLOCKS_MIN {
            return error(format!(
                "ring_blocks is {}: the journal of a cache has at least {RING_BLOCKS_MIN} blocks",
                durability.ring_blocks
            ));
        }
        if durability.unflushed_blocks_max == 0 {
            return error(
                "unflushed_blocks_max is 0: at least 1 block may be written without a flush".into(),
            );
        }
        if backing.blocks.0 <= INTENT_PAGES {
            return error(format!(
                "a durable cache over a device of {} blocks: it keeps {INTENT_PAGES} of them for \
                 itself",
                backing.blocks.0
            ));
        }
        Ok(())
    }

    /// Checks the sizes and returns the number of flash slots.
    pub(super) fn check(
        &self,
        flash: &Geometry,
        backing: &Geometry,
    ) -> Result<u32, CacheSettingsError> {
        let capacity = self.capacity_blocks;
        if capacity == 0 {
            return error("capacity_blocks is 0: a cache holds at least 1 block".into());
        }
        let slots = self.slots();
        if slots > SLOTS_MAX {
            return error(format!(
                "capacity_blocks {capacity} and destage_slots_max {} are together more than \
                 {SLOTS_MAX} blocks",
                self.destage_slots_max
            ));
        }
        if let Some(durability) = self.durability {
            self.check_durable(durability, backing)?;
            let needed = self.flash_blocks();
            if needed > flash.blocks {
                return error(format!(
                    "capacity_blocks {capacity} and destage_slots_max {} with a journal need {} \
                     blocks and do not fit a flash device of {} blocks",
                    self.destage_slots_max, needed.0, flash.blocks.0
                ));
            }
        }
        if slots > flash.blocks.0 {
            return error(format!(
                "capacity_blocks {capacity} and destage_slots_max {} do not fit a flash device of \
                 {} blocks",
                self.destage_slots_max, flash.blocks.0
            ));
        }
        if self.policy == PolicySettings::Unlimited && capacity < backing.blocks.0 {
            return error(format!(
                "capacity_blocks {capacity} with the policy unlimited: it must be at least the {} \
                 blocks of the device below",
                backing.blocks.0
            ));
        }
        Ok(slots as u32)
    }

    /// The policy, empty.
    pub(super) fn build_policy(
        &self,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        match &self.policy {
            PolicySettings::Lru => Ok(Box::new(Lru::new())),
            PolicySettings::LruBand { bands } => LruBand::build(bands.as_ref(), backing),
            PolicySettings::Pore(settings) => settings.build(self.capacity_blocks, backing),
            PolicySettings::Unlimited => Ok(Box::new(Unlimited)),
            PolicySettings::Opt { next_uses } => Ok(Box::new(Opt::new(Arc::clone(next_uses)))),
        }
    }
}

impl PolicySettings {
    /// What a saved state must share with the cache that takes it back: a number of the policy, and
    /// its settings.
    pub(super) fn identity(&self) -> Vec<(&'static str, u64)> {
        let number = match self {
            PolicySettings::Lru => 0,
            PolicySettings::LruBand { .. } => 1,
            PolicySettings::Pore(_) => 2,
            PolicySettings::Unlimited => 3,
            PolicySettings::Opt { .. } => 4,
        };
        let mut words = vec![("policy number", number)];
        if let PolicySettings::Pore(settings) = self {
            words.extend(settings.identity());
        }
        words
    }

    /// What the policy counts beside what every cache does.
    pub fn counters(&self) -> &'static [Counter] {
        match self {
            PolicySettings::Pore(_) => pore::COUNTERS,
            PolicySettings::Lru
            | PolicySettings::LruBand { .. }
            | PolicySettings::Unlimited
            | PolicySettings::Opt { .. } => &[],
        }
    }
}
