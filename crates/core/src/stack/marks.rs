//! Marks that move while the stack runs: what waits for them, and the disks that take no part.

use super::{DiskId, Stack};
use crate::buffer::Buffers;
use crate::command::{CommandError, CommandReply, CommandState};
use crate::disk::DiskCompletion;
use crate::error::IoError;
use crate::label::{Labels, Progress, RunningLabels, Surroundings};
use crate::layer::Port;
use crate::operation::Completion;
use crate::router::{Gate, Hold, Router, Said};
use crate::units::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What a command is told that waited for a move which cannot be made.
const NO_MOVE: &str = "the labels of the disks cannot say what has become of them: their count is used \
                       up, or a label does not hold all marks";

impl Stack {
    /// The labels of the disks, if they have some.
    pub fn labels(&self) -> Option<&Labels> {
        self.router.marks.running.as_deref().map(|running| &running.labels)
    }

    /// Takes labels that were compared. The disks that were away take no part in moves where a layer
    /// above decides on that.
    pub(crate) fn take_labels(&mut self, labels: Labels, seed: u64) {
        if labels.is_empty() {
            return;
        }
        let mut holds = Vec::new();
        for node in self.bottom_up() {
            let layer = self.layers[usize::from(node.0)].as_ref();
            if !layer.is_some_and(|layer| layer.holds_away()) {
                continue;
            }
            for (port, state) in (0..).map(Port).zip(&self.router.node(node).ports) {
                let below = self.router.disks_below(state.below).into_iter();
                let away = below.filter(|disk| labels.was_away(usize::from(disk.0)));
                holds.extend(away.map(|disk| Hold { node, port, disk }));
            }
        }
        self.router.marks.holds = holds;
        self.router.marks.running = Some(Box::new(RunningLabels::new(labels, seed)));
    }

    /// The labels, for who moves them while nothing is in flight. [`put_labels`](Self::put_labels) gives
    /// them back.
    pub(crate) fn lend_labels(&mut self) -> Option<Box<RunningLabels>> {
        let mut running = self.router.marks.running.take()?;
        let marks = &self.router.marks;
        running.labels.hold(&|disk| marks.is_held(DiskId(disk as u16)));
        Some(running)
    }

    pub(crate) fn put_labels(&mut self, running: Box<RunningLabels>) {
        self.router.marks.running = Some(running);
    }

    /// True while answers wait for a move of the count.
    #[inline]
    pub fn is_moving_mark(&self) -> bool {
        self.router.marks.gate == Gate::Held
    }

    /// A disk takes the place of a lost one, and has yet to get its label.
    pub(super) fn exchange_label(&mut self, disk: DiskId) {
        let marks = &mut self.router.marks;
        marks.holds.retain(|hold| hold.disk != disk);
        if let Some(running) = &mut marks.running {
            running.labels.exchange(usize::from(disk.0));
        }
    }

    /// The disk has the label of a new one.
    pub(crate) fn replace_label(&mut self, disk: DiskId, number: u16, random: u32, blocks: u64) {
        if let Some(running) = &mut self.router.marks.running {
            running.labels.replace(usize::from(disk.0), number, random, blocks);
        }
    }

    /// Operations on the label of a disk that it has not ended.
    pub(super) fn label_ops_in_flight(&self, disk: DiskId) -> u32 {
        let running = self.router.marks.running.as_ref();
        running.map_or(0, |running| running.in_flight(usize::from(disk.0)) as u32)
    }

    /// Begins the moves that layers have asked for, and goes on with the one that is under way.
    #[cold]
    pub(super) fn tend_marks(&mut self, now: Instant, buffers: &mut Buffers) {
        let Some(mut running) = self.router.marks.running.take() else {
            return;
        };
        self.go_on_with_marks(&mut running, now, buffers);
        let late_at = |router: &Router, running: &RunningLabels| {
            let patience = &router.marks.patience;
            running.late_at(|disk| patience.get(&DiskId(disk as u16)).copied())
        };
        let mut late = late_at(&self.router, &running);
        // A disk that hangs has perhaps nothing else to do, so that no layer would notice.
        while let Some((_, disk)) = late.filter(|(at, _)| *at <= now) {
            self.router.fail(DiskId(disk as u16));
            self.go_on_with_marks(&mut running, now, buffers);
            late = late_at(&self.router, &running);
        }
        self.router.marks.late_at = late.map(|(at, _)| at);
        self.router.marks.running = Some(running);
    }

    fn go_on_with_marks(
        &mut self,
        running: &mut RunningLabels,
        now: Instant,
        buffers: &mut Buffers,
    ) {
        let router = &mut self.router;
        let mut ops = Vec::new();
        let mut around = Surroundings {
            now,
            is_lost: &|disk| router.node(router.node_of(DiskId(disk as u16))).is_lost,
            is_held: &|disk| router.marks.is_held(DiskId(disk as u16)),
            buffers,
            submit: &mut |disk, op| ops.push((DiskId(disk as u16), op)),
        };
        let mut is_wanted = router.marks.is_wanted;
        let gate = loop {
            let progress = match running.is_moving() {
                true => running.go_on(&mut around),
                false if core::mem::take(&mut is_wanted) => running.begin(&mut around),
                false => break Gate::Open,
            };
            match progress {
                Progress::Ended => {}
                Progress::Waits => break Gate::Held,
                Progress::Impossible => break Gate::Failed,
            }
        };
        router.disk_ops.extend(ops);
        let marks = &mut router.marks;
        (marks.gate, marks.is_wanted) = (gate, is_wanted);
    }

    /// A disk has ended an operation on its label. Where that has failed, the disk is lost.
    #[cold]
    pub(super) fn label_op_ended(
        &mut self,
        disk: DiskId,
        completion: DiskCompletion,
        buffers: &mut Buffers,
    ) {
        let node = self.router.node_of(disk);
        let result = match self.router.node(node).is_lost {
            true => Err(IoError::Lost),
            false => completion.result,
        };
        let running = self.router.marks.running.as_mut();
        let running = running.expect("an operation on a label of a stack that has some");
        if running.ended(completion.id, result, buffers) {
            self.router.fail(disk);
        }
    }

    /// The next answer for the host while not all may go out, or none as it is.
    #[cold]
    pub(super) fn poll_reply_at_gate(&mut self) -> Option<Completion> {
        if self.router.marks.gate == Gate::Held {
            return None;
        }
        let Completion { tag, result } = self.router.host.next_answer()?;
        Some(Completion { tag, result: result.and(Err(IoError::Medium)) })
    }

    /// The same of what is said of commands. Questions are answered, and progress is told.
    #[cold]
    pub(super) fn poll_command_reply_at_gate(&mut self) -> Option<CommandReply> {
        let replies = &mut self.router.command_replies;
        if self.router.marks.gate == Gate::Held {
            let next = replies.iter().position(|said| !said.waits)?;
            return replies.remove(next).map(|said| said.reply);
        }
        let Said { mut reply, waits } = replies.pop_front()?;
        if waits && matches!(reply.state, CommandState::Ended(Ok(_))) {
            reply.state = CommandState::Ended(Err(CommandError::Failed(NO_MOVE.into())));
        }
        Some(reply)
    }

    /// A disk that was lost because a layer said so, or because its label cannot be written.
    #[inline]
    pub(crate) fn poll_failed_disk(&mut self) -> Option<DiskId> {
        self.router.failed.pop()
    }
}
