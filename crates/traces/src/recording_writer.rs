//! Writes Imbrex's own recording format.

use crc_fast::CrcAlgorithm::Crc32Iscsi;
use crc_fast::Digest;
use std::io::{self, Write};

use super::record::{SourceKind, TraceOperation, TraceRecord};
use super::recording::{
    FLAG_NO_TIMES, HEADER_FIXED_BYTES, MAGIC, Previous, RECORDING_VERSION, RecordingHeader,
    TAG_DEVICE, TAG_FUA, TAG_SAME_LENGTH, TAG_SECTORS, TAG_SEQUENTIAL, TEXT_BYTES_MAX, TRAILER,
    operation_code,
};

/// Bytes gathered before they are handed to the output.
const BUFFER_BYTES: usize = 64 * 1024;

/// A recording being written, record by record.
///
/// Times are kept to the microsecond; measured response times are not kept. Call [`finish`](Self::finish) at the end: a
/// recording without its trailer is taken for truncated.
#[derive(Debug)]
pub struct RecordingWriter<W: Write> {
    output: W,
    buffer: Vec<u8>,
    previous: Previous,
    records: u64,
    crc: Box<Digest>,
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the header. Name and description are cut to 4096 bytes each.
    ///
    /// # Errors
    /// The output refuses the bytes.
    pub fn new(mut output: W, header: &RecordingHeader) -> io::Result<Self> {
        let (name, description) = (cut(&header.name), cut(&header.description));
        let mut bytes = Vec::with_capacity(HEADER_FIXED_BYTES + name.len() + description.len() + 4);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&RECORDING_VERSION.to_le_bytes());
        bytes.push(match header.kind {
            SourceKind::Captured => 0,
            SourceKind::Recorded => 1,
            SourceKind::Synthetic => 2,
        });
        bytes.push(if header.has_times { 0 } else { FLAG_NO_TIMES });
        bytes.extend_from_slice(&header.device_bytes.to_le_bytes());
        bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(description.len() as u16).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(description.as_bytes());
        let crc = crc_fast::crc32_iscsi(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        output.write_all(&bytes)?;
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(Self {
            output,
            buffer,
            previous: Previous::default(),
            records: 0,
            crc: Box::new(Digest::new(Crc32Iscsi)),
        })
    }

    /// Appends one record. A time before the previous record's is written as that time.
    ///
    /// # Errors
    /// The output refuses the bytes.
    pub fn write(&mut self, record: &TraceRecord) -> io::Result<()> {
        let previous = &mut self.previous;
        let mut tag = operation_code(record.operation) | if record.fua { TAG_FUA } else { 0 };
        let flush = record.operation == TraceOperation::Flush;
        let distance = record.offset_bytes.wrapping_sub(previous.end_bytes) as i64;
        let mut unit = 1;
        if record.device != previous.device {
            tag |= TAG_DEVICE;
        }
        if !flush {
            if (record.offset_bytes | record.length_bytes | previous.end_bytes).is_multiple_of(512)
            {
                tag |= TAG_SECTORS;
                unit = 512;
            }
            if distance == 0 {
                tag |= TAG_SEQUENTIAL;
            }
            if record.length_bytes == previous.length_bytes {
                tag |= TAG_SAME_LENGTH;
            }
        }
        self.buffer.push(tag);
        if tag & TAG_DEVICE != 0 {
            push_varint(&mut self.buffer, u64::from(record.device));
            previous.device = record.device;
        }
        let time_us = (record.time_ns / 1000).max(previous.time_us);
        push_varint(&mut self.buffer, time_us - previous.time_us);
        previous.time_us = time_us;
        if !flush {
            if tag & TAG_SEQUENTIAL == 0 {
                let distance = distance / unit as i64;
                push_varint(&mut self.buffer, ((distance << 1) ^ (distance >> 63)) as u64);
            }
            if tag & TAG_SAME_LENGTH == 0 {
                push_varint(&mut self.buffer, record.length_bytes / unit);
            }
            previous.length_bytes = record.length_bytes;
            previous.end_bytes = record.offset_bytes + record.length_bytes;
        }
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES - 64 { self.drain() } else { Ok(()) }
    }

    /// Number of records written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Hands everything written so far to the output, so that a reader that accepts unfinished recordings sees it.
    ///
    /// # Errors
    /// The output refuses the bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        self.output.flush()
    }

    /// Writes the trailer and returns the output.
    ///
    /// # Errors
    /// The output refuses the bytes.
    pub fn finish(mut self) -> io::Result<W> {
        self.buffer.push(TRAILER);
        self.buffer.extend_from_slice(&self.records.to_le_bytes());
        self.drain()?;
        self.output.write_all(&(self.crc.finalize() as u32).to_le_bytes())?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn drain(&mut self) -> io::Result<()> {
        self.crc.update(&self.buffer);
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

fn push_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}

/// At most [`TEXT_BYTES_MAX`] bytes, cut between characters.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
