//! What a controller has decided and why, for whoever watches it.

use super::decision::{Observed, Regime};
use super::ghost::GhostEvent;
use crate::units::{Duration, Instant};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

/// A decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// When it fell.
    pub at: Instant,
    /// What it was made of.
    pub observed: Observed,
    /// Which equation has decided.
    pub regime: Regime,
    /// How long the drive is left idle.
    pub idle: Duration,
}

/// Something that a controller tells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Told {
    /// It has decided.
    Decision(Decision),
    /// Its books have changed.
    Ghost {
        /// When.
        at: Instant,
        /// How.
        event: GhostEvent,
    },
    /// The drive was asked for its zones, or a period has ended without; what the books say now.
    Period {
        /// When.
        at: Instant,
        /// U.
        used: f64,
    },
}

/// What a controller tells whoever watches it; nothing where nobody does.
#[derive(Clone, Default, Debug)]
pub struct DecisionLog(Rc<RefCell<Option<Vec<Told>>>>);

impl DecisionLog {
    /// Everything is kept from now on, until it is [taken](Self::take).
    pub fn watch(&self) {
        self.0.borrow_mut().get_or_insert_default();
    }

    /// What was told since this was asked last.
    pub fn take(&self) -> Vec<Told> {
        self.0.borrow_mut().as_mut().map(core::mem::take).unwrap_or_default()
    }

    pub(super) fn tell(&self, told: Told) {
        if let Some(kept) = self.0.borrow_mut().as_mut() {
            kept.push(told);
        }
    }
}
