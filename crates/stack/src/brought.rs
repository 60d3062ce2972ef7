//! Policies that a program brings with it to the stacks that it simulates, by the names that stacks have for them.

use super::config::{ConfigError, StackConfig};
use super::kinds::NodeConfig;
use imbrex_core::cache::{BroughtPolicy, MakePolicy};
use imbrex_drives::toml_error::listed;
use std::sync::Arc;

/// The policies of a program. No command that serves has any.
#[derive(Clone, Debug, Default)]
pub struct BroughtPolicies {
    policies: Vec<BroughtPolicy>,
}

impl BroughtPolicies {
    /// These by their names, which have a colon: no policy of Imbrex has one.
    pub fn new(policies: impl IntoIterator<Item = (String, Arc<dyn MakePolicy>)>) -> Self {
        let brought = policies.into_iter().map(|(name, maker)| BroughtPolicy { name, maker });
        Self { policies: brought.collect() }
    }

    /// The policy of a name.
    fn get(&self, name: &str) -> Option<&BroughtPolicy> {
        self.policies.iter().find(|policy| policy.name == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(|policy| policy.name.as_str())
    }

    /// Refuses policies that none of the stacks has.
    ///
    /// # Errors
    /// When there is such a policy.
    pub fn check_used<'a>(
        &self,
        stacks: impl Iterator<Item = &'a StackConfig> + Clone,
    ) -> Result<(), ConfigError> {
        let is_used = |name: &str| stacks.clone().any(|stack| stack.brought_names().any(|it| it == name));
        self.names().find(|name| !is_used(name)).map_or(Ok(()), |name| {
            Err(ConfigError::words(format!(
                "policies: no stack has the policy \"{name}\"; accepted: those that a cache has, by a setting such as \
                 cache.policy={name}"
            )))
        })
    }
}

impl StackConfig {
    /// Gives the caches those of the policies that they name. The stack is read and its settings are applied.
    ///
    /// # Errors
    /// When a cache names a policy that was not brought.
    pub fn bring(&mut self, policies: &BroughtPolicies) -> Result<(), ConfigError> {
        for node in &mut self.node {
            let name = node.name().to_string();
            let NodeConfig::WriteBackCache(cache) = node else {
                continue;
            };
            let Some(policy) = cache.policy.brought_mut() else {
                continue;
            };
            policy.brought = policies.get(&policy.name).cloned();
            if policy.brought.is_none() && !policies.policies.is_empty() {
                return Err(super::kinds::wrong(
                    &name,
                    &format_args!(
                        "policy = \"{}\" was not brought; accepted: {}, or a policy of imbrex",
                        policy.name,
                        listed(policies.names())
                    ),
                ));
            }
            policy.check(&name)?;
        }
        Ok(())
    }

    /// The names of the policies of its caches that a program brings with it.
    pub fn brought_names(&self) -> impl Iterator<Item = &str> {
        self.node.iter().filter_map(|node| match node {
            NodeConfig::WriteBackCache(cache) => Some(cache.policy.brought()?.name.as_str()),
            _ => None,
        })
    }
}
