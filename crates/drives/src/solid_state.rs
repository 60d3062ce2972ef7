//! A disk without moving parts: a controller in front of parallel channels.

use super::arm::{AccessTime, Direction};
use super::due::Due;
use super::model::SolidStateModel;
use super::statistics::DiskStatistics;
use crate::quantity::Rate;
use imbrex_core::disk::DiskOp;
use imbrex_core::operation::Operation;
use imbrex_core::saved::Saved;
use imbrex_core::units::{BLOCK_BYTES, Instant};
use std::collections::VecDeque;

const NS_PER_S: u64 = 1_000_000_000;

/// Figures of one direction.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// What is left of the response to one 4 KiB request on an idle disk when the controller has done its part.
    latency_ns: u64,
    /// Time between requests at saturation.
    interval_ns: u64,
    rate: Rate,
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
    /// In ascending order: which channel is which does not matter.
    channels_free_ns: VecDeque<u64>,
    busy_until_ns: u64,
}

impl SolidState {
    /// An idle disk of a model. Without `write_cache` each write is followed by a flush.
    pub fn new(model: &SolidStateModel, interface: Rate, write_cache: bool) -> SolidState {
        let path = |latency: u64, iops: u64, rate: Rate| {
            let (interval_ns, rate) = (NS_PER_S / iops, rate.min(interface));
            let one_block_ns = interval_ns.max(rate.time_of(BLOCK_BYTES).0);
            Path { latency_ns: latency.saturating_sub(one_block_ns), interval_ns, rate }
        };
        SolidState {
            paths: [
                path(model.read_latency.0.0, model.read_iops, model.read_rate),
                path(model.write_latency.0.0, model.write_iops, model.write_rate),
            ],
            flush_ns: model.flush_latency.0.0,
            write_cache,
            controller_free_ns: 0,
            channels_free_ns: vec![0; model.channels as usize].into(),
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
        let path = self.paths[direction as usize];
        let transfer_ns = path.rate.time_of(op.extent.blocks.0 * BLOCK_BYTES).0;
        let hold_ns = path.interval_ns.max(transfer_ns);
        let begin_ns = now.0.max(self.controller_free_ns);
        self.controller_free_ns = begin_ns + hold_ns;
        let channel_free_ns = self.channels_free_ns.pop_front().expect("a channel");
        let end_ns = self.controller_free_ns.max(channel_free_ns) + path.latency_ns;
        self.hold_channel_until(end_ns);
        let end_ns = end_ns + if forced { self.flush_ns } else { 0 };
        let busy_ns = end_ns.saturating_sub(self.busy_until_ns.max(now.0));
        self.busy_until_ns = self.busy_until_ns.max(end_ns);
        let time = AccessTime { transfer_ns: hold_ns, ..AccessTime::default() };
        let end = Instant(end_ns);
        statistics.moved(direction, op.cause, op.extent, busy_ns, time, end);
        due.push(end, op);
    }

    #[inline]
    fn hold_channel_until(&mut self, end_ns: u64) {
        // Later requests mostly end later, so the place is at the back or near it.
        if self.channels_free_ns.back().is_none_or(|last_ns| *last_ns <= end_ns) {
            return self.channels_free_ns.push_back(end_ns);
        }
        let later = self.channels_free_ns.iter().rev();
        let later = later.take_while(|free_ns| **free_ns > end_ns).count();
        let index = self.channels_free_ns.len() - later;
        self.channels_free_ns.insert(index, end_ns);
    }
}
