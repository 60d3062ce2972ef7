//! Arguments of `doctor`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A block device (/dev/sda) or the model of a disk (ST8000AS0002, in any letter case); every
    /// disk of this machine when absent
    #[arg(value_name = "DEVICE|MODEL")]
    pub disk: Option<String>,
    /// Do not simulate a rebuild
    #[arg(long)]
    pub no_rebuild: bool,
    /// Where sysfs is mounted
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
