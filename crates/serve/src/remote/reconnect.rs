//! Getting a connection back that has broken, and being sure that the disk behind it is the same.

use super::RemoteAddress;
use super::connection::{Connection, words_of};
use super::storage::RemoteStorage;
use crate::clock::Waker;
use imbrex_core::label::{LABEL_BLOCKS, LabelCopy};
use imbrex_core::units::BLOCK_BYTES;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Between two tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// A copy of the label that the disk may have.
#[derive(Clone, Debug)]
struct Seen {
    bytes: Arc<[u8]>,
    /// How many flushes had begun when it was answered; `None`: it was not answered yet.
    flushes: Option<u64>,
}

/// What the copies of the label of a disk may be: as they were found, and everything that was written since
/// and may not have been flushed.
#[derive(Clone, Default, Debug)]
pub(super) struct SeenLabels {
    /// Blocks before the label.
    blocks: u64,
    copies: [Vec<Seen>; LABEL_BLOCKS as usize],
}

impl SeenLabels {
    /// Those of a disk that was just opened.
    pub fn found(storage: &RemoteStorage, blocks: u64) -> io::Result<SeenLabels> {
        let mut seen = SeenLabels { blocks, ..SeenLabels::default() };
        for (copy, list) in LabelCopy::ALL.iter().zip(&mut seen.copies) {
            let mut bytes = vec![0; BLOCK_BYTES as usize];
            storage.read_exact_at(&mut bytes, copy.address(blocks) * BLOCK_BYTES)?;
            list.push(Seen { bytes: bytes.into(), flushes: Some(0) });
        }
        Ok(seen)
    }

    /// True when nobody knows what the label must be.
    pub fn are_unknown(&self) -> bool {
        self.copies.iter().all(Vec::is_empty)
    }

    /// A block may be written from now on.
    pub fn sent(&mut self, block: u64, bytes: &[u8]) {
        if let Some(list) = self.copy(block).filter(|list| !list.is_empty()) {
            list.push(Seen { bytes: bytes.into(), flushes: None });
        }
    }

    /// It was, which nobody has flushed since so many flushes had begun.
    pub fn answered(&mut self, block: u64, flushes: u64) {
        let Some(list) = self.copy(block) else { return };
        if let Some(seen) = list.iter_mut().find(|seen| seen.flushes.is_none()) {
            seen.flushes = Some(flushes);
        }
    }

    /// A flush has ended well.
    pub fn flushed(&mut self, number: u64) {
        for list in &mut self.copies {
            let is_durable = |seen: &Seen| seen.flushes.is_some_and(|flushes| flushes < number);
            let last = list.iter().rposition(is_durable).unwrap_or(0);
            list.drain(..last);
        }
    }

    fn copy(&mut self, block: u64) -> Option<&mut Vec<Seen>> {
        let at = block.checked_sub(self.blocks)?;
        self.copies.get_mut(usize::try_from(at).ok()?)
    }

    /// Looks whether the disk is the one that was left. A copy that was being written may be torn: then the other
    /// one tells.
    fn compare(&self, storage: &RemoteStorage) -> io::Result<bool> {
        let found = SeenLabels::found(storage, self.blocks)?;
        let mut is_one_known = false;
        for (list, found) in self.copies.iter().zip(&found.copies) {
            let is_known = list.iter().any(|seen| seen.bytes == found[0].bytes);
            if !is_known && list.len() == 1 {
                return Ok(false);
            }
            is_one_known |= is_known;
        }
        Ok(is_one_known)
    }
}

/// What a disk must be that comes back.
#[derive(Clone)]
pub(super) struct Wanted {
    pub address: RemoteAddress,
    pub bytes: u64,
    pub is_read_only: bool,
    pub labels: SeenLabels,
}

/// Why there is no connection.
enum NotYet {
    /// It may be better another time.
    Away(String),
    /// What is there is something else.
    Another(String),
}

impl Wanted {
    fn try_once(&self) -> Result<Connection, NotYet> {
        let away = |error: io::Error| NotYet::Away(error.to_string());
        let connection = Connection::open(&self.address);
        let connection = connection.map_err(|error| NotYet::Away(words_of(&error)))?;
        let export = connection.export;
        if export.bytes < self.bytes {
            let (found, needed) = (export.bytes, self.bytes);
            return Err(NotYet::Another(format!(
                "it has {found} bytes now, the disk needs {needed}"
            )));
        }
        if export.is_read_only && !self.is_read_only {
            return Err(NotYet::Another("it can only be read now".to_owned()));
        }
        if self.labels.are_unknown() {
            return Ok(connection);
        }
        let storage = RemoteStorage::over(connection);
        match self.labels.compare(&storage).map_err(away)? {
            true => Ok(storage.into_connection()),
            false => Err(NotYet::Another(
                "its label is not the one that was left: another disk is there, or an older copy"
                    .to_owned(),
            )),
        }
    }
}

/// A thread that tries to get a connection.
pub(super) struct Reconnecting {
    outcome: Receiver<Result<Connection, String>>,
    is_over: Arc<AtomicBool>,
}

impl Reconnecting {
    /// Tries until there is one, the disk is another one, or the time is over.
    /// The first try is made `at_once`, or after a pause.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        wanted: Wanted,
        until: Instant,
        at_once: bool,
        waker: Waker,
    ) -> io::Result<Reconnecting> {
        let (sender, outcome) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        thread::Builder::new().spawn(move || {
            if !at_once {
                thread::sleep(BETWEEN_TRIES);
            }
            let outcome = loop {
                let why = match wanted.try_once() {
                    Ok(connection) => break Ok(connection),
                    Err(NotYet::Another(why)) => break Err(why),
                    Err(NotYet::Away(why)) => why,
                };
                if Instant::now() + BETWEEN_TRIES > until || stop.load(Ordering::Relaxed) {
                    break Err(why);
                }
                thread::sleep(BETWEEN_TRIES);
            };
            // The disk may have been given up meanwhile.
            let _ = sender.send(outcome);
            waker.wake();
        })?;
        Ok(Reconnecting { outcome, is_over })
    }

    /// What has come of it, if something has.
    pub fn poll(&self) -> Option<Result<Connection, String>> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err("its thread has ended".to_owned())),
        }
    }

    /// The same, after a wait.
    pub fn wait(&self, at_most: Duration) -> Option<Result<Connection, String>> {
        match self.outcome.recv_timeout(at_most) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err("its thread has ended".to_owned())),
        }
    }
}

impl Drop for Reconnecting {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
