//! A connection to an export: the socket, and what the server says of the export.

use super::{RemoteAddress, Transport};
use crate::nbd::client::{HandshakeError, RemoteExport, shake_hands};
use rustix::net::sockopt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A server that takes longer for the handshake, or for a single request, counts as away.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A silent peer is asked for a sign of life after this long, then again and again.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(2);
const KEEP_ALIVE_TIMES: u32 = 3;
/// What is sent must be taken within this time, in milliseconds.
const SENT_TAKEN_MS: u32 = 11_000;

/// A socket of either kind.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(transport: &Transport) -> io::Result<Stream> {
        match transport {
            Transport::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            Transport::Tcp { host, port } => {
                let mut last = None;
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, PATIENCE) {
                        Ok(stream) => return watched(stream).map(Stream::Tcp),
                        Err(error) => last = Some(error),
                    }
                }
                let none = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                Err(last.unwrap_or_else(none))
            }
        }
    }

    pub fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
        }
    }

    /// How long a read or a write may wait; `None`: for ever.
    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
        }
    }

    /// Ends the connection. Whoever reads or writes it in another thread gets an error.
    pub fn end(&self) {
        // One that has ended already is what is wanted.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// A host that is cut off says nothing. It is noticed all the same.
fn watched(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&stream, KEEP_ALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(&stream, KEEP_ALIVE_TIMES)?;
    sockopt::set_tcp_user_timeout(&stream, SENT_TAKEN_MS)?;
    Ok(stream)
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(bytes),
            Stream::Tcp(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write_vectored(slices),
            Stream::Tcp(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket that is read and written until a time, however little comes at once.
struct Timed<'s> {
    stream: &'s mut Stream,
    until: Instant,
}

impl Timed<'_> {
    fn in_time(&mut self) -> io::Result<&mut Stream> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_patience(Some(left))?;
        Ok(self.stream)
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.in_time()?.read(bytes)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.in_time()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection whose next byte begins a request.
#[derive(Debug)]
pub(super) struct Connection {
    pub stream: Stream,
    pub export: RemoteExport,
}

impl Connection {
    /// Connects to a server and agrees with it on the export.
    pub fn open(address: &RemoteAddress) -> Result<Connection, HandshakeError> {
        let mut stream = Stream::connect(&address.transport)?;
        let until = Instant::now() + PATIENCE;
        let export = shake_hands(&mut Timed { stream: &mut stream, until }, &address.export)?;
        stream.set_patience(Some(PATIENCE))?;
        Ok(Connection { stream, export })
    }

    /// From now on nobody knows how long an answer may take.
    pub fn wait_for_ever(&self) -> io::Result<()> {
        self.stream.set_patience(None)
    }
}

/// What is said of a connection that could not be made.
pub(super) fn words_of(error: &HandshakeError) -> String {
    match error {
        HandshakeError::Io(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            format!("no answer within {} s", PATIENCE.as_secs())
        }
        HandshakeError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closes the connection".to_owned()
        }
        error => error.to_string(),
    }
}
