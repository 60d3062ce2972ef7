//! Points at which something breaks instead of the power going: errors at the n-th call, writes
//! that get lost or go astray, slow and dead disks, and damage found at the next start.

use super::coverage::kind_of;
use super::fault::{CallKind, Fault, FaultKind};
use super::image::{Cut, Mode, noise};
use super::journal_view::{JournalView, journal_header};
use super::medium::{Block, Medium, SECTOR_BYTES, block_of};
use super::oracle::{Leniency, Oracle};
use super::recorded::Recorded;
use super::recording_disk::World;
use super::subject::Member;
use super::trial::{Setting, Trial, catching};
use super::workload::Step;
use imbrex_core::durability::block::HEADER_BYTES;
use imbrex_core::lifecycle::OpenError;
use imbrex_core::rng::Rng;
use std::cell::RefCell;
use std::rc::Rc;

/// Requests of the workload during which something breaks.
pub const STEPS: usize = 120;

/// What breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultClass {
    /// A read fails once.
    ReadError,
    /// A write fails once.
    WriteError,
    /// A flush fails once.
    FlushError,
    /// There is no room below for a while.
    NoSpace,
    /// A write fails in its middle.
    ShortWrite,
    /// A write gets lost.
    LostWrite,
    /// A write goes astray.
    MisdirectedWrite,
    /// A block cannot be read any more.
    LatentError,
    /// An operation takes half a minute.
    Stuck,
    /// A disk becomes slow.
    Slow,
    /// A disk dies.
    Dead,
    /// A disk is dead at the next start.
    DeadAtOpen,
    /// A bit has flipped at the next start.
    BitFlip,
    /// A byte has changed.
    Byte,
    /// A sector is zeroes.
    ZeroedSector,
    /// A block is noise.
    Noise,
}

impl FaultClass {
    /// Every class.
    pub const ALL: [FaultClass; 16] = [
        FaultClass::ReadError,
        FaultClass::WriteError,
        FaultClass::FlushError,
        FaultClass::BitFlip,
        FaultClass::LostWrite,
        FaultClass::MisdirectedWrite,
        FaultClass::DeadAtOpen,
        FaultClass::NoSpace,
        FaultClass::ShortWrite,
        FaultClass::Byte,
        FaultClass::LatentError,
        FaultClass::Dead,
        FaultClass::ZeroedSector,
        FaultClass::Stuck,
        FaultClass::Slow,
        FaultClass::Noise,
    ];

    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            FaultClass::ReadError => "read-error",
            FaultClass::WriteError => "write-error",
            FaultClass::FlushError => "flush-error",
            FaultClass::NoSpace => "no-space",
            FaultClass::ShortWrite => "short-write",
            FaultClass::LostWrite => "lost-write",
            FaultClass::MisdirectedWrite => "misdirected-write",
            FaultClass::LatentError => "latent-error",
            FaultClass::Stuck => "stuck",
            FaultClass::Slow => "slow",
            FaultClass::Dead => "dead",
            FaultClass::DeadAtOpen => "dead-at-open",
            FaultClass::BitFlip => "bit-flip",
            FaultClass::Byte => "byte",
            FaultClass::ZeroedSector => "zeroed-sector",
            FaultClass::Noise => "noise",
        }
    }

    /// A fault of this class at a call drawn at random.
    fn draw(self, member: usize, calls: &[u64; 3], rng: &mut Rng) -> Fault {
        let (call, kind) = match self {
            FaultClass::ReadError => (CallKind::Read, FaultKind::Error),
            FaultClass::FlushError => (CallKind::Flush, FaultKind::Error),
            FaultClass::LatentError => (CallKind::Read, FaultKind::Latent(rng.below(16))),
            FaultClass::NoSpace => (CallKind::Write, FaultKind::NoSpace(1 + rng.below(20))),
            FaultClass::ShortWrite => (CallKind::Write, FaultKind::Short),
            FaultClass::LostWrite => (CallKind::Write, FaultKind::Lost),
            FaultClass::MisdirectedWrite => {
                let reach = if rng.below(2) == 0 { 4 } else { 200 };
                (CallKind::Write, FaultKind::Misdirected(1 + rng.below(reach)))
            }
            FaultClass::Stuck => (any_call(rng), FaultKind::Stuck),
            FaultClass::Slow => (any_call(rng), FaultKind::Slow),
            FaultClass::Dead => (any_call(rng), FaultKind::Dead),
            _ => (CallKind::Write, FaultKind::Error),
        };
        Fault { member, call, nth: rng.below(calls[call as usize].max(1)), kind }
    }

    /// Every request must be served as if nothing had happened.
    fn is_harmless(self) -> bool {
        matches!(self, FaultClass::Stuck | FaultClass::Slow)
    }

    /// Beside reads of blocks whose last write has failed, others may fail while it happens.
    fn breaks_reads(self) -> bool {
        let only_writes = matches!(
            self,
            FaultClass::WriteError
                | FaultClass::ShortWrite
                | FaultClass::NoSpace
                | FaultClass::FlushError
        );
        !only_writes && !self.is_harmless()
    }

    /// What is on the members afterwards is what the layers were told.
    fn is_honest(self) -> bool {
        !matches!(self, FaultClass::LostWrite | FaultClass::MisdirectedWrite)
    }
}

impl FaultClass {
    /// Only checksums can show it.
    fn needs_checksums(self) -> bool {
        !self.is_honest()
            || matches!(
                self,
                FaultClass::BitFlip
                    | FaultClass::Byte
                    | FaultClass::ZeroedSector
                    | FaultClass::Noise
            )
    }
}

fn any_call(rng: &mut Rng) -> CallKind {
    [CallKind::Read, CallKind::Write, CallKind::Flush][rng.below(3) as usize]
}

/// A formatted device and a workload during which things break.
pub struct Faulty<'a> {
    setting: Setting<'a>,
    formatted: Vec<Medium>,
    steps: Vec<Step>,
    /// By member and kind, the calls of the workload when nothing breaks.
    calls: Vec<[u64; 3]>,
    members: Vec<Member>,
}

impl<'a> Faulty<'a> {
    /// Formats a device and counts the calls of the workload.
    ///
    /// # Errors
    /// When it fails although nothing breaks.
    pub fn make(setting: Setting<'a>, steps: &[Step]) -> Result<Faulty<'a>, String> {
        let work = || {
            let world = World::new(setting.subject.blank(setting.seed), None);
            let mut trial = Trial::format(setting, &world).map_err(|it| it.to_string())?;
            trial.close().map_err(|error| error.to_string())?;
            let formatted = world.borrow().media.clone();
            let world = World::new(formatted.clone(), None);
            let mut trial = Trial::recover(setting, &world).map_err(|it| it.to_string())?;
            let mut oracle = Oracle::empty(trial.shape.blocks);
            let played = trial.play(steps, &mut oracle, Leniency::default());
            played.map_err(|violation| violation.detail)?;
            trial.close().map_err(|error| error.to_string())?;
            let faults = &world.borrow().faults;
            let kinds = [CallKind::Read, CallKind::Write, CallKind::Flush];
            let calls = (0..formatted.len())
                .map(|member| kinds.map(|kind| faults.calls(member, kind)))
                .collect();
            Ok(Faulty {
                members: trial.members.clone(),
                setting,
                formatted,
                steps: steps.to_vec(),
                calls,
            })
        };
        catching(work).and_then(|result| result)
    }

    /// How many calls of a kind a member sees when nothing breaks.
    pub fn calls(&self, member: usize, call: CallKind) -> u64 {
        self.calls[member][call as usize]
    }

    /// Members.
    pub fn members(&self) -> usize {
        self.formatted.len()
    }

    /// Tries one fault of a class.
    ///
    /// # Errors
    /// When something lies afterwards, or a request fails that should not.
    pub fn try_class(
        &self,
        class: FaultClass,
        recorded: &Recorded,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let mut members: Vec<usize> = (0..self.formatted.len()).collect();
        if class.needs_checksums() {
            members.retain(|member| !self.formatted[*member].is_trusted());
        }
        if members.is_empty() {
            return Ok(());
        }
        let member = members[rng.below(members.len() as u64) as usize];
        let result = match class {
            FaultClass::DeadAtOpen => self.dead_at_open(member, recorded, rng),
            FaultClass::BitFlip
            | FaultClass::Byte
            | FaultClass::ZeroedSector
            | FaultClass::Noise => self.damaged(class, member, recorded, rng),
            _ => {
                let fault = class.draw(member, &self.calls[member], rng);
                self.try_fault(fault, class, rng)
            }
        };
        result.map_err(|what| format!("{} of member {member}: {what}", class.name()))
    }

    /// Plays the workload with a fault, cuts the power and recovers on healthy disks.
    ///
    /// # Errors
    /// As [`try_class`](Self::try_class).
    pub fn try_fault(&self, fault: Fault, class: FaultClass, rng: &mut Rng) -> Result<(), String> {
        let work = || {
            let world = World::new(self.formatted.clone(), Some(fault));
            let when = format!("at {} {}", fault.call.name(), fault.nth);
            self.live_through(&world, class, rng).map_err(|what| format!("{when}: {what}"))
        };
        catching(work).and_then(|result| result)
    }

    fn live_through(
        &self,
        world: &Rc<RefCell<World>>,
        class: FaultClass,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let mut trial = match Trial::recover(self.setting, world) {
            Ok(trial) => trial,
            Err(error) if class.is_harmless() => {
                return Err(format!("it does not come up: {error}"));
            }
            Err(_) if world.borrow().faults.has_fired() => return Ok(()),
            Err(error) => return Err(format!("it does not come up before the fault: {error}")),
        };
        let first = world.borrow().log.events;
        let mut oracle = Oracle::empty(trial.shape.blocks);
        let while_up = Leniency {
            errors: class.breaks_reads(),
            failed_writes: !class.is_harmless(),
            ..Leniency::default()
        };
        trial.play(&self.steps, &mut oracle, while_up).map_err(|violation| violation.detail)?;
        if !oracle.is_settled() {
            return Err("a request was never answered".to_string());
        }
        let closed = trial.close();
        match closed {
            Err(error) if class.is_harmless() => {
                return Err(format!("it does not go down: {error}"));
            }
            Err(_) => {}
            Ok(()) => oracle.closed(world.borrow().log.events),
        }
        drop(trial);
        let world = world.borrow();
        let index = match rng.below(2) {
            0 => world.log.events,
            _ => first + rng.below(world.log.events - first + 1),
        };
        let mode = [Mode::None, Mode::All, Mode::Subset][rng.below(3) as usize];
        let cut = Cut::draw(&world.log, &self.formatted, index, mode, rng.next_u64());
        let image = cut.image(&world.log, &self.formatted);
        let is_unsure = |(member, at, before): &(usize, u64, Block)| {
            JournalView::of(&self.members, &image, *member, *at).is_unsure(*at, &before[..])
        };
        let older = !class.is_honest() && world.faults.astray().iter().any(is_unsure);
        let afterwards = Leniency {
            errors: !class.is_honest() || class == FaultClass::LatentError,
            older,
            ..Leniency::default()
        };
        let world = World::new(image, None);
        self.judge(&world, &oracle, index, afterwards)
    }

    /// Recovers and reads the whole device; with leniency it may refuse to come up.
    fn judge(
        &self,
        world: &Rc<RefCell<World>>,
        oracle: &Oracle,
        index: u64,
        leniency: Leniency,
    ) -> Result<(), String> {
        let mut trial = match Trial::recover(self.setting, world) {
            Ok(trial) => trial,
            Err(OpenError::Settings { name, .. }) if leniency.errors => {
                return Err(format!("damage is taken for another setting of {name}"));
            }
            Err(_) if leniency.errors => return Ok(()),
            Err(error) => return Err(format!("then it does not come up: {error}")),
        };
        let reads = trial.read_all();
        let judged = oracle.judge_recovered(index, &reads, leniency);
        judged.map_err(|violation| format!("then {}", violation.detail))?;
        let strict = Leniency { older: false, ..leniency };
        let is_silent = leniency.older_is_told && trial.rolled_back_blocks_max() == 0;
        match oracle.judge_recovered(index, &reads, strict) {
            Err(violation) if is_silent => Err(format!(
                "then nothing is said of the damaged block at the end of the journal, and {}",
                violation.detail
            )),
            _ => Ok(()),
        }
    }

    fn dead_at_open(
        &self,
        member: usize,
        recorded: &Recorded,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let mode = [Mode::None, Mode::All][rng.below(2) as usize];
        let cut = recorded.draw(mode, rng);
        let image = cut.image(&recorded.log(), &recorded.base);
        let dead = |call| Fault { member, call, nth: 0, kind: FaultKind::Dead };
        let work = || {
            let world = World::new(image, Some(dead(CallKind::Read)));
            let leniency = Leniency { errors: true, ..Leniency::default() };
            self.judge(&world, &recorded.oracle, cut.index, leniency)
        };
        catching(work).and_then(|result| result)
    }

    fn damaged(
        &self,
        class: FaultClass,
        member: usize,
        recorded: &Recorded,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let mode = [Mode::None, Mode::All][rng.below(2) as usize];
        let cut = recorded.draw(mode, rng);
        let mut image = cut.image(&recorded.log(), &recorded.base);
        let medium = &mut image[member];
        let is_zero = |at: u64| medium.block(at).iter().all(|byte| *byte == 0);
        let metadata = rng.below(2) == 0;
        let wanted =
            |at: &u64| !is_zero(*at) && (kind_of(&medium.block(*at)[..]).is_some() == metadata);
        let places: Vec<u64> = (0..medium.len()).filter(wanted).collect();
        if places.is_empty() {
            return Ok(());
        }
        let at = places[rng.below(places.len() as u64) as usize];
        let before = medium.block(at).clone();
        damage(class, medium, at, rng);
        let was_journal = journal_header(&before[..], at - medium.part_of(at).start.0).is_some();
        let is_blank = medium.block(at).iter().all(|byte| *byte == 0);
        let view = JournalView::of(&self.members, &image, member, at);
        let leniency = Leniency {
            errors: true,
            older: view.is_unsure(at, &before[..]),
            older_is_told: was_journal && !is_blank,
            ..Leniency::default()
        };
        let work = || {
            let world = World::new(image, None);
            self.judge(&world, &recorded.oracle, cut.index, leniency)
        };
        let result = catching(work).and_then(|result| result);
        result.map_err(|what| format!("block {at}, log index {}: {what}", cut.index))
    }
}

/// Half of the damage to a block of metadata goes to the bytes that mean something.
fn used_bytes(block: &[u8], rng: &mut Rng) -> u64 {
    let payload = u32::from_le_bytes(block[12..16].try_into().expect("4 bytes"));
    let used = HEADER_BYTES as u64 + u64::from(payload);
    match kind_of(block) {
        Some(_) if rng.below(2) == 0 => used.min(block.len() as u64),
        _ => block.len() as u64,
    }
}

/// Damages a block of a member in the way of a class.
pub(super) fn damage(class: FaultClass, medium: &mut Medium, at: u64, rng: &mut Rng) {
    let mut content = **medium.block(at);
    let used = used_bytes(&content, rng);
    let byte = rng.below(used) as usize;
    match class {
        FaultClass::BitFlip => content[byte] ^= 1 << rng.below(8),
        FaultClass::Byte => content[byte] = content[byte].wrapping_add(1 + rng.below(255) as u8),
        FaultClass::ZeroedSector => {
            let sector = byte / SECTOR_BYTES * SECTOR_BYTES;
            content[sector..sector + SECTOR_BYTES].fill(0);
        }
        _ => noise(rng.next_u64(), &mut content),
    }
    medium.damage(at, block_of(&content));
}
