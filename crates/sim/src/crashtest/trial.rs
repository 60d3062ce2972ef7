//! One life of a stack, from power on to power off.

use super::host::{Host, Reader, TrialClock};
use super::oracle::{Leniency, Oracle, ReadBack, Violation};
use super::recording_disk::{RecordingDisk, World};
use super::subject::Subject;
use super::workload::{Shape, Step};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::planted::PlantedBug;
use imbrex_core::stack::NodeId;
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

/// True when this build can plant bugs.
pub const fn can_plant() -> bool {
    cfg!(feature = "planted-bugs")
}

/// A stack that is up.
pub struct Trial {
    engine: Engine,
    clock: TrialClock,
    world: Rc<RefCell<World>>,
    seed: u64,
    translations: Vec<NodeId>,
    /// What a workload must know.
    pub shape: Shape,
    /// Its disks.
    pub members: Vec<super::subject::Member>,
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
        let seed = setting.seed;
        let parts = (setting.subject.build)(seed);
        #[cfg_attr(not(feature = "planted-bugs"), expect(unused_mut))]
        let mut stack = parts.stack;
        #[cfg(feature = "planted-bugs")]
        if let Some(bug) = setting.plant {
            stack.plant(bug);
        }
        let disk = |(member, description): (usize, &super::subject::Member)| {
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
            seed,
            translations: parts.translations,
            shape: parts.shape,
            members: parts.members,
        };
        match trial.engine.open(&mut trial.clock, start) {
            Ok(()) => Ok(trial),
            Err((_, error)) => Err(error),
        }
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
        let mut host = Host::new(steps, world, oracle, self.seed).lenient(leniency);
        self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        host.violation.take().map_or(Ok(()), Err)
    }

    /// Reads the whole device.
    pub fn read_all(&mut self) -> Vec<ReadBack> {
        let mut host = Reader::new(self.shape.blocks, self.seed);
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
        let result = self.engine.close(&mut self.clock);
        result.map_err(|(_, error)| error)
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
        let counts = |node: &NodeId| self.engine.stack.counts(*node);
        let rewritten = |node| {
            let counts = counts(node);
            counts.counter(Counter::BandsRewritten) + counts.counter(Counter::SegmentsRewritten)
        };
        self.translations.iter().map(rewritten).sum()
    }
}

/// The name of the set that a seed formats.
fn set_of(seed: u64) -> Uuid {
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

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without words".to_string())
}
