//! Of many bands, the one whose dirty blocks have been idle longest in sum, for its length, without
//! looking at every band.

use alloc::vec;
use alloc::vec::Vec;

/// Bands that are looked at together.
const GROUP_BANDS: usize = 64;
/// A bound is raised by this much, so that rounding never makes it too low.
const ROUNDING: f64 = 1.0 + 1e-12;

/// What is known of some adjoining bands. The ripeness of a band grows with the clock by its slope:
/// its dirty blocks for its length. A new block adds to the slope alone, and whatever else happens
/// makes a band less ripe.
#[derive(Clone, Copy)]
struct Group {
    /// When they were looked at last.
    clock: u64,
    /// The ripest of them was no riper then.
    ripeness: f64,
    /// None of them has had a greater slope since then.
    slope: f64,
}

/// How ripe the bands are at most, by group.
pub(super) struct Ripeness {
    groups: Vec<Group>,
    bands: usize,
}

impl Ripeness {
    /// So many bands without dirty blocks.
    pub fn new(bands: usize) -> Ripeness {
        let empty = Group {
            clock: 0,
            ripeness: 0.0,
            slope: 0.0,
        };
        Ripeness {
            groups: vec![empty; bands.div_ceil(GROUP_BANDS)],
            bands,
        }
    }

    /// A band has a dirty block more.
    #[inline]
    pub fn raise(&mut self, band: u32, slope: f64) {
        let group = &mut self.groups[band as usize / GROUP_BANDS];
        group.slope = group.slope.max(slope);
    }

    /// The ripest band, the lowest of equal ones. `of` tells the ripeness and the slope of a band;
    /// none when it has no dirty block.
    pub fn ripest(&mut self, clock: u64, of: impl Fn(usize) -> Option<(f64, f64)>) -> Option<u32> {
        let bound = |group: &Group| {
            let ripeness = group.ripeness + group.slope * (clock - group.clock) as f64;
            (group.slope > 0.0).then_some(ripeness * ROUNDING)
        };
        // The most promising group first: it spares most of the others.
        let bounds = self.groups.iter().map(&bound);
        let promising = (0..)
            .zip(bounds)
            .filter_map(|(at, bound)| Some((bound?, at)));
        let (_, first) = promising.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let mut best: Option<(f64, u32)> = None;
        for at in core::iter::once(first).chain(0..self.groups.len()) {
            let Some(bound) = bound(&self.groups[at]) else {
                continue;
            };
            if best.is_some_and(|(ripeness, _)| bound < ripeness) {
                continue;
            }
            let mut group = Group {
                clock,
                ripeness: 0.0,
                slope: 0.0,
            };
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
