//! A server of one export that can lose its power, for tests of the disks that stand on it.

use imbrex_core::rng::Rng;
use imbrex_serve::nbd::handshake::{Export, Handshake, Next, greeting};
use imbrex_serve::nbd::transmission::{Command, Errno, REQUEST_BYTES, RequestHeader, encode_reply};
use imbrex_serve::remote::{RemoteAddress, Transport};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const BLOCK: usize = 4096;

/// What the server holds.
pub struct Medium {
    /// What it reads.
    pub now: Vec<u8>,
    /// What is there after a power cut.
    pub durable: Vec<u8>,
    /// By block: written since the last flush.
    dirty: Vec<bool>,
    is_on: bool,
    /// Flushes fail.
    pub cannot_flush: bool,
    /// Requests are not answered.
    pub hangs: bool,
    connections: Vec<UnixStream>,
    pub requests: u64,
    pub flushes: u64,
}

impl Medium {
    fn is_within(&self, offset: u64, length: u64) -> bool {
        offset + length <= self.now.len() as u64
    }

    fn change(&mut self, offset: u64, length: usize, payload: Option<&[u8]>, is_durable: bool) {
        let range = offset as usize..offset as usize + length;
        let fill = |bytes: &mut [u8]| match payload {
            Some(payload) => bytes.copy_from_slice(payload),
            None => bytes.fill(0),
        };
        fill(&mut self.now[range.clone()]);
        let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
        if is_durable {
            fill(&mut self.durable[range]);
        }
        self.dirty[blocks].fill(!is_durable);
    }

    fn flush(&mut self) {
        self.flushes += 1;
        self.durable.copy_from_slice(&self.now);
        self.dirty.fill(false);
    }
}

/// A server on a Unix socket.
pub struct RemoteServer {
    medium: Arc<Mutex<Medium>>,
    socket: PathBuf,
    thread: Option<JoinHandle<()>>,
}

fn lock(medium: &Mutex<Medium>) -> MutexGuard<'_, Medium> {
    medium.lock().expect("no thread of the server has panicked")
}

impl RemoteServer {
    /// A server of so many blocks of zeroes.
    pub fn start(dir: &Path, blocks: usize) -> RemoteServer {
        let medium = Medium {
            now: vec![0; blocks * BLOCK],
            durable: vec![0; blocks * BLOCK],
            dirty: vec![false; blocks],
            is_on: true,
            cannot_flush: false,
            hangs: false,
            connections: Vec::new(),
            requests: 0,
            flushes: 0,
        };
        let medium = Arc::new(Mutex::new(medium));
        let socket = dir.join("remote.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let shared = Arc::clone(&medium);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a client");
                if Arc::strong_count(&shared) == 1 {
                    return;
                }
                let mut medium = lock(&shared);
                if medium.is_on {
                    medium.connections.push(stream.try_clone().expect("a socket"));
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || serve(stream, &shared));
                }
            }
        });
        RemoteServer { medium, socket, thread: Some(thread) }
    }

    /// Where it is.
    pub fn address(&self) -> RemoteAddress {
        RemoteAddress { transport: Transport::Unix(self.socket.clone()), export: "disk".into() }
    }

    /// What it holds.
    pub fn medium(&self) -> MutexGuard<'_, Medium> {
        lock(&self.medium)
    }

    /// The power goes. Of what was not flushed some blocks have reached the medium.
    pub fn cut(&self, rng: &mut Rng) {
        let mut medium = self.medium();
        let Medium { now, durable, dirty, .. } = &mut *medium;
        for (block, is_dirty) in dirty.iter_mut().enumerate() {
            let range = block * BLOCK..(block + 1) * BLOCK;
            if std::mem::take(is_dirty) && rng.below(3) == 0 {
                durable[range.clone()].copy_from_slice(&now[range]);
            }
        }
        now.copy_from_slice(durable);
        medium.is_on = false;
        self.end_connections(&mut medium);
    }

    /// The power is back.
    pub fn switch_on(&self) {
        self.medium().is_on = true;
    }

    /// Connections end; the server goes on.
    pub fn end_connections(&self, medium: &mut Medium) {
        for stream in medium.connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        let mut medium = self.medium();
        self.end_connections(&mut medium);
        drop(medium);
        // The listener sees that nobody else has the medium, as soon as the connections have ended.
        while Arc::strong_count(&self.medium) > 2 {
            thread::sleep(Duration::from_millis(1));
        }
        self.medium = Arc::new(Mutex::new(Medium {
            now: Vec::new(),
            durable: Vec::new(),
            dirty: Vec::new(),
            is_on: false,
            cannot_flush: false,
            hangs: false,
            connections: Vec::new(),
            requests: 0,
            flushes: 0,
        }));
        let _ = UnixStream::connect(&self.socket);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Serves one connection until it ends.
fn serve(mut stream: UnixStream, medium: &Mutex<Medium>) {
    let bytes = lock(medium).now.len() as u64;
    let export = Export {
        name: "disk".into(),
        description: String::new(),
        offset: 0,
        bytes,
        is_read_only: false,
    };
    if shake_hands(&mut stream, export).is_none() {
        return;
    }
    while answer(&mut stream, medium).is_some() {}
}

fn shake_hands(stream: &mut UnixStream, export: Export) -> Option<()> {
    stream.write_all(&greeting()).ok()?;
    let mut handshake = Handshake::new(Rc::from([export]));
    let (mut input, mut chunk) = (Vec::new(), [0; 512]);
    loop {
        let mut output = Vec::new();
        let (consumed, next) = handshake.advance(&input, &mut output);
        input.drain(..consumed);
        stream.write_all(&output).ok()?;
        match next {
            Next::Transmission => return Some(()),
            Next::Close => return None,
            Next::Input if consumed > 0 => {}
            Next::Input => match stream.read(&mut chunk).ok()? {
                0 => return None,
                count => input.extend(&chunk[..count]),
            },
        }
    }
}

/// Answers one request. What was done before a cut and not answered is as the cut has left it.
fn answer(stream: &mut UnixStream, medium: &Mutex<Medium>) -> Option<()> {
    let mut header = [0; REQUEST_BYTES];
    stream.read_exact(&mut header).ok()?;
    let header = RequestHeader::decode(&header)?;
    let mut payload = vec![0; header.payload_bytes() as usize];
    stream.read_exact(&mut payload).ok()?;
    while lock(medium).hangs {
        thread::sleep(Duration::from_millis(5));
    }
    let mut medium = lock(medium);
    if !medium.is_on {
        return None;
    }
    medium.requests += 1;
    let bytes = medium.now.len() as u64;
    let mut data: Vec<u8> = Vec::new();
    let length = header.length as usize;
    let command = header.command(bytes).expect("what a disk asks is right");
    assert!(medium.is_within(header.offset, header.length.into()) || command == Command::Flush);
    let error = match command {
        Command::Read => {
            data.extend(&medium.now[header.offset as usize..][..length]);
            None
        }
        Command::Write { durability } => {
            let is_durable = durability == imbrex_core::operation::Durability::Durable;
            medium.change(header.offset, length, Some(&payload), is_durable);
            None
        }
        Command::WriteZeroes { durability, .. } => {
            let is_durable = durability == imbrex_core::operation::Durability::Durable;
            medium.change(header.offset, length, None, is_durable);
            None
        }
        Command::Trim { .. } => panic!("a disk asks for no trim"),
        Command::Flush if medium.cannot_flush => Some(Errno::Io),
        Command::Flush => {
            medium.flush();
            None
        }
        Command::Disconnect => return None,
    };
    let mut reply = encode_reply(header.cookie, error).to_vec();
    reply.extend(data);
    stream.write_all(&reply).ok()
}
