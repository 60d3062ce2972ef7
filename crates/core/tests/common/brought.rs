//! A policy that comes from outside: LRU, by addresses alone.

use imbrex_core::cache::{BroughtPolicy, CacheToFill, PolicyCall, PolicyCode, PolicySettings};
use imbrex_core::error::BroughtFailure;
use imbrex_core::units::Lba;
use std::sync::Arc;

/// The name of the policy.
pub const NAME: &str = "test:lru";

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    NoCode,
    Fails,
    NoVictim,
    NotCached,
    Twice,
}

/// A failure of the code.
#[derive(Debug)]
pub struct Outside;

impl std::fmt::Display for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the code has failed")
    }
}

impl std::error::Error for Outside {}

/// Such a policy, which goes wrong when victims are wanted for the `fails_at`th time.
pub fn outside(fails_at: u64, with: Wrong) -> BroughtPolicy {
    let make = move |_: &CacheToFill| -> Result<PolicyCode, BroughtFailure> {
        let mut code = Code { order: vec![], asked: 0, fails_at, with };
        match with {
            Wrong::NoCode => Err(Arc::new(Outside)),
            _ => Ok(Box::new(move |call| code.hear(call))),
        }
    };
    BroughtPolicy { name: NAME.to_string(), make: Arc::new(make), surround: Arc::new(|run| run()) }
}

/// Its settings.
pub fn outside_lru(fails_at: u64, with: Wrong) -> PolicySettings {
    PolicySettings::Brought(outside(fails_at, with))
}

struct Code {
    /// From the least recently used.
    order: Vec<Lba>,
    asked: u64,
    fails_at: u64,
    with: Wrong,
}

impl Code {
    fn hear(&mut self, call: PolicyCall<'_>) -> Result<(), BroughtFailure> {
        match call {
            PolicyCall::BeforeInsert(lba) => assert!(!self.order.contains(&lba), "it is cached"),
            PolicyCall::Insert(lba, _) => {
                assert!(!self.order.contains(&lba), "it is cached");
                self.order.push(lba);
            }
            PolicyCall::Access(lba, _) => {
                self.remove(lba);
                self.order.push(lba);
            }
            PolicyCall::WriteAround(extent) => {
                assert!(self.order.iter().all(|lba| !extent.contains(*lba)), "none is cached");
            }
            PolicyCall::Victims(victims) => return self.choose(victims),
            PolicyCall::Remove(lba) => self.remove(lba),
        }
        Ok(())
    }

    fn remove(&mut self, lba: Lba) {
        let at = self.order.iter().position(|other| *other == lba).expect("it is cached");
        self.order.remove(at);
    }

    fn choose(&mut self, victims: &mut Vec<Lba>) -> Result<(), BroughtFailure> {
        self.asked += 1;
        let oldest = self.order[0];
        match self.with {
            wrong if wrong == Wrong::Nothing || self.asked < self.fails_at => victims.push(oldest),
            Wrong::Fails => return Err(Arc::new(Outside)),
            Wrong::NotCached => victims.extend([oldest, Lba(1 << 40)]),
            Wrong::Twice => victims.extend([oldest, oldest]),
            _ => {}
        }
        Ok(())
    }
}
