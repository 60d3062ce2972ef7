//! The eviction policies of a write-back cache, a file each: its keys, and its settings in the core.
//! A key belongs to the policies whose file has it.

mod lru_band;
mod most;
mod opt;
mod pore;
mod ride;
mod sac;
pub(super) mod zone;

pub use pore::PoreConfig;

use super::has_key;
use super::wrong;
use crate::brought::BroughtName;
use crate::config::ConfigError;
use imbrex_core::cache::{BroughtPolicy, PlainPolicy, PolicySettings};
use imbrex_core::disk::LogSize;
use imbrex_core::units::{BlockCount, Lba};
use imbrex_core::words::Words;
use imbrex_drives::keys::{Key, KeyError, Keys};
use imbrex_drives::toml_error::nearest;
use serde::{Serialize, Serializer};

/// The key that says which policy a cache has.
pub(crate) const POLICY: &str = "policy";

/// Makes the enum of the policies, in which each has one line: its name in TOML files, its variant
/// and the type of its keys.
macro_rules! policies {
    ($($(#[$doc:meta])* $name:literal $variant:ident($keys:ty)),* $(,)?) => {
        /// Which block a cache gives up, with the keys of that policy.
        #[derive(Clone, Debug)]
        pub enum PolicyConfig {
            /// One without keys.
            Plain(PlainPolicy),
            /// One that a program brings with it.
            Brought(BroughtName),
            $($(#[$doc])* $variant($keys)),*
        }

        impl PolicyConfig {
            /// Reads the keys of a policy.
            ///
            /// # Errors
            /// When it is none, or a key has a value that cannot be.
            pub(super) fn read(mut keys: toml::Table) -> Result<PolicyConfig, KeyError> {
                let name = keys.remove(POLICY);
                let word = name.as_ref().and_then(toml::Value::as_str);
                if let Some(policy) = word.and_then(PlainPolicy::of_word) {
                    return Ok(PolicyConfig::Plain(policy));
                }
                if let Some(name) = word.and_then(BroughtName::of_word) {
                    return Ok(PolicyConfig::Brought(name));
                }
                match name {
                    $(Some(toml::Value::String(name)) if name == $name => {
                        Ok(PolicyConfig::$variant(<$keys as Keys>::read(keys)?))
                    })*
                    other => Err(unknown_policy(other)),
                }
            }

            /// The policy.
            pub(super) fn policy(&self) -> &dyn PolicyKeys {
                match self {
                    PolicyConfig::Plain(policy) => policy,
                    PolicyConfig::Brought(name) => name,
                    $(PolicyConfig::$variant(keys) => keys),*
                }
            }
        }

        impl Serialize for PolicyConfig {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    PolicyConfig::Plain(policy) => {
                        Named { policy: policy.word(), keys: &NoKeys {} }.serialize(to)
                    }
                    PolicyConfig::Brought(name) => {
                        Named { policy: name.as_str(), keys: &NoKeys {} }.serialize(to)
                    }
                    $(PolicyConfig::$variant(keys) => {
                        Named { policy: $name, keys }.serialize(to)
                    })*
                }
            }
        }

        /// The name and the keys of every policy.
        pub(crate) fn policies() -> Vec<(&'static str, Vec<Key>)> {
            let plain = PlainPolicy::WORDS.iter().map(|name| (*name, vec![]));
            plain.chain([$(($name, <$keys as Keys>::keys())),*]).collect()
        }
    };
}

policies! {
    /// All blocks of the band of the least recently used.
    "lru-band" LruBand(lru_band::LruBandConfig),
    /// The least recently used that is clean or in an open zone.
    "pore" Pore(PoreConfig),
    /// All blocks of the zone of which the most are cached.
    "most" Most(most::MostConfig),
    /// Clean ones or dirty ones of open zones, whichever costs less.
    "sac" Sac(sac::SacConfig),
    /// Where the band is to be rewritten anyhow.
    "ride" Ride(ride::RideConfig),
    /// The one used again last, known from the trace.
    "opt" Opt(opt::OptConfig),
}

/// A policy as TOML and JSON have it: its name first.
#[derive(Serialize)]
struct Named<'a, T> {
    policy: &'a str,
    #[serde(flatten)]
    keys: &'a T,
}

impl PolicyConfig {
    /// The name of the policy, if a program brings it with it.
    pub(super) fn brought(&self) -> Option<&BroughtName> {
        match self {
            PolicyConfig::Brought(name) => Some(name),
            _ => None,
        }
    }
}

/// The keys of a policy that has none.
#[derive(Serialize)]
struct NoKeys {}

impl PolicyKeys for PlainPolicy {
    fn name(&self) -> &str {
        self.word()
    }

    fn is_unbounded(&self) -> bool {
        *self == PlainPolicy::Unlimited
    }

    fn settings(&self, _: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::Plain(*self))
    }
}

impl PolicyKeys for BroughtName {
    fn name(&self) -> &str {
        self.as_str()
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        let policy = given.brought.expect("a cache is planned with what was brought");
        Ok(PolicySettings::Brought(policy.clone()))
    }
}

fn unknown_policy(found: Option<toml::Value>) -> KeyError {
    let names: Vec<&str> = policies().into_iter().map(|(name, _)| name).collect();
    let Some(found) = found else {
        return KeyError::of_none(format!("missing field `{POLICY}`"));
    };
    let hint = found.as_str().and_then(|found| nearest(found, names.iter().copied()));
    let hint = hint.map_or(String::new(), |name| format!("; did you mean \"{name}\"?"));
    let known: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    KeyError::of(POLICY, format!("{POLICY} = {found}{hint}; accepted: {}", known.join(", ")))
}

/// The key that says which policy a cache has.
pub fn policy_key() -> Key {
    Key {
        name: POLICY,
        older: None,
        sentence: "Which block is given up.".to_owned(),
        accepted: POLICIES_ACCEPTED.to_owned(),
        default: None,
    }
}

const POLICIES_ACCEPTED: &str = r#"`"lru"`, `"fifo"`, `"clock"`, `"sieve"`, `"s3-fifo"`, `"2q"`, `"arc"`: [well-known ones](systems/policies.md); `"lru-band"`: with the least recently used its whole band, needs bands below; `"most"`, `"sac"`: [rivals that know bands](systems/policies.md#rivals-that-know-bands); `"pore"`; [`"ride"`](systems/ride.md): dirty blocks where the rewrite of their band is already paid for; as bounds, `"unlimited"`: none, the cache is as large as what it caches, and `"opt"`: the one used again last, known from the trace; `"python:NAME"`: [a class in Python](python.md#a-policy-of-your-own), in simulations alone"#;

/// What a policy says of itself.
pub(super) trait PolicyKeys {
    /// Its name in TOML files.
    fn name(&self) -> &str;

    /// Whether the cache is to be as large as what it caches, whatever its capacity.
    fn is_unbounded(&self) -> bool {
        false
    }

    /// Whether it must know the future.
    fn foresees(&self) -> bool {
        false
    }

    /// Its settings in the core.
    ///
    /// # Errors
    /// When a key has a value that cannot be.
    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError>;
}

/// What the settings of a policy may follow from beside its keys.
pub(super) struct PolicyGiven<'a> {
    /// The name of the cache.
    pub node: &'a str,
    /// The log of the persistent cache below, where there is one.
    pub log: Option<LogSize>,
    /// The mean length of the bands of a drive that hides them, where it is known.
    pub mean_band: Option<BlockCount>,
    /// The future, where it is known.
    pub lookups: Option<&'a [Lba]>,
    /// The policy that a program brings with it, where the cache has such a one.
    pub brought: Option<&'a BroughtPolicy>,
}

/// A number of dirty blocks that leave together.
///
/// # Errors
/// When there is none.
fn batch_of(node: &str, destage_batch: u32) -> Result<u64, ConfigError> {
    match destage_batch {
        0 => Err(wrong(node, &"destage_batch = 0; accepted: 1 or more")),
        batch => Ok(u64::from(batch)),
    }
}

/// The keys of a policy by its name.
pub(super) fn keys_of_policy(name: &str) -> Option<Vec<Key>> {
    let known = policies().into_iter().find(|(known, _)| *known == name);
    known.map(|(_, keys)| keys)
}

/// The policy to which a key belongs that is none of the policy `name`.
pub(super) fn owner_of(name: &str, key: &str) -> Option<&'static str> {
    let policies = policies();
    let has = |(_, keys): &&(&'static str, Vec<Key>)| has_key(keys, key);
    let is_own = policies.iter().filter(has).any(|(known, _)| *known == name);
    let owner = policies.iter().find(has)?;
    (!is_own).then_some(owner.0)
}

/// Takes the keys out of the table of a cache that belong to other policies than its own.
pub(crate) fn drop_foreign_keys(cache: &mut toml::Table) {
    let policy = cache.get(POLICY).and_then(toml::Value::as_str);
    let policy = policy.unwrap_or_default().to_string();
    cache.retain(|key, _| owner_of(&policy, key).is_none());
}
