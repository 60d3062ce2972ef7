//! Simulated disks: mechanics, contents and the drive files that describe them.
