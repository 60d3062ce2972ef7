//! How many dirty blocks leave together at most, where a policy can be told.

use super::settings_error::{CacheSettingsError, error};
use alloc::format;

/// The name of the setting.
pub(super) const BATCH: &str = "destage_batch";

/// Checks the setting of a policy.
///
/// # Errors
/// When a batch has no block.
pub(super) fn check_batch(policy: &str, batch: u64) -> Result<(), CacheSettingsError> {
    match batch {
        0 => error(format!("{BATCH} is 0: the policy {policy} needs 1 or more")),
        _ => Ok(()),
    }
}
