//! Every policy by its settings.

use super::lru::Lru;
use super::lru_band::LruBand;
use super::opt::Opt;
use super::policy::EvictionPolicy;
use super::pore;
use super::settings::{CacheSettings, PolicySettings};
use super::settings_error::CacheSettingsError;
use super::unlimited::Unlimited;
use crate::counters::Counter;
use crate::disk::Geometry;
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
