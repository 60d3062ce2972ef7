//! What a completion belongs to.

use crate::operation::Tag;

/// The kind of an operation, in the tag above a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TagKind {
    /// For the task of a read: of a copy, or of the whole block below.
    Read,
    /// For a read: of some of its blocks, straight into its buffer.
    ReadRun,
    /// A block is stored as a copy; the number is of what was lent.
    Stored,
    /// The store of copies was told of the task of a write.
    Overwritten,
    /// It was told of a write where there is no memory.
    AroundOverwritten,
    /// A write where there is no memory.
    Around,
    /// For the task of a batch: what its block lacks.
    Fill,
    /// A write of a batch.
    Destage,
    /// A flush below, for a request.
    Flush,
    /// A step of the request that zeroes.
    Zero,
    /// A copy was dropped; nobody waits.
    Dropped,
    /// A write to the log.
    Log,
    /// A read of the log while the buffer comes up.
    Open,
}

const KINDS: [TagKind; 13] = [
    TagKind::Read,
    TagKind::ReadRun,
    TagKind::Stored,
    TagKind::Overwritten,
    TagKind::AroundOverwritten,
    TagKind::Around,
    TagKind::Fill,
    TagKind::Destage,
    TagKind::Flush,
    TagKind::Zero,
    TagKind::Dropped,
    TagKind::Log,
    TagKind::Open,
];

const KIND_SHIFT: u32 = 32;

/// The tag of an operation.
pub(super) fn tag(kind: TagKind, number: u32) -> Tag {
    Tag((kind as u64) << KIND_SHIFT | u64::from(number))
}

/// What the operation with a tag was.
pub(super) fn tag_of(tag: Tag) -> (TagKind, u32) {
    (KINDS[(tag.0 >> KIND_SHIFT) as usize], tag.0 as u32)
}
