//! One file a command, and what they share.

pub mod bound;
pub mod check;
mod check_disks;
pub mod compare;
pub mod console;
pub mod control;
pub mod crashtest;
pub mod create;
pub mod doctor;
pub mod drive;
mod image_shape;
pub mod inspect;
pub mod members;
mod outputs;
mod page_file;
pub mod place;
mod print_experiment;
pub mod reliability;
pub mod replace;
pub mod reproduce;
pub mod run;
pub mod serve;
pub mod stack;
mod sweep;
pub mod systems;
pub mod trace;
mod workload;
