//! Tests of the labels of disks.

mod format;
mod lives;
mod running;
mod world;
