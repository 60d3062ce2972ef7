//! What happens to a disk between two starts.

use super::lives::Lives;
use crate::crashtest::coverage::kind_of;
use crate::crashtest::fault_points::{FaultClass, damage};
use crate::crashtest::journal_view::{JournalView, journal_header};
use crate::crashtest::medium::Medium;
use crate::crashtest::subject::Member;
use imbrex_core::durability::block::BlockKind;
use imbrex_core::rng::Rng;

/// What happens to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Happening {
    /// It is not there.
    Lost,
    /// All of it is zeroes.
    Zeroed,
    /// It has changed places with another one.
    Swapped,
    /// The disk of another set is in its place.
    Foreign,
    /// It is as it was at an earlier stop.
    Old,
    /// One bit of it is another one.
    Flipped,
}

impl Happening {
    /// Every one.
    pub const ALL: [Happening; 6] = [
        Happening::Lost,
        Happening::Zeroed,
        Happening::Swapped,
        Happening::Foreign,
        Happening::Old,
        Happening::Flipped,
    ];

    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Happening::Lost => "lost",
            Happening::Zeroed => "zeroed",
            Happening::Swapped => "swapped",
            Happening::Foreign => "foreign",
            Happening::Old => "old",
            Happening::Flipped => "flipped",
        }
    }

    /// True when it can happen to a disk of a stack.
    pub fn is_possible(self, members: &[Member]) -> bool {
        self != Happening::Swapped || members.len() > 1
    }
}

/// What has happened.
pub struct Happened {
    /// What it is.
    pub happening: Happening,
    /// The numbers of the disks to which it has happened.
    pub touched: Vec<usize>,
    /// What the disks hold now.
    pub media: Vec<Medium>,
    /// The disk that is not there.
    pub lost: Option<usize>,
    /// All disks are as they were at the earlier stop with this number: a backup was put back, and
    /// nobody can tell.
    pub backup: Option<usize>,
    /// The block of the bit, or the number of the earlier stop.
    pub place: u64,
    /// What the block of the bit is.
    pub kind: Option<BlockKind>,
    /// Blocks may be older than what was durable: the bit is in a block that cannot be told from one that
    /// was torn.
    pub older: bool,
    /// That must be said then.
    pub older_is_told: bool,
}

impl Happened {
    /// In words.
    pub fn describe(&self, members: &[Member]) -> String {
        let names: Vec<&str> = self.touched.iter().map(|it| &*members[*it].name).collect();
        let names = names.join(" and ");
        match self.happening {
            Happening::Old => format!("{names} old, of stop {}", self.place),
            Happening::Flipped => {
                let kind = self.kind.map_or("data", BlockKind::name);
                format!("{names} flipped in block {} ({kind})", self.place)
            }
            happening => format!("{names} {}", happening.name()),
        }
    }

    /// True when every write must be taken though it has happened: one block is bad that is only data.
    pub fn stops_no_write(&self, members: &[Member]) -> bool {
        let is_data = self.happening == Happening::Flipped && self.kind.is_none();
        is_data && members[self.touched[0]].stops_nothing(self.place)
    }

    /// Draws what happens to the disks of an image; `None` when nothing would change.
    pub fn draw(
        happening: Happening,
        image: &[Medium],
        lives: &Lives,
        members: &[Member],
        rng: &mut Rng,
    ) -> Option<Happened> {
        let first = rng.below(members.len() as u64) as usize;
        let order = (0..members.len()).map(|at| (first + at) % members.len());
        let mut draw = |member| draw_of(happening, member, image, lives, members, rng);
        order.into_iter().find_map(&mut draw)
    }
}

fn draw_of(
    happening: Happening,
    member: usize,
    image: &[Medium],
    lives: &Lives,
    members: &[Member],
    rng: &mut Rng,
) -> Option<Happened> {
    let mut happened = Happened {
        happening,
        touched: vec![member],
        media: image.to_vec(),
        lost: None,
        backup: None,
        place: 0,
        kind: None,
        older: false,
        older_is_told: false,
    };
    let medium = &mut happened.media[member];
    match happening {
        Happening::Lost => {
            happened.lost = Some(member);
            return Some(happened);
        }
        Happening::Zeroed => *medium = medium.zeroed(),
        Happening::Foreign => *medium = medium.holding(&lives.foreign[member]),
        Happening::Old => {
            let stop = rng.below(lives.stops.len() as u64);
            *medium = medium.holding(&lives.stops[stop as usize].media[member]);
            happened.place = stop;
            happened.backup = (members.len() == 1).then_some(stop as usize);
        }
        Happening::Swapped => {
            let others = members.len() as u64 - 1;
            let other = (member + 1 + rng.below(others) as usize) % members.len();
            *medium = medium.holding(&image[other]);
            happened.media[other] = image[other].holding(&image[member]);
            happened.touched.push(other);
        }
        Happening::Flipped => flip(member, members, &mut happened, rng)?,
    }
    let is_changed = |at: &usize| !happened.media[*at].holds_the_same(&image[*at]);
    happened.touched.iter().any(is_changed).then_some(happened)
}

/// Changes one bit of a block that something keeps a checksum of.
fn flip(member: usize, members: &[Member], happened: &mut Happened, rng: &mut Rng) -> Option<()> {
    let medium = &mut happened.media[member];
    let is_zero = |at: u64| medium.block(at).iter().all(|byte| *byte == 0);
    let is_metadata = |at: u64| kind_of(&medium.block(at)[..]).is_some();
    let is_trusted = medium.is_trusted();
    let only_metadata = is_trusted || rng.below(2) == 0;
    let wanted = |at: &u64| !is_zero(*at) && (!only_metadata || is_metadata(*at));
    let places: Vec<u64> = (0..medium.len()).filter(wanted).collect();
    if places.is_empty() {
        return None;
    }
    let at = places[rng.below(places.len() as u64) as usize];
    let before = medium.block(at).clone();
    damage(FaultClass::BitFlip, medium, at, rng);
    let was_journal = journal_header(&before[..], at - medium.part_of(at).start.0).is_some();
    happened.place = at;
    happened.kind = kind_of(&before[..]);
    happened.older_is_told = was_journal;
    let view = JournalView::of(members, &happened.media, member, at);
    happened.older = view.is_unsure(at, &before[..]);
    // Nothing has checksums of data on a trusted disk: nobody would notice there what a damaged end of the
    // journal takes back of a rewrite.
    (!happened.older || !is_trusted).then_some(())
}
