//! The search for members that were away, are others, or were changed between two starts.
//!
//! A stack has [lives](lives): it stops in order twice, then the power goes in the third. Before the
//! next start something [happens](happening) to one of its disks. The start is refused with the name of
//! that disk, or every block that is served is right or an error. Then the disk is put back as it
//! was and the stack comes up once more: nothing that was flushed is lost. The [oracle](super::oracle)
//! judges every read.

pub mod campaign;
pub mod case;
pub mod happening;
pub mod lives;
pub mod summary;
