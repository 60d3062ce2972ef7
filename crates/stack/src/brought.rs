//! Policies that a program brings with it to the stacks that it simulates, by the names that stacks have for them.

use imbrex_core::cache::BroughtPolicy;
use imbrex_drives::toml_error::listed;

/// What is between the kind of code and its name. No policy of Imbrex has it.
const SEPARATOR: char = ':';

/// The name that a program has for a policy, such as `python:mine`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtName(String);

impl BroughtName {
    /// The name that a word is, if it is one.
    pub(crate) fn of_word(word: &str) -> Option<BroughtName> {
        let (kind, name) = word.split_once(SEPARATOR)?;
        let is_name = !kind.is_empty() && !name.is_empty();
        is_name.then(|| BroughtName(word.to_string()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The policies of a program. No command that serves has any.
#[derive(Clone, Debug, Default)]
pub struct BroughtPolicies {
    policies: Vec<BroughtPolicy>,
}

impl BroughtPolicies {
    /// These by their names, which have a colon.
    pub fn new(policies: impl IntoIterator<Item = BroughtPolicy>) -> Self {
        Self { policies: policies.into_iter().collect() }
    }

    /// The policy of a name, or what to say when there is none.
    pub(crate) fn get(&self, name: &BroughtName) -> Result<&BroughtPolicy, String> {
        let BroughtName(name) = name;
        self.policies.iter().find(|policy| policy.name == *name).ok_or_else(|| {
            let accepted = match self.policies.is_empty() {
                true => "a policy of imbrex, or in Python one of `policies`".to_string(),
                false => format!("{}, or a policy of imbrex", listed(self.names())),
            };
            format!("policy = \"{name}\" is code of a program, which has brought none of that name; accepted: {accepted}")
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(|policy| policy.name.as_str())
    }

    /// Refuses policies that are not among those that stacks have.
    pub(crate) fn check_used(&self, used: &[&BroughtName]) -> Result<(), String> {
        let is_used = |name: &&str| used.iter().any(|used| used.as_str() == *name);
        self.names().find(|name| !is_used(name)).map_or(Ok(()), |name| {
            Err(format!(
                "policies: no stack has the policy \"{name}\"; accepted: those that a cache has, by a setting such as \
                 cache.policy={name}"
            ))
        })
    }
}
