//! One life of a stack, from power on to power off.

use super::host::{Flusher, Host, Reader, TrialClock};
use super::oracle::{Leniency, Oracle, ReadBack, Violation};
use super::recording_disk::{RecordingDisk, World};
use super::subject::{Member, Subject};
use super::workload::{Shape, Step};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::label::{LabelledOpenError, Labels, ListedDisk};
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::planted::PlantedBug;
use imbrex_core::stack::{DiskId, Stack};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Once;

/// What every trial of a campaign has in common.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The stack.
    pub subject: &'a Subject,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// The bug that was planted.
    pub plant: Option<PlantedBug>,
}

/// How a stack comes up.
#[derive(Clone, Copy)]
pub struct Opening {
    /// Formatted or recovered, as a set.
    pub start: Start,
    /// The number of a member that is not there.
    pub lost: Option<usize>,
    /// What the host stamps into blocks beside their address and number.
    pub stamps: u64,
    /// The seed of the random numbers of the labels, where the disks have some.
    pub labels: Option<u64>,
}

/// Why a stack did not come up.
#[derive(Clone, Debug)]
pub struct NotUp {
    /// What was wrong.
    pub error: LabelledOpenError,
    /// The numbers of the members that it is about.
    pub members: Vec<usize>,
}

impl NotUp {
    pub(super) fn new(error: LabelledOpenError, stack: &Stack) -> NotUp {
        let members = match &error {
            LabelledOpenError::Refused(refusals) => refusals.iter().map(|it| it.index).collect(),
            LabelledOpenError::Label(disk, _) => vec![usize::from(disk.0)],
            LabelledOpenError::Layer(node, _) => {
                let below = stack.disks_below(*node).into_iter();
                below.map(|disk| usize::from(disk.0)).collect()
            }
        };
        NotUp { error, members }
    }

    /// What was wrong, in words.
    pub fn words(&self) -> String {
        match &self.error {
            LabelledOpenError::Refused(refusals) => {
                let words = refusals.iter().map(|it| it.reason.to_string());
                words.collect::<Vec<_>>().join("; ")
            }
            LabelledOpenError::Label(_, error) => format!("its label cannot be written: {error}"),
            LabelledOpenError::Layer(_, error) => error.to_string(),
        }
    }
}

/// A stack that is up.
pub struct Trial {
    engine: Engine,
    clock: TrialClock,
    world: Rc<RefCell<World>>,
    stamps: u64,
    keeps_state: bool,
    /// What a workload must know.
    pub shape: Shape,
    /// Its disks.
    pub members: Vec<Member>,
}

impl Trial {
    /// Builds a stack over a world and lets it come up.
    ///
    /// # Errors
    /// What the layer that could not come up has said.
    pub fn start(
        setting: Setting<'_>,
        world: &Rc<RefCell<World>>,
        start: Start,
    ) -> Result<Trial, OpenError> {
        let opening = Opening { start, lost: None, stamps: setting.seed, labels: None };
        Trial::come_up(setting, world, opening).map_err(|it| match it.error {
            LabelledOpenError::Layer(_, error) => error,
            _ => unreachable!("these disks have no labels"),
        })
    }

    /// The same, with a member away or data of another kind.
    ///
    /// # Errors
    /// Which members are to blame.
    pub fn come_up(
        setting: Setting<'_>,
        world: &Rc<RefCell<World>>,
        opening: Opening,
    ) -> Result<Trial, NotUp> {
        let seed = setting.seed;
        let parts = (setting.subject.build)(seed);
        let mut stack = parts.stack;
        if let Some(bug) = setting.plant {
            stack.plant(bug);
        }
        if let Some(lost) = opening.lost {
            stack.lose_disk(DiskId(lost as u16));
        }
        let disk = |(member, description): (usize, &Member)| {
            let geometry = description.geometry.clone();
            Box::new(RecordingDisk::new(geometry, Rc::clone(world), member, seed)) as Box<dyn Disk>
        };
        let disks = parts.members.iter().enumerate().map(disk).collect();
        let mut trial = Trial {
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 1 + (seed % 16) as u32,
            },
            clock: TrialClock::default(),
            world: Rc::clone(world),
            stamps: opening.stamps,
            keeps_state: parts.keeps_state,
            shape: parts.shape,
            members: parts.members,
        };
        let opened = trial.open(opening);
        match opened {
            Ok(()) => Ok(trial),
            Err(error) => Err(NotUp::new(error, &trial.engine.stack)),
        }
    }

    fn open(&mut self, opening: Opening) -> Result<(), LabelledOpenError> {
        let Opening { start, labels, .. } = opening;
        let Some(seed) = labels else {
            let opened = self.engine.open(&mut self.clock, start);
            return opened.map_err(|(node, error)| LabelledOpenError::Layer(node, error));
        };
        let (set, is_labelled) = match start {
            Start::Format(set) => (set, false),
            Start::Recover(set) => (set.unwrap_or_default(), true),
        };
        let disk = |number| Some(ListedDisk { number, is_labelled });
        let disks: Vec<_> = (1..).take(self.members.len()).map(disk).collect();
        let labels = Labels::new(set, &disks);
        let Trial { engine, clock, .. } = self;
        engine.open_labelled(clock, start, labels, seed)
    }

    /// Writes an empty device over blank members.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn format(setting: Setting<'_>, world: &Rc<RefCell<World>>) -> Result<Trial, OpenError> {
        Trial::start(setting, world, Start::Format(set_of(setting.seed)))
    }

    /// Recovers a device.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn recover(setting: Setting<'_>, world: &Rc<RefCell<World>>) -> Result<Trial, OpenError> {
        Trial::start(setting, world, Start::Recover(Some(set_of(setting.seed))))
    }

    /// Plays a workload to its end and checks every read.
    ///
    /// # Errors
    /// At the first read that was wrong, and the first request that failed without a fault.
    pub fn play(
        &mut self,
        steps: &[Step],
        oracle: &mut Oracle,
        leniency: Leniency,
    ) -> Result<(), Violation> {
        let world = Rc::clone(&self.world);
        let mut host = Host::new(steps, world, oracle, self.stamps).lenient(leniency);
        self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        host.violation.take().map_or(Ok(()), Err)
    }

    /// Reads the whole device.
    pub fn read_all(&mut self) -> Vec<ReadBack> {
        let mut host = Reader::new(self.shape.blocks, self.stamps);
        self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        if host.retry_by_block() {
            self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        }
        host.reads
    }

    /// Goes down in good order.
    ///
    /// # Errors
    /// What went wrong.
    pub fn close(&mut self) -> Result<(), IoError> {
        // Where no layer keeps anything, none flushes when it goes down: the door has, before that.
        if !self.keeps_state {
            let mut last = Flusher::default();
            self.engine.run(&mut self.clock, &mut last, &mut |_, _| {});
            last.result?;
        }
        let Trial { engine, clock, .. } = self;
        engine.close_labelled(clock).map(|_| ()).map_err(|(_, error)| error)
    }

    /// Blocks of data that the layers said may have been rolled back when they came up, because a
    /// block at the end of a journal was damaged or torn.
    pub fn rolled_back_blocks_max(&self) -> u64 {
        let stack = &self.engine.stack;
        let gauge = |node| stack.counts(node).gauge(Gauge::RolledBackBlocksMax);
        stack.bottom_up().map(gauge).sum()
    }

    /// Bands rewritten so far.
    pub fn bands_rewritten(&self) -> u64 {
        let stack = &self.engine.stack;
        let rewritten = |node| {
            let counts = stack.counts(node);
            counts.counter(Counter::BandsRewritten) + counts.counter(Counter::SegmentsRewritten)
        };
        stack.bottom_up().map(rewritten).sum()
    }
}

/// The name of the set that a seed formats.
pub fn set_of(seed: u64) -> Uuid {
    let mut bytes = *b"crashtest.......";
    bytes[8..].copy_from_slice(&seed.to_be_bytes());
    Uuid(bytes)
}

thread_local! {
    /// A panic of this thread is a finding, not a message on standard error.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs something whose panic is a finding.
///
/// # Errors
/// The text of the panic.
pub fn catching<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                return loud(info);
            }
            let place = info.location().map_or(String::new(), |location| {
                format!(" ({}:{})", location.file(), location.line())
            });
            let text = text_of(info.payload());
            PANIC.set(format!("panic: {text}{place}"));
        }));
    });
    let before = IS_QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(before);
    result.map_err(|_| PANIC.take())
}

/// True of a failure that is a slip of the code. What an assertion of the search says is none.
pub fn is_slip(what: &str) -> bool {
    what.contains("panic: ") && !what.contains("panic: the stack ")
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without words".to_string())
}
