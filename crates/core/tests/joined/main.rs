//! Tests of slices, spans and stripes.

#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod slice_flushes;
mod slices;
mod stripe;
