//! Tests of whole stacks over memory disks.

mod cache_conformance;
mod cache_exact;
mod cache_faults;
mod cache_reference;
mod cache_restore;
mod cache_stacks;
mod conformance;
mod harness;
mod persistent_cache;
