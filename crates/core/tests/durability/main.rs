//! Tests of the journal, its copies and the ledger, and of the pages that describe their formats.

mod checkpoints_in_proportion;
#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod copies_cuts;
mod copies_data;
mod copies_spares;
mod copies_toy;
mod copies_world;
mod counted_stack;
mod format_page;
mod journal;
mod journal_cuts;
mod journal_damage;
mod journal_idle_mark;
mod journal_superblocks;
mod ledger;
mod ledger_toy;
mod recovery_reads;
