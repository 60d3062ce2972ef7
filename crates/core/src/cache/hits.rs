//! The requests that have taken the short way of the cache.

use super::policy::AccessKind;
use crate::error::IoError;
use crate::map::Slab;
use crate::operation::{RequestId, Tag};
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Tags with this bit belong to hits, and not to a job.
const HIT_BIT: u64 = 1 << 59;

/// Hits on their way, by number; the numbers are in the tags of their operations.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Hits(Slab<Hit>);

/// A request on its way.
#[derive(Debug, SavedValue)]
pub(super) struct Hit {
    pub request: RequestId,
    pub kind: AccessKind,
    /// The entries that it names, by address.
    pub entries: Vec<u32>,
    /// Operations in flight.
    pub outstanding: u32,
    /// The first thing that went wrong.
    pub error: Option<IoError>,
}

impl Hit {
    /// A new place, before a request has it.
    fn none() -> Hit {
        Hit {
            request: RequestId::new(0, 0),
            kind: AccessKind::Read,
            entries: Vec::new(),
            outstanding: 0,
            error: None,
        }
    }
}

impl Hits {
    /// Takes a request in hand that names no entries yet.
    #[inline]
    pub fn open(&mut self, request: RequestId, kind: AccessKind) -> (u32, &mut Hit) {
        let id = self.0.reuse_or(Hit::none);
        let hit = &mut self.0[id];
        (hit.request, hit.kind, hit.outstanding, hit.error) = (request, kind, 0, None);
        // The list of entries keeps its memory from hit to hit.
        hit.entries.clear();
        (id, hit)
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Hit {
        &mut self.0[id]
    }

    /// The hit is answered, or is none.
    #[inline]
    pub fn close(&mut self, id: u32) {
        self.0.remove(id);
    }

    /// The tag of the operations of a hit.
    #[inline]
    pub fn tag_of(id: u32) -> Tag {
        Tag(HIT_BIT | u64::from(id))
    }

    /// The hit whose operation has this tag; `None` when it is of something else.
    #[inline]
    pub fn of_tag(tag: Tag) -> Option<u32> {
        (tag.0 & HIT_BIT != 0).then_some(tag.0 as u32)
    }
}
