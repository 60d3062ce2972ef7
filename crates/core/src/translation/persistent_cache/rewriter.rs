//! Which operations a band rewrite takes, one after another.

use super::block_map::BlockMap;
use super::covered::Unread;
use super::rewrite::{Phase, Reason, Rewrite};
use super::salvage::Salvage;
use super::settings::{Gather, IdleCleaning, RewriteExtent};
use super::shape::Shape;
use super::stretch::{cut_pieces, join_adjoining};
use super::trim::end_with_the_log;
use super::zones::Zones;
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Area;
use crate::map::{BandId, ExtentSet, Piece};
use crate::saved::Saved;
use crate::units::{BlockCount, Duration, Instant};
use alloc::vec::Vec;

/// Chunks of an idle clean that are under way at a time: the disk goes on with the second where
/// the first ends, without losing a revolution.
const CHUNKS_IN_FLIGHT: u32 = 2;

/// Reads of the log that are under way at a time while a clean for want of room is made of slices:
/// about as many as a disk needs to choose a short way between them.
const GATHERS_IN_FLIGHT: u32 = 16;

/// Blocks to be moved between the disk and the memory of the rewrite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub is_write: bool,
    /// Where they lie on the disk and in memory. A run of the log that the end of the ring cuts has
    /// two pieces; the second is empty otherwise.
    pub pieces: [(Area, BufferSlice); 2],
}

/// The rewrite in progress, and what it gathers from the log.
#[derive(Debug, Default, Saved)]
pub(super) struct Rewriter {
    current: Option<Rewrite>,
    /// The log entries that the present stretch merges, in log order.
    gathered: Vec<Piece>,
    /// What the present stretch does not read at home.
    unread: Unread,
    /// What the log held, when the rewrite began, of what later stretches read, by address.
    to_gather: Vec<Piece>,
    /// The ranges of the band that were zeroed when the rewrite began, and those that were since.
    /// A write that comes meanwhile may yet be undone by a power cut, and must not uncover what was
    /// there before the zero.
    zeroed: ExtentSet,
    /// The band that the scratch band held last.
    pub scratch_band: Option<BandId>,
}

impl Rewriter {
    /// The rewrite in progress.
    pub fn current(&self) -> Option<&Rewrite> {
        self.current.as_ref()
    }

    /// The rewrite; only called while there is one.
    pub fn get(&self) -> &Rewrite {
        self.current.as_ref().expect("a rewrite in progress")
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self) -> &mut Rewrite {
        self.current.as_mut().expect("a rewrite in progress")
    }

    /// The band that is being rewritten.
    pub fn band(&self) -> Option<BandId> {
        self.current.as_ref().map(|rewrite| rewrite.band)
    }

    /// True while no write may begin: the rewrite waits for those in flight to end.
    pub fn holds_writes(&self) -> bool {
        let holds = |rewrite: &Rewrite| rewrite.is_draining() && !rewrite.pace.is_idle;
        self.current.as_ref().is_some_and(holds)
    }

    /// True while a rewrite merges a band of the extent and its copy does not count yet.
    pub fn is_merging(&self, shape: &Shape, extent: Extent) -> bool {
        self.current.as_ref().is_some_and(|rewrite| {
            let merges = matches!(
                rewrite.phase,
                Phase::Reading | Phase::Gathering | Phase::WritingScratch | Phase::FlushingScratch
            );
            merges
                && !rewrite.stretch.is_in_scratch
                && extent.overlaps(shape.bands.extent_of(rewrite.band))
        })
    }

    /// Begins to rewrite a band; first of all the one that only the scratch band holds, if any.
    pub fn start(
        &mut self,
        band: BandId,
        reason: Reason,
        salvage: Option<Salvage>,
        shape: &Shape,
        now: Instant,
    ) {
        let band = salvage.map_or(band, |salvage| salvage.band);
        let is_restore = salvage.is_some();
        self.current = Some(Rewrite::new(band, reason, is_restore, shape, now));
    }

    /// A request waits for the rewrite, which no longer waits for idle time.
    pub fn stop_waiting_for_idle_time(&mut self) {
        if let Some(rewrite) = &mut self.current {
            rewrite.pace.is_idle = false;
        }
    }

    /// The firmware has taken its time.
    pub fn end_of_overhead(&mut self) {
        if let Some(rewrite) = &mut self.current
            && rewrite.phase == Phase::Overhead
        {
            rewrite.phase = Phase::Draining;
            rewrite.pace.is_overhead_over = true;
        }
    }

    /// Decides which part of the band is rewritten and what is merged; false when there is nothing
    /// to merge any more.
    #[must_use]
    pub fn decide(&mut self, shape: &Shape, blocks: &BlockMap, zones: Option<&Zones>) -> bool {
        let mut rewrite = *self.get();
        let whole = shape.bands.extent_of(rewrite.band);
        let held = &mut rewrite.stretch;
        match blocks.salvage {
            Some(salvage) => {
                held.from = salvage.from;
                held.end_of_rewrite = salvage.end_of_rewrite;
                held.written_end = salvage.end_of_rewrite;
                held.place = salvage.place;
                held.is_in_scratch = true;
            }
            None => {
                let Some(lowest) = blocks.log.map().pieces(whole).next() else {
                    return false;
                };
                let lowest = lowest.extent.start.offset_from(whole.start);
                held.from = match shape.settings.rewrite.extent {
                    RewriteExtent::Band => 0,
                    RewriteExtent::FromFirstDirty | RewriteExtent::FromFirstDirtyToWritten => {
                        let from = shape.layout.track_start(rewrite.band, lowest);
                        blocks.rewrite_from(shape, rewrite.band, from)
                    }
                };
                (held.end_of_rewrite, held.written_end) =
                    end_of_rewrite(rewrite.band, shape, blocks, zones);
                rewrite.gathered_before = blocks.log.tail();
                self.to_gather.clear();
                self.to_gather.extend(blocks.log.map().pieces(whole));
            }
        }
        self.zeroed = ExtentSet::new();
        for zeroed in blocks.zeroed.pieces(whole) {
            self.zeroed.insert(zeroed);
        }
        self.current = Some(rewrite);
        true
    }

    /// Finds what the present stretch takes into memory.
    pub fn measure_stretch(&mut self, shape: &Shape, salvage: Option<Salvage>) {
        let rewrite = self.get_mut();
        let band = rewrite.band;
        let held = &mut rewrite.stretch;
        match salvage.filter(|_| held.is_in_scratch) {
            Some(salvage) => {
                held.blocks = salvage.blocks;
                held.home_blocks = match held.is_last() {
                    true => salvage.blocks,
                    false => shape.layout.carried_from(band, salvage.end()) - held.from,
                };
            }
            None => {
                let stretch = shape.layout.stretch(band, held.from, held.end_of_rewrite);
                held.blocks = stretch.blocks;
                held.home_blocks = stretch.home_blocks;
            }
        }
        self.gathered.clear();
        self.unread.clear();
    }

    /// Lists what the log held of what the stretch reads, in log order. What was written since the
    /// rewrite began may yet be undone by a power cut, and then this is what counts; a drive that
    /// keeps its map must do so whether its stack has a journal or not. A planted bug forgets the
    /// newest entry.
    pub fn list_what_is_gathered(&mut self, shape: &Shape, forgets_newest: bool) {
        let rewrite = *self.get();
        let held = rewrite.stretch;
        let band = shape.bands.extent_of(rewrite.band).start.0;
        let first = band + held.from + held.carried;
        let fresh = Extent::new(first, held.blocks - held.carried);
        let hold = self.lowest_to_gather();
        let starts_before_end = |piece: &Piece| piece.extent.start < fresh.end();
        let count = self.to_gather.partition_point(starts_before_end);
        let behind = self.to_gather[..count].last();
        let rest =
            |piece: &Piece| Extent::between(fresh.end(), piece.extent.end().max(fresh.end()));
        let behind = behind.and_then(|piece| piece.clip(rest(piece)));
        let due = self.to_gather.drain(..count);
        self.gathered.extend(due.filter_map(|it| it.clip(fresh)));
        if let Some(piece) = behind {
            self.to_gather.insert(0, piece);
        }
        self.gathered.sort_unstable_by_key(|piece| piece.position);
        if forgets_newest && self.gathered.len() > 1 {
            // As if the newest entry had come after the gather; the drop takes it too.
            self.gathered.pop();
        }
        join_adjoining(&mut self.gathered, shape.settings.log_blocks.0);
        let merged = |pieces: &[Piece]| -> u64 { pieces.iter().map(|it| it.extent.blocks.0).sum() };
        let merged = merged(&self.gathered);
        if rewrite.pace.is_idle {
            cut_pieces(&mut self.gathered, shape.chunk_blocks);
        }
        let rewrite = self.get_mut();
        rewrite.hold = hold;
        rewrite.merged += merged;
    }

    /// Finds which of the so many blocks that the present stretch would read at home it need not,
    /// because it merges them from the log.
    pub fn leave_unread(&mut self, shape: &Shape, blocks: u64) {
        let Rewrite { band, stretch, .. } = *self.get();
        let start = shape.bands.extent_of(band).start.0 + stretch.from + stretch.carried;
        let part = Extent::new(start, blocks);
        self.unread.find(&self.gathered, band, part, shape);
    }

    /// Of the steps of a reading phase, the blocks that are read.
    pub fn blocks_read(&self) -> u64 {
        self.get().steps.end - self.unread.blocks_from(0)
    }

    /// What the present stretch merges from the log.
    pub fn gathered(&self) -> &[Piece] {
        &self.gathered
    }

    /// The ranges of a part of the band that go home as zeroes.
    pub fn zeroed(&self, part: Extent) -> impl Iterator<Item = Extent> + '_ {
        self.zeroed.pieces(part)
    }

    /// All that the present stretch merges has been read: what later ones read stays held.
    pub fn end_of_gather(&mut self) {
        let hold = self.lowest_to_gather();
        self.get_mut().hold = hold;
    }

    /// The lowest log position that a stretch still has to read.
    fn lowest_to_gather(&self) -> Option<u64> {
        self.to_gather.iter().map(|piece| piece.position).min()
    }

    /// Blocks read as zeroes from now on: what the log held of them does not go home any more, and
    /// later stretches write zeroes there.
    pub fn leave_out(&mut self, shape: &Shape, zeroed: Extent) {
        let Some(band) = self.band() else {
            return;
        };
        let Some(zeroed) = shape.bands.extent_of(band).intersection(zeroed) else {
            return;
        };
        self.zeroed.insert(zeroed);
        let overlaps = |piece: &Piece| piece.extent.overlaps(zeroed);
        if !self.to_gather.iter().any(overlaps) {
            return;
        }
        let pieces = core::mem::take(&mut self.to_gather);
        for piece in &pieces {
            let (start, end) = (piece.extent.start, piece.extent.end());
            let before = piece.clip(Extent::between(start, zeroed.start.max(start)));
            let behind = piece.clip(Extent::between(zeroed.end().min(end), end));
            self.to_gather.extend(before.into_iter().chain(behind));
        }
    }

    /// Begins a phase of so many steps.
    pub fn enter(&mut self, phase: Phase, steps: u64) {
        let rewrite = self.get_mut();
        rewrite.phase = phase;
        (rewrite.steps.next, rewrite.steps.end) = (0, steps);
    }

    /// The next step of the present phase, when one may be sent off now.
    pub fn next_step(&mut self, shape: &Shape, salvage: Option<Salvage>) -> Option<Step> {
        let rewrite = self.current.as_mut().expect("a rewrite in progress");
        let is_idle = rewrite.pace.is_idle;
        let in_chunks = is_idle || shape.settings.blocking.slice.is_some();
        let (longest, in_flight_max) = match rewrite.phase {
            _ if !in_chunks => (u64::MAX, u32::MAX),
            // Each costs a seek, so that a second one would double the wait of a request.
            Phase::Gathering if is_idle => (shape.chunk_blocks, 1),
            Phase::Gathering => (u64::MAX, GATHERS_IN_FLIGHT),
            _ => (shape.chunk_blocks, CHUNKS_IN_FLIGHT),
        };
        let steps = rewrite.steps;
        let is_full = steps.in_flight >= in_flight_max;
        if steps.next >= steps.end || is_full || steps.is_out_of_order {
            return None;
        }
        if rewrite.phase == Phase::Gathering {
            rewrite.steps.next += 1;
            return Some(self.gather_step(steps.next, shape));
        }
        if !in_chunks && steps.in_flight > 0 {
            // The rest goes off as a whole, behind the chunks of idle time.
            return None;
        }
        let run = match rewrite.phase {
            Phase::Reading => self.unread.run_to_read(steps.next, steps.end),
            _ => steps.next..steps.end,
        };
        // Chunks in flight that are taken back adjoin, and each lies between two multiples of its
        // length.
        if run.is_empty() || (run.start > steps.next && steps.in_flight > 0) {
            return None;
        }
        let blocks = (longest - run.start % longest).min(run.end - run.start);
        let step = blocks_step(rewrite, run.start, blocks, shape, salvage);
        if is_idle && steps.in_flight > 0 && shape.begins_piece(step.pieces[0].0) {
            return None;
        }
        rewrite.steps.next = run.start + blocks;
        Some(step)
    }

    /// Reads one run of what the log holds of the band.
    fn gather_step(&self, index: u64, shape: &Shape) -> Step {
        let rewrite = self.get();
        let piece = self.gathered[index as usize];
        read_from_log(&piece, rewrite.buffer, self.place_in_stretch(&piece, shape), shape)
    }

    /// Where a piece belongs in the memory of the present stretch.
    fn place_in_stretch(&self, piece: &Piece, shape: &Shape) -> u64 {
        let rewrite = self.get();
        let start = shape.bands.extent_of(rewrite.band).start.0 + rewrite.stretch.from;
        piece.extent.start.0 - start
    }

    /// True when what the log holds of the present stretch is to be read at the same time as home.
    pub fn gathers_beside(&self, shape: &Shape) -> bool {
        let rewrite = self.get();
        shape.settings.rewrite.gather == Gather::Beside
            && !rewrite.pace.is_idle
            && !self.gathered.is_empty()
    }

    /// Reads one run of what the log holds of the band into the memory beside, from block `at` of it on.
    pub fn step_beside(&self, index: usize, at: u64, shape: &Shape) -> Step {
        read_from_log(&self.gathered[index], self.get().beside, at, shape)
    }

    /// From where in that memory each run goes where in that of the stretch.
    pub fn moves_from_beside<'a>(
        &'a self,
        shape: &'a Shape,
    ) -> impl Iterator<Item = (BufferSlice, BufferSlice)> + 'a {
        let Rewrite { beside, buffer, .. } = *self.get();
        let mut at = 0;
        self.gathered.iter().map(move |piece| {
            let blocks = piece.extent.blocks.0;
            let to = buffer.part(self.place_in_stretch(piece, shape), blocks);
            at += blocks;
            (beside.part(at - blocks, blocks), to)
        })
    }

    /// Blocks from the start of the stretch to the end of the last track with a merged block: what a
    /// planted bug writes home.
    pub fn blocks_to_last_dirty_track(&self, shape: &Shape) -> u64 {
        let rewrite = self.get();
        let held = rewrite.stretch;
        let start = shape.bands.extent_of(rewrite.band).start;
        let last = self.gathered.iter().map(|piece| piece.extent.end()).max();
        last.map_or(held.blocks, |end| {
            let last = end.offset_from(start) - 1;
            let track_end = shape.layout.track_end(rewrite.band, last);
            held.blocks.min(track_end - held.from)
        })
    }

    /// An estimate of what is left of the rewrite.
    pub fn rest(&self, shape: &Shape, idle: &IdleCleaning) -> Duration {
        // Pieces that follow one another in the log are one access.
        let follows = |pair: &&[Piece]| {
            let [first, second] = [pair[0], pair[1]];
            first.position + first.extent.blocks.0 == second.position
        };
        let joined = self.gathered.windows(2).filter(follows).count();
        let runs = (self.gathered.len() - joined) as u64;
        let mut rewrite = *self.get();
        if rewrite.phase == Phase::Reading {
            rewrite.steps.end -= self.unread.blocks_from(rewrite.steps.next);
        }
        rewrite.rest(shape, idle, runs)
    }

    /// The band is whole at home: takes what was merged out of the log. Positions at or after
    /// `before` stay.
    pub fn take_out_of_log(&mut self, band: Extent, before: u64, blocks: &mut BlockMap) {
        blocks.log.supersede_before(band, before, &mut self.gathered);
    }

    /// Forgets the rewrite, of which nothing is in flight.
    pub fn end(&mut self) {
        self.current = None;
        self.gathered.clear();
        self.to_gather.clear();
    }
}

/// Reads a run of the log into `memory`, from block `at` of it on.
fn read_from_log(piece: &Piece, memory: BufferSlice, at: u64, shape: &Shape) -> Step {
    let end = piece.position + piece.extent.blocks.0;
    let run = |from: u64| {
        let slots = shape.log_area_to(from, end);
        (slots, memory.part(at + (from - piece.position), slots.extent.blocks.0))
    };
    let first = run(piece.position);
    let cut = piece.position + first.0.extent.blocks.0;
    let second = match cut < end {
        true => run(cut),
        false => (Area::EMPTY, BufferSlice::EMPTY),
    };
    Step { is_write: false, pieces: [first, second] }
}

/// The step that moves `blocks` blocks of the stretch from the one at `from` on.
fn blocks_step(
    rewrite: &Rewrite,
    from: u64,
    blocks: u64,
    shape: &Shape,
    salvage: Option<Salvage>,
) -> Step {
    let held = &rewrite.stretch;
    // What was carried on is in memory.
    let from = match rewrite.phase {
        Phase::Reading => from + held.carried,
        _ => from,
    };
    let layout = &shape.layout;
    let home = || layout.home(rewrite.band, held.from + from, blocks);
    let (is_write, area) = match rewrite.phase {
        Phase::Reading if held.is_in_scratch => {
            let at = salvage.map_or(0, |salvage| salvage.at);
            (false, layout.scratch(held.place, at + from, blocks))
        }
        Phase::Reading => (false, home()),
        Phase::WritingScratch => (true, layout.scratch(held.place, from, blocks)),
        Phase::WritingHome => (true, home()),
        phase => unreachable!("{phase:?} has no blocks to move"),
    };
    let first = (area, rewrite.buffer.part(from, blocks));
    Step { is_write, pieces: [first, (Area::EMPTY, BufferSlice::EMPTY)] }
}

/// The offset at which the rewrite of a band ends, and the one from which there is nothing at home.
fn end_of_rewrite(
    band: BandId,
    shape: &Shape,
    blocks: &BlockMap,
    zones: Option<&Zones>,
) -> (u64, u64) {
    let whole = shape.bands.extent_of(band);
    let BlockCount(length) = whole.blocks;
    let pointer = blocks.pointer(band).unwrap_or(length);
    if let Some(zones) = zones {
        return (zones.written_end(band), pointer);
    }
    let mut written_end = match shape.settings.rewrite.extent {
        RewriteExtent::FromFirstDirtyToWritten => pointer,
        RewriteExtent::Band | RewriteExtent::FromFirstDirty => length,
    };
    if shape.conduct.frees_tails {
        written_end = blocks.end_of_use(whole, written_end);
    }
    let end = end_with_the_log(blocks, whole, written_end);
    (end, written_end)
}
