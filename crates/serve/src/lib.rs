//! The operating-system side: NBD connections, real files, wall clock.
//!
//! [`server::Server`] runs the engine of `imbrex-core` with [`clock::WallClock`], the clients of
//! an NBD socket and [`disk::FileDisk`]s, or with simulated disks paced to the wall clock.
//! Nothing here knows traces or TOML.
#![forbid(unsafe_code)]

pub mod clock;
pub mod connections;
pub mod control;
pub mod disk;
pub mod events;
pub mod file_kind;
pub mod fsck;
pub mod image;
pub mod listener;
pub mod lockable_file;
pub mod nbd;
pub mod remote;
pub mod server;
pub mod signals;
pub mod storage;
