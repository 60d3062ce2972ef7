//! Tests of the write-back cache.

mod band_rivals;
mod brought;
#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod damage;
mod durable;
mod durable_faults;
mod exact;
mod faults;
mod hits;
mod naive;
mod naive_bands;
mod page;
mod power;
mod power_disk;
mod read_only;
mod reference;
mod rivals;
mod sizes;
mod stacks;
mod zone_lru;
