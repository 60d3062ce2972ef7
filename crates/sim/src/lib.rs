//! Drive models, traces, experiments and reports.

pub mod disk;
pub mod experiment;
pub mod report;
pub mod trace;
