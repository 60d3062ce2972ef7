//! The labels of a set over whatever holds their blocks.

use super::compare::{
    COUNT_BEFORE_START_MAX, Judgement, LabelledDisk, Standing, compare, set_copy, used_up,
};
use super::moving::{LabelWrite, Move, Step, has_room};
use super::{Label, LabelCopy, LabelError, Mark, Reason, Refusal};
use crate::error::IoError;
use crate::lifecycle::Uuid;
use alloc::vec::Vec;

/// What holds the blocks of labels: the disks of an engine, or files beside one. Disks are named by
/// their place among the disks of the stack.
pub trait LabelStore {
    /// True of a disk that is not there.
    fn is_absent(&self, disk: usize) -> bool;
    /// Blocks that the disk offers to its layers; the label lies behind them.
    fn blocks(&self, disk: usize) -> u64;
    /// Reads a block.
    ///
    /// # Errors
    /// As the disk says. [`IoError::Lost`]: it is absent.
    fn read(&mut self, disk: usize, block: u64) -> Result<Vec<u8>, IoError>;
    /// Writes a block.
    ///
    /// # Errors
    /// As the disk says.
    fn write(&mut self, disk: usize, block: u64, bytes: &[u8]) -> Result<(), IoError>;
    /// Makes what was written durable.
    ///
    /// # Errors
    /// As the disk says.
    fn flush(&mut self, disk: usize) -> Result<(), IoError>;
}

/// A disk of a set, as the image lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedDisk {
    /// Its number in the set, which was never another disk's.
    pub number: u16,
    /// It has a label. One without gets one at the next move, whatever lies in the place.
    pub is_labelled: bool,
}

/// How a disk was found that was there at the start, or has come since.
#[derive(Clone, Copy, Debug)]
struct Found {
    index: usize,
    /// The mark at which it was last in.
    mark: Option<Mark>,
    /// The set had come further without it.
    was_away: bool,
}

/// Why the count cannot move at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CannotMove {
    /// There is no greater one.
    CountUsedUp,
    /// No block holds the label of the disk at this place.
    TooManyMarks(usize),
}

/// The labels of the disks of a set.
#[derive(Clone, Debug)]
pub struct Labels {
    set: Uuid,
    disks: Vec<LabelledDisk>,
    found: Vec<Found>,
    mark: Option<Mark>,
    /// The place that the set is served from; 0 where its disks are locked.
    server: u64,
    /// It is taken over from any other place.
    takes_over: bool,
    pub(super) judgement: Judgement,
}

impl Labels {
    /// The labels of a set, by the places of its disks in the stack. `None`: the disk has no label and
    /// gets none.
    pub fn new(set: Uuid, listed: &[Option<ListedDisk>]) -> Labels {
        let disks = listed.iter().enumerate().filter_map(|(index, listed)| {
            let ListedDisk { number, is_labelled } = (*listed)?;
            Some(LabelledDisk::new(index, number, is_labelled))
        });
        Labels {
            set,
            disks: disks.collect(),
            found: Vec::new(),
            mark: None,
            server: 0,
            takes_over: false,
            judgement: Judgement::default(),
        }
    }

    /// The same disks, some of which nobody can lock: their labels say the place that they are served from,
    /// and one that another place had last is refused, unless it is taken over.
    #[must_use]
    pub fn served_from(mut self, server: u64, takes_over: bool) -> Labels {
        (self.server, self.takes_over) = (server, takes_over);
        self
    }

    /// The same disks without labels: whatever lies there does not count.
    #[must_use]
    pub fn anew(&self) -> Labels {
        let mut labels = self.clone();
        for disk in &mut labels.disks {
            disk.is_labelled = false;
        }
        labels
    }

    /// Reads the labels and compares them, and whether there is room for a start and its stop. Nothing is
    /// written.
    ///
    /// # Errors
    /// The disks that must not be used, or not with the others, by their places.
    pub fn check(&mut self, store: &mut dyn LabelStore) -> Result<(), Vec<Refusal>> {
        for disk in &mut self.disks {
            disk.copies = None;
            disk.blocks = store.blocks(disk.index);
            if store.is_absent(disk.index) {
                continue;
            }
            let read = LabelCopy::ALL.map(|copy| read(store, disk.index, copy));
            let is_lost = |copy: &Result<Label, LabelError>| {
                matches!(copy, Err(LabelError::Io(IoError::Lost)))
            };
            disk.copies = (!read.iter().any(is_lost)).then_some(read);
        }
        let standing = self.standing()?;
        self.mark = standing.mark;
        let found = standing.present.iter().map(|disk| {
            let mark = disk.complete.as_ref().map(|label| label.mark);
            let was_away = standing.mark.is_some() && mark.is_some() && mark != standing.mark;
            Found { index: disk.index, mark, was_away }
        });
        self.found = found.collect();
        self.refuse_of_other_servers()?;
        match standing.count_max <= COUNT_BEFORE_START_MAX {
            true => Ok(()),
            false => Err(used_up(&self.disks)),
        }
    }

    /// The labels with the mark that the set has come to say who had it last. One that was away may say who had
    /// it before.
    fn refuse_of_other_servers(&self) -> Result<(), Vec<Refusal>> {
        let elsewhere = |disk: &LabelledDisk| {
            let copies = disk.present()?.iter().filter_map(|copy| copy.as_ref().ok());
            let newest = copies.max_by_key(|label| label.mark)?;
            let found = newest.server;
            let is_last = self.mark.is_none_or(|mark| newest.mark >= mark);
            let is_elsewhere = is_last && found != 0 && found != self.server;
            let reason = Reason::ServedElsewhere { found, own: self.server };
            is_elsewhere.then_some(Refusal { index: disk.index, disk: disk.number, reason })
        };
        if self.server == 0 || self.takes_over {
            return Ok(());
        }
        let labelled = self.disks.iter().filter(|disk| disk.is_labelled);
        let refused: Vec<Refusal> = labelled.filter_map(elsewhere).collect();
        match refused.is_empty() {
            true => Ok(()),
            false => Err(refused),
        }
    }

    /// The copies of a disk that could not be read, with the reason, as [`check`](Self::check) found
    /// them. The next move writes them anew.
    pub fn unreadable(&self, disk: usize) -> impl Iterator<Item = (LabelCopy, &LabelError)> {
        let disk = self.disks.iter().find(|it| it.index == disk);
        let disk = disk.filter(|disk| disk.is_labelled);
        let copies = disk.and_then(|disk| disk.copies.as_ref());
        let both = copies.into_iter().flat_map(|it| LabelCopy::ALL.iter().zip(it));
        both.filter_map(|(copy, read)| Some((*copy, read.as_ref().err()?)))
    }

    /// Moves the count by one on the disks that [`check`](Self::check) found, that are still there, and
    /// that are not [held out](Self::hold). The label is durable on each of them then. Nothing is done
    /// where no disk has a label to go by and one that is away does.
    ///
    /// # Errors
    /// A disk of which an operation fails, with the reason. The labels are then as after a cut. Panics
    /// when the count is used up: a comparison leaves room for two moves.
    pub fn move_count(
        &mut self,
        store: &mut dyn LabelStore,
        random: u32,
    ) -> Result<(), (usize, IoError)> {
        self.lose_absent(&|disk| store.is_absent(disk));
        let begun = self.begin(random).map_err(|cannot| match cannot {
            CannotMove::CountUsedUp => panic!("a comparison has left room"),
            CannotMove::TooManyMarks(index) => (index, IoError::NoSpace),
        })?;
        let Some(mut moving) = begun else {
            return Ok(());
        };
        loop {
            let steps = moving.next_steps();
            if steps.is_empty() {
                break;
            }
            for step in steps {
                self.carry_out(store, step)?;
            }
        }
        self.end(&moving);
        Ok(())
    }

    /// Moves the count at a stop. A disk of which an operation fails counts as absent from then on, and
    /// the others go on without it, as long as there are counts: the labels are as after a cut otherwise.
    /// Returns those disks, with the reasons.
    pub fn move_count_at_stop(
        &mut self,
        store: &mut dyn LabelStore,
        random: u32,
    ) -> Vec<(usize, IoError)> {
        let mut failed = Vec::new();
        // Moves while the stack ran may have left no count.
        while has_room(&self.standing_since())
            && let Err((index, error)) = self.move_count(store, random)
        {
            failed.push((index, error));
            self.lose(index);
            // What was written of the move must not be torn together with what follows it.
            let present = self.disks.iter_mut().filter(|disk| disk.present().is_some());
            for disk in present {
                if let Err(error) = store.flush(disk.index) {
                    failed.push((disk.index, error));
                    disk.copies = None;
                }
            }
        }
        failed
    }

    /// Begins a move. `None`: there is nothing to be moved.
    pub(super) fn begin(&mut self, random: u32) -> Result<Option<Move>, CannotMove> {
        let standing = self.standing_since();
        let is_away = |disk: &LabelledDisk| disk.is_labelled && disk.present().is_none();
        let goes_by_none = standing.mark.is_none() && self.disks.iter().any(is_away);
        if goes_by_none || standing.present.is_empty() {
            return Ok(None);
        }
        if !has_room(&standing) {
            return Err(CannotMove::CountUsedUp);
        }
        let moving = Move::new(self.set, self.server, &standing, random);
        match moving.largest().filter(|write| self.sealed(write).is_none()) {
            Some(write) => Err(CannotMove::TooManyMarks(write.index)),
            None => Ok(Some(moving)),
        }
    }

    /// The address and the bytes of a copy; `None` when no block holds it.
    pub(super) fn sealed(&self, write: &LabelWrite) -> Option<(u64, Vec<u8>)> {
        let disk = self.disk(write.index)?;
        let block = write.label.seal(write.copy, disk.blocks)?;
        Some((write.copy.address(disk.blocks), block))
    }

    /// A copy was written.
    pub(super) fn wrote(&mut self, write: LabelWrite) {
        let LabelWrite { index, copy, label } = write;
        if let Some(disk) = self.disks.iter_mut().find(|disk| disk.index == index) {
            set_copy(disk, copy, label);
        }
    }

    /// A move has come to its end.
    pub(super) fn end(&mut self, moving: &Move) {
        self.mark = Some(moving.mark);
        let present = self.disks.iter_mut().filter(|disk| disk.present().is_some());
        for disk in present {
            disk.is_labelled = true;
        }
    }

    /// The disks of which this is true are not there any more. True when one of them took part.
    pub(super) fn lose_absent(&mut self, is_absent: &dyn Fn(usize) -> bool) -> bool {
        let mut took_part = false;
        for disk in self.disks.iter_mut().filter(|disk| is_absent(disk.index)) {
            took_part |= disk.present().is_some();
            disk.copies = None;
        }
        took_part
    }

    /// The disks of which this is true take no part in moves; all others that are there do.
    pub fn hold(&mut self, is_held: &dyn Fn(usize) -> bool) {
        for disk in &mut self.disks {
            disk.is_held = is_held(disk.index);
        }
    }

    /// The disks that take part, by their places.
    pub(super) fn present(&self) -> impl Iterator<Item = usize> {
        let present = self.disks.iter().filter(|disk| disk.present().is_some());
        present.map(|disk| disk.index)
    }

    /// How far the set has come; `None` where no disk has been in.
    pub fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// The mark at which the disk at a place was last in, as [`check`](Self::check) found it. Count 0:
    /// it is new. `None`: it was not there, or had no label.
    pub fn mark_found(&self, disk: usize) -> Option<Mark> {
        self.found(disk)?.mark
    }

    /// True when [`check`](Self::check) found that the set had come further without the disk at a place,
    /// and true of one that has come in the place of another since.
    pub fn was_away(&self, disk: usize) -> bool {
        self.found(disk).is_some_and(|found| found.was_away)
    }

    fn found(&self, disk: usize) -> Option<&Found> {
        self.found.iter().find(|found| found.index == disk)
    }

    fn disk(&self, index: usize) -> Option<&LabelledDisk> {
        self.disks.iter().find(|disk| disk.index == index)
    }

    /// The disk at a place is not there any more. No label is written to what takes its place, until
    /// [`replace`](Self::replace) says what that is.
    pub fn lose(&mut self, disk: usize) {
        self.lose_absent(&|index| index == disk);
    }

    /// Another disk takes the place of a lost one. It has yet to get its label.
    pub(crate) fn exchange(&mut self, disk: usize) {
        self.lose(disk);
        self.found.retain(|found| found.index != disk);
        self.found.push(Found { index: disk, mark: None, was_away: true });
    }

    /// The disk at a place has no label and gets none.
    pub fn leave_out(&mut self, disk: usize) {
        self.disks.retain(|it| it.index != disk);
    }

    /// The disk at a place is another one from now on, which offers `blocks`, and whose first write was
    /// the label of a [new](Label::new) disk with this number.
    pub fn replace(&mut self, disk: usize, number: u16, random: u32, blocks: u64) {
        let label = Label::new(self.set, number, random);
        self.exchange(disk);
        for found in self.found.iter_mut().filter(|found| found.index == disk) {
            found.mark = Some(label.mark);
        }
        self.leave_out(disk);
        self.disks.push(LabelledDisk {
            blocks,
            copies: Some([Ok(label.clone()), Ok(label)]),
            ..LabelledDisk::new(disk, number, true)
        });
    }

    /// True where no disk has a label or gets one.
    pub fn is_empty(&self) -> bool {
        self.disks.is_empty()
    }

    /// The disks that have a label now, by their places.
    pub fn labelled(&self) -> impl Iterator<Item = usize> {
        let labelled = self.disks.iter().filter(|disk| disk.is_labelled);
        labelled.map(|disk| disk.index)
    }

    fn standing(&self) -> Result<Standing, Vec<Refusal>> {
        compare(self.set, &self.disks, self.judgement)
    }

    /// The set since it was compared.
    fn standing_since(&self) -> Standing {
        // The labels belonged together then, and nobody else has written any since.
        let Ok(standing) = self.standing() else {
            unreachable!("labels that belonged together");
        };
        standing
    }

    fn carry_out(
        &mut self,
        store: &mut dyn LabelStore,
        step: Step,
    ) -> Result<(), (usize, IoError)> {
        match step {
            Step::Write(write) => {
                let index = write.index;
                let failed = |error| (index, error);
                let (address, block) = self.sealed(&write).ok_or(failed(IoError::NoSpace))?;
                store.write(index, address, &block).map_err(failed)?;
                self.wrote(write);
                Ok(())
            }
            Step::Flush(index) => store.flush(index).map_err(|error| (index, error)),
        }
    }
}

fn read(store: &mut dyn LabelStore, disk: usize, copy: LabelCopy) -> Result<Label, LabelError> {
    let blocks = store.blocks(disk);
    let block = store.read(disk, copy.address(blocks));
    Label::unseal(&block.map_err(LabelError::Io)?, copy, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::codec::COUNT_MAX;
    use crate::label::{Mark, Reason};
    use crate::units::BLOCK_BYTES;
    use alloc::string::ToString;
    use alloc::vec;

    const SET: Uuid = Uuid([7; 16]);
    const BLOCKS: u64 = 5;

    /// The two blocks behind each disk.
    struct Memory {
        disks: Vec<[Vec<u8>; 2]>,
        /// Writes to this disk fail.
        broken: Option<usize>,
    }

    impl LabelStore for Memory {
        fn is_absent(&self, _disk: usize) -> bool {
            false
        }

        fn blocks(&self, _disk: usize) -> u64 {
            BLOCKS
        }

        fn read(&mut self, disk: usize, block: u64) -> Result<Vec<u8>, IoError> {
            Ok(self.disks[disk][(block - BLOCKS) as usize].clone())
        }

        fn write(&mut self, disk: usize, block: u64, bytes: &[u8]) -> Result<(), IoError> {
            if self.broken == Some(disk) {
                return Err(IoError::Medium);
            }
            self.disks[disk][(block - BLOCKS) as usize] = bytes.to_vec();
            Ok(())
        }

        fn flush(&mut self, _disk: usize) -> Result<(), IoError> {
            Ok(())
        }
    }

    impl Memory {
        fn blank(disks: usize) -> Memory {
            let block = || vec![0; BLOCK_BYTES as usize];
            Memory { disks: (0..disks).map(|_| [block(), block()]).collect(), broken: None }
        }

        /// The counts of both copies of all disks.
        fn counts(&self) -> Vec<u32> {
            let copies = self.disks.iter().flat_map(|it| it.iter().zip(LabelCopy::ALL));
            let read = copies.map(|(block, copy)| Label::unseal(block, copy, BLOCKS));
            read.map(|label| label.expect("a label").mark.count).collect()
        }

        /// Writes the labels of a set that has come to a count.
        fn at(disks: usize, count: u32) -> Memory {
            let mut memory = Memory::blank(disks);
            let mut labels = labels(disks, false);
            labels.check(&mut memory).expect("blank disks");
            labels.move_count(&mut memory, 1).expect("memory");
            for disk in &mut memory.disks {
                for (block, copy) in disk.iter_mut().zip(LabelCopy::ALL) {
                    let mut label = Label::unseal(block, copy, BLOCKS).expect("a label");
                    label.mark.count = count;
                    for entry in &mut label.entries {
                        (entry.last, entry.before) = (label.mark, None);
                    }
                    *block = label.seal(copy, BLOCKS).expect("a block holds it");
                }
            }
            memory
        }
    }

    fn labels(disks: usize, is_labelled: bool) -> Labels {
        let listed = (1..=disks as u16).map(|number| Some(ListedDisk { number, is_labelled }));
        Labels::new(SET, &listed.collect::<Vec<_>>())
    }

    /// Whoever finds count 1 may take it that nobody was served from the disk.
    #[test]
    fn a_creation_begins_with_count_1_and_a_set_that_goes_over_behind_it() {
        for (is_creation, expected) in [(true, 1), (false, 2)] {
            let mut memory = Memory::blank(2);
            let mut labels = labels(2, false);
            labels.judgement.is_creation = is_creation;
            labels.check(&mut memory).expect("blank disks");
            labels.move_count(&mut memory, 1).expect("memory");
            assert_eq!(memory.counts(), [expected; 4], "creation {is_creation}");
            labels.move_count(&mut memory, 2).expect("memory");
            assert_eq!(memory.counts(), [expected + 1; 4]);
        }
        // What lies on a disk that is used again is no label of the set that is created.
        let mut memory = Memory::at(1, COUNT_MAX);
        let mut labels = labels(1, false);
        labels.judgement.is_creation = true;
        labels.check(&mut memory).expect("no label counts");
        labels.move_count(&mut memory, 1).expect("memory");
        assert_eq!(memory.counts(), [1; 2]);
    }

    #[test]
    fn a_set_has_room_for_a_start_and_its_stop_or_is_refused() {
        for disks in [1, 3] {
            let mut memory = Memory::at(disks, COUNT_MAX - 2);
            let mut last = labels(disks, true);
            last.check(&mut memory).expect("room for two");
            last.move_count(&mut memory, 1).expect("memory");
            assert!(memory.counts().iter().all(|count| *count == COUNT_MAX - 1));
            assert_eq!(last.move_count_at_stop(&mut memory, 2), []);
            assert!(memory.counts().iter().all(|count| *count == COUNT_MAX));
            for count in [COUNT_MAX - 1, COUNT_MAX] {
                let before = Memory::at(disks, count);
                let mut memory = Memory::at(disks, count);
                let refused = labels(disks, true).check(&mut memory);
                let refused = refused.expect_err("no room for two");
                let found = count;
                assert_eq!(refused.len(), disks);
                assert_eq!(refused[0].reason, Reason::CountUsedUp { found });
                let expected = alloc::format!(
                    "its label has come to count {count}, and a start and its stop need two more; \
                     accepted: counts of at most 4294967292"
                );
                assert_eq!(refused[0].reason.to_string(), expected);
                assert_eq!(memory.disks, before.disks);
            }
            let mut memory = Memory::at(disks, u32::MAX);
            let refused = labels(disks, true).check(&mut memory);
            let refused = refused.expect_err("no label says so");
            assert_eq!(refused[0].reason, Reason::NoLabel(LabelError::Content));
        }
    }

    /// The one that is listed may be away.
    #[test]
    fn a_count_that_is_listed_counts_too() {
        let mut memory = Memory::at(2, 9);
        let away = Mark { count: COUNT_MAX - 1, random: 5 };
        for (block, copy) in memory.disks[0].iter_mut().zip(LabelCopy::ALL) {
            let mut label = Label::unseal(block, copy, BLOCKS).expect("a label");
            label.entries[1].last = away;
            *block = label.seal(copy, BLOCKS).expect("a block holds it");
        }
        memory.disks.truncate(1);
        let refused = labels(1, true).check(&mut memory);
        let found = away.count;
        let refused = refused.expect_err("no room");
        assert_eq!(refused[0].reason, Reason::CountUsedUp { found });
    }

    #[test]
    fn a_stop_that_finds_no_count_for_those_that_are_left_ends() {
        let mut memory = Memory::at(3, COUNT_MAX - 2);
        let mut labels = labels(3, true);
        labels.check(&mut memory).expect("room for two");
        labels.move_count(&mut memory, 1).expect("memory");
        memory.broken = Some(2);
        let failed = labels.move_count_at_stop(&mut memory, 2);
        assert_eq!(failed, [(2, IoError::Medium)]);
        // As after a cut: each has a whole copy that the others list.
        let expected = [COUNT_MAX, COUNT_MAX - 1];
        let disks = [expected, expected, [COUNT_MAX - 1; 2]];
        assert_eq!(memory.counts(), disks.concat());
    }
}
