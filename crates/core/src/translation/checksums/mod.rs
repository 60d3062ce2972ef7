//! Tables of checksums on the disk: a part for any translation.
//!
//! A table says what each block of something is: of a band, a segment, a position. It is a row of
//! [pages](Page), each a sealed block, so that a page of another disk, another place or another
//! generation is never taken for it. Pages that were used last are in [memory](PageCache); what was
//! read and cannot be compared yet [waits](Waiting) for the page that is missing. The layer alone
//! issues operations.

mod page;
mod page_cache;
mod waiting;

pub(super) use page::{Page, PageId, PageState, SUMS_PER_PAGE, pages_of};
pub(super) use page_cache::PageCache;
pub(super) use waiting::Waiting;
