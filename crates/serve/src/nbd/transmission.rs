//! Requests and simple replies.

use super::{PAYLOAD_BYTES_MAX, be_u16, be_u32, be_u64};
use imbrex_core::error::IoError;
use imbrex_core::operation::Durability;

/// Bytes of a request, its payload aside.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply, its payload aside.
pub const REPLY_BYTES: usize = 16;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;

const FLAG_FUA: u16 = 1 << 0;
const FLAG_NO_HOLE: u16 = 1 << 1;

/// The error numbers of the protocol that this server sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Errno {
    /// EPERM.
    NotPermitted = 1,
    /// EIO.
    Io = 5,
    /// EINVAL.
    Invalid = 22,
    /// ENOSPC.
    NoSpace = 28,
    /// ESHUTDOWN.
    ShutDown = 108,
}

impl From<IoError> for Errno {
    fn from(error: IoError) -> Errno {
        match error {
            IoError::Medium | IoError::Lost | IoError::NoCopy | IoError::ZoneOffline => Errno::Io,
            IoError::NoSpace => Errno::NoSpace,
            IoError::NotPermitted | IoError::ZoneResources | IoError::ZoneReadOnly => {
                Errno::NotPermitted
            }
            IoError::Invalid
            | IoError::UnalignedWrite
            | IoError::WriteBoundary
            | IoError::ReadBoundary
            | IoError::ReadInvalidData
            | IoError::InvalidField => Errno::Invalid,
            IoError::ShutDown => Errno::ShutDown,
        }
    }
}

/// A request as it arrived, its fields not yet judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestHeader {
    flags: u16,
    command: u16,
    /// Chosen by the client, returned with the reply.
    pub cookie: u64,
    /// First byte of the device.
    pub offset: u64,
    /// Bytes of the device.
    pub length: u32,
}

/// What a client wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Send the bytes.
    Read,
    /// Store the payload.
    Write {
        /// When it may be answered.
        durability: Durability,
    },
    /// The bytes are no longer needed.
    Trim {
        /// When it may be answered.
        durability: Durability,
    },
    /// Make the bytes zero.
    WriteZeroes {
        /// When it may be answered.
        durability: Durability,
        /// The space may be given up.
        may_unmap: bool,
    },
    /// Make every write answered so far durable.
    Flush,
    /// Answer what is outstanding, then close.
    Disconnect,
}

impl RequestHeader {
    /// The request in the first [`REQUEST_BYTES`] bytes; `None` when they are not one, after which
    /// nothing on the connection can be understood. Panics when there are fewer bytes.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<RequestHeader> {
        (be_u32(bytes, 0) == REQUEST_MAGIC).then(|| RequestHeader {
            flags: be_u16(bytes, 4),
            command: be_u16(bytes, 6),
            cookie: be_u64(bytes, 8),
            offset: be_u64(bytes, 16),
            length: be_u32(bytes, 24),
        })
    }

    /// Bytes that follow the request. A command nobody knows has none, so that the next request
    /// is found all the same.
    #[inline]
    pub fn payload_bytes(&self) -> u32 {
        if self.command == WRITE { self.length } else { 0 }
    }

    /// True when it asks for something to be changed, whatever else may be wrong with it.
    #[inline]
    pub fn is_change(&self) -> bool {
        matches!(self.command, WRITE | TRIM | WRITE_ZEROES)
    }

    /// What is wanted, on a device of `device_bytes` bytes.
    ///
    /// # Errors
    /// The error number to answer with: invalid for an unknown command or flag and for bytes
    /// beyond the end, except that a write beyond the end finds no space.
    #[inline]
    pub fn command(&self, device_bytes: u64) -> Result<Command, Errno> {
        let durability =
            if self.flags & FLAG_FUA != 0 { Durability::Durable } else { Durability::Cached };
        let (command, flags, past_end) = match self.command {
            READ => (Command::Read, 0, Errno::Invalid),
            WRITE => (Command::Write { durability }, 0, Errno::NoSpace),
            TRIM => (Command::Trim { durability }, 0, Errno::Invalid),
            WRITE_ZEROES => {
                let may_unmap = self.flags & FLAG_NO_HOLE == 0;
                let command = Command::WriteZeroes { durability, may_unmap };
                (command, FLAG_NO_HOLE, Errno::NoSpace)
            }
            FLUSH => (Command::Flush, 0, Errno::Invalid),
            DISCONNECT => return Ok(Command::Disconnect),
            _ => return Err(Errno::Invalid),
        };
        if self.flags & !(flags | FLAG_FUA) != 0 {
            return Err(Errno::Invalid);
        }
        if command == Command::Flush {
            return Ok(command);
        }
        let has_payload = matches!(command, Command::Read | Command::Write { .. });
        if has_payload && self.length > PAYLOAD_BYTES_MAX {
            return Err(Errno::Invalid);
        }
        match self.offset.checked_add(u64::from(self.length)) {
            Some(end) if end <= device_bytes => Ok(command),
            _ => Err(past_end),
        }
    }
}

/// A simple reply; the data of a successful read follows it.
#[inline]
pub fn encode_reply(cookie: u64, error: Option<Errno>) -> [u8; REPLY_BYTES] {
    let mut reply = [0; REPLY_BYTES];
    reply[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply[4..8].copy_from_slice(&error.map_or(0, |errno| errno as u32).to_be_bytes());
    reply[8..].copy_from_slice(&cookie.to_be_bytes());
    reply
}

/// A request of a client, its payload aside.
#[inline]
pub fn encode_request(
    command: Command,
    cookie: u64,
    offset: u64,
    length: u32,
) -> [u8; REQUEST_BYTES] {
    let fua = |durability| if durability == Durability::Durable { FLAG_FUA } else { 0 };
    let (command, flags) = match command {
        Command::Read => (READ, 0),
        Command::Write { durability } => (WRITE, fua(durability)),
        Command::Trim { durability } => (TRIM, fua(durability)),
        Command::WriteZeroes { durability, may_unmap } => {
            (WRITE_ZEROES, fua(durability) | if may_unmap { 0 } else { FLAG_NO_HOLE })
        }
        Command::Flush => (FLUSH, 0),
        Command::Disconnect => (DISCONNECT, 0),
    };
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&command.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The error number, 0 for none, and the cookie of a simple reply; `None` when these bytes are none, after
/// which nothing on the connection can be understood.
#[inline]
pub fn decode_reply(bytes: &[u8; REPLY_BYTES]) -> Option<(u32, u64)> {
    (be_u32(bytes, 0) == SIMPLE_REPLY_MAGIC).then(|| (be_u32(bytes, 4), be_u64(bytes, 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u16, flags: u16, offset: u64, length: u32) -> RequestHeader {
        RequestHeader { flags, command, cookie: 7, offset, length }
    }

    #[test]
    fn a_request_is_read_field_by_field() {
        let mut bytes = Vec::new();
        bytes.extend(REQUEST_MAGIC.to_be_bytes());
        bytes.extend(FLAG_FUA.to_be_bytes());
        bytes.extend(WRITE.to_be_bytes());
        bytes.extend(0x0102_0304_0506_0708u64.to_be_bytes());
        bytes.extend(4096u64.to_be_bytes());
        bytes.extend(512u32.to_be_bytes());
        let header = RequestHeader::decode(&bytes).expect("a request");
        assert_eq!(header.cookie, 0x0102_0304_0506_0708);
        assert_eq!((header.offset, header.length), (4096, 512));
        assert_eq!(header.payload_bytes(), 512);
        let durability = Durability::Durable;
        assert_eq!(header.command(8192), Ok(Command::Write { durability }));
        bytes[0] ^= 1;
        assert_eq!(RequestHeader::decode(&bytes), None);
    }

    #[test]
    fn bytes_past_the_end_are_refused_without_overflow() {
        let size = 1 << 20;
        for (command, errno) in [
            (READ, Errno::Invalid),
            (TRIM, Errno::Invalid),
            (WRITE, Errno::NoSpace),
            (WRITE_ZEROES, Errno::NoSpace),
        ] {
            assert_eq!(header(command, 0, size, 1).command(size), Err(errno));
            assert_eq!(header(command, 0, size - 1, 2).command(size), Err(errno));
            assert_eq!(header(command, 0, u64::MAX, 2).command(size), Err(errno));
            assert!(header(command, 0, size - 1, 1).command(size).is_ok());
        }
    }

    #[test]
    fn flags_are_accepted_where_they_mean_something() {
        for command in [READ, WRITE, FLUSH, TRIM, WRITE_ZEROES] {
            assert!(header(command, FLAG_FUA, 0, 1).command(9).is_ok());
            assert_eq!(header(command, 1 << 4, 0, 1).command(9), Err(Errno::Invalid));
            let no_hole = header(command, FLAG_NO_HOLE, 0, 1).command(9);
            assert_eq!(no_hole.is_ok(), command == WRITE_ZEROES);
        }
        assert_eq!(header(5, 0, 0, 1).command(9), Err(Errno::Invalid), "cache is not offered");
        let large = header(READ, 0, 0, PAYLOAD_BYTES_MAX + 1);
        assert_eq!(large.command(u64::MAX), Err(Errno::Invalid));
        let large = header(TRIM, 0, 0, PAYLOAD_BYTES_MAX + 1);
        assert!(large.command(u64::MAX).is_ok(), "a trim has no payload");
    }

    #[test]
    fn a_request_that_is_written_is_read_as_it_was() {
        let (cached, durable) = (Durability::Cached, Durability::Durable);
        for command in [
            Command::Read,
            Command::Write { durability: cached },
            Command::Write { durability: durable },
            Command::Trim { durability: durable },
            Command::WriteZeroes { durability: cached, may_unmap: true },
            Command::WriteZeroes { durability: durable, may_unmap: false },
            Command::Flush,
            Command::Disconnect,
        ] {
            let bytes = encode_request(command, 7, 4096, 512);
            let header = RequestHeader::decode(&bytes).expect("a request");
            assert_eq!((header.cookie, header.offset, header.length), (7, 4096, 512));
            assert_eq!(header.command(8192), Ok(command));
        }
    }

    #[test]
    fn a_reply_carries_the_cookie_and_the_error() {
        let reply = encode_reply(0xabcd, Some(Errno::NoSpace));
        assert_eq!(decode_reply(&reply), Some((28, 0xabcd)));
        assert_eq!(decode_reply(&[0; REPLY_BYTES]), None);
        assert_eq!(be_u32(&reply, 0), SIMPLE_REPLY_MAGIC);
        assert_eq!(be_u32(&reply, 4), 28);
        assert_eq!(be_u64(&reply, 8), 0xabcd);
    }
}
