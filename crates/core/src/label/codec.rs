//! The bytes of a label: a sealed block, as `docs/formats/label.md` draws it.

use super::{Entry, Label, LabelCopy, Mark};
use crate::durability::block::{
    BlockError, BlockKind, Expected, Field, Header, PAYLOAD_BYTES, field, seal, unseal,
};
use crate::error::IoError;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Bytes before the entries.
const HEAD_BYTES: usize = 32;
const ENTRY_BYTES: usize = 6;
const MARK_BYTES: usize = 8;
/// No label says a greater count.
pub(super) const COUNT_MAX: u32 = u32::MAX - 1;
/// In the place of the index of a mark: there is none.
const NO_MARK: u16 = u16::MAX;
/// Features that a reader must know and this build does.
const KNOWN_FEATURES: u32 = 0;

/// The fields of a label, from the start of the block.
pub const HEAD_FIELDS: [Field; 9] = [
    field("compatible_features", 64, 4),
    field("read_only_features", 68, 4),
    field("required_features", 72, 4),
    field("disk", 76, 2),
    field("entries", 78, 2),
    field("marks", 80, 2),
    field("from", 82, 2),
    field("server", 84, 8),
    field("reserved", 92, 4),
];

/// The fields of an entry, from its start.
pub const ENTRY_FIELDS: [Field; 3] =
    [field("entry_disk", 0, 2), field("entry_last", 2, 2), field("entry_before", 4, 2)];

/// The fields of a mark, from its start.
pub const MARK_FIELDS: [Field; 2] = [field("mark_count", 0, 4), field("mark_random", 4, 4)];

/// Why there is no label in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelError {
    /// It could not be read.
    Io(IoError),
    /// It is no whole sealed block of a label.
    Block(BlockError),
    /// It needs features that this build does not know; the bits say which.
    Features(u32),
    /// What it says makes no sense.
    Content,
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelError::Io(error) => write!(f, "it cannot be read: {error}"),
            LabelError::Block(error) => f.write_str(&error.message()),
            LabelError::Features(bits) => {
                write!(f, "it needs features that this build does not know: {bits:#x}")
            }
            LabelError::Content => f.write_str("what it lists makes no sense"),
        }
    }
}

/// The marks that entries refer to, each once.
struct Marks(Vec<Mark>);

impl Marks {
    fn index(&mut self, mark: Option<Mark>) -> u16 {
        let Some(mark) = mark else {
            return NO_MARK;
        };
        let known = self.0.iter().position(|known| *known == mark);
        let at = known.unwrap_or_else(|| {
            self.0.push(mark);
            self.0.len() - 1
        });
        at as u16
    }
}

impl Label {
    /// The block of a copy on a disk that offers `blocks`; `None` when so many disks were last in at
    /// so many different marks that a block does not hold them.
    pub fn seal(&self, copy: LabelCopy, blocks: u64) -> Option<Vec<u8>> {
        let mut marks = Marks(Vec::new());
        let from = marks.index(self.from);
        let mut entries = Vec::with_capacity(self.entries.len() * ENTRY_BYTES);
        for entry in &self.entries {
            entries.extend(entry.disk.to_le_bytes());
            entries.extend(marks.index(Some(entry.last)).to_le_bytes());
            entries.extend(marks.index(entry.before).to_le_bytes());
        }
        let mut payload = vec![0; 12];
        payload.extend(self.disk.to_le_bytes());
        payload.extend((self.entries.len() as u16).to_le_bytes());
        payload.extend((marks.0.len() as u16).to_le_bytes());
        payload.extend(from.to_le_bytes());
        payload.extend(self.server.to_le_bytes());
        payload.resize(HEAD_BYTES, 0);
        payload.extend(entries);
        for mark in &marks.0 {
            payload.extend(mark.count.to_le_bytes());
            payload.extend(mark.random.to_le_bytes());
        }
        let header = Header {
            kind: BlockKind::Label,
            member: self.set,
            address: copy.address(blocks),
            generation: u64::from(self.mark.count),
            sequence: copy.index() as u64,
            mark: u64::from(self.mark.random),
        };
        (payload.len() <= PAYLOAD_BYTES).then(|| seal(&header, &payload))
    }

    /// The label in the block of a copy, of whatever set, on a disk that offers `blocks`.
    ///
    /// # Errors
    /// When there is none, or it is not whole.
    pub fn unseal(block: &[u8], copy: LabelCopy, blocks: u64) -> Result<Label, LabelError> {
        let expected = Expected::new(BlockKind::Label, None, copy.address(blocks));
        let (header, payload) = unseal(block, expected).map_err(LabelError::Block)?;
        let mut fields = Fields(payload);
        let content = LabelError::Content;
        fields.u32().zip(fields.u32()).ok_or(content.clone())?;
        let unknown = fields.u32().ok_or(content.clone())? & !KNOWN_FEATURES;
        if unknown != 0 {
            return Err(LabelError::Features(unknown));
        }
        decode(header, fields).ok_or(content)
    }
}

/// What follows the features.
fn decode(header: Header, mut fields: Fields<'_>) -> Option<Label> {
    let mut u16 = || fields.u16();
    let (disk, entries, marks, from) = (u16()?, u16()?, u16()?, u16()?);
    let server = fields.u64()?;
    fields.take(HEAD_BYTES - 28)?;
    let listed = fields.take(usize::from(entries) * ENTRY_BYTES)?;
    let table = fields.take(usize::from(marks) * MARK_BYTES)?;
    let mark = |index: u16| {
        let at = usize::from(index) * MARK_BYTES;
        let mut fields = Fields(table.get(at..at + MARK_BYTES)?);
        let count = fields.u32().filter(|count| *count <= COUNT_MAX)?;
        let random = fields.u32()?;
        Some(Mark { count, random })
    };
    let mark_if = |index: u16| match index {
        NO_MARK => Some(None),
        index => mark(index).map(Some),
    };
    let entries = listed.chunks_exact(ENTRY_BYTES).map(|entry| {
        let mut fields = Fields(entry);
        Some(Entry {
            disk: fields.u16()?,
            last: mark(fields.u16()?)?,
            before: mark_if(fields.u16()?)?,
        })
    });
    let count = u32::try_from(header.generation).ok();
    Some(Label {
        set: header.member,
        disk,
        mark: Mark {
            count: count.filter(|count| *count <= COUNT_MAX)?,
            random: u32::try_from(header.mark).ok()?,
        },
        from: mark_if(from)?,
        entries: entries.collect::<Option<_>>()?,
        server,
    })
}

/// Reads fields from the front of bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_le_bytes(bytes.try_into().expect("two bytes")))
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::DISKS_MAX;
    use crate::lifecycle::Uuid;

    fn mark(count: u32) -> Mark {
        let random = count.wrapping_mul(0x9e37_79b9);
        Mark { count, random }
    }

    fn label(disks: u16, before: impl Fn(u16) -> Option<Mark>) -> Label {
        let entry =
            |disk| Entry { disk, last: mark(u32::from(disk % 9) + 1), before: before(disk) };
        Label {
            set: Uuid([5; 16]),
            disk: 2,
            mark: mark(COUNT_MAX),
            from: Some(mark(9)),
            entries: (1..=disks).map(entry).collect(),
            server: 0x0102_0304_0506_0708,
        }
    }

    #[test]
    fn a_label_comes_back_as_it_was_written() {
        let labels = [
            label(0, |_| None),
            label(3, |_| Some(mark(1 << 31))),
            label(DISKS_MAX as u16, |disk| Some(mark(u32::from(disk) + 20))),
            Label::new(Uuid([5; 16]), 7, 99),
        ];
        for label in labels {
            for copy in LabelCopy::ALL {
                let block = label.seal(copy, 1000).expect("a block holds it");
                assert_eq!(Label::unseal(&block, copy, 1000), Ok(label.clone()));
                let elsewhere = Label::unseal(&block, copy, 1001);
                assert!(matches!(elsewhere, Err(LabelError::Block(BlockError::Address(_)))));
            }
        }
    }

    #[test]
    fn a_label_that_no_block_holds_is_not_written() {
        let mut label = label(DISKS_MAX as u16, |disk| Some(mark(u32::from(disk) + 1000)));
        for entry in &mut label.entries {
            entry.last = mark(u32::from(entry.disk) + 2000);
        }
        assert_eq!(label.seal(LabelCopy::First, 1000), None);
    }

    #[test]
    fn a_count_above_the_greatest_is_refused() {
        let mut own = label(3, |_| None);
        own.mark = mark(u32::MAX);
        let mut listed = label(3, |_| None);
        listed.entries[1].last = mark(u32::MAX);
        for label in [own, listed] {
            let block = label.seal(LabelCopy::First, 8).expect("a block holds it");
            let read = Label::unseal(&block, LabelCopy::First, 8);
            assert_eq!(read, Err(LabelError::Content));
        }
    }

    #[test]
    fn a_label_that_is_cut_or_of_another_format_is_refused() {
        let label = label(3, |_| None);
        let block = label.seal(LabelCopy::First, 8).expect("a block holds it");
        let header = |payload: &[u8]| {
            let expected = Expected::new(BlockKind::Label, None, 8);
            let (header, _) = unseal(&block, expected).expect("a label");
            seal(&header, payload)
        };
        let payload = &block[64..64 + HEAD_BYTES + 3 * ENTRY_BYTES + 4 * MARK_BYTES];
        let read = |block: &[u8]| Label::unseal(block, LabelCopy::First, 8);
        assert_eq!(read(&header(payload)), Ok(label));
        for length in 0..payload.len() {
            let cut = read(&header(&payload[..length]));
            assert_eq!(cut, Err(LabelError::Content), "{length} bytes");
        }
        let mut other = payload.to_vec();
        other[8] = 4;
        assert_eq!(read(&header(&other)), Err(LabelError::Features(4)));
        let mut other = payload.to_vec();
        other[HEAD_BYTES + 2] = 200;
        let beyond = read(&header(&other));
        assert_eq!(beyond, Err(LabelError::Content), "no such mark");
        assert_eq!(read(&[0; 4096]), Err(LabelError::Block(BlockError::Zero)), "nothing");
    }
}
