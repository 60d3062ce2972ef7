//! Records, the answers that wait for them, and the room that they need.

use super::events::When;
use super::flushes::PortFlushes;
use super::journaled::{Journaled, Ledger};
use crate::buffer::BufferSlice;
use crate::durability::{DataRef, FlushTicket, Lsn};
use crate::extent::Extent;
use crate::layer::{Context, Port};

/// Journal blocks that work which must come to an end leaves for the checkpoint that makes room.
const KEPT_BLOCKS: u64 = 2;

/// Data that was written to the journal's port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrittenData {
    /// Where it lies.
    pub place: Extent,
    /// The buffer that was written. It is lent to the layer until the layer answers the request it
    /// came with, and nobody changes it meanwhile.
    pub buffer: BufferSlice,
}

impl<T> Ledger<T> {
    /// Notes a change of the map that speaks of no data, and returns its place. It goes to the disk
    /// with the next [`commit`](Self::commit), or earlier.
    ///
    /// Panics when a journaled ledger is not running or the ring is full: the layer asks for room
    /// first.
    #[inline]
    pub fn record(&mut self, kind: u8, payload: &[u8], ctx: &mut Context<'_>) -> Lsn {
        match &mut self.journaled {
            None => Lsn(0),
            Some(it) => it.append(kind, payload, None, ctx),
        }
    }

    /// Notes a change of the map that speaks of data whose write has completed. Returns the place
    /// of the record and the checksum of each block, for the layer to keep in its map; a volatile
    /// ledger takes no checksums.
    ///
    /// The checksums are taken here, and not when the write is issued. Panics as
    /// [`record`](Self::record).
    #[inline]
    pub fn record_write(
        &mut self,
        kind: u8,
        payload: &[u8],
        data: WrittenData,
        ctx: &mut Context<'_>,
    ) -> (Lsn, &[u32]) {
        let Some(it) = self.journaled.as_deref_mut() else {
            return (Lsn(0), &[]);
        };
        let mut checksums = core::mem::take(&mut it.checksums);
        checksums.clear();
        ctx.checksum(data.buffer, &mut checksums);
        let reference = DataRef { extent: data.place, checksums: &checksums };
        let place = it.append_data(kind, payload, reference, ctx);
        it.checksums = checksums;
        (place, &it.checksums)
    }

    /// The checksum of each block of data that was written and needs no record; none from a
    /// volatile ledger.
    pub fn checksums_of(&mut self, buffer: BufferSlice, ctx: &Context<'_>) -> &[u32] {
        let Some(it) = self.journaled.as_deref_mut() else {
            return &[];
        };
        it.checksums.clear();
        ctx.checksum(buffer, &mut it.checksums);
        &it.checksums
    }

    /// Sends what was recorded to the disk. At the end of every event.
    #[inline]
    pub fn commit(&mut self, ctx: &mut Context<'_>) {
        if let Some(it) = &mut self.journaled {
            it.journal.commit(ctx);
        }
    }

    /// May the answer to what was recorded go out? It must not before the records so far are
    /// written: then it survives the death of the process.
    /// [`next_written`](Self::next_written) gives the token back.
    ///
    /// With a [mirrored](Self::mirrored) ledger a layer asks this as well before it answers what
    /// needs no record: the loss of a copy may have to be recorded first. It says
    /// [`Now`](When::Now) when nothing is under way.
    #[inline]
    pub fn answer_when_written(&mut self, token: T) -> When {
        let Some(it) = &mut self.journaled else {
            return When::Now;
        };
        if it.journal.is_mirrored() && !it.journal.holds_answers() && it.answers.is_all_written() {
            return When::Now;
        }
        it.answers.await_written(token);
        When::Later
    }

    /// The next token whose records are written. The layer answers it, or asks for a flush first.
    #[inline]
    pub fn next_written(&mut self) -> Option<T> {
        let it = self.journaled.as_mut()?;
        match it.journal.holds_answers() {
            true => None,
            false => it.answers.next_written(),
        }
    }

    /// May an answer go out that promises a flush of a port? It must not before everything so far
    /// is durable there: all records, where the port is the journal's, and every operation that
    /// has completed. Asks for a flush; [`LedgerEvent::Flushed`](super::LedgerEvent::Flushed) gives
    /// the token back.
    ///
    /// A volatile ledger has promised nothing that it could flush, so it says
    /// [`Now`](When::Now): whoever answers a host's flush passes the flush on.
    pub fn answer_when_flushed(&mut self, port: Port, token: T, ctx: &mut Context<'_>) -> When {
        let Some(it) = self.journaled.as_deref_mut() else {
            return When::Now;
        };
        if it.journal.is_on(port) {
            let ticket = it.flush(ctx);
            it.answers.await_flushed(ticket, token);
        } else {
            it.flushes_of(port).ask_for(token);
        }
        When::Later
    }

    /// May an answer go out that promises what a flush from [`flush`](Self::flush) covers? A volatile
    /// ledger says [`Now`](When::Now).
    pub fn answer_after_flush(&mut self, ticket: FlushTicket, token: T) -> When {
        let Some(it) = self.journaled.as_deref_mut() else {
            return When::Now;
        };
        it.answers.await_flushed(ticket, token);
        When::Later
    }

    /// As [`answer_when_flushed`](Self::answer_when_flushed), for another port than the journal's
    /// and without asking: the flush begins when somebody asks for one.
    pub fn answer_with_next_flush(&mut self, port: Port, token: T) -> When {
        let Some(it) = self.journaled.as_deref_mut() else {
            return When::Now;
        };
        it.flushes_of(port).ride(token);
        When::Later
    }

    /// The flushes of another port than the journal's, to ask for one without a token; `None` of
    /// a volatile ledger. Panics when the ledger was not told of the port.
    pub fn flushes_of(&mut self, port: Port) -> Option<&mut PortFlushes<T>> {
        Some(self.journaled.as_deref_mut()?.flushes_of(port))
    }

    /// A write to the port that holds other data than the journal's is being issued: the flushes
    /// that follow go there too. No matter without such a port.
    #[inline]
    pub fn writes_data(&mut self) {
        if let Some(it) = &mut self.journaled {
            it.journal.writes_data();
        }
    }

    /// Makes every record appended and every operation of the journal's port, and of that which
    /// holds other data, completed before now durable. [`is_flushed`](Self::is_flushed) says when.
    pub fn flush(&mut self, ctx: &mut Context<'_>) -> FlushTicket {
        match &mut self.journaled {
            None => FlushTicket(0),
            Some(it) => it.flush(ctx),
        }
    }

    /// True when a flush from [`flush`](Self::flush) is done.
    #[inline]
    pub fn is_flushed(&self, ticket: FlushTicket) -> bool {
        let it = self.journaled.as_deref();
        it.is_none_or(|it| it.answers.is_flushed(ticket))
    }

    /// Begins a flush that nobody waits for but the layer itself, which needs places or wants less
    /// unflushed data. `None` when such a flush is on its way already or nothing can be flushed.
    pub fn flush_for_itself(&mut self, ctx: &mut Context<'_>) -> Option<FlushTicket> {
        let it = self.journaled.as_deref_mut()?;
        if it.own_flush.ticket.is_some() || it.failure().is_some() {
            return None;
        }
        let ticket = it.flush(ctx);
        it.own_flush.ticket = Some(ticket);
        Some(ticket)
    }

    /// True while a flush from [`flush_for_itself`](Self::flush_for_itself) is on its way.
    pub fn is_flushing_for_itself(&self) -> bool {
        let it = self.journaled.as_deref();
        it.is_some_and(|it| it.own_flush.ticket.is_some())
    }

    /// True when so much data was recorded without a flush that recovery would have to read too
    /// much: the layer begins a flush.
    #[inline]
    pub fn has_too_much_unflushed(&self) -> bool {
        let own = self.journaled.as_deref().map(|it| &it.own_flush);
        own.is_some_and(|own| own.unflushed_blocks >= own.unflushed_blocks_max)
    }

    /// True when no power cut can undo the record at this place, so that what it made obsolete may
    /// be overwritten.
    #[inline]
    pub fn is_durable(&self, record: Lsn) -> bool {
        record < self.durable_before()
    }

    /// Keeps room for records that open at most `blocks` journal blocks, for a host write that is
    /// about to begin; false when it has to wait. [`release_reserved`](Self::release_reserved)
    /// gives the room back when the records are appended, or never will be.
    pub fn reserve(&mut self, blocks: u64) -> bool {
        let has_room = self.has_spare_room(blocks);
        if let Some(it) = &mut self.journaled
            && has_room
        {
            it.reserved += blocks;
        }
        has_room
    }

    /// Gives back room that [`reserve`](Self::reserve) has kept.
    pub fn release_reserved(&mut self, blocks: u64) {
        if let Some(it) = &mut self.journaled {
            it.reserved -= blocks;
        }
    }

    /// True when `blocks` more journal blocks would leave the room that is kept, that of
    /// [`reserve`](Self::reserve) and that for work which must come to an end.
    pub fn has_spare_room(&self, blocks: u64) -> bool {
        let has_room = |it: &Journaled<T>| {
            let kept = it.journal.reserve();
            it.journal.has_room_for(it.reserved + blocks, kept)
        };
        self.journaled.as_deref().is_none_or(has_room)
    }

    /// True when work that must come to an end may append records that open at most `blocks`
    /// journal blocks.
    pub fn has_room_to_finish(&self, blocks: u64) -> bool {
        let has_room = |it: &Journaled<T>| {
            let needed = it.reserved + blocks;
            it.journal.has_room_for(needed, KEPT_BLOCKS)
        };
        self.journaled.as_deref().is_none_or(has_room)
    }

    /// True when a host request may append records. The rest of the ring is kept for work which
    /// must come to an end.
    #[inline]
    pub fn has_room(&self) -> bool {
        let it = self.journaled.as_deref();
        it.is_none_or(|it| it.journal.has_room())
    }

    /// Journal blocks that are still to be filled, those apart that are kept for the beginning of
    /// a checkpoint. One record takes at most one of them.
    #[inline]
    pub fn room(&self) -> u64 {
        let it = self.journaled.as_deref();
        it.map_or(u64::MAX, |it| it.journal.room())
    }
}

impl<T> Journaled<T> {
    fn append(
        &mut self,
        kind: u8,
        payload: &[u8],
        data: Option<DataRef<'_>>,
        ctx: &mut Context<'_>,
    ) -> Lsn {
        let place = self.journal.append(kind, payload, data, ctx);
        self.answers.recorded(place);
        place
    }

    fn append_data(
        &mut self,
        kind: u8,
        payload: &[u8],
        data: DataRef<'_>,
        ctx: &mut Context<'_>,
    ) -> Lsn {
        self.own_flush.unflushed_blocks += data.extent.blocks.0;
        self.append(kind, payload, Some(data), ctx)
    }

    fn flush(&mut self, ctx: &mut Context<'_>) -> FlushTicket {
        self.own_flush.unflushed_blocks = 0;
        self.journal.flush(ctx)
    }

    fn flushes_of(&mut self, port: Port) -> &mut PortFlushes<T> {
        let flushes = self.ports.iter_mut().find(|it| it.port() == port);
        flushes.expect("a port that the ledger was told of")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volatile_ledger_answers_at_once() {
        let mut ledger: Ledger<u32> = Ledger::volatile();
        assert!(ledger.is_running() && ledger.is_idle());
        assert_eq!(ledger.answer_when_written(1), When::Now);
        assert_eq!(ledger.answer_with_next_flush(Port(1), 1), When::Now);
        assert!(ledger.is_durable(Lsn(7)) && ledger.is_flushed(FlushTicket(7)));
        assert!(ledger.reserve(1 << 40) && ledger.has_room() && ledger.has_room_to_finish(9));
        assert!(!ledger.wants_checkpoint() && !ledger.has_too_much_unflushed());
        assert!(ledger.next_written().is_none() && ledger.next_failed().is_none());
        assert!(ledger.next_event().is_none());
    }
}
