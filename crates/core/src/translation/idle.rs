//! Cleaning in idle time: when no request is being served for long enough, bands are rewritten one
//! at a time until the log holds nothing any more.
//!
//! A request that arrives stops the rewrite at its next chunk, and the next idle period goes on
//! there (Idler, IEEE TC 2020): the merged data waits in the memory of the drive, and what is
//! written to the band meanwhile is a log entry newer than the gather. Where a request turns out
//! to wait for the rewrite itself, it goes on like one that makes room.

use super::persistent_cache::PersistentCache;
use super::rewrite::{Phase, Reason, Rewrite};
use super::settings::{IdleCleaning, OnArrival, RewriteMethod, Victim};
use super::timers::Timer;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::{BandId, Piece};
use crate::units::{Duration, Instant};

/// What an access takes beside its transfer: a seek within one area and half a revolution at 5400
/// to 7200 rpm. *Estimated*; used only to judge whether a band is nearly finished.
const ACCESS: Duration = Duration::from_ms(12);

/// How long nothing has been asked of the translation.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct IdleClock {
    /// Requests that are being served.
    active: u32,
    /// Since when there has been none.
    since: Instant,
    /// There has been none for long enough.
    is_idle: bool,
    /// A rewrite has failed since the last request: the next one is not tried before another.
    pub has_failed: bool,
}

impl PersistentCache {
    /// A request has arrived: a rewrite in idle time stops at its next chunk, or finishes.
    pub(super) fn end_idle_time(&mut self) {
        let Some(idle) = self.settings.idle else {
            return;
        };
        self.idle_clock.active += 1;
        self.idle_clock.has_failed = false;
        let was_idle = core::mem::replace(&mut self.idle_clock.is_idle, false);
        let Some(rewrite) = self.rewrite else {
            return;
        };
        if !was_idle || !rewrite.is_idle || rewrite.is_draining() || rewrite.is_paused {
            return;
        }
        let is_finishing = match idle.on_arrival {
            OnArrival::FinishChunk => false,
            OnArrival::FinishBand => true,
            OnArrival::FinishIfShort => self.rest_of(&rewrite, &idle) <= idle.finish_within,
            OnArrival::Abort => {
                self.take_back_chunks();
                false
            }
        };
        self.rewrite
            .as_mut()
            .expect("a rewrite in progress")
            .is_finishing = is_finishing;
    }

    /// A request has been answered.
    pub(super) fn count_answer(&mut self, ctx: &mut Context<'_>) {
        let Some(idle) = self.settings.idle else {
            return;
        };
        self.idle_clock.active -= 1;
        if self.idle_clock.active == 0 {
            self.idle_clock.since = ctx.now();
            self.set_timer(Timer::Idle, ctx.now() + idle.after, ctx);
        }
    }

    /// Takes note of idle time that has begun.
    pub(super) fn begin_idle_time(&mut self, ctx: &Context<'_>) {
        let clock = &mut self.idle_clock;
        if let Some(idle) = self.settings.idle
            && clock.active == 0
            && clock.since + idle.after <= ctx.now()
        {
            clock.is_idle = true;
        }
    }

    /// True when a rewrite may do its next step.
    pub(super) fn may_go_on(&self, ctx: &Context<'_>) -> bool {
        self.rewrite.is_none_or(|rewrite| {
            if !rewrite.is_idle {
                return !self.blocking.is_serving();
            }
            rewrite.is_finishing || (self.idle_clock.is_idle && !ctx.host_is_done())
        })
    }

    /// Begins to rewrite the next band if there is time for it.
    pub(super) fn clean_when_idle(&mut self, ctx: &mut Context<'_>) {
        let clock = self.idle_clock;
        if !clock.is_idle || clock.has_failed || ctx.host_is_done() || ctx.is_read_only() {
            return;
        }
        if !self.may_begin_another() {
            return;
        }
        while self.rewrite.is_none() {
            let Some(band) = self.idle_victim(ctx) else {
                return;
            };
            self.start_rewrite(band, Reason::Idle, ctx);
            self.begin_rewrite_when_drained(ctx);
        }
    }

    /// True when the journal, where there is one, has room for the records of a rewrite that no
    /// write waits for.
    pub(super) fn may_begin_another(&self) -> bool {
        let is_running = self.durable.as_ref().is_none_or(|it| it.is_running());
        is_running && !self.holds_writes()
    }

    /// The band to be cleaned next; none when the log holds nothing.
    fn idle_victim(&mut self, ctx: &mut Context<'_>) -> Option<BandId> {
        if let Some(salvage) = self.salvage {
            return Some(salvage.band);
        }
        let whole = Extent::new(0, self.bands.blocks().0);
        match self.settings.idle?.victim {
            Victim::Fifo => {
                let holds = self.holds_now(ctx);
                self.log.free_superseded(holds);
                self.gauge_use(ctx);
                self.log.oldest_live().map(|lba| self.bands.band_of(lba))
            }
            Victim::Lba => {
                let lowest = self.log.map().pieces(whole).next();
                lowest.map(|piece| self.bands.band_of(piece.extent.start))
            }
            Victim::MostDirty => {
                let (mut most, mut of_band) = (None, (BandId(0), 0));
                for piece in self.log.map().pieces(whole) {
                    let band = self.bands.band_of(piece.extent.start);
                    if of_band.0 != band {
                        of_band = (band, 0);
                    }
                    of_band.1 += piece.extent.blocks.0;
                    if most.is_none_or(|(_, blocks)| blocks < of_band.1) {
                        most = Some(of_band);
                    }
                }
                most.map(|(band, _)| band)
            }
        }
    }

    /// A request waits for the rewrite, which no longer waits for idle time.
    pub(super) fn press_rewrite(&mut self) {
        if let Some(rewrite) = &mut self.rewrite {
            rewrite.is_idle = false;
        }
    }

    /// A rewrite in idle time has to stop and nothing of it is in flight.
    pub(super) fn interrupt_rewrite(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        let resumes = self.settings.idle.is_none_or(|idle| idle.resumes);
        // Half of the band is in the memory of the drive alone.
        let must = self.settings.rewrite == RewriteMethod::InPlace
            && (rewrite.phase == Phase::WritingHome || rewrite.carried > 0);
        if resumes || must || !rewrite.is_idle {
            return self.pause(ctx);
        }
        self.give_up_rewrite(&rewrite, ctx);
        self.resume_reads(ctx);
    }

    /// Accesses that the gather takes: pieces that follow one another in the log are one.
    fn runs_to_gather(&self) -> u64 {
        let follows = |pair: &&[Piece]| {
            let [first, second] = [pair[0], pair[1]];
            first.position + first.extent.blocks.0 == second.position
        };
        let joined = self.gathered.windows(2).filter(follows).count();
        (self.gathered.len() - joined) as u64
    }

    /// An estimate of what is left of a rewrite whose reading has begun.
    fn rest_of(&self, rewrite: &Rewrite, idle: &IdleCleaning) -> Duration {
        let chunks = |blocks: u64| blocks.div_ceil(self.chunk_blocks);
        let left = rewrite.end - rewrite.next;
        let band = chunks(rewrite.blocks);
        let gathered = self.runs_to_gather();
        let copies = self.settings.rewrite == RewriteMethod::CopyThenHome;
        // What follows the gather: with a scratch copy two writes and two notes.
        let (writes, accesses) = match copies && !rewrite.is_in_scratch {
            true => (2, 4),
            false => (1, 2),
        };
        let (here, accesses) = match rewrite.phase {
            Phase::Draining | Phase::Overhead | Phase::Reading => {
                (chunks(left) + writes * band, gathered + accesses)
            }
            Phase::Gathering => (writes * band, left.min(gathered) + accesses),
            Phase::WritingScratch => (chunks(left) + band, 3),
            Phase::FlushingScratch | Phase::NotingScratch => (band, 2),
            Phase::WritingHome => (chunks(left), 1),
            Phase::FlushingHome | Phase::NotingHome => (0, 0),
        };
        // The stretches that follow are read and written, without what is gathered for them.
        let behind = rewrite.end_of_rewrite - rewrite.from - rewrite.blocks;
        let moves = if copies { 3 } else { 2 };
        let chunks = here + moves * chunks(behind);
        Duration(chunks * idle.chunk_time.0 + accesses * ACCESS.0)
    }
}
