//! A policy that comes from outside: LRU, by addresses alone.

use imbrex_core::cache::{
    AccessKind, BroughtPolicy, CacheToFill, MakePolicy, PolicyCode, PolicySettings,
};
use imbrex_core::error::BroughtFailure;
use imbrex_core::extent::Extent;
use imbrex_core::units::Lba;
use std::sync::Arc;

/// The name of the policy.
pub const NAME: &str = "test:lru";

/// Makes it, and says what goes wrong when victims are wanted for so many times.
#[derive(Debug)]
pub struct OutsideLru {
    pub fails_at: u64,
    pub with: Wrong,
}

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

/// The settings of such a policy, which goes wrong when victims are wanted for the `fails_at`th time.
pub fn outside_lru(fails_at: u64, with: Wrong) -> PolicySettings {
    let maker = Arc::new(OutsideLru { fails_at, with });
    PolicySettings::Brought(BroughtPolicy { name: NAME.to_string(), maker })
}

struct Code {
    /// From the least recently used.
    order: Vec<Lba>,
    asked: u64,
    fails_at: u64,
    with: Wrong,
}

impl MakePolicy for OutsideLru {
    fn make(&self, _: &CacheToFill) -> Result<Box<dyn PolicyCode>, BroughtFailure> {
        let Self { fails_at, with } = *self;
        match with {
            Wrong::NoCode => Err(Arc::new(Outside)),
            _ => Ok(Box::new(Code { order: vec![], asked: 0, fails_at, with })),
        }
    }
}

impl PolicyCode for Code {
    fn before_insert(&mut self, lba: Lba) -> Result<(), BroughtFailure> {
        assert!(!self.order.contains(&lba), "it is cached");
        Ok(())
    }

    fn on_insert(&mut self, lba: Lba, _: AccessKind) -> Result<(), BroughtFailure> {
        assert!(!self.order.contains(&lba), "it is cached");
        self.order.push(lba);
        Ok(())
    }

    fn on_access(&mut self, lba: Lba, kind: AccessKind) -> Result<(), BroughtFailure> {
        self.on_remove(lba)?;
        self.on_insert(lba, kind)
    }

    fn on_write_around(&mut self, extent: Extent) -> Result<(), BroughtFailure> {
        assert!(self.order.iter().all(|lba| !extent.contains(*lba)), "none is cached");
        Ok(())
    }

    fn victims(&mut self, victims: &mut Vec<Lba>) -> Result<(), BroughtFailure> {
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

    fn on_remove(&mut self, lba: Lba) -> Result<(), BroughtFailure> {
        let at = self.order.iter().position(|other| *other == lba).expect("it is cached");
        self.order.remove(at);
        Ok(())
    }
}
