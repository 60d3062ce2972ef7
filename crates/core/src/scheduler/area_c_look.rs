//! C-LOOK by areas: the revised C-LOOK of "A Method to Reduce Read/Write Head Movement for SMR Disks" (chapter 4,
//! figures 4.4 and 4.5).

use super::policy::{Choice, Why};
use super::waiting::{Waiting, lowest, next_or_lowest, ready};
use crate::saved::SavedValue;
use crate::units::Lba;

/// How much of one area is served while the other one waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Quota {
    /// So many requests.
    Requests(u64),
    /// So many bytes, the request that reaches them being the last.
    Bytes(u64),
    /// As many requests as waited in the area when the head came, and one at least.
    Waiting,
    /// All that there is.
    None,
}

impl Quota {
    fn cost(self, request: &Waiting) -> u64 {
        match self {
            Quota::Requests(_) | Quota::Waiting => 1,
            Quota::Bytes(_) => request.extent.blocks.bytes(),
            Quota::None => 0,
        }
    }

    /// Whether so much is all of it, of an area in which so many waited when the head came.
    fn is_reached(self, served: u64, found: u64) -> bool {
        match self {
            Quota::Requests(most) | Quota::Bytes(most) => served >= most,
            Quota::Waiting => served >= found.max(1),
            Quota::None => false,
        }
    }
}

/// A disk of two areas, of which the head leaves one when nothing waits there, or when it has had its quota and something
/// waits in the other one. In an area the next request is the first from the head on, and the lowest where there is none.
#[derive(Clone, Debug, SavedValue)]
pub struct AreaCLook {
    /// The first block of the second area.
    boundary: Lba,
    quota: Quota,
    /// The area that is served is the second one; none before the first request.
    is_behind: Option<bool>,
    /// What was served of it since the head came ...
    served: u64,
    /// ... and how many requests waited there then.
    found: u64,
}

impl AreaCLook {
    /// Areas before and from a block on.
    pub fn new(boundary: Lba, quota: Quota) -> AreaCLook {
        AreaCLook { boundary, quota, is_behind: None, served: 0, found: 0 }
    }

    /// Chooses among those that wait, in the order in which they came.
    pub fn choose(&mut self, all: &[Waiting], head: Lba) -> Option<Choice> {
        let boundary = self.boundary;
        let is_behind = move |it: &Waiting| it.extent.start >= boundary;
        let nearest = || {
            let all = ready(all).min_by_key(|(place, it)| (it.distance(head), *place));
            all.map(|(_, it)| is_behind(it))
        };
        let of_area = |area: bool| ready(all).filter(move |(_, it)| is_behind(it) == area);
        let here = match self.is_behind {
            Some(here) => here,
            None => {
                let first = nearest()?;
                (self.is_behind, self.found) = (Some(first), of_area(first).count() as u64);
                first
            }
        };
        let other = lowest(of_area(!here));
        let is_over = self.quota.is_reached(self.served, self.found) && other.is_some();
        let own = next_or_lowest(of_area(here), head);
        match own.filter(|_| !is_over) {
            Some((place, false)) => Some(Choice { place, why: Why::Next }),
            Some((place, true)) => Some(Choice { place, why: Why::Wrap }),
            None => {
                let place = other?;
                let why = if own.is_some() { Why::Quota } else { Why::Switch };
                (self.is_behind, self.served) = (Some(!here), 0);
                self.found = of_area(!here).count() as u64;
                Some(Choice { place, why })
            }
        }
    }

    /// A request that was chosen has gone to the disk.
    pub fn dispatched(&mut self, request: &Waiting) {
        self.served += self.quota.cost(request);
    }
}
