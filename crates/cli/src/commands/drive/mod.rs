//! `imbrex drive`.

pub mod bench;
pub mod fit;
