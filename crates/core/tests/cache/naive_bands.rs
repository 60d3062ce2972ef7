//! MOST and SAC once more, from the page on policies (`docs/systems/policies.md`), with one vector that is
//! searched from end to end for everything.

use crate::naive::Model;
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::units::Lba;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

fn band_of(bands: &BandTable, x: u64) -> u32 {
    bands.band_of(Lba(x)).0
}

/// The band of which the most is cached leaves whole.
pub struct Most {
    pub capacity: usize,
    pub bands: Arc<BandTable>,
    pub cached: BTreeSet<u64>,
}

impl Model for Most {
    fn holds(&self, x: u64) -> bool {
        self.cached.contains(&x)
    }

    fn request(&mut self, x: u64) -> Vec<u64> {
        if self.holds(x) {
            return vec![];
        }
        let mut victims = vec![];
        if self.cached.len() == self.capacity {
            for band in 0..self.bands.bands() {
                let of_band = self.cached.iter().copied();
                let of_band = of_band.filter(|y| band_of(&self.bands, *y) == band);
                let of_band: Vec<u64> = of_band.collect();
                if of_band.len() > victims.len() {
                    victims = of_band;
                }
            }
        }
        self.cached.retain(|y| !victims.contains(y));
        self.cached.insert(x);
        victims
    }

    fn forget(&mut self, x: u64) {
        self.cached.remove(&x);
    }
}

#[derive(Clone, Copy)]
struct Cached {
    x: u64,
    is_dirty: bool,
    used: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Turn {
    Nobody,
    Clean { left: usize },
    Dirty,
}

pub struct Sac {
    capacity: usize,
    bands: Arc<BandTable>,
    log: u64,
    batch: usize,
    now: u64,
    cached: Vec<Cached>,
    /// The bands that were opened last.
    opened: Vec<u32>,
    turn: Turn,
    /// How often the dirty blocks were to leave though there were clean ones.
    dirty_by_choice: Rc<Cell<u64>>,
}

impl Sac {
    pub fn new(
        capacity: usize,
        bands: Arc<BandTable>,
        log: u64,
        batch: usize,
        dirty_by_choice: Rc<Cell<u64>>,
    ) -> Sac {
        let (cached, opened, turn) = (vec![], vec![], Turn::Nobody);
        Sac { capacity, bands, log, batch, now: 0, cached, opened, turn, dirty_by_choice }
    }

    fn is_stale(&self, block: &Cached) -> bool {
        self.now - block.used >= self.capacity as u64 * 4 / 5
    }

    /// The clean blocks, or the dirty ones of some bands, the least recently used first.
    fn clean(&self) -> Vec<Cached> {
        self.by_age(|block| !block.is_dirty)
    }

    fn dirty_of(&self, bands: &[u32]) -> Vec<Cached> {
        self.by_age(|block| block.is_dirty && bands.contains(&band_of(&self.bands, block.x)))
    }

    fn by_age(&self, which: impl Fn(&Cached) -> bool) -> Vec<Cached> {
        let mut blocks: Vec<Cached> = self.cached.iter().copied().filter(|b| which(b)).collect();
        blocks.sort_by_key(|block| block.used);
        blocks
    }

    fn stale_in(&self, blocks: &[Cached]) -> usize {
        blocks.iter().filter(|block| self.is_stale(block)).count()
    }

    /// The bands with dirty blocks but those that were opened last, the stalest first, then by number; as
    /// many as the log could hold in whole, and the first in any case.
    fn next_bands(&self) -> Vec<u32> {
        let numbers = 0..self.bands.bands();
        let is_choice =
            |band: &u32| !self.opened.contains(band) && !self.dirty_of(&[*band]).is_empty();
        let mut choice: Vec<u32> = numbers.filter(is_choice).collect();
        choice.sort_by_key(|band| usize::MAX - self.stale_in(&self.dirty_of(&[*band])));
        let length = |band: &u32| self.bands.extent_of(BandId(*band)).blocks.0;
        let fit =
            (1..=choice.len()).filter(|n| choice[..*n].iter().map(length).sum::<u64>() <= self.log);
        let fit = fit.max().unwrap_or(1).min(choice.len());
        choice.truncate(fit);
        choice
    }

    fn compare(&mut self) {
        let clean_turn = Turn::Clean { left: (self.capacity / 80).max(1) };
        if self.cached.iter().all(|block| !block.is_dirty) {
            self.turn = clean_turn;
            return;
        }
        let mut next = self.next_bands();
        if next.is_empty() {
            self.opened.clear();
            next = self.next_bands();
        }
        let clean = self.clean();
        if !clean.is_empty() {
            let some = &clean[..clean.len().min((self.capacity / 80).max(1))];
            let stale = self.stale_in(some);
            let clean_cost = (some.len() - stale) as f64 * 14_000.0 / (stale + 1) as f64;
            let dirty = self.dirty_of(&next);
            let rewrites = next.len() as f64 * 435_833.0 + dirty.len() as f64 * 728.0;
            if clean_cost < rewrites / (self.stale_in(&dirty) + 1) as f64 {
                self.turn = clean_turn;
                return;
            }
            self.dirty_by_choice.set(self.dirty_by_choice.get() + 1);
        }
        self.opened = next;
        self.turn = Turn::Dirty;
    }

    fn evict(&mut self) -> Vec<u64> {
        let has_nobody = match self.turn {
            Turn::Nobody => true,
            Turn::Clean { .. } => self.clean().is_empty(),
            Turn::Dirty => self.dirty_of(&self.opened).is_empty(),
        };
        if has_nobody {
            self.compare();
        }
        let victims: Vec<u64> = match self.turn {
            Turn::Clean { .. } => vec![self.clean()[0].x],
            _ => {
                let oldest = self.dirty_of(&self.opened)[0];
                let of_band = self.dirty_of(&[band_of(&self.bands, oldest.x)]);
                of_band.iter().take(self.batch).map(|block| block.x).collect()
            }
        };
        self.cached.retain(|block| !victims.contains(&block.x));
        self.turn = match self.turn {
            Turn::Clean { left } if left > 1 && !self.clean().is_empty() => {
                Turn::Clean { left: left - 1 }
            }
            Turn::Dirty if !self.dirty_of(&self.opened).is_empty() => Turn::Dirty,
            _ => Turn::Nobody,
        };
        victims
    }
}

impl Model for Sac {
    fn holds(&self, x: u64) -> bool {
        self.cached.iter().any(|block| block.x == x)
    }

    fn request(&mut self, _: u64) -> Vec<u64> {
        panic!("it must know whether the block is written")
    }

    fn request_to(&mut self, x: u64, is_write: bool) -> Vec<u64> {
        let was = self.cached.iter().position(|block| block.x == x);
        let was_dirty = was.is_some_and(|at| self.cached.remove(at).is_dirty);
        let victims = if self.cached.len() == self.capacity { self.evict() } else { vec![] };
        self.now += 1;
        self.cached.push(Cached { x, is_dirty: is_write || was_dirty, used: self.now });
        victims
    }

    fn forget(&mut self, x: u64) {
        self.cached.retain(|block| block.x != x);
    }
}
