//! What a person who runs a server should know of its clients, on standard error.

use imbrex_core::units::{Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::net::getpeername;
use std::io::Write;
use std::net::SocketAddr;

/// The span in which no more than [`LINES_MAX`] lines of a kind are written: whoever can connect
/// could otherwise fill the disk that keeps them.
const WINDOW_MS: u64 = 60_000;
/// Lines of one kind in a window.
const LINES_MAX: u32 = 10;

/// Why there is something to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    /// A connection was closed for the memory it held.
    Stalled,
    /// A connection that was never used was closed for a newcomer.
    Unused,
    /// A newcomer was refused.
    Refused,
    /// The system would not accept a newcomer.
    NotAccepted,
}

const NOTICES: usize = 4;

/// The lines of one kind.
#[derive(Clone, Copy, Default)]
struct Window {
    began: Option<Instant>,
    lines: u32,
    /// Not written since the last line that was.
    left_out: u64,
}

/// Writes lines, of each kind only so many.
pub(super) struct Log {
    windows: [Window; NOTICES],
    write: Box<dyn FnMut(&str)>,
}

impl Log {
    /// A log on standard error.
    pub fn to_standard_error() -> Log {
        Log::to(Box::new(|line| {
            // A server goes on without anybody to read this.
            let _ = writeln!(std::io::stderr(), "imbrex: {line}");
        }))
    }

    /// A log that hands each line to `write`.
    pub fn to(write: Box<dyn FnMut(&str)>) -> Log {
        Log { windows: [Window::default(); NOTICES], write }
    }

    /// Writes the line that `text` makes, or counts it when there were too many of its kind.
    pub fn say(&mut self, now: Instant, notice: Notice, text: impl FnOnce() -> String) {
        let window = &mut self.windows[notice as usize];
        let span = Duration::from_ms(WINDOW_MS);
        if window.began.is_none_or(|began| now >= began + span) {
            (window.began, window.lines) = (Some(now), 0);
        }
        if window.lines == LINES_MAX {
            window.left_out += 1;
            return;
        }
        window.lines += 1;
        let mut line = text();
        match std::mem::take(&mut window.left_out) {
            0 => {}
            1 => line += " (and once more before, not written)",
            left_out => line += &format!(" (and {left_out} times more before, not written)"),
        }
        (self.write)(&line);
    }
}

/// What to call the client at the other end of a socket. Those on a Unix socket have no name.
pub(super) fn client_of(socket: &OwnedFd) -> String {
    let address = getpeername(socket).ok().flatten();
    match address.map(SocketAddr::try_from) {
        Some(Ok(address)) => format!("the client at {address}"),
        _ => "a client".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn a_flood_of_lines_is_cut_off_and_counted() {
        let lines = Rc::new(RefCell::new(Vec::new()));
        let mut log = Log::to({
            let lines = Rc::clone(&lines);
            Box::new(move |line| lines.borrow_mut().push(line.to_string()))
        });
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        for ms in 0..1_000 {
            log.say(at(ms), Notice::Refused, || "refused".into());
        }
        assert_eq!(lines.borrow().len(), LINES_MAX as usize);
        log.say(at(1_000), Notice::Unused, || "another kind".into());
        log.say(at(WINDOW_MS), Notice::Refused, || "refused".into());
        let lines = lines.borrow();
        assert_eq!(lines[10], "another kind");
        assert_eq!(lines[11], "refused (and 990 times more before, not written)");
    }
}
