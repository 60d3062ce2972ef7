//! Experiments on stacks over drive models and traces, and their reports.

pub mod analysis;
pub mod basis;
pub mod bench;
pub mod crashtest;
pub mod events;
pub mod experiment;
pub mod fio;
pub mod fit;
pub mod progress;
pub mod reason;
pub mod record_source;
pub mod reliability;
pub mod replay;
mod rows;
pub mod simulation;
pub mod verdict;
pub mod workload_page;
