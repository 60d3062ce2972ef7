//! Trace readers, writers, characteristics and synthetic workloads.

mod synthetic;
