//! Reference traces that are not part of the repository.

use std::path::PathBuf;

/// Where the reference traces are, or `None` after saying so.
pub fn shared_traces() -> Option<PathBuf> {
    let named = std::env::var_os("IMBREX_SHARED").map(PathBuf::from);
    let above = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut candidates = named
        .into_iter()
        .chain(above.ancestors().map(|folder| folder.join("shared")))
        .map(|shared| shared.join("traces"));
    let found = candidates.find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: no folder shared/traces above the repository and no IMBREX_SHARED");
    }
    found
}
