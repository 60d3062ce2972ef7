//! What a stack is built for.

use std::path::PathBuf;

/// What a stack is built for.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Root seed of band layouts and of layers.
    pub seed: u64,
    /// Size of the device instead of what the stack or the drive says.
    pub size_bytes: Option<u64>,
    /// Divides capacity, persistent-cache bytes and entries; bands and mechanics stay.
    pub scale: u64,
    /// Makes each disk only as large as the device needs, as images are. Shares are then of the
    /// whole device.
    pub trim_disks: bool,
    /// Keeps the contents of simulated disks in sparse files in this folder, instead of memory.
    pub contents_dir: Option<PathBuf>,
    /// Makes every layer durable, as images are, whether its node says so or not. The device must then
    /// survive a power cut.
    pub durable: bool,
    /// The numbers of the members.
    pub members: MemberNumbers,
}

impl BuildOptions {
    /// Full-size drives.
    pub fn simulate(seed: u64) -> BuildOptions {
        BuildOptions {
            seed,
            size_bytes: None,
            scale: 1,
            trim_disks: false,
            contents_dir: None,
            durable: false,
            members: MemberNumbers::Counted,
        }
    }

    /// As images are built: every layer durable, every disk as small as it can be.
    pub fn image(seed: u64, members: MemberNumbers) -> BuildOptions {
        BuildOptions { trim_disks: true, durable: true, members, ..BuildOptions::simulate(seed) }
    }
}

/// Where the numbers of members come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberNumbers {
    /// They count from 1, in the order of the nodes and of their ports.
    Counted,
    /// An image says so: the number of each port of each layer, by their names.
    Listed(Vec<ListedMember>),
}

/// The number of a member as an image lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedMember {
    /// The number.
    pub number: u16,
    /// The layer.
    pub node: String,
    /// Its port.
    pub port: String,
}
