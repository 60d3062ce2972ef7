//! Lost nodes, new disks in their place, and commands to nodes.

use super::{DiskId, NodeId, Stack};
use crate::array::status::ArrayStatus;
use crate::buffer::Buffers;
use crate::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, NodeStatus, OnReplacement, Without,
};
use crate::disk::Geometry;
use crate::engine::Frontend;
use crate::layer::Port;
use crate::router::{Gate, Message, Replacing, Stage};
use crate::units::Instant;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// What a new disk below concerns: layers that pass it on, and layers that take it.
#[derive(Default)]
struct Concerned {
    passing: Vec<(NodeId, Port)>,
    taking: Vec<(NodeId, Port)>,
    /// A layer that refuses.
    refusing: Option<NodeId>,
}

impl Stack {
    /// The node that the host's requests go to.
    pub fn top(&self) -> NodeId {
        self.top
    }

    /// The disk of a node; `None` of a layer.
    pub fn disk_of(&self, node: NodeId) -> Option<DiskId> {
        self.router.node(node).disk
    }

    /// True when the nodes above have lost a node.
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.router.node(node).is_lost
    }

    /// True when a disk is lost.
    #[inline]
    pub fn is_disk_lost(&self, disk: DiskId) -> bool {
        self.router.node(self.router.node_of(disk)).is_lost
    }

    /// The disk could not be opened: it is lost before the layers come up, and each decides what
    /// becomes of it.
    pub fn lose_disk(&mut self, disk: DiskId) {
        self.router.lose(self.router.node_of(disk));
    }

    /// A layer has said that it cannot come up without a node that is lost.
    pub(crate) fn leave_out(&mut self, node: NodeId) {
        self.router.leave_out(node);
    }

    /// The disks that a node stands on, in ascending order; the disk itself of one.
    pub fn disks_below(&self, node: NodeId) -> Vec<DiskId> {
        self.router.disks_below(node)
    }

    /// Layers that would take a new disk in the place of this one, with the port that leads to it.
    /// Each of these ports is a member of its own.
    pub fn members_on(&self, disk: DiskId) -> Vec<(NodeId, Port)> {
        self.concerned(self.router.node_of(disk)).taking
    }

    /// The lowest number that no member of the stack has, or has had since it was built.
    pub fn next_member(&self) -> u16 {
        let ports = self.router.nodes().iter().flat_map(|node| &node.ports);
        let highest = ports.filter_map(|port| port.member).max();
        highest.map_or(0, |highest| highest.saturating_add(1))
    }

    /// Takes a command to a layer, or one to a disk that needs nothing of the disk itself.
    pub(crate) fn handle_command(
        &mut self,
        now: Instant,
        node: NodeId,
        command: Command,
        buffers: &mut Buffers,
    ) {
        let is_disk = self.disk_of(node).is_some();
        match command.kind {
            // A question changes nothing, and its answer waits for nothing.
            CommandKind::Status => self.answer_with_status(now, node, command.id, false),
            CommandKind::TakeOut if is_disk && self.is_needed(node) => {
                let error = CommandError::Needed(self.without(node));
                self.router.end_command(command.id, Err(error));
            }
            CommandKind::TakeOut | CommandKind::Fail if is_disk => {
                self.router.lose(node);
                self.answer_with_status(now, node, command.id, true);
            }
            _ if is_disk => {
                self.router.end_command(command.id, Err(CommandError::NotTaken));
            }
            _ if self.router.is_absent(node) => {
                let words = "the node did not come up, because what it needs below is lost; accepted: \
                             a node that did";
                let result = Err(CommandError::NotNow(words.into()));
                self.router.end_command(command.id, result);
            }
            _ => {
                let message = Message::Command { to: node, command };
                self.router.messages.push_back(message);
            }
        }
        self.deliver(now, buffers);
    }

    fn answer_with_status(&mut self, now: Instant, node: NodeId, id: CommandId, waits: bool) {
        let (above, array) = (self.without(node), self.array_of(now, node));
        let status = NodeStatus { above, array, ..self.status_of(node) };
        self.router.say_end(id, Ok(status), waits);
    }

    /// What is known of a node by itself and at any time: without the nodes above, and what an array says.
    pub fn status_of(&self, node: NodeId) -> NodeStatus {
        let mut facts = vec![];
        let layer = self.layers[usize::from(node.0)].as_ref();
        let layer = layer.filter(|_| !self.router.is_absent(node));
        if let Some(layer) = layer {
            layer.status(&mut facts);
        }
        NodeStatus {
            is_lost: self.is_lost(node),
            facts,
            counts: Some(Box::new(self.counts(node).clone())),
            above: Vec::new(),
            array: None,
            controller: layer.and_then(|layer| layer.controller()).map(Box::new),
        }
    }

    /// How the array is that a node is.
    fn array_of(&self, now: Instant, node: NodeId) -> Option<ArrayStatus> {
        let layer = self.layers[usize::from(node.0)].as_ref();
        let ports = &self.router.node(node).ports;
        let is_lost = |port: Port| self.is_lost(ports[usize::from(port.0)].below);
        layer.filter(|_| !self.router.is_absent(node))?.array(now, &is_lost)
    }

    /// True when an array would lose data with a disk that it has not lost yet.
    fn is_needed(&self, disk: NodeId) -> bool {
        if self.is_lost(disk) {
            return false;
        }
        let above = self.without(disk);
        let is_array = |(node, without): &&(NodeId, Without)| {
            *without == Without::Lost && !self.is_lost(*node) && self.keeps_redundancy(*node)
        };
        let mut arrays = above.iter().filter(is_array);
        arrays.any(|(node, _)| !self.has_elsewhere(*node, &above))
    }

    /// True when every array above a node that would be lost has its data on other nodes.
    fn has_elsewhere(&self, node: NodeId, above: &[(NodeId, Without)]) -> bool {
        let parents = self.router.parents(node);
        let has = |parent: NodeId| match above.iter().find(|(known, _)| *known == parent) {
            Some((_, Without::Lost)) => self.has_elsewhere(parent, above),
            _ => self.keeps_redundancy(parent),
        };
        !parents.is_empty() && parents.iter().all(|(parent, _)| has(*parent))
    }

    /// True of a layer that finds elsewhere what was on a lost disk.
    fn keeps_redundancy(&self, node: NodeId) -> bool {
        let layer = self.layers[usize::from(node.0)].as_ref();
        layer.is_some_and(|layer| layer.on_replacement() == OnReplacement::Takes)
    }

    /// What becomes of the nodes above one that is lost while all others are there: those that are lost
    /// with it, and those that go on without. From the bottom up.
    pub fn without(&self, node: NodeId) -> Vec<(NodeId, Without)> {
        let mut lost = vec![node];
        let mut above = vec![];
        for at in self.bottom_up() {
            let ports = &self.router.node(at).ports;
            let is_lost = |port: Port| lost.contains(&ports[usize::from(port.0)].below);
            let layer = self.layers[usize::from(at.0)].as_ref();
            let mut all_ports = (0..ports.len()).map(|port| Port(port as u8));
            if let (Some(layer), true) = (layer, all_ports.any(is_lost)) {
                let without = layer.without(&is_lost);
                above.push((at, without));
                lost.extend((without == Without::Lost).then_some(at));
            }
        }
        above
    }

    /// True of a command that a node takes; of a fault only the disk itself knows.
    pub fn takes(&self, node: NodeId, kind: CommandKind) -> bool {
        match (&self.layers[usize::from(node.0)], kind) {
            (_, CommandKind::Status) => true,
            (None, CommandKind::TakeOut | CommandKind::Fail | CommandKind::Fault(_)) => true,
            (None, _) => false,
            (Some(layer), kind) => layer.takes(kind),
        }
    }

    /// True when a new disk can take the place of this one while the stack runs.
    pub fn takes_replacement(&self, disk: DiskId) -> bool {
        let concerned = self.concerned(self.router.node_of(disk));
        concerned.refusing.is_none() && !concerned.taking.is_empty()
    }

    /// True when there is something to tell that a person must know.
    #[inline]
    pub(crate) fn has_notices(&self) -> bool {
        !self.router.notices.is_empty()
    }

    /// Hands over what a person must know. The engine does so at each instant; what layers say while they
    /// come up waits for the first one, and what they say while they go down for whoever calls this.
    #[cold]
    pub fn tell_notices<F: Frontend + ?Sized>(&mut self, now: Instant, frontend: &mut F) {
        let dropped = self.router.notices.take_dropped();
        if dropped > 0 {
            frontend.notices_dropped(now, dropped);
        }
        while let Some((node, notice)) = self.router.notices.pop() {
            frontend.notice(now, node, notice);
        }
    }

    /// The nodes behind the ports of a node, in their order; none of a disk.
    pub fn below(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.router.node(node).ports.iter().map(|port| port.below)
    }

    pub(crate) fn end_command(&mut self, id: CommandId, result: Result<(), CommandError>) {
        self.router.end_command(id, result);
    }

    /// What there is to say of commands.
    #[inline]
    pub fn poll_command_reply(&mut self) -> Option<CommandReply> {
        if self.router.marks.gate != Gate::Open {
            return self.poll_command_reply_at_gate();
        }
        self.router.command_replies.pop_front().map(|said| said.reply)
    }

    /// Makes a lost disk one that is there again, its members under new numbers.
    ///
    /// # Errors
    /// When the disk is not lost, still works on something, does not fit, or a layer over it cannot
    /// take another.
    pub(crate) fn begin_replacement(
        &mut self,
        id: CommandId,
        disk: DiskId,
        geometry: &Geometry,
        first_member: u16,
    ) -> Result<(), CommandError> {
        let node = self.router.node_of(disk);
        let not_now = |words| Err(CommandError::NotNow(words));
        if !self.is_lost(node) {
            return not_now("the disk is not lost; accepted: a disk that is, after `fail`".into());
        }
        let in_flight: u32 = (self.router.parents(node).iter())
            .map(|(parent, port)| self.router.node(*parent).ports[usize::from(port.0)].in_flight)
            .sum();
        let in_flight = in_flight + self.label_ops_in_flight(disk);
        if in_flight > 0 {
            return not_now(format!(
                "{in_flight} operations of the lost disk have not ended yet; try again later"
            ));
        }
        let (found, needed) = (geometry.blocks, self.router.node(node).blocks);
        if found < needed {
            return not_now(format!(
                "the new disk has {} B; accepted: {} B or more",
                found.bytes(),
                needed.bytes()
            ));
        }
        if !self.takes_replacement(disk) {
            let words = "no layer over the disk can take another one while it runs; accepted: a disk \
                         whose data an array above has elsewhere";
            return not_now(words.into());
        }
        let concerned = self.concerned(node);
        let is_busy = |(passing, _): &&(NodeId, Port)| {
            let layer = self.layers[usize::from(passing.0)].as_ref();
            layer
                .is_some_and(|layer| !self.router.is_absent(*passing) && !layer.is_done_with_lost())
        };
        if concerned.passing.iter().find(is_busy).is_some() {
            let words =
                "a layer over the lost disk has work that has not ended yet; try again later";
            return not_now(words.into());
        }
        for (number, (to, port)) in (first_member..).zip(&concerned.taking) {
            let port = &mut self.router.node_mut(*to).ports[usize::from(port.0)];
            port.member = Some(number);
        }
        self.exchange_label(disk);
        self.router.node_mut(node).is_lost = false;
        for (passing, _) in &concerned.passing {
            let passing = self.router.node_mut(*passing);
            // One that could not come up before keeps nothing that it would have to read now.
            (passing.is_lost, passing.stage) = (false, Stage::Up);
        }
        let missing = concerned.taking.len() as u32;
        let error = None;
        let replacing = Replacing { id, node, missing, error };
        self.router.replacements.push(replacing);
        Ok(())
    }

    /// Tells every layer that has to do with a new disk, from the bottom up.
    pub(crate) fn tell_replacement(
        &mut self,
        now: Instant,
        command: CommandId,
        disk: DiskId,
        buffers: &mut Buffers,
    ) {
        let Concerned { passing, taking, .. } = self.concerned(self.router.node_of(disk));
        for (to, port) in passing.into_iter().chain(taking) {
            let message = Message::Replaced { to, port, command };
            self.router.messages.push_back(message);
        }
        self.deliver(now, buffers);
    }

    /// Whom a new disk in the place of a node concerns.
    fn concerned(&self, node: NodeId) -> Concerned {
        let mut concerned = Concerned::default();
        let mut below = vec![node];
        while let Some(node) = below.pop() {
            for (parent, port) in self.router.parents(node) {
                let layer = self.layers[usize::from(parent.0)].as_ref();
                match layer.expect("a layer").on_replacement() {
                    OnReplacement::Refuses => concerned.refusing = Some(parent),
                    OnReplacement::Takes if self.router.is_absent(parent) => {
                        concerned.refusing = Some(parent);
                    }
                    OnReplacement::Takes => concerned.taking.push((parent, port)),
                    OnReplacement::PassesOn => {
                        concerned.passing.push((parent, port));
                        below.push(parent);
                    }
                }
            }
        }
        concerned.passing.sort_by_key(|(node, port)| (node.0, port.0));
        concerned.taking.sort_by_key(|(node, port)| (node.0, port.0));
        concerned
    }
}
