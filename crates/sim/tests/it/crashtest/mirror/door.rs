//! What a real door keeps beside the members: a description that says which member is behind each
//! port, changed in one piece, durable at once.

use imbrex_sim::crashtest::recording_disk::World;
use std::cell::RefCell;
use std::rc::Rc;

/// What stands in the description of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// The number of the member behind each port.
    pub numbers: [u16; 2],
    /// Where it lies: a medium of the world.
    pub media: [usize; 2],
    /// No member ever had this number or a greater one.
    pub next_number: u16,
}

impl Description {
    /// Of a device that was just made.
    pub const FIRST: Description = Description { numbers: [0, 1], media: [0, 1], next_number: 2 };
}

/// A new member that is not described yet: in the world of files it has a temporary name, and is
/// forgotten when the device is opened again.
#[derive(Clone, Copy, Debug)]
pub struct Temporary {
    pub port: usize,
    pub number: u16,
    pub medium: usize,
}

/// A description and all its changes, each at an event of the world's log.
#[derive(Clone)]
pub struct Door {
    changes: Vec<(u64, Description)>,
    /// The first medium that no member was ever on.
    next_medium: usize,
    /// Gives a new member the number of the one that it replaces.
    reuses_numbers: bool,
}

impl Door {
    pub fn new(now: Description, next_medium: usize, reuses_numbers: bool) -> Door {
        Door { changes: vec![(0, now)], next_medium, reuses_numbers }
    }

    pub fn now(&self) -> Description {
        self.changes.last().expect("a description").1
    }

    /// What a power cut at a log index finds.
    pub fn at(&self, index: u64) -> Description {
        let before = self.changes.iter().rev();
        let mut found = before.filter(|(event, _)| *event <= index);
        found.next().expect("a first description").1
    }

    pub fn next_medium(&self) -> usize {
        self.next_medium
    }

    fn change(&mut self, to: Description, world: &Rc<RefCell<World>>) {
        let log = &mut world.borrow_mut().log;
        log.event();
        self.changes.push((log.events, to));
    }

    /// Uses up a number, durably, and makes a member under a temporary name.
    pub fn begin_replacement(&mut self, port: usize, world: &Rc<RefCell<World>>) -> Temporary {
        let now = self.now();
        let number = match self.reuses_numbers {
            true => now.numbers[port],
            false => now.next_number,
        };
        let used_up = Description { next_number: now.next_number + 1, ..now };
        self.change(used_up, world);
        let medium = self.next_medium;
        self.next_medium += 1;
        Temporary { port, number, medium }
    }

    /// The layers have taken the member: from now on it is the one behind its port.
    pub fn end_replacement(&mut self, made: Temporary, world: &Rc<RefCell<World>>) {
        let mut now = self.now();
        now.numbers[made.port] = made.number;
        now.media[made.port] = made.medium;
        self.change(now, world);
    }
}
