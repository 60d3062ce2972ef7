//! Host-managed disks.

use imbrex_core::units::Duration;
use imbrex_core::zoned::HostManagedSettings;

/// What a host-managed disk does by default, with times that are quickly over.
pub fn settings() -> HostManagedSettings {
    HostManagedSettings {
        unrestricted_reads: true,
        unwritten_bytes_per_second: 4_096_000_000,
        command: Duration(10),
        report: Duration(100),
        read_only_zones: Vec::new(),
        offline_zones: Vec::new(),
    }
}
