//! The disks of a stack: which drives may stand where, and how large a part of them is used.

use super::{Plan, blocks, conventional_blocks_needed};
use crate::experiment::areas::Footprint;
use crate::experiment::config::{ConfigError, DiskConfig, NodeConfig, Policy, StackConfig};
use imbrex_core::buffer::ContentKind;
use imbrex_core::extent::Extent;
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::SizeOrShare;
use imbrex_drives::{DiskOptions, Drive, MediaModel, SimulatedDisk};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Refuses a shingled drive that nothing hides the overlap of: its writes would destroy data.
pub(super) fn check_shingles(
    config: &StackConfig,
    drives: &BTreeMap<String, Drive>,
) -> Result<(), ConfigError> {
    for (name, drive) in drives {
        let hides = |node: &NodeConfig| match node {
            NodeConfig::PersistentCache(translation) => translation.below == *name,
            NodeConfig::HostManaged(zones) => zones.below == *name,
            NodeConfig::Disk(_) | NodeConfig::WriteBackCache(_) => false,
        };
        if drive.model.media == MediaModel::Shingled && !config.node.iter().any(hides) {
            return Err(ConfigError::words(format!(
                "node `{name}`: the tracks of the drive `{}` overlap, so it cannot be written \
                 anywhere; accepted: a drive whose tracks do not, or below a node of kind \
                 \"persistent-cache\" or \"host-managed\"",
                drive.model.name
            )));
        }
    }
    Ok(())
}

impl Plan {
    /// The simulated disk of a node.
    pub(super) fn simulated_disk(
        &self,
        config: &DiskConfig,
        log_blocks: BlockCount,
        footprint: Option<Footprint>,
        contents: ContentKind,
    ) -> Result<SimulatedDisk, ConfigError> {
        let drive = &self.drives[&config.name];
        let is_flash = self
            .config
            .cache()
            .is_some_and(|cache| cache.below.flash == config.name);
        let of_zones = self.zones().conventional(&self.config, &config.name);
        let conventional_blocks = match (&self.translation, is_flash) {
            _ if let Some(blocks) = of_zones => blocks?,
            (Some(planned), false) => {
                let track = drive
                    .model
                    .platters
                    .as_ref()
                    .map_or(0, |p| p.longest_track_bytes());
                let settings = planned.layer_settings(log_blocks, self.options.scale);
                conventional_blocks_needed(&settings, &planned.bands, blocks(track))
            }
            _ => BlockCount::ZERO,
        };
        let cache_bytes = self.config.cache().and_then(|cache| match cache.capacity {
            SizeOrShare::Size(size) => Some(size.bytes()),
            share => footprint.map(|footprint| footprint.bytes_of(share)),
        });
        let options = DiskOptions {
            capacity: self.medium_blocks(is_flash, drive, conventional_blocks, cache_bytes),
            // A cache is as large as it is told to be, whatever the scale of what it caches.
            scale: if is_flash { 1 } else { self.options.scale },
            conventional: vec![Extent::new(0, conventional_blocks.0)],
            contents,
            contents_file: self.contents_file(&config.name),
            write_cache: config.write_cache,
            seed: self.options.seed,
            in_sectors: false,
        };
        SimulatedDisk::new(drive, &options).map_err(|error| ConfigError::words(error.to_string()))
    }

    fn contents_file(&self, disk: &str) -> Option<PathBuf> {
        self.options
            .contents_dir
            .as_ref()
            .map(|folder| folder.join(format!("{disk}.contents")))
    }

    /// Blocks of a medium that must have another size than its drive.
    fn medium_blocks(
        &self,
        is_flash: bool,
        drive: &Drive,
        conventional: BlockCount,
        cache_bytes: Option<u64>,
    ) -> Option<BlockCount> {
        let cache = self.config.cache();
        match cache {
            // A cache without a bound is as large as what it caches, which no drive may be.
            Some(cache) if is_flash && cache.policy == Policy::Unlimited => {
                Some(self.flash_blocks(cache, self.backing_blocks()))
            }
            Some(cache) if is_flash && self.options.trim_disks => cache_bytes
                .map(|bytes| self.flash_blocks(cache, BlockCount(blocks(bytes).0.max(1)))),
            _ if !is_flash && (self.options.trim_disks || self.ends_before(drive)) => Some(
                drive
                    .model
                    .physical_blocks(self.backing_blocks(), conventional),
            ),
            _ => None,
        }
    }

    /// True when the device is to be smaller than a drive that no layer makes smaller.
    fn ends_before(&self, drive: &Drive) -> bool {
        self.translation.is_none()
            && drive.model.media != MediaModel::Shingled
            && self.backing_blocks() < drive.model.user_blocks(self.options.scale)
    }
}
