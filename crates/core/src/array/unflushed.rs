//! Which regions of members were written and may not be durable there.

use super::RegionShape;
use super::bits::Bits;
use crate::extent::Extent;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Regions, each once. One that was touched before takes no new memory.
#[derive(Debug, Default, SavedValue)]
struct Touched {
    has: Bits,
    all: Vec<u64>,
}

impl Touched {
    fn add(&mut self, region: u64) {
        if !self.has.get(region) {
            self.has.set(region, true);
            self.all.push(region);
        }
    }

    fn clear(&mut self) {
        for region in self.all.drain(..) {
            self.has.set(region, false);
        }
    }
}

/// The regions of one member.
#[derive(Debug, Default, SavedValue)]
struct OfMember {
    /// Written since the flush under way began, or the last one where none is under way.
    since: Touched,
    /// Written before it began.
    before: Touched,
}

/// What a member may lack when it is lost: regions that were written to it and not flushed since.
///
/// A write counts when it is sent, and again when it has ended: a flush that began in between need not have made it
/// durable. Those that are sent and have not ended are not here when a flush has ended meanwhile; who asks looks for
/// them too.
#[derive(Debug, SavedValue)]
pub struct Unflushed {
    shape: RegionShape,
    members: Vec<OfMember>,
    /// The flush of all members under way whose end counts, if there is one.
    flush: Option<u32>,
}

impl Unflushed {
    /// Nothing written to so many members.
    pub fn new(shape: RegionShape, columns: usize) -> Unflushed {
        let members = core::iter::repeat_with(OfMember::default).take(columns).collect();
        Unflushed { shape, members, flush: None }
    }

    /// Rows of a column are about to be written, or were.
    pub fn wrote(&mut self, column: usize, rows: Extent) {
        if !rows.is_empty() {
            let of_member = &mut self.members[column].since;
            self.shape.regions_of(rows).for_each(|region| of_member.add(region));
        }
    }

    /// A flush of all members begins. Of several at once the first counts.
    pub fn flush_begins(&mut self, flush: u32) {
        if self.flush.is_none() {
            self.flush = Some(flush);
            for OfMember { since, before } in &mut self.members {
                since.all.iter().for_each(|region| before.add(*region));
                since.clear();
            }
        }
    }

    /// A flush of all members has ended.
    pub fn flush_ended(&mut self, flush: u32, is_durable: bool) {
        if self.flush == Some(flush) {
            self.flush = None;
            if is_durable {
                self.members.iter_mut().for_each(|it| it.before.clear());
            }
        }
    }

    /// The regions of a column that may not be durable, some of them twice.
    pub fn regions(&self, column: usize) -> impl Iterator<Item = u64> + '_ {
        let OfMember { since, before } = &self.members[column];
        since.all.iter().chain(&before.all).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(unflushed: &Unflushed, column: usize) -> Vec<u64> {
        let mut regions: Vec<u64> = unflushed.regions(column).collect();
        regions.sort_unstable();
        regions.dedup();
        regions
    }

    #[test]
    fn a_region_counts_until_a_flush_that_began_behind_its_writes_has_ended() {
        let mut unflushed = Unflushed::new(RegionShape::without_tables(100, 10), 2);
        unflushed.wrote(0, Extent::new(5, 10));
        unflushed.wrote(1, Extent::new(99, 1));
        assert_eq!((regions(&unflushed, 0), regions(&unflushed, 1)), ([0, 1].into(), [9].into()));
        unflushed.flush_begins(1);
        // This one ends when the flush has begun, and may not be durable with it.
        unflushed.wrote(0, Extent::new(15, 1));
        // Another flush at the same time says nothing.
        unflushed.flush_begins(2);
        unflushed.flush_ended(2, true);
        assert_eq!(regions(&unflushed, 0), [0, 1]);
        unflushed.flush_ended(1, true);
        assert_eq!((regions(&unflushed, 0), regions(&unflushed, 1)), ([1].into(), [].into()));
        unflushed.flush_begins(3);
        unflushed.flush_ended(3, false);
        assert_eq!(regions(&unflushed, 0), [1], "a flush that fails makes nothing durable");
        unflushed.flush_begins(4);
        unflushed.flush_ended(4, true);
        assert_eq!(regions(&unflushed, 0), []);
    }
}
