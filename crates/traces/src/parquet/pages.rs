//! The pages of a column, decompressed within a limit.
//!
//! The file is read in pieces whose sizes it states itself, so each size is checked before there is memory for it. The library
//! takes the pages out of the file as they are stored; they are decompressed here, because it would believe the sizes it reads.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::words::Words;
use crate::random_access::{RandomAccess, Section};

/// Bytes of a page at most, stored or decompressed.
const PAGE_BYTES_MAX: usize = 128 << 20;
/// Values of a page at most.
const PAGE_VALUES_MAX: u32 = 1 << 24;
/// Bytes at the end of the file that describe it, at most.
const FOOTER_BYTES_MAX: usize = 16 << 20;
/// Bytes read of the file at once while the head of a page is read.
const HEAD_BYTES: usize = 256;

pub(super) fn wrong(text: String) -> ParquetError {
    ParquetError::General(text)
}

/// The bytes of a file, of which nobody gets more at once than a limit.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    bytes: RandomAccess,
    /// Most bytes at once, and what they are.
    limit: (usize, &'static str),
}

impl Stored {
    pub(super) fn new(bytes: RandomAccess) -> Self {
        Self { bytes, limit: (PAGE_BYTES_MAX, "a page") }
    }

    /// The same bytes for who reads the end of the file.
    pub(super) fn footer(&self) -> Self {
        Self { limit: (FOOTER_BYTES_MAX, "the footer"), ..self.clone() }
    }
}

impl Length for Stored {
    fn len(&self) -> u64 {
        self.bytes.length()
    }
}

impl ChunkReader for Stored {
    type T = BufReader<Section>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let section = self.bytes.section(start, self.len().saturating_sub(start));
        Ok(BufReader::with_capacity(HEAD_BYTES, section))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let (limit, what) = self.limit;
        if length > limit {
            return Err(wrong(format!("{what} has {length} bytes; accepted: at most {limit}")));
        }
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(wrong(format!(
                "{what} of {length} bytes at byte {start} reaches past the end of the file, at {}",
                self.len()
            )));
        }
        let mut bytes = vec![0; length];
        self.bytes.section(start, length as u64).read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// How the pages of a column are compressed.
#[derive(Debug, Clone, Copy)]
enum Codec {
    None,
    Snappy,
    Gzip,
    Zstd,
}

/// Takes pages out of a file.
pub(super) struct Pages {
    stored: SerializedPageReader<Stored>,
    codec: Codec,
    /// Made for the first page that needs it, because it takes longer than a short page.
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    kind: Type,
    /// The numbers that stand for strings, where the values are strings.
    words: Words,
    /// Rows may have no value, and a page says which.
    has_levels: bool,
    has_dictionary: bool,
}

impl Pages {
    /// Those of one column of a row group.
    ///
    /// # Errors
    /// The column lies outside of the file, or is compressed as nobody here can undo.
    pub(super) fn new(
        stored: &Arc<Stored>,
        chunk: &ColumnChunkMetaData,
        words: Words,
    ) -> Result<Self> {
        let codec = match chunk.compression() {
            Compression::UNCOMPRESSED => Codec::None,
            Compression::SNAPPY => Codec::Snappy,
            Compression::GZIP(_) => Codec::Gzip,
            Compression::ZSTD(_) => Codec::Zstd,
            other => {
                let name = other.to_string();
                let name = name.split('(').next().unwrap_or_default();
                return Err(wrong(format!(
                    "the compression is {name}; accepted: UNCOMPRESSED, SNAPPY, GZIP or ZSTD"
                )));
            }
        };
        if chunk.file_path().is_some() {
            return Err(wrong(
                "the data is in another file; accepted: data in this one".to_owned(),
            ));
        }
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let length = chunk.compressed_size();
        let end = start.checked_add(length).and_then(|end| u64::try_from(end).ok());
        if start < 0 || length < 0 || end.is_none_or(|end| end > stored.len()) {
            return Err(wrong(format!(
                "the data has {length} bytes from byte {start}; accepted: a place within the {} bytes of the file",
                stored.len()
            )));
        }
        let builder = chunk.clone().into_builder();
        let plain = builder.set_compression(Compression::UNCOMPRESSED).build()?;
        let stored = SerializedPageReader::new(Arc::clone(stored), &plain, 0, None)?;
        let kind = chunk.column_type();
        let has_levels = chunk.column_descr().max_def_level() > 0;
        Ok(Self { stored, codec, zstd: None, kind, words, has_levels, has_dictionary: false })
    }

    /// The page with its content decompressed, and with numbers for strings.
    fn unpacked(&mut self, page: Page) -> Result<Page> {
        match page {
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                let (buf, num_values) = self.dictionary(buf, num_values)?;
                Ok(Page::DictionaryPage { buf, num_values, encoding, is_sorted })
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                let buf = self.decompressed(buf, 0)?;
                let levels = if self.has_levels { levels_of(&buf, def_level_encoding)? } else { 0 };
                let (encoding, buf) = self.decodable(encoding, buf, levels, num_values)?;
                Ok(Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding: Encoding::RLE,
                    statistics: None,
                })
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                let levels = def_levels_byte_len.saturating_add(rep_levels_byte_len) as usize;
                if levels > buf.len() {
                    return Err(shorter());
                }
                let buf = if is_compressed { self.decompressed(buf, levels)? } else { buf };
                let (encoding, buf) = self.decodable(encoding, buf, levels, num_values)?;
                Ok(Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed: false,
                    statistics: None,
                })
            }
        }
    }

    /// A dictionary, and how many values it has.
    fn dictionary(&mut self, bytes: Bytes, values: u32) -> Result<(Bytes, u32)> {
        let bytes = self.decompressed(bytes, 0)?;
        // Each value takes at least a byte, and memory is made for as many as the page states.
        if values as usize > bytes.len() {
            return Err(wrong(format!(
                "a dictionary states {values} values in {} bytes; accepted: at most one a byte",
                bytes.len()
            )));
        }
        self.has_dictionary = true;
        if self.kind != Type::BYTE_ARRAY {
            return Ok((bytes, values));
        }
        let mut numbers = Vec::new();
        let found = self.words.number(&bytes, values, &mut numbers)?;
        Ok((numbers.into(), found))
    }

    /// What the library decodes in place of the values behind the levels of a page. The encodings that are refused hold lengths for
    /// which memory would be made, or are read past their end.
    fn decodable(
        &self,
        encoding: Encoding,
        page: Bytes,
        levels: usize,
        values: u32,
    ) -> Result<(Encoding, Bytes)> {
        if values > PAGE_VALUES_MAX {
            return Err(wrong(format!(
                "a page states {values} values; accepted: at most {PAGE_VALUES_MAX}"
            )));
        }
        match (encoding, self.kind) {
            (Encoding::PLAIN, Type::BYTE_ARRAY) => {
                let mut numbered = page[..levels].to_vec();
                self.words.number(&page[levels..], values, &mut numbered)?;
                Ok((encoding, numbered.into()))
            }
            (Encoding::PLAIN, _) | (Encoding::RLE, Type::BOOLEAN) => Ok((encoding, page)),
            (Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY, _) if self.has_dictionary => {
                Ok((encoding, page))
            }
            (Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY, _) => {
                Err(wrong("a page needs a dictionary that is not there".to_owned()))
            }
            (Encoding::DELTA_BINARY_PACKED, Type::INT32 | Type::INT64) => differences(page, levels),
            (other, kind) => Err(wrong(format!(
                "a page of {kind} has the encoding {other}; accepted: PLAIN, RLE_DICTIONARY, of integers DELTA_BINARY_PACKED, \
                 of booleans RLE"
            ))),
        }
    }

    /// Appends what zstd gives, in one step where the page says how much that is.
    fn zstd(&mut self, from: &[u8], to: &mut Vec<u8>) -> Result<()> {
        let length = zstd::zstd_safe::get_frame_content_size(from).ok().flatten();
        let length = length.and_then(|length| usize::try_from(length).ok());
        let Some(length) = length.filter(|&length| length <= PAGE_BYTES_MAX) else {
            return limited(zstd::stream::read::Decoder::with_buffer(from)?, to);
        };
        let decompressor = match &mut self.zstd {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new()?),
        };
        let start = to.len();
        to.resize(start + length, 0);
        let found = decompressor.decompress_to_buffer(from, &mut to[start..])?;
        to.truncate(start + found);
        Ok(())
    }

    /// The bytes of a page, of which the first so many are not compressed.
    fn decompressed(&mut self, bytes: Bytes, plain: usize) -> Result<Bytes> {
        let (levels, values) = bytes.split_at(plain);
        // A page without a value may have nothing to decompress.
        if matches!(self.codec, Codec::None) || values.is_empty() {
            return Ok(bytes);
        }
        let mut unpacked = Vec::with_capacity(levels.len() + 4 * values.len());
        unpacked.extend_from_slice(levels);
        match self.codec {
            Codec::None => {}
            Codec::Snappy => snappy(values, &mut unpacked)?,
            Codec::Gzip => limited(flate2::bufread::MultiGzDecoder::new(values), &mut unpacked)?,
            Codec::Zstd => self.zstd(values, &mut unpacked)?,
        }
        Ok(unpacked.into())
    }
}

fn shorter() -> ParquetError {
    wrong("a page is shorter than the levels in it".to_owned())
}

/// Bytes of the levels at the start of a page of the first version.
fn levels_of(page: &[u8], encoding: Encoding) -> Result<usize> {
    let length = page.first_chunk().map(|length| u32::from_le_bytes(*length) as usize + 4);
    match (encoding, length) {
        (Encoding::RLE, Some(length)) if length <= page.len() => Ok(length),
        (Encoding::RLE, _) => Err(shorter()),
        (other, _) => {
            Err(wrong(format!("the levels of a page have the encoding {other}; accepted: RLE")))
        }
    }
}

/// A page of differences that the library can decode: where one holds no value, it would count below 0.
fn differences(page: Bytes, levels: usize) -> Result<(Encoding, Bytes)> {
    const BLOCK_VALUES_MAX: u64 = 1 << 20;
    let mut rest = &page[levels..];
    if rest.is_empty() {
        return Ok((Encoding::PLAIN, page));
    }
    let (block, _, values) = (varint(&mut rest)?, varint(&mut rest)?, varint(&mut rest)?);
    if block > BLOCK_VALUES_MAX {
        return Err(wrong(format!(
            "a page has blocks of {block} differences; accepted: at most {BLOCK_VALUES_MAX}"
        )));
    }
    if values == 0 {
        return Ok((Encoding::PLAIN, page.slice(..levels)));
    }
    Ok((Encoding::DELTA_BINARY_PACKED, page))
}

/// Takes a number of 7 bits a byte.
fn varint(from: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for (index, &byte) in from.iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *from = &from[index + 1..];
            return Ok(number);
        }
    }
    Err(wrong("a page of differences is cut in its head".to_owned()))
}

/// Appends what a decompressor gives, which may be no more than a page.
fn limited(from: impl Read, to: &mut Vec<u8>) -> Result<()> {
    let room = PAGE_BYTES_MAX.saturating_sub(to.len()) as u64;
    if from.take(room + 1).read_to_end(to)? as u64 > room {
        return Err(too_long());
    }
    Ok(())
}

fn snappy(from: &[u8], to: &mut Vec<u8>) -> Result<()> {
    let wrong = |error: snap::Error| io::Error::new(io::ErrorKind::InvalidData, error);
    let (start, length) = (to.len(), snap::raw::decompress_len(from).map_err(wrong)?);
    if length > PAGE_BYTES_MAX {
        return Err(too_long());
    }
    to.resize(start + length, 0);
    snap::raw::Decoder::new().decompress(from, &mut to[start..]).map_err(wrong)?;
    Ok(())
}

fn too_long() -> ParquetError {
    wrong(format!(
        "a page is longer than {PAGE_BYTES_MAX} bytes when it is decompressed; accepted: up to that"
    ))
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.stored.get_next_page()?;
        page.map(|page| self.unpacked(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.stored.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.stored.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_stopped_at_a_page() {
        let mut to = b"levels".to_vec();
        let error = limited(io::repeat(0), &mut to).unwrap_err();
        assert!(error.to_string().contains("a page is longer than 134217728 bytes"), "{error}");
        assert!(to.len() <= PAGE_BYTES_MAX + 1);
    }

    #[test]
    fn snappy_is_undone_behind_the_levels() {
        let packed = snap::raw::Encoder::new().compress_vec(b"values").unwrap();
        let mut to = b"levels".to_vec();
        snappy(&packed, &mut to).unwrap();
        assert_eq!(to, b"levelsvalues");
        // Only the length that is stated is one of 2^31 bytes.
        let error = snappy(&[0x80, 0x80, 0x80, 0x80, 0x08], &mut to).unwrap_err();
        assert!(error.to_string().contains("a page is longer than"), "{error}");
        assert_eq!(to.len(), 12);
    }

    #[test]
    fn strings_become_numbers() {
        let (words, mut numbers) = (Words::default(), Vec::new());
        let strings = b"\x01\0\0\0r\x01\0\0\0w\x01\0\0\0r\0\0\0\0";
        assert_eq!(words.number(strings, 9, &mut numbers).unwrap(), 4);
        assert_eq!(numbers, [0, 1, 0, 2].map(u32::to_le_bytes).concat());
        assert_eq!(words.from(1), [b"w".to_vec(), Vec::new()]);
        for cut in [&strings[..3], &strings[..4], b"\xff\xff\xff\xffr"] {
            assert!(words.number(cut, 9, &mut numbers).is_err());
        }
        let many: Vec<u8> = (0..300u32)
            .flat_map(|it| [2u32.to_le_bytes(), (it << 16 | 2).to_le_bytes()])
            .flatten()
            .collect();
        let many: Vec<u8> = many.chunks(8).flat_map(|it| [&it[..4], &it[6..8]].concat()).collect();
        let error = words.number(&many, 300, &mut numbers).unwrap_err();
        assert!(error.to_string().contains("more than 256 different strings"), "{error}");
    }
}
