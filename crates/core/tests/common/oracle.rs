//! A host that knows what every block may hold, before and after a power cut.

use super::crash_disk::DESTROYED_BYTE;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::Frontend;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::stack::Arrival;
use imbrex_core::units::Instant;
use std::collections::BTreeMap;

pub const BLOCK: usize = 4096;
pub const SECTOR: usize = 512;

/// What the host asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    Read(Extent),
    Write(Extent),
    Forced(Extent),
    Trim(Extent),
    ForcedTrim(Extent),
    Flush,
    /// What a device without zones refuses.
    Refused(Operation),
    /// Nothing is asked until all is answered and so many nanoseconds have passed.
    Rest(u64),
}

/// What a block may hold: versions in the order in which they were issued; 0 is zeroes.
#[derive(Clone, Debug)]
pub struct History {
    pub versions: Vec<u64>,
    /// How many of the first can not be there any more.
    pub gone: usize,
    /// How many have been answered.
    answered: usize,
    /// The last one that was answered has failed.
    unsure: bool,
    /// The place of the newest that has failed.
    failed: usize,
}

impl Default for History {
    fn default() -> History {
        History { versions: vec![0], gone: 0, answered: 0, unsure: false, failed: 0 }
    }
}

/// Knows what every block may hold, over power cuts.
#[derive(Default)]
pub struct Oracle {
    pub blocks: BTreeMap<u64, History>,
    version: u64,
}

fn fill(data: &mut [u8], lba: u64, version: u64) {
    for sector in data.chunks_exact_mut(SECTOR) {
        sector.fill(version as u8);
        sector[..8].copy_from_slice(&lba.to_le_bytes());
        sector[8..16].copy_from_slice(&version.to_le_bytes());
    }
}

/// Which version of a block this is.
pub fn version_of(data: &[u8], lba: u64) -> Result<u64, String> {
    if data.iter().all(|byte| *byte == 0) {
        return Ok(0);
    }
    if data.iter().all(|byte| *byte == DESTROYED_BYTE) {
        return Err(format!("block {lba} was destroyed by a write beside it"));
    }
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("8 bytes"));
    let (found, version) = (word(0), word(8));
    let mut expected = [0; SECTOR];
    fill(&mut expected, found, version);
    if data.chunks_exact(SECTOR).any(|sector| sector != expected) {
        return Err(format!("block {lba} is torn or changed: {found} v{version}"));
    }
    if found != lba {
        return Err(format!("block {lba} is misplaced: it holds block {found} v{version}"));
    }
    Ok(version)
}

impl Oracle {
    /// Takes a version into the history of a block and returns its place there.
    fn issue(&mut self, lba: u64, version: u64) -> usize {
        let history = self.blocks.entry(lba).or_default();
        history.versions.push(version);
        history.versions.len() - 1
    }
}

enum Expected {
    /// The places in the histories that were answered when the flush was sent.
    Flushed(Vec<(u64, usize)>),
    /// The places that the request has written, and whether it is durable when it is answered.
    Written(Vec<(u64, usize)>, bool),
    Read(Extent),
    Refused,
}

/// Which failures are answers like others, and not mistakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayFail {
    Nothing,
    /// Writes, trims and flushes, and reads of blocks whose last change has failed.
    Changes,
    Anything,
}

/// Plays what is asked at a queue depth and checks every answer.
pub struct Host<'a> {
    pub oracle: &'a mut Oracle,
    asks: Vec<Ask>,
    next: usize,
    depth: usize,
    in_flight: BTreeMap<u64, (Expected, BufferSlice)>,
    /// Until when the present rest lasts.
    rest_until: Option<Instant>,
    pub may_fail: MayFail,
    /// What a read finds is what the block holds from now on: the first look after a crash.
    pub settles: bool,
    pub failed: Vec<Ask>,
    pub mistake: Option<String>,
}

impl Host<'_> {
    pub fn new(oracle: &mut Oracle, asks: Vec<Ask>, depth: usize) -> Host<'_> {
        Host {
            oracle,
            asks,
            next: 0,
            depth,
            in_flight: BTreeMap::new(),
            rest_until: None,
            may_fail: MayFail::Nothing,
            settles: false,
            failed: Vec::new(),
            mistake: None,
        }
    }

    fn may_fail(&self, expected: &Expected) -> bool {
        match (self.may_fail, expected) {
            (MayFail::Nothing, _) => false,
            (MayFail::Changes, Expected::Read(extent)) => (extent.start.0..extent.end().0)
                .any(|lba| self.oracle.blocks.get(&lba).is_some_and(|it| it.unsure)),
            (MayFail::Changes | MayFail::Anything, _) => true,
        }
    }
}

impl Frontend for Host<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        if self.rest_until.is_some() {
            return self.rest_until;
        }
        let depth = match self.asks.get(self.next)? {
            Ask::Rest(_) => 1,
            _ => self.depth,
        };
        (self.in_flight.len() < depth).then_some(Instant::ZERO)
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        if let Ask::Rest(rest_ns) = self.asks[self.next] {
            let until = *self.rest_until.get_or_insert(Instant(now.0 + rest_ns));
            if now < until {
                return None;
            }
            self.rest_until = None;
            self.next += 1;
            return self.poll(now, buffers);
        }
        let tag = self.next as u64;
        let ask = self.asks[self.next];
        self.next += 1;
        let mut buffer = BufferSlice::EMPTY;
        let (operation, extent, expected) = match ask {
            Ask::Read(extent) => {
                buffer = buffers.allocate(extent.blocks.0);
                (Operation::Read, extent, Expected::Read(extent))
            }
            Ask::Write(extent) | Ask::Forced(extent) => {
                buffer = buffers.allocate(extent.blocks.0);
                self.oracle.version += 1;
                let version = self.oracle.version;
                let data = buffers.bytes_mut(buffer).expect("bytes");
                let mut places = Vec::new();
                for (lba, data) in (extent.start.0..).zip(data.chunks_exact_mut(BLOCK)) {
                    fill(data, lba, version);
                    places.push((lba, self.oracle.issue(lba, version)));
                }
                let forced = matches!(ask, Ask::Forced(_));
                let operation = if forced { Operation::WRITE_DURABLE } else { Operation::WRITE };
                (operation, extent, Expected::Written(places, forced))
            }
            Ask::Trim(extent) | Ask::ForcedTrim(extent) => {
                let blocks = extent.start.0..extent.end().0;
                let places = blocks.map(|lba| (lba, self.oracle.issue(lba, 0))).collect();
                let forced = matches!(ask, Ask::ForcedTrim(_));
                let operation = Operation::Zero {
                    durability: if forced { Durability::Durable } else { Durability::Cached },
                    may_unmap: true,
                };
                (operation, extent, Expected::Written(places, forced))
            }
            Ask::Flush => {
                let answered = self.oracle.blocks.iter();
                let answered = answered.map(|(lba, history)| (*lba, history.answered));
                let expected = Expected::Flushed(answered.collect());
                (Operation::Flush, Extent::EMPTY, expected)
            }
            Ask::Refused(operation) => {
                let blocks = u64::from(operation.has_data());
                buffer = buffers.allocate(blocks);
                (operation, Extent::new(0, 1), Expected::Refused)
            }
            Ask::Rest(_) => unreachable!("a rest sends nothing"),
        };
        self.in_flight.insert(tag, (expected, buffer));
        Some(Arrival { tag: Tag(tag), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let tag = completion.tag.0;
        let ask = self.asks[tag as usize];
        let (expected, buffer) = self.in_flight.remove(&tag).expect("one answer");
        if let Expected::Refused = expected {
            // A layer that passes it on hears from the disk that there is no such operation.
            if !matches!(completion.result, Err(IoError::NotPermitted | IoError::Invalid)) {
                let result = completion.result;
                self.mistake.get_or_insert(format!("{ask:?} was answered with {result:?}"));
            }
            return buffers.release(buffer);
        }
        if let Expected::Written(places, _) = &expected {
            for (lba, place) in places {
                let history = self.oracle.blocks.entry(*lba).or_default();
                history.unsure = completion.result.is_err();
                if history.unsure {
                    history.failed = history.failed.max(*place);
                }
            }
        }
        if completion.result.is_err() {
            self.failed.push(ask);
            if !self.may_fail(&expected) {
                self.mistake.get_or_insert(format!("{ask:?} failed"));
            }
            return buffers.release(buffer);
        }
        match expected {
            Expected::Flushed(places) => {
                for (lba, place) in places {
                    let history = self.oracle.blocks.entry(lba).or_default();
                    history.gone = history.gone.max(place);
                }
            }
            Expected::Written(places, forced) => {
                for (lba, place) in places {
                    let history = self.oracle.blocks.entry(lba).or_default();
                    history.answered = history.answered.max(place);
                    if forced {
                        history.gone = history.gone.max(place);
                    }
                }
            }
            Expected::Refused => unreachable!("it was looked at above"),
            Expected::Read(extent) => {
                let data = buffers.bytes(buffer).expect("bytes");
                for (lba, data) in (extent.start.0..).zip(data.chunks_exact(BLOCK)) {
                    let history = self.oracle.blocks.entry(lba).or_default();
                    let allowed = &history.versions[history.gone.max(history.answered)..];
                    match version_of(data, lba) {
                        Ok(version) if allowed.contains(&version) => {
                            if self.settles {
                                self.oracle.settle(lba, version);
                            }
                        }
                        Ok(version) => {
                            let word = if version == 0 { "lost" } else { "stale" };
                            self.mistake.get_or_insert(format!(
                                "block {lba} is {word}: it holds v{version}, allowed is {allowed:?}"
                            ));
                        }
                        Err(mistake) => {
                            self.mistake.get_or_insert(mistake);
                        }
                    }
                }
            }
        }
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        self.next == self.asks.len() && self.in_flight.is_empty()
    }
}

impl Oracle {
    /// After a crash: what was answered counts no more than what was issued, unless it was durable.
    pub fn crash(&mut self) {
        for history in self.blocks.values_mut() {
            history.answered = history.gone;
            // What was written later may be taken back, and then the failed change is the newest.
            history.unsure |= history.failed > history.gone;
        }
    }

    /// After a shutdown in good order: all that was answered is durable.
    pub fn close(&mut self) {
        for history in self.blocks.values_mut() {
            history.gone = history.gone.max(history.answered);
        }
    }

    /// What a read after a crash has found is what the block holds from now on.
    pub fn settle(&mut self, lba: u64, version: u64) {
        let history = self.blocks.entry(lba).or_default();
        *history =
            History { versions: vec![version], gone: 0, answered: 0, unsure: false, failed: 0 };
    }
}

/// Reads one block.
pub struct Look {
    lba: u64,
    sent: bool,
    buffer: BufferSlice,
    answered: bool,
    pub seen: Option<Vec<u8>>,
}

impl Look {
    pub fn new(lba: u64) -> Look {
        Look { lba, sent: false, buffer: BufferSlice::EMPTY, answered: false, seen: None }
    }
}

impl Frontend for Look {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.sent).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        self.sent = true;
        self.buffer = buffers.allocate(1);
        Some(Arrival {
            tag: Tag(0),
            operation: Operation::Read,
            extent: Extent::new(self.lba, 1),
            buffer: self.buffer,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        self.answered = true;
        if completion.result.is_ok() {
            self.seen = buffers.bytes(self.buffer).map(<[u8]>::to_vec);
        }
        buffers.release(self.buffer);
    }

    fn finished(&self) -> bool {
        self.answered
    }
}
