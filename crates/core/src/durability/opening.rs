//! Where a recovery stands, and what it has found.

use super::block::{BlockError, FORMAT_VERSION};
use super::events::{Intact, Replayed};
use super::ids::Lsn;
use super::membership::{Membership, PAGES, Page};
use super::record;
use super::replay_end::ReplayEnd;
use super::settings::JournalSettings;
use super::superblock::{COPIES, Superblock};
use crate::error::IoError;
use crate::lifecycle::{OpenError, Uuid};
use crate::saved::Saved;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Generations, epochs and journal blocks are never counted further in the life of a device: at a
/// million blocks a second that takes 292,000 years.
pub(super) const COUNT_MAX: u64 = u64::MAX / 2;

/// How far the life of a journal has come.
#[derive(Debug, Saved)]
pub(super) enum Phase {
    /// Not opened yet, refused or closed.
    Shut,
    /// The ring is being zeroed; then comes the checkpoint of these bytes.
    Formatting(#[saved(keep)] Vec<u8>),
    Opening(#[saved(keep)] Box<Opening>),
    Running,
}

/// What a recovery does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Superblocks,
    Checkpoint,
    Ring,
    Data,
}

/// A recovery on its way.
#[derive(Debug)]
pub(super) struct Opening {
    /// The set that the member must belong to, and its name in it if that is known.
    pub expected: Option<(Uuid, Option<Uuid>)>,
    pub step: Step,
    pub outstanding: u32,
    pub copies: [Option<Result<Superblock, BlockError>>; COPIES],
    /// Lone superblocks newer than the chosen one, the newest last.
    pub newer: Vec<Superblock>,
    pub read_error: Option<IoError>,
    pub membership: MembershipFound,

    pub checkpoint: Vec<u8>,
    /// The generation of the last page that was read.
    pub page_generation: u64,
    /// Bytes of the checkpoint before the first part, when one has begun.
    pub map_bytes: Option<usize>,
    /// The next page, or the next block of the ring counted from the first that is replayed.
    pub next: u64,

    /// The next journal block that may be replayed.
    pub lsn: Lsn,
    /// Replay has ended there; what follows is only looked at.
    pub stopped: bool,
    /// What lies behind the last block that is replayed.
    pub end: ReplayEnd,
    /// Every block before it was durable.
    pub mark: Lsn,
    pub records: Vec<(Lsn, Replayed)>,
    /// The next record whose data may have to be read.
    pub next_record: usize,
}

impl Opening {
    /// Nothing is read yet; `pages` membership pages are beside the superblocks. `expected` is the
    /// set that the member must belong to, and its name in it if that is known.
    pub fn new(expected: Option<(Uuid, Option<Uuid>)>, pages: usize) -> Opening {
        Opening {
            expected,
            step: Step::Superblocks,
            outstanding: (COPIES + pages) as u32,
            copies: [const { None }; COPIES],
            newer: Vec::new(),
            read_error: None,
            membership: MembershipFound::default(),
            checkpoint: Vec::new(),
            page_generation: 0,
            map_bytes: None,
            next: 0,
            lsn: Lsn(0),
            stopped: false,
            end: ReplayEnd::default(),
            mark: Lsn(0),
            records: Vec::new(),
            next_record: 0,
        }
    }
}

/// What a copy of several says of all of them.
#[derive(Debug, Default)]
pub(super) struct MembershipFound {
    pub pages: [Option<Page>; PAGES],
    /// What the newer page says.
    pub newest: Option<Membership>,
    /// This copy is the one that the journal goes by.
    pub is_chosen: bool,
}

/// Takes the parts of a checkpoint that are records from behind its map.
pub(super) fn take_record_parts(
    opening: &mut Opening,
    settings: &JournalSettings,
) -> Result<(), OpenError> {
    let map_bytes = opening.map_bytes.ok_or_else(|| {
        OpenError::damaged(
            "checkpoint",
            "no part is behind its map, and the superblock says that there are",
        )
    })?;
    let parts = opening.checkpoint.split_off(map_bytes);
    take_records(opening, None, &parts, settings)
}

/// Adds the records of a journal block to those that are replayed, or those of a checkpoint.
pub(super) fn take_records(
    opening: &mut Opening,
    block: Option<Lsn>,
    payload: &[u8],
    settings: &JournalSettings,
) -> Result<(), OpenError> {
    let damaged = |detail: &str| match block {
        Some(lsn) => OpenError::damaged("journal", format!("block {}: {detail}", lsn.0)),
        None => OpenError::damaged("checkpoint", format!("its parts: {detail}")),
    };
    for record in record::records(payload) {
        let record = record.map_err(|_| damaged("the records cannot be taken apart"))?;
        let (_, blocks) = settings.data_port(record.kind);
        if record.data.is_some_and(|data| data.end().0 > blocks.0) {
            return Err(damaged("a record names data past the end of the member"));
        }
        let checksums = (0..record.checksums.len() / 4).map(|at| record.checksum(at)).collect();
        let replayed = Replayed {
            kind: record.kind,
            payload: record.payload.to_vec(),
            data: record.data,
            checksums,
            intact: Intact::All,
        };
        // Blocks from the mark on are unsure. What is in the checkpoint is durable, so it gets the first number.
        opening.records.push((block.unwrap_or(Lsn(0)), replayed));
    }
    Ok(())
}

/// Why no copy of the superblock will do.
pub(super) fn no_superblock(opening: &Opening) -> OpenError {
    if let Some(error) = opening.read_error {
        return OpenError::Io(error);
    }
    let mut details: Vec<String> = vec![];
    for (copy, found) in (0..).zip(&opening.copies) {
        match found {
            Some(Err(BlockError::Version(found))) => {
                return OpenError::Version {
                    found: u32::from(*found),
                    supported: u32::from(FORMAT_VERSION),
                };
            }
            Some(Err(error)) if *error != BlockError::Zero => {
                details.push(format!("copy {copy}: {}", error.message()));
            }
            _ => {}
        }
    }
    let foreign = |copy: &Option<Result<Superblock, BlockError>>| {
        matches!(copy, Some(Err(BlockError::Zero | BlockError::Magic(_))))
    };
    if opening.copies.iter().all(foreign) {
        return OpenError::NotFormatted;
    }
    OpenError::damaged("superblock", details.join("; "))
}
