//! A policy that the program brings with it which simulates.

use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use crate::kinds::wrong;
use imbrex_core::cache::{BroughtPolicy, PolicySettings};

/// What is between the kind of code and its name. No policy of Imbrex has it.
const SEPARATOR: char = ':';

/// A policy by the name that a program has for it, such as `python:mine`.
#[derive(Clone, Debug)]
pub struct BroughtConfig {
    /// The name.
    pub(crate) name: String,
    /// What the program has brought under it; none where no program has.
    pub(crate) brought: Option<BroughtPolicy>,
}

impl BroughtConfig {
    /// The policy of a word, if it is such a name; not brought yet.
    pub(super) fn of_word(word: &str) -> Option<BroughtConfig> {
        let (kind, name) = word.split_once(SEPARATOR)?;
        let is_name = !kind.is_empty() && !name.is_empty();
        is_name.then(|| BroughtConfig { name: word.to_string(), brought: None })
    }

    /// Refuses a policy that no program has brought to the cache `node`.
    pub(crate) fn check(&self, node: &str) -> Result<&BroughtPolicy, ConfigError> {
        self.brought.as_ref().ok_or_else(|| {
            wrong(
                node,
                &format_args!(
                    "policy = \"{}\" is code of a program that simulates, and none has brought it; accepted: a \
                     policy of imbrex, or in Python one of `policies`",
                    self.name
                ),
            )
        })
    }

    /// Why a cache with it cannot be served.
    pub(crate) fn refused_by_serving(&self, node: &str) -> String {
        format!(
            "node `{node}`: policy = \"{}\" cannot be served: it is there to be tried in simulations; accepted: a \
             policy of imbrex",
            self.name
        )
    }
}

impl PolicyKeys for BroughtConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        self.check(given.node).map(|policy| PolicySettings::Brought(policy.clone()))
    }
}
