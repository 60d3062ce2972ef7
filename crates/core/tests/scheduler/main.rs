//! The scheduler alone: what it hands down in which order, without the locks at the top of a stack.

mod order;
mod policies;
mod world;
