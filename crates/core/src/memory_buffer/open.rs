//! How a buffer comes up: what its log alone has comes back into memory.

use super::blocks::Valid;
use super::codec::{self, Live, RECORD_CLEAN, RECORD_WRITTEN, RECORD_ZEROED, RUN_BYTES};
use super::state::{LogRead, Opening};
use super::{MemoryBuffer, TagKind, tag};
use crate::durability::{Recovery, Replayed};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::lifecycle::OpenError;
use crate::operation::{Cause, Operation};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

/// Reads of the log in flight while the buffer comes up.
const READS_MAX: u32 = 32;

impl MemoryBuffer {
    /// Takes back what the log says.
    pub(super) fn recover(&mut self, recovery: &Recovery, ctx: &mut Context<'_>) {
        if let Err(error) = self.replay(recovery) {
            self.ledger.give_up();
            return ctx.opened(Err(error));
        }
        let log = self.log.as_mut().expect("a log");
        log.replayed();
        let mut live: Vec<Live> = log.live().collect();
        live.sort_unstable_by_key(|block| block.lba);
        let mut opening = Box::new(Opening::default());
        for block in live {
            self.plan_read(block, &mut opening, ctx);
        }
        self.life.opening = Some(opening);
        self.read_log(ctx);
    }

    fn replay(&mut self, recovery: &Recovery) -> Result<(), OpenError> {
        let damaged = |words| OpenError::damaged("checkpoint", words);
        let log = self.log.as_mut().expect("a log");
        let (places, live) =
            codec::decode(&recovery.checkpoint).map_err(|error| damaged(format!("{error}")))?;
        if places != log.places() {
            return Err(OpenError::Settings {
                name: "places of the log",
                found: places,
                expected: log.places(),
            });
        }
        live.into_iter().for_each(|block| log.replay_written(block));
        recovery.records.iter().try_for_each(|record| self.replay_record(record))
    }

    fn replay_record(&mut self, record: &Replayed) -> Result<(), OpenError> {
        let device = self.extent_of_device();
        let log = self.log.as_mut().expect("a log");
        let bad = || OpenError::damaged("record", format!("kind {}", record.kind));
        match (record.kind, record.data) {
            (RECORD_WRITTEN, Some(data)) if record.payload.len() == 8 => {
                let lba = codec::u64_at(&record.payload, 0);
                let places = log.extent_of(0, log.places());
                let end = lba.checked_add(data.blocks.0);
                if !places.covers(data) || end.is_none_or(|end| end > device) {
                    return Err(bad());
                }
                for (at, checksum) in record.checksums.iter().enumerate() {
                    if record.intact.block(at) {
                        log.replay_written(Live {
                            lba: lba + at as u64,
                            place: (data.start.0 - places.start.0) as u32 + at as u32,
                            checksum: *checksum,
                        });
                    }
                }
            }
            (RECORD_CLEAN, None) if record.payload.len().is_multiple_of(RUN_BYTES) => {
                for run in record.payload.chunks_exact(RUN_BYTES) {
                    let (lba, place, blocks) = codec::run_at(run);
                    if u64::from(place) + u64::from(blocks) > log.places() {
                        return Err(bad());
                    }
                    for at in 0..blocks {
                        log.replay_forget(lba + u64::from(at), Some(place + at));
                    }
                }
            }
            (RECORD_ZEROED, None) if record.payload.len() == 16 => {
                let start = codec::u64_at(&record.payload, 0);
                let blocks = codec::u64_at(&record.payload, 8);
                if start.checked_add(blocks).is_none() {
                    return Err(bad());
                }
                log.replay_zeroed(Extent::new(start, blocks));
            }
            _ => return Err(bad()),
        }
        Ok(())
    }

    fn extent_of_device(&self) -> u64 {
        self.blocks.device_parts()
    }

    /// A block of the log goes to memory, which may be more than there should be: the next write makes
    /// room.
    fn plan_read(&mut self, live: Live, opening: &mut Opening, ctx: &mut Context<'_>) {
        let parts = self.settings.block.0;
        let (block, part) = (live.lba / parts, live.lba % parts);
        let entry = match self.blocks.find(block) {
            Some(entry) => entry,
            None => {
                let entry = self.blocks.add(block);
                self.replacement.insert(entry, self.segment_of(block));
                self.blocks.entry(entry).slot = self.memory.take_over_limit(ctx);
                entry
            }
        };
        self.blocks.set(entry, Valid::Decided, part..part + 1, true);
        match opening.reads.last_mut() {
            Some(run)
                if run.entry == entry
                    && run.part + run.blocks == part
                    && u64::from(run.live.place) + run.blocks == u64::from(live.place) =>
            {
                run.blocks += 1;
            }
            _ => opening.reads.push(LogRead { entry, part, live, blocks: 1 }),
        }
    }

    /// Reads on, or ends the reading.
    fn read_log(&mut self, ctx: &mut Context<'_>) {
        let Some(opening) = &mut self.life.opening else {
            return;
        };
        let log = self.log.as_ref().expect("a log");
        while opening.in_flight < READS_MAX
            && opening.error.is_none()
            && let Some(read) = opening.reads.get(opening.next).copied()
        {
            let slot = self.blocks.entry(read.entry).slot;
            ctx.issue(Issue {
                port: self.ports.log.expect("a log"),
                operation: Operation::Read,
                extent: log.extent_of(read.live.place, read.blocks),
                buffer: slot.part(read.part, read.blocks),
                cause: Cause::Metadata,
                tag: tag(TagKind::Open, opening.next as u32),
            });
            opening.next += 1;
            opening.in_flight += 1;
        }
        if opening.in_flight > 0 {
            return;
        }
        let opening = self.life.opening.take().expect("it is opening");
        match opening.error {
            Some(error) => {
                self.ledger.give_up();
                ctx.opened(Err(error));
            }
            None => {
                let map = self.log_map();
                self.ledger.begin(map, ctx);
            }
        }
    }

    /// A run of the log was read.
    pub(super) fn log_was_read(
        &mut self,
        number: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let opening = self.life.opening.as_mut().expect("it is opening");
        opening.in_flight -= 1;
        let read = opening.reads[number as usize];
        if let Err(error) = result {
            opening.error.get_or_insert(OpenError::Io(error));
        }
        let slot = self.blocks.entry(read.entry).slot;
        let data = slot.part(read.part, read.blocks);
        let log = self.log.as_ref().expect("a log");
        let first = read.live.place;
        let sums = self.ledger.checksums_of(data, ctx);
        let is_other = |(at, sum): (usize, &u32)| log.checksum(first + at as u32) != *sum;
        let wrong = sums.iter().enumerate().position(is_other);
        if let Some(at) = wrong.filter(|_| result.is_ok()) {
            let lba = read.live.lba + at as u64;
            let words = format!("block {lba} in place {} is not as written", first + at as u32);
            opening.error.get_or_insert(OpenError::damaged("log", words));
        }
        let parts = read.part..read.part + read.blocks;
        self.blocks.set(read.entry, Valid::InFact, parts, true);
        self.read_log(ctx);
    }
}
