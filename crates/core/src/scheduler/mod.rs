//! The queue of a disk on the host's side: which of the requests that wait goes to the disk next.
//!
//! A scheduler keeps nothing and moves no address. It hands down one request after another, as many at a time as its
//! `device_depth` allows, and orders those that wait by its [`Policy`]. Requests that share a block, one of which changes
//! it, keep their order.

mod area_c_look;
mod deadline;
mod dispatches;
mod layer;
mod policy;
mod waiting;

pub use area_c_look::{AreaCLook, Quota};
pub use deadline::Deadline;
pub use dispatches::{Dispatch, DispatchLog};
pub use layer::{Scheduler, SchedulerSettings};
pub use policy::{Choice, Policy, Why};
pub use waiting::Waiting;
