//! A person beside the host: pulls disks out, puts new ones in, and asks for rebuilds and scrubs.

use super::array::Observed;
use super::disk::{StringedDisk, Strings};
use super::door::{Door, Temporary};
use super::site::Site;
use super::story::{Deed, During, Event, Phase};
use crate::crashtest::host::Host;
use crate::crashtest::recording_disk::{RecordingDisk, World};
use imbrex_core::buffer::Buffers;
use imbrex_core::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, CommandState,
};
use imbrex_core::engine::{CommandArrival, Frontend, NewLabel, Replacement};
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::{Arrival, DiskId, NodeId, Stack};
use imbrex_core::units::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Tries of a replacement that the stack is not ready for.
const TRIES_MAX: u32 = 4;
const BETWEEN_TRIES: Duration = Duration::from_us(300);

/// What has happened, as far as the judgement must know. Each is told with the log index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A disk may be lost from now on.
    Lost(usize),
    /// A new disk is being taken in.
    ReplaceBegun(usize),
    /// The new disk is described: somebody was told that it is in.
    Replaced(usize),
    /// The new disk is not taken.
    ReplaceGivenUp(usize),
    /// A scrub was asked for.
    ScrubBegun,
    /// It has ended, somehow.
    ScrubEnded,
    /// A rebuild was asked for, and that has ended; whether in order.
    RebuildEnded(bool),
    /// Changes of the host in flight.
    HostWrites(usize),
    /// How the array is from now on.
    Observed(Observed),
}

/// What the operator shares with the life: the world, and how the array is.
pub type Shared = (Rc<RefCell<World>>, Rc<Cell<Observed>>);

/// The host, and the person beside it.
pub struct Operator<'a> {
    host: Host<'a>,
    site: &'a Site,
    world: Rc<RefCell<World>>,
    observed: Rc<Cell<Observed>>,
    /// The label of a new disk that has yet to be told of.
    new_label: Option<NewLabel>,
    disk_nodes: Vec<NodeId>,
    /// The description.
    pub door: Door,
    /// What can be done to each disk.
    pub strings: Vec<Strings>,
    events: VecDeque<Event>,
    arrived: usize,
    next_id: u64,
    /// Commands that are not answered yet.
    waiting: Vec<(CommandId, Deed)>,
    making: Option<(Temporary, Strings)>,
    replacing: Replacing,
    writes: BTreeSet<u64>,
    /// What has happened.
    pub marks: Vec<(u64, Mark)>,
    /// A new disk that was not taken, though nothing was wrong with it.
    pub refused: Option<String>,
}

/// How often a replacement was tried, and when it may be again.
#[derive(Default)]
struct Replacing {
    tries: u32,
    not_before: Instant,
}

impl<'a> Operator<'a> {
    /// A person who does all this in the order of the list.
    pub fn new(
        host: Host<'a>,
        site: &'a Site,
        stack: &Stack,
        (world, observed): Shared,
        (door, strings): (Door, Vec<Strings>),
        events: Vec<Event>,
    ) -> Operator<'a> {
        let nodes = stack.bottom_up().filter_map(|node| Some((stack.disk_of(node)?.0, node)));
        let mut disk_nodes: Vec<(u16, NodeId)> = nodes.collect();
        disk_nodes.sort_by_key(|(disk, _)| *disk);
        Operator {
            host,
            site,
            world,
            observed,
            new_label: None,
            disk_nodes: disk_nodes.into_iter().map(|(_, node)| node).collect(),
            door,
            strings,
            events: events.into(),
            arrived: 0,
            next_id: 0,
            waiting: Vec::new(),
            making: None,
            replacing: Replacing::default(),
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
        let index = self.world.borrow().log.events;
        self.marks.push((index, mark));
    }

    /// True while that is so which a deed waits for.
    fn is_during(&self, during: During) -> bool {
        let scrubs = || self.waiting.iter().any(|(_, deed)| matches!(deed, Deed::Scrub(_)));
        match during {
            During::Lacking => !self.observed.get().is_whole(),
            During::Phase(Phase::Rebuild) => self.observed.get().rebuilding > 0,
            During::Phase(Phase::Scrub) => scrubs(),
            During::Phase(Phase::Replace) => self.making.is_some(),
            During::Phase(Phase::Write) => !self.writes.is_empty(),
            During::Phase(Phase::Idle | Phase::Collect) => true,
        }
    }

    fn due(&self) -> Option<Event> {
        let event = self.events.front()?;
        let is_over = self.host.finished() && self.waiting.is_empty();
        let is_time = self.arrived >= event.after_requests || self.host.finished();
        let is_during = event.during.is_none_or(|during| is_over || self.is_during(during));
        let is_due = is_time && is_during && (!event.waits || self.waiting.is_empty());
        is_due.then_some(*event)
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

    /// A new disk in a place, if one lies ready.
    fn replace(&mut self, disk: usize) -> Option<CommandArrival> {
        let made = self.door.begin_replacement(disk, &self.world)?;
        if self.replacing.tries == 0 {
            self.mark(Mark::ReplaceBegun(disk));
        }
        let strings = Strings::default();
        let geometry = self.site.stack.members()[disk].geometry.clone();
        let world = Rc::clone(&self.world);
        let inner = RecordingDisk::new(geometry, world, made.medium, self.site.seed);
        let with = Box::new(StringedDisk::new(inner, strings.clone()));
        let first_member = made.first_member;
        self.making = Some((made, strings));
        let id = self.new_id(Deed::Replace(disk));
        let disk = DiskId(disk as u16);
        Some(CommandArrival::Replace(Replacement { id, disk, with, first_member }))
    }

    fn replace_ended(&mut self, disk: usize, result: Result<(), CommandError>, now: Instant) {
        let (made, strings) = self.making.take().expect("a replacement");
        match result {
            Ok(()) => {
                self.strings[disk] = strings;
                self.door.end_replacement(&made, &self.world);
                if self.site.is_labelled {
                    let random = self.site.random_of_new(made.medium);
                    let (number, disk) = (1 + made.medium as u16, DiskId(disk as u16));
                    self.new_label = Some(NewLabel { disk, number, random });
                }
                self.replacing.tries = 0;
                self.mark(Mark::Replaced(disk));
            }
            Err(CommandError::NotNow(_)) if self.replacing.tries < TRIES_MAX => {
                self.replacing.tries += 1;
                self.replacing.not_before = now + BETWEEN_TRIES;
                let again = |deed| Event { after_requests: 0, waits: true, during: None, deed };
                self.events.push_front(again(Deed::Replace(disk)));
                // A disk that was pulled out may not have been missed yet.
                self.events.push_front(again(Deed::Fail(disk)));
            }
            Err(error) => {
                self.replacing.tries = 0;
                if let CommandError::Failed(words) = error {
                    self.refused = Some(words);
                }
                self.mark(Mark::ReplaceGivenUp(disk));
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
        match self.new_label {
            Some(_) => Some(Instant::ZERO),
            None => self.due().map(|_| self.replacing.not_before),
        }
    }

    fn poll_command(&mut self, now: Instant) -> Option<CommandArrival> {
        if let Some(label) = self.new_label.take() {
            return Some(CommandArrival::NewLabel(label));
        }
        loop {
            let event = self.due().filter(|_| now >= self.replacing.not_before)?;
            self.events.pop_front();
            if event.during.is_some_and(|during| !self.is_during(during)) {
                // That does not come any more.
                continue;
            }
            let array = self.site.array.node;
            match event.deed {
                Deed::Vanish(disk, operations) => {
                    self.mark(Mark::Lost(disk));
                    self.strings[disk].operations_left.set(operations);
                }
                deed @ Deed::Fail(disk) => {
                    self.mark(Mark::Lost(disk));
                    let node = self.disk_nodes[disk];
                    return Some(self.command(node, CommandKind::Fail, deed));
                }
                Deed::Replace(disk) => {
                    if let Some(arrival) = self.replace(disk) {
                        return Some(arrival);
                    }
                }
                deed @ Deed::Rebuild(rate) => {
                    return Some(self.command(array, CommandKind::Rebuild(rate), deed));
                }
                deed @ Deed::Scrub(rate) => {
                    self.mark(Mark::ScrubBegun);
                    return Some(self.command(array, CommandKind::Scrub(rate), deed));
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
            (Deed::Replace(disk), result) => self.replace_ended(disk, result, now),
            (Deed::Rebuild(_), result) => self.mark(Mark::RebuildEnded(result.is_ok())),
            (Deed::Scrub(_), _) => self.mark(Mark::ScrubEnded),
            _ => {}
        }
    }
}
