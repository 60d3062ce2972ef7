//! Where a cache stands on its way up and down, beside what its ledger says.

use super::intent::{INTENT_PAGES, IntentPage};
use crate::buffer::BufferSlice;
use crate::durability::Recovery;
use crate::durability::block::BlockError;
use crate::error::IoError;
use crate::lifecycle::{OpenError, Start};
use crate::saved::{Saved, SavedValue};
use alloc::boxed::Box;
use alloc::string::String;

/// What a cache does beside serving.
#[derive(Debug, Saved)]
pub(in crate::cache) enum Life {
    /// Nothing: the ledger says whether the cache serves.
    Plain,
    Opening(#[saved(keep)] Box<Opening>),
    /// The flash cannot be read; what lies below outside the marked regions is served.
    Degraded(IntentPage),
    Closing(Closing),
}

/// A write-intent page, as it was found.
#[derive(Debug)]
pub(in crate::cache) enum FoundPage {
    Good(IntentPage),
    Bad(BlockError),
    Unreadable(IoError),
}

/// How far coming up has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cache) enum OpeningStep {
    /// The members are read.
    Reading,
    /// This many write-intent pages have yet to be written before the journal begins.
    Announcing(u64),
    /// The journal writes its first checkpoint.
    Beginning,
}

/// How far going down has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(in crate::cache) enum Closing {
    /// The last destages are brought to an end.
    Draining,
    /// The write-intent page is written.
    Announced,
    /// The closing checkpoint is written.
    Writing,
    /// The write-intent page says so.
    Confirming,
}

/// How far a checkpoint has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(in crate::cache) enum Checkpointing {
    No,
    /// The write-intent page that says so is on its way.
    Announced,
    /// The journal is writing it.
    Writing,
}

/// A cache on its way up.
#[derive(Debug)]
pub(in crate::cache) struct Opening {
    pub start: Start,
    pub step: OpeningStep,
    pub buffers: [BufferSlice; INTENT_PAGES as usize],
    pub pages: [Option<FoundPage>; INTENT_PAGES as usize],
    pub journal: Option<Result<Recovery, OpenError>>,
    /// The number of the backing in the set.
    pub backing: u16,
}

impl Opening {
    /// Nothing is read yet. `backing` is the number of the backing in the set.
    pub fn new(start: Start, backing: u16) -> Opening {
        Opening {
            start,
            step: OpeningStep::Reading,
            buffers: [BufferSlice::EMPTY; INTENT_PAGES as usize],
            pages: [const { None }; INTENT_PAGES as usize],
            journal: None,
            backing,
        }
    }

    /// True when the journal and both pages are read, or could not be.
    pub fn is_read(&self) -> bool {
        self.journal.is_some() && self.pages.iter().all(Option::is_some)
    }

    /// The newest whole write-intent page.
    pub fn newest_page(&self) -> Option<&IntentPage> {
        let good = self.pages.iter().filter_map(|page| match page {
            Some(FoundPage::Good(page)) => Some(page),
            _ => None,
        });
        good.max_by_key(|page| page.version)
    }

    /// True when both write-intent pages are whole.
    pub fn has_both_pages(&self) -> bool {
        let is_good = |page: &Option<FoundPage>| matches!(page, Some(FoundPage::Good(_)));
        self.pages.iter().all(is_good)
    }

    /// Why no write-intent page will do.
    pub fn no_page(&self) -> OpenError {
        let mut details = String::new();
        let mut never_written = true;
        for (number, page) in (0..).zip(&self.pages) {
            match page {
                Some(FoundPage::Unreadable(error)) => return OpenError::Io(*error),
                Some(FoundPage::Bad(error)) => {
                    never_written &= *error == BlockError::Zero;
                    let separator = if number > 0 { "; " } else { "" };
                    details += &alloc::format!("{separator}page {number}: {}", error.message());
                }
                Some(FoundPage::Good(_)) | None => {}
            }
        }
        if never_written {
            return OpenError::NotFormatted;
        }
        OpenError::damaged("write-intent page", details)
    }
}

/// Whether the two members have come equally far.
pub(in crate::cache) fn check_generations(
    page: &IntentPage,
    generation: u64,
) -> Result<(), OpenError> {
    let greatest = page.generation.max(page.pending);
    if generation < page.generation {
        return Err(OpenError::OlderCopy {
            member: "flash",
            found: generation,
            expected: page.generation,
        });
    }
    if generation > greatest {
        return Err(OpenError::OlderCopy {
            member: "backing",
            found: greatest,
            expected: generation,
        });
    }
    Ok(())
}
