//! What a server has answered and may forget: the writes since its last flush, the newest of each block.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbrex_core::extent::Extent;
use imbrex_core::units::BLOCK_BYTES;

/// What an entry costs beside its bytes.
const ENTRY_BYTES: u64 = 128;

/// What was written to a run of blocks.
#[derive(Clone, Debug)]
pub(super) enum Written {
    /// A part of these bytes, from this one on.
    Bytes(Arc<[u8]>, usize),
    /// Zeroes.
    Zeroes {
        /// The space may be given up.
        may_unmap: bool,
    },
}

impl Written {
    /// What was written some blocks further.
    pub fn behind(&self, blocks: u64) -> Written {
        match self {
            Written::Bytes(bytes, from) => {
                Written::Bytes(Arc::clone(bytes), from + (blocks * BLOCK_BYTES) as usize)
            }
            zeroes => zeroes.clone(),
        }
    }
}

#[derive(Clone, Debug)]
struct Kept {
    blocks: u64,
    what: Written,
    /// How many flushes had begun when it was answered.
    flushes: u64,
}

impl Kept {
    /// A small rest of a long write does not hold all of its bytes.
    fn let_go(&mut self) {
        let length = (self.blocks * BLOCK_BYTES) as usize;
        if let Written::Bytes(bytes, from) = &self.what
            && length * 2 < bytes.len()
        {
            self.what = Written::Bytes(bytes[*from..*from + length].into(), 0);
        }
    }

    fn bytes(&self) -> u64 {
        let own = match self.what {
            Written::Bytes(..) => self.blocks * BLOCK_BYTES,
            Written::Zeroes { .. } => 0,
        };
        own + ENTRY_BYTES
    }
}

/// The writes that a server has answered since the flushes that it has answered. No two overlap.
#[derive(Default, Debug)]
pub(super) struct Unflushed {
    runs: BTreeMap<u64, Kept>,
    bytes: u64,
    flushes: u64,
}

impl Unflushed {
    /// Memory that it takes, about.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True when the server can forget nothing.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// A write was answered that is not durable. What it has overwritten is left out.
    pub fn keep(&mut self, extent: Extent, what: Written) {
        self.forget(extent);
        let kept = Kept { blocks: extent.blocks.0, what, flushes: self.flushes };
        self.insert(extent.start.0, kept);
    }

    /// Blocks were written durably: what was there before need not be sent again.
    pub fn forget(&mut self, extent: Extent) {
        let (start, end) = (extent.start.0, extent.end().0);
        // The run that begins before, and those that begin within.
        let before = self.runs.range(..start).next_back();
        let before = before.filter(|(at, kept)| *at + kept.blocks > start).map(|(at, _)| *at);
        let within = self.runs.range(start..end).map(|(at, _)| *at);
        let touched: Vec<u64> = before.into_iter().chain(within).collect();
        for at in touched {
            let kept = self.remove(at);
            if at < start {
                self.insert(at, Kept { blocks: start - at, ..kept.clone() });
            }
            let kept_end = at + kept.blocks;
            if kept_end > end {
                let what = kept.what.behind(end - at);
                self.insert(end, Kept { blocks: kept_end - end, what, ..kept });
            }
        }
    }

    fn insert(&mut self, at: u64, mut kept: Kept) {
        kept.let_go();
        self.bytes += kept.bytes();
        self.runs.insert(at, kept);
    }

    fn remove(&mut self, at: u64) -> Kept {
        let kept = self.runs.remove(&at).expect("a run that was found");
        self.bytes -= kept.bytes();
        kept
    }

    /// How many flushes have begun.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// A flush begins. It is about everything that was answered until now.
    pub fn begin_flush(&mut self) -> u64 {
        self.flushes += 1;
        self.flushes
    }

    /// The flush with this number has ended well.
    pub fn end_flush(&mut self, number: u64) {
        self.runs.retain(|_, kept| kept.flushes >= number);
        self.bytes = self.runs.values().map(Kept::bytes).sum();
    }

    /// Everything, in the order of addresses.
    pub fn runs(&self) -> impl Iterator<Item = (Extent, Written)> + '_ {
        self.runs.iter().map(|(at, kept)| (Extent::new(*at, kept.blocks), kept.what.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::rng::Rng;

    const BLOCKS: u64 = 40;

    fn bytes(value: u8, blocks: u64) -> Written {
        Written::Bytes(vec![value; (blocks * BLOCK_BYTES) as usize].into(), 0)
    }

    /// What a block holds when everything kept is written over a disk.
    fn played(unflushed: &Unflushed, disk: &[u8]) -> Vec<u8> {
        let mut disk = disk.to_vec();
        for (extent, what) in unflushed.runs() {
            for number in 0..extent.blocks.0 {
                disk[(extent.start.0 + number) as usize] = match &what {
                    Written::Bytes(bytes, from) => bytes[from + (number * BLOCK_BYTES) as usize],
                    Written::Zeroes { .. } => 0,
                };
            }
        }
        disk
    }

    /// A server with a cache: `now` is what it reads, `durable` what it has after a power cut.
    #[test]
    fn what_is_kept_makes_any_forgetful_server_whole() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed, 1);
            let (mut now, mut durable) = ([0u8; BLOCKS as usize], [0u8; BLOCKS as usize]);
            let mut unflushed = Unflushed::default();
            let mut flushing: Option<(u64, [u8; BLOCKS as usize])> = None;
            for step in 0..120u8 {
                let start = rng.below(BLOCKS);
                let extent = Extent::new(start, 1 + rng.below(BLOCKS - start).min(7));
                let range = start as usize..extent.end().0 as usize;
                match rng.below(8) {
                    0 => {
                        now[range].fill(0);
                        unflushed.keep(extent, Written::Zeroes { may_unmap: true });
                    }
                    1 => {
                        now[range.clone()].fill(step);
                        durable[range.clone()].fill(step);
                        if let Some((_, begun)) = &mut flushing {
                            begun[range].fill(step);
                        }
                        unflushed.forget(extent);
                    }
                    2 if flushing.is_none() => flushing = Some((unflushed.begin_flush(), now)),
                    3 => {
                        if let Some((number, begun)) = flushing.take() {
                            durable = begun;
                            unflushed.end_flush(number);
                        }
                    }
                    _ => {
                        now[range].fill(step);
                        unflushed.keep(extent, bytes(step, extent.blocks.0));
                    }
                }
                assert_eq!(played(&unflushed, &durable), now, "seed {seed}, step {step}");
                let sum: u64 = unflushed.runs.values().map(Kept::bytes).sum();
                assert_eq!(unflushed.bytes(), sum);
            }
        }
    }

    #[test]
    fn a_rest_of_a_long_write_does_not_hold_all_of_it() {
        let mut unflushed = Unflushed::default();
        for at in 0..200 {
            unflushed.keep(Extent::new(at, 64), bytes(at as u8, 64));
        }
        let held: usize = unflushed
            .runs()
            .map(|(_, what)| match what {
                Written::Bytes(bytes, _) => bytes.len(),
                Written::Zeroes { .. } => 0,
            })
            .sum();
        assert!(held as u64 <= 2 * unflushed.bytes(), "{held} bytes are held");
    }

    #[test]
    fn what_was_overwritten_is_left_out() {
        let mut unflushed = Unflushed::default();
        for value in 0..100 {
            unflushed.keep(Extent::new(3, 2), bytes(value, 2));
        }
        assert_eq!(unflushed.bytes(), 2 * BLOCK_BYTES + ENTRY_BYTES);
        unflushed.keep(Extent::new(0, 10), bytes(7, 10));
        assert_eq!(unflushed.runs().count(), 1);
    }
}
