//! Carries out what was decided: band rows go to the spare one, one after the other.

use super::collection::{Collection, Step, Waiting};
use super::contents::Contents;
use super::directory::{Change, Changes, Decision, Directory, Place};
use super::notes::{Notes, TOKEN_COLLECTION};
use super::records::Said;
use super::table_writes::{Behind, TableWrites};
use super::unreadable::UNREADABLE_MAX;
use super::word::Word;
use crate::array::task::Piece;
use crate::array::{RowMap, Rows};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::When;
use crate::map::{AddressMap, address_map};
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::saved::SavedValue;
use crate::units::BlockCount;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The collections that were decided and are not done, the first of them under way.
#[derive(Debug, SavedValue)]
pub struct Collector {
    queue: VecDeque<Collection>,
    decided: u64,
    done: u64,
    /// Slots that a collection still needs, with its number. One that is done needs none.
    held: AddressMap<u64>,
    /// Where each band row lies, as long as nothing has been moved.
    band_rows: Vec<u64>,
}

/// What a collection works with.
pub struct Around<'a, 'c> {
    pub directory: &'a mut Directory,
    pub contents: &'a mut Contents,
    pub rows: &'a mut Rows,
    /// Of each part that writes what it has changed in the directory.
    pub changes: &'a mut Vec<Changes>,
    pub notes: &'a mut Notes,
    pub table_writes: &'a mut TableWrites,
    pub ctx: &'a mut Context<'c>,
}

impl Around<'_, '_> {
    /// What a part that writes has changed.
    pub fn changes_of(&mut self, task: u32) -> &mut Changes {
        if self.changes.len() <= task as usize {
            self.changes.resize_with(task as usize + 1, Changes::default);
        }
        &mut self.changes[task as usize]
    }
}

impl Collector {
    /// Nothing to do, over so many band rows and a spare one.
    pub fn new(band_rows: u64) -> Collector {
        Collector {
            queue: VecDeque::new(),
            decided: 0,
            done: 0,
            held: address_map(0),
            band_rows: (1..=band_rows).collect(),
        }
    }

    /// Band rows lie where a checkpoint and its records have left them.
    pub fn restore(&mut self, band_rows: &[u64]) {
        self.band_rows = band_rows.to_vec();
    }

    /// Collections that are decided and not done.
    pub fn len(&self) -> u64 {
        self.queue.len() as u64
    }

    /// True when no collection is decided and not done.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// The band that the first collection writes to, or is about to.
    pub fn writes_to(&self) -> Option<u64> {
        self.queue.front().map(|it| it.decision.to)
    }

    /// True when the first collection waits until something is noted.
    pub fn waits_for_notes(&self) -> bool {
        use Step::{Announcing, NotingCleared, NotingHomes, Recording};
        let waits = |it: &Collection| {
            matches!(it.step, Announcing | NotingCleared | NotingHomes | Recording)
        };
        self.queue.front().is_some_and(|it| waits(it) && it.outstanding > 0)
    }

    /// What the first collection has noted is durable, or never will be.
    pub fn noted(&mut self, result: Result<(), IoError>) {
        if let Some(first) = self.queue.front() {
            self.ended(first.number, result);
        }
    }

    /// Takes a decision to be carried out after all earlier ones.
    pub fn add(&mut self, mut decision: Decision, ctx: &Context<'_>) {
        if ctx.is_planted(PlantedBug::ArrayCollectsInPlace) {
            decision.to = decision.from;
        }
        self.decided += 1;
        for (_, slot) in &decision.saved {
            self.held.insert(*slot, self.decided);
        }
        self.queue.push_back(Collection::new(self.decided, decision));
    }

    /// The collection after which a slot may be overwritten, if one needs it.
    pub fn holder_of(&self, slot: u64) -> Option<u64> {
        let number = self.held.get(&slot).copied();
        number.filter(|number| *number > self.done)
    }

    /// The last collection of a band row that is not done.
    pub fn last_of(&self, band_row: u64) -> Option<u64> {
        let of_row = |it: &&Collection| it.decision.band_row == band_row;
        self.queue.iter().rev().find(of_row).map(|it| it.number)
    }

    /// Where a block is now that is at home when everything is done: the column and the row.
    pub fn find(&self, place: Place, directory: &Directory, contents: &Contents) -> (usize, u64) {
        let band_row = directory.band_row_of(place);
        let later = self.queue.iter().rev();
        let mut of_row = later.filter(|it| it.decision.band_row == band_row);
        match of_row.find_map(|it| {
            (it.step != Step::Draining).then(|| it.decision.slot_of(place)).flatten()
        }) {
            Some(slot) => (contents.data(), slot),
            None => (directory.home_of(place), self.row_of(place, directory, contents)),
        }
    }

    /// The band row that lies in a band of the homes, if one does.
    pub fn band_row_at(&self, band: u64) -> Option<u64> {
        self.band_rows.iter().position(|lies| *lies == band).map(|band_row| band_row as u64)
    }

    /// The place whose block is in a row of a column.
    pub fn place_at(
        &self,
        column: usize,
        row: u64,
        directory: &Directory,
        contents: &Contents,
    ) -> Option<Place> {
        if column == contents.data() {
            let mut saved = self.queue.iter().flat_map(|it| &it.decision.saved);
            let saved = saved.find(|(_, slot)| *slot == row).map(|(place, _)| *place);
            return saved.or_else(|| directory.place_of_slot(row));
        }
        let (homes, band_blocks) = (contents.data() as u64, contents.bands().band_blocks());
        let band_row = self.band_row_at(row / band_blocks)?;
        let place = (band_row * band_blocks + row % band_blocks) * homes + column as u64;
        (self.find(place, directory, contents) == (column, row)
            && directory.slot_of(place).is_none())
        .then_some(place)
    }

    /// The row of a place on its home.
    pub fn row_of(&self, place: Place, directory: &Directory, contents: &Contents) -> u64 {
        let band_row = self.band_rows[directory.band_row_of(place) as usize];
        band_row * contents.bands().band_blocks() + directory.offset_of(place)
    }

    /// A write waits until a collection is done. Panics when it is.
    fn wait(&mut self, number: u64, waiting: Waiting) {
        let collection = self.queue.iter_mut().find(|it| it.number == number);
        collection.expect("a collection that is not done").waiting.push(waiting);
    }

    /// An operation of a collection has ended.
    pub fn ended(&mut self, number: u64, result: Result<(), IoError>) {
        let collection = self.queue.iter_mut().find(|it| it.number == number);
        let collection = collection.expect("a collection under way");
        collection.outstanding -= 1;
        match (collection.step, result) {
            (_, Ok(())) => {}
            (Step::ReadingBand, Err(IoError::Medium)) => collection.reads.one_has_failed(),
            (_, Err(_)) => collection.has_failed = true,
        }
    }

    /// Goes on as far as can be.
    pub fn go_on(&mut self, around: &mut Around<'_, '_>) {
        while self.step(around) {}
    }

    /// Takes the first collection one step further. False when it waits, or there is none.
    fn step(&mut self, around: &mut Around<'_, '_>) -> bool {
        let Some(collection) = self.queue.front_mut() else { return false };
        if collection.outstanding > 0 {
            let reads = matches!(collection.step, Step::ReadingBand);
            return reads && collection.read_more(around);
        }
        if collection.has_failed && collection.step == Step::Summing {
            // The parity is as it was.
            collection.step = Step::Due;
        }
        if collection.has_failed && !collection.is_final() {
            self.give_up(around);
            return false;
        }
        match collection.step {
            Step::Due => match around.rows.epochs.is_drained() {
                true => {
                    around.rows.epochs.turn();
                    collection.step = Step::Waiting;
                }
                false => return false,
            },
            Step::Waiting if !around.rows.epochs.is_drained() => return false,
            Step::Waiting => collection.read_slots(around),
            Step::ReadingSlots => collection.announce(around),
            Step::Announcing => collection.clear(around),
            Step::Clearing => collection.flush_cleared(around),
            Step::FlushingCleared => collection.note(Step::NotingCleared, around),
            Step::NotingCleared => collection.begin_home(0, around),
            Step::ReadingBand => {
                if !collection.read_more(around) && !collection.reads.begin_singly() {
                    collection.leave_out_unreadable(around);
                    if !collection.has_failed {
                        collection.merge(around);
                    }
                }
            }
            Step::Resetting => collection.write_band(around),
            Step::WritingBand => collection.begin_home(collection.home + 1, around),
            Step::WritingTables => collection.flush_homes(around),
            Step::FlushingHomes => collection.note(Step::NotingHomes, around),
            Step::NotingHomes => collection.add_to_parity(around),
            Step::Summing => collection.flush(around),
            Step::Flushing => collection.record(around),
            Step::Recording => {
                let decision = &collection.decision;
                self.band_rows[decision.band_row as usize] = decision.to;
                for place in collection.unreadable.drain(..) {
                    if around.directory.is_live(place) {
                        around.contents.unreadable.add(place);
                    }
                }
                around.rows.epochs.turn();
                collection.step = Step::Draining;
            }
            Step::Draining if !around.rows.epochs.is_drained() => return false,
            Step::Draining => self.finish(around),
        }
        true
    }

    /// The first collection is done: who has waited for it goes on.
    fn finish(&mut self, around: &mut Around<'_, '_>) {
        let collection = self.queue.pop_front().expect("the first collection");
        self.done = collection.number;
        for (_, slot) in &collection.decision.saved {
            if self.held.get(slot) == Some(&collection.number) {
                self.held.remove(slot);
            }
        }
        release(&collection, around.ctx);
        for waiting in collection.waiting {
            self.begin(&waiting, around);
        }
    }

    /// A write begins, once the collection `after` is done where there is one.
    pub fn begin_or_wait(
        &mut self,
        after: Option<u64>,
        waiting: Waiting,
        around: &mut Around<'_, '_>,
    ) {
        match after {
            Some(number) => self.wait(number, waiting),
            None => self.begin(&waiting, around),
        }
    }

    fn begin(&mut self, waiting: &Waiting, around: &mut Around<'_, '_>) {
        let lane = waiting.goes_home.map(|place| {
            let row = self.row_of(place, around.directory, around.contents);
            around.rows.move_to(waiting.task, row);
            row / around.contents.bands().band_blocks()
        });
        around.rows.start(waiting.task, lane, around.contents, around.ctx);
        self.undo_failed(around);
    }

    /// Blocks of writes that have come to nothing are where they were before. Their numbers name no others yet.
    pub fn undo_failed(&mut self, around: &mut Around<'_, '_>) {
        while let Some(failed) = around.rows.next_failed_write() {
            self.undo(&around.changes[failed as usize], 0, around.directory);
        }
    }

    /// A member is missing: what need not come to its end is given up as soon as nothing of it is in flight.
    pub fn stop(&mut self) {
        if let Some(first) = self.queue.iter_mut().find(|it| !it.is_final()) {
            first.has_failed = true;
        }
    }

    /// What need not come to its end is not done: blocks that were to be collected stay where they are. Writes
    /// that have waited for it go on. Those that are appended go where their band row lies now; all others get
    /// slots anew, as far as there are any.
    fn give_up(&mut self, around: &mut Around<'_, '_>) {
        let mut waiting = Vec::new();
        for collection in self.queue.iter_mut().filter(|it| !it.is_final()) {
            let number = collection.number;
            waiting.extend(collection.waiting.drain(..).map(|waiting| (number, waiting)));
        }
        let appends = around.directory.appends();
        let (going_home, others): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, it)| appends && it.goes_home.is_some());
        let mut again = Vec::new();
        for (_, Waiting { task, .. }) in &others {
            let changes = core::mem::take(&mut around.changes[*task as usize]);
            let stands: Vec<bool> =
                changes.iter().map(|change| self.stands(change, around.directory)).collect();
            again.push((*task, changes, stands));
        }
        for ((number, _), (_, changes, _)) in others.iter().zip(&again) {
            self.undo(changes, *number, around.directory);
        }
        self.take_back(around);
        for (_, waiting) in going_home {
            let place = waiting.goes_home.expect("one that goes home");
            let after = self.last_of(around.directory.band_row_of(place));
            self.begin_or_wait(after, waiting, around);
        }
        for (task, changes, stands) in again {
            self.write_again(task, &changes, &stands, around);
        }
    }

    /// Decisions that are not carried out are taken back, the last one first.
    fn take_back(&mut self, around: &mut Around<'_, '_>) {
        while let Some(last) = self.queue.pop_back() {
            if last.is_final() {
                self.queue.push_back(last);
                break;
            }
            around.directory.take_back(&last.decision, around.notes.keeps());
            release(&last, around.ctx);
        }
        self.held.clear();
        // One that goes on needs its slots, which a later one may have held after it.
        for collection in &self.queue {
            for (_, slot) in &collection.decision.saved {
                self.held.insert(*slot, collection.number);
            }
        }
    }

    /// True when a block is where a write that waits is to put it: it was not written or zeroed since.
    fn stands(&self, change: &Change, directory: &Directory) -> bool {
        let is_saved = |slot| {
            let mut later = self.queue.iter().filter(|it| !it.is_final());
            later.any(|it| it.decision.saved.contains(&(change.place, slot)))
        };
        match (directory.slot_of(change.place), change.slot) {
            (Some(found), slot) => slot == Some(found),
            (None, Some(slot)) => directory.is_live(change.place) && is_saved(slot),
            (None, None) => directory.is_live(change.place),
        }
    }

    /// A write that was given up, and undone, goes to the slots that its blocks get now.
    fn write_again(
        &mut self,
        task: u32,
        changes: &[Change],
        stands: &[bool],
        around: &mut Around<'_, '_>,
    ) {
        let homes = around.contents.data() as u64;
        let mut result = Ok(());
        let mut run: Vec<(Change, (usize, u64))> = Vec::new();
        for (at, change) in changes.iter().enumerate().filter(|(at, _)| stands[*at]) {
            let from = match change.slot {
                Some(_) => (around.contents.data(), at as u64),
                None => {
                    let row = change.place / homes - changes[0].place / homes;
                    (around.directory.home_of(change.place), row)
                }
            };
            let Some(again) = around.directory.place_again(change) else {
                result = Err(IoError::NoSpace);
                continue;
            };
            let goes_on = |last: &(Change, _)| last.0.slot.map(|slot| slot + 1) == again.slot;
            if !run.last().is_none_or(goes_on) {
                self.write_run_again(task, &mut run, around);
            }
            run.push((again, from));
        }
        self.write_run_again(task, &mut run, around);
        around.rows.drop_part(task, result, around.ctx);
    }

    /// Blocks of a write that was given up go to slots one behind the other.
    fn write_run_again(
        &mut self,
        of: u32,
        run: &mut Vec<(Change, (usize, u64))>,
        around: &mut Around<'_, '_>,
    ) {
        let Some(first) = run.first().and_then(|(change, _)| change.slot) else { return };
        let slots = Extent::new(first, run.len() as u64);
        let from = run.iter().map(|(_, from)| *from);
        let task = around.rows.new_write_of(of, around.contents.data(), slots, from, around.ctx);
        *around.changes_of(task) = run.drain(..).map(|(change, _)| change).collect();
        let after = (slots.start.0..slots.end().0).filter_map(|slot| self.holder_of(slot)).max();
        self.begin_or_wait(after, Waiting { task, goes_home: None }, around);
    }

    /// A write has come to nothing: its blocks are where they were before. It has waited for the collection
    /// `after`, if for any; one that was decided later may count on its blocks.
    pub fn undo(&mut self, changes: &[Change], after: u64, directory: &mut Directory) {
        for Change { place, slot, is_new, was_live, .. } in changes.iter().copied() {
            let Some(slot) = slot else {
                directory.undo_home(place);
                continue;
            };
            if !is_new {
                continue;
            }
            directory.undo(place, slot, was_live);
            for later in self.queue.iter_mut().filter(|it| it.number > after) {
                later.decision.saved.retain(|saved| *saved != (place, slot));
            }
        }
    }
}

fn release(collection: &Collection, ctx: &mut Context<'_>) {
    for buffer in [collection.band, collection.sum, collection.slot_blocks] {
        if buffer.blocks > 0 {
            ctx.release(buffer);
        }
    }
}

impl Collection {
    /// The rows of the spare band row.
    fn target(&self, around: &Around<'_, '_>) -> Extent {
        let blocks = around.contents.bands().band_blocks();
        Extent::new(self.decision.to * blocks, blocks)
    }

    /// Reads what the slots in rows of the spare band row have, where that is to be noted: after a crash without
    /// the data disk their checksums tell what is in the parity beside them.
    fn read_slots(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::ReadingSlots;
        let (target, data) = (self.target(around), around.contents.data());
        let held = |row: &u64| around.contents.held(*row).has(data);
        let rows = target.start.0..target.end().0;
        let (first, last) = (rows.clone().find(held), rows.rev().find(held));
        if let (Some(first), Some(last), true) = (first, last, around.notes.keeps()) {
            let rows = Extent::new(first, last + 1 - first);
            (self.band, self.first_slot) =
                (around.ctx.allocate(rows.blocks), first - target.start.0);
            self.outstanding += 1;
            let Around { contents, rows: all, ctx, .. } = around;
            all.look(self.number, (data, rows), self.band, *contents, ctx);
        }
    }

    /// Notes that the parity of the spare band row is about to change.
    fn announce(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::Announcing;
        let Decision { band_row, to, .. } = self.decision;
        around.notes.note(&Said::Begun { band_row, to }, around.ctx);
        if self.band.blocks > 0 {
            let mut sums = Vec::new();
            around.ctx.checksum(self.band, &mut sums);
            around.ctx.release(core::mem::take(&mut self.band));
            let said = Said::slots(self.first_slot, &sums);
            said.for_each(|said| around.notes.note(&said, around.ctx));
        }
        self.wait_for_notes(around);
    }

    /// Makes durable that the homes of the spare band row are out of the parity, where they were in it: they are
    /// about to be overwritten.
    fn flush_cleared(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::FlushingCleared;
        if self.has_cleared && around.notes.keeps() {
            self.flush_column(around.contents.parity(), around);
        }
    }

    /// Notes how far the parity of the spare band row is.
    fn note(&mut self, step: Step, around: &mut Around<'_, '_>) {
        self.step = step;
        if !around.notes.keeps() {
            return;
        }
        match step {
            Step::NotingCleared => around.notes.note(&Said::Cleared, around.ctx),
            _ => {
                Said::held(&self.held).for_each(|said| around.notes.note(&said, around.ctx));
                around.notes.note(&Said::Adding, around.ctx);
            }
        }
        self.wait_for_notes(around);
    }

    fn flush_column(&mut self, column: usize, around: &mut Around<'_, '_>) {
        if around.rows.members.is_present(column) {
            self.issue(column, Operation::Flush, Extent::EMPTY, BufferSlice::EMPTY, around);
        }
    }

    fn wait_for_notes(&mut self, around: &mut Around<'_, '_>) {
        if around.notes.when_durable(TOKEN_COLLECTION, around.ctx) == When::Later {
            self.outstanding += 1;
        }
    }

    /// Notes where the band row lies from now on, and what the homes have there.
    fn record(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::Recording;
        let Around { notes, ctx, .. } = around;
        notes.settle(self.settles, ctx);
        let Decision { band_row, to, stamp, .. } = self.decision;
        notes.note(&Said::Collected { band_row, to, stamp }, ctx);
        if !ctx.is_planted(PlantedBug::ArraySlotReusedEarly) {
            self.wait_for_notes(around);
        }
    }

    /// Takes what the homes have in the spare band row out of the parity.
    fn clear(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::Clearing;
        let target = self.target(around);
        self.has_cleared = around.contents.are_in_use(target);
        if self.has_cleared {
            self.change_parity(vec![], BufferSlice::EMPTY, around);
        }
    }

    /// The parity of the spare band row changes to what the homes will have in it.
    fn change_parity(&mut self, held: Vec<bool>, sum: BufferSlice, around: &mut Around<'_, '_>) {
        let target = self.target(around);
        let Around { contents, rows, ctx, .. } = around;
        contents.prepare(held);
        self.outstanding += 1;
        rows.start_own(self.number, target, sum, *contents, ctx);
    }

    /// Begins with a home, or ends with the last one.
    fn begin_home(&mut self, home: usize, around: &mut Around<'_, '_>) {
        let blocks = BlockCount(around.contents.bands().band_blocks());
        if self.sum.blocks == 0 {
            self.sum = around.ctx.allocate(blocks);
            around.ctx.zero(self.sum);
            self.band = around.ctx.allocate(blocks);
        }
        self.home = home;
        if home == around.contents.data() {
            return self.write_tables(around);
        }
        self.step = Step::ReadingBand;
        around.ctx.zero(self.band);
        self.reads.clear();
        let homes = around.contents.data() as u64;
        let from = self.decision.from * blocks.0;
        let data = around.contents.data();
        // One that cannot be read is nowhere then.
        let is_there = |slot: u64| around.contents.held(slot).has(data);
        let saved = self.decision.saved.iter();
        let saved = saved.filter(|(place, slot)| place % homes == home as u64 && is_there(*slot));
        let mut slots: Vec<(u64, u64)> =
            saved.map(|(place, slot)| (*slot, around.directory.offset_of(*place))).collect();
        slots.sort_unstable();
        let is_at_home = |offset: u64| {
            let place = self.decision.first_place(homes, blocks.0) + offset * homes + home as u64;
            self.decision.live[(offset * homes) as usize + home]
                && self.decision.slot_of(place).is_none()
                && around.contents.has_home(home, from + offset)
        };
        let has_block = |offset: u64| around.contents.has_home(home, from + offset);
        let at_home: Vec<bool> = (0..blocks.0).map(is_at_home).collect();
        let first = at_home.iter().position(|it| *it);
        let last = at_home.iter().rposition(|it| *it);
        if let (Some(first), Some(last)) = (first, last) {
            for offset in first as u64..=last as u64 {
                if has_block(offset) {
                    self.reads.add((home, from + offset, offset), false);
                }
            }
        }
        self.slot_blocks = match slots.len() {
            0 => BufferSlice::EMPTY,
            slots => around.ctx.allocate(BlockCount(slots as u64)),
        };
        for (at, (slot, _)) in slots.iter().enumerate() {
            self.reads.add((around.contents.data(), *slot, at as u64), true);
        }
        self.is_copied = at_home;
        for (_, offset) in &slots {
            self.is_copied[*offset as usize] = true;
        }
        self.slots = slots;
        self.written = match around.contents.bands().are_zones() {
            // Zeroes stand for what is not there any more: what is appended later comes behind it.
            true => 0..self.decision.written_ends[home],
            false => {
                let first = self.is_copied.iter().position(|it| *it).unwrap_or(0);
                let last = self.is_copied.iter().rposition(|it| *it);
                first as u64..last.map_or(first, |last| last + 1) as u64
            }
        };
        for (offset, copied) in self.is_copied.iter().enumerate() {
            let is_padding =
                around.contents.bands().are_zones() && self.written.contains(&(offset as u64));
            self.held[offset * homes as usize + home] = *copied || is_padding;
        }
    }

    /// Reads what is not read yet; false when everything was asked for, or need not be.
    fn read_more(&mut self, around: &mut Around<'_, '_>) -> bool {
        let mut has_read = false;
        while !self.has_failed
            && let Some(run) = self.reads.next(self.outstanding)
        {
            let buffer = if run.is_slot { self.slot_blocks } else { self.band };
            let buffer = buffer.part(run.at, run.rows.blocks.0);
            self.read(run.column, run.rows, buffer, around);
            has_read = true;
        }
        has_read
    }

    /// What no member can give goes nowhere: when the collection is done, these places have nothing, and are listed.
    fn leave_out_unreadable(&mut self, around: &mut Around<'_, '_>) {
        let (homes, blocks) =
            (around.contents.data() as u64, around.contents.bands().band_blocks());
        for run in self.reads.lost() {
            let offset = if run.is_slot { self.slots[run.at as usize].1 } else { run.at };
            let is_in_slot = || self.slots.iter().any(|(_, other)| *other == offset);
            // What nobody wants any more was read because it lies between others.
            let is_wanted = self.is_copied[offset as usize] && (run.is_slot || !is_in_slot());
            if is_wanted {
                self.is_copied[offset as usize] = false;
                self.held[(offset * homes) as usize + self.home] = false;
                let first = self.decision.first_place(homes, blocks);
                self.unreadable.push(first + offset * homes + self.home as u64);
            }
        }
        let room = UNREADABLE_MAX as u64 - around.contents.unreadable.len();
        let may_list = around.notes.keeps() && self.unreadable.len() as u64 <= room;
        self.has_failed |= !self.unreadable.is_empty() && !may_list;
    }

    /// Reads blocks as a request would: what is wrong or cannot be read is found from others.
    fn read(
        &mut self,
        column: usize,
        of_rows: Extent,
        buffer: BufferSlice,
        around: &mut Around<'_, '_>,
    ) {
        let Around { contents, rows, ctx, .. } = around;
        let word = Word::Collection(self.number).number();
        let job = rows.jobs.begin_own(word, (Operation::Read, Cause::Cleaning), buffer);
        let whole = Piece { in_request: 0, in_rows: 0, blocks: of_rows.blocks.0 };
        self.outstanding += 1;
        rows.read(job, column, of_rows, &[whole], *contents, ctx);
        rows.jobs.end_part(job, Ok(()));
    }

    fn issue(
        &mut self,
        column: usize,
        operation: Operation,
        rows: Extent,
        buffer: BufferSlice,
        around: &mut Around<'_, '_>,
    ) {
        let operation = (operation, Cause::Cleaning);
        let Around { contents, rows: all, ctx, .. } = around;
        self.outstanding +=
            all.issue(self.number, column, operation, rows, buffer, &**contents, ctx);
    }

    /// Everything of a home was read: its band is put together.
    fn merge(&mut self, around: &mut Around<'_, '_>) {
        let ctx = &mut *around.ctx;
        for (offset, is_copied) in self.is_copied.iter().enumerate() {
            if !is_copied {
                ctx.zero(self.band.part(offset as u64, 1));
            }
        }
        for (at, (_, offset)) in self.slots.iter().enumerate() {
            if self.is_copied[*offset as usize] {
                ctx.copy(self.slot_blocks.part(at as u64, 1), self.band.part(*offset, 1));
            }
        }
        if self.slot_blocks.blocks > 0 {
            ctx.release(core::mem::take(&mut self.slot_blocks));
        }
        ctx.xor(self.band, self.sum);
        let zone = around.contents.bands().zone_of(self.home, self.decision.to);
        match zone {
            Some(zone) => {
                self.step = Step::Resetting;
                self.outstanding +=
                    around.rows.reset_zone(self.number, self.home, zone, around.ctx);
            }
            None => self.write_band(around),
        }
    }

    /// Writes the band of a home from its first block to its last.
    fn write_band(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::WritingBand;
        let (first, blocks) = (self.written.start, self.written.end - self.written.start);
        if blocks == 0 {
            return;
        }
        let rows = Extent::new(self.target(around).start.0 + first, blocks);
        let buffer = self.band.part(first, blocks);
        if let Some(sums) = &mut around.contents.sums {
            sums.set_all(self.home, rows, buffer, around.ctx);
        }
        self.issue(self.home, Operation::WRITE, rows, buffer, around);
    }

    /// Writes the checksums of the homes. The record of the collection has none.
    fn write_tables(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::WritingTables;
        let target = self.target(around);
        if let Some(sums) = &mut around.contents.sums {
            self.outstanding += 1;
            sums.change_all(target);
            let tables = sums.changed(Some(target));
            around.table_writes.begin(Behind::Collection(self.number), tables);
        }
    }

    /// Makes durable what was written to the homes.
    fn flush_homes(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::FlushingHomes;
        for home in 0..around.contents.data() {
            if around.notes.keeps() {
                self.flush_column(home, around);
            }
        }
    }

    /// Adds the bands that were written to the parity.
    fn add_to_parity(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::Summing;
        let (held, sum) = (core::mem::take(&mut self.held), core::mem::take(&mut self.sum));
        self.change_parity(held, sum, around);
    }

    fn flush(&mut self, around: &mut Around<'_, '_>) {
        self.step = Step::Flushing;
        if around.ctx.is_planted(PlantedBug::ArraySlotReusedEarly) {
            return;
        }
        self.settles = around.notes.before_now();
        for column in 0..around.contents.columns() {
            self.flush_column(column, around);
        }
    }
}
