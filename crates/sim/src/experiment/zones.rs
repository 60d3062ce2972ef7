//! The zones of a host-managed node.

use super::config::{ConfigError, StackConfig};
use crate::disk::{Drive, HostManagedConfig, conventional_blocks};
use imbrex_core::disk::Geometry;
use imbrex_core::units::BlockCount;
use imbrex_core::zone::ZoneGeometry;
use imbrex_core::zoned::HostManaged;
use std::collections::BTreeMap;

/// What the zones of a node follow from.
pub(super) struct ZonePlan<'a> {
    pub drives: &'a BTreeMap<String, Drive>,
    /// Size of the device.
    pub blocks: BlockCount,
    pub scale: u64,
}

impl ZonePlan<'_> {
    /// Refuses zones under something that does not write in sequence, or over no disk.
    pub fn check(&self, config: &StackConfig) -> Result<(), ConfigError> {
        let Some(zoned) = config.host_managed() else {
            return Ok(());
        };
        if config.top().name() != zoned.name {
            return Err(ConfigError::words(format!(
                "node `{}`: no layer of this version writes zones in sequence, so nothing can stand \
                 on a host-managed disk",
                zoned.name
            )));
        }
        self.zones(zoned).map(|_| ())
    }

    /// The blocks of the conventional zones, when the zones are those of this disk.
    pub fn conventional(
        &self,
        config: &StackConfig,
        disk: &str,
    ) -> Option<Result<BlockCount, ConfigError>> {
        let zoned = config.host_managed().filter(|zoned| zoned.below == disk)?;
        Some(self.zones(zoned).map(|zones| conventional_blocks(&zones)))
    }

    /// The layer of a node, and what it tells the node above.
    pub fn layer(
        &self,
        zoned: &HostManagedConfig,
        below: &Geometry,
    ) -> Result<(HostManaged, Geometry), ConfigError> {
        let zones = self.zones(zoned)?;
        let settings = zoned.layer_settings(&self.drives[&zoned.below].model);
        HostManaged::new(settings, zones, below).map_err(|error| wrong(zoned, &error))
    }

    fn zones(&self, zoned: &HostManagedConfig) -> Result<ZoneGeometry, ConfigError> {
        let drive = self.drives.get(&zoned.below);
        let drive = drive.ok_or_else(|| wrong(zoned, &"must stand on a disk"))?;
        zoned
            .zones(&drive.model, self.blocks, self.scale)
            .map_err(|error| wrong(zoned, &error))
    }
}

fn wrong(zoned: &HostManagedConfig, error: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::words(format!("node `{}`: {error}", zoned.name))
}
