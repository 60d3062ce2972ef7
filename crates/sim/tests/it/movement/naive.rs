//! The disk models once more, one visit after the other, with ordered sets and maps.

use imbrex_core::operation::Cause;
use imbrex_report::ByCause;
use imbrex_sim::analysis::movement::{
    CauseCounts, FirstWrite, HeadCounts, Model, ModelMovement, MovementSettings, RestExtent,
    RestUnit, WriteUnit,
};
use std::collections::{BTreeMap, BTreeSet};

/// A request of a test: whether it writes, its first block, its blocks.
pub type Request = (bool, u64, u64);

/// What `model` does with requests: a list of all visits, and the counts beside it.
pub fn movement(model: Model, settings: &MovementSettings, requests: &[Request]) -> ModelMovement {
    let band_blocks = settings.track_blocks * settings.band_tracks;
    let touched = requests.iter().filter(|request| request.2 > 0);
    let last = touched.map(|request| request.1 + request.2 - 1).max();
    let mut naive = Naive {
        settings,
        model,
        behind: last.map_or(0, |last| (last / band_blocks + 1) * band_blocks),
        visits: Vec::new(),
        written: BTreeSet::new(),
        log: BTreeMap::new(),
        counts: [0; 3],
        rewritten: [0; 2],
    };
    naive.play(requests);
    naive.result(band_blocks)
}

struct Naive<'a> {
    settings: &'a MovementSettings,
    model: Model,
    behind: u64,
    visits: Vec<u64>,
    written: BTreeSet<u64>,
    log: BTreeMap<u64, u64>,
    /// Updates, rewrites, appends.
    counts: [u64; 3],
    /// Blocks written back, blocks spilled.
    rewritten: [u128; 2],
}

impl Naive<'_> {
    fn play(&mut self, requests: &[Request]) {
        for &(is_write, first, blocks) in requests {
            let blocks: Vec<u64> = (first..first + blocks).collect();
            match (is_write, self.settings.write_unit) {
                (false, _) => self.read(&blocks),
                (true, WriteUnit::Request) if !blocks.is_empty() => self.write(&blocks),
                (true, _) => blocks.iter().for_each(|&block| self.write(&[block])),
            }
        }
    }

    fn read(&mut self, blocks: &[u64]) {
        for block in blocks {
            let place = match self.model {
                Model::Log => *self.log.get(block).unwrap_or(block),
                _ => *block,
            };
            self.visits.push(place);
        }
    }

    fn write(&mut self, blocks: &[u64]) {
        let is_update = blocks.iter().any(|block| self.written.contains(block));
        self.counts[0] += u64::from(is_update);
        match self.model {
            Model::Conventional => self.visits.extend(blocks),
            Model::Log => {
                for &block in blocks {
                    let place = self.behind + self.counts[2];
                    self.counts[2] += 1;
                    self.visits.push(place);
                    self.log.insert(block, place);
                }
            }
            Model::InPlace | Model::Buffered => self.write_in_place(blocks, is_update),
        }
        self.written.extend(blocks);
    }

    fn write_in_place(&mut self, blocks: &[u64], is_update: bool) {
        let rest = match self.settings.first_write {
            FirstWrite::Free if !is_update => Vec::new(),
            _ => self.rest(blocks),
        };
        if rest.is_empty() {
            self.visits.extend(blocks);
            return;
        }
        self.counts[1] += 1;
        self.rewritten[0] += rest.len() as u128;
        let buffer = self.settings.buffer_blocks as usize;
        if self.model == Model::InPlace || rest.len() <= buffer {
            self.visits.extend(&rest);
            self.visits.extend(blocks);
            self.visits.extend(&rest);
            return;
        }
        self.rewritten[1] += rest.len() as u128;
        let spilled: Vec<u64> = (self.behind..).take(rest.len()).collect();
        for (home, away) in rest.chunks(buffer).zip(spilled.chunks(buffer)) {
            self.visits.extend(home);
            self.visits.extend(away);
        }
        self.visits.extend(blocks);
        for (home, away) in rest.chunks(buffer).zip(spilled.chunks(buffer)) {
            self.visits.extend(away);
            self.visits.extend(home);
        }
    }

    fn rest(&self, blocks: &[u64]) -> Vec<u64> {
        let tracks = self.settings.track_blocks;
        let band_blocks = tracks * self.settings.band_tracks;
        let block = blocks[blocks.len() - 1];
        let in_band = |other: &&u64| **other / band_blocks == block / band_blocks;
        let in_band: Vec<u64> = blocks.iter().filter(in_band).copied().collect();
        let mut behind = Vec::new();
        let mut candidate = block + 1;
        while candidate / band_blocks == block / band_blocks {
            let is_damaged = match self.settings.rest_unit {
                RestUnit::Track => in_band.iter().any(|it| candidate / tracks > it / tracks),
                RestUnit::Block => true,
            };
            if is_damaged {
                behind.push(candidate);
            }
            candidate += 1;
        }
        let last = behind.iter().rposition(|block| self.written.contains(block));
        match (last, self.settings.rest) {
            (None, _) => behind.clear(),
            (_, RestExtent::Band) => {}
            (Some(last), RestExtent::Written) => behind.truncate(last + 1),
            (_, RestExtent::Dense) => behind.retain(|block| self.written.contains(block)),
        }
        behind
    }

    fn result(&self, band_blocks: u64) -> ModelMovement {
        let sizes = [1, self.settings.track_blocks, band_blocks];
        let (mut moved, mut discontinuities, mut reversals) = ([0; 3], [0; 3], [0; 3]);
        for level in 0..3 {
            let numbers = self.visits.iter().map(|&block| i128::from(block / sizes[level]));
            let numbers: Vec<i128> = numbers.collect();
            let deltas: Vec<i128> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
            moved[level] = deltas.iter().map(|delta| delta.unsigned_abs()).sum();
            let skips = deltas.iter().filter(|delta| ![0, 1].contains(*delta));
            discontinuities[level] = skips.count() as u64;
            let signs = deltas.iter().filter(|&&delta| delta != 0);
            let signs: Vec<bool> = signs.map(|&delta| delta > 0).collect();
            let flips = signs.windows(2).filter(|pair| pair[0] != pair[1]);
            reversals[level] = flips.count() as u64;
        }
        let of_host = CauseCounts { visits: self.visits.len() as u128, block: moved[0] };
        let none = CauseCounts::default();
        ModelMovement {
            model: self.model,
            by_cause: ByCause::of(|cause| if cause == Cause::Host { of_host } else { none }),
            head: HeadCounts {
                visits: self.visits.len() as u128,
                block: moved[0],
                track: moved[1],
                band: moved[2],
                discontinuities,
                reversals,
            },
            updates: self.counts[0],
            rewrites: self.counts[1],
            rewritten_blocks: self.rewritten[0],
            spilled: self.rewritten[1],
            time: None,
        }
    }
}
