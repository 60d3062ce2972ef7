//! The files of a tar archive, one behind the other: some traces come as archives of text files.
//!
//! Members are read as they stand, in one pass, so they have to stand in the order of their names, as the shell packs them;
//! a trace in another order is refused. Headers are those of POSIX (ustar and pax) and GNU.

use std::io::{self, Read};

const BLOCK_BYTES: usize = 512;
/// A name longer than this is a damaged header.
const EXTENSION_BYTES_MAX: u64 = 1 << 16;

/// No file is as large as this.
const SIZE_END: u64 = 1 << 62;

/// True of the first bytes of an archive.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// The bytes of all files of an archive. A file whose last line has no end gets one.
pub(super) struct Members<R> {
    source: R,
    /// Bytes of the file at hand that are still to come, and of the padding behind it.
    left: u64,
    padding: u64,
    last_name: Vec<u8>,
    /// The last byte given out.
    last_byte: u8,
    at_end: bool,
}

/// What a header says, with what the extensions before it say.
#[derive(Default)]
struct Header {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

fn wrong(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl<R: Read> Members<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, left: 0, padding: 0, last_name: Vec::new(), last_byte: b'\n', at_end: false }
    }

    /// Goes to the next file, or to the end of the archive.
    fn advance(&mut self) -> io::Result<()> {
        let mut header = Header::default();
        loop {
            self.skip(self.padding)?;
            self.padding = 0;
            let mut block = [0; BLOCK_BYTES];
            if !self.fill(&mut block)? || block.iter().all(|&byte| byte == 0) {
                self.at_end = true;
                // The rest belongs to the file: its hash and its checksums count.
                return io::copy(&mut self.source, &mut io::sink()).map(drop);
            }
            let size = checked_size(&block)?;
            match block[156] {
                b'L' => header.name = Some(until_zero(&self.extension(size)?).to_vec()),
                b'x' => header.read_pax(&self.extension(size)?)?,
                b'0' | 0 | b'7' => {
                    let size = header.size.unwrap_or(size);
                    let name = header.name.take().unwrap_or_else(|| name_of(&block));
                    self.enter(name)?;
                    (self.left, self.padding) = (size, padding(size));
                    return Ok(());
                }
                // Folders, links and whatever else is no file.
                _ => {
                    self.skip(size)?;
                    self.padding = padding(size);
                    header = Header::default();
                }
            }
        }
    }

    fn enter(&mut self, name: Vec<u8>) -> io::Result<()> {
        if name < self.last_name {
            let (name, last) = (name.escape_ascii(), self.last_name.escape_ascii());
            return Err(wrong(format!(
                "the archive has \"{name}\" behind \"{last}\"; accepted: files in the order of their names, or unpacked ones"
            )));
        }
        self.last_name = name;
        Ok(())
    }

    /// The content of a header that extends the next one.
    fn extension(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > EXTENSION_BYTES_MAX {
            return Err(wrong(format!(
                "a header of the archive has {size} bytes; accepted: at most {EXTENSION_BYTES_MAX}"
            )));
        }
        let mut bytes = vec![0; size as usize];
        self.source.read_exact(&mut bytes)?;
        self.padding = padding(size);
        Ok(bytes)
    }

    fn skip(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.source.by_ref().take(count), &mut io::sink())?;
        if skipped < count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Reads a whole block; false at the end of the source.
    fn fill(&mut self, block: &mut [u8]) -> io::Result<bool> {
        let mut read = Vec::with_capacity(block.len());
        self.source.by_ref().take(block.len() as u64).read_to_end(&mut read)?;
        if read.len() == block.len() {
            block.copy_from_slice(&read);
            return Ok(true);
        }
        match read.is_empty() {
            true => Ok(false),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 && !self.at_end {
            if self.last_byte != b'\n' && !buffer.is_empty() {
                buffer[0] = b'\n';
                self.last_byte = b'\n';
                return Ok(1);
            }
            self.advance()?;
        }
        let wanted = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.source.read(&mut buffer[..wanted])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        self.last_byte = buffer[count - 1];
        Ok(count)
    }
}

impl Header {
    /// Reads `length key=value` lines; the path and the size of the next member count.
    fn read_pax(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let blank = memchr::memchr(b' ', rest).unwrap_or(0);
            let length = number(&rest[..blank], 10).and_then(|length| usize::try_from(length).ok());
            let record = length.and_then(|length| rest.get(blank + 1..length));
            let Some((record, length)) = record.zip(length) else {
                return Err(wrong("an extended header of the archive is damaged".to_owned()));
            };
            rest = &rest[length..];
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            if let Some(path) = record.strip_prefix(b"path=") {
                self.name = Some(path.to_vec());
            } else if let Some(size) = record.strip_prefix(b"size=") {
                self.size = number(size, 10).filter(|&size| size < SIZE_END);
            }
        }
        Ok(())
    }
}

/// Size of a member, after its header's checksum has been checked.
fn checked_size(block: &[u8; BLOCK_BYTES]) -> io::Result<u64> {
    let octal = |field: &[u8]| number(until_zero(field).trim_ascii(), 8);
    let sum: u64 = (0..)
        .zip(block)
        .map(|(at, &byte)| match at {
            148..156 => u64::from(b' '),
            _ => u64::from(byte),
        })
        .sum();
    if octal(&block[148..156]) != Some(sum) {
        return Err(wrong(
            "a header of the archive is damaged: its checksum does not fit".to_owned(),
        ));
    }
    // Sizes from 8 GiB on are binary, with the first bit set.
    let field = &block[124..136];
    let size = match field[0] {
        0x80 => Some(u64::from_be_bytes(field[4..].try_into().expect("eight bytes"))),
        _ => octal(field),
    };
    size.filter(|&size| size < SIZE_END)
        .ok_or_else(|| wrong("a header of the archive has no size".to_owned()))
}

fn name_of(block: &[u8; BLOCK_BYTES]) -> Vec<u8> {
    // GNU has other things in the place of the prefix.
    let prefix = match &block[257..263] == b"ustar\0" {
        true => until_zero(&block[345..500]),
        false => &[],
    };
    let name = until_zero(&block[..100]);
    match prefix {
        [] => name.to_vec(),
        prefix => [prefix, b"/", name].concat(),
    }
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK_BYTES as u64) - size
}

fn until_zero(field: &[u8]) -> &[u8] {
    &field[..memchr::memchr(0, field).unwrap_or(field.len())]
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    u64::from_str_radix(digits, radix).ok().filter(|_| is_plain)
}
