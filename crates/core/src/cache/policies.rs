//! Every policy by its settings.

use super::lru::Lru;
use super::lru_band::LruBand;
use super::opt::Opt;
use super::policy::EvictionPolicy;
use super::pore::Pore;
use super::settings::{CacheSettings, CacheSettingsError, PolicySettings, error};
use super::unlimited::Unlimited;
use crate::disk::Geometry;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;

impl CacheSettings {
    /// The policy, empty.
    pub(super) fn build_policy(
        &self,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        Ok(match &self.policy {
            PolicySettings::Lru => Box::new(Lru::new()),
            PolicySettings::LruBand { bands } => {
                let Some(bands) = bands.as_ref().or(backing.bands.as_ref()) else {
                    return error(
                        "the policy lru-band needs bands, and the device below has none: give a \
                         band table"
                            .into(),
                    );
                };
                if bands.blocks() < backing.blocks {
                    return error(format!(
                        "the bands of the policy lru-band cover {} blocks, the device below has {}",
                        bands.blocks().0,
                        backing.blocks.0
                    ));
                }
                Box::new(LruBand::new(Arc::clone(bands)))
            }
            PolicySettings::Pore(settings) => {
                settings.check(backing)?;
                Box::new(Pore::new(*settings, self.capacity_blocks, backing.blocks))
            }
            PolicySettings::Unlimited => Box::new(Unlimited),
            PolicySettings::Opt { next_uses } => Box::new(Opt::new(Arc::clone(next_uses))),
        })
    }
}
