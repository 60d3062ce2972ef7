//! Arrays over small disks.

use crate::common::harness::{JumpingClock, Medium, MemoryDisk};
use crate::common::zoned::settings;
use imbrex_core::array::raid1::Raid1;
use imbrex_core::array::raid4smr::{Raid4Smr, Raid4SmrSettings};
use imbrex_core::array::{Level, Raid};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry, Media, TrackTable};
use imbrex_core::engine::Engine;
use imbrex_core::layer::Layer;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::map::BandTable;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{DiskId, NodeId, StackBuilder};
use imbrex_core::translation::{PersistentCache, PersistentCacheSettings};
use imbrex_core::units::BlockCount;
use imbrex_core::zone::{ZoneGeometry, ZoneModel};
use imbrex_core::zoned::HostManaged;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const LATENCY_MAX_NS: u64 = 3000;
/// Tracks of the homes: blocks of each, and how many a write destroys behind it.
pub const TRACK: (u64, u64) = (4, 2);

/// Makes the layer that stands between a disk and the array, if any.
type OnTop<'a> = &'a dyn Fn(usize, &Geometry) -> Option<(Box<dyn Layer>, Geometry)>;

/// An array and its disks.
pub struct World {
    pub engine: Engine,
    pub clock: JumpingClock,
    pub array: NodeId,
    pub nodes: Vec<NodeId>,
    pub media: Vec<Rc<RefCell<Medium>>>,
    geometries: Vec<Geometry>,
    rng: Rng,
}

/// A disk whose tracks overlap.
pub fn shingled(tracks: u64) -> Geometry {
    let table = TrackTable::new([(tracks, TRACK.0)], BlockCount(0), TRACK.1);
    Geometry {
        tracks: Some(Arc::new(table)),
        is_blank: true,
        ..Geometry::plain(BlockCount(tracks * TRACK.0), Media::Shingled)
    }
}

/// Twelve zones over a disk whose tracks overlap, the first ones conventional.
fn zones(below: &Geometry, conventional_zones: u32) -> (HostManaged, Geometry) {
    let zones = ZoneGeometry {
        model: ZoneModel::HostManaged,
        blocks: BlockCount(12 * 2 * TRACK.0),
        zone_blocks: BlockCount(2 * TRACK.0),
        conventional_zones,
        open_max: None,
        active_max: None,
        optimal_open: None,
        optimal_non_sequential: None,
    };
    HostManaged::new(settings(), zones, below).expect("a layout")
}

/// A disk for such zones: its first tracks are apart.
pub fn for_zones() -> Geometry {
    let apart = 4 * 2 * TRACK.0;
    let table = TrackTable::new([(8, TRACK.0), (70, TRACK.0)], BlockCount(apart), TRACK.1);
    Geometry {
        tracks: Some(Arc::new(table)),
        is_blank: true,
        ..Geometry::plain(BlockCount(78 * TRACK.0), Media::Shingled)
    }
}

/// A disk for a drive that manages its tracks itself.
fn for_drive() -> Geometry {
    let table = TrackTable::new([(30, TRACK.0), (60, TRACK.0)], BlockCount(30 * TRACK.0), TRACK.1);
    Geometry {
        tracks: Some(Arc::new(table)),
        is_blank: true,
        ..Geometry::plain(BlockCount(90 * TRACK.0), Media::Shingled)
    }
}

/// A disk that takes writes anywhere.
pub fn plain(blocks: u64) -> Geometry {
    Geometry { is_blank: true, ..Geometry::plain(BlockCount(blocks), Media::Conventional) }
}

/// A new disk.
fn disk(geometry: &Geometry, seed: u64) -> MemoryDisk {
    let disk = MemoryDisk::new(geometry.clone(), seed, LATENCY_MAX_NS);
    match geometry.tracks.is_some() {
        true => disk.destructive(),
        false => disk,
    }
}

/// An array of a level.
fn array(level: Level, below: &[&Geometry], spares: usize) -> (Box<dyn Layer>, Geometry) {
    if level == Level::Raid1 {
        let (raid, geometry) = Raid1::new(below, spares, None, None).expect("an array");
        return (Box::new(raid), geometry);
    }
    let (raid, geometry) = Raid::new(level, below, spares).expect("an array");
    (Box::new(raid), geometry)
}

impl World {
    pub fn raid(level: Level, disks: &[u64], spares: usize, seed: u64) -> World {
        let geometries = disks.iter().map(|blocks| plain(*blocks)).collect();
        World::new(geometries, seed, |below| array(level, below, spares))
    }

    pub fn raid4smr(settings: &Raid4SmrSettings, geometries: Vec<Geometry>, seed: u64) -> World {
        World::raid4smr_over(settings, geometries, 0, seed)
    }

    /// The first `zoned` homes are host-managed disks.
    pub fn raid4smr_over(
        settings: &Raid4SmrSettings,
        geometries: Vec<Geometry>,
        zoned: usize,
        seed: u64,
    ) -> World {
        let on_top = |member: usize, below: &Geometry| {
            let (layer, geometry) = (member < zoned).then(|| zones(below, member as u32))?;
            Some((Box::new(layer) as Box<dyn Layer>, geometry))
        };
        World::over(geometries, &on_top, seed, |below| {
            let (layer, geometry) = Raid4Smr::new(settings.clone(), None, below).expect("an array");
            (Box::new(layer), geometry)
        })
    }

    /// An array of drives that manage their tracks themselves.
    pub fn raid_of_drives(level: Level, members: usize, spares: usize, seed: u64) -> World {
        let geometries = vec![for_drive(); members + spares];
        let on_top = |_: usize, below: &Geometry| {
            let settings = PersistentCacheSettings {
                packet_blocks_max: BlockCount(8),
                ..PersistentCacheSettings::new(BlockCount(16))
            };
            let bands = Arc::new(BandTable::new((0..6).map(|_| BlockCount(4 * TRACK.0))));
            let (layer, geometry) = PersistentCache::new(settings, bands, below).expect("a layout");
            Some((Box::new(layer) as Box<dyn Layer>, geometry))
        };
        World::over(geometries, &on_top, seed, |below| array(level, below, spares))
    }

    fn new(
        geometries: Vec<Geometry>,
        seed: u64,
        build: impl Fn(&[&Geometry]) -> (Box<dyn Layer>, Geometry),
    ) -> World {
        World::over(geometries, &|_, _| None, seed, build)
    }

    fn over(
        geometries: Vec<Geometry>,
        on_top: OnTop<'_>,
        seed: u64,
        build: impl Fn(&[&Geometry]) -> (Box<dyn Layer>, Geometry),
    ) -> World {
        let mut builder = StackBuilder::new(seed);
        let nodes: Vec<NodeId> = geometries.iter().map(|it| builder.disk(it.clone())).collect();
        let (mut below, mut told) = (nodes.clone(), geometries.clone());
        for (member, disk) in geometries.iter().enumerate() {
            if let Some((layer, geometry)) = on_top(member, disk) {
                below[member] = builder.layer(layer, geometry.clone(), &[nodes[member]]);
                told[member] = geometry;
            }
        }
        let (layer, geometry) = build(&told.iter().collect::<Vec<_>>());
        let array = builder.layer(layer, geometry, &below);
        let mut rng = Rng::new(seed, 3);
        let disks: Vec<MemoryDisk> =
            geometries.iter().map(|geometry| disk(geometry, rng.below(1 << 40))).collect();
        let media = disks.iter().map(MemoryDisk::medium).collect();
        let boxed = |disk| Box::new(disk) as Box<dyn Disk>;
        let mut world = World {
            engine: Engine {
                stack: builder.build(array),
                disks: disks.into_iter().map(boxed).collect(),
                buffers: Buffers::new(ContentKind::Stamped),
                in_flight_max: 64,
            },
            clock: JumpingClock::default(),
            array,
            nodes,
            media,
            geometries,
            rng,
        };
        let format = Start::Format(Uuid::default());
        world.engine.open(&mut world.clock, format).expect("blank disks");
        world
    }

    /// A new disk for a member.
    pub fn new_disk(&mut self, member: usize) -> (DiskId, MemoryDisk) {
        let disk = disk(&self.geometries[member], self.rng.below(1 << 40));
        self.media[member] = disk.medium();
        (DiskId(member as u16), disk)
    }

    pub fn blocks(&self) -> u64 {
        self.engine.stack.geometry().blocks.0
    }
}
