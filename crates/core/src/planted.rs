//! Bugs planted on purpose, so that tests can show that they would be found.
//!
//! [`Stack::plant`](crate::stack::Stack::plant) is the only switch, and only tests and the crash search
//! turn it.

macro_rules! planted_bugs {
    ($($(#[doc = $doc:literal])+ $bug:ident = $name:literal,)+) => {
        /// A bug that a test may plant.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum PlantedBug {
            $($(#[doc = $doc])+ $bug,)+
        }

        impl PlantedBug {
            /// Every bug that can be planted.
            pub const ALL: &[PlantedBug] = &[$(PlantedBug::$bug,)+];

            /// The name used on the command line and in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(PlantedBug::$bug => $name,)+
                }
            }
        }
    };
}

impl PlantedBug {
    /// True when a stack of the crash search can show it. The others are bugs of layers that these
    /// stacks do not have: the tests of those layers find them.
    pub fn is_searched(self) -> bool {
        // A failure of one operation alone shows the first. The second shows below a buffer whose node
        // below answers before it is durable, and those of the search do not. Who stands on a scheduler orders
        // what overlaps itself: a scheduler alone shows the third. Zones that are there after a power cut show the
        // fourth, and no stack that can be served has such yet.
        let is_hidden = matches!(
            self,
            PlantedBug::FailedDestageDropped
                | PlantedBug::CleanBeforeFlush
                | PlantedBug::SchedulerIgnoresOrder
                | PlantedBug::ZoneResetBeforeFlush
        );
        !self.is_of_copies() && !self.is_of_members() && !self.is_of_arrays() && !is_hidden
    }

    /// True when only an array that loses members can show it: it is looked for where a member goes
    /// and the power does.
    pub fn is_of_arrays(self) -> bool {
        self.name().starts_with("array-")
    }

    /// True when it is looked for where something has happened to a member between two starts: it was
    /// away, is another one, or has changed.
    pub fn is_of_members(self) -> bool {
        matches!(
            self,
            PlantedBug::UpOverLostNode
                | PlantedBug::LabelNotCompared
                | PlantedBug::CountMovedAfterFirstWrite
                | PlantedBug::SumOfWhatWasRead
        )
    }

    /// True when only a journal with copies can show it.
    pub fn is_of_copies(self) -> bool {
        matches!(
            self,
            PlantedBug::LostCopyUnrecorded
                | PlantedBug::RecordedOutCopyTaken
                | PlantedBug::OlderCopyTaken
                | PlantedBug::ReplacementUnrecorded
        )
    }
}

planted_bugs! {
    /// A flush of the cache does not reach its flash.
    SsdFlushSkipped = "ssd-flush-skipped",
    /// A flush of a translation does not reach its disk.
    SmrFlushSkipped = "smr-flush-skipped",
    /// A flush of a translation on two disks reaches the disk of its log alone.
    HomeFlushSkipped = "home-flush-skipped",
    /// A flush is answered before the flush of the journal has completed.
    AckBeforeJournalFlush = "ack-before-journal-flush",
    /// A forced write is answered like a plain one.
    FuaAsPlain = "fua-as-plain",
    /// A flush does nothing unless its own connection has written since the last one.
    FlushOwnConnectionOnly = "flush-own-connection-only",
    /// The checksum of a journal block is not checked at recovery.
    RecordCrcUnchecked = "record-crc-unchecked",
    /// Recovery goes on behind a bad journal block.
    ReplayPastBadRecord = "replay-past-bad-record",
    /// An opened journal goes on with the old epoch.
    EpochNotBumped = "epoch-not-bumped",
    /// An opened journal takes records before its new epoch is durable.
    EpochBumpUnflushed = "epoch-bump-unflushed",
    /// A superblock points to checkpoint pages that are not durable yet.
    RootBeforePages = "root-before-pages",
    /// The journal before a checkpoint is overwritten before the checkpoint is durable.
    JournalFreedEarly = "journal-freed-early",
    /// All superblock copies are written at once.
    AllSuperblocksInFlight = "all-superblocks-in-flight",
    /// A superseded location is used again before the new mapping is durable.
    OldLocationReusedEarly = "old-location-reused-early",
    /// A dirty block leaves the cache before it is durable below.
    DirtyDroppedBeforeDestinationFlush = "dirty-dropped-before-destination-flush",
    /// A cache records where a block lies, and answers, before the data is there.
    MapBeforeData = "map-before-data",
    /// A cache does not record that a block has left it.
    EvictionForgotten = "eviction-forgotten",
    /// A buffer resets a zone before all of it is durable in flash.
    ZoneResetBeforeFlush = "zone-reset-before-flush",
    /// A band rewrite drops a log entry that was appended while it ran.
    RemapIgnoresOverwrite = "remap-ignores-overwrite",
    /// A band is rewritten in place without a copy of its old content.
    BandRewriteWithoutScratch = "band-rewrite-without-scratch",
    /// The scratch band is used again before the band it covers is durable.
    ScratchReleasedEarly = "scratch-released-early",
    /// A band rewrite leaves out one write that restores what an earlier one destroyed.
    OverlapNotRestored = "overlap-not-restored",
    /// A read of a band goes home while the band is being written there.
    ScratchCopyNotRead = "scratch-copy-not-read",
    /// The sequential bypass writes home below live data.
    BypassOverLiveData = "bypass-over-live-data",
    /// Space that a trim freed is used again before the trim is durable.
    TrimReusedEarly = "trim-reused-early",
    /// Recovery ignores trims.
    TrimForgottenOnReplay = "trim-forgotten-on-replay",
    /// A flush that failed is tried again and then taken for good.
    FailedFlushRetried = "failed-flush-retried",
    /// The checksum of data is not checked when it is read.
    ReadCrcSkipped = "read-crc-skipped",
    /// A metadata block is accepted whatever address or number it says it has.
    CrcWithoutAddress = "crc-without-address",
    /// Recovery overwrites what a second recovery would need.
    RecoveryNotIdempotent = "recovery-not-idempotent",
    /// Recovery keeps a record whose data is not there.
    DanglingRecordKept = "dangling-record-kept",
    /// The mark of the last flush speaks of journal blocks that no flush has covered.
    IdleMarkAhead = "idle-mark-ahead",
    /// Recovery says nothing of a damaged block at the end of the journal.
    DamagedEndUnreported = "damaged-end-unreported",
    /// The loss of a copy of a mirrored journal is not recorded before the next answer.
    LostCopyUnrecorded = "lost-copy-unrecorded",
    /// Recovery takes a copy of a mirrored journal that another one has recorded out.
    RecordedOutCopyTaken = "recorded-out-copy-taken",
    /// Recovery goes by the oldest copy of a mirrored journal.
    OlderCopyTaken = "older-copy-taken",
    /// A new copy of a mirrored journal is admitted, and the others do not record its number.
    ReplacementUnrecorded = "replacement-unrecorded",
    /// With its flash gone, a cache serves what lies below instead of what is lost.
    DeadSsdServedStale = "dead-ssd-served-stale",
    /// An S-block is recorded before what was written at the head is durable.
    SBlockRecordedUnflushed = "s-block-recorded-unflushed",
    /// A rewrite of an S-block leaves out its blocks in the ring.
    SBlockRingLeftOut = "s-block-ring-left-out",
    /// The head of a region of S-blocks is written while what it destroys is still needed.
    SBlockReadsIgnored = "s-block-reads-ignored",
    /// A scheduler lets requests overtake older ones that share a block with them.
    SchedulerIgnoresOrder = "scheduler-ignores-order",
    /// A slice of a shingled disk writes the tracks that guard its neighbour.
    SliceGuardLeftOut = "slice-guard-left-out",
    /// A slice does not know of a flush that failed through another slice of its node.
    SliceFlushFailureForgotten = "slice-flush-failure-forgotten",
    /// A rewrite of a segment stops one track short of what it has destroyed.
    SegmentTailLeftOut = "segment-tail-left-out",
    /// A rewrite of a segment writes home before its slot of the journal is durable.
    SegmentWrittenBeforeSlot = "segment-written-before-slot",
    /// A slot of the journal is used again before what it held is durable at home.
    SegmentSlotFreedEarly = "segment-slot-freed-early",
    /// A rewrite takes the checksum of what it has read, whether that was right or not.
    SumOfWhatWasRead = "sum-of-what-was-read",
    /// A copy in a read cache outlives the destage of its block.
    StaleCopyKept = "stale-copy-kept",
    /// What a write buffer reads of a block replaces what was written to it.
    FillOverWritten = "fill-over-written",
    /// A write buffer forgets the blocks of a destage that has failed.
    FailedDestageDropped = "failed-destage-dropped",
    /// A write buffer takes blocks out of its log before they are durable below.
    CleanBeforeFlush = "clean-before-flush",
    /// A flush of a stripe reaches its first node alone.
    StripeFlushesFirstAlone = "stripe-flushes-first-alone",
    /// A node that could not come up without a lost disk is asked all the same.
    UpOverLostNode = "up-over-lost-node",
    /// What the label of a disk says is not compared with what the others list.
    LabelNotCompared = "label-not-compared",
    /// The count of the labels does not move before the first write of a start, but at its stop.
    CountMovedAfterFirstWrite = "count-moved-after-first-write",
    /// A host's write does not go to the member that is being rebuilt.
    ArrayRebuildSkipsNewWrites = "array-rebuild-skips-new-writes",
    /// Rows are rebuilt without a lock against the host's writes.
    ArrayRebuildWithoutLock = "array-rebuild-without-lock",
    /// Copies are not made the same after a crash.
    ArrayNotComparedAfterCrash = "array-not-compared-after-crash",
    /// A flush goes to one member.
    ArrayFlushesOneMember = "array-flushes-one-member",
    /// An answer does not wait until a loss is recorded.
    ArrayAnswersBeforeLossRecorded = "array-answers-before-loss-recorded",
    /// A replacement is answered before it is recorded.
    ArrayReplacedBeforeRecorded = "array-replaced-before-recorded",
    /// How far a rebuild has come is recorded before its blocks are durable.
    ArrayCursorAheadOfData = "array-cursor-ahead-of-data",
    /// A region counts as the same on all members before its blocks are durable there.
    ArrayRegionClearedEarly = "array-region-cleared-early",
    /// A region is written before it is recorded that it may differ.
    ArrayRegionWrittenUnrecorded = "array-region-written-unrecorded",
    /// A member that was away counts as having everything.
    ArrayStaleMemberTaken = "array-stale-member-taken",
    /// The mark of a member that comes back, and the record of it, say that it has everything before it has what
    /// it has missed.
    ArrayMarkAheadOfData = "array-mark-ahead-of-data",
    /// The record that a member is out fails, and the write is answered all the same.
    ArrayLossRecordFailureIgnored = "array-loss-record-failure-ignored",
    /// A row changes before it is durable that it may.
    ArrayRowChangedUnrecorded = "array-row-changed-unrecorded",
    /// Parity is computed from a block that fails its checksum.
    ArrayParityFromCorruptBlock = "array-parity-from-corrupt-block",
    /// A slot is used again before the parity that covers it is durable.
    ArraySlotReusedEarly = "array-slot-reused-early",
    /// A band row is collected onto itself.
    ArrayCollectsInPlace = "array-collects-in-place",
    /// What is written while a member is away is not kept for when it is back.
    ArrayMissedWriteForgotten = "array-missed-write-forgotten",
    /// What was written to a member and not flushed before it was lost is not kept for when it is back.
    ArrayUnflushedWriteForgotten = "array-unflushed-write-forgotten",
    /// A band row is collected while a member is missing.
    ArrayCollectsDegraded = "array-collects-degraded",
    /// The last page of a checkpoint is not written.
    CheckpointPageLeftOut = "checkpoint-page-left-out",
    /// A checkpoint of what has changed leaves out one slot.
    ChangeLeftOut = "change-left-out",
    /// A checkpoint of the records since the one before leaves out the newest of them.
    RecordLeftOut = "record-left-out",
}
