//! What is to be done with blocks, in the order of the decisions.

use super::blocks::NONE;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::map::{AddressMap, Slab, address_map};
use crate::operation::Request;
use crate::saved::SavedValue;

/// What a request is to the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum JobKind {
    /// A read, with all of its blocks at once.
    Read,
    /// A write to memory, block by block.
    Write,
    /// A write where there is no memory.
    Around,
    /// A flush, or a forced write that has become one.
    Flush,
}

/// A request of the host.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Job {
    pub request: Request,
    pub kind: JobKind,
    /// Its tasks.
    pub tasks: List,
    /// Tasks, or operations, that have not ended.
    pub left: u32,
    /// Tasks for which others have to end first.
    pub blocked: u32,
    /// Of a read: more was read below than memory lacks of it, so that less may be read where all cannot.
    pub has_read_more: bool,
    pub result: Result<(), IoError>,
}

impl Job {
    /// A request of which nothing was decided yet.
    pub fn new(request: Request, kind: JobKind) -> Job {
        Job {
            request,
            kind,
            tasks: List::EMPTY,
            left: 0,
            blocked: 0,
            has_read_more: false,
            result: Ok(()),
        }
    }
}

/// Tasks in the order of their blocks.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct List {
    pub first: u32,
    last: u32,
}

impl List {
    /// No tasks.
    pub const EMPTY: List = List { first: NONE, last: NONE };
}

/// Who a task is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Owner {
    /// A request of the host.
    Job(u32),
    /// Blocks that leave together.
    Batch(u32),
}

/// How far the data of a task has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Step {
    /// Nothing was asked for.
    Begun,
    /// The store of copies is asked.
    Asked,
    /// The block is read below.
    ReadBelow,
    /// It could not be read.
    Failed,
}

/// What is to be done with one block for one request or batch.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Task {
    pub owner: Owner,
    pub block: u64,
    /// The entry that was found or made when it was decided; none where there is none.
    pub entry: u32,
    /// The parts of the block that are asked for.
    pub first: u64,
    pub count: u64,
    /// Of a read: memory keeps what is missing.
    pub fills: bool,
    pub step: Step,
    /// Of a write: operations that have not ended.
    pub left: u32,
    /// A whole block, from elsewhere.
    pub temp: BufferSlice,
    /// What of it is on its way to the log, and journal blocks that are kept for its records.
    pub log: (u32, u64),
    next_on_block: u32,
    next_of_owner: u32,
}

impl Task {
    /// Something to do with parts of a block.
    pub fn new(owner: Owner, block: u64, entry: u32, first: u64, count: u64) -> Task {
        Task {
            owner,
            block,
            entry,
            first,
            count,
            fills: false,
            step: Step::Begun,
            left: 0,
            temp: BufferSlice::EMPTY,
            log: (NONE, 0),
            next_on_block: NONE,
            next_of_owner: NONE,
        }
    }
}

/// The tasks. Those of one block are done one after the other, in the order of adding.
#[derive(Debug, SavedValue)]
pub(super) struct Tasks {
    slab: Slab<Task>,
    /// The first and the last task of each block that has some.
    queues: AddressMap<(u32, u32)>,
}

impl Tasks {
    /// No tasks.
    pub fn new() -> Tasks {
        Tasks { slab: Slab::default(), queues: address_map(64) }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    /// Adds a task, behind those of the same block and to a list. True when it can be done now.
    pub fn add(&mut self, task: Task, list: &mut List) -> (u32, bool) {
        let number = self.slab.add(task);
        match list.last {
            NONE => list.first = number,
            last => self.slab[last].next_of_owner = number,
        }
        list.last = number;
        let queue = self.queues.entry(task.block).or_insert((NONE, NONE));
        let last = core::mem::replace(&mut queue.1, number);
        if last == NONE {
            queue.0 = number;
            return (number, true);
        }
        self.slab[last].next_on_block = number;
        (number, false)
    }

    /// A task is done. Returns the next of its block, which can be done now.
    pub fn finish(&mut self, number: u32) -> Option<u32> {
        let task = self.slab.take(number);
        let queue = self.queues.get_mut(&task.block).expect("a task's queue");
        assert_eq!(queue.0, number, "a task ends before an earlier one");
        if task.next_on_block == NONE {
            self.queues.remove(&task.block);
            return None;
        }
        queue.0 = task.next_on_block;
        Some(task.next_on_block)
    }

    /// The task after this one in the list of its owner.
    pub fn next_of_owner(&self, number: u32) -> Option<u32> {
        let next = self.slab[number].next_of_owner;
        (next != NONE).then_some(next)
    }

    /// The first task of a list.
    pub fn first(list: List) -> Option<u32> {
        (list.first != NONE).then_some(list.first)
    }
}

impl core::ops::Index<u32> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, number: u32) -> &Task {
        &self.slab[number]
    }
}

impl core::ops::IndexMut<u32> for Tasks {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Task {
        &mut self.slab[number]
    }
}
