//! The one trait of the stack, and the only door a layer has to the world.

use crate::activity::Activity;
use crate::array::status::ArrayStatus;
use crate::buffer::{BufferSlice, Buffers};
use crate::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, CommandState, OnReplacement,
    Without,
};
use crate::counters::{Counter, Gauge};
use crate::error::{BroughtFailure, IoError};
use crate::extent::Extent;
use crate::idle_control::ControlStatus;
use crate::label::{Labels, Mark};
use crate::lifecycle::{OpenError, Start};
use crate::notice::Notice;
use crate::operation::{Cause, Completion, Operation, Request, RequestId, Tag};
use crate::planted::PlantedBug;
use crate::rng::Rng;
use crate::router::{Hold, Receiver, Router, Said};
use crate::saved::Saved;
use crate::saved::SavedValue;
use crate::stack::{DiskId, NodeId};
use crate::units::{BlockCount, Duration, Instant};
use alloc::vec::Vec;

/// One layer of a device stack: turns requests from above into requests below.
///
/// A layer is a deterministic state machine. It is told what happened and answers through the
/// [`Context`] with what should be done. It sees no clock, no file and no byte of data, and it is
/// never called while it is already being called.
pub trait Layer {
    /// A request arrived from above. It must be answered with [`Context::finish`], exactly once,
    /// now or later.
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>);

    /// An operation this layer issued has finished.
    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>);

    /// The deadline set with [`Context::wake_at`] has passed.
    fn wake(&mut self, _ctx: &mut Context<'_>) {}

    /// Comes up, before the first request, when every layer below has. The layer says that it is
    /// done, or why it cannot, with [`Context::opened`], now or after operations of its own.
    ///
    /// A layer that needs a node which is lost cannot, and says so before anything else. It is asked for
    /// nothing from then on.
    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        ctx.opened(ctx.nothing_lost());
    }

    /// Goes down in good order, after every layer above and when nothing is in flight. The layer
    /// says that it is done, or what went wrong, with [`Context::closed`]. It gets no request
    /// afterwards.
    fn close(&mut self, ctx: &mut Context<'_>) {
        ctx.closed(Ok(()));
    }

    /// The node behind a port is lost, told once. What is in flight there ends with
    /// [`IoError::Lost`], and so does every later operation. A layer that cannot go on without the
    /// node is lost itself. A layer that comes up asks [`Context::is_lost`] instead.
    fn lost(&mut self, _port: Port, ctx: &mut Context<'_>) {
        ctx.lose();
    }

    /// What becomes of the layer when the nodes behind some ports, at least one, are
    /// [lost](Self::lost), for those who ask for the status.
    fn without(&self, _is_lost: &dyn Fn(Port) -> bool) -> Without {
        Without::Lost
    }

    /// What the layer makes of a new disk in the place of a lost one below it.
    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Refuses
    }

    /// True when nothing of what a lost node below was asked for is under way any more, so that another may
    /// take its place.
    fn is_done_with_lost(&self) -> bool {
        true
    }

    /// The lost node behind a port is there again, blank, under a new
    /// [number](Context::member_number). A layer that [takes](OnReplacement::Takes) it writes the
    /// number down and answers the command when that is durable. One that passes it on does not
    /// answer.
    fn replaced(&mut self, _port: Port, _command: CommandId, _ctx: &mut Context<'_>) {}

    /// True of a layer that decides what becomes of a disk that was away while others went on. The disks
    /// below it that were are [held out](Context::hold_out) when the stack comes up, until the layer has
    /// them take part.
    fn holds_away(&self) -> bool {
        false
    }

    /// True of a command that [`command`](Self::command) takes; others are not offered.
    fn takes(&self, _kind: CommandKind) -> bool {
        false
    }

    /// A command other than a question for the status. It is answered with
    /// [`Context::answer_command`], once, now or later.
    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        ctx.answer_command(command.id, Err(CommandError::NotTaken));
    }

    /// How the array is that the layer is; `None` of another layer. `is_lost` is true of a port with a lost
    /// node behind it. It is asked as [`status`](Self::status) is.
    fn array(&self, _now: Instant, _is_lost: &dyn Fn(Port) -> bool) -> Option<ArrayStatus> {
        None
    }

    /// How the controller is that the layer is; `None` of another layer. It is asked as [`status`](Self::status) is.
    fn controller(&self) -> Option<ControlStatus> {
        None
    }

    /// Adds what there is to know of the layer by name, beside what it [counts](Context::count). It is
    /// asked while requests wait, so it adds up what is known and looks through no map.
    fn status(&self, _facts: &mut Vec<(&'static str, u64)>) {}

    /// Why the layer refuses every request, if code that a program brought to it has failed.
    fn failure(&self) -> Option<BroughtFailure> {
        None
    }

    /// What there is to save of a layer that is simulated; `None` of one that cannot be saved.
    fn saved(&mut self) -> Option<&mut dyn Saved> {
        None
    }
}

/// An edge from a layer to a node below it. Each layer names its ports as constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Port(pub u8);

/// A run of blocks behind a port: where a layer keeps one of its things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Area {
    /// Where it goes.
    pub port: Port,
    /// The blocks, in the addresses of the node there.
    pub extent: Extent,
}

impl Area {
    /// No blocks.
    pub const EMPTY: Area = Area { port: Port(0), extent: Extent::EMPTY };

    /// `blocks` blocks from an offset in the area.
    pub fn part(self, offset: u64, blocks: u64) -> Area {
        Area { extent: Extent::new(self.extent.start.0 + offset, blocks), ..self }
    }
}

/// An operation a layer wants done below.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// Where it goes.
    pub port: Port,
    /// What to do.
    pub operation: Operation,
    /// Where to do it; empty for a flush.
    pub extent: Extent,
    /// The data, as long as the extent, lent until the completion; empty when none is moved.
    pub buffer: BufferSlice,
    /// Who wanted it.
    pub cause: Cause,
    /// What the layer gets back with the completion.
    pub tag: Tag,
}

/// What a layer may ask and order while it handles one event.
pub struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) node: NodeId,
    pub(crate) router: &'a mut Router,
    pub(crate) buffers: &'a mut Buffers,
}

impl Context<'_> {
    /// The time of the event.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Sends an operation to the node behind a port. Panics when it does not fit that node.
    #[inline]
    pub fn issue(&mut self, issue: Issue) {
        self.send(issue, false);
    }

    /// Sends an operation of a batch, of which more follow at once to the same node: the last one goes
    /// with [`issue`](Self::issue). A node that knows batches does all of one together.
    #[inline]
    pub fn issue_in_batch(&mut self, issue: Issue) {
        self.send(issue, true);
    }

    #[inline]
    fn send(&mut self, issue: Issue, has_more: bool) {
        match self.router.issue(self.node, issue, has_more) {
            Receiver::Disk => self.buffers.lend_to_disk(issue.buffer),
            Receiver::Layer | Receiver::Nobody => self.buffers.lend_to_layer(issue.buffer),
        }
    }

    /// Answers a request from above. Panics when it was answered before.
    #[inline]
    pub fn finish(&mut self, request: RequestId, result: Result<(), IoError>) {
        self.router.finish(request, self.node, result, self.buffers);
    }

    /// Says how coming up has ended.
    pub fn opened(&mut self, result: Result<(), OpenError>) {
        self.router.opened = Some(result);
    }

    /// Says how going down has ended.
    pub fn closed(&mut self, result: Result<(), IoError>) {
        self.router.closed = Some(result);
    }

    /// Says that this layer is of no use any more to the nodes above. They are told once.
    pub fn lose(&mut self) {
        self.router.lose(self.node);
    }

    /// True when the node behind a port is lost.
    pub fn is_lost(&self, port: Port) -> bool {
        let below = self.router.node(self.node).ports[usize::from(port.0)].below;
        self.router.node(below).is_lost
    }

    /// True when a node behind any port is lost.
    pub fn has_lost_port(&self) -> bool {
        let mut ports = self.router.node(self.node).ports.iter();
        ports.any(|port| self.router.node(port.below).is_lost)
    }

    /// What a layer that needs every node below it says of coming up: an error when one is lost.
    ///
    /// # Errors
    /// [`IoError::Lost`] when a node behind any port is lost.
    pub fn nothing_lost(&self) -> Result<(), OpenError> {
        match self.has_lost_port() {
            true => Err(OpenError::Io(IoError::Lost)),
            false => Ok(()),
        }
    }

    /// The number of the member behind a port in its set; `None` where the stack was built without
    /// numbers.
    pub fn member_number(&self, port: Port) -> Option<u16> {
        self.router.node(self.node).ports[usize::from(port.0)].member
    }

    /// Ends a command.
    pub fn answer_command(&mut self, id: CommandId, result: Result<(), CommandError>) {
        self.router.end_command(id, result);
    }

    /// Says how far a command has come, in blocks.
    pub fn tell_progress(&mut self, id: CommandId, done: u64, total: u64) {
        let state = CommandState::Progress { done, total };
        let reply = CommandReply { id, state };
        self.router.command_replies.push_back(Said { reply, waits: false });
    }

    /// Has the count of the labels move before the next answer goes out: that of a request of the host,
    /// or of a command that may have changed something. Answers wait from now on until the new mark is
    /// durable on all disks that take part; layers go on meanwhile. A disk that is lost takes no part,
    /// and one whose label cannot be written is [lost](Self::fail). A move that is asked for while one
    /// is under way follows it. Nothing is done where the disks have no labels, and in a stack that is
    /// only read.
    pub fn move_mark(&mut self) {
        self.router.move_mark();
    }

    /// Says whether the disks below a port take no part in moves of the count, from the next one on: their
    /// labels stay at the mark at which they were last in, and the others list them so. One layer that
    /// holds a disk out is enough. A new disk in the place of another is not held out.
    pub fn hold_out(&mut self, port: Port, is_out: bool) {
        let node = self.node;
        let disks = self.disks_below(port);
        let holds = &mut self.router.marks.holds;
        holds.retain(|hold| (hold.node, hold.port) != (node, port));
        if is_out {
            holds.extend(disks.into_iter().map(|disk| Hold { node, port, disk }));
        }
    }

    /// The mark that the set of the disks has come to; `None` where they have no labels. While the count
    /// moves it is the one before.
    pub fn mark(&self) -> Option<Mark> {
        self.labels()?.mark()
    }

    /// The oldest mark at which a disk below a port was last in, as the start found it, before it moved
    /// the count. Count 0: the disk is new. `None` where none has a label, where none was there, and when
    /// the set was made.
    pub fn member_mark(&self, port: Port) -> Option<Mark> {
        let labels = self.labels()?;
        let disks = self.disks_below(port).into_iter();
        disks.filter_map(|disk| labels.mark_found(usize::from(disk.0))).min()
    }

    /// True when the start found a disk below a port that had an older mark than the set had come to, or
    /// had never been in; and from when a new disk has taken the place of a lost one there.
    pub fn was_away(&self, port: Port) -> bool {
        let Some(labels) = self.labels() else {
            return false;
        };
        self.disks_below(port).into_iter().any(|disk| labels.was_away(usize::from(disk.0)))
    }

    /// The disks below a port are lost from now on, as by the command [`Fail`](CommandKind::Fail). The
    /// layers are told after this event, this one too.
    pub fn fail(&mut self, port: Port) {
        for disk in self.disks_below(port) {
            self.router.fail(disk);
        }
    }

    /// A disk behind any port that takes longer than this for its label is lost.
    pub fn wait_for_labels_at_most(&mut self, at_most: Duration) {
        let ports = self.router.node(self.node).ports.len() as u8;
        let disks = (0..ports).flat_map(|port| self.disks_below(Port(port)));
        for disk in disks.collect::<Vec<_>>() {
            let patience = self.router.marks.patience.entry(disk).or_insert(at_most);
            *patience = at_most.min(*patience);
        }
    }

    fn labels(&self) -> Option<&Labels> {
        self.router.marks.running.as_deref().map(|running| &running.labels)
    }

    fn disks_below(&self, port: Port) -> Vec<DiskId> {
        let below = self.router.node(self.node).ports[usize::from(port.0)].below;
        self.router.disks_below(below)
    }

    /// Says that something has happened which a person must know.
    pub fn notice(&mut self, notice: Notice) {
        self.router.notices.push(self.node, notice);
    }

    /// Asks to be woken at `instant`, instead of at any instant asked for before.
    #[inline]
    pub fn wake_at(&mut self, instant: Instant) {
        self.router.wakes.set(usize::from(self.node.0), Some(instant));
    }

    /// Asks not to be woken.
    #[inline]
    pub fn cancel_wake(&mut self) {
        self.router.wakes.set(usize::from(self.node.0), None);
    }

    /// Operations of this layer that are in flight behind a port.
    #[inline]
    pub fn in_flight(&self, port: Port) -> u32 {
        self.router.node(self.node).ports[usize::from(port.0)].in_flight
    }

    /// How many operations behind a port have ended since the stack was built.
    pub fn ended(&self, port: Port) -> u64 {
        let port = &self.router.node(self.node).ports[usize::from(port.0)];
        port.sent - u64::from(port.in_flight)
    }

    /// True when the host will send no further request: what is done for its sake alone should
    /// come to an end.
    #[inline]
    pub fn host_is_done(&self) -> bool {
        self.router.host.is_done
    }

    /// True when the stack admits no write, so that nothing is worth moving: a layer begins no work
    /// of its own once it is up, and keeps no copy of what is read.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.router.is_read_only
    }

    /// This layer's stream of random numbers.
    #[inline]
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.router.node_mut(self.node).rng
    }

    /// Adds to a counter of this layer.
    #[inline]
    pub fn count(&mut self, counter: Counter, amount: u64) {
        self.router.node_mut(self.node).counts.add(counter, amount);
    }

    /// Sets a gauge of this layer.
    #[inline]
    pub fn gauge(&mut self, gauge: Gauge, value: u64) {
        self.router.node_mut(self.node).counts.set(gauge, value);
    }

    /// Sets a gauge of this layer that tells the longest time, if it was less.
    #[inline]
    pub fn gauge_longest(&mut self, gauge: Gauge, time: Duration) {
        self.router.node_mut(self.node).counts.raise(gauge, time.0);
    }

    /// This layer does something from now on that requests of the host may feel. It says so once, and once when
    /// it [has ended](Self::end_activity).
    pub fn begin_activity(&mut self, activity: Activity) {
        self.router.activities.begin(activity);
    }

    /// This layer does it no more.
    pub fn end_activity(&mut self, activity: Activity) {
        self.router.activities.end(activity);
    }

    /// A buffer of its own, its content unspecified.
    #[inline]
    pub fn allocate(&mut self, blocks: BlockCount) -> BufferSlice {
        self.buffers.allocate(blocks.0)
    }

    /// Gives back a buffer from [`allocate`](Self::allocate). Panics while an operation holds it.
    #[inline]
    pub fn release(&mut self, buffer: BufferSlice) {
        self.buffers.release(buffer);
    }

    /// Copies the data of one buffer to another. Panics while a disk may change the first, or holds the
    /// second: who has a write may copy its data while another disk writes the same.
    pub fn copy(&mut self, from: BufferSlice, to: BufferSlice) {
        if self.buffers.is_at_disk(from) {
            self.router.assert_unchanged_by_disk(from);
        }
        self.assert_not_at_disk(to);
        self.buffers.copy(from, to);
    }

    /// Adds the data of one buffer into another without carry. Panics while a disk holds
    /// either.
    pub fn xor(&mut self, from: BufferSlice, to: BufferSlice) {
        self.assert_not_at_disk(from);
        self.assert_not_at_disk(to);
        self.buffers.xor(from, to);
    }

    /// Fills a buffer with zeroes. Panics while a disk holds it.
    pub fn zero(&mut self, slice: BufferSlice) {
        self.assert_not_at_disk(slice);
        self.buffers.zero(slice);
    }

    /// Puts a metadata record at the start of a slice and zeroes after it. Records are bytes in
    /// every kind of buffer but a counted one; a stamped buffer keeps their checksum. Panics while
    /// a disk holds the buffer or when the record does not fit.
    pub fn fill_metadata(&mut self, slice: BufferSlice, record: &[u8]) {
        self.assert_not_at_disk(slice);
        self.buffers.fill_metadata(slice, record);
    }

    /// Puts the report of a disk at the start of a whole buffer and zeroes after it. Who has asked for it reads it with
    /// [`metadata`](Self::metadata), whatever buffers hold otherwise. Panics while a disk holds the buffer or when the
    /// report does not fit.
    pub fn fill_report(&mut self, buffer: BufferSlice, report: &[u8]) {
        self.assert_not_at_disk(buffer);
        self.buffers.fill_report(buffer, report);
    }

    /// The bytes of a slice that holds metadata; `None` when the buffers hold no bytes. Panics
    /// while a disk holds the buffer.
    pub fn metadata(&self, slice: BufferSlice) -> Option<&[u8]> {
        self.assert_not_at_disk(slice);
        self.buffers.bytes(slice)
    }

    /// True when this bug is planted; never outside tests and the crash search.
    #[inline]
    pub fn is_planted(&self, bug: PlantedBug) -> bool {
        self.router.is_planted(bug)
    }

    /// One checksum per block of a slice, appended to `out`.
    pub fn checksum(&self, slice: BufferSlice, out: &mut Vec<u32>) {
        self.buffers.checksum(slice, out);
    }

    #[inline]
    fn assert_not_at_disk(&self, slice: BufferSlice) {
        if self.buffers.is_at_disk(slice) {
            self.router.assert_not_at_disk(slice);
        }
    }
}
