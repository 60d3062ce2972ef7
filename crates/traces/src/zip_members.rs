//! The files of a zip archive, one behind the other in the order of their names.
//!
//! The archive says at its end what it holds and where. Each file is decompressed as it is read, never as a whole, so that the
//! memory does not depend on the size that the archive states of it.

use std::collections::HashSet;
use std::io::{self, BufReader, Read};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::random_access::{RandomAccess, Section};

/// Bytes of the directory of an archive at most.
const DIRECTORY_BYTES_MAX: u64 = 16 << 20;
/// Bytes of the archive read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// True of the first bytes of an archive.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Where a file of the archive is, and what its content must be.
#[derive(Debug)]
struct Member {
    name: Vec<u8>,
    start: u64,
    compressed_bytes: u64,
    bytes: u64,
    crc32: u32,
    method: CompressionMethod,
}

/// The bytes of all files of an archive. Of several, one whose last line has no end gets one.
pub(super) struct Members {
    archive: RandomAccess,
    /// Those to come, the next one last.
    left: Vec<Member>,
    current: Option<Content>,
    last_byte: u8,
    files: usize,
}

/// A file that is being read.
struct Content {
    member: Member,
    bytes: Box<dyn Read + Send>,
    crc: Crc,
}

fn wrong(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl Members {
    /// Reads the directory of the archive.
    ///
    /// # Errors
    /// It is damaged or too long, or has a file that cannot be read.
    pub(super) fn new(archive: RandomAccess) -> io::Result<Self> {
        let directory =
            Directory { bytes: archive.section(0, archive.length()), left: DIRECTORY_BYTES_MAX };
        let mut directory = ZipArchive::new(directory).map_err(of_zip)?;
        if directory.has_duplicate_names() {
            return Err(wrong(
                "the zip archive has two files of one name; accepted: names that differ".to_owned(),
            ));
        }
        let mut members = Vec::new();
        for index in 0..directory.len() {
            members.extend(member(&mut directory, index)?);
        }
        members.sort_by(|one, other| other.name.cmp(&one.name));
        let starts: HashSet<u64> = members.iter().map(|member| member.start).collect();
        if starts.len() < members.len() {
            return Err(wrong(
                "the zip archive has two files at one place; accepted: files that are apart"
                    .to_owned(),
            ));
        }
        let files = members.len();
        Ok(Self { archive, left: members, current: None, last_byte: b'\n', files })
    }

    /// How many files the archive has.
    pub(super) fn files(&self) -> usize {
        self.files
    }

    fn open(&self, member: Member) -> Content {
        let stored = self.archive.section(member.start, member.compressed_bytes);
        let bytes: Box<dyn Read + Send> = match member.method {
            CompressionMethod::Deflated => {
                Box::new(DeflateDecoder::new(BufReader::with_capacity(CHUNK_BYTES, stored)))
            }
            _ => Box::new(stored),
        };
        Content { member, bytes, crc: Crc::new() }
    }
}

/// What the directory says of a file; `None` of folders, of links, and of what macOS packs beside the files.
fn member(directory: &mut ZipArchive<Directory>, index: usize) -> io::Result<Option<Member>> {
    let entry = directory.by_index_raw(index).map_err(of_zip)?;
    let name = entry.name_raw().to_vec();
    if !entry.is_file() || name.starts_with(b"__MACOSX/") {
        return Ok(None);
    }
    let shown = name.escape_ascii();
    if entry.encrypted() {
        return Err(wrong(format!(
            "the file \"{shown}\" of the zip archive is encrypted; accepted: files that are not"
        )));
    }
    let method = entry.compression();
    if !matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
        return Err(wrong(format!(
            "the file \"{shown}\" of the zip archive is compressed by {method}; accepted: deflate, or stored"
        )));
    }
    let start = entry.data_start().ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(Member {
        start,
        compressed_bytes: entry.compressed_size(),
        bytes: entry.size(),
        crc32: entry.crc32(),
        method,
        name,
    }))
}

/// What is wrong with the directory of an archive.
fn of_zip(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        other => wrong(format!("the directory of the zip archive cannot be read: {other}")),
    }
}

impl Content {
    /// Compares the content with what the directory says of it.
    fn check(&self) -> io::Result<()> {
        let (found, member) = (self.crc.amount(), &self.member);
        // The count of the checksum has 32 bits.
        if found != member.bytes as u32 || self.crc.sum() != member.crc32 {
            return Err(wrong(format!(
                "the file \"{}\" of the zip archive is not what the directory says: its size or its CRC-32 differs",
                member.name.escape_ascii()
            )));
        }
        Ok(())
    }
}

impl Read for Members {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            let Some(content) = &mut self.current else {
                let Some(next) = self.left.pop() else {
                    return Ok(0);
                };
                self.current = Some(self.open(next));
                if self.last_byte != b'\n' {
                    self.last_byte = b'\n';
                    to[0] = b'\n';
                    return Ok(1);
                }
                continue;
            };
            let count = content.bytes.read(to)?;
            if count == 0 {
                content.check()?;
                self.current = None;
                continue;
            }
            content.crc.update(&to[..count]);
            self.last_byte = to[count - 1];
            return Ok(count);
        }
    }
}

/// The archive while its directory is read, which takes memory for each of its bytes.
struct Directory {
    bytes: Section,
    left: u64,
}

impl Read for Directory {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(to)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            wrong(format!(
                "the directory of the zip archive is longer than {DIRECTORY_BYTES_MAX} bytes; accepted: fewer files"
            ))
        })?;
        Ok(count)
    }
}

impl io::Seek for Directory {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}
