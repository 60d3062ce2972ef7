//! Every policy by its settings.

use super::batch::BATCH;
use super::brought::{Brought, CacheToFill};
use super::lru_band::LruBand;
use super::most::Most;
use super::opt::Opt;
use super::plain::PlainPolicy;
use super::policy::EvictionPolicy;
use super::settings::{CacheSettings, PolicySettings};
use super::settings_error::CacheSettingsError;
use crate::counters::{Group, PORE, RIDE, ZONE_BUFFER, ZONES_ASKED};
use crate::disk::Geometry;
use crate::units::BlockCount;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

impl CacheSettings {
    /// The policy, empty.
    pub(super) fn build_policy(
        &self,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        match &self.policy {
            PolicySettings::Plain(policy) => Ok(policy.build(self.capacity_blocks)),
            PolicySettings::LruBand { bands, batch } => {
                LruBand::build(bands.as_ref(), *batch, backing)
            }
            PolicySettings::Pore(settings) => settings.build(self.capacity_blocks, backing),
            PolicySettings::Ride(settings) => settings.build(self.capacity_blocks, backing),
            PolicySettings::Most(zones) => Most::build(*zones, backing),
            PolicySettings::Sac(settings) => settings.build(self.capacity_blocks, backing),
            PolicySettings::ZoneLru(settings) => settings.build(backing),
            PolicySettings::Opt { next_uses } => Ok(Box::new(Opt::new(Arc::clone(next_uses)))),
            PolicySettings::Brought(policy) => {
                let capacity = BlockCount(self.capacity_blocks);
                let cache = CacheToFill { capacity, backing: backing.clone() };
                Ok(Box::new(Brought::new(policy, &cache)))
            }
        }
    }
}

impl PolicySettings {
    /// The least recently used block leaves.
    pub const LRU: PolicySettings = PolicySettings::Plain(PlainPolicy::Lru);

    /// No block leaves.
    pub const UNLIMITED: PolicySettings = PolicySettings::Plain(PlainPolicy::Unlimited);

    /// What a saved state must share with the cache that takes it back: a number of the policy, and
    /// its settings.
    pub(super) fn identity(&self) -> Vec<(&'static str, u64)> {
        let number = match self {
            PolicySettings::Plain(policy) => policy.number(),
            PolicySettings::LruBand { batch: None, .. } => 1,
            PolicySettings::Pore(settings) if settings.batch == 1 => 2,
            PolicySettings::Opt { .. } => 4,
            PolicySettings::Ride(_) => 5,
            // Batches came later than the numbers before. A number of their own lets states that
            // were saved without them keep their layout.
            PolicySettings::Pore(_) => 6,
            PolicySettings::LruBand { batch: Some(_), .. } => 7,
            PolicySettings::ZoneLru(_) => 8,
            // The plain policies have 9 to 14.
            PolicySettings::Most(_) => 15,
            PolicySettings::Sac(_) => 16,
            // It has no saved states.
            PolicySettings::Brought(_) => 17,
        };
        let mut words = vec![("policy number", number)];
        match self {
            PolicySettings::Pore(settings) => words.extend(settings.identity()),
            PolicySettings::Ride(settings) => words.extend(settings.identity()),
            PolicySettings::ZoneLru(settings) => words.extend(settings.identity()),
            PolicySettings::LruBand { batch, .. } => {
                words.extend(batch.map(|batch| (BATCH, batch)));
            }
            PolicySettings::Most(zones) => words.push(("zone_blocks", zones.identity())),
            PolicySettings::Sac(settings) => words.extend(settings.identity()),
            PolicySettings::Plain(_) | PolicySettings::Opt { .. } | PolicySettings::Brought(_) => {}
        }
        words
    }

    /// What the policy counts and tells of its state, beside what every cache does.
    pub fn groups(&self) -> &'static [Group] {
        match self {
            PolicySettings::Pore(_) => &[PORE],
            PolicySettings::Ride(_) => &[RIDE],
            PolicySettings::ZoneLru(_) => &[ZONE_BUFFER, ZONES_ASKED],
            PolicySettings::Plain(_)
            | PolicySettings::LruBand { .. }
            | PolicySettings::Most(_)
            | PolicySettings::Sac(_)
            | PolicySettings::Opt { .. }
            | PolicySettings::Brought(_) => &[],
        }
    }
}
