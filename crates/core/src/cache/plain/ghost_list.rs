//! Blocks that have left and are remembered for a while by nothing but their addresses.

use crate::cache::block_index::{BlockIndex, Chained};
use crate::map::LruList;
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// The blocks that left last, in the order of their leaving. Nothing is allocated once as many were
/// remembered as ever are.
#[derive(SavedValue)]
pub(super) struct GhostList {
    /// Blocks that it remembers at most.
    most: u64,
    /// By number.
    ghosts: Vec<Ghost>,
    /// Numbers of ghosts that are none any more.
    free: Vec<u32>,
    order: LruList,
    index: BlockIndex,
}

#[derive(SavedValue)]
struct Ghost {
    lba: Lba,
    /// The next one of its bucket.
    next: u32,
}

impl Chained for Vec<Ghost> {
    fn lba(&self, id: u32) -> Lba {
        self[id as usize].lba
    }

    fn next(&self, id: u32) -> u32 {
        self[id as usize].next
    }

    fn set_next(&mut self, id: u32, next: u32) {
        self[id as usize].next = next;
    }
}

impl GhostList {
    /// An empty list that remembers so many blocks.
    pub(super) fn new(most: u64) -> GhostList {
        // Ghosts are numbered as entries are.
        let most = most.min(u64::from(u32::MAX - 2));
        GhostList {
            most,
            ghosts: Vec::new(),
            free: Vec::new(),
            order: LruList::new(),
            index: BlockIndex::growing_to(most as usize),
        }
    }

    /// Blocks that are remembered.
    pub(super) fn len(&self) -> u64 {
        (self.ghosts.len() - self.free.len()) as u64
    }

    /// A block has left. The oldest is forgotten where that is one too many.
    pub(super) fn remember(&mut self, lba: Lba) {
        self.forget(lba);
        if self.most == 0 {
            return;
        }
        if self.len() == self.most {
            self.forget_oldest();
        }
        let ghost = Ghost { lba, next: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.ghosts[id as usize] = ghost;
                id
            }
            None => {
                self.ghosts.push(ghost);
                (self.ghosts.len() - 1) as u32
            }
        };
        self.index.make_room(self.ghosts.len(), &mut self.ghosts);
        self.index.link(id, &mut self.ghosts);
        self.order.push_newest(id);
    }

    /// Forgets a block. True when it was remembered.
    pub(super) fn forget(&mut self, lba: Lba) -> bool {
        let id = self.index.find(lba, &self.ghosts);
        if let Some(id) = id {
            self.forget_number(id);
        }
        id.is_some()
    }

    /// Forgets the block that has left first.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(id) = self.order.oldest() {
            self.forget_number(id);
        }
    }

    fn forget_number(&mut self, id: u32) {
        self.index.unlink(id, &mut self.ghosts);
        self.order.remove(id);
        self.free.push(id);
    }

    /// Writes the blocks down, the oldest first.
    pub(super) fn save(&self, state: &mut StateWriter) {
        state.put_u64(self.len());
        for id in self.order.oldest_first() {
            state.put_u64(self.ghosts[id as usize].lba.0);
        }
    }

    /// Takes back into an empty list what [`save`](Self::save) wrote.
    pub(super) fn restore(&mut self, state: &mut StateReader<'_>) -> Result<(), StateError> {
        let count = state.take_u64()?;
        if count > self.most {
            return Err(StateError::new("the saved cache remembers more blocks than it may"));
        }
        for _ in 0..count {
            self.remember(Lba(state.take_u64()?));
        }
        match self.len() == count {
            true => Ok(()),
            false => Err(StateError::new("the saved cache remembers a block twice")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn remembered(list: &GhostList) -> Vec<u64> {
        list.order.oldest_first().map(|id| list.ghosts[id as usize].lba.0).collect()
    }

    #[test]
    fn the_last_that_left_are_remembered_each_once() {
        let mut list = GhostList::new(3);
        for lba in [5, 1, 5, 9, 2] {
            list.remember(Lba(lba));
        }
        assert_eq!(remembered(&list), [5, 9, 2]);
        assert!(list.forget(Lba(9)) && !list.forget(Lba(9)) && !list.forget(Lba(1)));
        list.remember(Lba(4));
        list.forget_oldest();
        assert_eq!((remembered(&list), list.len()), (vec![2, 4], 2));
        let mut none = GhostList::new(0);
        none.remember(Lba(1));
        assert_eq!(none.len(), 0);
    }

    #[test]
    fn as_many_as_ever_fit_are_found_again() {
        let mut list = GhostList::new(1000);
        (0..5000).for_each(|lba| list.remember(Lba(lba * 7)));
        assert_eq!((list.len(), list.ghosts.len()), (1000, 1000));
        assert!((0..5000).all(|lba| list.forget(Lba(lba * 7)) == (lba >= 4000)));
    }
}
