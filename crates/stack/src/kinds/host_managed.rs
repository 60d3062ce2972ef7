//! The zones of a host-managed drive.

use super::ports::{PortNodes, one};
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, Planned, Reported, World, Writer,
    wrong,
};
use crate::config::ConfigError;
use crate::roles::NodeRole;
use imbrex_core::counters::{Group, ZONES};
use imbrex_core::extent::Extent;
use imbrex_core::units::BlockCount;
use imbrex_core::zone::ZoneGeometry;
use imbrex_core::zoned::{HostManaged, HostManagedSettings};
use imbrex_drives::{HostManagedConfig, MediaModel, conventional_blocks};

impl Kind for HostManagedConfig {
    const NAME: &'static str = "host-managed";
}

impl Node for HostManagedConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        vec![PortNodes { key: one("below"), nodes: vec![&self.below] }]
    }

    fn shows_zones(&self) -> bool {
        true
    }

    fn refused_by_serving(&self) -> Option<String> {
        Some(format!(
            "node `{}`: a host-managed disk cannot be served: NBD has no zones, so a client could \
             not know where it may write; accepted: stacks that take writes anywhere, such as \
             `smr-only` (imbrex compare and imbrex drive fio take host-managed ones)",
            self.name
        ))
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Unreadable("is host-managed, which no image is"))
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        world.room(&self.below, scale)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        if asked.writer == Writer::Layer {
            return Err(wrong(
                &self.name,
                &"its zones must be written in sequence, which the node above does not do; accepted above \
                  it: kind = \"raid4smr\", as one of its homes",
            ));
        }
        if world.is_part(&self.below) {
            let words =
                "its zones are those of a whole drive; accepted: below = a node of kind \"disk\"";
            return Err(wrong(&self.name, &words));
        }
        let model = &world.drive_below(self)?.model;
        let zones = self
            .zones(model, asked.blocks, asked.scale)
            .map_err(|error| wrong(&self.name, &error))?;
        let whole = !world.options.trim_disks && model.media == MediaModel::Shingled;
        let below = Asked { writer: Writer::Tracks { whole }, is_part: false, ..asked };
        let planned =
            PlannedZones { name: self.name.clone(), settings: self.layer_settings(model), zones };
        Ok((Box::new(planned), vec![below]))
    }
}

struct PlannedZones {
    name: String,
    settings: HostManagedSettings,
    zones: ZoneGeometry,
}

impl Planned for PlannedZones {
    fn conventional(
        &self,
        _: &Known<'_>,
        _: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        Ok(vec![(0, Extent::new(0, conventional_blocks(&self.zones).0))])
    }

    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let disk = below.offers[0];
        let (settings, zones) = (self.settings.clone(), self.zones.clone());
        let (layer, geometry) = HostManaged::new(settings, zones, &disk.geometry)
            .map_err(|error| wrong(&self.name, &error))?;
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(geometry),
            facts: super::Facts::HostManaged(Facts),
        })
    }
}

/// What a report needs to know of a host-managed disk: nothing but its counts.
pub struct Facts;

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        vec![ZONES]
    }

    fn roles(&self) -> Vec<NodeRole> {
        vec![NodeRole::Zones]
    }
}
