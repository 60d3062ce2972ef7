//! What a real door keeps beside the disks: a description that says which disk is in each place and which
//! numbers its members have, changed in one piece, durable at once.

use super::site::{GENERATIONS, Site};
use crate::crashtest::recording_disk::World;
use std::cell::RefCell;
use std::rc::Rc;

/// What stands in the description of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// By place where its disk lies: a medium of the world. It says which number the label of the disk has.
    pub media: Vec<usize>,
    /// The numbers of the members, in the order in which the stack lists them.
    pub numbers: Vec<u16>,
    /// No member ever had this number or a greater one.
    pub next_number: u16,
}

impl Description {
    /// Of a device that was just made.
    pub fn first(site: &Site) -> Description {
        let numbers: Vec<u16> = site.stack.numbers().iter().map(|it| it.number).collect();
        let next_number = numbers.iter().max().map_or(1, |last| last + 1);
        Description { media: (0..site.disks()).collect(), numbers, next_number }
    }
}

/// A new disk that is not described yet: an image gives it a temporary name, and forgets it when it is opened
/// again.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// Its place.
    pub disk: usize,
    /// Where it lies.
    pub medium: usize,
    /// The number of the first member on it.
    pub first_member: u16,
}

/// A description and all its changes, each at an event of the world's log.
#[derive(Clone)]
pub struct Door {
    changes: Vec<(u64, Description)>,
    /// By place the disks that were taken from those that lie ready.
    used: Vec<usize>,
    members_on: Vec<Vec<usize>>,
    reuses_numbers: bool,
}

impl Door {
    /// The door of a device that is described so. `used` is what an [earlier one](Self::used) has used up.
    pub fn new(site: &Site, now: Description, used: Vec<usize>) -> Door {
        Door {
            changes: vec![(0, now)],
            used,
            members_on: site.members_on.clone(),
            reuses_numbers: site.wrong.reuses_numbers,
        }
    }

    /// The description.
    pub fn now(&self) -> &Description {
        &self.changes.last().expect("a description").1
    }

    /// What a power cut at a log index finds.
    pub fn at(&self, index: u64) -> &Description {
        let before = self.changes.iter().rev();
        let mut found = before.filter(|(event, _)| *event <= index);
        &found.next().expect("a first description").1
    }

    /// By place how many disks were taken there.
    pub fn used(&self) -> &[usize] {
        &self.used
    }

    fn change(&mut self, to: Description, world: &Rc<RefCell<World>>) {
        let log = &mut world.borrow_mut().log;
        log.event();
        self.changes.push((log.events, to));
    }

    /// Uses up numbers, durably, and takes a disk that lies ready. `None` when there is none any more.
    pub fn begin_replacement(
        &mut self,
        disk: usize,
        world: &Rc<RefCell<World>>,
    ) -> Option<Temporary> {
        let generation = self.used[disk] + 1;
        if generation >= GENERATIONS {
            return None;
        }
        let mut now = self.now().clone();
        let members = &self.members_on[disk];
        let first_member = match (self.reuses_numbers, members.first()) {
            (true, Some(member)) => now.numbers[*member],
            _ => now.next_number,
        };
        now.next_number += members.len() as u16;
        self.used[disk] = generation;
        self.change(now, world);
        let medium = disk + self.used.len() * generation;
        Some(Temporary { disk, medium, first_member })
    }

    /// The layers have taken the disk: from now on it is the one in its place.
    pub fn end_replacement(&mut self, made: &Temporary, world: &Rc<RefCell<World>>) {
        let mut now = self.now().clone();
        for (number, member) in (made.first_member..).zip(&self.members_on[made.disk]) {
            now.numbers[*member] = number;
        }
        now.media[made.disk] = made.medium;
        self.change(now, world);
    }
}
