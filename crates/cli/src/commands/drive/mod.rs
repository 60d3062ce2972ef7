//! `imbrex drive`.

pub mod bench;
