//! What can be wrong with a trace, for the person who gave it.

/// Why a trace could not be read. Every message names the file and, where there is one, line and field, the value found
/// and what is accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{path}: {source}")]
    Open {
        /// File as the user named it.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// No shipped recipe has the name.
    #[error(
        "no synthetic recipe is called {name:?}; accepted: {accepted}, or the path of a .toml file"
    )]
    UnknownRecipe {
        /// Name asked for.
        name: String,
        /// Shipped names.
        accepted: String,
    },
    /// A recipe's text is not usable.
    #[error("{path}: {reason}")]
    Recipe {
        /// Recipe file or name.
        path: String,
        /// Field, value and what is accepted.
        reason: String,
    },
}
