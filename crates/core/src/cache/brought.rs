//! Policies that the program which simulates brings with it: code that this crate does not know, and that may fail.
//!
//! Such code is told of blocks by their addresses. What it answers is checked, and when it fails or answers what
//! cannot be, the cache refuses every request from then on and says [why](super::EvictionPolicy::failure).

use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::disk::Geometry;
use crate::error::BroughtFailure;
use crate::extent::Extent;
use crate::saved::{Saved, SavedReader, SavedWriter};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::{BlockCount, Lba};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// The settings of a cache see to it.
const NEVER_DURABLE: &str = "a policy that was brought cannot be durable";

/// A policy that a program brings with it.
#[derive(Clone, Debug)]
pub struct BroughtPolicy {
    /// Its name in stacks.
    pub name: String,
    /// Makes one for each cache.
    pub maker: Arc<dyn MakePolicy>,
}

/// What makes policies is no value: two are the same when they are one.
impl PartialEq for BroughtPolicy {
    fn eq(&self, other: &BroughtPolicy) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.maker, &other.maker)
    }
}

impl Eq for BroughtPolicy {}

/// Makes the policy of each cache that is built.
pub trait MakePolicy: fmt::Debug + Send + Sync {
    /// The policy of an empty cache.
    ///
    /// # Errors
    /// When the code that makes it fails.
    fn make(&self, cache: &CacheToFill) -> Result<Box<dyn PolicyCode>, BroughtFailure>;

    /// Makes a run in which caches have such policies: the code may want something to hold on the thread meanwhile.
    fn surround(&self, run: &mut (dyn FnMut() + Send)) {
        run();
    }
}

/// What a policy may know of the cache that it is for.
#[derive(Clone, Debug)]
pub struct CacheToFill {
    /// Blocks that it holds.
    pub capacity: BlockCount,
    /// What it caches: its blocks, and where they are known its bands and the size of its log.
    pub backing: Geometry,
}

/// [`EvictionPolicy`] as code outside this crate has it: by addresses, and it may fail.
pub trait PolicyCode {
    /// As [`EvictionPolicy::before_insert`].
    ///
    /// # Errors
    /// When the code fails.
    fn before_insert(&mut self, lba: Lba) -> Result<(), BroughtFailure>;

    /// As [`EvictionPolicy::on_insert`].
    ///
    /// # Errors
    /// When the code fails.
    fn on_insert(&mut self, lba: Lba, kind: AccessKind) -> Result<(), BroughtFailure>;

    /// As [`EvictionPolicy::on_access`].
    ///
    /// # Errors
    /// When the code fails.
    fn on_access(&mut self, lba: Lba, kind: AccessKind) -> Result<(), BroughtFailure>;

    /// As [`EvictionPolicy::on_write_around`].
    ///
    /// # Errors
    /// When the code fails.
    fn on_write_around(&mut self, extent: Extent) -> Result<(), BroughtFailure>;

    /// As [`EvictionPolicy::victims`].
    ///
    /// # Errors
    /// When the code fails, or gives no addresses.
    fn victims(&mut self, victims: &mut Vec<Lba>) -> Result<(), BroughtFailure>;

    /// As [`EvictionPolicy::on_remove`].
    ///
    /// # Errors
    /// When the code fails.
    fn on_remove(&mut self, lba: Lba) -> Result<(), BroughtFailure>;
}

/// What a policy has chosen that cannot leave.
#[derive(Clone, PartialEq, Eq, Debug)]
struct WrongVictims {
    policy: String,
    /// What it chose, and what it might have.
    words: String,
}

impl fmt::Display for WrongVictims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy = \"{}\": victims: {}", self.policy, self.words)
    }
}

impl core::error::Error for WrongVictims {}

/// Code that was brought, as the policy of a cache.
pub(super) struct Brought {
    name: String,
    /// The code, or why it is not asked any more.
    code: Result<Box<dyn PolicyCode>, BroughtFailure>,
    /// By entry; what is not cached has its last address.
    lbas: Vec<Lba>,
    /// The cached blocks.
    entries: BTreeMap<Lba, u32>,
    /// Used within one call only; kept for its memory.
    chosen: Vec<Lba>,
}

impl Brought {
    pub(super) fn new(policy: &BroughtPolicy, cache: &CacheToFill) -> Brought {
        Brought {
            name: policy.name.clone(),
            code: policy.maker.make(cache),
            lbas: Vec::new(),
            entries: BTreeMap::new(),
            chosen: Vec::new(),
        }
    }

    /// Asks the code, unless it has failed before.
    fn ask(&mut self, ask: impl FnOnce(&mut dyn PolicyCode) -> Result<(), BroughtFailure>) {
        if let Ok(code) = &mut self.code
            && let Err(failure) = ask(&mut **code)
        {
            self.code = Err(failure);
        }
    }

    /// Appends the blocks that the code has chosen.
    fn take_chosen(&self, victims: &mut Vec<u32>) -> Result<(), String> {
        let (cached, mut known) = (self.entries.len(), BTreeSet::new());
        for lba in &self.chosen {
            let Some(entry) = self.entries.get(lba) else {
                return Err(format!(
                    "block {} is not in the cache; accepted: some of the {cached} that are",
                    lba.0
                ));
            };
            if !known.insert(*entry) {
                return Err(format!("block {} is there twice; accepted: each once", lba.0));
            }
            victims.push(*entry);
        }
        match self.chosen.is_empty() {
            false => Ok(()),
            true => {
                Err(format!("there is none; accepted: some of the {cached} blocks in the cache"))
            }
        }
    }
}

impl EvictionPolicy for Brought {
    fn before_insert(&mut self, lba: Lba) {
        self.ask(|code| code.before_insert(lba));
    }

    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, _: &mut PolicyEvents) {
        let index = entry as usize;
        if index >= self.lbas.len() {
            self.lbas.resize(index + 1, lba);
        }
        self.lbas[index] = lba;
        self.entries.insert(lba, entry);
        self.ask(|code| code.on_insert(lba, kind));
    }

    fn on_access(&mut self, entry: u32, kind: AccessKind, _: &mut PolicyEvents) {
        let lba = self.lbas[entry as usize];
        self.ask(|code| code.on_access(lba, kind));
    }

    fn on_write_around(&mut self, extent: Extent, _: &mut PolicyEvents) {
        self.ask(|code| code.on_write_around(extent));
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        let (mut chosen, from) = (core::mem::take(&mut self.chosen), victims.len());
        chosen.clear();
        self.ask(|code| code.victims(&mut chosen));
        self.chosen = chosen;
        if self.code.is_ok()
            && let Err(words) = self.take_chosen(victims)
        {
            self.code = Err(Arc::new(WrongVictims { policy: self.name.clone(), words }));
        }
        if self.code.is_err() {
            // The request goes on to its end, whoever leaves for it.
            victims.truncate(from);
            victims.extend(self.entries.values().next());
        }
    }

    fn on_remove(&mut self, entry: u32) {
        let lba = self.lbas[entry as usize];
        self.entries.remove(&lba);
        self.ask(|code| code.on_remove(lba));
    }

    fn failure(&self) -> Option<BroughtFailure> {
        self.code.as_ref().err().cloned()
    }

    fn save(&self, _: &[u32], _: &mut StateWriter) {
        unreachable!("{NEVER_DURABLE}")
    }

    fn restore(&mut self, _: &[CachedBlock], _: &mut StateReader<'_>) -> Result<(), StateError> {
        unreachable!("{NEVER_DURABLE}")
    }
}

/// Nobody knows what the code keeps.
impl Saved for Brought {
    fn save_into(&self, to: &mut SavedWriter) {
        to.refuse("policy");
    }

    fn load_from(&mut self, _: &mut SavedReader<'_>) -> Result<(), StateError> {
        Err(StateError::new("a policy that was brought takes no state back"))
    }
}
