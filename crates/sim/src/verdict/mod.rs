//! Whether a workload survives on shingled drives: what each drive does with it as recorded, until its log is
//! full and behind that, and which cache turns it.
//!
//! | Part | Says |
//! |---|---|
//! | `facts` | what the workload asks for |
//! | `standing` | how much of a drive file is measured and how much estimated |
//! | `question` | what is asked, and the order in which runs are made |
//! | `drive` | what the runs of one drive come down to |
//! | `cache` | the ready-made stacks of one disk and one cache, and which of them helps |
//! | `text` | the answer for a terminal and as a page |

mod cache;
mod drive;
mod facts;
mod question;
mod standing;
mod text;

pub use cache::{Advice, CacheTrial};
pub use drive::{Cleaning, DriveVerdict, Outcome, Over, Served, Sustained};
pub use facts::Facts;
pub use question::{CACHE_SIZES_DEFAULT, DRIVES_DEFAULT, Question, REQUESTS_MAX_DEFAULT, Verdict};
pub use standing::Standing;
