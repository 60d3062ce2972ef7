//! What the tests of several families of layers share: disks, hosts that know what they wrote, small layers.

pub mod brought;
pub mod check;
pub mod crash_disk;
pub mod crash_host;
pub mod damage;
pub mod fixture;
pub mod harness;
pub mod journal_disk;
pub mod journal_toy;
pub mod journal_world;
pub mod oracle;
pub mod zoned;
