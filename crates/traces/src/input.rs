//! Bytes of a trace file: opened, decompressed, and buffered for line and record readers.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::TraceError;
use super::random_access::RandomAccess;
use super::read_watch::ReadWatch;
use super::{tar, zip_members};

/// Bytes at hand at most.
const CHUNK_BYTES: usize = 256 * 1024;
/// Bytes read from the file at a time for a decompressor. What is stored as it is goes past that buffer, because more
/// is asked for at a time.
const STORED_BYTES: usize = CHUNK_BYTES / 2;
/// Decompressed bytes held for a format that is not read from start to end, where the source cannot be opened once more.
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

/// An archive whose files are read one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archive {
    Tar,
    /// With so many files.
    Zip(usize),
}

impl Archive {
    /// What it is called, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::Zip(_) => "zip",
        }
    }

    /// Whether it is surely one file, whose bytes are then as they stand.
    pub(super) fn is_one_file(self) -> bool {
        self == Self::Zip(1)
    }
}

/// The decompressed bytes of a trace, in a buffer that readers look into without copying.
pub(super) struct Input {
    path: String,
    compression: Compression,
    source: Box<dyn Read + Send>,
    hash: Option<Arc<Mutex<Sha256>>>,
    /// The hash where all bytes were read before.
    read_before: Option<String>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    /// The path names a file that can be opened once more.
    is_file: bool,
    /// The bytes are those of the files of an archive.
    archive: Option<Archive>,
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
        Self::new(path, raw, hashed, is_file)
    }

    /// The same over any byte source; `path` names it in messages.
    pub(super) fn from_read(
        path: &str,
        raw: Box<dyn Read + Send>,
        hashed: bool,
    ) -> Result<Self, TraceError> {
        Self::new(path, raw, hashed, false)
    }

    fn new(
        path: &str,
        raw: Box<dyn Read + Send>,
        hashed: bool,
        is_file: bool,
    ) -> Result<Self, TraceError> {
        let hash = hashed.then(|| Arc::new(Mutex::new(Sha256::new())));
        let mut raw = Hashed { raw, hash: hash.clone() };
        let mut magic = Vec::with_capacity(6);
        raw.by_ref()
            .take(6)
            .read_to_end(&mut magic)
            .map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        let compression = Compression::of(&magic);
        let bytes = BufReader::with_capacity(STORED_BYTES, Cursor::new(magic).chain(raw));
        let source = decompressor(compression, bytes)
            .map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        let mut input = Self {
            path: path.to_owned(),
            compression,
            source,
            hash,
            read_before: None,
            buffer: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            at_end: false,
            is_file,
            archive: None,
        };
        while input.end < input.buffer.len() / 2 && input.fill(0)? {}
        if tar::looks_like(input.bytes()) {
            input.unpack_tar()?;
        } else if zip_members::looks_like(input.bytes()) {
            input = input.unpack_zip()?;
        }
        if input.end == 0 {
            return Err(TraceError::Empty { path: path.to_owned() });
        }
        Ok(input)
    }

    /// Puts the files of a tar archive in its place; the buffer holds the start of the archive.
    fn unpack_tar(&mut self) -> Result<(), TraceError> {
        let start = Cursor::new(self.bytes().to_vec());
        let rest = std::mem::replace(&mut self.source, Box::new(io::empty()));
        self.source = Box::new(tar::Members::new(start.chain(rest)));
        self.archive = Some(Archive::Tar);
        self.begin()
    }

    /// The files of a zip archive in its place.
    fn unpack_zip(mut self) -> Result<Self, TraceError> {
        let archive = self.random_access()?;
        let members = zip_members::Members::new(archive)
            .map_err(|source| TraceError::Open { path: self.path.clone(), source })?;
        self.archive = Some(Archive::Zip(members.files()));
        self.source = Box::new(members);
        self.begin()?;
        Ok(self)
    }

    /// Fills the buffer from a new source.
    fn begin(&mut self) -> Result<(), TraceError> {
        (self.start, self.end, self.at_end) = (0, 0, false);
        while self.end < self.buffer.len() / 2 && self.fill(0)? {}
        Ok(())
    }

    /// The archive that the bytes are the files of.
    pub(super) fn archive(&self) -> Option<Archive> {
        self.archive
    }

    /// The bytes at any place. A file is opened once more; what can be read only once, or is compressed, is held in memory.
    /// The input is at its end afterwards, and its hash is known if it has one.
    ///
    /// # Errors
    /// What is held is too long, or the file cannot be read.
    pub(super) fn random_access(&mut self) -> Result<RandomAccess, TraceError> {
        let is_plain =
            self.is_file && self.compression == Compression::None && self.archive.is_none();
        if !is_plain {
            let held = self.hold()?;
            self.read_before = self.sha256();
            return Ok(RandomAccess::of_bytes(held.into()));
        }
        if self.hash.is_some() {
            self.consume(self.bytes().len());
            while self.fill(0)? {
                self.consume(self.bytes().len());
            }
            self.read_before = self.sha256();
        }
        let file = File::open(&self.path).and_then(RandomAccess::of_file);
        file.map_err(|source| TraceError::Open { path: self.path.clone(), source })
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
        let held: Arc<[u8]> = self.hold()?.into();
        let mut first =
            Self::from_read(&self.path, Box::new(Cursor::new(Arc::clone(&held))), false)?;
        (first.hash, first.read_before) = (self.hash, self.read_before);
        first.archive = self.archive;
        Ok((first, Self::from_read(&self.path, Box::new(Cursor::new(held)), false)?))
    }

    /// All bytes.
    fn hold(&mut self) -> Result<Vec<u8>, TraceError> {
        let mut held = Vec::new();
        loop {
            held.extend_from_slice(self.bytes());
            self.consume(self.bytes().len());
            if held.len() > HELD_BYTES_MAX {
                return Err(TraceError::Format {
                    path: self.path.clone(),
                    reason: format!(
                        "this format is not read from start to end, and what is no plain file is held in memory meanwhile, at \
                         most {HELD_BYTES_MAX} bytes; accepted: the path of a file that is not packed"
                    ),
                });
            }
            if !self.fill(0)? {
                return Ok(held);
            }
        }
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
        if !self.at_end || self.read_before.is_some() {
            return self.read_before.clone().filter(|_| self.at_end);
        }
        let hash = self.hash.as_ref()?;
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
