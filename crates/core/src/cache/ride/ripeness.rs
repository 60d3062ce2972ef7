//! Of many bands, the one whose opening frees the most for the longest, without looking at every band.

use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// Bands that are looked at together.
const GROUP_BANDS: usize = 64;
/// A bound is raised by this much each time it is computed, so that rounding never makes it too low.
const ROUNDING: f64 = 1.0 + 1e-12;

/// What is known of some adjoining bands. The ripeness of a band grows with the clock by its slope.
/// A new dirty block raises both; whatever else happens lowers them.
#[derive(Clone, Copy, SavedValue)]
struct Group {
    /// When the ripeness was computed.
    clock: u64,
    /// The ripest of them was no riper then.
    ripeness: f64,
    /// None of them has had a greater slope since then.
    slope: f64,
}

impl Group {
    /// How ripe its bands are at most.
    #[inline]
    fn at(&self, clock: u64) -> f64 {
        (self.ripeness + self.slope * (clock - self.clock) as f64) * ROUNDING
    }
}

/// How ripe the bands are at most, by group.
#[derive(SavedValue)]
pub(super) struct Ripeness {
    groups: Vec<Group>,
    bands: usize,
}

impl Ripeness {
    /// So many bands without dirty blocks.
    pub fn new(bands: usize) -> Ripeness {
        let empty = Group { clock: 0, ripeness: 0.0, slope: 0.0 };
        Ripeness { groups: vec![empty; bands.div_ceil(GROUP_BANDS)], bands }
    }

    /// A band has a dirty block more, and this ripeness and slope with it.
    #[inline]
    pub fn raise(&mut self, band: u32, clock: u64, ripeness: f64, slope: f64) {
        let group = &mut self.groups[band as usize / GROUP_BANDS];
        *group =
            Group { clock, ripeness: group.at(clock).max(ripeness), slope: group.slope.max(slope) };
    }

    /// The ripest band, the lowest of equal ones. `of` tells the ripeness and the slope of a band;
    /// none when it has no dirty block.
    pub fn ripest(&mut self, clock: u64, of: impl Fn(usize) -> Option<(f64, f64)>) -> Option<u32> {
        let bound = |group: &Group| (group.slope > 0.0).then_some(group.at(clock));
        // The most promising group first: it spares most of the others.
        let bounds = self.groups.iter().map(&bound);
        let promising = (0..).zip(bounds).filter_map(|(at, bound)| Some((bound?, at)));
        let (_, first) = promising.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let mut best: Option<(f64, u32)> = None;
        for at in core::iter::once(first).chain(0..self.groups.len()) {
            let Some(bound) = bound(&self.groups[at]) else {
                continue;
            };
            if best.is_some_and(|(ripeness, _)| bound < ripeness) {
                continue;
            }
            let mut group = Group { clock, ripeness: 0.0, slope: 0.0 };
            for band in at * GROUP_BANDS..self.bands.min((at + 1) * GROUP_BANDS) {
                let Some((ripeness, slope)) = of(band) else {
                    continue;
                };
                group.ripeness = group.ripeness.max(ripeness);
                group.slope = group.slope.max(slope);
                let is_better = best.is_none_or(|(best, number)| {
                    ripeness > best || ripeness == best && (band as u32) < number
                });
                if is_better {
                    best = Some((ripeness, band as u32));
                }
            }
            self.groups[at] = group;
        }
        best.map(|(_, band)| band)
    }
}
