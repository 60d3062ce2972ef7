//! Tests of the write buffer.

mod bad_block;
mod buffer;
#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod copy_store;
mod log;
mod reference;
