//! An export of another server as a disk.

use super::RemoteAddress;
use super::link::{End, FromServer, Link};
use super::reconnect::{Reconnecting, SeenLabels, Wanted};
use super::requests::{For, Part, Requests};
use super::storage::RemoteStorage;
use super::unflushed::{Unflushed, Written};
use crate::clock::Waker;
use crate::disk::{DiskError, OpenFile, OpenFiles};
use crate::image::needed_bytes;
use crate::nbd::client::RemoteExport;
use crate::nbd::transmission::{Command, Errno};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::label::LABEL_BLOCKS;
use imbrex_core::operation::{Durability, Operation, RequestId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time;

/// Most blocks that one request makes zero: 1 GiB.
const ZERO_BLOCKS_MAX: u64 = 1 << 18;
/// A wait on the calling thread looks at the time after so long.
const GLANCE: time::Duration = time::Duration::from_millis(100);
/// A server that says nothing for so long, and for as long as a connection may be away, is lost where no layer
/// watches: while layers come up and what they wrote is let through.
const SILENCE_MAX: time::Duration = time::Duration::from_secs(60);

/// How a disk goes on when its connection breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteSettings {
    /// How long a connection may be away before the disk is lost.
    pub reconnect: time::Duration,
    /// Memory for what was written since the last flush; then a flush is forced.
    pub resend_bytes_max: u64,
}

impl Default for RemoteSettings {
    fn default() -> RemoteSettings {
        RemoteSettings { reconnect: time::Duration::from_secs(30), resend_bytes_max: 64 << 20 }
    }
}

/// What can be wrong on purpose: no stack is needed to find it, so it is no bug of the crash search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteBug {
    /// After a connection has come again nothing is sent again that was answered.
    NothingSentAgain,
    /// A flush is answered and the server is not asked for one.
    FlushForgotten,
    /// Whatever is behind the address counts as the same disk.
    LabelNotCompared,
}

enum State {
    /// Requests are sent.
    Up(Link),
    /// What was answered and not flushed is being sent again; nothing else is.
    Replaying(Link),
    /// The connection broke.
    Away(Reconnecting),
    /// Everything fails.
    Lost,
}

/// An operation of a layer.
struct Op {
    /// Requests of it that have no answer yet.
    parts: usize,
    result: Result<(), IoError>,
    /// It is to be durable when it is answered.
    is_durable: bool,
    /// A part of it was answered that is not: a flush must follow.
    needs_flush: bool,
}

/// An export of another server as a disk.
///
/// Several requests are in flight. When the connection breaks, or the server asks for it, the disk tries for
/// a while to get another one. A server that was started again may have forgotten what it answered and had not
/// flushed, so that is sent again, without what was overwritten, and after that what had no answer. A disk that
/// is another one then, as its length or its label tells, is lost; so is one that does not come back in time, and
/// one that answers what was not asked. A flush that fails fails every later write and flush, as of a
/// [`FileDisk`](crate::disk::FileDisk).
pub struct RemoteDisk {
    geometry: Geometry,
    settings: RemoteSettings,
    state: State,
    waker: Waker,
    open: Rc<OpenFile>,
    export: RemoteExport,
    /// What a disk must be that is there after a break, its label among it.
    wanted: Wanted,
    /// When the connection broke that has not been of use since.
    away_since: time::Instant,
    requests: Requests,
    /// Operations of layers of which a request has no answer yet.
    ops: HashMap<RequestId, Op>,
    /// Operations that wait until what may be sent again has become less.
    held: VecDeque<DiskOp>,
    unflushed: Unflushed,
    flushes: Flushes,
    /// Replies that came while somebody waited for another one.
    later: VecDeque<FromServer>,
    now: Option<Result<(), IoError>>,
    done: VecDeque<DiskCompletion>,
    planted: Option<RemoteBug>,
}

/// Who waits for a flush.
struct Flushes {
    /// Something was written since the last flush began.
    is_dirty: bool,
    has_failed: bool,
    /// The one that runs.
    running: Option<u64>,
    /// Those whom it answers.
    covered: Vec<RequestId>,
    /// Those whom the next one answers.
    waiting: Vec<RequestId>,
}

impl RemoteDisk {
    /// Connects to the disk at an address, which must offer what the geometry says, and the label behind it
    /// where it `is_labelled`. `waker` ends the wait of the loop when the server has answered.
    ///
    /// # Errors
    /// When it cannot be reached, is too short, or can only be read though it is to be written.
    pub fn open(
        address: &RemoteAddress,
        geometry: Geometry,
        is_labelled: bool,
        is_read_only: bool,
        settings: RemoteSettings,
        waker: Waker,
    ) -> Result<RemoteDisk, DiskError> {
        let path = PathBuf::from(address.to_string());
        let wrong = |source: io::Error| DiskError::Open { path: path.clone(), source };
        let storage = RemoteStorage::open(address).map_err(wrong)?;
        let export = storage.export();
        let needed = needed_bytes(geometry.blocks, is_labelled);
        if export.bytes < needed {
            return Err(DiskError::TooShort { path, bytes: export.bytes, needed });
        }
        if export.is_read_only && !is_read_only {
            return Err(DiskError::ReadOnlyExport { path });
        }
        let labels = match export.bytes >= needed_bytes(geometry.blocks, true) {
            true => SeenLabels::found(&storage, geometry.blocks.0).map_err(wrong)?,
            false => SeenLabels::default(),
        };
        let link = Link::start(storage.into_connection(), waker.clone()).map_err(wrong)?;
        Ok(RemoteDisk {
            geometry,
            settings,
            state: State::Up(link),
            waker,
            open: Rc::new(OpenFile::remote(&path)),
            export,
            wanted: Wanted { address: address.clone(), bytes: needed, is_read_only, labels },
            away_since: time::Instant::now(),
            requests: Requests::default(),
            ops: HashMap::new(),
            held: VecDeque::new(),
            unflushed: Unflushed::default(),
            flushes: Flushes {
                is_dirty: true,
                has_failed: false,
                running: None,
                covered: Vec::new(),
                waiting: Vec::new(),
            },
            later: VecDeque::new(),
            now: None,
            done: VecDeque::new(),
            planted: None,
        })
    }

    /// The same disk with a bug, for tests that must find it.
    #[must_use]
    pub fn plant(mut self, bug: Option<RemoteBug>) -> RemoteDisk {
        self.planted = bug;
        self
    }

    /// The same disk, which says the name of its node when it has something to say.
    #[must_use]
    pub fn of_node(self, node: &str) -> RemoteDisk {
        self.open.set_node(node);
        self
    }

    /// The same disk, which is one of `files`: whoever serves looks after them.
    #[must_use]
    pub fn listed_in(self, files: &OpenFiles) -> RemoteDisk {
        files.add(&self.open);
        self
    }

    /// What the server says that the export holds.
    pub fn export_bytes(&self) -> u64 {
        self.export.bytes
    }

    /// Most blocks of a request.
    fn blocks_max(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Zero { .. } if self.export.takes_zeroes => ZERO_BLOCKS_MAX,
            _ => u64::from(self.export.payload_bytes_max) / BLOCK_BYTES,
        }
    }

    fn finish(&mut self, id: RequestId, result: Result<(), IoError>) {
        self.done.push_back(DiskCompletion { id, result });
    }

    /// Makes requests of an operation and sends them.
    fn start(&mut self, op: DiskOp, buffers: &Buffers) {
        let written = match op.operation {
            Operation::Write { .. } => {
                let bytes = buffers.bytes(op.buffer).expect(BYTES);
                Some(Written::Bytes(bytes.into(), 0))
            }
            Operation::Zero { may_unmap, .. } => Some(Written::Zeroes { may_unmap }),
            _ => None,
        };
        let into = (op.operation == Operation::Read).then_some(op.buffer);
        let parts = self.ask(For::Op(op.id), op.operation, op.extent, written, into);
        let is_durable = op.operation.is_durable();
        self.ops.insert(op.id, Op { parts, result: Ok(()), is_durable, needs_flush: false });
    }

    /// Asks for an operation in as many requests as the server needs. Returns how many these are.
    fn ask(
        &mut self,
        of: For,
        operation: Operation,
        extent: Extent,
        written: Option<Written>,
        into: Option<BufferSlice>,
    ) -> usize {
        let most = self.blocks_max(operation);
        let mut parts = 0;
        let mut at = 0;
        while at < extent.blocks.0 {
            let blocks = most.min(extent.blocks.0 - at);
            let part = Part {
                of,
                operation,
                extent: Extent::new(extent.start.0 + at, blocks),
                written: written.as_ref().map(|written| written.behind(at)),
                into: into.map(|buffer| (buffer, (at * BLOCK_BYTES) as usize)),
                is_durable: false,
            };
            self.see_label(&part);
            self.add(part);
            parts += 1;
            at += blocks;
        }
        parts
    }

    /// Remembers a label that is written.
    fn see_label(&mut self, part: &Part) {
        let (blocks, Extent { start, .. }) = (self.geometry.blocks.0, part.extent);
        if part.extent.end().0 <= blocks || part.of == For::Replay {
            return;
        }
        for block in start.0.max(blocks)..part.extent.end().0.min(blocks + LABEL_BLOCKS) {
            match part.written.as_ref().map(|written| written.behind(block - start.0)) {
                Some(Written::Bytes(bytes, from)) => {
                    self.wanted.labels.sent(block, &bytes[from..from + BLOCK_BYTES as usize]);
                }
                Some(Written::Zeroes { .. }) => {
                    self.wanted.labels.sent(block, &[0; BLOCK_BYTES as usize]);
                }
                None => {}
            }
        }
    }

    fn add(&mut self, part: Part) {
        let is_first = part.of == For::Replay;
        let cookie = self.requests.add(part);
        match &self.state {
            State::Up(_) => self.send(cookie),
            State::Replaying(_) if is_first => self.send(cookie),
            _ => {}
        }
    }

    fn send(&mut self, cookie: u64) {
        let (State::Up(link) | State::Replaying(link)) = &self.state else { return };
        let part = self.requests.get_mut(cookie).expect("a request without an answer");
        part.is_durable = part.operation.is_durable() && self.export.takes_fua;
        let durability = if part.is_durable { Durability::Durable } else { Durability::Cached };
        let command = match (part.operation, &part.written) {
            (Operation::Read, _) => Command::Read,
            (_, Some(Written::Zeroes { may_unmap })) if self.export.takes_zeroes => {
                Command::WriteZeroes { durability, may_unmap: *may_unmap }
            }
            (_, Some(_)) => Command::Write { durability },
            (_, None) => Command::Flush,
        };
        let Extent { start, blocks } = part.extent;
        let (offset, length) = (start.0 * BLOCK_BYTES, blocks.bytes() as u32);
        link.send(cookie, command, offset, length, part.written.as_ref());
    }

    /// Answers `id` when everything written so far is durable.
    fn make_durable(&mut self, id: RequestId) {
        if self.flushes.has_failed {
            self.finish(id, Err(IoError::Medium));
        } else if self.flushes.is_dirty {
            self.flushes.waiting.push(id);
            self.flush_if_wanted();
        } else if self.flushes.running.is_some() {
            self.flushes.covered.push(id);
        } else {
            self.finish(id, Ok(()));
        }
    }

    fn flush_if_wanted(&mut self) {
        if self.flushes.has_failed {
            return;
        }
        let is_full =
            !self.held.is_empty() || self.used_bytes() > self.settings.resend_bytes_max / 2;
        let is_forced = is_full && !self.unflushed.is_empty();
        if self.flushes.running.is_none() && (is_forced || !self.flushes.waiting.is_empty()) {
            let Flushes { covered, waiting, .. } = &mut self.flushes;
            std::mem::swap(covered, waiting);
            self.begin_flush();
        }
    }

    fn begin_flush(&mut self) {
        let number = self.unflushed.begin_flush();
        self.flushes.running = Some(number);
        self.flushes.is_dirty = false;
        if self.planted == Some(RemoteBug::FlushForgotten) {
            return self.flush_ended(number, Ok(()));
        }
        self.add(Part {
            of: For::Flush(number),
            operation: Operation::Flush,
            extent: Extent::EMPTY,
            written: None,
            into: None,
            is_durable: false,
        });
    }

    fn flush_ended(&mut self, number: u64, result: Result<(), IoError>) {
        self.flushes.running = None;
        match result {
            Ok(()) => {
                self.unflushed.end_flush(number);
                self.wanted.labels.flushed(number);
            }
            Err(_) => {
                if !self.flushes.has_failed {
                    self.say(": its server cannot flush; from now on writes and flushes of it fail, reads go on");
                }
                self.flushes.has_failed = true;
                let Flushes { covered, waiting, .. } = &mut self.flushes;
                covered.append(waiting);
                for op in std::mem::take(&mut self.held) {
                    self.finish(op.id, Err(IoError::Medium));
                }
            }
        }
        for id in std::mem::take(&mut self.flushes.covered) {
            self.finish(id, result.map_err(|_| IoError::Medium));
        }
        self.flush_if_wanted();
    }

    /// Memory that may have to be sent again.
    fn used_bytes(&self) -> u64 {
        self.unflushed.bytes() + self.requests.bytes()
    }

    /// True when another write must wait for a flush.
    fn must_wait(&self, op: &DiskOp) -> bool {
        let bytes = match op.operation {
            Operation::Write { .. } => op.extent.blocks.bytes(),
            _ => 0,
        };
        let used = self.used_bytes();
        used > 0 && used + bytes > self.settings.resend_bytes_max
    }

    /// Starts what was held back, as far as there is room.
    fn start_held(&mut self, buffers: &Buffers) {
        while let Some(op) = self.held.front() {
            if self.must_wait(op) {
                return self.flush_if_wanted();
            }
            let op = self.held.pop_front().expect("the first one");
            self.start(op, buffers);
        }
    }

    fn take(&mut self, from: FromServer, buffers: Option<&mut Buffers>) {
        let (cookie, error, data) = match from {
            FromServer::Ended(End::Broken(why)) => return self.connection_broke(&why),
            FromServer::Ended(End::Nonsense(why)) => return self.lose(&why),
            // The server goes down and has not done it. It still answers what it has done, and then ends the
            // connection; the request waits for the next one.
            FromServer::Reply { error, .. } if error == Errno::ShutDown as u32 => return,
            FromServer::Reply { cookie, error, data } => (cookie, error, data),
        };
        // A read that was answered while somebody waited for another answer, and then the connection broke, is
        // asked again all the same: it is answered twice.
        let Some(part) = self.requests.remove(cookie) else { return };
        if let State::Up(link) = &mut self.state {
            link.is_of_use = true;
        }
        let result = result_of(error);
        if let (Some((buffer, at)), Some(buffers), Ok(())) = (part.into, buffers, result) {
            let bytes = buffers.bytes_mut(buffer).expect(BYTES);
            bytes[at..at + data.len()].copy_from_slice(&data);
        }
        if result.is_ok() {
            self.wrote(&part);
        }
        match part.of {
            For::Flush(number) => self.flush_ended(number, result),
            For::Now => self.now = Some(result),
            For::Op(id) => self.part_ended(id, part.is_durable, result),
            For::Replay => match result {
                Ok(()) => self.go_on_if_replayed(),
                Err(error) => self.lose(&format!(
                    "what was written since the last flush cannot be sent again: {error}"
                )),
            },
        }
    }

    /// A write was answered: until a flush it is kept.
    fn wrote(&mut self, part: &Part) {
        let Some(written) = part.written.clone().filter(|_| part.of != For::Replay) else { return };
        let blocks = self.geometry.blocks.0;
        let flushes = self.unflushed.flushes();
        for block in part.extent.start.0.max(blocks)..part.extent.end().0 {
            self.wanted.labels.answered(block, flushes);
        }
        if part.is_durable {
            self.unflushed.forget(part.extent);
            return;
        }
        self.flushes.is_dirty = true;
        self.unflushed.keep(part.extent, written);
        self.flush_if_wanted();
    }

    fn part_ended(&mut self, id: RequestId, was_durable: bool, result: Result<(), IoError>) {
        let op = self.ops.get_mut(&id).expect("an operation of a layer");
        op.result = op.result.and(result);
        op.needs_flush |= op.is_durable && !was_durable;
        op.parts -= 1;
        if op.parts > 0 {
            return;
        }
        let Op { result, needs_flush, .. } = self.ops.remove(&id).expect("it is there");
        match result {
            Ok(()) if needs_flush => self.make_durable(id),
            result => self.finish(id, result),
        }
    }

    fn connection_broke(&mut self, why: &str) {
        let (State::Up(link) | State::Replaying(link)) = &self.state else { return };
        let now = time::Instant::now();
        // One on which nothing was answered that had to be is no sign of a server that works.
        let was_of_use = link.is_of_use || self.requests.is_empty();
        if was_of_use {
            self.away_since = now;
        }
        let until = self.away_since + self.settings.reconnect;
        if until <= now {
            return self.lose(why);
        }
        let within = (until - now).as_secs_f64();
        self.say(&format!(": {why}; a new connection is tried for {within:.0} s"));
        self.requests.drop_replays();
        let mut wanted = self.wanted.clone();
        if self.planted == Some(RemoteBug::LabelNotCompared) {
            wanted.labels = SeenLabels::default();
        }
        let tried = Reconnecting::start(wanted, until, was_of_use, self.waker.clone());
        match tried {
            Ok(reconnecting) => self.state = State::Away(reconnecting),
            Err(error) => self.lose(&format!("no thread can try for a connection: {error}")),
        }
    }

    fn came_back(&mut self, link: Link) {
        self.export = link.export;
        let most = u64::from(self.export.payload_bytes_max) / BLOCK_BYTES;
        if self.requests.all().any(|part| !part.fits(most, self.export.takes_zeroes)) {
            return self.lose("its server takes shorter requests now");
        }
        let away = self.away_since.elapsed().as_secs_f64();
        let again: Vec<(Extent, Written)> = match self.planted {
            Some(RemoteBug::NothingSentAgain) => Vec::new(),
            _ => self.unflushed.runs().collect(),
        };
        let bytes: u64 = again.iter().map(|(extent, _)| extent.blocks.bytes()).sum();
        self.say(&format!(
            ": it is there again after {away:.1} s; {bytes} bytes that it may have forgotten are sent again"
        ));
        self.state = State::Replaying(link);
        for (extent, written) in again {
            let operation = match written {
                Written::Bytes(..) => Operation::WRITE,
                Written::Zeroes { may_unmap } => {
                    Operation::Zero { durability: Durability::Cached, may_unmap }
                }
            };
            self.ask(For::Replay, operation, extent, Some(written), None);
        }
        self.go_on_if_replayed();
    }

    fn go_on_if_replayed(&mut self) {
        if self.requests.have_replays() {
            return;
        }
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Replaying(link) => {
                self.state = State::Up(link);
                self.requests.cookies().into_iter().for_each(|cookie| self.send(cookie));
            }
            other => self.state = other,
        }
    }

    fn say(&self, words: &str) {
        crate::signals::say(&self.open.sentence(words));
    }

    fn lose(&mut self, reason: &str) {
        if !matches!(self.state, State::Lost) {
            self.open.lose(&format!(" is lost: {reason}; from now on everything on it fails"));
        }
        self.end_all();
    }

    /// Nothing is waited for any more.
    fn end_all(&mut self) {
        self.state = State::Lost;
        let mut ops = self.requests.operations();
        ops.retain(|id| self.ops.remove(id).is_some());
        self.requests.clear();
        self.later.clear();
        let flushes = &mut self.flushes;
        flushes.running = None;
        let waiting = flushes.covered.drain(..).chain(flushes.waiting.drain(..));
        for id in ops.into_iter().chain(self.held.drain(..).map(|op| op.id)).chain(waiting) {
            self.done.push_back(DiskCompletion { id, result: Err(IoError::Lost) });
        }
        self.now = Some(Err(IoError::Lost));
    }

    /// Takes what has come of the connection that was tried.
    fn take_outcome(&mut self, outcome: Result<super::connection::Connection, String>) {
        let link = outcome.and_then(|connection| {
            Link::start(connection, self.waker.clone()).map_err(|error| error.to_string())
        });
        match link {
            Ok(link) => self.came_back(link),
            Err(why) => self.lose(&why),
        }
    }

    fn next_from_server(&mut self) -> Option<FromServer> {
        self.later.pop_front().or_else(|| match &mut self.state {
            State::Up(link) | State::Replaying(link) => link.poll(),
            State::Away(_) | State::Lost => None,
        })
    }

    /// Waits on the calling thread until this is so. Reads of layers stay for later: they need buffers.
    /// A server that says nothing for too long is lost: no layer watches here.
    fn wait_until(&mut self, is_so: impl Fn(&RemoteDisk) -> bool) {
        let mut heard_at = time::Instant::now();
        while !is_so(self) {
            if heard_at.elapsed() > SILENCE_MAX + self.settings.reconnect {
                return self.lose("it does not answer");
            }
            match &mut self.state {
                State::Up(link) | State::Replaying(link) => match link.wait(GLANCE) {
                    Some(FromServer::Reply { cookie, error, data })
                        if self.requests.get(cookie).is_some_and(|part| part.into.is_some()) =>
                    {
                        self.later.push_back(FromServer::Reply { cookie, error, data });
                        heard_at = time::Instant::now();
                    }
                    Some(from) => {
                        self.take(from, None);
                        heard_at = time::Instant::now();
                    }
                    None => {}
                },
                State::Away(reconnecting) => {
                    if let Some(outcome) = reconnecting.wait(GLANCE) {
                        self.take_outcome(outcome);
                        heard_at = time::Instant::now();
                    }
                }
                State::Lost => return,
            }
        }
    }

    fn change_now(
        &mut self,
        operation: Operation,
        extent: Extent,
        written: Written,
    ) -> Result<(), IoError> {
        if self.flushes.has_failed {
            return Err(IoError::Medium);
        }
        let mut at = 0;
        while at < extent.blocks.0 {
            // A new connection may take less at once.
            let blocks = self.blocks_max(operation).min(extent.blocks.0 - at);
            if matches!(self.state, State::Lost) {
                return Err(IoError::Lost);
            }
            self.now = None;
            let part = Extent::new(extent.start.0 + at, blocks);
            self.ask(For::Now, operation, part, Some(written.behind(at)), None);
            self.wait_until(|disk| disk.now.is_some());
            self.now.take().unwrap_or(Err(IoError::Lost))?;
            at += blocks;
        }
        Ok(())
    }

    /// Writes on the calling thread.
    ///
    /// # Errors
    /// As the server says.
    pub(crate) fn write_now(&mut self, extent: Extent, bytes: &[u8]) -> Result<(), IoError> {
        self.change_now(Operation::WRITE, extent, Written::Bytes(bytes.into(), 0))
    }

    /// Zeroes on the calling thread.
    ///
    /// # Errors
    /// As the server says.
    pub(crate) fn zero_now(&mut self, extent: Extent, may_unmap: bool) -> Result<(), IoError> {
        let operation = Operation::Zero { durability: Durability::Cached, may_unmap };
        self.change_now(operation, extent, Written::Zeroes { may_unmap })
    }

    /// Makes everything written so far durable, on the calling thread.
    ///
    /// # Errors
    /// As the server says; then nothing can be made durable any more.
    pub(crate) fn synchronise_now(&mut self) -> Result<(), IoError> {
        let is_idle = |disk: &RemoteDisk| disk.flushes.running.is_none();
        self.wait_until(is_idle);
        if !matches!(self.state, State::Lost) && !self.flushes.has_failed {
            self.begin_flush();
            self.wait_until(is_idle);
        }
        match (&self.state, self.flushes.has_failed) {
            (State::Lost, _) => Err(IoError::Lost),
            (_, true) => Err(IoError::Medium),
            _ => Ok(()),
        }
    }
}

impl Drop for RemoteDisk {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// What a layer is told of an error number of the protocol.
fn result_of(error: u32) -> Result<(), IoError> {
    const { assert!(Errno::NoSpace as u32 == 28) };
    match error {
        0 => Ok(()),
        error if error == Errno::NoSpace as u32 => Err(IoError::NoSpace),
        _ => Err(IoError::Medium),
    }
}

impl Disk for RemoteDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, _now: Instant, op: DiskOp, buffers: &mut Buffers) {
        match op.operation {
            _ if matches!(self.state, State::Lost) => self.finish(op.id, Err(IoError::Lost)),
            Operation::Read => self.start(op, buffers),
            _ if self.flushes.has_failed => self.finish(op.id, Err(IoError::Medium)),
            Operation::Write { .. } | Operation::Zero { .. } => {
                self.held.push_back(op);
                self.start_held(buffers);
            }
            Operation::Flush => self.make_durable(op.id),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => self.finish(op.id, Err(IoError::Invalid)),
        }
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if let State::Away(reconnecting) = &self.state
            && let Some(outcome) = reconnecting.poll()
        {
            self.take_outcome(outcome);
        }
        while let Some(from) = self.next_from_server() {
            self.take(from, Some(buffers));
        }
        if !self.held.is_empty() {
            self.start_held(buffers);
        }
        self.done.pop_front()
    }

    fn next_event(&self) -> Option<Instant> {
        (!self.done.is_empty() || !self.later.is_empty()).then_some(Instant::ZERO)
    }

    fn abandon(&mut self) {
        self.end_all();
    }
}

const BYTES: &str = "the buffers of a server hold bytes";
