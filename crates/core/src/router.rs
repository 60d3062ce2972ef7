//! Moves requests and completions across the edges of the stack, one at a time.

use crate::activity::Activities;
use crate::buffer::{BufferSlice, Buffers};
use crate::command::{Command, CommandError, CommandId, CommandReply, CommandState, NodeStatus};
use crate::counters::Counts;
use crate::deadlines::Deadlines;
use crate::disk::DiskOp;
use crate::error::IoError;
use crate::extent::Extent;
use crate::host_requests::HostRequests;
use crate::label::RunningLabels;
use crate::layer::{Issue, Port};
use crate::lifecycle::OpenError;
use crate::map::Slab;
use crate::notice::{Notice, Notices};
use crate::operation::{Cause, Completion, Operation, Request, RequestId, Tag};
use crate::planted::PlantedBug;
use crate::rng::Rng;
use crate::saved::{Saved, SavedValue};
use crate::stack::{DiskId, NodeId};
use crate::units::{BlockCount, Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

/// Who issued a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(crate) enum Issuer {
    Host,
    Node(NodeId, Port),
}

/// What a request was sent to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiver {
    Layer,
    Disk,
    /// A layer that could not come up.
    Nobody,
}

/// How far a layer has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(crate) enum Stage {
    /// It was not told to come up.
    Down,
    /// It was told to, and has not said that it cannot.
    Up,
    /// It could not come up without a node below that is lost. What it has in memory says nothing of
    /// what lies on its disks, so nobody asks it: the router answers for it.
    Absent,
}

#[derive(Saved)]
pub(crate) struct PortState {
    #[saved(keep)]
    pub below: NodeId,
    pub in_flight: u32,
    /// All that were ever sent there.
    pub sent: u64,
    /// The number of the member behind the port, if members are numbered.
    #[saved(keep)]
    pub member: Option<u16>,
}

#[derive(Saved)]
pub(crate) struct NodeState {
    #[saved(each)]
    pub ports: Vec<PortState>,
    #[saved(keep)]
    pub blocks: BlockCount,
    /// Set for a leaf.
    #[saved(keep)]
    pub disk: Option<DiskId>,
    pub stage: Stage,
    /// The nodes above have lost it.
    pub is_lost: bool,
    pub rng: Rng,
    pub counts: Counts,
}

#[derive(Clone, Copy, SavedValue)]
struct InFlight {
    generation: u32,
    active: bool,
    issuer: Issuer,
    target: NodeId,
    tag: Tag,
    buffer: BufferSlice,
    /// It only takes data out of the buffer.
    is_write: bool,
}

impl InFlight {
    /// A new place, before a request has it.
    fn none() -> InFlight {
        InFlight {
            generation: 0,
            active: false,
            issuer: Issuer::Host,
            target: NodeId(0),
            tag: Tag(0),
            buffer: BufferSlice::EMPTY,
            is_write: false,
        }
    }
}

/// What the stack must deliver next.
pub(crate) enum Message {
    Submit { to: NodeId, request: Request },
    Complete { to: NodeId, completion: Completion, buffer: BufferSlice },
    Reply { request: RequestId, completion: Completion, buffer: BufferSlice },
    Lost { to: NodeId, port: Port },
    Replaced { to: NodeId, port: Port, command: CommandId },
    Command { to: NodeId, command: Command },
}

/// A new disk in the place of a lost one, until every layer concerned has answered.
pub(crate) struct Replacing {
    pub id: CommandId,
    /// The disk.
    pub node: NodeId,
    /// Answers to come.
    pub missing: u32,
    /// Of the first layer that could not take it.
    pub error: Option<CommandError>,
}

/// What is said of a command.
pub(crate) struct Said {
    pub reply: CommandReply,
    /// It ends a command that may have changed something: it waits for a move of the count that is
    /// under way.
    pub waits: bool,
}

/// Whether answers go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Gate {
    #[default]
    Open,
    /// They wait for a move of the count.
    Held,
    /// A move cannot be made: what would have been a success ends with an error.
    Failed,
}

/// A layer has a disk below a port take no part in moves of the count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    pub node: NodeId,
    pub port: Port,
    pub disk: DiskId,
}

/// The labels of the disks while the stack runs, and what waits for them.
#[derive(Default)]
pub(crate) struct Marks {
    pub gate: Gate,
    /// A move was asked for since the last one began.
    pub is_wanted: bool,
    pub holds: Vec<Hold>,
    /// `None`: the disks have no labels.
    pub running: Option<Box<RunningLabels>>,
    /// How long a disk may take for its label, where a layer above has said so.
    pub patience: BTreeMap<DiskId, Duration>,
    /// When the first one will have taken too long.
    pub late_at: Option<Instant>,
}

impl Marks {
    pub fn is_held(&self, disk: DiskId) -> bool {
        self.holds.iter().any(|hold| hold.disk == disk)
    }

    pub fn is_quiet(&self) -> bool {
        let is_quiet = self.running.as_ref().is_none_or(|running| running.is_quiet());
        self.gate != Gate::Held && is_quiet
    }
}

/// The queues between the nodes and the table of requests in flight.
#[derive(Saved)]
pub(crate) struct Router {
    #[saved(each)]
    nodes: Vec<NodeState>,
    /// The node of each disk.
    #[saved(keep)]
    disks: Vec<NodeId>,
    in_flight: Slab<InFlight>,
    /// When each node wants to be woken.
    pub wakes: Deadlines,
    #[saved(keep)]
    pub messages: VecDeque<Message>,
    #[saved(keep)]
    pub disk_ops: VecDeque<(DiskId, DiskOp)>,
    #[saved(keep)]
    pub command_replies: VecDeque<Said>,
    /// Disks that were lost because a layer said so, or their labels cannot be written. What hangs there
    /// is yet to be ended.
    #[saved(keep)]
    pub failed: Vec<DiskId>,
    #[saved(keep)]
    pub marks: Marks,
    pub activities: Activities,
    #[saved(keep)]
    pub notices: Notices<NodeId>,
    /// New disks that layers have yet to take.
    #[saved(keep)]
    pub replacements: Vec<Replacing>,
    pub host: HostRequests,
    /// The stack admits reads and flushes alone.
    #[saved(keep)]
    pub is_read_only: bool,
    /// What the layer that is coming up has said.
    #[saved(keep)]
    pub opened: Option<Result<(), OpenError>>,
    /// What the layer that is going down has said.
    #[saved(keep)]
    pub closed: Option<Result<(), IoError>>,
    /// See [`Stack::plant`](crate::stack::Stack::plant).
    #[saved(keep)]
    pub planted: Option<PlantedBug>,
}

impl Router {
    pub fn new(nodes: Vec<NodeState>) -> Router {
        let mut disks: Vec<(DiskId, NodeId)> = (0..)
            .zip(&nodes)
            .filter_map(|(index, node)| Some((node.disk?, NodeId(index))))
            .collect();
        disks.sort_unstable_by_key(|(disk, _)| disk.0);
        Router {
            wakes: Deadlines::new(nodes.len(), None),
            nodes,
            disks: disks.into_iter().map(|(_, node)| node).collect(),
            in_flight: Slab::default(),
            messages: VecDeque::new(),
            disk_ops: VecDeque::new(),
            command_replies: VecDeque::new(),
            failed: Vec::new(),
            marks: Marks::default(),
            activities: Activities::default(),
            notices: Notices::default(),
            replacements: Vec::new(),
            host: HostRequests::default(),
            is_read_only: false,
            opened: None,
            closed: None,
            planted: None,
        }
    }

    #[inline]
    pub fn is_planted(&self, bug: PlantedBug) -> bool {
        self.planted == Some(bug)
    }

    #[inline]
    pub fn node(&self, node: NodeId) -> &NodeState {
        &self.nodes[node.0 as usize]
    }

    #[inline]
    pub fn node_mut(&mut self, node: NodeId) -> &mut NodeState {
        &mut self.nodes[node.0 as usize]
    }

    /// The leaf that is a disk. Panics when the stack has no such disk.
    #[inline]
    pub fn node_of(&self, disk: DiskId) -> NodeId {
        self.disks[usize::from(disk.0)]
    }

    /// The node of each disk.
    pub fn disk_nodes(&self) -> impl Iterator<Item = NodeId> {
        self.disks.iter().copied()
    }

    /// The data of a request in flight.
    #[inline]
    pub fn buffer_of(&self, id: RequestId) -> BufferSlice {
        self.in_flight[id.index()].buffer
    }

    pub fn nodes(&self) -> &[NodeState] {
        &self.nodes
    }

    /// The node is of no use any more: the layers above are told, once.
    pub fn lose(&mut self, node: NodeId) {
        if core::mem::replace(&mut self.node_mut(node).is_lost, true) {
            return;
        }
        if self.node(node).disk.is_some() {
            self.notices.push(node, Notice::DiskLost);
        }
        for (to, port) in self.parents(node) {
            // A layer that comes up later asks for itself.
            if self.node(to).stage == Stage::Up {
                self.messages.push_back(Message::Lost { to, port });
            }
        }
    }

    /// A layer could not come up without a node below that is lost.
    pub fn leave_out(&mut self, node: NodeId) {
        self.lose(node);
        self.node_mut(node).stage = Stage::Absent;
        self.wakes.set(usize::from(node.0), None);
    }

    /// True of a layer that could not come up.
    #[inline]
    pub fn is_absent(&self, node: NodeId) -> bool {
        let is_absent = self.node(node).stage == Stage::Absent;
        is_absent && !self.is_planted(PlantedBug::UpOverLostNode)
    }

    /// The layers above a node, with the port that leads to it.
    pub fn parents(&self, node: NodeId) -> Vec<(NodeId, Port)> {
        let ports = |(index, state): (usize, &NodeState)| {
            let below = state.ports.iter().map(|port| port.below);
            let below: Vec<NodeId> = below.collect();
            (0..)
                .zip(below)
                .filter(move |(_, below)| *below == node)
                .map(move |(port, _)| (NodeId(index as u16), Port(port)))
        };
        self.nodes.iter().enumerate().flat_map(ports).collect()
    }

    /// A layer has answered a command. A replacement that other layers have yet to answer goes on.
    /// When one of them could not take the new disk, that is lost in its turn.
    pub fn end_command(&mut self, id: CommandId, mut result: Result<(), CommandError>) {
        let entry = self.replacements.iter().position(|it| it.id == id);
        if let Some(index) = entry {
            let replacing = &mut self.replacements[index];
            replacing.missing -= 1;
            if let Err(error) = result {
                replacing.error.get_or_insert(error);
            }
            if replacing.missing > 0 {
                return;
            }
            let Replacing { node, error, .. } = self.replacements.remove(index);
            result = error.map_or(Ok(()), Err);
            if result.is_err() {
                self.lose(node);
            }
        }
        self.say_end(id, result.map(|()| NodeStatus::default()), true);
    }

    /// Says how a command has ended. The answer waits for a move of the count, if it must.
    pub fn say_end(
        &mut self,
        id: CommandId,
        result: Result<NodeStatus, CommandError>,
        waits: bool,
    ) {
        let state = CommandState::Ended(result);
        let reply = CommandReply { id, state };
        self.command_replies.push_back(Said { reply, waits });
    }

    /// Asks for the count of the labels to move, where there are labels and they are written.
    pub fn move_mark(&mut self) {
        if self.marks.running.is_none() || self.is_read_only {
            return;
        }
        self.marks.is_wanted = true;
        if self.marks.gate == Gate::Open {
            self.marks.gate = Gate::Held;
        }
    }

    /// A disk is lost from now on, and what hangs there ends.
    pub fn fail(&mut self, disk: DiskId) {
        self.lose(self.node_of(disk));
        self.failed.push(disk);
    }

    /// The disks that a node stands on, in ascending order; the disk itself of one.
    pub fn disks_below(&self, node: NodeId) -> Vec<DiskId> {
        let mut disks = vec![];
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            let state = self.node(node);
            disks.extend(state.disk);
            nodes.extend(state.ports.iter().map(|port| port.below));
        }
        disks.sort_unstable_by_key(|disk| disk.0);
        disks.dedup();
        disks
    }

    /// True when no request is anywhere in the stack.
    pub fn is_quiet(&self) -> bool {
        self.in_flight.is_empty() && self.messages.is_empty() && self.disk_ops.is_empty()
    }

    /// Registers a request of the host without sending it on: it may have to wait for a lock.
    #[inline]
    pub fn register_host(&mut self, top: NodeId, tag: Tag, request: HostOperation) -> Request {
        self.check_fits(top, request.operation, request.extent, request.buffer);
        let is_write = matches!(request.operation, Operation::Write { .. });
        let id = self.register(Issuer::Host, top, tag, request.buffer, is_write);
        let HostOperation { operation, extent, buffer } = request;
        Request { id, operation, extent, buffer, cause: Cause::Host, has_more: false }
    }

    /// Sends an operation of a layer to the node behind a port.
    #[inline]
    pub fn issue(&mut self, node: NodeId, issue: Issue, has_more: bool) -> Receiver {
        let port = &mut self.nodes[node.0 as usize].ports[usize::from(issue.port.0)];
        port.in_flight += 1;
        port.sent += 1;
        let below = port.below;
        self.check_fits(below, issue.operation, issue.extent, issue.buffer);
        let is_write = matches!(issue.operation, Operation::Write { .. });
        let issuer = Issuer::Node(node, issue.port);
        let id = self.register(issuer, below, issue.tag, issue.buffer, is_write);
        let Issue { operation, extent, buffer, cause, .. } = issue;
        self.send(below, Request { id, operation, extent, buffer, cause, has_more })
    }

    /// Sends a registered request to its node.
    #[inline]
    pub fn send(&mut self, to: NodeId, request: Request) -> Receiver {
        let receiver = self.hand_over(to, request);
        if receiver == Receiver::Layer {
            self.messages.push_back(Message::Submit { to, request });
        }
        receiver
    }

    /// Hands a registered request to its node, where that is a disk. A layer is yet to get it; one that could not come
    /// up is lost.
    #[inline]
    pub fn hand_over(&mut self, to: NodeId, request: Request) -> Receiver {
        match self.nodes[to.0 as usize].disk {
            Some(disk) => {
                let Request { id, operation, extent, buffer, cause, has_more: _ } = request;
                self.disk_ops.push_back((disk, DiskOp { id, operation, extent, buffer, cause }));
                Receiver::Disk
            }
            None if self.is_absent(to) => self.end_absent(request.id, to),
            None => Receiver::Layer,
        }
    }

    /// Answers a request to a layer that could not come up.
    #[cold]
    fn end_absent(&mut self, id: RequestId, to: NodeId) -> Receiver {
        let message = self.end(id, to, Err(IoError::Lost));
        self.messages.push_back(message);
        Receiver::Nobody
    }

    /// Ends a request with a message to its issuer. That to the host is delivered at once: nobody in the stack waits for
    /// it, but for requests that may go on then, and they keep their place among the messages.
    #[inline]
    pub fn finish(
        &mut self,
        id: RequestId,
        by: NodeId,
        result: Result<(), IoError>,
        buffers: &mut Buffers,
    ) {
        match self.end(id, by, result) {
            Message::Reply { request, completion, buffer } if !self.host.has_waiting() => {
                buffers.give_back(buffer);
                self.host.end(request, completion);
            }
            message => self.messages.push_back(message),
        }
    }

    /// Answers a request of the host, and sends those on that have waited for it.
    #[inline]
    pub fn answer_host(&mut self, top: NodeId, request: RequestId, answer: Completion) {
        self.host.end(request, answer);
        while let Some(request) = self.host.next_granted() {
            self.send(top, request);
        }
    }

    /// Ends a request with a message to its issuer, which is yet to be delivered.
    #[inline(always)]
    pub fn end(&mut self, id: RequestId, by: NodeId, result: Result<(), IoError>) -> Message {
        let entry = &mut self.in_flight[id.index()];
        assert!(
            entry.active && entry.generation == id.generation(),
            "a request was answered twice"
        );
        assert!(entry.target == by, "a request was answered by a node it was not sent to");
        entry.active = false;
        entry.generation = entry.generation.wrapping_add(1);
        let InFlight { issuer, tag, buffer, .. } = *entry;
        self.in_flight.remove(id.index());
        let completion = Completion { tag, result };
        match issuer {
            Issuer::Host => Message::Reply { request: id, completion, buffer },
            Issuer::Node(to, port) => {
                self.nodes[to.0 as usize].ports[usize::from(port.0)].in_flight -= 1;
                Message::Complete { to, completion, buffer }
            }
        }
    }

    /// Panics when a disk holds a part of the slice.
    ///
    /// The data of a request from above is lent by every layer above as well, and they left it to
    /// the layer that has the request now; only a disk may still read or fill it.
    pub fn assert_not_at_disk(&self, slice: BufferSlice) {
        let is_held = self.is_at_disk(slice, |_| true);
        assert!(!is_held, "a layer touched data that a disk holds");
    }

    /// Panics when a disk may still change a part of the slice. One that writes it only reads the data.
    pub fn assert_unchanged_by_disk(&self, slice: BufferSlice) {
        let is_changed = self.is_at_disk(slice, |entry| !entry.is_write);
        assert!(!is_changed, "a layer read data that a disk may change");
    }

    fn is_at_disk(&self, slice: BufferSlice, concerns: impl Fn(&InFlight) -> bool) -> bool {
        let overlaps = |held: BufferSlice| {
            held.buffer() == slice.buffer()
                && held.first_block() < slice.first_block() + slice.blocks
                && slice.first_block() < held.first_block() + held.blocks
        };
        self.in_flight.iter().any(|entry| {
            let is_disk = entry.active && self.node(entry.target).disk.is_some();
            is_disk && concerns(entry) && overlaps(entry.buffer)
        })
    }

    #[inline]
    fn register(
        &mut self,
        issuer: Issuer,
        target: NodeId,
        tag: Tag,
        buffer: BufferSlice,
        is_write: bool,
    ) -> RequestId {
        let index = self.in_flight.reuse_or(InFlight::none);
        let entry = &mut self.in_flight[index];
        let generation = entry.generation;
        *entry = InFlight { generation, active: true, issuer, target, tag, buffer, is_write };
        RequestId::new(index, generation)
    }

    #[inline]
    fn check_fits(&self, to: NodeId, op: Operation, extent: Extent, buffer: BufferSlice) {
        let blocks = self.nodes[to.0 as usize].blocks;
        assert!(extent.end().0 <= blocks.0, "{op:?} of {extent:?} past the end of {blocks:?}");
        let data = if op.has_data() { extent.blocks.0 } else { 0 };
        assert_eq!(u64::from(buffer.blocks), data, "the buffer of {op:?} does not fit {extent:?}");
        // A flush may name the blocks it is for; whoever takes it may flush more.
        assert!(
            !extent.is_empty() || matches!(op, Operation::Flush),
            "{op:?} with an extent of {extent:?}"
        );
    }
}

/// A request as the host states it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostOperation {
    pub operation: Operation,
    pub extent: Extent,
    pub buffer: BufferSlice,
}
