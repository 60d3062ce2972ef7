//! Simulated disks against datasheets, published measurements and physics.

mod contents;
mod disksim;
mod mechanics;
mod published;
pub mod rig;
mod short_writes;
mod solid_state;
mod trim;
