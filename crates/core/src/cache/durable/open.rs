//! How a durable cache comes up and goes down.
//!
//! ```text
//! format:  both write-intent pages -> empty journal -> the page says so -> up
//! recover: pages and journal are read -> page -> journal's new epoch -> the page says so -> up
//! close:   last destages -> page -> closing checkpoint -> the page says so -> down
//! ```

use super::checkpoint::Checkpointing;
use super::codec::CacheCheckpoint;
use super::intent::{INTENT_PAGES, IntentPage, bit};
use super::replay::{self, Bounds};
use super::{Cache, Durable, Life};
use crate::buffer::BufferSlice;
use crate::cache::entries::Flag;
use crate::cache::{AccessKind, PolicyEvents};
use crate::durability::block::BlockError;
use crate::durability::{Lsn, Recovery};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::{OpenError, Start, Uuid};
use crate::planted::PlantedBug;
use crate::state::{StateError, StateReader};
use crate::units::{BlockCount, Lba};
use alloc::boxed::Box;
use alloc::string::String;

/// The backing's number in the set is the cache's own with this bit.
const BACKING_MEMBER_BIT: u16 = 1 << 15;

/// A write-intent page, as it was found.
#[derive(Debug)]
enum FoundPage {
    Good(IntentPage),
    Bad(BlockError),
    Unreadable(IoError),
}

/// How far coming up has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The members are read.
    Reading,
    /// This many write-intent pages have yet to be written before the journal begins.
    Announcing(u64),
    /// The journal writes its first checkpoint.
    Beginning,
}

/// A cache on its way up.
#[derive(Debug)]
pub(super) struct Opening {
    start: Start,
    step: Step,
    buffers: [BufferSlice; INTENT_PAGES as usize],
    pages: [Option<FoundPage>; INTENT_PAGES as usize],
    journal: Option<Result<Recovery, OpenError>>,
    /// The number of the layer in the set.
    number: u16,
}

impl Opening {
    /// The newest whole write-intent page.
    fn newest_page(&self) -> Option<&IntentPage> {
        let good = self.pages.iter().filter_map(|page| match page {
            Some(FoundPage::Good(page)) => Some(page),
            _ => None,
        });
        good.max_by_key(|page| page.version)
    }

    /// Why no write-intent page will do.
    fn no_page(&self) -> OpenError {
        let mut details = String::new();
        let mut never_written = true;
        for (number, page) in (0..).zip(&self.pages) {
            match page {
                Some(FoundPage::Unreadable(error)) => return OpenError::Io(*error),
                Some(FoundPage::Bad(error)) => {
                    never_written &= *error == BlockError::Zero;
                    let separator = if number > 0 { "; " } else { "" };
                    details += &alloc::format!("{separator}page {number}: {}", error.message());
                }
                Some(FoundPage::Good(_)) | None => {}
            }
        }
        if never_written {
            return OpenError::NotFormatted;
        }
        OpenError::damaged("write-intent page", details)
    }
}

/// How far going down has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closing {
    /// The last destages are brought to an end.
    Draining,
    /// The write-intent page is written.
    Announced,
    /// The closing checkpoint is written.
    Writing,
    /// The write-intent page says so.
    Confirming,
}

impl Cache {
    /// Begins to come up.
    pub(in crate::cache) fn open_durable(&mut self, start: Start, ctx: &mut Context<'_>) {
        let number = ctx.node.0;
        let mut opening = Opening {
            start,
            step: Step::Reading,
            buffers: [BufferSlice::EMPTY; INTENT_PAGES as usize],
            pages: [const { None }; INTENT_PAGES as usize],
            journal: None,
            number,
        };
        let durable = self.durable();
        match start {
            Start::Format(set) => {
                // What an older format has left in either page must not come back.
                opening.step = Step::Announcing(INTENT_PAGES);
                let member = set.member(number | BACKING_MEMBER_BIT);
                durable.intent.begin(member, None, &durable.flushes);
                durable.intent.announce(durable.journal.next_generation());
            }
            Start::Recover(set) => {
                let expected = set.map(|set| (set, set.member(number)));
                durable.journal.open(expected, ctx);
                for page in 0..INTENT_PAGES {
                    let buffer = ctx.allocate(BlockCount(1));
                    opening.buffers[page as usize] = buffer;
                    self.read_intent(page, buffer, ctx);
                }
            }
        }
        self.durable().life = Life::Opening(Box::new(opening));
        self.durable_turn(ctx);
    }

    /// A write-intent page has been read.
    pub(super) fn intent_read(
        &mut self,
        page: u64,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let durable = self.durable();
        let address = durable.intent.address(page);
        let Life::Opening(opening) = &mut durable.life else {
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

    /// The journal has been read, or refused.
    pub(super) fn journal_read(
        &mut self,
        result: Result<Recovery, OpenError>,
        ctx: &mut Context<'_>,
    ) {
        if let Life::Opening(opening) = &mut self.durable().life {
            opening.journal = Some(result);
        }
        self.recover_if_read(ctx);
    }

    fn recover_if_read(&mut self, ctx: &mut Context<'_>) {
        let durable = self.durable();
        let is_read = match &durable.life {
            Life::Opening(opening) => {
                opening.journal.is_some() && opening.pages.iter().all(Option::is_some)
            }
            _ => false,
        };
        if !is_read {
            return;
        }
        let Life::Opening(mut opening) = core::mem::replace(&mut durable.life, Life::Shut) else {
            unreachable!("it was opening a moment ago")
        };
        match self.recover(&mut opening, ctx) {
            Ok(life) => {
                let is_up = matches!(life, Life::Degraded(_));
                self.durable().life = life;
                if is_up {
                    ctx.opened(Ok(()));
                }
            }
            Err(error) => ctx.opened(Err(error)),
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
            Err(OpenError::Io(_)) => return self.degraded(opening, page),
            Err(error) => return Err(error),
        };
        let set = self.durable().journal.set();
        self.check_page(&page, set.member(opening.number | BACKING_MEMBER_BIT))?;
        check_generations(&page, recovery.generation)?;
        let checkpoint = CacheCheckpoint::decode(&recovery.checkpoint)
            .ok_or_else(|| OpenError::damaged("checkpoint", "its lengths do not fit its bytes"))?;
        let bounds = Bounds {
            slots: u64::from(self.slots.total()),
            slot_base: self.slot_base,
            blocks: self.backing_blocks,
            forgets_trims: ctx.is_planted(PlantedBug::TrimForgottenOnReplay),
        };
        let mappings = replay::replay(&checkpoint, &recovery, bounds)?;
        let durable = self.durable();
        durable
            .intent
            .begin(page.member, Some(&page), &durable.flushes);
        for mapping in &mappings {
            durable.table.map(*mapping, Lsn(0));
            durable.table.forget_place(mapping.slot);
            durable.intent.add_users(Extent::new(mapping.lba, 1));
        }
        if checkpoint.state.is_empty() {
            self.rebuild(mappings.iter().map(|mapping| (mapping.lba, mapping.slot)));
        } else {
            self.take_back(&checkpoint)?;
        }
        let durable = self.durable();
        durable.intent.announce(durable.journal.next_generation());
        opening.step = Step::Announcing(1);
        Ok(Life::Opening(Box::new(Opening {
            start: opening.start,
            step: opening.step,
            buffers: opening.buffers,
            pages: [const { None }; INTENT_PAGES as usize],
            journal: None,
            number: opening.number,
        })))
    }

    fn check_page(&self, page: &IntentPage, member: Uuid) -> Result<(), OpenError> {
        if page.member != member {
            return Err(OpenError::Foreign {
                found: page.member,
                expected: member,
            });
        }
        let intent = &self.durable.as_deref().expect("a durable cache").intent;
        if !intent.fits(page) {
            return Err(OpenError::Settings {
                name: "write-intent regions",
                found: page.regions,
                expected: intent.regions(),
            });
        }
        Ok(())
    }

    /// Serves what lies below without the flash, which cannot be read.
    fn degraded(&mut self, opening: &Opening, mut page: IntentPage) -> Result<Life, OpenError> {
        let member = match opening.start {
            Start::Recover(Some(set)) => set.member(opening.number | BACKING_MEMBER_BIT),
            _ => page.member,
        };
        self.check_page(&page, member)?;
        let both = opening
            .pages
            .iter()
            .all(|page| matches!(page, Some(FoundPage::Good(_))));
        if !both {
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
            let entry = self.entries.get_mut(id);
            entry.slot = slot;
            entry.set(Flag::HoldsData);
            entry.set(Flag::Dirty);
            used[slot as usize] = true;
            self.cached_blocks += 1;
            self.dirty_blocks += 1;
            // What the policy makes of it is not what happened in this run.
            let mut events = PolicyEvents::default();
            self.policy
                .on_insert(id, Lba(lba), AccessKind::Write, &mut events);
        }
        self.slots.restore(|slot| used[slot as usize]);
    }

    /// Takes back the cache of a clean shutdown.
    fn take_back(&mut self, checkpoint: &CacheCheckpoint) -> Result<(), OpenError> {
        let mut state = StateReader::new(&checkpoint.state);
        let damaged = |error: StateError| OpenError::damaged("cache", error.message);
        if let Some((name, found, expected)) = self.other_identity(&mut state).map_err(damaged)? {
            return Err(OpenError::Settings {
                name,
                found,
                expected,
            });
        }
        self.restore_state(&mut state).map_err(damaged)?;
        let durable = self.durable.as_deref_mut().expect("a durable cache");
        for (slot, checksum) in &checkpoint.clean {
            if *slot >= self.slots.total() || durable.table.is_mapped(*slot) {
                let detail = alloc::format!("the clean slot {slot} is dirty or past the last");
                return Err(OpenError::damaged("cache", detail));
            }
            durable.table.set_checksum(*slot, *checksum);
        }
        for mapping in &checkpoint.mappings {
            let entry = self.entries.find(Lba(mapping.lba));
            let slot = entry.map(|entry| self.entries.get(entry).slot);
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
    pub(super) fn go_on_with_life(&mut self, ctx: &mut Context<'_>) -> bool {
        match &self.durable().life {
            Life::Opening(_) => self.go_on_opening(ctx),
            Life::Closing(step) => {
                let step = *step;
                self.go_on_closing(step, ctx)
            }
            _ => false,
        }
    }

    fn go_on_opening(&mut self, ctx: &mut Context<'_>) -> bool {
        let durable = self.durable();
        let settled = durable.intent.is_settled();
        let Life::Opening(opening) = &mut durable.life else {
            return false;
        };
        let Step::Announcing(left) = opening.step else {
            return false;
        };
        if !settled {
            return false;
        }
        if left > 1 {
            opening.step = Step::Announcing(left - 1);
            durable.intent.announce(durable.journal.next_generation());
            return true;
        }
        opening.step = Step::Beginning;
        let (start, number) = (opening.start, opening.number);
        let checkpoint = durable.mappings().encode();
        match start {
            Start::Format(set) => {
                let member = set.member(number);
                durable.journal.format(set, member, checkpoint, ctx);
            }
            Start::Recover(_) => durable.journal.begin(checkpoint, ctx),
        }
        true
    }

    /// The journal takes records.
    pub(super) fn journal_opened(&mut self, ctx: &mut Context<'_>) {
        let durable = self.durable();
        durable.life = Life::Running;
        let generation = durable.journal.generation();
        durable.intent.confirm(generation, false);
        self.evict_excess(ctx);
        self.set_gauges(ctx);
        ctx.opened(Ok(()));
    }

    /// Begins to go down.
    pub(in crate::cache) fn close_durable(&mut self, ctx: &mut Context<'_>) {
        let failure = self.durable_failure();
        let durable = self.durable();
        match (&durable.life, failure) {
            (Life::Running, None) => {
                durable.life = Life::Closing(Closing::Draining);
                durable.batch.urgent = true;
                self.durable_turn(ctx);
            }
            (Life::Running, Some(error)) => {
                durable.life = Life::Shut;
                ctx.closed(Err(error));
            }
            _ => {
                durable.life = Life::Shut;
                ctx.closed(Ok(()));
            }
        }
    }

    fn go_on_closing(&mut self, step: Closing, ctx: &mut Context<'_>) -> bool {
        let destages = self.destages.is_empty();
        let durable = self.durable();
        let settled = durable.intent.is_settled();
        match step {
            Closing::Draining => {
                let drained = destages
                    && settled
                    && durable.batch.is_empty()
                    && durable.own_flush.is_none()
                    && durable.checkpointing == Checkpointing::No;
                if !drained {
                    return false;
                }
                durable.life = Life::Closing(Closing::Announced);
                durable.intent.announce(durable.journal.next_generation());
                true
            }
            Closing::Announced if settled => {
                durable.life = Life::Closing(Closing::Writing);
                let checkpoint = self.closing_checkpoint().encode();
                self.durable().journal.close(checkpoint, ctx);
                true
            }
            Closing::Confirming if settled => {
                durable.life = Life::Shut;
                ctx.closed(Ok(()));
                true
            }
            _ => false,
        }
    }

    /// The closing checkpoint is durable.
    pub(super) fn journal_closed(&mut self) {
        let durable = self.durable();
        durable.life = Life::Closing(Closing::Confirming);
        let generation = durable.journal.generation();
        durable.intent.confirm(generation, true);
    }

    /// True when a degraded cache knows that what lies below is the newest.
    pub(in crate::cache) fn is_newest_below(&self, extent: Extent, ctx: &Context<'_>) -> bool {
        let durable = self.durable.as_deref().expect("a durable cache");
        let Life::Degraded(page) = &durable.life else {
            return true;
        };
        let first = extent.start.0 / page.region_blocks;
        let last = extent.end().0.div_ceil(page.region_blocks);
        let marked = (first..last).any(|region| bit(&page.bits, region));
        !marked || ctx.is_planted(PlantedBug::DeadSsdServedStale)
    }
}

impl Durable {
    /// True before the cache has come up and after it has gone down.
    pub(in crate::cache) fn is_shut(&self) -> bool {
        matches!(self.life, Life::Shut | Life::Opening(_) | Life::Closing(_))
    }
}

/// Whether the two members have come equally far.
fn check_generations(page: &IntentPage, generation: u64) -> Result<(), OpenError> {
    let greatest = page.generation.max(page.pending);
    if generation < page.generation {
        return Err(OpenError::OlderCopy {
            member: "flash",
            found: generation,
            expected: page.generation,
        });
    }
    if generation > greatest {
        return Err(OpenError::OlderCopy {
            member: "backing",
            found: greatest,
            expected: generation,
        });
    }
    Ok(())
}
