//! The tree of layers over disks, and the order in which its events are handled.

mod builder;
mod commands;
mod marks;

use crate::activity::Activities;
pub use crate::node::{DiskId, NodeId};
use crate::saved::Saved;
pub use builder::StackBuilder;

use crate::buffer::{BufferSlice, Buffers};
use crate::counters::Counts;
use crate::disk::{DiskCompletion, DiskOp, Geometry};
use crate::error::{BroughtFailure, IoError};
use crate::extent::Extent;
use crate::label::RunningLabels;
use crate::layer::{Context, Layer};
use crate::lifecycle::{OpenError, Start};
use crate::operation::{Completion, Operation, Tag};
use crate::planted::PlantedBug;
use crate::router::{Gate, HostOperation, Message, Receiver, Router, Stage};
use crate::units::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Messages delivered for one event before the stack is declared to be going in circles.
const MESSAGES_PER_EVENT_MAX: u64 = 1 << 26;

/// A request of the host.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Comes back with the reply.
    pub tag: Tag,
    /// What to do.
    pub operation: Operation,
    /// Where; empty for a flush.
    pub extent: Extent,
    /// The data; the frontend's until it is answered, then the frontend's again.
    pub buffer: BufferSlice,
}

/// A tree of layers over disks.
///
/// The driver calls, for every instant at which something is due: [`handle_request`] for each
/// arrival, [`handle_disk_completion`] for each finished disk operation and [`handle_wakeups`];
/// then it takes out all of [`poll_disk_op`] and [`poll_reply`]; then it waits until the earliest
/// of an arrival, a disk event and [`next_wakeup`]. Each `handle_*` delivers messages between the
/// layers until none is left.
///
/// [`handle_request`]: Stack::handle_request
/// [`handle_disk_completion`]: Stack::handle_disk_completion
/// [`handle_wakeups`]: Stack::handle_wakeups
/// [`poll_disk_op`]: Stack::poll_disk_op
/// [`poll_reply`]: Stack::poll_reply
/// [`next_wakeup`]: Stack::next_wakeup
#[derive(Saved)]
pub struct Stack {
    /// Indexed by node; `None` for a disk.
    #[saved(keep)]
    layers: Vec<Option<Box<dyn Layer>>>,
    router: Router,
    #[saved(keep)]
    top: NodeId,
    #[saved(keep)]
    geometry: Geometry,
    /// By the low bit of the tag, for a planted bug alone: a connection has written since it last
    /// flushed.
    unflushed: [bool; 2],
}

impl Stack {
    /// Plants a bug in every layer that has it. For tests and the crash search alone: the stack loses
    /// data from then on.
    pub fn plant(&mut self, bug: PlantedBug) {
        self.router.planted = Some(bug);
    }

    /// True when this bug is planted; never outside tests and the crash search.
    pub(crate) fn is_planted(&self, bug: PlantedBug) -> bool {
        self.router.is_planted(bug)
    }

    /// Makes the stack one that is only read, before it comes up. Requests that would change
    /// something are answered with [`IoError::NotPermitted`] and flushes with success, and no layer
    /// sees either; layers do no work of their own once they are up. What they write while they
    /// come up is for the disks to keep or to forget.
    pub fn set_read_only(&mut self) {
        self.router.is_read_only = true;
    }

    /// True when the stack is only read.
    pub(crate) fn is_read_only(&self) -> bool {
        self.router.is_read_only
    }

    /// What the stack as a whole looks like.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Takes a request of the host. Panics when it does not fit the device: frontends check.
    pub fn handle_request(&mut self, now: Instant, arrival: Arrival, buffers: &mut Buffers) {
        let Arrival { tag, operation, extent, buffer } = arrival;
        if self.router.is_planted(PlantedBug::FlushOwnConnectionOnly) {
            let unflushed = &mut self.unflushed[(tag.0 & 1) as usize];
            match operation {
                Operation::Flush if !core::mem::take(unflushed) => {
                    let result = Ok(());
                    return self.router.host.answer_at_once(Completion { tag, result });
                }
                Operation::Write { .. } | Operation::Zero { .. } => *unflushed = true,
                _ => {}
            }
        }
        if self.router.is_read_only
            && let Some(result) = answer_of_read_only(operation)
        {
            return self.router.host.answer_at_once(Completion { tag, result });
        }
        match self.router.node(self.top).disk {
            None => buffers.lend_to_layer(buffer),
            Some(_) => buffers.lend_to_disk(buffer),
        }
        let host = HostOperation { operation, extent, buffer };
        let request = self.router.register_host(self.top, tag, host);
        if self.router.host.begin(request)
            && self.router.hand_over(self.top, request) == Receiver::Layer
        {
            let message = Message::Submit { to: self.top, request };
            self.deliver_first(message, now, buffers);
        }
        self.deliver(now, buffers);
    }

    /// Takes the result of a disk operation.
    pub fn handle_disk_completion(
        &mut self,
        now: Instant,
        disk: DiskId,
        completion: DiskCompletion,
        buffers: &mut Buffers,
    ) {
        if RunningLabels::is_own(completion.id) {
            self.label_op_ended(disk, completion, buffers);
            return self.deliver(now, buffers);
        }
        let node = self.router.node_of(disk);
        buffers.take_from_disk(self.router.buffer_of(completion.id));
        let mut result = completion.result;
        if result == Err(IoError::Lost) {
            self.router.lose(node);
        } else if self.router.node(node).is_lost {
            result = Err(IoError::Lost);
        }
        let message = self.router.end(completion.id, node, result);
        self.deliver_first(message, now, buffers);
        self.deliver(now, buffers);
    }

    /// Wakes every layer whose deadline has passed. True when there was one.
    #[inline]
    pub fn handle_wakeups(&mut self, now: Instant, buffers: &mut Buffers) -> bool {
        self.next_wakeup().is_some_and(|at| at <= now) && self.wake_layers(now, buffers)
    }

    fn wake_layers(&mut self, now: Instant, buffers: &mut Buffers) -> bool {
        let mut woken = false;
        let mut from = 0;
        while let Some(index) = self.router.wakes.first_due(from, now) {
            from = index + 1;
            self.router.wakes.set(index, None);
            woken = true;
            let node = NodeId(index as u16);
            let layer = self.layers[index].as_mut();
            if let Some(layer) = layer.filter(|_| !self.router.is_absent(node)) {
                layer.wake(&mut Context { now, node, router: &mut self.router, buffers });
            }
            self.deliver(now, buffers);
        }
        if self.router.marks.late_at.is_some_and(|at| at <= now) {
            self.router.marks.late_at = None;
            woken = true;
            self.deliver(now, buffers);
        }
        woken
    }

    /// The next operation for a disk.
    #[inline]
    pub fn poll_disk_op(&mut self) -> Option<(DiskId, DiskOp)> {
        self.router.disk_ops.pop_front()
    }

    /// The next answer for the host.
    #[inline]
    pub fn poll_reply(&mut self) -> Option<Completion> {
        if self.router.marks.gate != Gate::Open {
            return self.poll_reply_at_gate();
        }
        self.router.host.next_answer()
    }

    /// When a layer next wants to be woken.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let of_layers = self.router.wakes.earliest();
        match self.router.marks.late_at {
            None => of_layers,
            Some(late) => Some(of_layers.map_or(late, |at| at.min(late))),
        }
    }

    /// Says whether the host will send no further request.
    #[inline]
    pub(crate) fn set_host_is_done(&mut self, is_done: bool) {
        self.router.host.is_done = is_done;
    }

    /// Host requests that are not yet answered.
    #[inline]
    pub fn host_in_flight(&self) -> u32 {
        // Answers that are held back are not given.
        let held = if self.is_moving_mark() { self.router.host.answers() } else { 0 };
        self.router.host.in_flight() + held
    }

    /// True when nothing is in flight anywhere, background work included.
    pub fn is_quiet(&self) -> bool {
        let has_answers = self.router.host.answers() > 0;
        self.router.is_quiet() && !has_answers && self.router.marks.is_quiet()
    }

    /// Why a layer refuses every request, if code that a program brought to it has failed.
    pub fn failure(&self) -> Option<BroughtFailure> {
        self.layers.iter().flatten().find_map(|layer| layer.failure())
    }

    /// What nodes do that requests of the host may feel.
    pub fn activities(&self) -> Activities {
        self.router.activities.clone()
    }

    /// What a node has counted.
    pub fn counts(&self, node: NodeId) -> &Counts {
        &self.router.node(node).counts
    }

    /// What nodes have counted so far is forgotten, so that they count what comes from now on. Gauges go on to
    /// tell what there is, but the longest times begin anew.
    pub fn restart_counts(&mut self) {
        for number in 0..self.layers.len() as u16 {
            self.router.node_mut(NodeId(number)).counts.restart();
        }
    }

    /// Every layer, from the bottom up.
    pub fn bottom_up(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.layers.len() as u16).map(NodeId)
    }

    /// The layers with their nodes, from the bottom up.
    pub(crate) fn layers_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Box<dyn Layer>)> {
        let numbered = (0..).map(NodeId).zip(&mut self.layers);
        numbered.filter_map(|(node, layer)| Some((node, layer.as_mut()?)))
    }

    /// The node of each disk.
    pub(crate) fn disk_nodes(&self) -> impl Iterator<Item = NodeId> {
        self.router.disk_nodes()
    }

    /// Lets a layer come up; a disk is up already.
    pub(crate) fn open_node(
        &mut self,
        now: Instant,
        node: NodeId,
        start: Start,
        buffers: &mut Buffers,
    ) {
        self.router.opened = None;
        self.router.node_mut(node).stage = Stage::Up;
        match &mut self.layers[usize::from(node.0)] {
            None => self.router.opened = Some(Ok(())),
            Some(layer) => {
                layer.open(start, &mut Context { now, node, router: &mut self.router, buffers })
            }
        }
        self.deliver(now, buffers);
    }

    /// What the layer that was last told to come up has said.
    pub(crate) fn take_opened(&mut self) -> Option<Result<(), OpenError>> {
        self.router.opened.take()
    }

    /// Lets a layer go down; a disk stays as it is.
    pub(crate) fn close_node(&mut self, now: Instant, node: NodeId, buffers: &mut Buffers) {
        self.router.closed = None;
        match &mut self.layers[usize::from(node.0)] {
            None => self.router.closed = Some(Ok(())),
            Some(layer) => {
                layer.close(&mut Context { now, node, router: &mut self.router, buffers })
            }
        }
        self.deliver(now, buffers);
    }

    /// What the layer that was last told to go down has said.
    pub(crate) fn take_closed(&mut self) -> Option<Result<(), IoError>> {
        self.router.closed.take()
    }

    /// Delivers messages until there are none.
    #[inline]
    fn deliver(&mut self, now: Instant, buffers: &mut Buffers) {
        if !self.router.messages.is_empty() {
            self.deliver_all(now, buffers);
        }
        if self.is_moving_mark() {
            self.tend_moving_mark(now, buffers);
        }
    }

    /// Goes on with a move of the count as far as it can.
    #[cold]
    fn tend_moving_mark(&mut self, now: Instant, buffers: &mut Buffers) {
        while self.is_moving_mark() {
            self.tend_marks(now, buffers);
            if self.router.messages.is_empty() {
                break;
            }
            // A disk was lost meanwhile.
            self.deliver_all(now, buffers);
        }
    }

    fn deliver_all(&mut self, now: Instant, buffers: &mut Buffers) {
        let mut delivered = 0;
        while let Some(message) = self.router.messages.pop_front() {
            delivered += 1;
            assert!(delivered < MESSAGES_PER_EVENT_MAX, "the layers send messages in circles");
            self.deliver_one(message, now, buffers);
        }
    }

    /// Delivers a message at once where no others wait before it, as after most events.
    #[inline(always)]
    fn deliver_first(&mut self, message: Message, now: Instant, buffers: &mut Buffers) {
        match self.router.messages.is_empty() {
            true => self.deliver_one(message, now, buffers),
            false => self.router.messages.push_back(message),
        }
    }

    #[inline(always)]
    fn deliver_one(&mut self, message: Message, now: Instant, buffers: &mut Buffers) {
        match message {
            Message::Submit { to, request } => {
                let layer = self.layers[usize::from(to.0)].as_mut().expect("a layer");
                let router = &mut self.router;
                layer.submit(request, &mut Context { now, node: to, router, buffers });
            }
            Message::Complete { to, completion, buffer } => {
                buffers.give_back(buffer);
                let layer = self.layers[usize::from(to.0)].as_mut().expect("a layer");
                let router = &mut self.router;
                layer.complete(completion, &mut Context { now, node: to, router, buffers });
            }
            Message::Reply { request, completion, buffer } => {
                buffers.give_back(buffer);
                self.router.answer_host(self.top, request, completion);
            }
            rare => self.deliver_rare(now, rare, buffers),
        }
    }

    /// What is no request and no answer to one.
    #[cold]
    fn deliver_rare(&mut self, now: Instant, message: Message, buffers: &mut Buffers) {
        let (Message::Lost { to, .. } | Message::Replaced { to, .. } | Message::Command { to, .. }) =
            message
        else {
            unreachable!("requests and answers are delivered by themselves")
        };
        let layer = self.layers[usize::from(to.0)].as_mut().expect("a layer");
        let mut ctx = Context { now, node: to, router: &mut self.router, buffers };
        match message {
            Message::Lost { port, .. } => layer.lost(port, &mut ctx),
            Message::Replaced { port, command, .. } => layer.replaced(port, command, &mut ctx),
            Message::Command { command, .. } => layer.command(command, &mut ctx),
            _ => {}
        }
    }
}

/// What a stack that is only read answers by itself: there is nothing to flush, and nothing may
/// change.
fn answer_of_read_only(operation: Operation) -> Option<Result<(), IoError>> {
    match operation {
        Operation::Read | Operation::ZoneReport => None,
        Operation::Flush => Some(Ok(())),
        Operation::Write { .. }
        | Operation::Zero { .. }
        | Operation::ZoneOpen
        | Operation::ZoneClose
        | Operation::ZoneReset
        | Operation::ZoneFinish
        | Operation::Copy(_) => Some(Err(IoError::NotPermitted)),
    }
}
