//! Layers, policies and the engine of Imbrex: pure state machines without clock, files, threads or bytes.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
extern crate alloc;
