//! A disk without moving parts: a controller in front of parallel channels.

use super::arm::{AccessTime, Direction};
use super::due::Due;
use super::model::SolidStateModel;
use super::statistics::{DiskStatistics, Moved};
use crate::quantity::Rate;
use imbrex_core::disk::DiskOp;
use imbrex_core::operation::Operation;
use imbrex_core::saved::Saved;
use imbrex_core::units::{BLOCK_BYTES, Instant};

const NS_PER_S: u64 = 1_000_000_000;

/// Blocks of an operation up to which the time of its data is looked up. It is a division otherwise.
const KNOWN_BLOCKS: usize = 32;

/// Figures of one direction.
#[derive(Clone, Debug)]
struct Path {
    /// What is left of the response to one 4 KiB request on an idle disk when the controller has done its part.
    latency_ns: u64,
    /// Time between requests at saturation.
    interval_ns: u64,
    rate: Rate,
    /// The time that the data of 0, 1 and more blocks takes.
    known_ns: [u64; KNOWN_BLOCKS + 1],
}

impl Path {
    /// `response_ns` is the response to one 4 KiB request on an idle disk.
    fn new(response_ns: u64, iops: u64, rate: Rate) -> Path {
        let interval_ns = NS_PER_S / iops;
        let known_ns = std::array::from_fn(|blocks| rate.time_of(blocks as u64 * BLOCK_BYTES).0);
        let one_block_ns = interval_ns.max(known_ns[1]);
        let latency_ns = response_ns.saturating_sub(one_block_ns);
        Path { latency_ns, interval_ns, rate, known_ns }
    }

    /// The time that the data of so many blocks takes.
    #[inline]
    fn transfer_ns(&self, blocks: u64) -> u64 {
        match self.known_ns.get(blocks as usize) {
            Some(known_ns) => *known_ns,
            None => self.rate.time_of(blocks * BLOCK_BYTES).0,
        }
    }
}

/// The state of a solid-state disk.
///
/// The controller takes requests one at a time, each for the larger of the command interval and
/// the transfer at the sustained rate; a free channel then holds it for the rest of its latency.
#[derive(Clone, Debug, Saved)]
pub struct SolidState {
    #[saved(keep)]
    paths: [Path; 2],
    #[saved(keep)]
    flush_ns: u64,
    #[saved(keep)]
    write_cache: bool,
    controller_free_ns: u64,
    /// When each channel is free, in ascending order from the first on and round: which is which does not matter.
    channels_free_ns: Vec<u64>,
    /// The channel that is free first.
    first_channel: usize,
    busy_until_ns: u64,
}

impl SolidState {
    /// An idle disk of a model. Without `write_cache` each write is followed by a flush.
    pub fn new(model: &SolidStateModel, interface: Rate, write_cache: bool) -> SolidState {
        let path = |latency, iops, rate: Rate| Path::new(latency, iops, rate.min(interface));
        SolidState {
            paths: [
                path(model.read_latency.0.0, model.read_iops, model.read_rate),
                path(model.write_latency.0.0, model.write_iops, model.write_rate),
            ],
            flush_ns: model.flush_latency.0.0,
            write_cache,
            controller_free_ns: 0,
            channels_free_ns: vec![0; model.channels as usize],
            first_channel: 0,
            busy_until_ns: 0,
        }
    }

    /// Takes an operation; when it ends is known at once.
    #[inline]
    pub fn submit(&mut self, now: Instant, op: DiskOp, due: &mut Due, statistics: &DiskStatistics) {
        let (direction, forced) = match op.operation {
            Operation::Read => (Direction::Read, false),
            Operation::Write { .. } => {
                let forced = op.operation.is_durable() || !self.write_cache;
                (Direction::Write, forced)
            }
            // Zeroes change the map of the disk and a flush its state: neither moves data.
            _ => {
                due.push(Instant(now.0 + self.flush_ns), op);
                return;
            }
        };
        let path = &self.paths[direction as usize];
        let hold_ns = path.interval_ns.max(path.transfer_ns(op.extent.blocks.0));
        let begin_ns = now.0.max(self.controller_free_ns);
        self.controller_free_ns = begin_ns + hold_ns;
        let channel_free_ns = self.channels_free_ns[self.first_channel];
        let end_ns = self.controller_free_ns.max(channel_free_ns) + path.latency_ns;
        self.hold_first_channel_until(end_ns);
        let end_ns = end_ns + if forced { self.flush_ns } else { 0 };
        let busy_ns = end_ns.saturating_sub(self.busy_until_ns.max(now.0));
        self.busy_until_ns = self.busy_until_ns.max(end_ns);
        let time = AccessTime { transfer_ns: hold_ns, ..AccessTime::default() };
        let end = Instant(end_ns);
        let (cause, extent) = (op.cause, op.extent);
        statistics.moved(&Moved { direction, cause, extent, busy_ns, time, end });
        due.push(end, op);
    }

    /// The channel that is free first is held until then.
    #[inline]
    fn hold_first_channel_until(&mut self, end_ns: u64) {
        let channels = self.channels_free_ns.len();
        let last = self.first_channel;
        self.first_channel = if last + 1 == channels { 0 } else { last + 1 };
        // Later requests mostly end later, so its place is at the end or near it.
        let mut at = last;
        while at != self.first_channel {
            let before = if at == 0 { channels - 1 } else { at - 1 };
            if self.channels_free_ns[before] <= end_ns {
                break;
            }
            self.channels_free_ns[at] = self.channels_free_ns[before];
            at = before;
        }
        self.channels_free_ns[at] = end_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Span;
    use imbrex_core::rng::Rng;
    use imbrex_core::units::Duration;

    fn disk(channels: u32) -> SolidState {
        let span = Span(Duration(90_000));
        let model = SolidStateModel {
            channels,
            read_latency: span,
            write_latency: span,
            read_iops: 100_000,
            write_iops: 50_000,
            read_rate: Rate(500_000_000),
            write_rate: Rate(400_000_000),
            flush_latency: span,
        };
        SolidState::new(&model, Rate(550_000_000), true)
    }

    #[test]
    fn a_channel_is_taken_that_is_free_before_all_others() {
        let mut rng = Rng::new(3, 0);
        for channels in [1, 2, 3, 8, 32] {
            let mut disk = disk(channels);
            let mut sorted = vec![0; channels as usize];
            for now in 0..2000 {
                assert_eq!(disk.channels_free_ns[disk.first_channel], sorted[0]);
                // Now and then one that ends before others that have begun earlier.
                sorted[0] = now * 10 + rng.below(400);
                disk.hold_first_channel_until(sorted[0]);
                sorted.sort_unstable();
            }
        }
    }

    #[test]
    fn the_time_of_data_is_the_same_known_or_worked_out() {
        for path in &disk(1).paths {
            for blocks in 0..100 {
                assert_eq!(path.transfer_ns(blocks), path.rate.time_of(blocks * BLOCK_BYTES).0);
            }
        }
    }
}
