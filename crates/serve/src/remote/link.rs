//! A connection in use: one thread sends requests, another one takes the replies.

use super::connection::{Connection, Stream};
use super::unflushed::Written;
use crate::clock::Waker;
use crate::nbd::client::RemoteExport;
use crate::nbd::transmission::{Command, REPLY_BYTES, REQUEST_BYTES, decode_reply, encode_request};
use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What is gathered before it is sent.
const GATHERED_BYTES: usize = 256 << 10;
/// Bytes of replies that are read ahead.
const AHEAD_BYTES: usize = 128 << 10;

/// Why a connection is no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It broke. Another one may be had.
    Broken(String),
    /// The server says what means nothing.
    Nonsense(String),
}

/// What comes from the server.
pub(super) enum FromServer {
    /// The reply to a request.
    Reply {
        cookie: u64,
        /// 0: none.
        error: u32,
        /// What was read.
        data: Vec<u8>,
    },
    /// Nothing more comes.
    Ended(End),
}

/// What follows a request.
enum Payload {
    None,
    Bytes(Arc<[u8]>, usize),
    Zeroes,
}

struct Packet {
    header: [u8; REQUEST_BYTES],
    payload: Payload,
    bytes: usize,
}

/// By the cookies of what was asked, how many bytes the answer brings.
type Expected = Arc<Mutex<HashMap<u64, usize>>>;

/// A connection in use.
pub(super) struct Link {
    pub export: RemoteExport,
    outgoing: Sender<Packet>,
    incoming: Receiver<FromServer>,
    expected: Expected,
    stream: Stream,
    /// A request was answered that was not only sent again.
    pub is_of_use: bool,
}

impl Link {
    /// Starts the threads. `waker` ends the wait of the loop when there is something from the server.
    pub fn start(connection: Connection, waker: Waker) -> io::Result<Link> {
        connection.wait_for_ever()?;
        let Connection { stream, export } = connection;
        let (outgoing, packets) = channel();
        let (events, incoming) = channel();
        let expected = Expected::default();
        let (write, read) = (stream.try_clone()?, stream.try_clone()?);
        let known = Arc::clone(&expected);
        thread::Builder::new().spawn(move || send(write, &packets))?;
        thread::Builder::new().spawn(move || {
            let end = receive(read, &known, &events, &waker);
            // Nobody is left to hear it when the disk is gone.
            let _ = events.send(FromServer::Ended(end));
            waker.wake();
        })?;
        Ok(Link { export, outgoing, incoming, expected, stream, is_of_use: false })
    }

    /// Sends a request about `length` bytes, with what is written.
    pub fn send(
        &self,
        cookie: u64,
        command: Command,
        offset: u64,
        length: u32,
        written: Option<&Written>,
    ) {
        let payload = match (command, written) {
            (Command::Write { .. }, Some(Written::Bytes(bytes, from))) => {
                Payload::Bytes(Arc::clone(bytes), *from)
            }
            (Command::Write { .. }, _) => Payload::Zeroes,
            _ => Payload::None,
        };
        let data = if command == Command::Read { length as usize } else { 0 };
        lock(&self.expected).insert(cookie, data);
        let header = encode_request(command, cookie, offset, length);
        // A thread that has ended has ended the connection, which is told of.
        let _ = self.outgoing.send(Packet { header, payload, bytes: length as usize });
    }

    /// Something from the server, if there is something.
    pub fn poll(&self) -> Option<FromServer> {
        self.incoming.try_recv().ok()
    }

    /// Waits for something from the server.
    pub fn wait(&self, at_most: Duration) -> Option<FromServer> {
        match self.incoming.recv_timeout(at_most) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(FromServer::Ended(End::Broken("its thread has ended".to_owned())))
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stream.end();
    }
}

fn lock(expected: &Expected) -> std::sync::MutexGuard<'_, HashMap<u64, usize>> {
    expected.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends packets until there are no more, or the connection fails.
fn send(mut stream: Stream, packets: &Receiver<Packet>) {
    let mut gathered = Vec::new();
    while let Ok(packet) = packets.recv() {
        gather(&mut gathered, &packet);
        while gathered.len() < GATHERED_BYTES
            && let Ok(packet) = packets.try_recv()
        {
            gather(&mut gathered, &packet);
        }
        if stream.write_all(&gathered).is_err() {
            // Who reads is told why.
            stream.end();
            return;
        }
        gathered.clear();
        gathered.shrink_to(2 * GATHERED_BYTES);
    }
}

fn gather(gathered: &mut Vec<u8>, packet: &Packet) {
    gathered.extend(packet.header);
    match &packet.payload {
        Payload::None => {}
        Payload::Bytes(bytes, from) => gathered.extend(&bytes[*from..*from + packet.bytes]),
        Payload::Zeroes => gathered.resize(gathered.len() + packet.bytes, 0),
    }
}

/// Takes replies until the connection ends.
fn receive(stream: Stream, expected: &Expected, events: &Sender<FromServer>, waker: &Waker) -> End {
    let mut stream = BufReader::with_capacity(AHEAD_BYTES, stream);
    loop {
        match receive_one(&mut stream, expected) {
            Ok(reply) => {
                if events.send(reply).is_err() {
                    return End::Broken("nobody waits for it".to_owned());
                }
                waker.wake();
            }
            Err(end) => return end,
        }
    }
}

fn receive_one(stream: &mut impl Read, expected: &Expected) -> Result<FromServer, End> {
    let broken = |error: io::Error| {
        End::Broken(match error.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => error.to_string(),
        })
    };
    let mut header = [0; REPLY_BYTES];
    stream.read_exact(&mut header).map_err(broken)?;
    let Some((error, cookie)) = decode_reply(&header) else {
        return Err(End::Nonsense("what comes is no reply".to_owned()));
    };
    let Some(bytes) = lock(expected).remove(&cookie) else {
        return Err(End::Nonsense(format!("it answers a request {cookie} that was not made")));
    };
    let mut data = Vec::new();
    if error == 0 && bytes > 0 {
        data.resize(bytes, 0);
        stream.read_exact(&mut data).map_err(broken)?;
    }
    Ok(FromServer::Reply { cookie, error, data })
}
