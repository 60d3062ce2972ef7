//! Commands to nodes in a simulation: a script beside the trace.

use crate::record_source::RecordSource;
use crate::replay::Replayer;
use imbrex_core::buffer::Buffers;
use imbrex_core::command::{Command, CommandId, CommandKind, CommandReply, CommandState};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Frontend;
use imbrex_core::engine::{CommandArrival, Replacement};
use imbrex_core::operation::Completion;
use imbrex_core::stack::{Arrival, DiskId, NodeId};
use imbrex_core::units::Instant;
use imbrex_report::EventUse;

/// The latest instant that an experiment may name, in seconds: a tenth of the time that there is.
pub const AT_S_MAX: f64 = 1e9;

/// When a command is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At an instant.
    At(Instant),
    /// When so many requests have been issued, and before the next one.
    AfterRequests(u64),
}

/// Makes the disk of a replacement; errors are words for the report.
pub type MakeDisk<'a> = Box<dyn Fn() -> Result<Box<dyn Disk>, String> + 'a>;

/// What a node is asked to do.
pub enum EventAction<'a> {
    /// A command.
    Command(CommandKind),
    /// A new disk in the place of a lost one.
    Replace {
        /// The lost one.
        disk: DiskId,
        /// Members on it, which all get new numbers.
        members: u16,
        /// Makes the new one.
        make: MakeDisk<'a>,
    },
}

/// A command of a script.
pub struct Event<'a> {
    /// When it is given.
    pub when: When,
    /// The node it is for.
    pub node: NodeId,
    /// What it is to do.
    pub action: EventAction<'a>,
    /// The name of the node, for the report.
    pub name: String,
    /// The word of the command, for the report.
    pub command: String,
}

/// How far an event has come.
enum Stage {
    /// Not yet given.
    Waiting,
    /// Given at the instant.
    UnderWay(Instant),
    /// What came of it.
    Ended(EventUse),
}

/// An event that was never given, because the workload had too few requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeverGiven {
    /// The name of the node.
    pub node: String,
    /// The word of the command.
    pub command: String,
    /// After how many requests it was to come.
    pub needed: u64,
}

/// A replay of a trace with commands to nodes meanwhile. It goes on until each command has ended.
pub struct Scripted<'a, I> {
    replayer: Replayer<I>,
    events: Vec<(Event<'a>, Stage)>,
    /// The number of the first member on the next new disk.
    next_member: u16,
    /// The instant from which those of the events count.
    from: Instant,
}

impl<'a, I: RecordSource> Scripted<'a, I> {
    /// A replay with these events, whose instants count from one. Members on new disks are numbered from
    /// `next_member`.
    pub fn new(
        replayer: Replayer<I>,
        events: Vec<Event<'a>>,
        next_member: u16,
        from: Instant,
    ) -> Scripted<'a, I> {
        let waiting = |event: Event<'a>| {
            let when = match event.when {
                When::At(at) => When::At(Instant(at.0 + from.0)),
                after => after,
            };
            (Event { when, ..event }, Stage::Waiting)
        };
        Scripted { replayer, events: events.into_iter().map(waiting).collect(), next_member, from }
    }

    /// The replay, and what came of the events in their order, or the first one for which there were
    /// too few requests.
    pub fn finish(self) -> (Replayer<I>, Result<Vec<EventUse>, NeverGiven>) {
        let mut uses = Vec::new();
        for (event, stage) in self.events {
            match (stage, event.when) {
                (Stage::Ended(use_), _) => uses.push(use_),
                (_, When::AfterRequests(needed)) => {
                    let (node, command) = (event.name, event.command);
                    let never = NeverGiven { node, command, needed };
                    return (self.replayer, Err(never));
                }
                // The replay has failed before.
                (_, When::At(_)) => {}
            }
        }
        (self.replayer, Ok(uses))
    }

    /// True of an event that is to be given when the requests issued so far are the count.
    fn is_after(&self, (event, stage): &(Event<'a>, Stage)) -> bool {
        let issued = self.replayer.counts.requests;
        matches!(stage, Stage::Waiting)
            && matches!(event.when, When::AfterRequests(count) if count <= issued)
    }

    fn has_due_after(&self) -> bool {
        self.events.iter().any(|entry| self.is_after(entry))
    }

    /// Gives the command of an event, or says why it cannot be given.
    fn give(&mut self, index: usize, now: Instant) -> Option<CommandArrival> {
        let id = CommandId(index as u64);
        let (event, stage) = &mut self.events[index];
        *stage = Stage::UnderWay(now);
        match &event.action {
            EventAction::Command(kind) => Some(CommandArrival::Command {
                node: event.node,
                command: Command { id, kind: *kind },
            }),
            EventAction::Replace { disk, members, make } => {
                let first_member = self.next_member;
                let next = first_member.checked_add(*members);
                let next = next.ok_or_else(|| "the set has had 65535 members".to_string());
                match next.and_then(|next| Ok((next, make()?))) {
                    Ok((next, with)) => {
                        self.next_member = next;
                        Some(CommandArrival::Replace(Replacement {
                            id,
                            disk: *disk,
                            with,
                            first_member,
                        }))
                    }
                    Err(words) => {
                        *stage = Stage::Ended(used(event, [now, now], self.from, words));
                        None
                    }
                }
            }
        }
    }
}

/// What is told of an event that was given at the first instant and ended at the second.
fn used(event: &Event<'_>, times: [Instant; 2], from: Instant, outcome: String) -> EventUse {
    let [at_s, ended_at_s] = times.map(|at| at.since(from).as_seconds());
    EventUse {
        at_s,
        node: event.name.clone(),
        command: event.command.clone(),
        ended_at_s,
        outcome,
        facts: Default::default(),
    }
}

/// What a report says of a command that has ended well.
const DONE: &str = "done";

impl<I: RecordSource> Frontend for Scripted<'_, I> {
    fn next_arrival(&self) -> Option<Instant> {
        self.replayer.next_arrival()
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        // The next request comes after the command.
        if self.has_due_after() {
            return None;
        }
        self.replayer.poll(now, buffers)
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        self.replayer.reply(now, completion, buffers);
    }

    fn finished(&self) -> bool {
        // An event after more requests than there are never comes, which is an error of its own.
        let is_over = |entry: &(Event<'_>, Stage)| match (&entry.1, entry.0.when) {
            (Stage::Ended(_), _) => true,
            (Stage::UnderWay(_), _) | (Stage::Waiting, When::At(_)) => false,
            (Stage::Waiting, When::AfterRequests(_)) => !self.is_after(entry),
        };
        self.replayer.finished() && (self.replayer.has_failed() || self.events.iter().all(is_over))
    }

    fn next_command(&self) -> Option<Instant> {
        if self.has_due_after() {
            return Some(Instant::ZERO);
        }
        let waiting = self.events.iter().filter_map(|(event, stage)| {
            let When::At(at) = event.when else {
                return None;
            };
            matches!(stage, Stage::Waiting).then_some(at)
        });
        waiting.min()
    }

    fn poll_command(&mut self, now: Instant) -> Option<CommandArrival> {
        loop {
            let is_due = |entry: &(Event<'_>, Stage)| {
                let at_instant = matches!(entry.0.when, When::At(at) if at <= now);
                self.is_after(entry) || (at_instant && matches!(entry.1, Stage::Waiting))
            };
            let index = self.events.iter().position(is_due)?;
            if let Some(arrival) = self.give(index, now) {
                return Some(arrival);
            }
        }
    }

    fn reply_to_command(&mut self, now: Instant, reply: CommandReply) {
        let CommandState::Ended(result) = reply.state else {
            return;
        };
        let (event, stage) = &mut self.events[reply.id.0 as usize];
        let Stage::UnderWay(at) = *stage else {
            return;
        };
        let outcome = match &result {
            Ok(_) => DONE.to_string(),
            Err(error) => error.to_string(),
        };
        let mut ended = used(event, [at, now], self.from, outcome);
        if let (Ok(status), EventAction::Command(CommandKind::Status)) = (result, &event.action) {
            let facts = status.facts.into_iter();
            ended.facts = facts.map(|(name, value)| (name.to_string(), value)).collect();
            ended.facts.insert("is_lost".to_string(), u64::from(status.is_lost));
        }
        *stage = Stage::Ended(ended);
    }
}
