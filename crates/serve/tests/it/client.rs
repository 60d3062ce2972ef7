//! A client that says exactly what a test tells it to, right or wrong.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;

pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;

pub const ACK: u32 = 1;
pub const SERVER: u32 = 2;
pub const INFORMATION: u32 = 3;
pub const UNSUPPORTED: u32 = 0x8000_0001;
pub const INVALID: u32 = 0x8000_0003;
pub const UNKNOWN: u32 = 0x8000_0006;
pub const TOO_BIG: u32 = 0x8000_0009;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const WRITE_ZEROES: u16 = 6;

pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;

/// Longer than any answer takes, shorter than a test that hangs.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    pub stream: UnixStream,
}

impl Client {
    /// Connected, nothing said or heard.
    pub fn connect(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).expect("a listening server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Client { stream }
    }

    /// Greeted, client flags sent: options may follow.
    pub fn haggling(socket: &Path) -> Client {
        let mut client = Client::connect(socket);
        client.greet(0b11);
        client
    }

    /// In the transmission phase.
    pub fn ready(socket: &Path) -> Client {
        let mut client = Client::haggling(socket);
        client.option(GO, &go_data(b"", &[]));
        assert_eq!(client.option_reply().1, INFORMATION);
        assert_eq!(client.option_reply(), (GO, ACK, vec![]));
        client
    }

    pub fn greet(&mut self, flags: u32) {
        let greeting = self.bytes(18);
        assert_eq!(greeting[..8], NBD_MAGIC.to_be_bytes());
        assert_eq!(greeting[8..16], OPTION_MAGIC.to_be_bytes());
        assert_eq!(greeting[16..], 0b11u16.to_be_bytes());
        self.send(&flags.to_be_bytes());
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a server that reads");
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("an answer");
        bytes
    }

    /// True when the server has closed the connection and said nothing more.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    pub fn option(&mut self, option: u32, data: &[u8]) {
        self.send(&option_bytes(option, data));
    }

    /// The option, the kind and the data of a reply.
    pub fn option_reply(&mut self) -> (u32, u32, Vec<u8>) {
        let header = self.bytes(20);
        assert_eq!(header[..8], OPTION_REPLY_MAGIC.to_be_bytes());
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let data = self.bytes(word(16) as usize);
        (word(8), word(12), data)
    }

    pub fn request(&mut self, command: u16, flags: u16, cookie: u64, offset: u64, length: u32) {
        self.send(&request_bytes(command, flags, cookie, offset, length));
    }

    /// The error and the cookie of a reply.
    pub fn reply(&mut self) -> (u32, u64) {
        let header = self.bytes(16);
        assert_eq!(header[..4], SIMPLE_REPLY_MAGIC.to_be_bytes());
        let error = u32::from_be_bytes(header[4..8].try_into().expect("4 bytes"));
        let cookie = u64::from_be_bytes(header[8..].try_into().expect("8 bytes"));
        (error, cookie)
    }

    /// A command without data, carried out; its error.
    pub fn call(&mut self, command: u16, flags: u16, offset: u64, length: u32) -> u32 {
        self.request(command, flags, 77, offset, length);
        let (error, cookie) = self.reply();
        assert_eq!(cookie, 77);
        error
    }

    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> u32 {
        self.request(WRITE, flags, 78, offset, data.len() as u32);
        self.send(data);
        let (error, cookie) = self.reply();
        assert_eq!(cookie, 78);
        error
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        match self.call(READ, 0, offset, length) {
            0 => Ok(self.bytes(length as usize)),
            error => Err(error),
        }
    }
}

pub fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of GO and INFO.
pub fn go_data(name: &[u8], wanted: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name);
    data.extend((wanted.len() as u16).to_be_bytes());
    data.extend(wanted.iter().flat_map(|kind| kind.to_be_bytes()));
    data
}

pub fn request_bytes(command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}
