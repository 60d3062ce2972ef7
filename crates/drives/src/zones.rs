//! The zones of a drive's interface, as a drive file or a stack states them.

use super::model::DriveModel;
use crate::quantity::{Rate, Size, Span};
use crate::words::Word;
use imbrex_core::translation::{HostAware, Reclaim};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration};
use imbrex_core::words::Words;
use imbrex_core::zone::{ZoneGeometry, ZoneModel};
use imbrex_core::zoned::HostManagedSettings;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Time of a report of zones where nothing says more: *estimated* (docs/models/host-managed.md).
const REPORT_ZONES: Duration = Duration::from_ms(50);

/// Most zones: each takes memory. Real drives have up to some 100,000.
const ZONES_MAX: u64 = 1 << 22;

/// The `[zones]` of a drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveZones {
    /// Who must respect the write pointers.
    pub model: Word<ZoneModel>,
    /// Length of every zone but the last, a multiple of 4 KiB.
    pub zone_size: Size,
    /// Zones at the start of the drive without a write pointer.
    #[serde(default)]
    pub conventional_zones: u32,
    /// Zones that may be open at once; without limit when absent.
    pub max_open: Option<u32>,
    /// Zones that may be open or closed at once; without limit when absent.
    pub max_active: Option<u32>,
    /// Host-aware: how many zones are best open at once.
    pub optimal_open: Option<u32>,
    /// Host-aware: how many zones are best written out of sequence at once.
    pub optimal_non_sequential: Option<u32>,
    /// Whether reads may cross zones and reach past write pointers.
    #[serde(default = "yes")]
    pub unrestricted_reads: bool,
    /// Rate of reads of blocks that were not written; that of the interface when absent.
    pub unwritten_read_rate: Option<Rate>,
    /// Time of a zone command; the command overhead of the drive when absent.
    pub zone_command: Option<Span>,
    /// Time of a report of zones; 50 ms when absent.
    pub report_zones: Option<Span>,
}

fn yes() -> bool {
    true
}

crate::keys! {
    /// Settings of a host-managed node. What a stack leaves out it takes from the drive.
    pub struct HostManagedConfig {
        /// Name of the node.
        name: String => "any";
        /// The shingled disk.
        below: String => "a disk node";
        /// Length of every zone but the last.
        zone_size: Option<Size> => "a multiple of 4 KiB up to 1 TiB";
        /// Zones at the start without a write pointer; what the drive says is divided with the scale.
        conventional_zones: Option<u32> => "a whole number", "`0`";
        /// Zones that may be open at once.
        max_open: Option<u32> => "a whole number", "no limit";
        /// Zones that may be open or closed at once.
        max_active: Option<u32> => "a whole number", "no limit";
        /// Whether reads may cross zones and reach past write pointers.
        unrestricted_reads: Option<bool> => "`true`, `false`", "`true`";
        /// Rate of reads of blocks that were not written.
        unwritten_read_rate: Option<Rate> => "a rate", "that of the interface";
        /// Time of open, close, reset, finish and of refusals.
        zone_command: Option<Span> => "a time", "`queue.command_overhead` of the drive";
        /// Time of a report of zones.
        report_zones: Option<Span> => "a time", r#"`"50 ms"`, *estimated*"#;
        /// Zones that can only be read, from the start.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        read_only_zones: Vec<u32> = Vec::new() => "a list of numbers of zones";
        /// Zones that are lost, from the start.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        offline_zones: Vec<u32> = Vec::new() => "a list of numbers of zones";
    }
}

impl DriveZones {
    /// Checks what the type of a field cannot say.
    ///
    /// # Errors
    /// A sentence that names the field, its value and what is accepted.
    pub(super) fn check(&self, capacity: Size) -> Result<(), String> {
        check_zone_size("zones.zone_size", self.zone_size, capacity.0)?;
        let is_aware = self.model.0 == ZoneModel::HostAware;
        let foreign = match is_aware {
            true => [
                ("max_open", self.max_open.is_some()),
                ("max_active", self.max_active.is_some()),
                ("unwritten_read_rate", self.unwritten_read_rate.is_some()),
                ("unrestricted_reads", !self.unrestricted_reads),
            ]
            .to_vec(),
            false => vec![
                ("optimal_open", self.optimal_open.is_some()),
                ("optimal_non_sequential", self.optimal_non_sequential.is_some()),
            ],
        };
        if let Some((key, _)) = foreign.into_iter().find(|(_, is_set)| *is_set) {
            let model = self.model.0.word();
            return Err(format!("zones.{key} has no meaning for model = \"{model}\""));
        }
        let zones = capacity.0.div_ceil(self.zone_size.0);
        if u64::from(self.conventional_zones) > zones {
            return Err(format!(
                "zones.conventional_zones = {}: the drive has {zones} zones",
                self.conventional_zones
            ));
        }
        Ok(())
    }
}

/// Checks the length of the zones of a drive of so many bytes.
fn check_zone_size(field: &str, size: Size, capacity_bytes: u64) -> Result<(), String> {
    let accepted = BLOCK_BYTES..=1 << 40;
    if !accepted.contains(&size.0) || !size.0.is_multiple_of(BLOCK_BYTES) {
        return Err(format!("{field} = \"{size}\"; accepted: a multiple of 4 KiB up to 1 TiB"));
    }
    let zones = capacity_bytes.div_ceil(size.0);
    match zones > ZONES_MAX {
        true => {
            Err(format!("{field} = \"{size}\" makes {zones} zones; accepted: at most {ZONES_MAX}"))
        }
        false => Ok(()),
    }
}

impl DriveZones {
    /// The zones of a host-aware drive that is shrunk `scale` times, of which `blocks` are used;
    /// none when it is not host-aware.
    pub fn host_aware(
        &self,
        blocks: BlockCount,
        scale: u64,
        command: Duration,
    ) -> Option<HostAware> {
        if self.model.0 != ZoneModel::HostAware {
            return None;
        }
        let zone_blocks = BlockCount::from_bytes_floor(self.zone_size.0);
        let zones = u32::try_from(blocks.0.div_ceil(zone_blocks.0)).unwrap_or(u32::MAX);
        Some(HostAware {
            zones: Arc::new(ZoneGeometry {
                model: ZoneModel::HostAware,
                blocks,
                zone_blocks,
                conventional_zones: scaled(self.conventional_zones, scale).min(zones),
                open_max: None,
                active_max: None,
                optimal_open: self.optimal_open,
                optimal_non_sequential: self.optimal_non_sequential,
            }),
            filled_permille: 0,
            reclaim: Reclaim::default(),
            command: self.zone_command.map_or(command, |span| span.0),
            report: self.report_zones.map_or(REPORT_ZONES, |span| span.0),
        })
    }
}

impl HostManagedConfig {
    /// The zones of the node over a drive that is shrunk `scale` times, of which `blocks` are used.
    ///
    /// # Errors
    /// When neither the node nor the drive says how long a zone is, or it is no length.
    pub fn zones(
        &self,
        drive: &DriveModel,
        blocks: BlockCount,
        scale: u64,
    ) -> Result<ZoneGeometry, String> {
        let own = drive.zones.as_ref();
        let zone_size = self.zone_size.or(own.map(|zones| zones.zone_size));
        let zone_size = zone_size.ok_or_else(|| {
            format!("`zone_size` is needed, because the drive `{}` has none", drive.name)
        })?;
        check_zone_size("zone_size", zone_size, blocks.bytes())?;
        let zone_blocks = BlockCount::from_bytes_floor(zone_size.0);
        let conventional = match (self.conventional_zones, own) {
            (Some(zones), _) => zones,
            (None, Some(zones)) => scaled(zones.conventional_zones, scale),
            (None, None) => 0,
        };
        let zones = blocks.0.div_ceil(zone_blocks.0);
        Ok(ZoneGeometry {
            model: ZoneModel::HostManaged,
            blocks,
            zone_blocks,
            conventional_zones: conventional.min(u32::try_from(zones).unwrap_or(u32::MAX)),
            open_max: self.max_open.or(own.and_then(|zones| zones.max_open)),
            active_max: self.max_active.or(own.and_then(|zones| zones.max_active)),
            optimal_open: None,
            optimal_non_sequential: None,
        })
    }

    /// Everything else that the layer needs.
    pub fn layer_settings(&self, drive: &DriveModel) -> HostManagedSettings {
        let own = drive.zones.as_ref();
        let rate = self.unwritten_read_rate.or(own.and_then(|zones| zones.unwritten_read_rate));
        let overhead =
            drive.queue.as_ref().map_or(Duration::ZERO, |queue| queue.command_overhead.0);
        let command = self.zone_command.or(own.and_then(|zones| zones.zone_command));
        let report = self.report_zones.or(own.and_then(|zones| zones.report_zones));
        HostManagedSettings {
            unrestricted_reads: self
                .unrestricted_reads
                .or(own.map(|zones| zones.unrestricted_reads))
                .unwrap_or(true),
            unwritten_bytes_per_second: rate.unwrap_or(drive.interface).0,
            command: command.map_or(overhead, |span| span.0),
            report: report.map_or(REPORT_ZONES, |span| span.0),
            read_only_zones: self.read_only_zones.clone(),
            offline_zones: self.offline_zones.clone(),
        }
    }
}

/// A number of zones on a drive that is shrunk; a drive that has some keeps one.
fn scaled(zones: u32, scale: u64) -> u32 {
    let shrunk = (u64::from(zones) / scale) as u32;
    shrunk.max(zones.min(1))
}

/// The blocks of the conventional zones.
pub fn conventional_blocks(zones: &ZoneGeometry) -> BlockCount {
    let blocks = u64::from(zones.conventional_zones) * zones.zone_blocks.0;
    BlockCount(blocks.min(zones.blocks.0))
}
