//! When a journal writes its [mark](super::idle_mark).

use super::ids::Lsn;
use super::journal::Journal;
use crate::layer::Context;
use crate::planted::PlantedBug;
use crate::units::Instant;

impl Journal {
    /// When the layer must call [`mark_if_idle`](Self::mark_if_idle), if it does not know yet.
    pub fn new_mark_alarm(&mut self, ctx: &Context<'_>) -> Option<Instant> {
        if self.idle_mark.has_alarm() || !self.wants_mark(ctx) {
            return None;
        }
        self.idle_mark.new_alarm(ctx.now())
    }

    /// The alarm has gone off: writes the mark, unless the journal was busy meanwhile. The layer
    /// allows it when nothing under way may need the room in the ring. It asks for a
    /// [new alarm](Self::new_mark_alarm) afterwards.
    pub fn mark_if_idle(&mut self, is_allowed: bool, ctx: &mut Context<'_>) {
        let is_idle = self.idle_mark.end_alarm(ctx.now());
        let is_free = !self.ring.is_writing() && !self.is_checkpointing();
        if is_idle && is_free && is_allowed && self.wants_mark(ctx) {
            let mark = self.vouchable(ctx);
            self.send_block(mark, ctx);
        }
    }

    fn wants_mark(&self, ctx: &Context<'_>) -> bool {
        self.is_running()
            && !ctx.is_read_only()
            && self.failure().is_none()
            && self.idle_mark.is_wanted(self.vouchable(ctx))
    }

    /// Every block before it is durable.
    fn vouchable(&self, ctx: &Context<'_>) -> Lsn {
        match ctx.is_planted(PlantedBug::IdleMarkAhead) {
            true => self.ring.next,
            false => self.ring.durable,
        }
    }
}
