//! The commit that reports name. Only this crate knows it, so that a commit compiles nothing else anew.

/// The commit the program was built from; `unknown` without git.
pub fn commit() -> String {
    option_env!("IMBREX_COMMIT").unwrap_or(imbrex_report::UNKNOWN_COMMIT).to_string()
}

/// The version of Imbrex, with the commit it was built from.
pub fn version() -> &'static str {
    env!("IMBREX_VERSION")
}

/// The version and the commit: what a file depends on that only the same build takes back.
pub fn program() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), commit())
}
