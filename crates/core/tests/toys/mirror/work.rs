//! What the mirror does of its own: it compares its ports, and copies one over the other.

use super::{Flaw, Key, Life, Mirror, PORTS, Side, Token, WORK_BIT, behind_area};
use imbrex_core::buffer::BufferSlice;
use imbrex_core::command::{CommandError, CommandId, Rate};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue};
use imbrex_core::ledger::{CopyState, When};
use imbrex_core::lifecycle::OpenError;
use imbrex_core::operation::{Cause, Operation, Tag};
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};

/// Blocks that are copied at once.
pub const RUN_BLOCKS: u64 = 8;
/// Blocks that are rebuilt between two records of it.
const RECORDED_EVERY: u64 = 4 * RUN_BLOCKS;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// After a crash, before the first request.
    Comparison,
    Rebuild,
    Scrub,
    /// Everything is flushed before the device goes down.
    LastFlush,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Waits for its lock, or for an alarm.
    Waiting,
    Reading,
    Writing,
    /// The port that is rebuilt, before progress is recorded.
    Flushing,
    /// Both ports, when all is copied.
    LastFlush,
    /// The ledger makes the end durable.
    Recording,
}

/// Work under way: from one port to the other, run after run.
pub(super) struct Work {
    kind: Kind,
    from: usize,
    to: usize,
    /// Blocks before it are done.
    next: u64,
    end: u64,
    rate: Option<Rate>,
    /// Who has asked for it.
    commands: Vec<CommandId>,
    step: Step,
    run: Extent,
    /// The run on each port.
    buffers: Option<[BufferSlice; 2]>,
    outstanding: u32,
    /// The next run begins no earlier.
    not_before: Instant,
    is_paused: bool,
    /// Why it does not go on.
    stopped: Option<&'static str>,
}

impl Work {
    fn new(kind: Kind, from: usize, next: u64, end: u64) -> Work {
        Work {
            kind,
            from,
            to: 1 - from,
            next,
            end,
            rate: None,
            commands: Vec::new(),
            step: Step::Waiting,
            run: Extent::EMPTY,
            buffers: None,
            outstanding: 0,
            not_before: Instant::ZERO,
            is_paused: false,
            stopped: None,
        }
    }

    /// After a crash: what both ports have is made the same.
    pub fn comparison(sides: &[Side; 2]) -> Work {
        let from = usize::from(sides[0].recorded < sides[1].recorded);
        let both_have = sides[0].recorded.min(sides[1].recorded);
        Work::new(Kind::Comparison, from, 0, both_have)
    }

    pub fn paused_until(&self) -> Option<Instant> {
        self.is_paused.then_some(self.not_before)
    }

    /// True while it becomes durable that a port has everything.
    pub fn is_recording_of(&self, port: usize) -> bool {
        self.kind == Kind::Rebuild && self.step == Step::Recording && self.to == port
    }

    fn cause(&self) -> Cause {
        match self.kind {
            Kind::Rebuild => Cause::Rebuild,
            _ => Cause::Scrub,
        }
    }
}

impl Mirror {
    /// Says that the mirror is up, if nothing is to be done before.
    pub(super) fn opened_when_same(&mut self, ctx: &mut Context<'_>) {
        if self.life != Life::Opening || self.work.is_some() || self.losses > 0 {
            return;
        }
        match (0..2).any(|port| self.is_whole(port)) {
            true => {
                self.life = Life::Up;
                ctx.opened(Ok(()));
            }
            false => ctx.opened(Err(OpenError::Io(IoError::Lost))),
        }
    }

    pub(super) fn rebuild(&mut self, id: CommandId, rate: Option<Rate>, ctx: &mut Context<'_>) {
        let lacking = (0..2).find(|port| !self.is_whole(*port));
        match lacking {
            None if !self.is_busy_with(Kind::Rebuild) => ctx.answer_command(id, Ok(())),
            Some(port) if !self.sides[port].is_in => {
                let words = format!("port {port} is out; its disk must be replaced first");
                ctx.answer_command(id, Err(CommandError::NotNow(words)));
            }
            lacking => {
                let to = lacking.unwrap_or(0);
                let has = self.sides[to].recorded;
                self.begin_work(Kind::Rebuild, 1 - to, has, id, rate, ctx);
            }
        }
    }

    pub(super) fn scrub(&mut self, id: CommandId, rate: Option<Rate>, ctx: &mut Context<'_>) {
        if (0..2).any(|port| !self.is_whole(port)) {
            let words = "a port lacks data; it must be rebuilt first".to_string();
            return ctx.answer_command(id, Err(CommandError::NotNow(words)));
        }
        self.begin_work(Kind::Scrub, 0, 0, id, rate, ctx);
    }

    fn is_busy_with(&self, kind: Kind) -> bool {
        self.work.as_ref().is_some_and(|work| work.kind == kind)
    }

    /// Begins work, or joins what is under way.
    fn begin_work(
        &mut self,
        kind: Kind,
        from: usize,
        next: u64,
        id: CommandId,
        rate: Option<Rate>,
        ctx: &mut Context<'_>,
    ) {
        match &mut self.work {
            Some(work) if work.kind == kind && work.stopped.is_none() => {
                work.commands.push(id);
                work.rate = rate;
            }
            Some(_) => {
                let words = "the mirror is busy with another command; try again later".to_string();
                ctx.answer_command(id, Err(CommandError::NotNow(words)));
            }
            None => {
                let mut work = Work::new(kind, from, next, self.blocks);
                work.commands.push(id);
                work.rate = rate;
                self.work = Some(work);
                self.begin_run(ctx);
            }
        }
    }

    /// Begins the next run, or what comes after the last.
    pub(super) fn begin_run(&mut self, ctx: &mut Context<'_>) {
        let Some(work) = &mut self.work else { return };
        work.is_paused = false;
        if work.next >= work.end {
            return self.flush_ports(Step::LastFlush, ctx);
        }
        work.step = Step::Waiting;
        work.run = Extent::new(work.next, RUN_BLOCKS.min(work.end - work.next));
        if let Some(rate) = work.rate {
            let ns = u128::from(work.run.blocks.0 * BLOCK_BYTES) * 1_000_000_000;
            let ns = ns / u128::from(rate.bytes_per_s.max(1));
            work.not_before = ctx.now() + Duration(ns as u64);
        }
        let run = work.run;
        if work.kind == Kind::Rebuild {
            let to = work.to;
            self.sides[to].has = self.sides[to].has.max(run.end().0);
        }
        if self.flaw == Flaw::RebuildWithoutLock || self.locks.lock(Key::Run, run) {
            self.read_run(ctx);
        }
    }

    /// The run is locked: it is read, from both ports where they are compared.
    pub(super) fn read_run(&mut self, ctx: &mut Context<'_>) {
        let work = self.work.as_mut().expect("work waits for a lock");
        if work.stopped.is_some() {
            return self.leave_run(ctx);
        }
        let blocks = work.run.blocks;
        work.step = Step::Reading;
        work.buffers = Some([ctx.allocate(blocks), ctx.allocate(blocks)]);
        let from = work.from;
        let is_compared = work.kind != Kind::Rebuild;
        self.issue_run(from, Operation::Read, ctx);
        if is_compared {
            self.issue_run(1 - from, Operation::Read, ctx);
        }
    }

    fn issue_run(&mut self, port: usize, operation: Operation, ctx: &mut Context<'_>) {
        let work = self.work.as_mut().expect("work");
        work.outstanding += 1;
        let source = match operation {
            Operation::Read => port,
            _ => work.from,
        };
        let (extent, buffer) = match operation {
            Operation::Flush => (Extent::EMPTY, BufferSlice::EMPTY),
            _ => {
                let buffers = work.buffers.expect("buffers of a run");
                (behind_area(work.run), buffers[source])
            }
        };
        ctx.issue(Issue {
            port: PORTS[port],
            operation,
            extent,
            buffer,
            cause: work.cause(),
            tag: Tag(WORK_BIT | port as u64),
        });
    }

    fn flush_ports(&mut self, step: Step, ctx: &mut Context<'_>) {
        let work = self.work.as_mut().expect("work");
        work.step = step;
        let to = work.to;
        for port in 0..2 {
            if self.sides[port].is_in && (step == Step::LastFlush || port == to) {
                self.issue_run(port, Operation::Flush, ctx);
            }
        }
    }

    /// An operation of the work has ended.
    pub(super) fn work_done(
        &mut self,
        port: usize,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let work = self.work.as_mut().expect("work");
        work.outstanding -= 1;
        let is_read = work.step == Step::Reading;
        if result.is_err() {
            work.stopped.get_or_insert("a block could not be read or written");
            if !is_read || self.life == Life::Opening {
                self.put_out(port, ctx);
            }
        }
        let work = self.work.as_mut().expect("work");
        if work.outstanding > 0 {
            return;
        }
        if work.stopped.is_some() {
            return self.leave_run(ctx);
        }
        match work.step {
            Step::Reading => self.compare_run(ctx),
            Step::Writing => self.run_copied(ctx),
            Step::Flushing => {
                let (to, next) = (work.to, work.next);
                self.record_progress(to, next, ctx);
                self.pause(ctx);
            }
            Step::LastFlush => self.record_end(ctx),
            Step::Waiting | Step::Recording => unreachable!("nothing is in flight"),
        }
    }

    fn compare_run(&mut self, ctx: &mut Context<'_>) {
        let work = self.work.as_mut().expect("work");
        if work.kind != Kind::Rebuild {
            let sums = work.buffers.expect("buffers of a run").map(|buffer| {
                let mut sums = Vec::new();
                ctx.checksum(buffer, &mut sums);
                sums
            });
            let differ = |(one, other): &(&u32, &u32)| one != other;
            let differing = sums[0].iter().zip(&sums[1]).filter(differ).count();
            self.differing += differing as u64;
            if differing == 0 {
                return self.run_copied(ctx);
            }
        }
        work.step = Step::Writing;
        let to = work.to;
        self.issue_run(to, Operation::WRITE, ctx);
    }

    /// The run is the same on both ports.
    fn run_copied(&mut self, ctx: &mut Context<'_>) {
        self.release_run(ctx);
        let work = self.work.as_mut().expect("work");
        work.next = work.run.end().0;
        for id in &work.commands {
            ctx.tell_progress(*id, work.next, work.end);
        }
        let (to, next, is_last) = (work.to, work.next, work.next == work.end);
        let is_rebuild = work.kind == Kind::Rebuild;
        let unrecorded = next - self.sides[to].recorded.min(next);
        match is_rebuild && !is_last && unrecorded >= RECORDED_EVERY && self.ledger.has_room() {
            true => self.flush_ports(Step::Flushing, ctx),
            false => self.pause(ctx),
        }
    }

    /// Gives back what a run holds.
    fn release_run(&mut self, ctx: &mut Context<'_>) {
        let work = self.work.as_mut().expect("work");
        if let Some(buffers) = work.buffers.take() {
            for buffer in buffers {
                ctx.release(buffer);
            }
        }
        self.unlock(Key::Run);
    }

    /// The next run begins when the rate allows it.
    fn pause(&mut self, ctx: &mut Context<'_>) {
        let work = self.work.as_mut().expect("work");
        if work.rate.is_some() && work.next < work.end && work.not_before > ctx.now() {
            work.step = Step::Waiting;
            work.is_paused = true;
        } else {
            self.begin_run(ctx);
        }
    }

    /// An alarm has gone off.
    pub(super) fn go_on(&mut self, ctx: &mut Context<'_>) {
        let pause = self.work.as_ref().and_then(Work::paused_until);
        if pause.is_some_and(|until| until <= ctx.now()) {
            self.begin_run(ctx);
        }
    }

    /// Everything is copied and durable on both ports.
    fn record_end(&mut self, ctx: &mut Context<'_>) {
        let work = self.work.as_mut().expect("work");
        work.step = Step::Recording;
        if work.kind != Kind::Rebuild {
            return self.end_work(Ok(()), ctx);
        }
        let (from, to, end) = (work.from, work.to, work.end);
        self.record_progress(to, end, ctx);
        if self.ledger.answer_when_flushed(PORTS[from], Token::Work, ctx) == When::Now {
            self.end_work(Ok(()), ctx);
        }
    }

    /// Answers all who have asked for the work.
    pub(super) fn end_work(&mut self, result: Result<(), CommandError>, ctx: &mut Context<'_>) {
        let Some(work) = self.work.take() else { return };
        for id in work.commands {
            ctx.answer_command(id, result.clone());
        }
        match work.kind {
            Kind::LastFlush => match result {
                Ok(()) => self.ledger.close(self.map(), ctx),
                Err(_) => self.ledger.fail(IoError::Medium),
            },
            _ => self.opened_when_same(ctx),
        }
    }

    /// The work does not go on; it ends when nothing of it is in flight.
    pub(super) fn stop_work(&mut self, why: &'static str, ctx: &mut Context<'_>) {
        let Some(work) = &mut self.work else { return };
        work.stopped.get_or_insert(why);
        if std::mem::take(&mut work.is_paused) {
            self.leave_run(ctx);
        }
    }

    /// What would be recorded of the work never will be.
    pub(super) fn leave_recording(&mut self, ctx: &mut Context<'_>) {
        if self.work.as_ref().is_some_and(|work| work.step == Step::Recording) {
            self.leave_run(ctx);
        }
    }

    /// The end of the work is durable.
    pub(super) fn end_recorded(&mut self, ctx: &mut Context<'_>) {
        match self.work.as_ref().is_some_and(|work| work.stopped.is_some()) {
            true => self.leave_run(ctx),
            false => self.end_work(Ok(()), ctx),
        }
    }

    fn leave_run(&mut self, ctx: &mut Context<'_>) {
        let work = self.work.as_ref().expect("work");
        let words = format!("it has stopped: {}", work.stopped.unwrap_or("no cause"));
        let last = work.kind == Kind::LastFlush;
        self.release_run(ctx);
        // Whatever has come down is on the port that is left.
        let result = match last && self.life != Life::Lost && self.in_ports() > 0 {
            true => Ok(()),
            false => Err(CommandError::Failed(words)),
        };
        self.end_work(result, ctx);
    }

    /// Before the device goes down, what it has written is made durable on every port.
    pub(super) fn close_when_flushed(&mut self, ctx: &mut Context<'_>) {
        self.life = Life::Closing;
        self.work = Some(Work::new(Kind::LastFlush, 0, 0, 0));
        self.flush_ports(Step::LastFlush, ctx);
    }

    /// A blank disk is behind a port again, under a new number.
    pub(super) fn admit(&mut self, port: usize, command: CommandId, ctx: &mut Context<'_>) {
        if self.life != Life::Up || self.sides[port].is_in || !self.is_whole(1 - port) {
            let words = format!("port {port} is not out, or the other one has not all data");
            return ctx.answer_command(command, Err(CommandError::NotNow(words)));
        }
        self.record_progress(port, 0, ctx);
        self.admitting = Some((port, command));
        if self.flaw == Flaw::ReplacedBeforeRecorded {
            ctx.answer_command(command, Ok(()));
        }
        self.ledger.admit_copy(PORTS[port], self.map(), ctx);
    }

    /// A disk is lost, perhaps one that is being taken in.
    pub(super) fn lose_new_disk(&mut self, port: usize, ctx: &mut Context<'_>) {
        if self.admitting.is_some_and(|(of, _)| of == port) {
            self.ledger.lose_copy(PORTS[port], ctx);
            self.refuse_admission(port, ctx);
        }
    }

    /// A new disk was not taken, or is lost already.
    pub(super) fn refuse_admission(&mut self, port: usize, ctx: &mut Context<'_>) {
        if let Some((_, command)) = self.admitting.take_if(|(of, _)| *of == port) {
            let words = format!("the new disk of port {port} could not be taken");
            ctx.answer_command(command, Err(CommandError::Failed(words)));
        }
    }

    /// The ledger has a copy on the new disk, and every copy lists it.
    pub(super) fn admitted(&mut self, port: usize, ctx: &mut Context<'_>) {
        let Some((_, command)) = self.admitting.take() else {
            return;
        };
        self.sides[port] = Side {
            is_in: self.ledger.copy_state(PORTS[port]) == CopyState::In,
            has: 0,
            recorded: 0,
        };
        if self.flaw != Flaw::ReplacedBeforeRecorded {
            ctx.answer_command(command, Ok(()));
        }
    }
}
