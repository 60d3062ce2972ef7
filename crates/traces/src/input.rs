//! Bytes of a trace file: opened, decompressed, and buffered for line and record readers.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::TraceError;
use super::read_watch::ReadWatch;
use super::tar;

/// Bytes read from the file at a time.
const CHUNK_BYTES: usize = 256 * 1024;
/// Decompressed bytes held for a format that is read twice, where the source cannot be opened once more.
const HELD_BYTES_MAX: usize = 256 << 20;
/// Largest zstd window accepted, as a power of two: the format's own limit, which `zstd --long=31` uses.
const ZSTD_WINDOW_LOG_MAX: u32 = 31;

/// How a file is compressed, told by its first bytes and never by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Compression {
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Bzip2,
            _ => Self::None,
        }
    }

    /// What is being read, for messages.
    pub(super) fn container(self) -> &'static str {
        match self {
            Self::None => "the file",
            Self::Gzip => "the gzip stream",
            Self::Zstd => "the zstd stream",
            Self::Xz => "the xz stream",
            Self::Bzip2 => "the bzip2 stream",
        }
    }
}

/// The decompressed bytes of a trace, in a buffer that readers look into without copying.
pub(super) struct Input {
    path: String,
    compression: Compression,
    source: Box<dyn Read + Send>,
    hash: Option<Arc<Mutex<Sha256>>>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    /// The path names a file that can be opened once more.
    is_file: bool,
    /// The bytes are those of the files of a tar archive.
    is_archive: bool,
}

impl Input {
    /// Opens a file, or standard input for `-`, and fills the buffer for the first time.
    /// `watch` hears how much of the file is read.
    pub(super) fn open(
        path: &str,
        hashed: bool,
        watch: Option<&ReadWatch>,
    ) -> Result<Self, TraceError> {
        if path == "-" {
            return Self::from_read(path, Box::new(io::stdin()), hashed);
        }
        let file = File::open(path)
            .map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let raw: Box<dyn Read + Send> = match watch {
            Some(watch) => Box::new(watch.watched(file)),
            None => Box::new(file),
        };
        let mut input = Self::from_read(path, raw, hashed)?;
        input.is_file = is_file;
        Ok(input)
    }

    /// The same over any byte source; `path` names it in messages.
    pub(super) fn from_read(
        path: &str,
        raw: Box<dyn Read + Send>,
        hashed: bool,
    ) -> Result<Self, TraceError> {
        let hash = hashed.then(|| Arc::new(Mutex::new(Sha256::new())));
        let mut raw = Hashed { raw, hash: hash.clone() };
        let mut magic = Vec::with_capacity(6);
        raw.by_ref()
            .take(6)
            .read_to_end(&mut magic)
            .map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        let compression = Compression::of(&magic);
        let bytes = BufReader::with_capacity(CHUNK_BYTES, Cursor::new(magic).chain(raw));
        let source = decompressor(compression, bytes)
            .map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        let mut input = Self {
            path: path.to_owned(),
            compression,
            source,
            hash,
            buffer: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            at_end: false,
            is_file: false,
            is_archive: false,
        };
        while input.end < input.buffer.len() / 2 && input.fill(0)? {}
        if tar::looks_like(input.bytes()) {
            input.unpack()?;
        }
        if input.end == 0 {
            return Err(TraceError::Empty { path: path.to_owned() });
        }
        Ok(input)
    }

    /// Puts the files of a tar archive in its place; the buffer holds the start of the archive.
    fn unpack(&mut self) -> Result<(), TraceError> {
        let start = Cursor::new(self.bytes().to_vec());
        let rest = std::mem::replace(&mut self.source, Box::new(io::empty()));
        self.source = Box::new(tar::Members::new(start.chain(rest)));
        (self.start, self.end, self.at_end, self.is_archive) = (0, 0, false, true);
        while self.end < self.buffer.len() / 2 && self.fill(0)? {}
        Ok(())
    }

    /// True when the bytes are those of the files of a tar archive.
    pub(super) fn is_archive(&self) -> bool {
        self.is_archive
    }

    /// This input at its start and another one like it, for a format that is read twice. A file is opened once more; what
    /// can be read only once is held in memory. The second one is not hashed.
    ///
    /// # Errors
    /// What can be read only once is too long.
    pub(super) fn twice(mut self) -> Result<(Self, Self), TraceError> {
        if self.is_file {
            let again = Self::open(&self.path, false, None)?;
            return Ok((self, again));
        }
        let mut held = Vec::new();
        loop {
            held.extend_from_slice(self.bytes());
            self.consume(self.bytes().len());
            if held.len() > HELD_BYTES_MAX {
                return Err(TraceError::Format {
                    path: self.path,
                    reason: format!(
                        "this format is read twice, and what is not a file is held in memory meanwhile, at most {HELD_BYTES_MAX} \
                         bytes; accepted: the path of a file"
                    ),
                });
            }
            if !self.fill(0)? {
                break;
            }
        }
        let held: Arc<[u8]> = held.into();
        let mut first =
            Self::from_read(&self.path, Box::new(Cursor::new(Arc::clone(&held))), false)?;
        (first.hash, first.is_archive) = (self.hash, self.is_archive);
        Ok((first, Self::from_read(&self.path, Box::new(Cursor::new(held)), false)?))
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn compression(&self) -> Compression {
        self.compression
    }

    /// The bytes at hand.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first `count` bytes at hand.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
    }

    /// True when nothing follows the bytes at hand.
    pub(super) fn at_end(&self) -> bool {
        self.at_end
    }

    /// Reads more behind the bytes at hand; false at the end of the file. The caller leaves less than a buffer unread.
    pub(super) fn fill(&mut self, records: u64) -> Result<bool, TraceError> {
        if self.at_end {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        assert!(self.end < self.buffer.len(), "a reader must consume before it asks for more");
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    let container = self.compression.container();
                    return Err(TraceError::Read {
                        path: self.path.clone(),
                        container,
                        records,
                        source,
                    });
                }
            }
        }
    }

    /// SHA-256 of the file as stored, in hex, once everything has been read; `None` before, or without hashing.
    pub(super) fn sha256(&self) -> Option<String> {
        let hash = self.hash.as_ref().filter(|_| self.at_end)?;
        let digest = hash.lock().unwrap_or_else(PoisonError::into_inner).clone().finalize();
        Some(hex(&digest))
    }
}

fn decompressor(
    compression: Compression,
    bytes: impl BufRead + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    // Every kind may hold several streams one after another, as `cat a.gz b.gz` makes them; a decoder that stops at the
    // first would silently cut the trace.
    Ok(match compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
        Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(bytes)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
    })
}

/// Hashes the bytes that pass.
struct Hashed {
    raw: Box<dyn Read + Send>,
    hash: Option<Arc<Mutex<Sha256>>>,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        if let Some(hash) = &self.hash {
            hash.lock().unwrap_or_else(PoisonError::into_inner).update(&buffer[..count]);
        }
        Ok(count)
    }
}

/// SHA-256 of some bytes in hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a file in hex.
pub(super) fn file_sha256(path: &str) -> Result<String, TraceError> {
    let wrong = |source| TraceError::Open { path: path.to_owned(), source };
    let raw = Box::new(File::open(path).map_err(wrong)?);
    let hash = Arc::new(Mutex::new(Sha256::new()));
    let mut hashed = Hashed { raw, hash: Some(hash.clone()) };
    io::copy(&mut hashed, &mut io::sink()).map_err(wrong)?;
    let digest = hash.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(hex(&digest.clone().finalize()))
}

/// The hash of one file; of several, that of the lines of their hashes.
pub(super) fn sha256_of_files(mut hashes: Vec<String>) -> String {
    match (hashes.len(), hashes.pop()) {
        (1, Some(hash)) => hash,
        (_, last) => {
            hashes.extend(last);
            let lines: String = hashes.iter().map(|hash| format!("{hash}\n")).collect();
            sha256_hex(lines.as_bytes())
        }
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
