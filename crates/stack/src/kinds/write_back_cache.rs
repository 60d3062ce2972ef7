//! A write-back cache on a second disk, or on anything that takes writes anywhere.

use super::has_key;
use super::policies::{POLICY, PolicyConfig, PolicyGiven, keys_of_policy, owner_of, policies};
use super::ports::{BelowNodes, Form, PortKey, PortNodes, Ports, one};
use super::{
    Asked, Below, Body, BufferedIn, Keeps, Kind, Known, Node, Offer, Part, Place, Planned,
    Reported, World, Writer, wrong,
};
use crate::areas::{Footprint, share_bytes};
use crate::brought::BroughtName;
use crate::config::ConfigError;
use crate::durability::BLOCKS_MAX;
use crate::durability::JournalKeys;
use crate::roles::NodeRole;
use imbrex_core::cache::codec::RECORD_KINDS;
use imbrex_core::cache::{BroughtPolicy, Cache, CacheMode, CacheSettings, PolicySettings};
use imbrex_core::counters::{CACHED, DIRTY, Group, JOURNAL, WRITE_BACK_CACHE};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::layer::Port;
use imbrex_core::operation::Durability;
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_core::words;
use imbrex_drives::Word;
use imbrex_drives::keys;
use imbrex_drives::keys::{Key, KeyError, Keys};
use imbrex_drives::quantity::{Size, SizeOrShare};
use imbrex_report::Run;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// A write-back cache: the keys that all have, and those of its policy.
#[derive(Clone, Debug, Serialize)]
pub struct CacheConfig {
    /// The keys that every cache has.
    #[serde(flatten)]
    pub keys: CacheKeys,
    /// Which block it gives up.
    #[serde(flatten)]
    pub policy: PolicyConfig,
}

keys! {
    /// The keys that every write-back cache has.
    pub struct CacheKeys {
        /// Name of the node.
        name: String => "any";
        /// The fast disk that keeps cached blocks, and what is cached.
        below: BelowNodes<CachePorts> => r#"`{ flash = "NODE", backing = "NODE" }`; `flash` is a disk"#;
        /// Size of the cache; `unlimited` needs the key and takes no notice of it.
        capacity: SizeOrShare => "a size of at least 4 KiB, or a share";
        /// Which requests bring blocks in.
        mode: Word<CacheMode> = Word(CacheMode::ReadWrite) => r#"`"read-write"`; `"write-only"`: reads neither allocate nor refresh, cached blocks still serve them, and a replay leaves reads out; `"write-allocate"`: reads do not allocate, those that find a block refresh it; not with `opt`"#;
        /// Slots of the flash beyond those that blocks need, as a share of the capacity: with them blocks that come together mostly lie together. `create` states 0.25 where a stack does not say; a simulated cache has an eighth as far as its flash has room.
        #[serde(skip_serializing_if = "Option::is_none")]
        spare_share: Option<f64> => "0 to 1", "see the meaning";
        /// Blocks that may be on their way out at once, beside the capacity.
        destage_slots: u32 = 64 => "a whole number";
        /// When a destage counts as done.
        destage: Word<Destage> = Word(Destage::Durable) => r#"`"durable"`: when it is durable below; `"cached"`: when the write cache of the drive below has it, as in PORE's prototype; for simulation only"#;
        /// Whether it keeps a journal, as it does when it is served from files; not when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
        /// Blocks of the ring of its journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// Blocks of data it may write without a flush.
        #[serde(skip_serializing_if = "Option::is_none")]
        unflushed_blocks_max: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
    }
}

impl Deref for CacheConfig {
    type Target = CacheKeys;

    fn deref(&self) -> &CacheKeys {
        &self.keys
    }
}

impl DerefMut for CacheConfig {
    fn deref_mut(&mut self) -> &mut CacheKeys {
        &mut self.keys
    }
}

impl Kind for CacheConfig {
    const NAME: &'static str = "write-back-cache";
    const PLACE: Place = Place::Cache;

    fn of_policies() -> Vec<(&'static str, Vec<Key>)> {
        policies()
    }
}

impl Keys for CacheConfig {
    const NAMES: &'static [&'static str] = CacheKeys::NAMES;

    fn keys() -> Vec<Key> {
        CacheKeys::keys()
    }

    fn read(mut keys: toml::Table) -> Result<CacheConfig, KeyError> {
        let policy = keys.get(POLICY).and_then(toml::Value::as_str);
        let policy = policy.unwrap_or_default().to_string();
        let own = keys_of_policy(&policy).unwrap_or_default();
        if let Some(error) = stray_key(&keys, &policy, &own) {
            return Err(error);
        }
        let is_of_policy = |key: &str| key == POLICY || has_key(&own, key);
        let of_policy: toml::Table =
            keys.iter().filter(|(key, _)| is_of_policy(key)).map(owned).collect();
        keys.retain(|key, _| !is_of_policy(key));
        if of_policy.is_empty() {
            return Err(KeyError::of_none(format!("missing field `{POLICY}`")));
        }
        let policy = PolicyConfig::read(of_policy)?;
        Ok(CacheConfig { keys: CacheKeys::read(keys)?, policy })
    }
}

fn owned((key, value): (&String, &toml::Value)) -> (String, toml::Value) {
    (key.clone(), value.clone())
}

/// What to say of a key that a cache of the `policy` with its `own` keys does not have; nothing of
/// an unknown policy, unless no policy has the key.
fn stray_key(keys: &toml::Table, policy: &str, own: &[Key]) -> Option<KeyError> {
    let own_names = own.iter().map(|key| key.name);
    let known = || CacheKeys::NAMES.iter().copied().chain([POLICY]).chain(own_names.clone());
    let is_known = |key: &str| known().any(|known| known == key) || has_key(own, key);
    let is_policy = keys_of_policy(policy).is_some();
    let strays = keys.keys().filter(|key| !is_known(key));
    let told = |key: &String| match owner_of(policy, key) {
        Some(owner) if is_policy => {
            let node = keys.get("name").and_then(toml::Value::as_str);
            let node = node.unwrap_or("cache");
            Some(KeyError::of(
                key,
                format!(
                    "`{node}.{key}` belongs to policy \"{owner}\"; this node has policy \"{policy}\""
                ),
            ))
        }
        Some(_) => None,
        None => {
            let known: Vec<String> = known().map(|key| format!("`{key}`")).collect();
            let known = known.join(", ");
            let words = format!("unknown field `{key}`, expected one of {known}");
            Some(KeyError::of(key, words))
        }
    };
    strays.into_iter().find_map(told)
}

/// The fast disk that keeps cached blocks, and what it caches.
pub struct CachePorts;

impl Ports for CachePorts {
    const PORTS: &'static [PortKey] = &[one("flash"), one("backing")];
    const FORM: Form = Form::Table;
}

words! {
    /// When a destage counts as done.
    pub enum Destage {
        /// When it is durable below, so that what was durable in the cache always is.
        Durable = "durable",
        /// When the write cache of the drive below has it, as in PORE's prototype (MSST 2017):
        /// quicker, but a power cut can lose what was durable before.
        Cached = "cached",
    }
}

impl Node for CacheConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.one("flash"),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            unflushed_blocks_max: self.unflushed_blocks_max,
            others: vec![],
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        members()
    }

    fn is_write_only(&self) -> bool {
        self.mode.0 == CacheMode::WriteOnly
    }

    fn destages_into_caches(&self) -> bool {
        self.destage.0 == Destage::Cached
    }

    fn refused_by_serving(&self) -> Option<String> {
        let policy = self.policy.brought()?.as_str();
        Some(format!(
            "node `{}`: policy = \"{policy}\" cannot be served: it is there to be tried in simulations; accepted: a \
             policy of imbrex",
            self.name
        ))
    }

    fn brought_policy(&self) -> Option<&BroughtName> {
        self.policy.brought()
    }

    fn owner_of(&self, key: &str) -> Option<&'static str> {
        owner_of(self.policy.policy().name(), key)
    }

    fn checks(&self, below: &str) -> bool {
        below == self.below.one("flash")
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Cache)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let room = world.room(self.below.one("backing"), scale)?;
        Ok(served(room, self.durability(world)))
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        if self.policy.policy().foresees() && asked.writer != Writer::Host {
            return Err(wrong(
                &self.name,
                &"policy = \"opt\" knows what the host will ask for; accepted: in the cache at the \
                  top of the stack",
            ));
        }
        let brought = self.policy.brought().map(|name| world.config.brought.get(name).cloned());
        let brought = brought.transpose().map_err(|words| wrong(&self.name, &words))?;
        if let Some(share) = self.spare_share.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(wrong(
                &self.name,
                &format_args!("spare_share = {share}; accepted: 0 to 1"),
            ));
        }
        let durability = self.durability(world);
        let reserved = CacheSettings::reserved_blocks(durability);
        let backing_blocks = BlockCount(asked.blocks.0 + reserved);
        let flash = self.flash_asked(backing_blocks, world)?;
        let planned = PlannedCache { config: self.clone(), backing_blocks, durability, brought };
        Ok((Box::new(planned), asked_below(asked, flash, durability)))
    }
}

/// The members of a cache.
pub(super) fn members() -> Vec<(Cow<'static, str>, Port)> {
    vec![("flash".into(), Cache::FLASH), ("backing".into(), Cache::BACKING)]
}

/// Blocks that a cache serves over a backing.
pub(super) fn served(backing: BlockCount, durability: Option<DurabilitySettings>) -> BlockCount {
    let reserved = CacheSettings::reserved_blocks(durability);
    BlockCount(backing.0.saturating_sub(reserved))
}

/// What a cache asks of the nodes below, of which the flash is to have so many blocks.
pub(super) fn asked_below(
    asked: Asked,
    flash: BlockCount,
    durability: Option<DurabilitySettings>,
) -> Vec<Asked> {
    let reserved = CacheSettings::reserved_blocks(durability);
    let backing = Asked {
        blocks: BlockCount(asked.blocks.0 + reserved),
        scale: asked.scale,
        writer: Writer::Layer,
        is_part: false,
    };
    // A cache is as large as it is told to be, whatever the scale of what it caches.
    let flash = Asked { blocks: flash, scale: 1, writer: Writer::Layer, is_part: false };
    vec![flash, backing]
}

/// Builds a cache.
pub(super) fn build(
    node: &str,
    settings: CacheSettings,
    below: &Below<'_>,
    facts: impl Fn(Facts) -> super::Facts,
) -> Result<Part, ConfigError> {
    let (flash, backing) = (below.offers[0], below.offers[1]);
    let known = Facts {
        capacity_blocks: settings.capacity_blocks,
        destage_slots: u64::from(settings.destage_slots_max),
        of_policy: settings.policy.groups(),
        is_durable: settings.durability.is_some(),
        brought: match &settings.policy {
            PolicySettings::Brought(policy) => Some(policy.name.clone()),
            _ => None,
        },
    };
    let (layer, geometry) = Cache::new(settings, &flash.geometry, &backing.geometry)
        .map_err(|error| wrong(node, &error))?;
    Ok(Part {
        body: Body::Layer(Box::new(layer)),
        offer: Offer::over(geometry),
        facts: facts(known),
    })
}

impl CacheConfig {
    fn durability(&self, world: &World<'_>) -> Option<DurabilitySettings> {
        self.journal().and_then(|it| it.settings(world.options))
    }

    /// Blocks of flash that it asks for.
    fn flash_asked(
        &self,
        backing: BlockCount,
        world: &World<'_>,
    ) -> Result<BlockCount, ConfigError> {
        let durability = self.durability(world);
        // A cache without a bound is as large as what it caches, which no drive may be.
        if self.policy.policy().is_unbounded() {
            return Ok(self.flash_blocks(backing, durability));
        }
        if world.options.trim_disks {
            // No workload is known of what is served.
            let whole = Footprint::whole_device(world.device.bytes());
            let capacity = BlockCount::from_bytes_floor(match self.capacity {
                SizeOrShare::Size(size) => size.bytes(),
                share => whole.bytes_of(share),
            });
            let capacity = BlockCount(capacity.0.max(1));
            let asked = self.flash_blocks(capacity, durability);
            let room = world.room(self.below.one("flash"), 1)?;
            self.check_spare_slots(capacity.0, (asked.0, room.0))?;
            return Ok(asked);
        }
        world.room(self.below.one("flash"), 1)
    }

    /// Spare slots beside a capacity, where the stack says how many.
    fn spare_slots(&self, capacity_blocks: u64) -> Option<u64> {
        Some((capacity_blocks as f64 * self.spare_share?) as u64)
    }

    /// Refuses spare slots for which the flash has no room, where it has room for all else.
    fn check_spare_slots(
        &self,
        capacity_blocks: u64,
        (asked, room): (u64, u64),
    ) -> Result<(), ConfigError> {
        let spare = self.spare_slots(capacity_blocks).unwrap_or(0);
        let lacking = asked.saturating_sub(room);
        if lacking == 0 || lacking > spare {
            return Ok(());
        }
        let most = (spare - lacking) * 10_000 / capacity_blocks;
        Err(wrong(
            &self.name,
            &format_args!(
                "spare_share = {}: the flash is {} too small for so many spare slots; accepted: at most {}",
                self.spare_share.unwrap_or_default(),
                Size(lacking * BLOCK_BYTES),
                most as f64 / 10_000.0
            ),
        ))
    }

    /// Blocks of flash under a cache that holds `capacity`.
    fn flash_blocks(
        &self,
        capacity: BlockCount,
        durability: Option<DurabilitySettings>,
    ) -> BlockCount {
        let settings = CacheSettings {
            capacity_blocks: capacity.0,
            destage_slots_max: self.destage_slots,
            destage: Durability::Durable,
            mode: CacheMode::ReadWrite,
            policy: PolicySettings::LRU,
            durability,
            spare_slots: self.spare_slots(capacity.0),
        };
        settings.flash_blocks()
    }
}

struct PlannedCache {
    config: CacheConfig,
    /// Blocks of what it caches.
    backing_blocks: BlockCount,
    durability: Option<DurabilitySettings>,
    /// Its policy, where a program brings that with it.
    brought: Option<BroughtPolicy>,
}

impl PlannedCache {
    fn settings(&self, known: &Known<'_>, backing: &Offer) -> Result<CacheSettings, ConfigError> {
        let config = &self.config;
        let is_unbounded = config.policy.policy().is_unbounded();
        let bytes = match config.capacity {
            SizeOrShare::Size(size) => at_least_a_block(&config.name, "capacity", size)?.bytes(),
            share if !is_unbounded => share_bytes(known.footprint, "capacity", share)?,
            SizeOrShare::Share { .. } => 0,
        };
        let given = PolicyGiven {
            node: &config.name,
            log: backing.geometry.log,
            mean_band: backing.mean_band,
            lookups: known.lookups,
            brought: self.brought.as_ref(),
        };
        let policy = config.policy.policy().settings(&given)?;
        let capacity_blocks = match is_unbounded {
            true => self.backing_blocks.0,
            false => BlockCount::from_bytes_floor(bytes).0.max(1),
        };
        Ok(CacheSettings {
            capacity_blocks,
            destage_slots_max: config.destage_slots,
            destage: match config.destage.0 {
                Destage::Durable => Durability::Durable,
                Destage::Cached => Durability::Cached,
            },
            mode: config.mode.0,
            policy,
            durability: self.durability,
            spare_slots: config.spare_slots(capacity_blocks),
        })
    }
}

impl Planned for PlannedCache {
    fn needs_lookups(&self) -> bool {
        self.config.policy.policy().foresees()
    }

    fn has_share(&self) -> bool {
        matches!(self.config.capacity, SizeOrShare::Share { .. })
            && !self.config.policy.policy().is_unbounded()
    }

    fn build(&self, known: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let settings = self.settings(known, below.offers[1])?;
        build(&self.config.name, settings, below, super::Facts::WriteBackCache)
    }
}

/// What a report needs to know of a cache.
pub struct Facts {
    /// What its policy counts and tells of its state.
    pub of_policy: &'static [Group],
    /// Capacity; one without a bound has that of the device.
    pub capacity_blocks: u64,
    /// Blocks that may be on their way out beside the capacity.
    pub destage_slots: u64,
    /// Whether it keeps a journal.
    pub is_durable: bool,
    /// Its policy, where a program brings it with it.
    pub brought: Option<String>,
}

impl Reported for Facts {
    fn resolved(&self) -> Map<String, Value> {
        let capacity = Size(self.capacity_blocks * BLOCK_BYTES).to_string();
        Map::from_iter([("capacity".to_owned(), capacity.into())])
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = vec![WRITE_BACK_CACHE, CACHED, DIRTY];
        groups.extend(self.is_durable.then_some(JOURNAL));
        groups.extend(self.of_policy);
        groups
    }

    fn roles(&self) -> Vec<NodeRole> {
        vec![NodeRole::Cache]
    }

    fn buffers(&self) -> Option<BufferedIn> {
        Some(BufferedIn::FirstPort(self.capacity_blocks * BLOCK_BYTES))
    }

    fn tell(&self, run: &mut Run) {
        let others = run.cache.capacity_blocks.unwrap_or(0);
        run.cache.capacity_blocks = Some(others + self.capacity_blocks);
        run.cache.brought_policies.extend(self.brought.clone());
    }
}

/// A size of a cache that must hold something.
///
/// # Errors
/// When it is less than one block.
pub(super) fn at_least_a_block(node: &str, key: &str, size: Size) -> Result<Size, ConfigError> {
    if size.bytes() < BLOCK_BYTES {
        let words = format!("{key} = \"{size}\"; accepted: one block (4096 B) or more");
        return Err(wrong(node, &words));
    }
    Ok(size)
}
