//! The fixed newstyle handshake: from the greeting to the transmission phase.

use super::{BLOCK_BYTES_MIN, BLOCK_BYTES_PREFERRED, PAYLOAD_BYTES_MAX, be_u16, be_u32, be_u64};
use std::rc::Rc;

/// An option with more data is refused and its data skipped unread.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// The longest export name the protocol allows.
pub const NAME_BYTES_MAX: usize = 4096;
/// A client that sends more options has no honest purpose.
pub const OPTIONS_MAX: u32 = 1000;
/// Bytes the server sends before anything else.
pub const GREETING_BYTES: usize = 18;

pub(super) const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const OPTION_HEADER_BYTES: usize = 16;

pub(super) const HANDSHAKE_FIXED_NEWSTYLE: u16 = 1 << 0;
pub(super) const HANDSHAKE_NO_ZEROES: u16 = 1 << 1;

pub(super) const OPT_EXPORT_NAME: u32 = 1;
pub(super) const OPT_ABORT: u32 = 2;
pub(super) const OPT_LIST: u32 = 3;
const OPT_INFO: u32 = 6;
pub(super) const OPT_GO: u32 = 7;

pub(super) const REP_ACK: u32 = 1;
pub(super) const REP_SERVER: u32 = 2;
pub(super) const REP_INFO: u32 = 3;
pub(super) const REP_ERR_UNSUP: u32 = (1 << 31) | 1;
const REP_ERR_INVALID: u32 = (1 << 31) | 3;
pub(super) const REP_ERR_TLS_REQUIRED: u32 = (1 << 31) | 5;
pub(super) const REP_ERR_UNKNOWN: u32 = (1 << 31) | 6;
const REP_ERR_TOO_BIG: u32 = (1 << 31) | 9;

pub(super) const INFO_EXPORT: u16 = 0;
const INFO_NAME: u16 = 1;
const INFO_DESCRIPTION: u16 = 2;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

const HAS_FLAGS: u16 = 1 << 0;
pub(super) const READ_ONLY: u16 = 1 << 1;
pub(super) const SEND_FLUSH: u16 = 1 << 2;
pub(super) const SEND_FUA: u16 = 1 << 3;
const ROTATIONAL: u16 = 1 << 4;
const SEND_TRIM: u16 = 1 << 5;
pub(super) const SEND_WRITE_ZEROES: u16 = 1 << 6;
const CAN_MULTI_CONN: u16 = 1 << 8;
/// What every export can do.
const COMMON_FLAGS: u16 = HAS_FLAGS | SEND_FLUSH | ROTATIONAL | CAN_MULTI_CONN;
/// What an export that can be written can do beside that.
const WRITE_FLAGS: u16 = SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES;

/// The device, or a part of it, as clients see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Its name. The empty name finds the first export of a server as well.
    pub name: String,
    /// A line for people.
    pub description: String,
    /// Where it begins on the device, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Every request that would change something is refused.
    pub is_read_only: bool,
}

impl Export {
    fn transmission_flags(&self) -> u16 {
        match self.is_read_only {
            true => COMMON_FLAGS | READ_ONLY,
            false => COMMON_FLAGS | WRITE_FLAGS,
        }
    }
}

/// What follows after the bytes consumed so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// More bytes of the client are needed.
    Input,
    /// The next byte belongs to the first request.
    Transmission,
    /// Send what is in the output, then close.
    Close,
}

enum State {
    ClientFlags,
    Option,
    /// Data of a refused option that is yet to come.
    Skip(u32),
    Finished(Next),
}

/// The server's side of one handshake.
pub struct Handshake {
    exports: Rc<[Export]>,
    /// The export that the client has chosen.
    chosen: usize,
    state: State,
    no_zeroes: bool,
    options: u32,
}

/// The first bytes the server sends.
pub fn greeting() -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..8].copy_from_slice(&NBD_MAGIC.to_be_bytes());
    bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
    let flags = HANDSHAKE_FIXED_NEWSTYLE | HANDSHAKE_NO_ZEROES;
    bytes[16..].copy_from_slice(&flags.to_be_bytes());
    bytes
}

impl Handshake {
    /// A handshake whose [`greeting`] has been sent. Panics when there is no export.
    pub fn new(exports: Rc<[Export]>) -> Handshake {
        assert!(!exports.is_empty(), "a server without an export");
        Handshake { exports, chosen: 0, state: State::ClientFlags, no_zeroes: false, options: 0 }
    }

    /// Which export requests are for, once [`Next::Transmission`] has been returned.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// Takes one message from the start of `input` and appends the answer to `output`. Returns
    /// the bytes consumed: none when the message is not yet complete. An input of
    /// [`OPTION_BYTES_MAX`] bytes and a header holds any message.
    pub fn advance(&mut self, input: &[u8], output: &mut Vec<u8>) -> (usize, Next) {
        match self.state {
            State::ClientFlags => self.take_client_flags(input),
            State::Option => self.take_option(input, output),
            State::Skip(left) => {
                let skipped = input.len().min(left as usize);
                self.state = match left - skipped as u32 {
                    0 => State::Option,
                    left => State::Skip(left),
                };
                (skipped, Next::Input)
            }
            State::Finished(next) => (0, next),
        }
    }

    fn take_client_flags(&mut self, input: &[u8]) -> (usize, Next) {
        if input.len() < 4 {
            return (0, Next::Input);
        }
        let flags = be_u32(input, 0);
        let known = u32::from(HANDSHAKE_FIXED_NEWSTYLE | HANDSHAKE_NO_ZEROES);
        if flags & !known != 0 {
            return (4, self.finish(Next::Close));
        }
        self.no_zeroes = flags & u32::from(HANDSHAKE_NO_ZEROES) != 0;
        self.state = State::Option;
        (4, Next::Input)
    }

    fn take_option(&mut self, input: &[u8], output: &mut Vec<u8>) -> (usize, Next) {
        if input.len() < OPTION_HEADER_BYTES {
            return (0, Next::Input);
        }
        let (magic, option, length) = (be_u64(input, 0), be_u32(input, 8), be_u32(input, 12));
        if magic != OPTION_MAGIC || self.options == OPTIONS_MAX {
            return (0, self.finish(Next::Close));
        }
        if length > OPTION_BYTES_MAX {
            self.options += 1;
            if option == OPT_EXPORT_NAME {
                return (0, self.finish(Next::Close));
            }
            reply(output, option, REP_ERR_TOO_BIG, &[]);
            self.state = State::Skip(length);
            return (OPTION_HEADER_BYTES, Next::Input);
        }
        let end = OPTION_HEADER_BYTES + length as usize;
        if input.len() < end {
            return (0, Next::Input);
        }
        self.options += 1;
        let data = &input[OPTION_HEADER_BYTES..end];
        (end, self.answer(option, data, output))
    }

    fn answer(&mut self, option: u32, data: &[u8], output: &mut Vec<u8>) -> Next {
        match option {
            OPT_EXPORT_NAME => {
                // This option has no way to say no, other than to close.
                let Some(chosen) = self.find(data) else {
                    return self.finish(Next::Close);
                };
                self.chosen = chosen;
                let export = &self.exports[chosen];
                output.extend(export.bytes.to_be_bytes());
                output.extend(export.transmission_flags().to_be_bytes());
                if !self.no_zeroes {
                    output.extend([0; 124]);
                }
                self.finish(Next::Transmission)
            }
            OPT_ABORT => {
                reply(output, option, REP_ACK, &[]);
                self.finish(Next::Close)
            }
            OPT_LIST => {
                if !data.is_empty() {
                    reply(output, option, REP_ERR_INVALID, &[]);
                    return Next::Input;
                }
                for export in self.exports.iter() {
                    let name = export.name.as_bytes();
                    let length = (name.len() as u32).to_be_bytes();
                    let description = export.description.as_bytes();
                    reply(output, option, REP_SERVER, &[&length, name, description]);
                }
                reply(output, option, REP_ACK, &[]);
                Next::Input
            }
            OPT_INFO | OPT_GO => match self.inform(option, data, output) {
                Ok(chosen) if option == OPT_GO => {
                    self.chosen = chosen;
                    self.finish(Next::Transmission)
                }
                Ok(_) => Next::Input,
                Err(error) => {
                    reply(output, option, error, &[]);
                    Next::Input
                }
            },
            _ => {
                reply(output, option, REP_ERR_UNSUP, &[]);
                Next::Input
            }
        }
    }

    /// Answers INFO or GO and returns the export it is about; the error is the type of the reply to
    /// send instead.
    fn inform(&self, option: u32, data: &[u8], output: &mut Vec<u8>) -> Result<usize, u32> {
        if data.len() < 6 {
            return Err(REP_ERR_INVALID);
        }
        let name_bytes = be_u32(data, 0) as usize;
        if name_bytes > data.len() - 6 {
            return Err(REP_ERR_INVALID);
        }
        let name = &data[4..4 + name_bytes];
        let wanted = &data[4 + name_bytes + 2..];
        if wanted.len() != 2 * usize::from(be_u16(data, 4 + name_bytes)) {
            return Err(REP_ERR_INVALID);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(REP_ERR_TOO_BIG);
        }
        if name.contains(&0) {
            return Err(REP_ERR_INVALID);
        }
        let chosen = self.find(name).ok_or(REP_ERR_UNKNOWN)?;
        let export = &self.exports[chosen];
        let mut info = |kind: u16, parts: [&[u8]; 3]| {
            let kind = kind.to_be_bytes();
            reply(output, option, REP_INFO, &[&kind, parts[0], parts[1], parts[2]]);
        };
        let flags = export.transmission_flags().to_be_bytes();
        info(INFO_EXPORT, [&export.bytes.to_be_bytes(), &flags, &[]]);
        let asks = |kind: u16| wanted.chunks_exact(2).any(|pair| be_u16(pair, 0) == kind);
        if asks(INFO_NAME) {
            info(INFO_NAME, [export.name.as_bytes(), &[], &[]]);
        }
        if asks(INFO_DESCRIPTION) {
            info(INFO_DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
        }
        if asks(INFO_BLOCK_SIZE) {
            let sizes = [BLOCK_BYTES_MIN, BLOCK_BYTES_PREFERRED, PAYLOAD_BYTES_MAX];
            let [min, preferred, max] = sizes.map(u32::to_be_bytes);
            info(INFO_BLOCK_SIZE, [&min, &preferred, &max]);
        }
        reply(output, option, REP_ACK, &[]);
        Ok(chosen)
    }

    /// The export of a name.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let is_it = |export: &Export| name.is_empty() || name == export.name.as_bytes();
        self.exports.iter().position(is_it)
    }

    fn finish(&mut self, next: Next) -> Next {
        self.state = State::Finished(next);
        next
    }
}

fn reply(output: &mut Vec<u8>, option: u32, kind: u32, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    output.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    output.extend(option.to_be_bytes());
    output.extend(kind.to_be_bytes());
    output.extend((length as u32).to_be_bytes());
    for part in parts {
        output.extend_from_slice(part);
    }
}
