//! The client's side of the handshake: from the greeting of a server to the transmission phase.

use super::handshake::{
    GREETING_BYTES, HANDSHAKE_FIXED_NEWSTYLE, HANDSHAKE_NO_ZEROES, INFO_BLOCK_SIZE, INFO_EXPORT,
    NBD_MAGIC, OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_LIST, OPTION_MAGIC, OPTION_REPLY_MAGIC,
    READ_ONLY, REP_ACK, REP_ERR_TLS_REQUIRED, REP_ERR_UNKNOWN, REP_ERR_UNSUP, REP_INFO, REP_SERVER,
    SEND_FLUSH, SEND_FUA, SEND_WRITE_ZEROES,
};
use super::{PAYLOAD_BYTES_MAX, be_u16, be_u32, be_u64};
use std::io::{self, Read, Write};

/// No honest answer of a server to an option is longer.
const REPLY_BYTES_MAX: u32 = 64 << 10;
/// A server that answers an option in more parts has no honest purpose.
const REPLIES_MAX: u32 = 1000;
/// So many exports are named where the right one is not there.
const NAMED_MAX: usize = 16;
/// So many bytes of each.
const NAME_SHOWN_MAX: usize = 64;
/// Bytes of a reply to an option before its data.
const REPLY_HEADER_BYTES: usize = 20;
/// What the protocol lets a client send where the server states nothing.
const DEFAULT_PAYLOAD_BYTES_MAX: u32 = PAYLOAD_BYTES_MAX;
/// Requests begin and end at multiples of so many bytes.
const BLOCK_BYTES: u32 = 4096;
/// Zeroes that a server sends behind the export where nobody agreed to leave them out.
const PADDING_BYTES: usize = 124;

/// What a server says of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteExport {
    /// Its size in bytes.
    pub bytes: u64,
    /// Nothing can be written to it.
    pub is_read_only: bool,
    /// A write can be asked to be durable before it is answered.
    pub takes_fua: bool,
    /// Zeroes can be written without being sent.
    pub takes_zeroes: bool,
    /// Most bytes of one read or write.
    pub payload_bytes_max: u32,
}

/// Why there is no export to be used.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection failed. It may be better another time.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server says no, or what it says cannot be used.
    #[error("{0}")]
    Refused(String),
}

fn refused<T>(words: impl Into<String>) -> Result<T, HandshakeError> {
    Err(HandshakeError::Refused(words.into()))
}

/// A reply to an option.
struct Reply {
    kind: u32,
    data: Vec<u8>,
}

/// Agrees with a server on an export by its name. After that the next byte that is sent begins the first
/// request.
///
/// # Errors
/// When the connection fails, what is there is no server, it does not have the export, or that cannot be
/// written durably.
pub fn shake_hands(
    stream: &mut (impl Read + Write),
    name: &str,
) -> Result<RemoteExport, HandshakeError> {
    let mut greeting = [0; GREETING_BYTES];
    stream.read_exact(&mut greeting)?;
    let (magic, style, flags) = (be_u64(&greeting, 0), be_u64(&greeting, 8), be_u16(&greeting, 16));
    if (magic, style) != (NBD_MAGIC, OPTION_MAGIC) || flags & HANDSHAKE_FIXED_NEWSTYLE == 0 {
        return refused("what answers there is no NBD server with the fixed newstyle handshake");
    }
    let has_padding = flags & HANDSHAKE_NO_ZEROES == 0;
    let agreed = u32::from(flags & (HANDSHAKE_FIXED_NEWSTYLE | HANDSHAKE_NO_ZEROES));
    stream.write_all(&agreed.to_be_bytes())?;
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend(1u16.to_be_bytes());
    data.extend(INFO_BLOCK_SIZE.to_be_bytes());
    send_option(stream, OPT_GO, &data)?;
    let mut found = Found::default();
    for _ in 0..REPLIES_MAX {
        let reply = read_reply(stream, OPT_GO)?;
        match reply.kind {
            REP_INFO => found.take(&reply.data)?,
            REP_ACK => return found.judge(),
            REP_ERR_UNSUP => return export_name(stream, name, has_padding),
            REP_ERR_TLS_REQUIRED => return refused("the server wants TLS, which is not spoken"),
            REP_ERR_UNKNOWN => {
                let named = names(stream).unwrap_or_default();
                return refused(format!("the server has no export `{name}`{named}"));
            }
            kind if kind & (1 << 31) != 0 => {
                let words = String::from_utf8_lossy(&reply.data);
                let words: String = words.chars().filter(|c| !c.is_control()).take(200).collect();
                return refused(format!(
                    "the server refuses the export `{name}` ({kind:#x}) {words}"
                ));
            }
            kind => {
                return refused(format!("the server answers with {kind:#x}, which means nothing"));
            }
        }
    }
    refused("the server does not come to the end of its answer")
}

fn send_option(stream: &mut impl Write, option: u32, data: &[u8]) -> io::Result<()> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    stream.write_all(&bytes)
}

fn read_reply(stream: &mut impl Read, option: u32) -> Result<Reply, HandshakeError> {
    let mut header = [0; REPLY_HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let (magic, about) = (be_u64(&header, 0), be_u32(&header, 8));
    let (kind, length) = (be_u32(&header, 12), be_u32(&header, 16));
    if magic != OPTION_REPLY_MAGIC || about != option {
        return refused("the server answers what was not asked");
    }
    if length > REPLY_BYTES_MAX {
        return refused(format!("the server announces an answer of {length} bytes"));
    }
    let mut data = vec![0; length as usize];
    stream.read_exact(&mut data)?;
    Ok(Reply { kind, data })
}

/// What a server has told of an export.
#[derive(Default)]
struct Found {
    export: Option<(u64, u16)>,
    sizes: Option<(u32, u32)>,
}

impl Found {
    fn take(&mut self, data: &[u8]) -> Result<(), HandshakeError> {
        if data.len() < 2 {
            return refused("the server tells an information without its kind");
        }
        match (be_u16(data, 0), data.len()) {
            (INFO_EXPORT, 12) => self.export = Some((be_u64(data, 2), be_u16(data, 10))),
            (INFO_BLOCK_SIZE, 14) => self.sizes = Some((be_u32(data, 2), be_u32(data, 10))),
            (INFO_EXPORT | INFO_BLOCK_SIZE, length) => {
                return refused(format!("the server tells an information of {length} bytes"));
            }
            _ => {}
        }
        Ok(())
    }

    fn judge(self) -> Result<RemoteExport, HandshakeError> {
        let Some((bytes, flags)) = self.export else {
            return refused("the server does not say how large the export is");
        };
        let (least, most) = self.sizes.unwrap_or((1, DEFAULT_PAYLOAD_BYTES_MAX));
        if least > BLOCK_BYTES || least == 0 || !least.is_power_of_two() {
            return refused(format!(
                "the server takes requests of {least} bytes at least; accepted: 4096 or less"
            ));
        }
        if most < BLOCK_BYTES {
            return refused(format!(
                "the server takes requests of {most} bytes at most; accepted: 4096 or more"
            ));
        }
        let is_read_only = flags & READ_ONLY != 0;
        if flags & SEND_FLUSH == 0 && !is_read_only {
            return refused(
                "the server has no flush, so nothing would be durable; accepted: a server with \
                 NBD_FLAG_SEND_FLUSH",
            );
        }
        Ok(RemoteExport {
            bytes,
            is_read_only,
            takes_fua: flags & SEND_FUA != 0,
            takes_zeroes: flags & SEND_WRITE_ZEROES != 0,
            payload_bytes_max: (most - most % BLOCK_BYTES).min(PAYLOAD_BYTES_MAX),
        })
    }
}

/// The older way to choose an export, to which a server that does not have it answers by closing.
fn export_name(
    stream: &mut (impl Read + Write),
    name: &str,
    has_padding: bool,
) -> Result<RemoteExport, HandshakeError> {
    send_option(stream, OPT_EXPORT_NAME, name.as_bytes())?;
    let mut answer = [0; 10];
    match stream.read_exact(&mut answer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return refused(format!("the server has no export `{name}`"));
        }
        result => result?,
    }
    if has_padding {
        stream.read_exact(&mut [0; PADDING_BYTES])?;
    }
    let export = Some((be_u64(&answer, 0), be_u16(&answer, 8)));
    Found { export, sizes: None }.judge()
}

/// The first names of a server's exports, as an end of a sentence.
fn names(stream: &mut (impl Read + Write)) -> Result<String, HandshakeError> {
    send_option(stream, OPT_LIST, &[])?;
    let mut names = Vec::new();
    for _ in 0..REPLIES_MAX {
        let reply = read_reply(stream, OPT_LIST)?;
        if reply.kind != REP_SERVER {
            break;
        }
        let length = if reply.data.len() < 4 { 0 } else { be_u32(&reply.data, 0) as usize };
        let name = reply.data.get(4..).and_then(|rest| rest.get(..length));
        let name = name.map(|name| &name[..name.len().min(NAME_SHOWN_MAX)]);
        let shown = |name: &[u8]| format!("`{}`", String::from_utf8_lossy(name).escape_debug());
        names.extend(name.map(shown));
        if names.len() == NAMED_MAX {
            names.push("and more".to_owned());
            break;
        }
    }
    send_option(stream, OPT_ABORT, &[])?;
    Ok(match names.is_empty() {
        true => String::new(),
        false => format!("; accepted: {}", names.join(", ")),
    })
}
