//! What an array keeps over restarts of who its members are, and the answers that wait for that.
//!
//! The journal has a copy behind several ports. That a member is out is recorded durably before the next
//! answer goes out, so that no start takes it for one that has everything.

use super::member_record::{MemberRecord, RECORD_MEMBER};
use super::members::{Members, State};
use crate::command::{CommandError, CommandId};
use crate::durability::{DurabilitySettings, JournalSettings, Replayed};
use crate::error::IoError;
use crate::layer::{Context, Port};
use crate::ledger::{CopyState, Ledger, When};
use crate::lifecycle::OpenError;
use crate::map::Slab;
use crate::operation::RequestId;
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use crate::units::Instant;
use alloc::format;
use alloc::vec::Vec;

/// What waits for the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Token {
    /// An answer, by its number.
    Answer(u32),
    /// That a new disk is in.
    Replaced(CommandId),
    /// What the layer has chosen.
    Layer(u64),
}

/// How far the life of an array has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Life {
    /// It comes up.
    Opening,
    /// It is up.
    Up,
    /// What is under way comes to its end.
    Draining,
    /// The last flush, and the last words of the ledger.
    Closing,
    /// Something cannot be found any more, and nothing is served.
    Lost,
}

/// A disk that is being taken in.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Admission {
    port: Port,
    /// Who waits for it; nobody where a member has come back.
    command: Option<CommandId>,
}

/// Who the members are, as the ledger has it.
#[derive(Debug, Saved)]
pub struct Keeper {
    pub ledger: Ledger<Token>,
    /// Ports behind which there is a copy of the journal.
    copies: Vec<Port>,
    pub life: Life,
    /// By column what was recorded last.
    recorded: Vec<MemberRecord>,
    /// Answers that wait for the ledger.
    answers: Slab<(RequestId, Result<(), IoError>)>,
    admission: Option<Admission>,
    mark_alarm: Option<Instant>,
}

impl Keeper {
    /// One that keeps nothing.
    pub fn volatile() -> Keeper {
        Keeper::with(Ledger::volatile(), Vec::new())
    }

    /// One that keeps a journal with such copies.
    pub fn journaled(copies: &[JournalSettings], durability: DurabilitySettings) -> Keeper {
        let ports = copies.iter().map(|copy| copy.port).collect();
        Keeper::with(Ledger::mirrored(copies, durability, &[]), ports)
    }

    fn with(ledger: Ledger<Token>, copies: Vec<Port>) -> Keeper {
        Keeper {
            ledger,
            copies,
            life: Life::Opening,
            recorded: Vec::new(),
            answers: Slab::default(),
            admission: None,
            mark_alarm: None,
        }
    }

    /// A port whose flushes are those of the journal.
    pub fn journal_port(&self) -> Port {
        self.copies.first().copied().unwrap_or(Port(0))
    }

    /// The ports behind which there is a copy of the journal.
    pub fn copies(&self) -> &[Port] {
        &self.copies
    }

    /// True when the journal has a copy behind a port. A new disk there must be [admitted](Self::admit) to it.
    pub fn has_copy(&self, port: Port) -> bool {
        self.copies.contains(&port)
    }

    /// An array that is made: every member has everything.
    pub fn begin_new(&mut self, members: &Members, ctx: &Context<'_>) {
        let columns = 0..members.columns();
        self.recorded = columns.map(|column| record_of(column, members, ctx)).collect();
    }

    /// Adds who the members are to the bytes of a checkpoint.
    pub fn put_map(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.recorded.len() as u8);
        self.recorded.iter().for_each(|record| record.put(bytes));
    }

    /// Takes back who the members were from the bytes of a checkpoint. Returns what is behind them.
    ///
    /// # Errors
    /// When they are not those of so many columns.
    pub fn take_map<'a>(&mut self, bytes: &'a [u8], columns: usize) -> Result<&'a [u8], OpenError> {
        let damaged = || OpenError::damaged("checkpoint", "it lists other members than there are");
        let (&found, mut rest) = bytes.split_first().ok_or_else(damaged)?;
        if usize::from(found) != columns {
            let (found, expected) = (u64::from(found), columns as u64);
            return Err(OpenError::Settings { name: "members", found, expected });
        }
        self.recorded.clear();
        for column in 0..columns {
            let (record, behind) = MemberRecord::take(rest).ok_or_else(damaged)?;
            if usize::from(record.column) != column {
                return Err(damaged());
            }
            self.recorded.push(record);
            rest = behind;
        }
        Ok(rest)
    }

    /// Takes back a record of a member. Returns the column where that is out from then on.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn replay(&mut self, record: &Replayed) -> Result<Option<usize>, OpenError> {
        let found = MemberRecord::take(&record.payload).filter(|(_, rest)| rest.is_empty());
        let known = found.filter(|(found, _)| usize::from(found.column) < self.recorded.len());
        let Some((found, _)) = known else {
            return Err(OpenError::damaged("record", "it speaks of a member that is not there"));
        };
        let column = usize::from(found.column);
        self.recorded[column] = found;
        Ok((found.state == State::Out).then_some(column))
    }

    /// True when every member has everything, as it is recorded.
    pub fn all_are_in(&self) -> bool {
        self.recorded.iter().all(|record| record.state == State::In)
    }

    /// True when a column is recorded as out, and had everything before that.
    pub fn may_return(&self, column: usize) -> bool {
        let record = &self.recorded[column];
        record.state == State::Out && !record.is_partial
    }

    /// True when a member is recorded as out.
    pub fn has_out(&self) -> bool {
        self.recorded.iter().any(|record| record.state == State::Out)
    }

    /// No member has everything any more. The copies of the journal on all others are given up, so that none of
    /// them goes on where the one that had everything comes back.
    pub fn lose_all_but_whole(&mut self, ctx: &mut Context<'_>) {
        let is_whole =
            |port: &Port| self.recorded.iter().any(|it| it.port == *port && it.state == State::In);
        let others: Vec<Port> = self.copies.iter().copied().filter(|it| !is_whole(it)).collect();
        for port in others {
            self.lose_copy(port, ctx);
        }
    }

    /// Makes the members what they were when the array went down. All other ports have spares.
    pub fn restore(&self, members: &mut Members) {
        for (column, record) in self.recorded.iter().enumerate() {
            members.set(column, record.port, record.state);
        }
        members.set_spares();
    }

    /// The port of a column has another disk than the one that was recorded.
    pub fn is_another(&self, column: usize, ctx: &Context<'_>) -> bool {
        let record = &self.recorded[column];
        ctx.member_number(record.port).is_some_and(|number| number != record.number)
    }

    /// Records what has changed of who has what. The journal lets no answer out before it has recorded durably
    /// that a copy is gone. Returns the ports of the members that are out since the last call.
    pub fn note(&mut self, members: &Members, ctx: &mut Context<'_>) -> Vec<Port> {
        let mut out = Vec::new();
        for column in 0..members.columns() {
            let now = record_of(column, members, ctx);
            let before = self.recorded[column];
            // How far a rebuild has come is recorded when that is durable.
            let is_same = now.port == before.port
                && match (before.state, now.state) {
                    (State::Rebuilding(_), State::Rebuilding(_)) => true,
                    (State::Returning(_), State::Returning(_)) => true,
                    // It is about to have everything.
                    (State::In, State::Rebuilding(_) | State::Returning(_)) => true,
                    (before, now) => before == now,
                };
            if is_same {
                continue;
            }
            let is_out = now.state == State::Out;
            let has_moved = now.port != before.port;
            // A spare may have stepped in at once: the disk that was there before is out all the same.
            let was_there = before.state != State::Out && (is_out || has_moved);
            let gone = [(before.port, was_there), (now.port, is_out && has_moved)];
            for (port, _) in gone.into_iter().filter(|(_, is_gone)| *is_gone) {
                out.push(port);
                self.lose_copy(port, ctx);
            }
            // The number of a disk that is out is the one that it had.
            let number = if is_out && !has_moved { before.number } else { now.number };
            let is_partial = match before.state {
                _ if has_moved => true,
                State::Out => before.is_partial,
                State::In | State::Returning(_) => false,
                State::Blank | State::Rebuilding(_) => true,
            };
            self.record(MemberRecord { number, is_partial, ..now }, ctx);
        }
        out
    }

    /// A copy of the journal is gone, if there was one.
    pub fn lose_copy(&mut self, port: Port, ctx: &mut Context<'_>) {
        if self.has_copy(port) && self.ledger.copy_state(port) == CopyState::In {
            self.ledger.lose_copy(port, ctx);
        }
    }

    fn record(&mut self, record: MemberRecord, ctx: &mut Context<'_>) {
        self.recorded[usize::from(record.column)] = record;
        if self.ledger.takes_records() {
            let mut payload = Vec::new();
            record.put(&mut payload);
            self.ledger.record(RECORD_MEMBER, &payload, ctx);
        }
    }

    /// Rows of a member that is rebuilt are durable there up to one.
    pub fn record_progress(&mut self, column: usize, row: u64, ctx: &mut Context<'_>) {
        let record = self.recorded[column];
        let state = match record.state {
            State::Rebuilding(_) => State::Rebuilding(row),
            State::Returning(_) => State::Returning(row),
            _ => return,
        };
        self.record(MemberRecord { state, ..record }, ctx);
    }

    /// Records that a member has all of its rows.
    pub fn record_in(&mut self, column: usize, ctx: &mut Context<'_>) {
        let record = MemberRecord { state: State::In, ..self.recorded[column] };
        self.record(record, ctx);
    }

    /// A member has all of its rows, durably. It counts when the token comes back.
    pub fn record_whole(&mut self, column: usize, token: Token, ctx: &mut Context<'_>) -> When {
        self.record_in(column, ctx);
        self.ledger.answer_when_flushed(self.journal_port(), token, ctx)
    }

    /// Answers a request, as soon as nothing has to be recorded first.
    pub fn answer(
        &mut self,
        request: RequestId,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let is_early = ctx.is_planted(PlantedBug::ArrayAnswersBeforeLossRecorded);
        if self.life == Life::Lost || is_early {
            return ctx.finish(request, result);
        }
        let number = self.answers.add((request, result));
        if self.ledger.answer_when_written(Token::Answer(number)) == When::Now {
            self.end_answer(number, ctx);
        }
    }

    /// Answers a request when all that was recorded so far is durable.
    pub fn answer_when_durable(
        &mut self,
        request: RequestId,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        if self.life == Life::Lost {
            return ctx.finish(request, result);
        }
        let number = self.answers.add((request, result));
        let port = self.journal_port();
        if self.ledger.answer_when_flushed(port, Token::Answer(number), ctx) == When::Now {
            self.end_answer(number, ctx);
        }
    }

    /// An answer goes out.
    pub fn end_answer(&mut self, number: u32, ctx: &mut Context<'_>) {
        let (request, result) = self.answers.take(number);
        ctx.finish(request, result);
    }

    /// Nothing can be made durable any more: what waits ends with an error.
    pub fn fail(&mut self, error: IoError, ctx: &mut Context<'_>) {
        let is_ignored = ctx.is_planted(PlantedBug::ArrayLossRecordFailureIgnored);
        while let Some(token) = self.ledger.next_failed() {
            match token {
                Token::Answer(number) => {
                    let (request, result) = self.answers.take(number);
                    ctx.finish(request, if is_ignored { result } else { Err(error) });
                }
                Token::Replaced(command) => {
                    let words = "nothing can be recorded any more".into();
                    ctx.answer_command(command, Err(CommandError::Failed(words)));
                }
                // The layer hears of the failure itself.
                Token::Layer(_) => {}
            }
        }
        self.refuse_admission(None, ctx);
    }

    /// Admits a disk behind a port to the journal; `map` is what a checkpoint would say.
    pub fn admit(
        &mut self,
        port: Port,
        command: Option<CommandId>,
        map: Vec<u8>,
        ctx: &mut Context<'_>,
    ) {
        if self.life != Life::Up || self.admission.is_some() || self.ledger.failure().is_some() {
            if let Some(command) = command {
                let words = "the array is taking in another disk, or cannot record anything; try again later";
                ctx.answer_command(command, Err(CommandError::NotNow(words.into())));
            }
            return;
        }
        self.admission = Some(Admission { port, command });
        if let Some(command) = command
            && ctx.is_planted(PlantedBug::ArrayReplacedBeforeRecorded)
        {
            ctx.answer_command(command, Ok(()));
        }
        match command {
            Some(_) => self.ledger.admit_copy(port, map, ctx),
            None => self.ledger.readmit_copy(port, map, ctx),
        }
    }

    /// True when a disk could be taken in now.
    pub fn can_admit(&self, ctx: &Context<'_>) -> bool {
        self.life == Life::Up
            && !self.is_admitting()
            && !ctx.is_read_only()
            && self.ledger.failure().is_none()
    }

    /// True while a disk is being taken in.
    pub fn is_admitting(&self) -> bool {
        self.admission.is_some()
    }

    /// The journal has a copy behind a port now. Returns who has asked for it.
    pub fn admitted(&mut self, port: Port) -> Option<Option<CommandId>> {
        let admission = self.admission.take_if(|it| it.port == port)?;
        Some(admission.command)
    }

    /// A new disk was recorded: whoever has brought it is told when that is durable.
    pub fn answer_replaced(&mut self, command: CommandId, ctx: &mut Context<'_>) {
        if ctx.is_planted(PlantedBug::ArrayReplacedBeforeRecorded) {
            return;
        }
        let port = self.journal_port();
        let token = Token::Replaced(command);
        if self.ledger.answer_when_flushed(port, token, ctx) == When::Now {
            ctx.answer_command(command, Ok(()));
        }
    }

    /// A disk is not taken in, or none is: that behind a port, or any.
    pub fn refuse_admission(&mut self, port: Option<Port>, ctx: &mut Context<'_>) {
        let is_it = |it: &mut Admission| port.is_none_or(|port| port == it.port);
        let Some(admission) = self.admission.take_if(is_it) else { return };
        // The journal does not go on with it either.
        self.ledger.lose_copy(admission.port, ctx);
        if let Some(command) = admission.command
            && !ctx.is_planted(PlantedBug::ArrayReplacedBeforeRecorded)
        {
            let words = format!("the new disk behind port {} could not be taken", admission.port.0);
            ctx.answer_command(command, Err(CommandError::Failed(words)));
        }
    }

    /// At the end of an event: what was recorded goes out.
    pub fn commit(&mut self, ctx: &mut Context<'_>) {
        self.ledger.commit(ctx);
        self.ledger.begin_flushes(ctx);
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            self.mark_alarm = Some(at);
        }
    }

    /// When the keeper wants to be woken.
    pub fn alarm(&self) -> Option<Instant> {
        self.mark_alarm
    }

    /// The alarm may have gone off.
    pub fn wake(&mut self, ctx: &mut Context<'_>) {
        if self.mark_alarm.is_some_and(|at| at <= ctx.now()) {
            self.mark_alarm = None;
            let has_room = self.ledger.has_spare_room(1);
            self.ledger.mark_if_idle(has_room, ctx);
        }
    }
}

fn record_of(column: usize, members: &Members, ctx: &Context<'_>) -> MemberRecord {
    let port = members.port(column);
    MemberRecord {
        column: column as u8,
        port,
        number: ctx.member_number(port).unwrap_or_default(),
        state: members.state(column),
        is_partial: false,
    }
}
