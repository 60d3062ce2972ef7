//! Random lives of sets of disks with labels: starts with disks away, cuts at every write, torn
//! blocks, stops, and copies of disks that are put back.
//!
//! Beside the labels the model keeps what really happened: a *session* is a start whose count has
//! moved: its mark is on a second copy. It knows of every disk in which session that one was last. The
//! disks that are there belong
//! together when one of their last sessions has all the others behind it and knows each of them as it
//! is. Labels must say so exactly.

use imbrex_core::error::IoError;
use imbrex_core::label::{Label, LabelCopy, LabelStore, Labels, ListedDisk, Reason};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;

const SET: Uuid = Uuid([3; 16]);
/// Blocks that a disk offers; only what lies behind them is kept.
const BLOCKS: u64 = 100;
const BLOCK: usize = BLOCK_BYTES as usize;

/// Lives of each kind.
const LIVES: u64 = 6_000;

type Block = Vec<u8>;

/// What is on a disk.
#[derive(Clone)]
struct Content {
    label: [Block; 2],
    /// Its last session, 0 for none: with starts that were cut counted, and without.
    last: [usize; 2],
}

#[derive(Clone)]
struct Disk {
    content: Content,
    /// Label blocks that were written and not flushed.
    unflushed: Vec<(usize, Block)>,
    is_away: bool,
    /// It is there, and takes no part in moves of the count.
    is_held: bool,
    /// Disks that were away when starts of this one were cut, since its last session. Such a start may
    /// have been cut as late as before the first write of a layer, so it counts as one that went on.
    cut_without: Vec<usize>,
    /// The content is one that was put back, and the disk has been further.
    is_old: bool,
}

impl Disk {
    fn takes_part(&self) -> bool {
        !self.is_away && !self.is_held
    }
}

/// A start that went on, or will.
#[derive(Clone)]
struct Session {
    /// By disk, the session in which it was last.
    knows: Vec<usize>,
}

/// Disks that lose power after so many writes.
struct Store<'a> {
    disks: &'a mut [Disk],
    writes_left: usize,
}

impl LabelStore for Store<'_> {
    fn is_absent(&self, disk: usize) -> bool {
        self.disks[disk].is_away
    }

    fn blocks(&self, _disk: usize) -> u64 {
        BLOCKS
    }

    fn read(&mut self, disk: usize, block: u64) -> Result<Vec<u8>, IoError> {
        Ok(self.disks[disk].content.label[(block - BLOCKS) as usize].clone())
    }

    fn write(&mut self, disk: usize, block: u64, bytes: &[u8]) -> Result<(), IoError> {
        self.tick()?;
        let write = ((block - BLOCKS) as usize, bytes.to_vec());
        self.disks[disk].unflushed.push(write);
        Ok(())
    }

    fn flush(&mut self, disk: usize) -> Result<(), IoError> {
        self.tick()?;
        let disk = &mut self.disks[disk];
        for (at, bytes) in disk.unflushed.drain(..) {
            disk.content.label[at] = bytes;
        }
        Ok(())
    }
}

impl Store<'_> {
    fn tick(&mut self) -> Result<(), IoError> {
        let left = self.writes_left.checked_sub(1);
        self.writes_left = left.ok_or(IoError::Lost)?;
        Ok(())
    }
}

/// What is unusual in a life.
#[derive(Clone, Copy, Default)]
struct Conditions {
    disks: usize,
    /// Copies of disks are put back.
    copies: bool,
    /// Disks may be away.
    away: bool,
    /// The count moves while the set is in use, and disks are held out of that and taken in again.
    holds: bool,
    /// The power goes while a count moves.
    cuts: bool,
    /// Labels are not compared, as a planted bug has it.
    is_blind: bool,
    /// A start writes before its count moves, as a planted bug has it.
    is_late: bool,
}

#[derive(Default, Debug)]
struct Outcome {
    starts: u64,
    cuts: u64,
    torn: u64,
    old_refused: u64,
    apart_refused: u64,
    /// Refused because a start that was cut counts as one that went on.
    cut_apart_refused: u64,
    behind_refused: u64,
    /// Starts that went on although the disks did not belong together.
    unnoticed: Vec<String>,
    /// Starts that were refused although they did.
    wrongly_refused: Vec<String>,
}

struct Life {
    disks: Vec<Disk>,
    /// With starts that were cut when a second copy said their mark, and without. Nothing was written
    /// at such a start, so it may count as a session or not.
    sessions: [Vec<Session>; 2],
    copies: Vec<Vec<Content>>,
    rng: Rng,
    conditions: Conditions,
    history: Vec<String>,
}

impl Life {
    fn new(seed: u64, conditions: Conditions) -> Life {
        let blank = Content { label: [vec![0; BLOCK], vec![0; BLOCK]], last: [0; 2] };
        let disk = Disk {
            content: blank,
            unflushed: Vec::new(),
            is_away: false,
            is_held: false,
            cut_without: Vec::new(),
            is_old: false,
        };
        let mut life = Life {
            disks: vec![disk; conditions.disks],
            sessions: [(); 2].map(|()| {
                let knows = vec![0; conditions.disks];
                vec![Session { knows }]
            }),
            copies: Vec::new(),
            rng: Rng::new(seed, 1),
            conditions,
            history: Vec::new(),
        };
        let mut labels = life.labels(false);
        let random = life.random();
        let store = &mut life.store(usize::MAX);
        labels.check(store).expect("blank disks");
        labels.move_count(store, random).expect("memory");
        life
    }

    fn random(&mut self) -> u32 {
        self.rng.next_u64() as u32
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    fn labels(&self, is_labelled: bool) -> Labels {
        let listed =
            (1..=self.disks.len() as u16).map(|number| Some(ListedDisk { number, is_labelled }));
        Labels::new(SET, &listed.collect::<Vec<_>>())
    }

    fn store(&mut self, writes_left: usize) -> Store<'_> {
        let disks = &mut self.disks;
        Store { disks, writes_left }
    }

    /// What was not flushed reaches the medium, or not, or in part.
    fn cut(&mut self, outcome: &mut Outcome) {
        for at in 0..self.disks.len() {
            for (copy, bytes) in std::mem::take(&mut self.disks[at].unflushed) {
                let block = match self.rng.below(3) {
                    0 => continue,
                    1 => bytes,
                    _ => {
                        outcome.torn += 1;
                        let mut torn = self.disks[at].content.label[copy].clone();
                        // The first sectors alone would be all of so short a label.
                        torn[40..].copy_from_slice(&bytes[40..]);
                        torn
                    }
                };
                self.disks[at].content.label[copy] = block;
            }
        }
        outcome.cuts += 1;
    }

    /// Some disks go away, some come back; at least one is there.
    fn shuffle(&mut self) {
        let count = self.disks.len() as u64;
        for at in 0..self.disks.len() {
            self.disks[at].is_away = self.conditions.away && self.chance(30);
            self.disks[at].is_held = false;
        }
        let stays = self.rng.below(count) as usize;
        self.disks[stays].is_away = false;
    }

    fn put_copies_back(&mut self) {
        if !self.conditions.copies {
            return;
        }
        if self.chance(30) {
            let copy = self.disks.iter().map(|disk| disk.content.clone());
            self.copies.push(copy.collect());
        }
        if !self.copies.is_empty() && self.chance(15) {
            let copy = self.rng.below(self.copies.len() as u64) as usize;
            for at in 0..self.disks.len() {
                if self.chance(50) {
                    self.disks[at].content = self.copies[copy][at].clone();
                    self.disks[at].is_old = true;
                    self.history.push(format!("disk {} put back", at + 1));
                }
            }
        }
    }

    /// Whether the disks that are there belong together, with starts that were cut counted, and without.
    fn belong(&self) -> [bool; 2] {
        let here = self.disks.iter().enumerate();
        let here: Vec<(usize, &Disk)> = here.filter(|(_, disk)| !disk.is_away).collect();
        [0, 1].map(|way| {
            here.iter().any(|(_, newest)| {
                let knows = &self.sessions[way][newest.content.last[way]].knows;
                here.iter().all(|(at, disk)| knows[*at] == disk.content.last[way])
            })
        })
    }

    /// The disks that are there have a session; one that was cut counts in one way alone.
    fn begin_session(&mut self, was_cut: bool) {
        for way in if was_cut { 0..1 } else { 0..2 } {
            let sessions = &mut self.sessions[way];
            let here = self.disks.iter().filter(|disk| disk.takes_part());
            let newest = here.map(|disk| disk.content.last[way]).max();
            let mut knows = sessions[newest.expect("a disk")].knows.clone();
            for (at, disk) in self.disks.iter_mut().enumerate() {
                if disk.takes_part() {
                    knows[at] = sessions.len();
                    disk.content.last[way] = sessions.len();
                }
            }
            sessions.push(Session { knows });
        }
        let here = self.disks.iter_mut().filter(|disk| disk.takes_part());
        for disk in here.filter(|_| !was_cut) {
            disk.is_old = false;
            disk.cut_without.clear();
        }
    }

    /// A start, a session and a stop, each of which may be cut. False: the life is over.
    fn start(&mut self, outcome: &mut Outcome) -> bool {
        self.shuffle();
        self.put_copies_back();
        outcome.starts += 1;
        let away = self.disks.iter().map(|disk| u8::from(disk.is_away));
        self.history.push(format!("start, away {:?}", away.collect::<Vec<_>>()));
        let [strictly, leniently] = self.belong();
        let belong = strictly && leniently;
        let is_old = self.disks.iter().any(|disk| disk.is_old);
        let mut labels = self.labels(true);
        let refused = labels.check(&mut self.store(0)).err();
        if let Some(refused) = refused.filter(|_| !self.conditions.is_blind) {
            self.history.push(format!("{refused:?}"));
            match refused[0].reason {
                Reason::Behind { .. } => outcome.behind_refused += 1,
                Reason::Apart { .. } if !belong => outcome.apart_refused += 1,
                Reason::Apart { .. } if self.was_cut_apart() => outcome.cut_apart_refused += 1,
                Reason::Older { .. } if !belong || is_old => outcome.old_refused += 1,
                _ if is_old => {}
                _ => outcome.wrongly_refused.push(self.history.join("\n")),
            }
            // Who puts old copies together has to begin again.
            return belong && !is_old;
        }
        if !strictly && !leniently {
            outcome.unnoticed.push(self.history.join("\n"));
            return false;
        }
        if self.conditions.is_blind {
            self.begin_session(false);
            return true;
        }
        if self.conditions.is_late {
            self.begin_session(false);
        }
        let random = self.random();
        if !self.moves(&mut labels, random, 40, outcome) {
            self.was_cut(random);
            return true;
        }
        if !self.conditions.is_late {
            self.begin_session(false);
        }
        self.history.push("session".into());
        if self.conditions.holds && !self.moves_in_use(&mut labels, outcome) {
            return true;
        }
        let is_reduced = self.conditions.away && self.chance(10) && self.one_goes();
        if is_reduced {
            // Those that stay go on without it, and say so when they stop. A cut before that is a copy
            // taken since the last start, which nothing notices.
            let random = self.random();
            self.moves(&mut labels, random, 0, outcome);
            self.begin_session(false);
        } else if self.chance(60) {
            let random = self.random();
            self.moves(&mut labels, random, 20, outcome);
        }
        true
    }

    /// The power went while the count moved.
    fn was_cut(&mut self, random: u32) {
        if self.has_moved_to(random) && !self.conditions.is_late {
            self.begin_session(true);
        }
        let away = (0..self.disks.len()).filter(|at| !self.disks[*at].takes_part());
        let away: Vec<usize> = away.collect();
        for disk in self.disks.iter_mut().filter(|disk| disk.takes_part()) {
            disk.cut_without.extend(&away);
        }
    }

    /// The count moves several times, while disks are held out and taken in. False: the power went.
    fn moves_in_use(&mut self, labels: &mut Labels, outcome: &mut Outcome) -> bool {
        for _ in 0..self.rng.below(4) {
            let at = self.rng.below(self.disks.len() as u64) as usize;
            let is_held = self.disks[at].is_held;
            let others = self.disks.iter().filter(|disk| disk.takes_part()).count();
            if is_held || (others > 1 && !self.disks[at].is_away) {
                self.disks[at].is_held = !is_held;
                self.history.push(format!("disk {} held {}", at + 1, !is_held));
            }
            labels.hold(&|at| self.disks[at].is_held);
            let random = self.random();
            if !self.moves(labels, random, 20, outcome) {
                self.was_cut(random);
                return false;
            }
            self.begin_session(false);
        }
        true
    }

    /// A second copy says a mark with this random number, an unreadable one being counted as the first.
    fn has_moved_to(&self, random: u32) -> bool {
        let mut here = self.disks.iter().filter(|disk| disk.takes_part());
        here.any(|disk| {
            let [first, second] = &disk.content.label;
            let second = Label::unseal(second, LabelCopy::Second, BLOCKS);
            let label = second.or_else(|_| Label::unseal(first, LabelCopy::First, BLOCKS));
            label.is_ok_and(|label| label.mark.random == random)
        })
    }

    /// A disk goes while the set is in use.
    fn one_goes(&mut self) -> bool {
        let at = self.rng.below(self.disks.len() as u64) as usize;
        let others = self.disks.iter().filter(|disk| disk.takes_part()).count();
        let goes = others > 1 && self.disks[at].takes_part();
        if goes {
            self.disks[at].is_away = true;
            self.history.push(format!("disk {} goes", at + 1));
        }
        goes
    }

    /// Moves the count, which may be cut. True: it has moved.
    fn moves(
        &mut self,
        labels: &mut Labels,
        random: u32,
        percent: u64,
        outcome: &mut Outcome,
    ) -> bool {
        let writes_max = 6 * self.disks.len() as u64 + 1;
        let writes_left = match self.conditions.cuts && self.chance(percent) {
            true => self.rng.below(writes_max) as usize,
            false => usize::MAX,
        };
        let moved = labels.move_count(&mut self.store(writes_left), random).is_ok();
        self.history.push(format!("moved {moved}, {writes_left} left"));
        if !moved {
            self.cut(outcome);
        }
        moved
    }

    /// A start of a disk that is here was cut while another one was away.
    fn was_cut_apart(&self) -> bool {
        let mut here = self.disks.iter().filter(|disk| !disk.is_away);
        here.any(|disk| !disk.cut_without.is_empty())
    }
}

fn lives(conditions: Conditions, count: u64) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 0..count {
        let mut life = Life::new(seed, conditions);
        for _ in 0..12 {
            if !life.start(&mut outcome) {
                break;
            }
        }
    }
    outcome
}

fn conditions(disks: usize) -> Conditions {
    Conditions { disks, cuts: true, ..Conditions::default() }
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong[0]);
}

#[test]
fn a_set_that_is_whole_comes_up_whatever_was_cut() {
    for disks in 1..=3 {
        let outcome = lives(conditions(disks), 2_000);
        assert_none(&outcome.wrongly_refused);
        assert!(
            outcome.cuts > 5_000 && outcome.torn > 1_000,
            "{} cuts, {} torn",
            outcome.cuts,
            outcome.torn
        );
        let refused = outcome.old_refused + outcome.apart_refused + outcome.behind_refused;
        assert_eq!(refused, 0, "{disks} disks");
    }
}

#[test]
fn disks_that_are_right_are_taken_and_others_are_not() {
    for disks in 2..=3 {
        for (cuts, copies) in [(false, false), (false, true), (true, false), (true, true)] {
            let conditions = Conditions { away: true, cuts, copies, ..conditions(disks) };
            let outcome = lives(conditions, LIVES);
            println!(
                "{disks} disks, cuts {cuts}, copies put back {copies}: {} starts, {} cuts, refused: {} \
                 old, {} apart, {} apart by a start that was cut, {} behind; {} unnoticed",
                outcome.starts,
                outcome.cuts,
                outcome.old_refused,
                outcome.apart_refused,
                outcome.cut_apart_refused,
                outcome.behind_refused,
                outcome.unnoticed.len()
            );
            assert_none(&outcome.wrongly_refused);
            assert!(outcome.apart_refused > 100, "{}", outcome.apart_refused);
            assert!(!copies || outcome.old_refused > 100, "{}", outcome.old_refused);
            // A disk comes back, and its first start with the others is cut before it has written.
            let rarely = if cuts { LIVES / 100 } else { 0 };
            if outcome.unnoticed.len() as u64 > rarely {
                panic!("{} unnoticed: {}", outcome.unnoticed.len(), outcome.unnoticed[0]);
            }
        }
    }
}

#[test]
fn disks_that_are_held_out_while_the_count_moves_are_as_if_they_were_away() {
    for disks in 2..=3 {
        for (cuts, away) in [(false, false), (false, true), (true, false), (true, true)] {
            let conditions = Conditions { away, cuts, holds: true, ..conditions(disks) };
            let outcome = lives(conditions, LIVES / 2);
            println!(
                "{disks} disks held out, away {away}, cuts {cuts}: {} starts, {} cuts, refused: {} old, \
                 {} apart, {} apart by a start that was cut, {} behind; {} unnoticed",
                outcome.starts,
                outcome.cuts,
                outcome.old_refused,
                outcome.apart_refused,
                outcome.cut_apart_refused,
                outcome.behind_refused,
                outcome.unnoticed.len()
            );
            assert_none(&outcome.wrongly_refused);
            let rarely = if cuts && away { LIVES / 200 } else { 0 };
            if outcome.unnoticed.len() as u64 > rarely {
                panic!("{} unnoticed: {}", outcome.unnoticed.len(), outcome.unnoticed[0]);
            }
            // While all are there, none can go on without the others.
            let refused = outcome.apart_refused + outcome.old_refused + outcome.behind_refused;
            assert_eq!(refused > 0, away, "{refused}");
        }
    }
}

#[test]
fn a_copy_that_is_put_back_is_noticed_while_others_are_there() {
    for disks in 2..=3 {
        let copies = Conditions { copies: true, ..conditions(disks) };
        let outcome = lives(copies, LIVES);
        assert_none(&outcome.wrongly_refused);
        assert_none(&outcome.unnoticed);
        assert!(outcome.old_refused > 500, "{}", outcome.old_refused);
    }
}

#[test]
fn the_planted_bugs_are_found() {
    for (is_blind, is_late) in [(true, false), (false, true)] {
        let planted = Conditions { copies: true, is_blind, is_late, ..conditions(2) };
        let outcome = lives(planted, 500);
        assert!(!outcome.unnoticed.is_empty(), "blind {is_blind}, late {is_late}");
    }
}
