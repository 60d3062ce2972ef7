//! What happens to a served stack that a person must know: lines on standard error, and a command that
//! is run for each.
//!
//! It comes from three places: the layers ([`Notice`]), the stack, which knows of each lost disk, and the
//! files of the disks, which are looked at every [`LOOK_MS`]. Nothing here blocks.

mod command;
mod words;

pub use command::{COMMANDS_RUNNING_MAX, COMMANDS_WAITING_MAX};

use crate::disk::OpenFiles;
use crate::signals::say;
use command::EventCommand;
use imbrex_core::notice::Notice;
use imbrex_core::stack::NodeId;
use imbrex_core::units::{Duration, Instant};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use words::Event;
pub(crate) use words::Names;

/// Between two looks at the files of the disks, and at commands that run.
pub const LOOK_MS: u64 = 2_000;
/// Until commands that run are looked at again when others wait for them.
const LOOK_WHILE_WAITING_MS: u64 = 100;
/// Findings of scrubs that are told in a second; the others are counted.
pub const FINDINGS_PER_S_MAX: u32 = 10;

/// The command that is run for what happens, and what it is told beside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnEvent {
    /// What a shell runs.
    pub command: String,
    /// The name of the stack.
    pub stack: String,
    /// The folder of its image, if it has one.
    pub image: Option<PathBuf>,
}

/// Findings of scrubs in the present second.
#[derive(Default)]
struct Findings {
    began: Option<Instant>,
    told: u32,
    /// Not told since the last one that was.
    left_out: u64,
}

impl Findings {
    /// How many more than one this one stands for; `None` when it is not told.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now >= began + Duration::from_ms(1_000)) {
            (self.began, self.told) = (Some(now), 0);
        }
        if self.told == FINDINGS_PER_S_MAX {
            self.left_out += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Tells a person what happens.
pub(crate) struct Events {
    names: Names,
    files: OpenFiles,
    command: Option<EventCommand>,
    findings: Findings,
    look_at: Instant,
    write: Box<dyn FnMut(&str)>,
}

/// Several tell of what happens.
pub(crate) type SharedEvents = Rc<RefCell<Events>>;

impl Events {
    /// Events of nodes and files, on standard error.
    pub fn new(names: Names, files: OpenFiles, on_event: Option<OnEvent>) -> Events {
        Events {
            names,
            files,
            command: on_event.map(EventCommand::new),
            findings: Findings::default(),
            look_at: Instant::ZERO,
            write: Box::new(say),
        }
    }

    /// When there is something to look at.
    pub fn next_look(&self) -> Option<Instant> {
        let is_busy = self.command.as_ref().is_some_and(EventCommand::is_busy);
        (is_busy || self.files.need_looks()).then_some(self.look_at)
    }

    /// Looks at the files, and at commands that run, when it is time.
    #[inline]
    pub fn look_if_due(&mut self, now: Instant) {
        if now >= self.look_at {
            self.look(now);
        }
    }

    #[cold]
    fn look(&mut self, now: Instant) {
        self.look_at_files();
        if let Some(command) = &mut self.command {
            command.look(&mut self.write);
        }
        let has_waiting = self.command.as_ref().is_some_and(EventCommand::has_waiting);
        self.look_at = now
            + Duration::from_ms(match has_waiting {
                true => LOOK_WHILE_WAITING_MS,
                false => LOOK_MS,
            });
    }

    fn look_at_files(&mut self) {
        for (node, sentence) in self.files.look() {
            self.run_command(Event::of_file(node, sentence), 1);
        }
    }

    /// Something has happened at a node.
    pub fn notice(&mut self, now: Instant, node: NodeId, notice: Notice) {
        let mut more = 0;
        match notice {
            Notice::ScrubFound { .. } => match self.findings.admit(now) {
                Some(left_out) => more = left_out,
                None => return,
            },
            Notice::ScrubEnded { .. } => more = std::mem::take(&mut self.findings.left_out),
            _ => {}
        }
        let mut event = Event::of_notice(&self.names, node, notice);
        if more > 0 {
            event.detail += &format!(" ({more} findings before were not told one by one)");
        }
        // The file of a disk has said why it is lost.
        let said = self.files.loss_of(&event.node).filter(|_| notice == Notice::DiskLost);
        match said {
            Some(sentence) => event.detail = sentence,
            None => (self.write)(&event.detail),
        }
        let is_finding = matches!(notice, Notice::ScrubFound { .. });
        self.run_command(event, if is_finding { 1 + more } else { 1 });
    }

    /// So many notices were never told.
    pub fn dropped(&mut self, count: u64) {
        (self.write)(&format!(
            "{count} events of nodes were not told, because there were too many at once"
        ));
    }

    fn run_command(&mut self, event: Event, count: u64) {
        if let Some(command) = &mut self.command {
            command.run(event, count, &mut self.write);
        }
    }

    /// Looks for the last time. Commands that run are left to themselves.
    pub fn end(&mut self) {
        self.look_at_files();
        if let Some(command) = &mut self.command {
            command.end(&mut self.write);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events whose lines can be read.
    fn events() -> (Events, Rc<RefCell<Vec<String>>>) {
        let lines = Rc::new(RefCell::new(Vec::new()));
        let mut events = Events::new(Names::default(), OpenFiles::default(), None);
        let of_events = Rc::clone(&lines);
        events.write = Box::new(move |line| of_events.borrow_mut().push(line.to_owned()));
        (events, lines)
    }

    fn some_node() -> NodeId {
        let geometry = imbrex_core::disk::Geometry::plain(
            imbrex_core::units::BlockCount(1),
            imbrex_core::disk::Media::Conventional,
        );
        imbrex_core::stack::StackBuilder::new(0).disk(geometry)
    }

    #[test]
    fn findings_of_scrubs_alone_are_told_ten_a_second_and_counted() {
        let (mut events, lines) = events();
        let node = some_node();
        let found = Notice::ScrubFound { member: 1, block: 7, is_repaired: true };
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        for ms in 0..50 {
            events.notice(at(ms), node, found);
            events.notice(at(ms), node, Notice::MemberLost { member: 1 });
        }
        let told = |words: &str| lines.borrow().iter().filter(|it| it.contains(words)).count();
        assert_eq!(told("is lost"), 50, "{lines:?}");
        assert_eq!(told("was wrong"), 10);
        events.notice(at(1_000), node, found);
        assert_eq!(told("(40 findings before were not told one by one)"), 1);
        for _ in 0..12 {
            events.notice(at(1_001), node, found);
        }
        let ended = Notice::ScrubEnded { wrong: 63, repaired: 63, unreadable: 0 };
        events.notice(at(1_002), node, ended);
        assert_eq!(told("(3 findings before were not told one by one)"), 1);
        events.notice(at(9_000), node, found);
        assert!(lines.borrow().last().is_some_and(|line| line.ends_with("it was repaired")));
    }

    #[test]
    fn nothing_is_looked_at_where_there_is_nothing_to_see() {
        let (mut events, _) = events();
        assert_eq!(events.next_look(), None);
        events.look_if_due(Instant::ZERO);
        assert_eq!(events.look_at, Instant::ZERO + Duration::from_ms(LOOK_MS));
    }
}
