//! By what a RAID 4SMR knows its own operations again.

/// What an operation of the layer's own is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// A collection, by its number.
    Collection(u64),
    /// The members are flushed before a checkpoint.
    Quiet,
    /// They are flushed behind a write that must be durable, by its number.
    Forced(u32),
    /// What was perhaps being written before a crash, by the number of the operation.
    Recovery(u64),
    /// A portion of a request, by the job of that.
    Portion(u32),
    /// A write to the log, by the write that it is for.
    Log(u32),
    /// The members are flushed for writes that wait until others are durable.
    Settle,
    /// They are flushed so that what was rebuilt counts.
    Progress,
    /// They are flushed because a member has all of its rows.
    Whole,
    /// A table of checksums is read.
    TableRead(u64),
    /// A table of checksums is written.
    TableWritten(u64),
    /// The members are flushed behind tables of checksums, while the array comes up.
    Opening,
    /// Rows are compared for a scrub.
    Scrub,
    /// Rows are made right because a read has found them wrong.
    Repair,
    /// The members are flushed behind a scrub.
    Scrubbed,
}

impl Word {
    const SHIFT: u32 = 56;

    /// As a number.
    pub fn number(self) -> u64 {
        let (kind, number) = match self {
            Word::Collection(number) => (0, number),
            Word::Quiet => (1, 0),
            Word::Forced(number) => (2, number.into()),
            Word::Recovery(number) => (3, number),
            Word::Portion(job) => (4, job.into()),
            Word::Log(task) => (5, task.into()),
            Word::Settle => (6, 0),
            Word::Progress => (7, 0),
            Word::Whole => (8, 0),
            Word::TableRead(table) => (9, table),
            Word::TableWritten(table) => (10, table),
            Word::Opening => (11, 0),
            Word::Scrub => (12, 0),
            Word::Repair => (13, 0),
            Word::Scrubbed => (14, 0),
        };
        kind << Word::SHIFT | number
    }

    /// From a number.
    pub fn of(number: u64) -> Word {
        let of_kind = number & ((1 << Word::SHIFT) - 1);
        match number >> Word::SHIFT {
            0 => Word::Collection(of_kind),
            1 => Word::Quiet,
            2 => Word::Forced(of_kind as u32),
            3 => Word::Recovery(of_kind),
            4 => Word::Portion(of_kind as u32),
            5 => Word::Log(of_kind as u32),
            6 => Word::Settle,
            7 => Word::Progress,
            8 => Word::Whole,
            9 => Word::TableRead(of_kind),
            10 => Word::TableWritten(of_kind),
            11 => Word::Opening,
            12 => Word::Scrub,
            13 => Word::Repair,
            _ => Word::Scrubbed,
        }
    }
}
