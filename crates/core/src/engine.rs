//! The one loop that runs a stack in every world; only its three plugs differ.

use crate::buffer::Buffers;
use crate::command::{Command, CommandId, CommandKind, CommandReply, Fault};
use crate::deadlines::Deadlines;
use crate::disk::{Disk, DiskCompletion};
use crate::error::IoError;
use crate::lifecycle::{OpenError, Start};
use crate::notice::Notice;
use crate::operation::Completion;
use crate::stack::{Arrival, DiskId, NodeId, Stack};
use crate::units::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Rounds of arrivals, completions and wakeups at one instant before the loop is declared stuck.
const STEPS_PER_INSTANT_MAX: u32 = 1 << 24;

/// Where time comes from.
pub trait Clock {
    /// Waits until `until` at the latest, earlier only if something outside has happened, and
    /// returns the time. `None` waits for something outside alone. Time never goes back.
    fn wait(&mut self, until: Option<Instant>) -> Instant;
}

/// What a frontend asks of the engine beside requests.
pub enum CommandArrival {
    /// A command to a node.
    Command {
        /// The layer or disk.
        node: NodeId,
        /// What it is asked to do.
        command: Command,
    },
    /// A new disk in the place of a lost one.
    Replace(Replacement),
    /// The disk in the place of a lost one belongs to the set, and has the label of a new disk.
    NewLabel(NewLabel),
}

/// The label of a new disk, which was written to it before anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewLabel {
    /// The disk.
    pub disk: DiskId,
    /// Its number in the set, which was never another disk's.
    pub number: u16,
    /// The random number in its label.
    pub random: u32,
}

/// A new disk in the place of a lost one. The frontend has made it: only a door knows how.
pub struct Replacement {
    /// Comes back with the answer.
    pub id: CommandId,
    /// The disk that is lost.
    pub disk: DiskId,
    /// The one that takes its place. Nothing that a layer would know is on it.
    pub with: Box<dyn Disk>,
    /// The number of the first member on the new disk; further ones count up. No member of the set
    /// ever had one of these numbers.
    pub first_member: u16,
}

/// Where requests come from and answers go to.
pub trait Frontend {
    /// When the next request arrives as far as is known; `None` when that depends on an answer or
    /// on something outside.
    fn next_arrival(&self) -> Option<Instant>;
    /// A request that has arrived by `now`, its buffer allocated from `buffers`.
    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival>;
    /// The answer to a request. The buffer is the frontend's again.
    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers);
    /// True when no further request will come.
    fn finished(&self) -> bool;
    /// When the next command arrives as far as is known.
    fn next_command(&self) -> Option<Instant> {
        None
    }
    /// A command that has arrived by `now`. At one instant commands come before requests.
    fn poll_command(&mut self, _now: Instant) -> Option<CommandArrival> {
        None
    }
    /// What is said of a command: how far it has come, or how it has ended.
    fn reply_to_command(&mut self, _now: Instant, _reply: CommandReply) {}
    /// Something has happened that a person must know, at a node. Those of the time before the first
    /// instant of a frontend, when layers come up, are told at that.
    fn notice(&mut self, _now: Instant, _node: NodeId, _notice: Notice) {}
    /// So many notices before the next one were dropped, because there were too many.
    fn notices_dropped(&mut self, _now: Instant, _count: u64) {}
}

/// Sends nothing: the frontend while layers come up and go down.
struct Nobody;

impl Frontend for Nobody {
    fn next_arrival(&self) -> Option<Instant> {
        None
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        None
    }

    fn reply(&mut self, _now: Instant, _completion: Completion, _buffers: &mut Buffers) {
        unreachable!("an answer to nobody")
    }

    fn finished(&self) -> bool {
        true
    }
}

/// A stack with its disks and buffers.
pub struct Engine {
    /// The layers.
    pub stack: Stack,
    /// The leaves, in the order of [`DiskId`].
    pub disks: Vec<Box<dyn Disk>>,
    /// The data.
    pub buffers: Buffers,
    /// Host requests let into the stack at once; the frontend is not polled beyond it.
    pub in_flight_max: u32,
}

/// When each disk has something to say. One is asked again when it was given something that it may have yet to
/// decide on, and when that time has come: a stack of many disks does not ask all of them at every event. At
/// [`Instant::ZERO`] is one that was given such a thing, and always one that ends things by itself.
struct Due(Deadlines);

impl Due {
    fn of(disks: &[Box<dyn Disk>]) -> Due {
        Due(Deadlines::new(disks.len(), Some(Instant::ZERO)))
    }

    /// The disk may have something to say.
    #[inline]
    fn ask(&mut self, disk: usize) {
        self.0.set(disk, Some(Instant::ZERO));
    }

    /// The disk was given something.
    #[inline]
    fn given(&mut self, disk: usize, to: &dyn Disk) {
        match to.is_settled_at_once() {
            true => self.0.set(disk, to.next_event()),
            false => self.ask(disk),
        }
    }

    /// The disk has said what it had to say for now.
    #[inline]
    fn heard(&mut self, disk: usize, from: &dyn Disk) {
        self.0.set(disk, if from.is_signalled() { Some(Instant::ZERO) } else { from.next_event() });
    }

    /// When the first disk has something to say; of those that are to be asked as they say themselves.
    #[inline]
    fn next(&self, disks: &[Box<dyn Disk>]) -> Option<Instant> {
        match self.0.earliest() {
            Some(Instant::ZERO) => self.next_of_asked(disks),
            at => at,
        }
    }

    fn next_of_asked(&self, disks: &[Box<dyn Disk>]) -> Option<Instant> {
        let of = |index: usize| match self.0.get(index) {
            Some(Instant::ZERO) => disks[index].next_event(),
            at => at,
        };
        (0..disks.len()).filter_map(of).min()
    }
}

/// The earlier of two instants of which either may never come.
#[inline(always)]
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (at, None) | (None, at) => at,
    }
}

impl Engine {
    /// Runs until the frontend has finished and all that was begun below is done. Dirty data
    /// stays where it is. `observe` sees the stack after every instant at which something
    /// happened.
    // Compiled for each frontend: it is asked many times at an instant, most often for nothing.
    pub fn run<C, F, O>(&mut self, clock: &mut C, frontend: &mut F, observe: &mut O)
    where
        C: Clock + ?Sized,
        F: Frontend + ?Sized,
        O: FnMut(Instant, &Stack) + ?Sized,
    {
        let mut due = Due::of(&self.disks);
        loop {
            let is_done = frontend.finished();
            if is_done && self.stack.is_quiet() {
                return;
            }
            self.stack.set_host_is_done(is_done);
            let now = clock.wait(self.next_event(&due, frontend));
            self.run_instant(now, &mut due, frontend);
            self.tell_notices(now, frontend);
            observe(now, &self.stack);
        }
    }

    /// Runs until the frontend has finished and leaves what was begun below to the next run: a
    /// translation that cleans in the background may have hours of work.
    pub fn run_frontend(&mut self, clock: &mut dyn Clock, frontend: &mut dyn Frontend) {
        let mut due = Due::of(&self.disks);
        while !frontend.finished() {
            let now = clock.wait(self.next_event(&due, frontend));
            self.run_instant(now, &mut due, frontend);
            self.tell_notices(now, frontend);
        }
    }

    #[inline(always)]
    fn tell_notices<F: Frontend + ?Sized>(&mut self, now: Instant, frontend: &mut F) {
        if self.stack.has_notices() {
            self.stack.tell_notices(now, frontend);
        }
    }

    /// Lets every layer come up, from the bottom up, before the first [`run`](Self::run).
    ///
    /// A layer that cannot because a disk below it is lost is lost to the layer above, which decides,
    /// and is not asked for anything any more.
    ///
    /// # Errors
    /// When a layer cannot, or the top is lost; says which node it is. The engine is of no use then.
    pub fn open(&mut self, clock: &mut dyn Clock, start: Start) -> Result<(), (NodeId, OpenError)> {
        let mut now = clock.wait(Some(Instant::ZERO));
        let mut due = Due::of(&self.disks);
        for node in self.stack.bottom_up() {
            self.stack.open_node(now, node, start, &mut self.buffers);
            let result = loop {
                self.run_instant(now, &mut due, &mut Nobody);
                if let Some(result) = self.stack.take_opened() {
                    break result;
                }
                now = clock.wait(self.next_event(&due, &Nobody));
            };
            match result {
                Err(OpenError::Io(IoError::Lost)) if node != self.stack.top() => {
                    self.stack.leave_out(node);
                }
                result => result.map_err(|error| (node, error))?,
            }
        }
        // A disk says nothing when it comes up, and a layer may lose one while it does.
        let top = self.stack.top();
        match self.stack.is_lost(top) {
            true => Err((top, OpenError::Io(IoError::Lost))),
            false => Ok(()),
        }
    }

    /// Lets every layer go down in good order, from the top down, when [`run`](Self::run) has
    /// returned. A stack that is only read has nothing to write down and is left as it is.
    ///
    /// # Errors
    /// When a layer could not; says which node it is. Layers further down were not told.
    pub fn close(&mut self, clock: &mut dyn Clock) -> Result<(), (NodeId, IoError)> {
        if self.stack.is_read_only() {
            return Ok(());
        }
        let mut now = clock.wait(Some(Instant::ZERO));
        let mut due = Due::of(&self.disks);
        for node in self.stack.bottom_up().rev() {
            // What the layers above wrote last may have set a layer going. The disks are asked before
            // the next wait, because the last one may have ended for what they have done.
            while !self.stack.is_quiet() {
                self.run_instant(now, &mut due, &mut Nobody);
                if !self.stack.is_quiet() {
                    now = clock.wait(self.next_event(&due, &Nobody));
                }
            }
            // What was lost has nothing to write down; those above have answered for it.
            if node != self.stack.top() && self.stack.is_lost(node) {
                continue;
            }
            self.stack.close_node(now, node, &mut self.buffers);
            let result = loop {
                self.run_instant(now, &mut due, &mut Nobody);
                if let Some(result) = self.stack.take_closed() {
                    break result;
                }
                now = clock.wait(self.next_event(&due, &Nobody));
            };
            result.map_err(|error| (node, error))?;
        }
        self.end_move(clock);
        Ok(())
    }

    /// Waits until the count of the labels does not move any more.
    pub(crate) fn end_move(&mut self, clock: &mut dyn Clock) {
        let mut due = Due::of(&self.disks);
        while self.stack.is_moving_mark() {
            let now = clock.wait(self.next_event(&due, &Nobody));
            self.run_instant(now, &mut due, &mut Nobody);
        }
    }

    // The loop of `run` is hot, the others are not.
    #[inline(always)]
    fn next_event<F: Frontend + ?Sized>(&self, due: &Due, frontend: &F) -> Option<Instant> {
        let arrival = if self.accepts() { frontend.next_arrival() } else { None };
        let outside = earlier(arrival, frontend.next_command());
        earlier(earlier(due.next(&self.disks), self.stack.next_wakeup()), outside)
    }

    fn accepts(&self) -> bool {
        self.stack.host_in_flight() < self.in_flight_max
    }

    /// Everything that is due at `now`: arrivals, disk completions, wakeups, then what they cause.
    #[inline(always)]
    fn run_instant<F>(&mut self, now: Instant, due: &mut Due, frontend: &mut F)
    where
        F: Frontend + ?Sized,
    {
        let Engine { stack, disks, buffers, in_flight_max } = self;
        for _ in 0..STEPS_PER_INSTANT_MAX {
            let (mut progressed, mut has_answered) = (false, false);
            while let Some(arrival) = frontend.poll_command(now) {
                handle_command(stack, disks, now, arrival, buffers);
                (0..disks.len()).for_each(|disk| due.ask(disk));
                progressed = true;
            }
            while stack.host_in_flight() < *in_flight_max
                && let Some(arrival) = frontend.poll(now, buffers)
            {
                stack.handle_request(now, arrival, buffers);
                progressed = true;
            }
            let mut from = 0;
            while let Some(index) = due.0.first_due(from, now) {
                match disks[index].poll(now, buffers) {
                    Some(completion) => {
                        let disk = DiskId(index as u16);
                        stack.handle_disk_completion(now, disk, completion, buffers);
                        progressed = true;
                    }
                    None => from = index + 1,
                }
                due.heard(index, &*disks[index]);
            }
            progressed |= stack.handle_wakeups(now, buffers);
            while let Some((disk, op)) = stack.poll_disk_op() {
                if stack.is_disk_lost(disk) {
                    let (id, result) = (op.id, Err(IoError::Lost));
                    let completion = DiskCompletion { id, result };
                    stack.handle_disk_completion(now, disk, completion, buffers);
                } else {
                    let index = usize::from(disk.0);
                    disks[index].submit(now, op, buffers);
                    due.given(index, &*disks[index]);
                }
                progressed = true;
            }
            while let Some(disk) = stack.poll_failed_disk() {
                // What hangs would never end otherwise. A disk that takes no faults has none.
                let _ = disks[usize::from(disk.0)].set_fault(now, Fault::None, buffers);
                disks[usize::from(disk.0)].abandon();
                due.ask(usize::from(disk.0));
                progressed = true;
            }
            while let Some(reply) = stack.poll_command_reply() {
                frontend.reply_to_command(now, reply);
                has_answered = true;
            }
            while let Some(completion) = stack.poll_reply() {
                frontend.reply(now, completion, buffers);
                has_answered = true;
            }
            // Most often nobody has more to say, and the next round would find nothing.
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            let has_more = || {
                is_due(due.0.earliest())
                    || is_due(stack.next_wakeup())
                    || is_due(frontend.next_command())
            };
            let goes_on = has_answered || progressed && has_more();
            if !goes_on {
                return;
            }
        }
        panic!("the loop made {STEPS_PER_INSTANT_MAX} rounds at {now:?}");
    }
}

/// A new disk takes its place at once; a fault is the disk's own business; the rest is the stack's.
#[cold]
fn handle_command(
    stack: &mut Stack,
    disks: &mut [Box<dyn Disk>],
    now: Instant,
    arrival: CommandArrival,
    buffers: &mut Buffers,
) {
    match arrival {
        CommandArrival::Command { node, command } => match (command.kind, stack.disk_of(node)) {
            (CommandKind::Fault(fault), Some(disk)) => {
                let result = disks[usize::from(disk.0)].set_fault(now, fault, buffers);
                stack.end_command(command.id, result);
            }
            (kind, disk) => {
                stack.handle_command(now, node, command, buffers);
                if let (CommandKind::TakeOut | CommandKind::Fail, Some(disk)) = (kind, disk)
                    && stack.is_disk_lost(disk)
                {
                    // What hangs would never end otherwise. A disk that takes no faults has none.
                    let _ = disks[usize::from(disk.0)].set_fault(now, Fault::None, buffers);
                    disks[usize::from(disk.0)].abandon();
                }
            }
        },
        CommandArrival::Replace(Replacement { id, disk, with, first_member }) => {
            match stack.begin_replacement(id, disk, with.geometry(), first_member) {
                Ok(()) => {
                    disks[usize::from(disk.0)] = with;
                    stack.tell_replacement(now, id, disk, buffers);
                }
                Err(error) => stack.end_command(id, Err(error)),
            }
        }
        CommandArrival::NewLabel(NewLabel { disk, number, random }) => {
            let blocks = disks[usize::from(disk.0)].geometry().blocks.0;
            stack.replace_label(disk, number, random, blocks);
        }
    }
}
