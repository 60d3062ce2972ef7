//! Tests of the translations that rewrite in place: segments and S-blocks.

#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod s_block;
mod s_block_checksums;
mod segment_sums;
