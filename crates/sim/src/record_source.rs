//! Where replays and passes over a trace take its records from.

use imbrex_traces::{TraceError, TraceOperation, TraceRecord};

/// The records of a trace, one after another.
///
/// It puts a record where its reader wants it. The item of an iterator may be an error, which is larger than a record and
/// is copied with it wherever the item goes.
pub trait RecordSource {
    /// Puts the next record into `record`. False at the end, where `record` means nothing.
    ///
    /// # Errors
    /// When the trace is damaged.
    fn next_into(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError>;

    /// The next record; none at the end.
    ///
    /// # Errors
    /// When the trace is damaged.
    #[inline(always)]
    fn next_record(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        let mut record = no_record();
        let is_there = self.next_into(&mut record)?;
        Ok(is_there.then_some(record))
    }
}

/// What a source is yet to fill.
#[inline(always)]
pub(crate) fn no_record() -> TraceRecord {
    TraceRecord::new(0, TraceOperation::Flush, 0, 0)
}

impl<I: Iterator<Item = Result<TraceRecord, TraceError>>> RecordSource for I {
    #[inline(always)]
    fn next_into(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError> {
        match self.next() {
            Some(next) => {
                *record = next?;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}
