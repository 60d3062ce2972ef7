//! Tests of the translation of drive-managed disks.

mod bad_block;
mod blocking;
#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod crash;
mod damage;
mod idle;
mod in_place_part;
mod lost;
mod map_journal;
mod moving_in_log;
mod persistent_cache;
mod read_only;
mod stretches;
mod trim;
mod two_disks;
