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
