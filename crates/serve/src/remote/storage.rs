//! A remote disk one request at a time.

use super::RemoteAddress;
use super::connection::{Connection, Stream, words_of};
use crate::nbd::client::RemoteExport;
use crate::nbd::transmission::{Command, REPLY_BYTES, decode_reply, encode_request};
use imbrex_core::operation::Durability;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Read, Write};

/// A remote disk as a file is: each call waits until it has its answer. Once one has failed, or was not answered
/// in time, nobody knows what comes next on the connection: every later call fails.
pub struct RemoteStorage {
    connection: RefCell<Connection>,
    /// Requests that were made; the last one's cookie.
    asked: Cell<u64>,
    is_out_of_step: Cell<bool>,
}

impl RemoteStorage {
    /// Connects to the disk at an address.
    ///
    /// # Errors
    /// When that cannot be done, in words that do not name the address.
    pub fn open(address: &RemoteAddress) -> io::Result<RemoteStorage> {
        let connection = Connection::open(address);
        let connection = connection.map_err(|error| io::Error::other(words_of(&error)))?;
        Ok(RemoteStorage::over(connection))
    }

    pub(super) fn over(connection: Connection) -> RemoteStorage {
        RemoteStorage {
            connection: RefCell::new(connection),
            asked: Cell::new(0),
            is_out_of_step: Cell::new(false),
        }
    }

    pub(super) fn into_connection(self) -> Connection {
        self.connection.into_inner()
    }

    /// What the server says of it.
    pub fn export(&self) -> RemoteExport {
        self.connection.borrow().export
    }

    /// Fills `bytes` from an offset on.
    ///
    /// # Errors
    /// As the server and the connection say.
    pub fn read_exact_at(&self, bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        let most = self.export().payload_bytes_max as usize;
        for part in bytes.chunks_mut(most) {
            self.ask(Command::Read, offset, part.len() as u32, &[])?;
            self.in_step(|stream| stream.read_exact(part))?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes all of `bytes` from an offset on.
    ///
    /// # Errors
    /// As the server and the connection say.
    pub fn write_all_at(&self, bytes: &[u8], mut offset: u64) -> io::Result<()> {
        let most = self.export().payload_bytes_max as usize;
        let write = Command::Write { durability: Durability::Cached };
        for part in bytes.chunks(most) {
            self.ask(write, offset, part.len() as u32, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// As the server and the connection say.
    pub fn sync_data(&self) -> io::Result<()> {
        self.ask(Command::Flush, 0, 0, &[])
    }

    /// Does something with the connection, which is of no use any more when that fails.
    fn in_step<T>(&self, does: impl FnOnce(&mut Stream) -> io::Result<T>) -> io::Result<T> {
        if self.is_out_of_step.get() {
            return Err(io::Error::other("an earlier request was not answered"));
        }
        let done = does(&mut self.connection.borrow_mut().stream);
        self.is_out_of_step.set(done.is_err());
        done
    }

    /// Sends a request and takes the answer, but for the data of a read.
    fn ask(&self, command: Command, offset: u64, length: u32, payload: &[u8]) -> io::Result<()> {
        let cookie = self.asked.get() + 1;
        self.asked.set(cookie);
        let error = self.in_step(|stream| {
            stream.write_all(&encode_request(command, cookie, offset, length))?;
            stream.write_all(payload)?;
            let mut reply = [0; REPLY_BYTES];
            stream.read_exact(&mut reply)?;
            match decode_reply(&reply) {
                Some((error, answered)) if answered == cookie => Ok(error),
                _ => Err(io::Error::other("the server answers what was not asked")),
            }
        })?;
        match error {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error as i32)),
        }
    }
}

impl fmt::Debug for RemoteStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStorage").field("export", &self.export()).finish()
    }
}
