//! The records of a workload as a replay takes them: once, or several times over.

use super::kept::{Records, Told, Wanted};
use super::workload::{NEVER, Workload};
use crate::record_source::RecordSource;
use imbrex_report::{LatencyHistogram, ResponseTimes};
use imbrex_traces::{TraceError, TraceRecord};
use std::sync::atomic::AtomicBool;

/// Rounds of a workload at most.
pub const ROUNDS_MAX: u32 = 1_000_000;

/// Rounds on new blocks begin at multiples of this, so that requests are aligned as they were.
const STEP_BYTES: u64 = 1 << 20;

/// What lies between two requests of a trace that has one alone, or no times.
const GAP_NS_MIN: u64 = 1;

/// The records of a workload, all of them or those to a limit, round after round. Each round comes after the
/// last request of the one before by the mean gap between two requests; on the same blocks, or on those behind
/// the highest of the one before.
pub(crate) struct Rounds {
    workload: Workload,
    records: Records,
    rounds_left: u32,
    limit: Option<u64>,
    left_in_round: u64,
    /// Added to the times of the records of this round.
    shift_ns: u64,
    /// Added to their addresses.
    shift_bytes: u64,
    /// The end of the highest request, without the shift.
    end_bytes: u64,
    times: Times,
    /// What the trace says of its requests; none where the trace has no response times.
    captured: Option<Box<LatencyHistogram>>,
    /// That of the record that was read last, if it has one.
    last_response_ns: Option<u64>,
    _passes: Option<Wanted>,
}

impl Rounds {
    /// The rounds of a workload, each of at most so many records.
    ///
    /// # Errors
    /// When the trace cannot be opened.
    pub fn new(
        workload: &Workload,
        limit: Option<u64>,
        stop: &AtomicBool,
    ) -> Result<Rounds, TraceError> {
        let passes = (workload.repeat > 1).then(|| workload.kept.want(2));
        Ok(Rounds {
            records: open(workload, limit, stop)?,
            workload: workload.clone(),
            rounds_left: workload.repeat.saturating_sub(1),
            limit,
            left_in_round: limit.unwrap_or(u64::MAX),
            shift_ns: 0,
            shift_bytes: 0,
            end_bytes: 0,
            times: Times::default(),
            captured: None,
            last_response_ns: None,
            _passes: passes,
        })
    }

    /// What a report says of them, as far as they were read.
    pub fn told(&self) -> Told {
        self.records.told()
    }

    /// The response times that the trace has, as far as it was read. One whose writer did not know them may have a 0
    /// for each, which is no time.
    pub fn captured(&self) -> Option<ResponseTimes> {
        let times = self.captured.as_ref().map(|captured| captured.response_times());
        times.filter(|times| times.max.is_some_and(|longest| longest > 0.0))
    }

    /// The next record of this round, as the trace has it.
    #[inline(always)]
    fn next_as_it_is(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError> {
        if self.left_in_round == 0 {
            return Ok(false);
        }
        self.left_in_round -= 1;
        let is_there = self.records.next_into(record)?;
        if is_there && let Some(response_ns) = record.response_ns {
            self.capture(response_ns);
        }
        Ok(is_there)
    }

    /// The response times are those from the record on that was read last.
    pub fn restart_captured(&mut self) {
        self.captured = None;
        if let Some(response_ns) = self.last_response_ns {
            self.capture(response_ns);
        }
    }

    #[cold]
    fn capture(&mut self, response_ns: u64) {
        self.last_response_ns = Some(response_ns);
        let new = || Box::new(LatencyHistogram::new());
        self.captured.get_or_insert_with(new).record(response_ns);
    }

    fn next_of_round(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError> {
        if !self.next_as_it_is(record)? {
            return Ok(false);
        }
        self.times.add(record.time_ns);
        let end_bytes = record.offset_bytes.saturating_add(record.length_bytes);
        self.end_bytes = self.end_bytes.max(end_bytes);
        record.time_ns = record.time_ns.saturating_add(self.shift_ns);
        record.offset_bytes = record.offset_bytes.saturating_add(self.shift_bytes);
        Ok(true)
    }

    /// The next record of several rounds.
    #[inline(never)]
    fn next_of_all(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError> {
        while !self.next_of_round(record)? {
            // A round without a request has none behind it either.
            if self.rounds_left == 0 || self.times.count == 0 {
                return Ok(false);
            }
            self.rounds_left -= 1;
            self.shift_ns = self.shift_ns.saturating_add(self.times.period_ns());
            self.times = Times::default();
            if self.workload.new_blocks {
                let step = self.end_bytes.next_multiple_of(STEP_BYTES);
                self.shift_bytes = self.shift_bytes.saturating_add(step);
            }
            self.left_in_round = self.limit.unwrap_or(u64::MAX);
            self.records = open(&self.workload, self.limit, &NEVER)?;
        }
        Ok(true)
    }
}

/// The records from the start. Those in memory end where the workload does.
fn open(workload: &Workload, limit: Option<u64>, stop: &AtomicBool) -> Result<Records, TraceError> {
    match limit == workload.limit {
        true => workload.records_again(stop),
        false => Ok(Records::Read(Box::new(workload.records()?))),
    }
}

impl RecordSource for Rounds {
    #[inline(always)]
    fn next_into(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError> {
        match self.workload.repeat {
            // Nothing to remember of a trace that is taken once.
            0 | 1 => self.next_as_it_is(record),
            _ => self.next_of_all(record),
        }
    }
}

/// When the records of a round arrive.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    count: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Times {
    #[inline]
    fn add(&mut self, time_ns: u64) {
        if self.count == 0 {
            self.first_ns = time_ns;
        }
        self.last_ns = time_ns;
        self.count += 1;
    }

    /// From the first request of a round to that of the next.
    fn period_ns(&self) -> u64 {
        let span_ns = self.last_ns.saturating_sub(self.first_ns);
        span_ns + (span_ns / self.count.saturating_sub(1).max(1)).max(GAP_NS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_traces::ReadOptions;
    use std::path::Path;

    /// Three records whose response times are all this many ticks.
    fn trace(dir: &Path, response_ticks: u64) -> Workload {
        let path = dir.join("trace.csv");
        let line = |ms: u64, offset: u64| {
            let time = 128_166_386_787_582_087 + ms * 10_000;
            format!("{time},host,0,Write,{offset},4096,{response_ticks}\n")
        };
        let text = [line(0, 4096), line(10, 8192), line(40, 0)].concat();
        std::fs::write(&path, text).expect("a trace");
        Workload::of_trace(&path.to_string_lossy(), ReadOptions::default(), None)
    }

    fn rounds(repeat: u32, limit: Option<u64>, new_blocks: bool) -> Vec<(u64, u64)> {
        let dir = tempfile::tempdir().expect("a directory");
        let workload = Workload { limit, repeat, new_blocks, ..trace(dir.path(), 1) };
        let mut rounds = Rounds::new(&workload, limit, &NEVER).expect("a trace");
        let records = std::iter::from_fn(|| rounds.next_record().expect("a sound trace"));
        records.map(|record| (record.time_ns / 1_000_000, record.offset_bytes)).collect()
    }

    #[test]
    fn response_times_of_nothing_are_none() {
        let dir = tempfile::tempdir().expect("a directory");
        for (ticks, longest_ms) in [(0, None), (7, Some(0.0007))] {
            let workload = trace(dir.path(), ticks);
            let mut rounds = Rounds::new(&workload, None, &NEVER).expect("a trace");
            let next = || rounds.next_record().expect("a sound trace");
            assert_eq!(std::iter::from_fn(next).count(), 3);
            let longest = rounds.captured().and_then(|times| times.max);
            assert_eq!(longest, longest_ms, "{ticks} ticks");
        }
    }

    #[test]
    fn a_round_comes_a_mean_gap_behind_the_last_request_of_the_one_before() {
        let once = [(0, 4096), (10, 8192), (40, 0)];
        assert_eq!(rounds(1, None, false), once);
        // 40 ms and the mean gap of 20 ms.
        let later = |by: u64| once.map(|(ms, offset)| (ms + by, offset));
        assert_eq!(rounds(3, None, false), [once, later(60), later(120)].concat());
    }

    #[test]
    fn a_limit_is_that_of_each_round() {
        // 10 ms and the mean gap of 10 ms.
        assert_eq!(rounds(2, Some(2), false), [(0, 4096), (10, 8192), (20, 4096), (30, 8192)]);
        assert_eq!(rounds(3, Some(1), false), [(0, 4096); 3], "a gap of a nanosecond");
    }

    #[test]
    fn rounds_on_new_blocks_lie_one_behind_the_other() {
        let of = |round: u64| {
            let blocks = [(0, 4096), (10, 8192), (40, 0)];
            blocks.map(|(ms, offset)| (ms + 60 * round, offset + (round << 20)))
        };
        assert_eq!(rounds(3, None, true), [of(0), of(1), of(2)].concat());
    }
}
