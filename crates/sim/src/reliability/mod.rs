//! How long until disks lose data: closed forms, exact Markov chains and runs that are drawn.
//!
//! | Part | Says |
//! |---|---|
//! | `layout` | which disks protect each other, and what is lost when too many fail |
//! | `closed`, `markov` | mean times and probabilities for exponential lives and repairs |
//! | `lives`, `monte_carlo` | the same for any lives and repairs, one run at a time |
//! | `draws` | many runs, their means and how far these may be off |
//! | `input`, `study`, `text` | the file that asks, what is computed of it, and how it is shown |

mod closed;
mod draws;
mod input;
mod layout;
mod lives;
mod markov;
mod monte_carlo;
mod study;
mod text;

pub use closed::MeanTimes;
pub use draws::{Drawn, Estimate};
pub use input::{Input, ReliabilityError};
pub use study::{Case, Figures, Reliability, Space, study};
