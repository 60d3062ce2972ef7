//! The zones of a stack.

use super::config::{ConfigError, StackConfig};
use imbrex_core::disk::Geometry;
use imbrex_core::translation::HostAware;
use imbrex_core::units::{BlockCount, Duration};
use imbrex_core::zone::ZoneGeometry;
use imbrex_core::zoned::HostManaged;
use imbrex_drives::quantity::Size;
use imbrex_drives::{Bands, Drive, DriveModel, HostManagedConfig, conventional_blocks};
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

    /// What makes the translation of a host-aware drive so; none of another drive.
    pub fn host_aware(&self, drive: &DriveModel, blocks: BlockCount) -> Option<HostAware> {
        let queue = drive.queue.as_ref();
        let command = queue.map_or(Duration::ZERO, |queue| queue.command_overhead.0);
        let zones = drive.zones.as_ref()?;
        zones.host_aware(blocks, self.scale, command)
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

/// The bands of a translation with zones: they are the zones.
pub(super) fn bands_of_zones(
    node: &str,
    zones: &HostAware,
    bands: Option<Bands>,
) -> Result<Bands, ConfigError> {
    match bands {
        None => Ok(Bands::Fixed(Size(zones.zones.zone_blocks.bytes()))),
        Some(_) => Err(ConfigError::words(format!(
            "node `{node}`: `bands` has no meaning over a host-aware drive: its zones are the bands"
        ))),
    }
}

fn wrong(zoned: &HostManagedConfig, error: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::words(format!("node `{}`: {error}", zoned.name))
}
