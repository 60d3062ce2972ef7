//! Signals beside those that the server itself acts on.

use crate::connections::SIGNALS;
use crate::server::{ServeError, Server};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a process that a signal ended: at once after a second one, and of a command that was
/// stopped before it was done.
pub const STOPPED_EXIT_STATUS: u8 = 130;

/// Has SIGINT, SIGTERM and SIGHUP set a flag, and a further SIGINT or SIGTERM end the process at once.
/// A further SIGHUP does not: a terminal that closes sends two, one from the kernel and one from the
/// shell. SIGHUP stays ignored in a process that was started so, as by `nohup`. `also` is called for each
/// signal that is caught.
///
/// # Errors
/// When the system refuses.
pub fn set_on_signals(
    stop: &Arc<AtomicBool>,
    mut also: impl FnMut(i32) -> io::Result<()>,
) -> Result<(), ServeError> {
    let refused =
        |source| ServeError::System { action: "catch SIGINT, SIGTERM and SIGHUP", source };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal == SIGHUP && is_ignored(SIGHUP) {
            continue;
        }
        // In this order: the first signal finds the flag unset and sets it, then comes `also`.
        if signal != SIGHUP {
            let status = STOPPED_EXIT_STATUS.into();
            signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(stop))
                .map_err(refused)?;
        }
        signal_hook::flag::register(signal, Arc::clone(stop)).map_err(refused)?;
        also(signal).map_err(refused)?;
    }
    Ok(())
}

/// Notices SIGUSR1, with which a person asks a running server how it is doing.
#[derive(Debug)]
pub struct FiguresSignal {
    asked: Arc<AtomicBool>,
    /// Gets a byte with each signal, so that the loop of a server can wait for one.
    reader: UnixStream,
}

impl FiguresSignal {
    /// From now on SIGUSR1 no longer ends the process.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn catch() -> Result<FiguresSignal, ServeError> {
        let refused = |source| ServeError::System { action: "catch SIGUSR1", source };
        let asked = Arc::new(AtomicBool::new(false));
        let (reader, writer) = UnixStream::pair().map_err(refused)?;
        reader.set_nonblocking(true).map_err(refused)?;
        // In this order: whoever is woken finds the flag set.
        signal_hook::flag::register(SIGUSR1, Arc::clone(&asked)).map_err(refused)?;
        signal_hook::low_level::pipe::register(SIGUSR1, writer).map_err(refused)?;
        Ok(FiguresSignal { asked, reader })
    }

    /// Has the signal end the waits of a server's loop. Also does so for a signal that has come
    /// already.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wake(&self, server: &Server) -> Result<(), ServeError> {
        server.watch(&self.reader, SIGNALS, "watch for SIGUSR1")
    }

    /// True once after a signal, and once for all that came together.
    #[inline]
    pub fn take(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && self.take_asked()
    }

    #[cold]
    fn take_asked(&self) -> bool {
        // The bytes go first: a signal from now on sends one more, and wakes the loop again.
        let mut bytes = [0; 64];
        while matches!((&self.reader).read(&mut bytes), Ok(count) if count > 0) {}
        self.asked.swap(false, Ordering::Relaxed)
    }
}

/// True when whoever started this process had it ignore a signal, as `nohup` does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status");
    status.is_ok_and(|status| is_ignored_in(&status, signal))
}

/// The same from the text of `/proc/PID/status` (proc(5)): bit 0 of `SigIgn` is signal 1.
fn is_ignored_in(status: &str, signal: i32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Prints a line for the person who runs the server. Nothing can be done when that person has gone
/// and the terminal with them, so errors are dropped.
pub(crate) fn say(line: &str) {
    let _ = io::Write::write_all(&mut io::stderr(), format!("imbrex: {line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t2\n";
        assert!(is_ignored_in(status, SIGHUP));
        assert!(!is_ignored_in(status, SIGINT));
        assert!(is_ignored_in(status, 13));
        assert!(!is_ignored_in("Name:\tx\n", SIGHUP));
    }
}
