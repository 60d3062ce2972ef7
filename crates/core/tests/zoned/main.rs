//! Tests of disks with zones.

#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod host_aware;
mod host_managed;
mod host_managed_reference;
