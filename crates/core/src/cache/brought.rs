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

/// The code of the policy of one cache: it hears a call, or fails.
pub type PolicyCode = Box<dyn FnMut(PolicyCall<'_>) -> Result<(), BroughtFailure>>;

/// Makes the code of the policy of an empty cache, or fails.
pub type MakePolicy = dyn Fn(&CacheToFill) -> Result<PolicyCode, BroughtFailure> + Send + Sync;

/// Makes a run in which caches have policies: their code may want something to hold on the thread meanwhile.
pub type Surround = dyn Fn(&mut (dyn FnMut() + Send)) + Send + Sync;

/// A policy that a program brings with it.
#[derive(Clone)]
pub struct BroughtPolicy {
    /// Its name in stacks.
    pub name: String,
    /// Makes one for each cache.
    pub make: Arc<MakePolicy>,
    /// Makes the runs of caches that have it.
    pub surround: Arc<Surround>,
}

impl fmt::Debug for BroughtPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroughtPolicy").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What makes policies is no value: two are the same when they are one.
impl PartialEq for BroughtPolicy {
    fn eq(&self, other: &BroughtPolicy) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl Eq for BroughtPolicy {}

/// What a policy may know of the cache that it is for.
#[derive(Clone, Debug)]
pub struct CacheToFill {
    /// Blocks that it holds.
    pub capacity: BlockCount,
    /// What it caches: its blocks, and where they are known its bands and the size of its log.
    pub backing: Geometry,
}

/// A call of a method of [`EvictionPolicy`], as code outside this crate hears it: by the addresses of blocks.
#[derive(Debug)]
pub enum PolicyCall<'a> {
    /// [`EvictionPolicy::before_insert`].
    BeforeInsert(Lba),
    /// [`EvictionPolicy::on_insert`].
    Insert(Lba, AccessKind),
    /// [`EvictionPolicy::on_access`].
    Access(Lba, AccessKind),
    /// [`EvictionPolicy::on_write_around`].
    WriteAround(Extent),
    /// [`EvictionPolicy::victims`], which appends blocks.
    Victims(&'a mut Vec<Lba>),
    /// [`EvictionPolicy::on_remove`].
    Remove(Lba),
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
    code: Result<PolicyCode, BroughtFailure>,
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
            code: (policy.make)(cache),
            lbas: Vec::new(),
            entries: BTreeMap::new(),
            chosen: Vec::new(),
        }
    }

    /// Calls the code, unless it has failed before.
    fn call(&mut self, call: PolicyCall<'_>) {
        if let Ok(code) = &mut self.code
            && let Err(failure) = code(call)
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
        self.call(PolicyCall::BeforeInsert(lba));
    }

    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, _: &mut PolicyEvents) {
        let index = entry as usize;
        if index >= self.lbas.len() {
            self.lbas.resize(index + 1, lba);
        }
        self.lbas[index] = lba;
        self.entries.insert(lba, entry);
        self.call(PolicyCall::Insert(lba, kind));
    }

    fn on_access(&mut self, entry: u32, kind: AccessKind, _: &mut PolicyEvents) {
        let lba = self.lbas[entry as usize];
        self.call(PolicyCall::Access(lba, kind));
    }

    fn on_write_around(&mut self, extent: Extent, _: &mut PolicyEvents) {
        self.call(PolicyCall::WriteAround(extent));
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        let (mut chosen, from) = (core::mem::take(&mut self.chosen), victims.len());
        chosen.clear();
        self.call(PolicyCall::Victims(&mut chosen));
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
        self.call(PolicyCall::Remove(lba));
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
