//! A host and a person beside it, who breaks disks, replaces them and gives commands.

use super::disk::{OperationsLeft, VanishingDisk};
use super::door::{Door, Temporary};
use imbrex_core::buffer::Buffers;
use imbrex_core::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, CommandState, Rate,
};
use imbrex_core::disk::Geometry;
use imbrex_core::engine::Frontend;
use imbrex_core::engine::{CommandArrival, Replacement};
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::{Arrival, DiskId, NodeId};
use imbrex_core::units::{Duration, Instant};
use imbrex_sim::crashtest::host::Host;
use imbrex_sim::crashtest::recording_disk::{RecordingDisk, World};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Tries of a replacement that the stack is not ready for.
const TRIES_MAX: u32 = 8;
const BETWEEN_TRIES: Duration = Duration::from_us(300);

/// What the person does.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    /// Tells the disk of a port to fail.
    Fail(usize),
    /// Pulls the disk of a port out, which shows after so many more operations.
    Vanish(usize, u64),
    /// Puts a new disk behind a port.
    Replace(usize),
    Rebuild(Option<Rate>),
    Scrub(Option<Rate>),
}

/// A deed, and how many of the host's requests come before it.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub after_requests: usize,
    /// It waits until the command before it was answered.
    pub waits: bool,
    pub deed: Deed,
}

/// What has happened, as far as the judgement must know. Each is told with the log index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The disk of a port may be lost from now on.
    Lost(usize),
    ReplaceBegun(usize),
    /// The new member is described: somebody was told that it is in.
    Replaced(usize),
    ReplaceGivenUp(usize),
    RebuildBegun,
    /// Everything is on both ports, and somebody was told.
    Rebuilt,
    RebuildFailed,
    Scrubbed,
    /// Changes of the host in flight.
    HostWrites(usize),
}

/// Where commands go, and what a new disk is made of.
pub struct Site {
    pub world: Rc<RefCell<World>>,
    pub top: NodeId,
    /// The node of the disk of each port.
    pub disks: [NodeId; 2],
    pub geometry: Geometry,
    pub seed: u64,
}

pub struct Operator<'a> {
    host: Host<'a>,
    site: Site,
    pub door: Door,
    left: [OperationsLeft; 2],
    events: VecDeque<Event>,
    arrived: usize,
    next_id: u64,
    /// Commands that are not answered yet.
    waiting: Vec<(CommandId, Deed)>,
    making: Option<(Temporary, OperationsLeft)>,
    tries: u32,
    not_before: Instant,
    writes: BTreeSet<u64>,
    pub marks: Vec<(u64, Mark)>,
    /// A new disk that was not taken, though nothing was wrong with it.
    pub refused: Option<String>,
}

impl<'a> Operator<'a> {
    pub fn new(
        host: Host<'a>,
        site: Site,
        door: Door,
        left: [OperationsLeft; 2],
        events: Vec<Event>,
    ) -> Operator<'a> {
        Operator {
            host,
            site,
            door,
            left,
            events: events.into(),
            arrived: 0,
            next_id: 0,
            waiting: Vec::new(),
            making: None,
            tries: 0,
            not_before: Instant::ZERO,
            writes: BTreeSet::new(),
            marks: Vec::new(),
            refused: None,
        }
    }

    /// The host, when all is over.
    pub fn into_host(self) -> Host<'a> {
        self.host
    }

    fn mark(&mut self, mark: Mark) {
        let index = self.site.world.borrow().log.events;
        self.marks.push((index, mark));
    }

    fn is_due(&self, event: &Event) -> bool {
        let is_time = self.arrived >= event.after_requests || self.host.finished();
        is_time && (!event.waits || self.waiting.is_empty())
    }

    fn due(&self) -> Option<Event> {
        let event = self.events.front()?;
        self.is_due(event).then_some(*event)
    }

    fn command(&mut self, node: NodeId, kind: CommandKind, deed: Deed) -> CommandArrival {
        let id = self.new_id(deed);
        let command = Command { id, kind };
        CommandArrival::Command { node, command }
    }

    fn new_id(&mut self, deed: Deed) -> CommandId {
        self.next_id += 1;
        let id = CommandId(self.next_id);
        self.waiting.push((id, deed));
        id
    }

    fn replace(&mut self, port: usize) -> CommandArrival {
        if self.tries == 0 {
            self.mark(Mark::ReplaceBegun(port));
        }
        let made = self.door.begin_replacement(port, &self.site.world);
        let left = Rc::new(Cell::new(u64::MAX));
        let inner = RecordingDisk::new(
            self.site.geometry.clone(),
            Rc::clone(&self.site.world),
            made.medium,
            self.site.seed,
        );
        let with = VanishingDisk::new(inner, Rc::clone(&left));
        self.making = Some((made, left));
        let id = self.new_id(Deed::Replace(port));
        CommandArrival::Replace(Replacement {
            id,
            disk: DiskId(port as u16),
            with: Box::new(with),
            first_member: made.number,
        })
    }

    fn replace_ended(&mut self, port: usize, result: Result<(), CommandError>, now: Instant) {
        let (made, left) = self.making.take().expect("a replacement");
        match result {
            Ok(()) => {
                self.left[port] = left;
                self.door.end_replacement(made, &self.site.world);
                self.tries = 0;
                self.mark(Mark::Replaced(port));
            }
            Err(CommandError::NotNow(_)) if self.tries < TRIES_MAX => {
                self.tries += 1;
                self.not_before = now + BETWEEN_TRIES;
                let again = |deed| Event { after_requests: 0, waits: true, deed };
                self.events.push_front(again(Deed::Replace(port)));
                // A disk that was pulled out may not have been missed yet.
                self.events.push_front(again(Deed::Fail(port)));
            }
            Err(error) => {
                self.tries = 0;
                if let CommandError::Failed(words) = error {
                    self.refused = Some(words);
                }
                self.mark(Mark::ReplaceGivenUp(port));
            }
        }
    }
}

impl Frontend for Operator<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        self.host.next_arrival()
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        let arrival = self.host.poll(now, buffers)?;
        self.arrived += 1;
        if !matches!(arrival.operation, Operation::Read | Operation::Flush) {
            self.writes.insert(arrival.tag.0);
            self.mark(Mark::HostWrites(self.writes.len()));
        }
        Some(arrival)
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        let Tag(tag) = completion.tag;
        self.host.reply(now, completion, buffers);
        if self.writes.remove(&tag) {
            self.mark(Mark::HostWrites(self.writes.len()));
        }
    }

    fn finished(&self) -> bool {
        self.host.finished() && self.events.is_empty() && self.waiting.is_empty()
    }

    fn next_command(&self) -> Option<Instant> {
        self.due().map(|_| self.not_before)
    }

    fn poll_command(&mut self, now: Instant) -> Option<CommandArrival> {
        loop {
            let event = self.due().filter(|_| now >= self.not_before)?;
            self.events.pop_front();
            let (top, disks) = (self.site.top, self.site.disks);
            match event.deed {
                Deed::Vanish(port, operations) => {
                    self.mark(Mark::Lost(port));
                    self.left[port].set(operations);
                }
                deed @ Deed::Fail(port) => {
                    self.mark(Mark::Lost(port));
                    return Some(self.command(disks[port], CommandKind::Fail, deed));
                }
                Deed::Replace(port) => return Some(self.replace(port)),
                deed @ Deed::Rebuild(rate) => {
                    self.mark(Mark::RebuildBegun);
                    return Some(self.command(top, CommandKind::Rebuild(rate), deed));
                }
                deed @ Deed::Scrub(rate) => {
                    return Some(self.command(top, CommandKind::Scrub(rate), deed));
                }
            }
        }
    }

    fn reply_to_command(&mut self, now: Instant, reply: CommandReply) {
        let CommandState::Ended(result) = reply.state else {
            return;
        };
        let result = result.map(|_| ());
        let at = self.waiting.iter().position(|(id, _)| *id == reply.id);
        let (_, deed) = self.waiting.swap_remove(at.expect("a command that was given"));
        match (deed, result) {
            (Deed::Replace(port), result) => self.replace_ended(port, result, now),
            (Deed::Rebuild(_), Ok(())) => self.mark(Mark::Rebuilt),
            (Deed::Rebuild(_), Err(_)) => self.mark(Mark::RebuildFailed),
            (Deed::Scrub(_), Ok(())) => self.mark(Mark::Scrubbed),
            _ => {}
        }
    }
}
