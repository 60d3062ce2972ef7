//! Tests of the engine and of what becomes of lost disks.

#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod lost_disks;
mod waits;
