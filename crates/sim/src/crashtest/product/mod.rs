//! Arrays that lose members: a case is a power cut in a phase of an array's life, a member that goes in that
//! phase or with the cut, and what is there when the device is opened again.
//!
//! A [life](recorded) is a run of the host's requests with [deeds](story) of a person beside them: disks
//! fail, are replaced, rebuilt and scrubbed. The [door] keeps what an image keeps beside its disks. A
//! [case] cuts the power in a life, [opens](presence) what is left, and judges it.

pub mod array;
pub mod campaign;
pub mod case;
pub mod disk;
pub mod door;
pub mod fates;
pub mod life;
pub mod operator;
pub mod presence;
pub mod reached;
pub mod recorded;
pub mod scrub;
pub mod scrub_parity;
pub mod site;
pub mod story;
pub mod summary;
