//! Tests of whole stacks over memory disks.

mod cache_conformance;
mod cache_durable;
mod cache_durable_faults;
mod cache_exact;
mod cache_faults;
mod cache_power;
mod cache_power_disk;
mod cache_power_host;
mod cache_reference;
mod cache_restore;
mod cache_stacks;
mod conformance;
mod crash_disk;
mod crash_host;
mod damage;
mod format_page;
mod harness;
mod journal;
mod journal_cuts;
mod journal_damage;
mod journal_disk;
mod journal_superblocks;
mod journal_toy;
mod journal_world;
mod persistent_cache;
mod persistent_cache_crash;
