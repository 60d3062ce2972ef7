//! Where the reference traces beside the repository are.

use std::path::PathBuf;

/// The folder of sample traces beside the repository, or `None`, loudly.
pub fn samples() -> Option<PathBuf> {
    let from_environment =
        std::env::var_os("IMBREX_SHARED").map(|shared| PathBuf::from(shared).join("traces"));
    let mut folders = from_environment.into_iter().chain(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|folder| folder.join("shared/traces"))
            .collect::<Vec<_>>(),
    );
    let found = folders.find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!(
            "SKIPPED: no folder shared/traces above the repository and no IMBREX_SHARED; sample traces are not tested"
        );
    }
    found
}
