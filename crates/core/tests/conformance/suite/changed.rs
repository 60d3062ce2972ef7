//! Blocks of a disk that change while nobody looks, below a layer that has checksums of them.

use super::Rng;
use super::{Case, Kind, MayFail, SET, Start, Stop, Up, World, guarded, in_words, workload, world};
use imbrex_core::buffer::Buffers;
use imbrex_core::command::{Command, CommandId, CommandKind, CommandReply, CommandState};
use imbrex_core::engine::{CommandArrival, Frontend};
use imbrex_core::notice::Notice;
use imbrex_core::operation::Completion;
use imbrex_core::stack::{Arrival, NodeId};
use imbrex_core::units::Instant;

/// A host that asks for a scrub and does nothing else.
struct Scrubbing {
    node: NodeId,
    is_asked: bool,
    is_over: bool,
    /// Blocks that were wrong, of these those that were made right, and those that nobody can give.
    found: Option<[u64; 3]>,
    refusal: Option<String>,
}

impl Frontend for Scrubbing {
    fn next_arrival(&self) -> Option<Instant> {
        None
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        None
    }

    fn reply(&mut self, _now: Instant, _completion: Completion, _buffers: &mut Buffers) {}

    fn finished(&self) -> bool {
        self.is_over
    }

    fn next_command(&self) -> Option<Instant> {
        (!self.is_asked).then_some(Instant::ZERO)
    }

    fn poll_command(&mut self, _now: Instant) -> Option<CommandArrival> {
        let is_first = !std::mem::replace(&mut self.is_asked, true);
        let command = Command { id: CommandId(1), kind: CommandKind::Scrub(None) };
        is_first.then_some(CommandArrival::Command { node: self.node, command })
    }

    fn reply_to_command(&mut self, _now: Instant, reply: CommandReply) {
        if let CommandState::Ended(result) = reply.state {
            self.is_over = true;
            self.refusal = result.err().map(|error| error.to_string());
        }
    }

    fn notice(&mut self, _now: Instant, _node: NodeId, notice: Notice) {
        if let Notice::ScrubEnded { wrong, repaired, unreadable } = notice {
            self.found = Some([wrong, repaired, unreadable]);
        }
    }
}

impl World<'_> {
    /// Has all rows compared. Returns how many blocks were wrong, made right, and unreadable.
    fn scrub(&mut self, up: &mut Up) -> Result<[u64; 3], Stop> {
        let mut host = Scrubbing {
            node: up.node,
            is_asked: false,
            is_over: false,
            found: None,
            refusal: None,
        };
        guarded(|| up.engine.run(&mut up.clock, &mut host, &mut |_, _| {}))?;
        match host.refusal {
            Some(words) => Err(Stop::Mistake(format!("the scrub: {words}"))),
            None => host.found.ok_or(Stop::Mistake("a scrub tells nothing".into())),
        }
    }

    /// Changes some of the blocks of a disk that have checksums, and of the tables where there is a copy of them.
    /// Returns how many.
    fn change_some(&mut self, port: usize, have_copies: bool) -> u64 {
        let mut rng = Rng::new(self.case.seed, 80 + port as u64);
        let of_port = self.kind.checked_from.as_ref().expect("a layer with checksums")[port];
        let first = if have_copies { of_port.0 } else { of_port.1 };
        let written: Vec<u64> = self.media[port].blocks.range(first..).map(|(at, _)| *at).collect();
        let changed: Vec<u64> = written.into_iter().filter(|_| rng.below(3) == 0).collect();
        changed.iter().for_each(|block| self.media[port].flip(*block));
        changed.len() as u64
    }

    /// Changes blocks of a disk while nobody looks: all is read as it was written. After a scrub another disk may be
    /// lost, and all is read still. Returns how many blocks were changed, and found by the scrub.
    fn run_with_changed_blocks(&mut self, port: usize, then: usize) -> Result<[u64; 2], Stop> {
        let mut up = self.format()?;
        self.serve(&mut up)?;
        self.cut(up);
        let mut up = self.reopen()?;
        let asks = workload::asks(self.case.seed + 4, self.case.asks, &up.above);
        let look = workload::look(&up.above);
        self.play(&mut up, look, 4, MayFail::Nothing, true)?;
        self.play(&mut up, asks, self.case.depth, MayFail::Nothing, false)?;
        if self.close(&mut up)? {
            self.oracle.close();
        }
        self.cut(up);
        let changed = self.change_some(port, true);
        let mut up = self.reopen()?;
        let asks = workload::asks(self.case.seed + 5, self.case.asks, &up.above);
        let look = workload::look(&up.above);
        // Reads make right what they come by, and a scrub all the rest.
        if self.case.seed.is_multiple_of(2) {
            self.play(&mut up, look.clone(), 4, MayFail::Nothing, false)?;
            self.play(&mut up, asks, self.case.depth, MayFail::Nothing, false)?;
        }
        let [wrong, repaired, unreadable] = self.scrub(&mut up)?;
        if unreadable > 0 || wrong != repaired {
            let words = format!("{wrong} wrong, {repaired} made right, {unreadable} unreadable");
            return Err(Stop::Mistake(words));
        }
        match self.scrub(&mut up)? {
            [0, 0, 0] => {}
            found => return Err(Stop::Mistake(format!("a second scrub finds {found:?}"))),
        }
        self.play(&mut up, look, 4, MayFail::Nothing, false)?;
        self.check_quiet(&up)?;
        if self.case.closes && self.close(&mut up)? {
            self.oracle.close();
        }
        self.cut(up);
        self.read_without(then)?;
        Ok([changed, wrong])
    }
}

impl World<'_> {
    /// Changes blocks of a disk while another one is away. When that is back, what needs both cannot be read, and
    /// everything else is right. Written again, all can be read.
    fn run_with_changed_blocks_without(&mut self, away: usize, port: usize) -> Result<(), Stop> {
        let mut up = self.format()?;
        self.serve(&mut up)?;
        if self.close(&mut up)? {
            self.oracle.close();
        }
        self.cut(up);
        // Of what was being written when the power went, what is there is believed.
        self.case.closes = true;
        self.serve_without(away, Start::Recover(Some(SET)))?;
        self.change_some(port, false);
        let mut up = self.reopen()?;
        // Errors are answers like others until everything is written again.
        self.witness.borrow_mut().failures += 1;
        let look = workload::look(&up.above);
        self.play(&mut up, look.clone(), 4, MayFail::Anything, true)?;
        self.play(&mut up, look.clone(), 4, MayFail::Anything, false)?;
        self.expect(None);
        let fill = workload::fill(&up.above);
        self.play(&mut up, fill, self.case.depth, MayFail::Nothing, false)?;
        self.play(&mut up, look.clone(), 4, MayFail::Nothing, false)?;
        let [_, _, unreadable] = self.scrub(&mut up)?;
        let again = self.scrub(&mut up)?;
        if again != [0, 0, 0] {
            return Err(Stop::Mistake(format!(
                "a second scrub finds {again:?}, {unreadable} before"
            )));
        }
        self.play(&mut up, look, 4, MayFail::Nothing, false)?;
        self.check_quiet(&up)?;
        if self.close(&mut up)? {
            self.oracle.close();
        }
        self.cut(up);
        self.read_without(away)
    }
}

/// Plays one run in which blocks of a disk are changed while another one is away.
///
/// # Errors
/// The first rule that was broken.
pub fn change_blocks_without(
    kind: &Kind,
    case: Case,
    away: usize,
    port: usize,
) -> Result<(), String> {
    let played = world(kind, case).run_with_changed_blocks_without(away, port);
    played.map_err(|stop| {
        format!("without {away}, blocks of port {port} changed: {}", in_words(case, stop))
    })
}

/// Plays one run in which blocks of a disk are changed, and another disk is lost then. Returns how many were changed,
/// and how many of them a scrub has found.
///
/// # Errors
/// The first rule that was broken.
pub fn change_blocks(
    kind: &Kind,
    case: Case,
    port: usize,
    then: usize,
) -> Result<[u64; 2], String> {
    let changed = world(kind, case).run_with_changed_blocks(port, then);
    changed.map_err(|stop| format!("blocks of port {port} changed: {}", in_words(case, stop)))
}
