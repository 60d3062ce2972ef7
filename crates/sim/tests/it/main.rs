//! The integration tests of `imbrex-sim`, one binary.

mod archives;
mod arrays;
mod brought;
mod browser;
mod calibration;
mod closed_forms;
mod combined;
mod counting;
mod crashtest;
mod destructive;
mod determinism;
mod disks;
mod durable_decisions;
mod events;
mod experiments;
mod fio;
mod fit;
mod golden;
#[path = "../../../core/tests/common/harness.rs"]
#[allow(dead_code, reason = "the core tests use more of it than the tests of whole stacks")]
mod harness;
mod head_movement;
mod host_managed;
mod idle_cleaning;
mod idler;
mod idler_switched;
mod keys;
mod latency_shapes;
mod le_captured;
mod lost_nodes;
mod memory;
mod memory_buffer;
mod movement;
mod no_cleaning;
#[path = "../../../core/tests/common/brought.rs"]
#[allow(dead_code, reason = "the core tests use more of it than the tests of whole stacks")]
mod outside;
mod plots;
mod raid;
mod raid_bad_input;
mod raid_contents;
mod report;
mod ride_bounds;
mod roles;
mod s_block;
#[path = "../../../traces/tests/it/sample_traces.rs"]
mod sample_traces;
mod saved_state;
mod shared_traces;
mod simulate;
mod slices;
mod stopped;
mod trees;
mod untimed;
mod warm_up;
mod workload_page;
mod write_amplification_order;
