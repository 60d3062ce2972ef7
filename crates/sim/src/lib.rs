//! Drive models, traces, experiments and reports.

pub mod analysis;
pub mod basis;
pub mod bench;
pub mod crashtest;
pub mod disk;
pub mod experiment;
pub mod fio;
pub mod fit;
pub mod quantity;
pub mod replay;
pub mod report;
pub mod simulation;
pub mod toml_error;
pub mod trace;
