//! The labels of a set over whatever holds their blocks.

use super::compare::{LabelledDisk, Standing, compare, set_copy};
use super::moving::{LabelWrite, rounds};
use super::{Label, LabelCopy, LabelError, Refusal};
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

/// The labels of the disks of a set.
#[derive(Clone, Debug)]
pub struct Labels {
    set: Uuid,
    disks: Vec<LabelledDisk>,
    /// A planted bug: nothing is compared.
    pub(super) is_lenient: bool,
}

impl Labels {
    /// The labels of a set, by the places of its disks in the stack. `None`: the disk has no label and
    /// gets none.
    pub fn new(set: Uuid, listed: &[Option<ListedDisk>]) -> Labels {
        let disks = listed.iter().enumerate().filter_map(|(index, listed)| {
            let ListedDisk {
                number,
                is_labelled,
            } = (*listed)?;
            Some(LabelledDisk {
                index,
                number,
                is_labelled,
                copies: None,
            })
        });
        Labels {
            set,
            disks: disks.collect(),
            is_lenient: false,
        }
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

    /// Reads the labels and compares them. Nothing is written.
    ///
    /// # Errors
    /// The disks that must not be used with the others, by their places.
    pub fn check(&mut self, store: &mut dyn LabelStore) -> Result<(), Vec<Refusal>> {
        for disk in &mut self.disks {
            disk.copies = None;
            if store.is_absent(disk.index) {
                continue;
            }
            let read = LabelCopy::ALL.map(|copy| read(store, disk.index, copy));
            let is_lost = |copy: &Result<Label, LabelError>| {
                matches!(copy, Err(LabelError::Io(IoError::Lost)))
            };
            disk.copies = (!read.iter().any(is_lost)).then_some(read);
        }
        self.standing().map(|_| ())
    }

    /// The copies of a disk that could not be read, with the reason, as [`check`](Self::check) found
    /// them. The next move writes them anew.
    pub fn unreadable(&self, disk: usize) -> impl Iterator<Item = (LabelCopy, &LabelError)> {
        let disk = self.disks.iter().find(|it| it.index == disk);
        let disk = disk.filter(|disk| disk.is_labelled);
        let copies = disk.and_then(|disk| disk.copies.as_ref());
        let both = copies
            .into_iter()
            .flat_map(|it| LabelCopy::ALL.iter().zip(it));
        both.filter_map(|(copy, read)| Some((*copy, read.as_ref().err()?)))
    }

    /// Moves the count by one on the disks that [`check`](Self::check) found and that are still there.
    /// The label is durable on each of them then. Nothing is done where no disk has a label to go by
    /// and one that is away does.
    ///
    /// # Errors
    /// A disk of which an operation fails, with the reason. The labels are then as after a cut.
    pub fn move_count(
        &mut self,
        store: &mut dyn LabelStore,
        random: u32,
    ) -> Result<(), (usize, IoError)> {
        for disk in &mut self.disks {
            if store.is_absent(disk.index) {
                disk.copies = None;
            }
        }
        // The labels belonged together when they were compared, and nobody else has written any since.
        let Ok(standing) = self.standing() else {
            unreachable!("labels that belonged together");
        };
        let goes_by_none = standing.mark.is_none();
        let is_away = |disk: &LabelledDisk| disk.is_labelled && disk.copies.is_none();
        if goes_by_none && self.disks.iter().any(is_away) {
            return Ok(());
        }
        for round in rounds(self.set, &standing, random) {
            self.write_round(store, round)?;
        }
        let present = self.disks.iter_mut().filter(|disk| disk.copies.is_some());
        for disk in present {
            disk.is_labelled = true;
        }
        Ok(())
    }

    /// Moves the count at a stop. A disk of which an operation fails counts as absent from then on, and
    /// the others go on without it. Returns those disks, with the reasons.
    pub fn move_count_at_stop(
        &mut self,
        store: &mut dyn LabelStore,
        random: u32,
    ) -> Vec<(usize, IoError)> {
        let mut failed = Vec::new();
        while let Err((index, error)) = self.move_count(store, random) {
            failed.push((index, error));
            self.lose(index);
            // What was written of the move must not be torn together with what follows it.
            let present = self.disks.iter_mut().filter(|disk| disk.copies.is_some());
            for disk in present {
                if let Err(error) = store.flush(disk.index) {
                    failed.push((disk.index, error));
                    disk.copies = None;
                }
            }
        }
        failed
    }

    /// The disk at a place is not there any more. No label is written to what takes its place, until
    /// [`replace`](Self::replace) says what that is.
    pub fn lose(&mut self, disk: usize) {
        if let Some(disk) = self.disks.iter_mut().find(|it| it.index == disk) {
            disk.copies = None;
        }
    }

    /// The disk at a place has no label and gets none.
    pub fn leave_out(&mut self, disk: usize) {
        self.disks.retain(|it| it.index != disk);
    }

    /// The disk at a place is another one from now on, whose first write was the label of a
    /// [new](Label::new) disk with this number.
    pub fn replace(&mut self, disk: usize, number: u16, random: u32) {
        let copy = || Ok(Label::new(self.set, number, random));
        let copies = Some([copy(), copy()]);
        self.leave_out(disk);
        self.disks.push(LabelledDisk {
            index: disk,
            number,
            is_labelled: true,
            copies,
        });
    }

    /// The disks that have a label now, by their places.
    pub fn labelled(&self) -> impl Iterator<Item = usize> {
        let labelled = self.disks.iter().filter(|disk| disk.is_labelled);
        labelled.map(|disk| disk.index)
    }

    fn standing(&self) -> Result<Standing, Vec<Refusal>> {
        compare(self.set, &self.disks, self.is_lenient)
    }

    fn write_round(
        &mut self,
        store: &mut dyn LabelStore,
        round: Vec<LabelWrite>,
    ) -> Result<(), (usize, IoError)> {
        let indexes: Vec<usize> = round.iter().map(|write| write.index).collect();
        for LabelWrite { index, copy, label } in round {
            let blocks = store.blocks(index);
            let failed = |error| (index, error);
            let block = label.seal(copy, blocks);
            let block = block.ok_or(failed(IoError::NoSpace))?;
            store
                .write(index, copy.address(blocks), &block)
                .map_err(failed)?;
            let mut disks = self.disks.iter_mut();
            if let Some(disk) = disks.find(|disk| disk.index == index) {
                set_copy(disk, copy, label);
            }
        }
        for index in indexes {
            store.flush(index).map_err(|error| (index, error))?;
        }
        Ok(())
    }
}

fn read(store: &mut dyn LabelStore, disk: usize, copy: LabelCopy) -> Result<Label, LabelError> {
    let blocks = store.blocks(disk);
    let block = store.read(disk, copy.address(blocks));
    Label::unseal(&block.map_err(LabelError::Io)?, copy, blocks)
}
