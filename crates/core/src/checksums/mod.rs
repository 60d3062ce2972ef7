//! Tables of checksums on the disk: a part for any layer.
//!
//! A table says what each block of something is: of a band, a segment, a position. It is a row of
//! [pages](Page), each a sealed block, so that a page of another disk, another place or another
//! generation is never taken for it. A layer asks its [`Pages`] what blocks that it has read must be:
//! those that were used last are in memory, and what cannot be compared yet waits for the page that is
//! missing. The layer alone issues operations.

mod page;
mod page_cache;
mod pages;
mod waiting;
mod word;

pub(crate) use page::{Page, PageId, PageState, SUMS_PER_PAGE, pages_of};
pub(crate) use pages::{PageRead, Pages, Verdict};
pub use word::{BAD, NOTHING, ZERO_SUM};
pub(crate) use word::{is_right, word_of};

/// How a translation keeps checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChecksumSettings {
    /// Bytes of tables that are kept in memory: a page at least.
    pub memory_bytes: u64,
}

impl Default for ChecksumSettings {
    fn default() -> ChecksumSettings {
        ChecksumSettings { memory_bytes: 64 << 20 }
    }
}

impl ChecksumSettings {
    /// Pages that are kept in memory, of so many that there are with so many checksums each at most.
    pub(crate) fn pages_max(&self, pages: u64, sums: u64) -> usize {
        let page_bytes = 4 * sums.min(SUMS_PER_PAGE as u64);
        (self.memory_bytes / page_bytes).min(pages) as usize
    }
}
