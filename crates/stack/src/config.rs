//! A stack as its TOML file states it.

use super::brought::{BroughtName, BroughtPolicies};
use super::drive_stack::{is_drive_file, library_drives, stack_of_drive, text_of_drive};
use super::kinds::policies::{POLICY, drop_foreign_keys};
use super::kinds::{DiskConfig, NodeConfig};
use super::kinds::{check_medium, check_overlaps, wrong};
use super::setting::Setting;
use super::text::read_stack;
use imbrex_drives::OnOff;
use imbrex_drives::quantity::Size;
use imbrex_drives::toml_error::{self, TomlError, listed, nearest, read_text};
use serde::Serialize;

/// Nodes of a stack at most: several times what a layer over every disk of a shelf takes.
pub const NODES_MAX: usize = 256;

/// A stack: nodes from the disks up.
#[derive(Clone, Debug, Serialize)]
pub struct StackConfig {
    /// Name in reports.
    pub name: String,
    /// One sentence for `imbrex systems`.
    pub description: String,
    /// Size of the device; the size of the drive when absent.
    pub size: Option<Size>,
    /// The nodes; one that no other node names below is the top.
    pub node: Vec<NodeConfig>,
    /// Policies that its caches may name beside those of Imbrex: what a program brings with it that simulates.
    #[serde(skip)]
    pub(crate) brought: BroughtPolicies,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A TOML file is wrong.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// A file cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Words(String),
}

impl ConfigError {
    /// An error in plain words.
    pub fn words(message: impl Into<String>) -> ConfigError {
        ConfigError::Words(message.into())
    }
}

/// The ready-made stacks, in the order in which they are listed: the compared ones come first.
const READY_MADE: [(&str, &str); COMPARED + 24] = [
    ("cmr-only", include_str!("../../../stacks/cmr-only.toml")),
    ("smr-only", include_str!("../../../stacks/smr-only.toml")),
    ("lru", include_str!("../../../stacks/lru.toml")),
    ("lru-band", include_str!("../../../stacks/lru-band.toml")),
    ("pore-cf", include_str!("../../../stacks/pore-cf.toml")),
    ("pore-pf", include_str!("../../../stacks/pore-pf.toml")),
    ("pore", include_str!("../../../stacks/pore.toml")),
    ("ride", include_str!("../../../stacks/ride.toml")),
    ("lru-archive", include_str!("../../../stacks/lru-archive.toml")),
    ("pore-archive", include_str!("../../../stacks/pore-archive.toml")),
    ("ride-archive", include_str!("../../../stacks/ride-archive.toml")),
    ("hwsr", include_str!("../../../stacks/hwsr.toml")),
    ("s-block", include_str!("../../../stacks/s-block.toml")),
    ("hdd", include_str!("../../../stacks/hdd.toml")),
    ("spanned", include_str!("../../../stacks/spanned.toml")),
    ("striped", include_str!("../../../stacks/striped.toml")),
    ("raid1", include_str!("../../../stacks/raid1.toml")),
    ("raid4", include_str!("../../../stacks/raid4.toml")),
    ("raid5", include_str!("../../../stacks/raid5.toml")),
    ("raid4smr", include_str!("../../../stacks/raid4smr.toml")),
    ("raid4smr-chain", include_str!("../../../stacks/raid4smr-chain.toml")),
    ("dedicated", include_str!("../../../stacks/dedicated.toml")),
    ("split", include_str!("../../../stacks/split.toml")),
    ("split-local", include_str!("../../../stacks/split-local.toml")),
    ("split-dedicated", include_str!("../../../stacks/split-dedicated.toml")),
    ("four-disks", include_str!("../../../stacks/four-disks.toml")),
    ("four-disks-equal", include_str!("../../../stacks/four-disks-equal.toml")),
    ("host-aware", include_str!("../../../stacks/host-aware.toml")),
    ("at-ic", include_str!("../../../stacks/at-ic.toml")),
    ("idler", include_str!("../../../stacks/idler.toml")),
    ("idler-buffer", include_str!("../../../stacks/idler-buffer.toml")),
    ("cmr-buffer", include_str!("../../../stacks/cmr-buffer.toml")),
];

/// How many of the ready-made stacks are compared when none is named: those on one drive.
const COMPARED: usize = 8;

/// The names of the ready-made stacks.
pub fn ready_made() -> impl Iterator<Item = &'static str> {
    READY_MADE.iter().map(|(name, _)| *name)
}

/// The names of the ready-made stacks that are compared when none is named. They stand on one
/// drive; the others are compared with the drive that they stand on.
pub fn compared() -> impl Iterator<Item = &'static str> {
    ready_made().take(COMPARED)
}

/// The TOML text of a stack: a ready-made one or a drive of the library, by name, or a file by path,
/// with the name errors should give it.
///
/// # Errors
/// When it is neither; the nearest ready-made name is suggested.
pub fn stack_text(name_or_path: &str) -> Result<(String, String), ConfigError> {
    if let Some((name, text)) = READY_MADE.iter().find(|(name, _)| *name == name_or_path) {
        return Ok((format!("stacks/{name}.toml"), (*text).to_string()));
    }
    // Models are written in any letter case; only the library's own comes before a file of that name.
    let is_file = std::path::Path::new(name_or_path).is_file();
    let is_meant =
        |name: &str| name == name_or_path || !is_file && name.eq_ignore_ascii_case(name_or_path);
    if let Some((name, drive)) = library_drives().find(|(name, _)| is_meant(name)) {
        return Ok((format!("drives/{name}.toml"), stack_of_drive(name, &drive.model)));
    }
    let looks_like_path = name_or_path.ends_with(".toml") || name_or_path.contains('/');
    if looks_like_path || is_file {
        let text = read_text(name_or_path)
            .map_err(|error| ConfigError::Read { path: name_or_path.to_string(), error })?;
        return match is_drive_file(&text) {
            true => text_of_drive(name_or_path),
            false => Ok((name_or_path.to_string(), text)),
        };
    }
    let known: Vec<&str> = ready_made().collect();
    let drives = library_drives().map(|(name, _)| name);
    let hint = nearest(name_or_path, known.iter().copied().chain(drives))
        .map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    Err(ConfigError::words(format!(
        "unknown system `{name_or_path}`{hint} (known: {}; a drive of `imbrex systems`; or the path of a \
         TOML file)",
        known.join(", ")
    )))
}

impl StackConfig {
    /// The disks of the stack, in the order of its nodes.
    pub fn disks(&self) -> impl Iterator<Item = &DiskConfig> {
        self.node.iter().filter_map(NodeConfig::disk)
    }

    /// A stack of nodes, not checked yet.
    pub fn of_nodes(name: String, description: String, node: Vec<NodeConfig>) -> StackConfig {
        StackConfig { name, description, size: None, node, brought: BroughtPolicies::default() }
    }

    /// The stack of a ready-made name or a file, with `settings` applied to the nodes it has.
    ///
    /// # Errors
    /// When the file, a setting or the tree of nodes is wrong.
    pub fn load(name_or_path: &str, settings: &[Setting]) -> Result<StackConfig, ConfigError> {
        let (file, text) = stack_text(name_or_path)?;
        StackConfig::from_text(&file, &text, settings)
    }

    /// The stack of a TOML text that came from `file`.
    ///
    /// # Errors
    /// When the text, a setting or the tree of nodes is wrong.
    pub fn from_text(
        file: &str,
        text: &str,
        settings: &[Setting],
    ) -> Result<StackConfig, ConfigError> {
        read_stack(file, text)?.with(file, settings)
    }

    /// This stack, which came from `file`, with settings applied and checked.
    ///
    /// # Errors
    /// When a setting or the tree of nodes is wrong.
    pub fn with(mut self, file: &str, settings: &[Setting]) -> Result<StackConfig, ConfigError> {
        // Which keys a node has follows from its policy, wherever that stands in the list.
        let (policies, others): (Vec<_>, Vec<_>) =
            settings.iter().partition(|setting| setting.key == POLICY);
        for setting in policies.into_iter().chain(others) {
            self.apply(setting)?;
        }
        self.check(file)?;
        Ok(self)
    }

    /// True when the stack has a node of that name.
    pub fn has_node(&self, name: &str) -> bool {
        self.node.iter().any(|node| node.name() == name)
    }

    /// The node of a name, if there is one.
    pub fn node(&self, name: &str) -> Option<&NodeConfig> {
        self.node.iter().find(|node| node.name() == name)
    }

    /// The node that no other node names below.
    pub fn top(&self) -> &NodeConfig {
        self.node
            .iter()
            .find(|node| !self.node.iter().any(|other| other.below().contains(&node.name())))
            .expect("a checked stack has a top")
    }

    /// True when a cache serves writes only.
    pub fn is_write_only(&self) -> bool {
        self.node.iter().any(|node| node.node().is_write_only())
    }

    /// Lets its caches name these policies beside those of Imbrex.
    ///
    /// # Errors
    /// When a cache names one that is not among them.
    pub fn bring(&mut self, policies: &BroughtPolicies) -> Result<(), ConfigError> {
        self.brought.clone_from(policies);
        for node in &self.node {
            if let Some(name) = node.node().brought_policy() {
                policies.get(name).map_err(|words| wrong(node.name(), &words))?;
            }
        }
        Ok(())
    }

    /// Makes a run of the stack as the code wants it that was brought to it.
    pub fn surround<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        let policy = self.brought_policies().find_map(|name| self.brought.get(name).ok());
        let Some(policy) = policy else {
            return run();
        };
        let (mut run, mut made) = (Some(run), None);
        (policy.surround)(&mut || made = run.take().map(|run| run()));
        made.expect("the run was made")
    }

    /// The policies of its caches that a program brings with it.
    pub fn brought_policies(&self) -> impl Iterator<Item = &BroughtName> {
        self.node.iter().filter_map(|node| node.node().brought_policy())
    }

    /// The same stack without keys that say what a simulation does without them too.
    pub fn without_stated_defaults(&self) -> StackConfig {
        let mut config = self.clone();
        for node in &mut config.node {
            node.forget_stated_defaults();
        }
        config
    }

    /// True when a power cut may take away what a cache has destaged, although it was durable there.
    pub fn destages_into_caches(&self) -> bool {
        self.node.iter().any(|node| node.node().destages_into_caches())
    }

    /// True when a setting is one of this stack: it has the node, and the key is not one of another
    /// policy or of another kind of node that stands in the same place.
    pub fn takes(&self, setting: &Setting) -> bool {
        let node = self.node(&setting.node);
        let key = &setting.key;
        node.is_some_and(|node| node.owner_of(key).is_none() && node.kind_of(key).is_none())
    }

    /// The kind of node to which the key of a setting belongs that the stack does not take for that
    /// reason.
    pub fn kind_of(&self, setting: &Setting) -> Option<&'static str> {
        self.node(&setting.node)?.kind_of(&setting.key)
    }

    /// The policy to which the key of a setting belongs that the stack does not take for that reason.
    pub fn owner_of(&self, setting: &Setting) -> Option<&'static str> {
        self.node(&setting.node)?.owner_of(&setting.key)
    }

    /// The stack that an image describes. Images of earlier builds state the keys of all policies;
    /// those of other policies than the cache has had no effect.
    ///
    /// # Errors
    /// When the text is none of a stack.
    pub fn from_image(text: &str) -> Result<StackConfig, ConfigError> {
        const FILE: &str = "image";
        let mut stack: toml::Table = toml_error::from_toml(FILE, text)?;
        let nodes = stack.get_mut("node").and_then(toml::Value::as_array_mut);
        for node in nodes.into_iter().flatten() {
            if let Some(node) = node.as_table_mut().filter(|node| node.contains_key(POLICY)) {
                drop_foreign_keys(node);
            }
        }
        let text =
            toml::to_string(&stack).map_err(|error| ConfigError::words(error.to_string()))?;
        let mut config = StackConfig::from_text(FILE, &text, &[])?;
        // An image that says nothing of checksums was made before there were any.
        config.state_checksums(OnOff::Off);
        Ok(config)
    }

    /// Sets a key of a node; a stack that does not take the setting stays as it is.
    fn apply(&mut self, setting: &Setting) -> Result<(), ConfigError> {
        let Some(index) = self.node.iter().position(|node| node.name() == setting.node) else {
            return Ok(());
        };
        if !self.takes(setting) {
            return Ok(());
        }
        let mut table = toml::Table::try_from(&self.node[index])
            .map_err(|error| ConfigError::words(error.to_string()))?;
        // The table has each key under one of its names.
        if let Some(other) = self.node[index].other_name(&setting.key) {
            table.remove(other);
        }
        table.insert(setting.key.clone(), setting.value.clone());
        if setting.key == POLICY {
            drop_foreign_keys(&mut table);
        }
        self.node[index] = NodeConfig::read(table).map_err(|error| {
            let Setting { origin, node, key, value } = setting;
            let message = toml_error::explain(&error.message);
            // The setting is told already.
            let stated = format!("{key} = {value}");
            let message = message
                .strip_prefix(&stated)
                .map_or(&*message, |rest| rest.trim_start_matches([':', ';']).trim_start());
            ConfigError::words(format!("{origin} {node}.{key}={value}: {message}"))
        })?;
        Ok(())
    }

    fn check(&self, file: &str) -> Result<(), ConfigError> {
        let wrong = |message: String| Err(ConfigError::words(format!("{file}: {message}")));
        if self.node.is_empty() {
            return wrong("a stack needs at least one [[node]]".to_string());
        }
        if self.node.len() > NODES_MAX {
            let count = self.node.len();
            return wrong(format!("the stack has {count} nodes; accepted: at most {NODES_MAX}"));
        }
        for (index, node) in self.node.iter().enumerate() {
            if self.node[..index].iter().any(|other| other.name() == node.name()) {
                return wrong(format!("two nodes are named `{}`", node.name()));
            }
            check_medium(node).or_else(wrong)?;
            for below in node.below() {
                // A node may only stand on nodes above it in the file, so there are no circles.
                if !self.node[..index].iter().any(|other| other.name() == below) {
                    let names = self.node[..index].iter().map(|n| n.name());
                    return wrong(format!(
                        "node `{}` stands on `{below}`, which is not defined before it (defined: {})",
                        node.name(),
                        listed(names)
                    ));
                }
                if node.below().iter().filter(|name| **name == below).count() > 1 {
                    let node = node.name();
                    return wrong(format!("node `{below}` is below two ports of node `{node}`"));
                }
                let users = || {
                    let ports = self.node.iter().map(|other| (other, other.below()));
                    ports
                        .flat_map(|(other, below)| below.into_iter().map(move |name| (other, name)))
                };
                let users = users().filter(|(_, name)| *name == below);
                let is_part = |(node, _): &(&NodeConfig, _)| node.node().part().is_some();
                let is_store = self.node(below).is_some_and(|it| it.node().keeps_copies());
                let may_share = is_store || users.clone().all(|user| is_part(&user));
                if users.clone().count() > 1 && !may_share {
                    return wrong(format!(
                        "node `{below}` is below more than one node; accepted: several nodes of kind \
                         \"slice\""
                    ));
                }
            }
        }
        check_overlaps(&self.node).or_else(wrong)?;
        check_top(&self.node).or_else(wrong)
    }
}

/// Refuses policies that were brought and that none of the stacks has.
///
/// # Errors
/// When there is one.
pub fn check_brought<'a>(
    policies: &BroughtPolicies,
    stacks: impl Iterator<Item = &'a StackConfig>,
) -> Result<(), ConfigError> {
    let used: Vec<&BroughtName> = stacks.flat_map(StackConfig::brought_policies).collect();
    policies.check_used(&used).map_err(ConfigError::words)
}

/// Finds what is wrong with the node that is the device.
fn check_top(nodes: &[NodeConfig]) -> Result<(), String> {
    let user_of = |name: &str| nodes.iter().find(|other| other.below().contains(&name));
    let names = nodes.iter().map(NodeConfig::name);
    let tops: Vec<&str> = names.filter(|name| user_of(name).is_none()).collect();
    if tops.len() != 1 {
        return Err(format!("the stack has {} tops ({})", tops.len(), listed(&tops)));
    }
    for node in nodes {
        node.node().check_place(user_of(node.name()).map(NodeConfig::name))?;
    }
    Ok(())
}
