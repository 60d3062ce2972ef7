//! How a durable cache comes up and goes down.
//!
//! ```text
//! format:  both write-intent pages -> empty journal -> the page says so -> up
//! recover: pages and journal are read -> page -> journal's new epoch -> the page says so -> up
//! close:   last destages -> page -> closing checkpoint -> the page says so -> down
//! ```

use super::codec::CacheCheckpoint;
use super::intent::{INTENT_PAGES, IntentPage, bit};
use super::life::{
    Checkpointing, Closing, FoundPage, Life, Opening, OpeningStep, check_generations,
};
use super::replay::{self, Bounds};
use crate::cache::Cache;
use crate::cache::entries::Flag;
use crate::cache::policy::{AccessKind, PolicyEvents};
use crate::durability::block::BlockError;
use crate::durability::{Lsn, Recovery};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::Stage;
use crate::lifecycle::{OpenError, Start, Uuid};
use crate::planted::PlantedBug;
use crate::state::{StateError, StateReader};
use crate::units::{BlockCount, Lba};
use alloc::boxed::Box;

/// In a stack without numbers the backing's number in the set is the cache's own with this bit.
const BACKING_MEMBER_BIT: u16 = 1 << 15;

impl Cache {
    /// Begins to come up.
    pub(in crate::cache) fn begin_opening(&mut self, start: Start, ctx: &mut Context<'_>) {
        let is_lost = |port| ctx.is_lost(port);
        if is_lost(Cache::FLASH) || is_lost(Cache::BACKING) {
            // Either of them holds blocks that the other one has not.
            return ctx.opened(Err(OpenError::Io(IoError::Lost)));
        }
        let own = ctx.node.0;
        let number = |port, unnumbered| ctx.member_number(port).unwrap_or(unnumbered);
        let flash = number(Cache::FLASH, own);
        let backing = number(Cache::BACKING, own | BACKING_MEMBER_BIT);
        self.ledger.open(start, flash, ctx);
        if self.ledger.stage() == Stage::Opening {
            let mut opening = Opening::new(start, backing);
            if let Start::Recover(_) = start {
                for page in 0..INTENT_PAGES {
                    let buffer = ctx.allocate(BlockCount(1));
                    opening.buffers[page as usize] = buffer;
                    self.read_intent(page, buffer, ctx);
                }
            }
            self.life = Life::Opening(Box::new(opening));
        }
        self.take_ledger_events(ctx);
        self.advance(ctx);
    }

    /// The members are to be formatted: both write-intent pages are written first, because what an
    /// older format has left in either of them must not come back.
    pub(super) fn begin_format(&mut self) {
        let Life::Opening(opening) = &mut self.life else {
            return;
        };
        let (Start::Format(set), Some(flushes)) =
            (opening.start, self.ledger.flushes_of(Cache::BACKING))
        else {
            return;
        };
        opening.step = OpeningStep::Announcing(INTENT_PAGES);
        let member = set.member(opening.backing);
        self.intent.begin(member, None, flushes);
        self.intent.announce(self.ledger.next_generation());
    }

    /// A write-intent page has been read.
    pub(super) fn intent_read(
        &mut self,
        page: u64,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let address = self.intent.address(page);
        let Life::Opening(opening) = &mut self.life else {
            unreachable!("a page was read that nobody asked for")
        };
        let buffer = opening.buffers[page as usize];
        let found = match result.map(|()| ctx.metadata(buffer)) {
            Err(error) => FoundPage::Unreadable(error),
            Ok(None) => FoundPage::Bad(BlockError::Zero),
            Ok(Some(bytes)) => match IntentPage::decode(bytes, address, ignore_address) {
                Ok(page) => FoundPage::Good(page),
                Err(error) => FoundPage::Bad(error),
            },
        };
        opening.pages[page as usize] = Some(found);
        ctx.release(buffer);
        self.recover_if_read(ctx);
    }

    /// The journal has been read, or refused; or a write that comes after that has failed.
    pub(super) fn journal_read(
        &mut self,
        result: Result<Recovery, OpenError>,
        ctx: &mut Context<'_>,
    ) {
        let Life::Opening(opening) = &mut self.life else {
            return;
        };
        match result {
            Err(error) if opening.step != OpeningStep::Reading => {
                self.life = Life::Plain;
                ctx.opened(Err(error));
            }
            result => {
                opening.journal = Some(result);
                self.recover_if_read(ctx);
            }
        }
    }

    fn recover_if_read(&mut self, ctx: &mut Context<'_>) {
        if !matches!(&self.life, Life::Opening(opening) if opening.is_read()) {
            return;
        }
        let Life::Opening(mut opening) = core::mem::replace(&mut self.life, Life::Plain) else {
            unreachable!("it was opening a moment ago")
        };
        match self.recover(&mut opening, ctx) {
            Ok(life) => {
                let is_up = matches!(life, Life::Degraded(_));
                self.life = life;
                if is_up {
                    ctx.opened(Ok(()));
                }
            }
            Err(error) => {
                self.ledger.give_up();
                ctx.opened(Err(error));
            }
        }
    }

    /// Takes back what was read, and begins the new epoch. Nothing has been written until then.
    fn recover(&mut self, opening: &mut Opening, ctx: &mut Context<'_>) -> Result<Life, OpenError> {
        let recovery = opening.journal.take().expect("the journal has been read");
        let Some(page) = opening.newest_page().cloned() else {
            return Err(recovery.err().unwrap_or_else(|| opening.no_page()));
        };
        let recovery = match recovery {
            Ok(recovery) => recovery,
            Err(OpenError::Io(error)) if error != IoError::Lost => {
                return self.degraded(opening, page);
            }
            Err(error) => return Err(error),
        };
        let set = self.ledger.set();
        check_member(&page, set, opening.backing)?;
        self.check_regions(&page)?;
        check_generations(&page, recovery.generation)?;
        let checkpoint = CacheCheckpoint::decode(&recovery.checkpoint)
            .ok_or_else(|| OpenError::damaged("checkpoint", "its lengths do not fit its bytes"))?;
        let bounds = Bounds {
            slots: u64::from(self.slots.total()),
            slot_base: self.slots.base(),
            blocks: self.backing_blocks,
            forgets_trims: ctx.is_planted(PlantedBug::TrimForgottenOnReplay),
        };
        let mappings = replay::replay(&checkpoint, &recovery, bounds)?;
        if let Some(flushes) = self.ledger.flushes_of(Cache::BACKING) {
            self.intent.begin(page.member, Some(&page), flushes);
        }
        for mapping in &mappings {
            self.table.map(*mapping, Lsn(0));
            self.table.forget_place(mapping.slot);
            self.intent.add_users(Extent::new(mapping.lba, 1));
        }
        if checkpoint.state.is_empty() {
            self.rebuild(mappings.iter().map(|mapping| (mapping.lba, mapping.slot)));
        } else {
            self.take_back(&checkpoint)?;
        }
        self.intent.announce(self.ledger.next_generation());
        let mut opening = Opening::new(opening.start, opening.backing);
        opening.step = OpeningStep::Announcing(1);
        Ok(Life::Opening(Box::new(opening)))
    }

    fn check_regions(&self, page: &IntentPage) -> Result<(), OpenError> {
        if !self.intent.fits(page) {
            return Err(OpenError::Settings {
                name: "write-intent regions",
                found: page.regions,
                expected: self.intent.regions(),
            });
        }
        Ok(())
    }

    /// Serves what lies below without the flash, which cannot be read.
    fn degraded(&mut self, opening: &Opening, mut page: IntentPage) -> Result<Life, OpenError> {
        if let Start::Recover(Some(set)) = opening.start {
            check_member(&page, set, opening.backing)?;
        }
        self.check_regions(&page)?;
        if !opening.has_both_pages() {
            // The page that is damaged may have been the newer one.
            page.bits.fill(u64::MAX);
        }
        Ok(Life::Degraded(page))
    }

    /// Builds the cache of a crash: the dirty blocks, inserted in the order in which they came.
    fn rebuild(&mut self, blocks: impl Iterator<Item = (u64, u32)>) {
        let mut used = alloc::vec![false; self.slots.total() as usize];
        for (lba, slot) in blocks {
            let id = self.entries.insert(Lba(lba));
            self.entries.replace_slot(id, slot);
            let entry = self.entries.get_mut(id);
            entry.set(Flag::HoldsData);
            entry.set(Flag::Dirty);
            used[slot as usize] = true;
            self.replacement.cached_blocks += 1;
            self.replacement.dirty_blocks += 1;
            // What the policy makes of it is not what happened in this run.
            let mut events = PolicyEvents::default();
            let policy = &mut self.replacement.policy;
            policy.on_insert(id, Lba(lba), AccessKind::Write, &mut events);
        }
        self.slots.restore(|slot| used[slot as usize]);
    }

    /// Takes back the cache of a clean shutdown.
    fn take_back(&mut self, checkpoint: &CacheCheckpoint) -> Result<(), OpenError> {
        let mut state = StateReader::new(&checkpoint.state);
        let damaged = |error: StateError| OpenError::damaged("cache", error.message);
        if let Some((name, found, expected)) = self.other_identity(&mut state).map_err(damaged)? {
            return Err(OpenError::Settings { name, found, expected });
        }
        self.restore_state(&mut state).map_err(damaged)?;
        for (slot, checksum) in &checkpoint.clean {
            if *slot >= self.slots.total() || self.table.is_mapped(*slot) {
                let detail = alloc::format!("the clean slot {slot} is dirty or past the last");
                return Err(OpenError::damaged("cache", detail));
            }
            self.table.set_checksum(*slot, *checksum);
        }
        for mapping in &checkpoint.mappings {
            let entry = self.entries.find(Lba(mapping.lba));
            let slot = entry.map(|entry| self.entries.slot(entry));
            if slot != Some(mapping.slot) {
                let detail = alloc::format!(
                    "{:?} lies in slot {}, and the cache does not know it there",
                    Lba(mapping.lba),
                    mapping.slot
                );
                return Err(OpenError::damaged("cache", detail));
            }
        }
        Ok(())
    }

    /// Goes on with coming up or going down.
    pub(super) fn open_or_close_further(&mut self, ctx: &mut Context<'_>) -> bool {
        match self.life {
            Life::Opening(_) => self.open_further(ctx),
            Life::Closing(step) => self.close_further(step, ctx),
            Life::Plain | Life::Degraded(_) => false,
        }
    }

    fn open_further(&mut self, ctx: &mut Context<'_>) -> bool {
        let is_settled = self.intent.is_settled();
        let Life::Opening(opening) = &mut self.life else {
            return false;
        };
        let OpeningStep::Announcing(left) = opening.step else {
            return false;
        };
        if !is_settled {
            return false;
        }
        if left > 1 {
            opening.step = OpeningStep::Announcing(left - 1);
            self.intent.announce(self.ledger.next_generation());
            return true;
        }
        opening.step = OpeningStep::Beginning;
        let map = self.mappings().encode();
        self.table.forget_changes();
        self.ledger.begin(map, ctx);
        true
    }

    /// The ledger takes records.
    pub(super) fn opened(&mut self, ctx: &mut Context<'_>) {
        self.life = Life::Plain;
        let generation = self.ledger.generation();
        self.intent.confirm(generation, false);
        if !self.ask_to_come_up(ctx) {
            self.come_up(ctx);
        }
    }

    /// All is known that must be.
    pub(in crate::cache) fn come_up(&mut self, ctx: &mut Context<'_>) {
        self.evict_excess(ctx);
        self.set_gauges(ctx);
        ctx.opened(Ok(()));
    }

    /// Begins to go down.
    pub(in crate::cache) fn begin_closing(&mut self, ctx: &mut Context<'_>) {
        self.ledger.begin_close();
        self.take_ledger_events(ctx);
        if self.ledger.stage() == Stage::Closing {
            self.advance(ctx);
        }
    }

    fn close_further(&mut self, step: Closing, ctx: &mut Context<'_>) -> bool {
        let is_settled = self.intent.is_settled();
        match step {
            Closing::Draining => {
                let is_drained = self.destages.is_empty()
                    && is_settled
                    && self.is_batch_empty()
                    && !self.ledger.is_flushing_for_itself()
                    && self.checkpointing == Checkpointing::No;
                if !is_drained {
                    return false;
                }
                self.life = Life::Closing(Closing::Announced);
                self.intent.announce(self.ledger.next_generation());
                true
            }
            Closing::Announced if is_settled => {
                self.life = Life::Closing(Closing::Writing);
                let map = self.closing_checkpoint().encode();
                self.ledger.close(map, ctx);
                true
            }
            Closing::Confirming if is_settled => {
                self.life = Life::Plain;
                ctx.closed(Ok(()));
                true
            }
            _ => false,
        }
    }

    /// The closing checkpoint is durable, or there was none to write, or it failed.
    pub(super) fn ledger_closed(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match (&self.life, result) {
            (Life::Closing(_), Ok(())) => {
                self.life = Life::Closing(Closing::Confirming);
                let generation = self.ledger.generation();
                self.intent.confirm(generation, true);
            }
            (_, result) => {
                self.life = Life::Plain;
                ctx.closed(result);
            }
        }
    }

    /// True when a degraded cache knows that what lies below is the newest.
    pub(in crate::cache) fn is_newest_below(&self, extent: Extent, ctx: &Context<'_>) -> bool {
        let Life::Degraded(page) = &self.life else {
            return true;
        };
        let first = extent.start.0 / page.region_blocks;
        let last = extent.end().0.div_ceil(page.region_blocks);
        let marked = (first..last).any(|region| bit(&page.bits, region));
        !marked || ctx.is_planted(PlantedBug::DeadSsdServedStale)
    }
}

/// Checks that a page is of the member of that number.
fn check_member(page: &IntentPage, set: Uuid, number: u16) -> Result<(), OpenError> {
    let (found, expected) = (page.member, set.member(number));
    if found == expected {
        return Ok(());
    }
    Err(match found.number_in(set) {
        Some(_) => OpenError::OtherMember { found, expected },
        None => OpenError::Foreign { found, expected },
    })
}
