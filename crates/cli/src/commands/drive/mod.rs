//! `imbrex drive`.

pub mod bench;
pub mod fio;
pub mod fit;
