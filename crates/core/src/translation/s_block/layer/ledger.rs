//! What the ledger says, and the map that it keeps.

use super::SBlocks;
use crate::disk::Geometry;
use crate::durability::superblock::FEATURE_CHECKSUMS;
use crate::durability::{JournalSettings, LayerKind, Lsn, Recovery, Replayed};
use crate::error::IoError;
use crate::layer::{Context, Port};
use crate::ledger::{Ledger, LedgerEvent};
use crate::lifecycle::OpenError;
use crate::planted::PlantedBug;
use crate::translation::s_block::layout::Layout;
use crate::translation::s_block::records::{self, Entry as Record, RING, RegionState, RingPlace};
use crate::translation::s_block::ring::Ring;
use crate::translation::s_block::settings::SBlockSettings;
use alloc::format;
use alloc::vec::Vec;

/// The ledger, and whether what is written again may go over what it replaces.
pub(super) fn ledger(
    settings: &SBlockSettings,
    layout: &Layout,
    below: &Geometry,
    port: Port,
) -> (Ledger<u32>, bool) {
    let keeping = settings.keeping();
    let Some(limits) = keeping.journal else {
        return (Ledger::volatile(), keeping.in_place);
    };
    let journal = JournalSettings {
        layer: LayerKind::SBlocks,
        port,
        member_blocks: below.blocks,
        area: layout.journal,
        checkpoint_blocks: layout.checkpoint_blocks,
        required_features: match layout.has_sums() {
            true => FEATURE_CHECKSUMS,
            false => 0,
        },
        data: None,
    };
    (Ledger::journaled(journal, limits, &[]), keeping.in_place)
}

impl SBlocks {
    /// Notes a change of the map; gives what has to be durable before what it freed is used.
    pub(super) fn record(&mut self, record: &Record, ctx: &mut Context<'_>) -> Lsn {
        let (kind, (payload, length)) = record.encode();
        let place = self.ledger.record(kind, &payload[..length], ctx);
        Lsn(place.0 + 1)
    }

    /// Begins a flush when places wait for one.
    pub(super) fn ledger_frees_places(&mut self, ctx: &mut Context<'_>) {
        if !self.quarantine.is_empty() {
            self.ledger.flush_for_itself(ctx);
        }
    }

    /// Sends off what was recorded and takes what the ledger says; false when nothing new can go on.
    pub(super) fn take_ledger_events(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.ledger.is_silent() {
            return false;
        }
        if self.life.drains && self.is_idle() {
            self.life.drains = false;
            let map = self.map();
            self.ledger.close(map, ctx);
        }
        if self.ledger.is_running()
            && self.ledger.wants_checkpoint()
            && !self.ledger.checkpoint_by_records(ctx)
        {
            let map = self.map();
            self.ledger.checkpoint(map, ctx);
        }
        self.ledger.commit(ctx);
        self.ledger.begin_flushes(ctx);
        let mut has_heard = false;
        while let Some(event) = self.ledger.next_event() {
            let is_repeated = matches!(event, LedgerEvent::Failed { is_first: false, .. });
            has_heard |= !is_repeated;
            self.take_event(event, ctx);
        }
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
        has_heard
    }

    fn take_event(&mut self, event: LedgerEvent<u32>, ctx: &mut Context<'_>) {
        match event {
            LedgerEvent::Blank => {
                let map = self.map();
                self.ledger.begin(map, ctx);
            }
            LedgerEvent::Recovered(recovery) => match self.take_back(&recovery, ctx) {
                Ok(()) => {
                    let map = self.map();
                    self.ledger.begin(map, ctx);
                }
                Err(error) => {
                    self.ledger.give_up();
                    ctx.opened(Err(error));
                }
            },
            LedgerEvent::Opened => {
                self.tables.member = self.ledger.member();
                ctx.opened(Ok(()));
            }
            LedgerEvent::Refused(error) => ctx.opened(Err(error)),
            LedgerEvent::Written => {
                while let Some(number) = self.ledger.next_written() {
                    self.finish(number, ctx);
                }
            }
            LedgerEvent::Flushed { token, .. } => self.finish(token, ctx),
            LedgerEvent::PlacesFree | LedgerEvent::Checkpointed => {
                let durable_before = self.ledger.durable_before();
                while let Some((region, held)) = self.quarantine.next_free(durable_before) {
                    self.release(region, held);
                }
            }
            LedgerEvent::Drain => self.life.drains = true,
            LedgerEvent::Closed(result) => ctx.closed(result),
            LedgerEvent::Failed { error, .. } => self.ledger_failed(error, ctx),
            // Maps are handed over whole.
            LedgerEvent::PieceWanted => {}
            // There is one copy of the journal.
            LedgerEvent::CopyAdmitted(_) | LedgerEvent::CopyOut(_) => {}
        }
    }

    /// Nothing becomes durable any more: what waits for it fails.
    fn ledger_failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        while let Some(number) = self.ledger.next_failed() {
            self.requests[number].result = Err(error);
            self.finish(number, ctx);
        }
    }

    /// The map with every record so far in it.
    fn map(&self) -> Vec<u8> {
        let mut tables = self.tables.generations();
        let regions = self.places.iter().map(|place| {
            let positions = usize::from(place.region.shape().positions()).min(tables.len());
            let (own, rest) = tables.split_at(positions);
            tables = rest;
            RegionState { region: &place.region, ring: place.ring.as_ref(), tables: own }
        });
        records::encode(&self.layout, regions)
    }

    /// Takes back what was durable.
    fn take_back(&mut self, recovery: &Recovery, ctx: &Context<'_>) -> Result<(), OpenError> {
        let regions = self.places.iter_mut().map(|place| &mut place.region);
        let found = records::decode(&recovery.checkpoint, &self.layout, regions)?;
        for (position, generation) in (0..).zip(found.tables) {
            self.tables.set_generation(position, generation);
        }
        for found in found.places {
            let RingPlace { place, parts, .. } = found;
            let of_block = 0..self.layout.block;
            let ring = self.ring_of(found.region);
            ring.restore(place, found.block, parts);
            let parts = of_block.filter(|part| parts >> part & 1 == 1);
            for (part, sum) in parts.zip(found.sums) {
                ring.set_sum(place, part, sum);
            }
        }
        for record in &recovery.records {
            self.redo(record, ctx)?;
        }
        for place in &mut self.places {
            place.region.drop_surplus();
        }
        Ok(())
    }

    fn ring_of(&mut self, region: u32) -> &mut Ring {
        if self.places[region as usize].ring.is_none() {
            self.places[region as usize].ring = Some(self.new_ring());
        }
        self.places[region as usize].ring.as_mut().expect("a ring")
    }

    fn redo(&mut self, record: &Replayed, ctx: &Context<'_>) -> Result<(), OpenError> {
        if record.kind == RING {
            return self.redo_ring(record, ctx);
        }
        let blocks = (self.layout.segment / self.layout.block) as u32;
        let (region, first, count) =
            match Record::decode(record.kind, &record.payload, &self.layout)? {
                Record::Appended { is_move, region, segment, position, used, table } => {
                    let place = &mut self.places[region as usize];
                    place.region.redo(segment, position, used);
                    if let Some(generation) = table {
                        let number = self.layout.position_number(region, position);
                        self.tables.set_generation(number, generation);
                    }
                    (region, segment, u16::from(!is_move))
                }
                Record::Trimmed { .. } if ctx.is_planted(PlantedBug::TrimForgottenOnReplay) => {
                    return Ok(());
                }
                Record::Trimmed { region, first, count } => {
                    for segment in first..first + count {
                        self.places[region as usize].region.forget(segment);
                    }
                    (region, first, count)
                }
            };
        if let Some(ring) = &mut self.places[region as usize].ring {
            let (from, to) = (u32::from(first) * blocks, u32::from(first + count) * blocks);
            ring.forget(from, to, |_| {});
        }
        Ok(())
    }

    fn redo_ring(&mut self, record: &Replayed, ctx: &Context<'_>) -> Result<(), OpenError> {
        let (region, block) = records::decode_ring(&record.payload, &self.layout)?;
        let start = self.layout.places[region as usize].ring;
        let length = self.layout.ring_length();
        let inside = |lba: u64| lba >= start && lba < start + length;
        let data = record.data.filter(|data| {
            inside(data.start.0) && inside(data.end().0 - 1) && data.blocks.0 <= self.layout.block
        });
        let Some(data) = data else {
            return Err(records::damaged(format!("a record of the ring of region {region}")));
        };
        let place = (data.start.0 - start) / self.layout.block;
        let from = (data.start.0 - start) % self.layout.block;
        let keeps_all = ctx.is_planted(PlantedBug::DanglingRecordKept);
        let mut parts = 0;
        for at in 0..data.blocks.0 {
            if record.intact.block(at as usize) || keeps_all {
                parts |= 1 << (from + at);
            }
        }
        if parts != 0 {
            let ring = self.ring_of(region);
            ring.restore(place as u32, block, parts);
            for (part, sum) in (from..).zip(&record.checksums) {
                if parts >> part & 1 == 1 {
                    ring.set_sum(place as u32, part, *sum);
                }
            }
        }
        Ok(())
    }
}
