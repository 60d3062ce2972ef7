//! How the next request is chosen.

use super::area_c_look::AreaCLook;
use super::deadline::Deadline;
use super::waiting::{Waiting, next_or_lowest, ready};
use crate::saved::SavedValue;
use crate::units::{Instant, Lba};

/// Why a request went next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// It was the next one of the policy.
    Next,
    /// The head went back to the lowest address, or turned round.
    Wrap,
    /// Nothing waited in the area of the head any more.
    Switch,
    /// The area of the head has had its quota.
    Quota,
    /// It had waited for too long.
    Age,
}

impl Why {
    /// The word of reports.
    pub const fn name(self) -> &'static str {
        match self {
            Why::Next => "next",
            Why::Wrap => "wrap",
            Why::Switch => "switch",
            Why::Quota => "quota",
            Why::Age => "age",
        }
    }
}

/// The request that goes next: its place among those that wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Its place.
    pub place: usize,
    /// Why it was chosen.
    pub why: Why,
}

/// How the next request is chosen. The head is where the last request that went to the disk has ended.
#[derive(Clone, Debug, SavedValue)]
pub enum Policy {
    /// The one that came first.
    Fcfs,
    /// The nearest one, the lower of two.
    Sstf,
    /// The next one in the direction of the head, which turns round where there is none.
    Look {
        /// Towards higher addresses.
        is_upwards: bool,
    },
    /// The next one upwards, and the lowest where there is none.
    CLook,
    /// Batches in the order of addresses, and limits to what a read and a write wait.
    Deadline(Deadline),
    /// C-LOOK in one area of the disk, and then in the other.
    AreaCLook(AreaCLook),
}

impl Policy {
    /// Chooses among those that wait, in the order in which they came. None when all are blocked.
    pub fn choose(&mut self, all: &[Waiting], head: Lba, now: Instant) -> Option<Choice> {
        let next = |place| Choice { place, why: Why::Next };
        match self {
            Policy::Fcfs => ready(all).next().map(|(place, _)| next(place)),
            Policy::Sstf => {
                let nearest =
                    |(place, it): &(usize, &Waiting)| (it.distance(head), it.extent.start, *place);
                ready(all).min_by_key(nearest).map(|(place, _)| next(place))
            }
            Policy::Look { is_upwards } => look(all, head, is_upwards),
            Policy::CLook => next_or_lowest(ready(all), head).map(|(place, is_back)| Choice {
                place,
                why: if is_back { Why::Wrap } else { Why::Next },
            }),
            Policy::Deadline(deadline) => deadline.choose(all, head, now),
            Policy::AreaCLook(areas) => areas.choose(all, head),
        }
    }

    /// A request has gone to the disk in its turn, and not because it had waited for too long.
    pub fn dispatched(&mut self, request: &Waiting) {
        if let Policy::AreaCLook(areas) = self {
            areas.dispatched(request);
        }
    }
}

fn look(all: &[Waiting], head: Lba, is_upwards: &mut bool) -> Option<Choice> {
    let in_direction = |is_upwards: bool| {
        let some = ready(all).filter(|(_, it)| match is_upwards {
            true => it.is_ahead(head),
            // What begins at the head is ahead both ways.
            false => it.extent.start <= head,
        });
        some.min_by_key(|(place, it)| (it.distance(head), *place)).map(|(place, _)| place)
    };
    if let Some(place) = in_direction(*is_upwards) {
        return Some(Choice { place, why: Why::Next });
    }
    let place = in_direction(!*is_upwards)?;
    *is_upwards = !*is_upwards;
    Some(Choice { place, why: Why::Wrap })
}
