//! The disks under a persistent cache: one for all, or one for the log and one for the bands.

use crate::disk::Geometry;
use crate::durability::DataPort;
use crate::layer::Port;

/// The disk of the log; the only one, where the bands lie on it too.
pub(super) const LOG: Port = Port(0);
/// The disk of the bands, where it is another one.
pub(super) const HOME: Port = Port(1);

/// What lies below a persistent cache.
#[derive(Clone, Copy, Debug)]
pub enum Disks<'a> {
    /// A disk for all.
    One(&'a Geometry),
    /// A disk for the log, and another for the bands.
    Two {
        /// Of the log, and of the metadata.
        log: &'a Geometry,
        /// Of the bands, and of the scratch band.
        home: &'a Geometry,
    },
}

impl<'a> Disks<'a> {
    /// The disk of the log.
    pub fn log(self) -> &'a Geometry {
        match self {
            Disks::One(disk) => disk,
            Disks::Two { log, .. } => log,
        }
    }

    /// The disk of the bands.
    pub fn home(self) -> &'a Geometry {
        match self {
            Disks::One(disk) => disk,
            Disks::Two { home, .. } => home,
        }
    }

    /// The port of the bands.
    pub(super) fn home_port(self) -> Port {
        match self {
            Disks::One(_) => LOG,
            Disks::Two { .. } => HOME,
        }
    }
    /// The data of records of a kind, where it lies on the disk of the bands and the journal does not.
    pub(super) fn data_at_home(self, kind: u8) -> Option<DataPort> {
        match self {
            Disks::One(_) => None,
            Disks::Two { home, .. } => Some(DataPort { port: HOME, blocks: home.blocks, kind }),
        }
    }
}
