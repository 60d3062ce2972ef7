//! Operations, and the messages that carry them down and their results up.

use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::saved::SavedValue;

/// When a write may be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Durability {
    /// As soon as a later flush would make it durable.
    Cached,
    /// Only when it is durable itself: forced unit access.
    Durable,
}

/// What a device can be asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Operation {
    /// Fill the buffer from the extent.
    Read,
    /// Store the buffer in the extent.
    Write {
        /// When it may be answered.
        durability: Durability,
    },
    /// Make the extent read as zeroes, never again as older data.
    Zero {
        /// When it may be answered.
        durability: Durability,
        /// The space may be given up: a trim.
        may_unmap: bool,
    },
    /// Make every write completed before it arrived durable.
    Flush,
    /// Keep the zone open until it is closed, finished, reset or full; the extent is the zone.
    ZoneOpen,
    /// Give up the resources of an open zone; the extent is the zone.
    ZoneClose,
    /// Set the write pointer of the zone back to its start; the extent is the zone.
    ZoneReset,
    /// Move the write pointer of the zone to its end; the extent is the zone.
    ZoneFinish,
    /// Fill the buffer with the state of zones, from the zone that holds the start of the extent
    /// (see [`report`](crate::zone::report)). The extent is as long as the buffer.
    ZoneReport,
    /// Something with the copies that a store of copies keeps; no other node takes it.
    Copy(CopyOperation),
}

/// What a [store of copies](crate::disk::CopyStore) can be asked to do. A copy is a whole block of
/// the store; the extent lies in one, that of [`Drop`](CopyOperation::Drop) in any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum CopyOperation {
    /// Fill the buffer from the copy. Where there is none, make room for one and answer
    /// [`NoCopy`](IoError::NoCopy); who asked stores the whole block later.
    FindOrReserve,
    /// Fill the buffer from the copy, or answer [`NoCopy`](IoError::NoCopy).
    Find,
    /// The same as if nobody had looked: it counts as no hit and does not make the copy newer.
    Peek,
    /// The whole block, for a copy that was reserved; a new copy where none was and there is none.
    Store,
    /// The host has written the buffer, and a layer above keeps it for now.
    Overwritten,
    /// The buffer is being written home to the extent: whatever copy there is, is older there.
    Destaged,
    /// Forget the copies of all blocks that the extent touches.
    Drop,
}

impl Operation {
    /// A write that a later flush makes durable.
    pub const WRITE: Operation = Operation::Write { durability: Durability::Cached };
    /// A write that is durable when it completes.
    pub const WRITE_DURABLE: Operation = Operation::Write { durability: Durability::Durable };

    /// True when the operation must be durable at its completion.
    #[inline]
    pub fn is_durable(self) -> bool {
        matches!(
            self,
            Operation::Write { durability: Durability::Durable }
                | Operation::Zero { durability: Durability::Durable, .. }
        )
    }

    /// True when the operation is about a zone as such.
    #[inline]
    pub fn is_zone_command(self) -> bool {
        matches!(
            self,
            Operation::ZoneOpen
                | Operation::ZoneClose
                | Operation::ZoneReset
                | Operation::ZoneFinish
                | Operation::ZoneReport
        )
    }

    /// True when the operation moves the data of a buffer.
    #[inline]
    pub fn has_data(self) -> bool {
        matches!(self, Operation::Read | Operation::Write { .. } | Operation::ZoneReport)
            || self.moves_copy()
    }

    #[inline]
    fn moves_copy(self) -> bool {
        matches!(self, Operation::Copy(what) if what != CopyOperation::Drop)
    }
}

/// Declares the causes: the word that reports use, and in the comment who it is. The sums of reports,
/// their tables, files and pages, the schema and the document of reports follow.
macro_rules! causes {
    ($($(#[doc = $says:literal])+ $cause:ident($name:literal),)+) => {
        /// Who wanted an operation. Write amplification and cleaning cost are sums over causes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, SavedValue)]
        #[repr(u8)]
        pub enum Cause {
            $($(#[doc = $says])+ $cause,)+
        }

        impl Cause {
            /// Every cause, in the order of their discriminants.
            pub const ALL: [Cause; [$($name),+].len()] = [$(Cause::$cause),+];

            /// The word used in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Cause::$cause => $name,)+
                }
            }

            /// Who it is, in a sentence.
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Cause::$cause => concat!($($says),+).trim_ascii(),)+
                }
            }
        }
    };
}

causes! {
    /// A client of the device.
    Host("host"),
    /// A write-back cache that makes room.
    Destage("destage"),
    /// A translation layer that rewrites a band.
    Cleaning("cleaning"),
    /// An array that keeps its parity, for a write of a host: it reads what is about to be replaced, and reads
    /// and writes parity.
    Parity("parity"),
    /// An array that restores a lost member.
    Rebuild("rebuild"),
    /// A background check of stored data.
    Scrub("scrub"),
    /// A layer's own journal, map or superblock.
    Metadata("metadata"),
}

/// A word the issuer chooses and gets back with the completion; what it means is the issuer's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, SavedValue)]
pub struct Tag(pub u64);

/// Names one request while it is in flight. The router never gives the same id to two requests
/// that are, or were, confused with one another: a stale id panics.
// One word, so that a completion is two and goes through registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, SavedValue)]
pub struct RequestId(u64);

impl RequestId {
    #[inline]
    pub(crate) fn new(index: u32, generation: u32) -> RequestId {
        RequestId(u64::from(generation) << 32 | u64::from(index))
    }

    /// Its place in the table of requests in flight.
    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    /// How many requests have had the place before.
    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// An operation going down.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Request {
    /// To be given to [`Context::finish`](crate::layer::Context::finish), exactly once.
    pub id: RequestId,
    /// What to do.
    pub operation: Operation,
    /// Where; empty for a flush.
    pub extent: Extent,
    /// The data, as long as the extent; empty when the operation moves none.
    pub buffer: BufferSlice,
    /// Who wanted it.
    pub cause: Cause,
    /// More of the same batch follows at once (see
    /// [`Context::issue_in_batch`](crate::layer::Context::issue_in_batch)).
    pub has_more: bool,
}

/// The result of an operation coming up.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Completion {
    /// As chosen when the operation was issued.
    pub tag: Tag,
    /// What happened.
    pub result: Result<(), IoError>,
}
