//! Tests of whole stacks over memory disks.

mod conformance;
mod harness;
mod persistent_cache;
