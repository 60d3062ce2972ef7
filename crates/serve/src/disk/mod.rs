//! Leaves of the stack that are real.

mod backed;
mod bounce;
mod faults;
mod file;
mod gathered;
mod held;
mod large_writes;
mod lost;
mod memory;
mod open_files;
mod overlay;
mod watch;
mod workers;

pub use backed::BackedDisk;
pub use faults::{Faults, FaultyDisk};
pub use file::{DirectIo, DiskError, FileDisk};
pub use held::{HeldDisk, HeldWrites};
pub use lost::LostDisk;
pub use memory::Memory;
pub(crate) use open_files::OpenFile;
pub use open_files::OpenFiles;
pub use overlay::{OVERLAY_BYTES_MAX, OverlaidDisk, Overlay};
