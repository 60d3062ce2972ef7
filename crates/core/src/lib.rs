//! Layers, policies and the engine of Imbrex: pure state machines without clock, files, threads
//! or bytes of user data.
//!
//! Start with [`layer::Layer`], the one trait; then [`stack::Stack`], which routes requests
//! between layers; then [`engine::Engine`], the loop that runs a stack in virtual time over
//! simulated disks and in wall time over real ones.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;
// What is derived names this crate so, here as anywhere.
extern crate self as imbrex_core;

pub mod activity;
pub mod array;
pub mod buffer;
pub mod cache;
pub mod checksums;
pub mod command;
pub mod counters;
pub mod crc;
mod deadlines;
pub mod disk;
pub mod durability;
pub mod engine;
pub mod engine_state;
pub mod error;
pub mod extent;
pub mod flush_failure;
mod host_requests;
pub mod idle;
pub mod idle_control;
pub mod joined;
pub mod label;
pub mod layer;
pub mod ledger;
pub mod lifecycle;
pub mod map;
pub mod memory_buffer;
mod node;
pub mod notice;
pub mod operation;
pub mod planted;
pub mod read_cache;
pub mod rng;
mod router;
pub mod saved;
pub mod scheduler;
pub mod slice;
pub mod span;
pub mod stack;
pub mod state;
pub mod stripe;
pub mod timers;
pub mod translation;
pub mod units;
pub mod words;
pub mod zone;
pub mod zoned;
