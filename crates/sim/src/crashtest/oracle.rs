//! Which contents a block may have, by what the host has been told.

use super::stamp::Found;
use super::workload::{Action, Step};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;

/// One content that a block has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeroes: unwritten, zeroed or trimmed.
    Zero,
    /// The data of the write with this number.
    Version(u64),
}

impl Content {
    fn matches(self, found: Found) -> bool {
        match self {
            Content::Zero => found == Found::Zero,
            Content::Version(version) => found == Found::Version(version),
        }
    }
}

/// What the host was told about a request.
#[derive(Clone, Copy, Debug)]
struct Reply {
    /// Counts arrivals and replies together.
    tick: u64,
    /// The log index.
    index: u64,
    result: Result<(), IoError>,
}

/// A request and what came of it.
#[derive(Clone, Debug)]
struct Asked {
    step: Step,
    tick: u64,
    /// The log index of its arrival.
    index: u64,
    reply: Option<Reply>,
    /// From this log index on a crash may no longer take it back.
    durable_from: Option<u64>,
}

/// A block that holds what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The block.
    pub lba: u64,
    /// In words.
    pub detail: String,
}

/// What a block read as: an error, or what was found.
pub type ReadBack = Result<Found, IoError>;

/// How far reads may fall short of what was promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leniency {
    /// Reads may fail: something was broken on purpose.
    pub errors: bool,
    /// Requests that are no reads may fail. A read of a block whose last change has failed may.
    pub failed_writes: bool,
    /// Blocks may be older than what was durable, where a broken structure cannot be told from
    /// one that was never written.
    pub older: bool,
    /// When blocks are older than what was durable, recovery must have said that blocks may be.
    pub older_is_told: bool,
}

/// Everything the host has asked for since the contents of the device were last known.
#[derive(Clone)]
pub struct Oracle {
    /// For each block the contents that it had before the start. Only damage may bring them back.
    earlier: Vec<Vec<Content>>,
    /// For each block the contents that it may have had at the start: the first is durable.
    base: Vec<Vec<Content>>,
    asked: Vec<Asked>,
    /// For each block the writes and zeroings of it, in the order of arrival.
    by_block: Vec<Vec<usize>>,
    ticks: u64,
}

impl Oracle {
    /// An empty device.
    pub fn empty(blocks: u64) -> Oracle {
        Oracle::known(vec![Content::Zero; blocks as usize])
    }

    /// A device whose contents are known and durable.
    pub fn known(contents: Vec<Content>) -> Oracle {
        Oracle {
            earlier: vec![Vec::new(); contents.len()],
            by_block: vec![Vec::new(); contents.len()],
            base: contents.into_iter().map(|content| vec![content]).collect(),
            asked: Vec::new(),
            ticks: 0,
        }
    }

    /// The device that a power cut at log index `index` leaves, when it was read since and these reads
    /// were [right](Self::judge_recovered). A block holds what was found, or any that it may hold where it
    /// could not be read.
    pub fn left_by(&self, index: u64, reads: &[ReadBack]) -> Oracle {
        let left = |(lba, read): (u64, &ReadBack)| {
            let Ok(found) = read else {
                return self.candidates(lba, index);
            };
            let ever = self.ever(lba, index).into_iter();
            ever.filter(|content| content.matches(*found)).take(1).collect()
        };
        Oracle {
            earlier: (0..).zip(reads).map(|(lba, _)| self.ever(lba, index)).collect(),
            base: (0..).zip(reads).map(left).collect(),
            asked: Vec::new(),
            by_block: vec![Vec::new(); reads.len()],
            ticks: 0,
        }
    }

    /// Judges the whole device as it was read while the power was on, behind all requests.
    ///
    /// # Errors
    /// At the first block that holds anything but its newest content.
    pub fn judge_now(&self, reads: &[ReadBack], leniency: Leniency) -> Result<(), Violation> {
        let behind_all = self.asked.len();
        (0..)
            .zip(reads)
            .try_for_each(|(lba, read)| self.judge_live(behind_all, lba, *read, leniency))
    }

    /// A request arrives; `index` is the log index. Returns its number.
    pub fn arrive(&mut self, step: Step, index: u64) -> usize {
        let number = self.asked.len();
        if step.action.changes() {
            for block in step.extent.start.0..step.extent.end().0 {
                self.by_block[block as usize].push(number);
            }
        }
        let tick = self.tick();
        self.asked.push(Asked { step, tick, index, reply: None, durable_from: None });
        number
    }

    /// The device went down in good order: all that was answered is promised.
    pub fn closed(&mut self, index: u64) {
        let flush = Step {
            connection: 0,
            action: Action::Flush,
            extent: Extent::EMPTY,
            version: 0,
            delay_ns: 0,
        };
        let number = self.arrive(flush, index);
        self.reply(number, Ok(()), index);
    }

    /// A request was answered.
    pub fn reply(&mut self, number: usize, result: Result<(), IoError>, index: u64) {
        let tick = self.tick();
        let asked = &mut self.asked[number];
        asked.reply = Some(Reply { tick, index, result });
        if result.is_err() {
            return;
        }
        match asked.step.action {
            Action::Flush => {
                let (arrived, flushed) = (asked.tick, asked.step.extent);
                for asked in &mut self.asked {
                    let covered = asked.step.action.changes()
                        && (flushed.is_empty() || flushed.covers(asked.step.extent))
                        && asked
                            .reply
                            .is_some_and(|reply| reply.tick < arrived && reply.result.is_ok());
                    if covered && asked.durable_from.is_none() {
                        asked.durable_from = Some(index);
                    }
                }
            }
            action if action.is_durable() => asked.durable_from = Some(index),
            _ => {}
        }
    }

    /// True when every request was answered.
    pub fn is_settled(&self) -> bool {
        self.asked.iter().all(|asked| asked.reply.is_some())
    }

    /// Log indices just after the host was promised something.
    pub fn promises(&self) -> Vec<u64> {
        let mut promises: Vec<u64> = self
            .asked
            .iter()
            .filter(|asked| asked.step.action == Action::Flush || asked.step.action.is_durable())
            .filter_map(|asked| asked.reply.map(|reply| reply.index))
            .collect();
        promises.dedup();
        promises
    }

    /// Judges one block of a read that arrived as request `number`: reads are ordered behind the
    /// writes of the same block that arrived before them.
    ///
    /// # Errors
    /// When the block holds anything but the newest content.
    pub fn judge_live(
        &self,
        number: usize,
        lba: u64,
        read: ReadBack,
        leniency: Leniency,
    ) -> Result<(), Violation> {
        let found = match read {
            Err(_) if leniency.errors => return Ok(()),
            Err(error) => return Err(violation(lba, &format!("a read failed: {error}"))),
            Ok(found) => found,
        };
        let before = self.by_block[lba as usize].iter();
        let before: Vec<usize> = before.copied().filter(|other| *other < number).collect();
        let mut allowed = Vec::new();
        for other in before.iter().rev() {
            allowed.push(self.content_of(*other));
            if !self.has_failed(*other) {
                return expect(lba, &allowed, found, "while the power was on");
            }
        }
        allowed.extend(&self.base[lba as usize]);
        expect(lba, &allowed, found, "while the power was on")
    }

    /// True when a read that arrived as request `number` may fail, because the last change of one of
    /// its blocks before it has.
    pub fn meets_failed_write(&self, number: usize) -> bool {
        let extent = self.asked[number].step.extent;
        (extent.start.0..extent.end().0).any(|lba| {
            let before = self.by_block[lba as usize].iter().copied();
            let last = before.take_while(|other| *other < number).last();
            last.is_some_and(|last| self.has_failed(last))
        })
    }

    /// Judges the whole device as it was read after a power cut at log index `index`, and returns
    /// what it holds from now on.
    ///
    /// # Errors
    /// At the first block that is older than what was durable, or never was what it is now.
    pub fn judge_recovered(
        &self,
        index: u64,
        reads: &[ReadBack],
        leniency: Leniency,
    ) -> Result<Vec<Content>, Violation> {
        let mut contents = Vec::with_capacity(reads.len());
        for (lba, read) in (0..).zip(reads) {
            let found = match read {
                Err(_) if leniency.errors || self.may_be_unreadable(lba, index) => {
                    contents.push(Content::Zero);
                    continue;
                }
                Err(error) => {
                    let detail = format!("cannot be read after recovery: {error}");
                    return Err(violation(lba, &detail));
                }
                Ok(found) => *found,
            };
            let mut candidates = self.candidates(lba, index);
            if leniency.older {
                candidates = self.ever(lba, index);
            }
            let content = candidates.iter().find(|content| content.matches(found));
            match content {
                Some(content) => contents.push(*content),
                None => {
                    let when = self.describe_loss(lba, index, found);
                    expect(lba, &candidates, found, &when)?;
                }
            }
        }
        Ok(contents)
    }

    /// The contents that a block may have after a power cut, the durable one first.
    fn candidates(&self, lba: u64, index: u64) -> Vec<Content> {
        let writes = self.arrived(lba, index);
        match self.newest_durable(&writes, index) {
            Some(durable) => {
                writes[durable..].iter().map(|number| self.content_of(*number)).collect()
            }
            None => self.since_start(lba, index),
        }
    }

    /// True when a change of a block that a power cut may go back to was answered with an error: it
    /// leaves the block old, new or unreadable until a later change of it is durable.
    fn may_be_unreadable(&self, lba: u64, index: u64) -> bool {
        let writes = self.arrived(lba, index);
        let first = self.newest_durable(&writes, index).unwrap_or(0);
        writes[first..].iter().any(|number| self.has_failed(*number))
    }

    /// Which of the changes of a block, in the order of arrival, is the newest that a power cut may
    /// not take back.
    fn newest_durable(&self, writes: &[usize], index: u64) -> Option<usize> {
        writes.iter().rposition(|number| {
            let from = self.asked[*number].durable_from;
            from.is_some_and(|from| from <= index)
        })
    }

    /// True when a request was answered with an error.
    fn has_failed(&self, number: usize) -> bool {
        let reply = self.asked[number].reply;
        reply.is_some_and(|reply| reply.result.is_err())
    }

    /// Every content that a block has had before a power cut, before the last start too.
    fn ever(&self, lba: u64, index: u64) -> Vec<Content> {
        let mut ever = self.since_start(lba, index);
        for content in &self.earlier[lba as usize] {
            if !ever.contains(content) {
                ever.push(*content);
            }
        }
        ever
    }

    /// Every content that a block has had from the last start to a power cut.
    fn since_start(&self, lba: u64, index: u64) -> Vec<Content> {
        let writes = self.arrived(lba, index);
        let writes = writes.iter().map(|number| self.content_of(*number));
        self.base[lba as usize].iter().copied().chain(writes).collect()
    }

    fn arrived(&self, lba: u64, index: u64) -> Vec<usize> {
        let writes = self.by_block[lba as usize].iter().copied();
        writes.filter(|number| self.asked[*number].index <= index).collect()
    }

    fn content_of(&self, number: usize) -> Content {
        match self.asked[number].step.action {
            Action::Write { .. } => Content::Version(self.asked[number].step.version),
            _ => Content::Zero,
        }
    }

    /// Says whether the content found is an older one that was acknowledged as superseded.
    fn describe_loss(&self, lba: u64, index: u64, found: Found) -> String {
        let ever = self.ever(lba, index);
        let was_there = ever.iter().any(|content| content.matches(found));
        let what = if was_there {
            "after recovery: an acknowledged-durable block is lost"
        } else {
            "after recovery"
        };
        what.to_string()
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }
}

fn violation(lba: u64, detail: &str) -> Violation {
    Violation { lba, detail: format!("block {lba}: {detail}") }
}

fn expect(lba: u64, allowed: &[Content], found: Found, when: &str) -> Result<(), Violation> {
    if allowed.iter().any(|content| content.matches(found)) {
        return Ok(());
    }
    let words: Vec<String> = allowed
        .iter()
        .map(|content| match content {
            Content::Zero => "zeroes".to_string(),
            Content::Version(version) => format!("write {version}"),
        })
        .collect();
    let found = match found {
        Found::Zero => "zeroes".to_string(),
        Found::Version(version) => format!("write {version}"),
        Found::Foreign { lba, version } => format!("write {version} of block {lba}"),
        Found::Mixed => "a mixture of writes or noise".to_string(),
    };
    let detail = format!("holds {found} {when}; allowed: {}", words.join(", "));
    Err(violation(lba, &detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(action: Action, start: u64, blocks: u64, version: u64) -> Step {
        Step { connection: 0, action, extent: Extent::new(start, blocks), version, delay_ns: 0 }
    }

    fn write(start: u64, version: u64) -> Step {
        step(Action::Write { durable: false }, start, 1, version)
    }

    /// Write 1 is flushed, writes 2 and 3 are not.
    fn oracle() -> Oracle {
        let mut oracle = Oracle::empty(2);
        let one = oracle.arrive(write(0, 1), 0);
        oracle.reply(one, Ok(()), 2);
        let flush = oracle.arrive(step(Action::Flush, 0, 0, 0), 2);
        let two = oracle.arrive(write(0, 2), 3);
        oracle.reply(flush, Ok(()), 6);
        oracle.reply(two, Ok(()), 7);
        oracle.arrive(write(0, 3), 8);
        oracle
    }

    #[test]
    fn what_was_flushed_is_the_oldest_that_may_be_found() {
        let oracle = oracle();
        let judge = |index, found| {
            let reads = [Ok(found), Ok(Found::Zero)];
            oracle.judge_recovered(index, &reads, Leniency::default())
        };
        for version in [1, 2, 3] {
            assert!(judge(9, Found::Version(version)).is_ok());
        }
        assert!(judge(9, Found::Zero).is_err(), "older than durable");
        assert!(judge(5, Found::Zero).is_ok(), "the flush was not answered");
        assert!(judge(5, Found::Version(3)).is_err(), "not yet issued");
        assert!(judge(9, Found::Mixed).is_err());
        assert!(judge(9, Found::Foreign { lba: 1, version: 1 }).is_err());
        let failed = [Err(IoError::Medium), Ok(Found::Zero)];
        let judged = oracle.judge_recovered(9, &failed, Leniency::default());
        assert!(judged.is_err(), "without a fault nothing may be unreadable");
    }

    #[test]
    fn a_flush_does_not_cover_what_was_answered_after_it_arrived() {
        let oracle = oracle();
        assert_eq!(oracle.asked[0].durable_from, Some(6));
        assert_eq!(oracle.asked[2].durable_from, None);
        assert_eq!(oracle.promises(), [6]);
    }

    #[test]
    fn only_damage_may_bring_back_what_was_there_before_the_last_start() {
        let two = [Ok(Found::Version(2)), Ok(Found::Zero)];
        let mut since = oracle().left_by(9, &two);
        let four = since.arrive(write(0, 4), 0);
        since.reply(four, Ok(()), 1);
        since.closed(2);
        let judge = |found, older| {
            let leniency = Leniency { older, ..Leniency::default() };
            since.judge_recovered(3, &[Ok(found), Ok(Found::Zero)], leniency)
        };
        assert!(judge(Found::Version(4), false).is_ok());
        for version in [1, 2, 3] {
            assert!(judge(Found::Version(version), false).is_err());
            assert!(judge(Found::Version(version), true).is_ok());
        }
        assert!(judge(Found::Version(5), true).is_err(), "it never was there");
    }

    #[test]
    fn a_failed_write_may_leave_a_block_unreadable_until_a_later_one_is_durable() {
        let mut oracle = Oracle::empty(1);
        let judge = |oracle: &Oracle, index| {
            let reads = [Err(IoError::Medium)];
            oracle.judge_recovered(index, &reads, Leniency::default())
        };
        let one = oracle.arrive(write(0, 1), 0);
        oracle.reply(one, Ok(()), 1);
        let two = oracle.arrive(write(0, 2), 2);
        oracle.reply(two, Err(IoError::Medium), 3);
        assert!(judge(&oracle, 1).is_err(), "before the write that failed");
        assert!(judge(&oracle, 3).is_ok());
        let three = oracle.arrive(write(0, 3), 4);
        assert!(judge(&oracle, 5).is_ok(), "the next write is on its way");
        oracle.reply(three, Ok(()), 6);
        assert!(judge(&oracle, 7).is_ok(), "it may still be taken back");
        let flush = oracle.arrive(step(Action::Flush, 0, 0, 0), 8);
        oracle.reply(flush, Ok(()), 9);
        assert!(judge(&oracle, 8).is_ok(), "the flush was not answered");
        assert!(judge(&oracle, 9).is_err(), "it is durable");
    }

    #[test]
    fn a_read_sees_the_newest_content_that_came_before_it() {
        let mut oracle = oracle();
        let read = oracle.arrive(step(Action::Read, 0, 1, 0), 9);
        let judge =
            |oracle: &Oracle, found| oracle.judge_live(read, 0, Ok(found), Leniency::default());
        assert!(judge(&oracle, Found::Version(3)).is_ok());
        assert!(judge(&oracle, Found::Version(2)).is_err());
        oracle.reply(3, Err(IoError::Medium), 10);
        assert!(judge(&oracle, Found::Version(2)).is_ok(), "it failed");
        assert!(judge(&oracle, Found::Version(1)).is_err());
    }
}
