//! Simulated disks against datasheets, published measurements and physics.

mod contents;
mod disksim;
mod mechanics;
mod published;
pub mod rig;
mod solid_state;
