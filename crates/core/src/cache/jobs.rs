//! What the cache has in hand: jobs, the host requests they belong to, and who waits for what.

use super::entries::{Entries, NONE};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::map::Slab;
use crate::operation::{Cause, Operation, RequestId};
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// What a job does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum JobKind {
    /// Reads cached blocks for a host request.
    FlashRead,
    /// Writes blocks of a host request into their slots.
    FlashWrite,
    /// Writes blocks of a host request into fresh slots, which a record gives to them.
    FreshWrite,
    /// Reads missing blocks below for a host request.
    MissRead,
    /// Writes blocks that were read below into their slots.
    Fill,
    /// Reads evicted dirty blocks from their slots and writes them below.
    Destage,
    /// A host write around the cache, or a zeroing.
    BackingWrite,
    /// Flushes both ports.
    Flush,
    /// Brings blocks of a zone that is to be rewritten from below into flash.
    Fetch,
    /// Resets a zone that is durable in flash.
    ZoneReset,
}

/// A piece of work on a run of blocks, from the decision to its last completion.
#[derive(Debug, SavedValue)]
pub(super) struct Job {
    pub kind: JobKind,
    /// What is issued for a host request.
    pub operation: Operation,
    pub cause: Cause,
    /// The host request it is a part of, or [`NONE`].
    pub host: u32,
    /// The blocks, in addresses below.
    pub extent: Extent,
    pub buffer: BufferSlice,
    /// The entries it names, by address; of a reset the destages that it keeps waiting.
    pub entries: Vec<u32>,
    /// Things that must happen before it starts.
    pub blocked: u32,
    /// Operations in flight.
    pub outstanding: u32,
    /// Its data has been read, or it has none to read: its write may be issued in its turn.
    pub ready: bool,
    /// The first thing that went wrong.
    pub error: Option<IoError>,
}

impl Job {
    /// A job of which only its kind is known. It is blocked once, by whoever makes it.
    fn new(kind: JobKind, host: u32, operation: Operation, cause: Cause) -> Job {
        Job {
            kind,
            operation,
            cause,
            host,
            extent: Extent::EMPTY,
            buffer: BufferSlice::EMPTY,
            entries: Vec::new(),
            blocked: 1,
            outstanding: 0,
            ready: false,
            error: None,
        }
    }
}

/// The jobs in hand, by number; the numbers are the tags of their operations.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Jobs {
    jobs: Slab<Job>,
    /// Operations of all jobs, on either port.
    pub operations_in_flight: u64,
}

impl Jobs {
    /// A new job, blocked once.
    pub fn open(&mut self, kind: JobKind, host: u32, operation: Operation, cause: Cause) -> u32 {
        let id = self.jobs.reuse_or(|| Job::new(kind, host, operation, cause));
        let job = &mut self.jobs[id];
        // The list of entries keeps its memory from job to job.
        let entries = core::mem::take(&mut job.entries);
        *job = Job { entries, ..Job::new(kind, host, operation, cause) };
        id
    }

    #[inline]
    pub fn get(&self, id: u32) -> &Job {
        &self.jobs[id]
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Job {
        &mut self.jobs[id]
    }

    /// Every job, and those that have ended, which have no blocks.
    pub fn iter(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter()
    }

    /// How many numbers of jobs were ever in use at once.
    pub fn high_water(&self) -> u32 {
        self.jobs.iter().len() as u32
    }

    /// Takes the list of a job's entries out for a while.
    pub fn take_entries(&mut self, id: u32) -> Vec<u32> {
        core::mem::take(&mut self.jobs[id].entries)
    }

    /// Ends a job. `entries` is its list, whose memory is kept.
    pub fn close(&mut self, id: u32, mut entries: Vec<u32>) {
        entries.clear();
        self.jobs[id].extent = Extent::EMPTY;
        self.jobs[id].entries = entries;
        self.jobs.remove(id);
    }
}

/// Host requests that are not answered yet.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Hosts(Slab<HostRequest>);

#[derive(Clone, Copy, Debug, SavedValue)]
struct HostRequest {
    id: RequestId,
    /// Jobs that must end first.
    parts: u32,
    error: Option<IoError>,
}

impl Hosts {
    /// Takes a request in hand, with one part: the caller's own.
    pub fn open(&mut self, id: RequestId) -> u32 {
        self.0.add(HostRequest { id, parts: 1, error: None })
    }

    /// The request with this number.
    pub fn id_of(&self, index: u32) -> RequestId {
        self.0[index].id
    }

    /// Adds a part.
    #[inline]
    pub fn add_part(&mut self, index: u32) {
        self.0[index].parts += 1;
    }

    /// Ends a part. After the last one, returns what to answer.
    #[inline]
    pub fn end_part(
        &mut self,
        index: u32,
        error: Option<IoError>,
    ) -> Option<(RequestId, Result<(), IoError>)> {
        let request = &mut self.0[index];
        request.error = request.error.or(error);
        request.parts -= 1;
        if request.parts > 0 {
            return None;
        }
        let HostRequest { id, error, .. } = self.0.take(index);
        Some((id, error.map_or(Ok(()), Err)))
    }
}

/// Something that happens to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Event {
    /// It got a slot, or needs none any more.
    Slotted,
    /// A write to its slot has completed.
    Written,
    /// No older version of its block is left.
    Alone,
    /// It is alone and no write to its slot is outstanding.
    Settled,
    /// It has left: its block may be read and written below.
    Gone,
}

/// Who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Waiter {
    /// A job, which is blocked once for it.
    Job(u32),
    /// The next version of the same block.
    Successor(u32),
}

/// Lists of who waits for which event of an entry, in the order of coming.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Waits {
    nodes: Slab<Wait>,
    /// Used within one call only; kept for its memory.
    pub woken: Vec<Waiter>,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Wait {
    event: Event,
    waiter: Waiter,
    next: u32,
}

impl Waits {
    /// Lets `waiter` wait for an event of an entry.
    pub fn add(&mut self, entries: &mut Entries, id: u32, event: Event, waiter: Waiter) {
        let node = self.nodes.add(Wait { event, waiter, next: NONE });
        let mut last = entries.waits(id);
        if last == NONE {
            return entries.set_waits(id, node);
        }
        while self.nodes[last].next != NONE {
            last = self.nodes[last].next;
        }
        self.nodes[last].next = node;
    }

    /// Those who wait for an event of an entry, `first` the first of the waits for it.
    pub fn of(&self, first: u32, event: Event) -> impl Iterator<Item = Waiter> + '_ {
        let node = |index: u32| (index != NONE).then(|| &self.nodes[index]);
        core::iter::successors(node(first), move |wait| node(wait.next))
            .filter(move |wait| wait.event == event)
            .map(|wait| wait.waiter)
    }

    /// Takes those who wait for an event of an entry off its list and appends them to `out`.
    pub fn take(&mut self, entries: &mut Entries, id: u32, event: Event, out: &mut Vec<Waiter>) {
        let mut previous = NONE;
        let mut at = entries.waits(id);
        while at != NONE {
            let wait = self.nodes[at];
            if wait.event == event {
                out.push(wait.waiter);
                self.nodes.remove(at);
                match previous {
                    NONE => entries.set_waits(id, wait.next),
                    _ => self.nodes[previous].next = wait.next,
                }
            } else {
                previous = at;
            }
            at = wait.next;
        }
    }
}
