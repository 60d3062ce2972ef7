//! What a persistent cache does in another way when it keeps its map over a power cut: each a
//! choice of its own, so that a part asks for the choice and not for the reason.

use super::areas::{DATA_BLOCKS_MAX, LOST_BLOCKS_MAX};
use super::settings::{CoveredBlocks, PersistentCacheSettings, RewriteExtent, TrimMethod};
use crate::operation::Operation;

/// When a flush is served while writes wait for room in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FlushOrder {
    /// Behind them, as a disk does that flushes when its queue is empty: so a flush takes as long as
    /// the clean that they need (bcachefs-tools issue 813: 1.0 to 1.9 s with a full media cache).
    BehindWrites,
    /// At once: what waits was not answered, so the flush promises nothing of it.
    AtOnce,
}

/// When a zero is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ZeroOrder {
    /// At once: the map is all that changes.
    AtOnce,
    /// In its turn between the writes, because the journal must have room for its record, or because
    /// it is one of them.
    BehindWrites,
}

/// How a band rewrite says how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// It writes a note to the metadata track.
    Notes,
    /// It appends a record to the journal of the map and waits until a flush has made it durable.
    Records,
}

/// The choices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Conduct {
    pub flush_order: FlushOrder,
    pub zero_order: ZeroOrder,
    pub progress: Progress,
    /// A band rewrite verifies what it has merged, and writes a table of its checksums.
    pub verifies: bool,
    /// What lies above the write pointer of a band reads as zeroes; otherwise the set of zeroed
    /// blocks says what does.
    pub pointers_bound_reads: bool,
    /// Something asks for the write pointers.
    pub keeps_pointers: bool,
    /// A band is rewritten to the end of what is in use, and no further.
    pub frees_tails: bool,
    /// A band rewrite does not read at home, nor copy to the scratch band, what the log holds.
    pub trusts_log: bool,
    /// Longest run of blocks that is written home past the log at a time.
    pub bypass_run_max: u64,
    /// How many blocks may be lost: those of writes that have failed, and of writes that may.
    pub lost_blocks_max: u64,
}

impl Conduct {
    /// The choices of a drive that keeps nothing over a power cut beside what its firmware does.
    pub fn of_a_drive(settings: &PersistentCacheSettings) -> Conduct {
        Conduct {
            flush_order: FlushOrder::BehindWrites,
            zero_order: match settings.trim {
                TrimMethod::None => ZeroOrder::BehindWrites,
                TrimMethod::FromLog | TrimMethod::Frees => ZeroOrder::AtOnce,
            },
            progress: Progress::Notes,
            verifies: false,
            pointers_bound_reads: settings.host_aware.is_some(),
            keeps_pointers: settings.bypass.is_some()
                || settings.rewrite.extent == RewriteExtent::FromFirstDirtyToWritten,
            frees_tails: settings.trim == TrimMethod::Frees,
            trusts_log: settings.rewrite.covered == CoveredBlocks::FromLog,
            bypass_run_max: u64::MAX,
            lost_blocks_max: u64::MAX,
        }
    }

    /// The choices of a translation that keeps its map in a journal.
    pub fn with_a_journal() -> Conduct {
        Conduct {
            flush_order: FlushOrder::AtOnce,
            zero_order: ZeroOrder::BehindWrites,
            progress: Progress::Records,
            verifies: true,
            pointers_bound_reads: true,
            keeps_pointers: true,
            // A recovery takes a rewritten band to be whole.
            frees_tails: false,
            // It takes a rewrite up from the scratch copy, and a read verifies old checksums.
            trusts_log: false,
            bypass_run_max: DATA_BLOCKS_MAX,
            // One more write may fail then.
            lost_blocks_max: LOST_BLOCKS_MAX - DATA_BLOCKS_MAX,
        }
    }

    /// What is written below for a write of the host. Where there is a journal, its flush makes the
    /// data of a forced write durable together with the record.
    pub fn data_operation(&self, requested: Operation) -> Operation {
        match (self.progress, requested) {
            (Progress::Records, _) => Operation::WRITE,
            // Zeroes that are written are data.
            (Progress::Notes, Operation::Zero { durability, .. }) => {
                Operation::Write { durability }
            }
            (Progress::Notes, write) => write,
        }
    }

    /// How a band rewrite writes its copies: forced, or with a flush behind them.
    pub fn copy_operation(&self) -> Operation {
        match self.progress {
            Progress::Notes => Operation::WRITE_DURABLE,
            Progress::Records => Operation::WRITE,
        }
    }
}
