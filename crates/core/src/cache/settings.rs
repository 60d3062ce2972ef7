//! What a cache can be told, and whether it makes sense.

use super::brought::BroughtPolicy;
use super::durable::codec::checkpoint_blocks;
use super::durable::intent::INTENT_PAGES;
use super::entries::ADDRESSES;
use super::plain::PlainPolicy;
use super::pore::PoreSettings;
use super::ride::RideSettings;
use super::sac::SacSettings;
use super::settings_error::{CacheSettingsError, error};
use super::zone_lru::ZoneLruSettings;
use super::zones::ZoneSettings;
use crate::disk::Geometry;
use crate::durability::{DurabilitySettings, JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::layer::Port;
use crate::map::BandTable;
use crate::operation::Durability;
use crate::units::BlockCount;
use crate::words::Words;
use alloc::format;
use alloc::sync::Arc;

/// Entries and slots are numbered in 32 bits, one number kept for "none".
const SLOTS_MAX: u64 = u32::MAX as u64 - 2;

/// Slots that a durable cache has beyond its capacity and its destages, at least.
const SPARE_SLOTS_MIN: u64 = 8;
/// The share of its capacity that a cache which keeps no journal has in spare slots: one by this.
const SPARE_DIVISOR: u64 = 8;
/// Smallest ring of journal blocks.
const RING_BLOCKS_MIN: u64 = 8;

crate::words! {
    /// Which requests bring blocks into a cache.
    pub enum CacheMode {
        /// Reads and writes.
        ReadWrite = "read-write",
        /// Writes. A read neither allocates nor counts as a use, but takes cached blocks from the
        /// cache.
        WriteOnly = "write-only",
        /// Writes. A read does not allocate, but takes cached blocks from the cache and counts as a use of
        /// them.
        WriteAllocate = "write-allocate",
    }
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
    /// Slots beyond all these, behind them. The free slots are many enough then that blocks which come together
    /// mostly find places that adjoin; no more blocks are on their way out for it. `None`: an eighth of the
    /// capacity as far as the flash has room, of a cache that keeps no journal. One that does has none then,
    /// for an image that says nothing of them has no room for them; nor has a buffer of zones, which leave
    /// whole.
    pub spare_slots: Option<u64>,
}

/// The replacement policies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicySettings {
    /// One that takes nothing but the order in which blocks are used.
    Plain(PlainPolicy),
    /// With the least recently used block leave all cached blocks of its band.
    LruBand {
        /// The bands, where the node below publishes none.
        bands: Option<Arc<BandTable>>,
        /// Dirty blocks that leave together at most, 1 or more; no limit when absent.
        batch: Option<u64>,
    },
    /// The least recently used block that is clean or lies in an open zone leaves (PORE).
    Pore(PoreSettings),
    /// Dirty blocks leave from the bands that must be rewritten anyhow (RIDE).
    Ride(RideSettings),
    /// The zone of which the most blocks are cached leaves whole (MOST).
    Most(ZoneSettings),
    /// Clean blocks or the dirty ones of open zones leave, whichever costs less (SAC).
    Sac(SacSettings),
    /// With the least recently used zone leave all its blocks, and a zone of which many leave is rewritten
    /// (the SSD write buffer of Idler).
    ZoneLru(ZoneLruSettings),
    /// The block that is used again last leaves (Belady). An upper bound for hits.
    Opt {
        /// For each block looked up, in order, the number of the next look-up of the same block,
        /// or `u32::MAX`: see [`next_uses`](super::next_uses).
        next_uses: Arc<[u32]>,
    },
    /// Code that the program which simulates brings with it.
    Brought(BroughtPolicy),
}

/// How a cache divides its flash, in blocks.
struct FlashUse {
    /// The journal, before the slots.
    journal: u64,
    /// The capacity of the cache, victims on their way below, and for a durable cache as many slots
    /// again, so that it never has to write over data that may still be needed; then those in which
    /// zones are put together.
    slots: u64,
    /// The spare slots behind these: they must have room when they were asked for.
    spare: u64,
}

impl CacheSettings {
    /// Blocks at the end of the device below that a cache keeps for itself.
    pub fn reserved_blocks(durability: Option<DurabilitySettings>) -> u64 {
        durability.map_or(0, |_| INTENT_PAGES)
    }

    /// Blocks of flash that the cache uses.
    pub fn flash_blocks(&self) -> BlockCount {
        let FlashUse { journal, slots, .. } = self.flash_use();
        let spare = self.spare_slots.unwrap_or(0);
        BlockCount(journal.saturating_add(slots).saturating_add(spare))
    }

    /// Slots in which zones are put together that are to be rewritten.
    pub(super) fn staging_slots(&self) -> u32 {
        match &self.policy {
            PolicySettings::ZoneLru(settings) => settings.staging_blocks,
            _ => 0,
        }
    }

    /// The spare slots beyond those that `slots` counts, as far as the flash has room for them.
    pub(super) fn spare_slots(&self, slots: u32, flash: &Geometry) -> u32 {
        let slots = u64::from(slots);
        let FlashUse { journal, spare, .. } = self.flash_use();
        let room = (flash.blocks.0 - journal - slots).min(SLOTS_MAX - slots);
        room.min(spare) as u32
    }

    /// True of a buffer that takes writes while nobody below does. It sends a flush below only where
    /// it left something there that needs one.
    pub(super) fn is_zone_buffer(&self) -> bool {
        matches!(self.policy, PolicySettings::ZoneLru(_))
    }

    /// How the cache divides its flash.
    fn flash_use(&self) -> FlashUse {
        let destages = u64::from(self.destage_slots_max);
        let slots = self.capacity_blocks.saturating_add(destages);
        let slots = slots.saturating_add(u64::from(self.staging_slots()));
        let spare = match (self.durability, self.staging_slots()) {
            (None, 0) => self.capacity_blocks / SPARE_DIVISOR,
            _ => 0,
        };
        let spare = self.spare_slots.unwrap_or(spare);
        let Some(durability) = self.durability else {
            return FlashUse { journal: 0, slots, spare };
        };
        let slots = slots.saturating_add(destages.max(SPARE_SLOTS_MIN));
        let checkpoint = checkpoint_blocks(slots.min(SLOTS_MAX));
        let journal = JournalSettings::area_blocks_for(checkpoint, durability.ring_blocks);
        FlashUse { journal, slots, spare }
    }

    /// Blocks that the cache serves over a backing of `backing` blocks.
    pub(super) fn served_blocks(&self, backing: BlockCount) -> BlockCount {
        BlockCount(backing.0 - CacheSettings::reserved_blocks(self.durability))
    }

    /// The area of the journal at the start of `flash`, a device of which `port` is the port; empty
    /// where nothing outlives a crash.
    pub(super) fn journal_settings(&self, flash: &Geometry, port: Port) -> JournalSettings {
        let FlashUse { journal, slots, .. } = self.flash_use();
        JournalSettings {
            layer: LayerKind::Cache,
            port,
            member_blocks: flash.blocks,
            area: Extent::new(0, journal),
            checkpoint_blocks: checkpoint_blocks(slots.min(SLOTS_MAX)),
            required_features: 0,
            data: None,
        }
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
        if let PolicySettings::Brought(policy) = &self.policy {
            return error(format!(
                "the policy {} in a durable cache: it is there to be tried in simulations, and what it keeps \
                 is not known; accepted: a policy of imbrex, or no durability",
                policy.name
            ));
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

    /// Checks what only a zone-LRU buffer asks for.
    fn check_zone_buffer(
        &self,
        settings: &ZoneLruSettings,
        backing: &Geometry,
    ) -> Result<(), CacheSettingsError> {
        let ZoneLruSettings { zones, rewrite_blocks, staging_blocks } = settings;
        let capacity = self.capacity_blocks;
        if capacity < *rewrite_blocks {
            return error(format!(
                "capacity_blocks {capacity} and rewrite_blocks {rewrite_blocks}; accepted: a buffer of at \
                 least rewrite_blocks"
            ));
        }
        if self.mode != CacheMode::WriteAllocate {
            return error(format!(
                "the policy zone-lru with the mode {}; accepted: write-allocate",
                self.mode.word()
            ));
        }
        let Some(below) = backing.zones.as_deref() else {
            return Ok(());
        };
        let zone_blocks = below.zone_blocks.0;
        if *zones != ZoneSettings::Equal(zone_blocks) {
            return error(format!(
                "the zones of the policy zone-lru are {zones:?}; accepted over a device that shows zones: \
                 its own, of {zone_blocks} blocks"
            ));
        }
        if u64::from(*staging_blocks) < zone_blocks {
            return error(format!(
                "staging_blocks {staging_blocks}; accepted: at least the {zone_blocks} blocks of a zone \
                 below, which is put together there"
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
        if flash.refuses_random_writes() || backing.refuses_random_writes() {
            return error(
                "a cache over zones that must be written in sequence; accepted: nodes that take \
                 writes anywhere"
                    .into(),
            );
        }
        if backing.blocks.0 > ADDRESSES {
            return error(format!(
                "a cache over a device of {} blocks; accepted: up to {ADDRESSES}",
                backing.blocks.0
            ));
        }
        if capacity == 0 {
            return error("capacity_blocks is 0: a cache holds at least 1 block".into());
        }
        let slots = self.flash_use().slots;
        if slots.saturating_add(self.spare_slots.unwrap_or(0)) > SLOTS_MAX {
            return error(format!(
                "capacity_blocks {capacity}, destage_slots_max {} and {} spare slots are together more \
                 than {SLOTS_MAX} blocks",
                self.destage_slots_max,
                self.spare_slots.unwrap_or(0)
            ));
        }
        if let Some(durability) = self.durability {
            self.check_durable(durability, backing)?;
            let needed = self.flash_use().journal.saturating_add(slots);
            if needed > flash.blocks.0 {
                return error(format!(
                    "capacity_blocks {capacity} and destage_slots_max {} with a journal need {needed} \
                     blocks and do not fit a flash device of {} blocks",
                    self.destage_slots_max, flash.blocks.0
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
        let (needed, spare) = (self.flash_blocks(), self.spare_slots.unwrap_or(0));
        if needed > flash.blocks {
            return error(format!(
                "{spare} spare slots are {} more than a flash device of {} blocks has room for",
                needed.0 - flash.blocks.0,
                flash.blocks.0
            ));
        }
        if let PolicySettings::ZoneLru(settings) = &self.policy {
            self.check_zone_buffer(settings, backing)?;
        }
        if matches!(self.policy, PolicySettings::Opt { .. })
            && self.mode == CacheMode::WriteAllocate
        {
            return error(
                "the policy opt with the mode write-allocate: which reads find a block follows from what \
                 it keeps, so it cannot know them before; accepted: read-write, write-only"
                    .into(),
            );
        }
        if self.policy == PolicySettings::UNLIMITED && capacity < backing.blocks.0 {
            return error(format!(
                "capacity_blocks {capacity} with the policy unlimited: it must be at least the {} \
                 blocks of the device below",
                backing.blocks.0
            ));
        }
        Ok(slots as u32)
    }
}
