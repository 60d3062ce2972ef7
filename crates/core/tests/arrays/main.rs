//! Arrays on disks that lose what is written over: their counts, their rows, and lives in which members are
//! lost and come back.

#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;

mod host;
mod lives;
mod naive;
mod raid4smr;
mod taken_out;
mod worlds;
