//! The rules of the conformance suite, played on one kind of layer.

mod changed;

pub use changed::{change_blocks, change_blocks_without};

use super::disk::{Fault, How, WatchedDisk, Witness};
use super::kinds::{Kind, KnownFault};
use super::workload;
use crate::common::crash_disk::{CrashDisk, Cut, Medium, Shared};
use crate::common::harness::JumpingClock;
use crate::common::oracle::{Ask, Host, MayFail, Oracle};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::Completion;
use imbrex_core::planted::PlantedBug;
use imbrex_core::read_cache::ReadCache;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, DiskId, NodeId, StackBuilder};
use imbrex_core::units::{BlockCount, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const SET: Uuid = Uuid([6; 16]);
const IN_FLIGHT_MAX: u32 = 64;
/// More blocks than any device here has.
const DEVICE_MAX: BlockCount = BlockCount(1 << 20);

/// When a port fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// While requests are served.
    Serving,
    /// While a durable layer comes up again.
    Reopening,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub seed: u64,
    pub depth: usize,
    /// Requests.
    pub asks: u64,
    pub fault: Option<(When, Fault)>,
    /// A durable layer is closed before it comes up again; otherwise the power is cut.
    pub closes: bool,
    pub bug: Option<PlantedBug>,
}

/// What a run has come to.
#[derive(Default)]
pub struct Seen {
    /// Operations of each port while something was to fail.
    pub operations: Vec<u64>,
    /// Most blocks that the layer's own buffers held.
    pub own_blocks_max: u64,
}

/// Why something did not go to its end.
enum Stop {
    PowerCut,
    Mistake(String),
}

impl From<String> for Stop {
    fn from(mistake: String) -> Stop {
        Stop::Mistake(mistake)
    }
}

/// Carries something out that may panic: a broken rule of the router, or the power that is cut.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        if panic.is::<Cut>() {
            return Stop::PowerCut;
        }
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or(panic.downcast_ref::<&str>().map(|words| words.to_string()));
        Stop::Mistake(format!("panic: {}", words.unwrap_or_default()))
    })
}

/// A host whose buffers are counted.
struct Counted<'h> {
    host: Host<'h>,
    in_flight: BTreeMap<u64, u32>,
    witness: Rc<RefCell<Witness>>,
}

impl Frontend for Counted<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        self.host.next_arrival()
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        let arrival = self.host.poll(now, buffers)?;
        self.in_flight.insert(arrival.tag.0, arrival.buffer.blocks);
        self.witness.borrow_mut().host_blocks += u64::from(arrival.buffer.blocks);
        Some(arrival)
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        let tag = completion.tag.0;
        self.host.reply(now, completion, buffers);
        let blocks = self.in_flight.remove(&tag).expect("a request in flight");
        self.witness.borrow_mut().host_blocks -= u64::from(blocks);
    }

    fn finished(&self) -> bool {
        self.host.finished()
    }
}

/// A stack of the one layer, and what its disks hold.
struct Up {
    engine: Engine,
    clock: JumpingClock,
    node: NodeId,
    above: Geometry,
    disks: Vec<Rc<RefCell<Shared>>>,
}

/// A kind of layer in one run.
struct World<'k> {
    kind: &'k Kind,
    case: Case,
    /// How often the layer has come up.
    starts: u64,
    media: Vec<Medium>,
    witness: Rc<RefCell<Witness>>,
    oracle: Oracle,
    /// Operations of each port while something was to fail.
    operations: Vec<u64>,
}

impl World<'_> {
    fn fault(&self, when: When) -> Option<Fault> {
        let fault = self.case.fault.filter(|(at, _)| *at == when);
        fault.map(|(_, fault)| fault)
    }

    /// From here on operations are counted, and fail as told.
    fn expect(&self, fault: Option<Fault>) {
        self.witness.borrow_mut().expect(self.media.len(), fault);
    }

    fn has_failed(&self) -> bool {
        self.witness.borrow().failures > 0
    }

    /// The stack over what the disks hold, not yet up.
    fn build(&mut self) -> Up {
        self.starts += 1;
        let seed = self.case.seed * 8 + self.starts;
        let mut builder = StackBuilder::new(seed);
        let geometries = &self.kind.disks;
        let mut below: Vec<_> = geometries.iter().map(|it| builder.disk(it.clone())).collect();
        let mut told = geometries.clone();
        if let Some((port, settings)) = self.kind.store {
            let built = ReadCache::new(settings, DEVICE_MAX, &told[port]);
            let (cache, above) = built.expect("a flash that is large enough");
            below[port] = builder.layer(Box::new(cache), above.clone(), &[below[port]]);
            told[port] = above;
        }
        for (port, build) in &self.kind.beneath {
            let (layer, above) = build(&told[*port..=*port]);
            below[*port] = builder.layer(layer, above.clone(), &[below[*port]]);
            told[*port] = above;
        }
        let (layer, above) = (self.kind.build)(&told);
        let node = builder.layer(layer, above.clone(), &below);
        let mut stack = builder.build(node);
        if let Some(bug) = self.case.bug {
            stack.plant(bug);
        }
        let mut shared = Vec::new();
        let mut disks: Vec<Box<dyn Disk>> = Vec::new();
        for (port, medium) in self.media.iter().enumerate() {
            let disk = CrashDisk::new(medium, seed * 4 + port as u64, u64::MAX);
            disk.shared().borrow_mut().takes_forced_writes = true;
            shared.push(disk.shared());
            let mut disk = WatchedDisk::new(disk, port, &self.witness);
            disk.never_spoils = self.kind.never_spoils;
            disks.push(Box::new(disk));
        }
        self.witness.borrow_mut().host_blocks = 0;
        Up {
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: IN_FLIGHT_MAX,
            },
            clock: JumpingClock::default(),
            node,
            above,
            disks: shared,
        }
    }

    /// Plays requests, to their end or until the power is cut.
    fn play(
        &mut self,
        up: &mut Up,
        asks: Vec<Ask>,
        depth: usize,
        may_fail: MayFail,
        settles: bool,
    ) -> Result<(), Stop> {
        let mut host = Host::new(&mut self.oracle, asks, depth);
        (host.may_fail, host.settles) = (may_fail, settles);
        let mut host =
            Counted { host, in_flight: BTreeMap::new(), witness: Rc::clone(&self.witness) };
        let ran = guarded(|| up.engine.run(&mut up.clock, &mut host, &mut |_, _| {}));
        let Host { mistake, failed, .. } = host.host;
        self.check_bounds()?;
        if let Some(mistake) = mistake {
            return Err(Stop::Mistake(mistake));
        }
        ran?;
        if let Some(ask) = failed.first()
            && !self.has_failed()
        {
            return Err(Stop::Mistake(format!("{ask:?} failed and no disk has")));
        }
        Ok(())
    }

    /// The rules that hold at any time.
    fn check_bounds(&self) -> Result<(), Stop> {
        let witness = self.witness.borrow();
        let may_overlap = self.kind.known == Some(KnownFault::OwnBlocksOverlap);
        if let Some(overlap) = witness.overlap.as_ref().filter(|_| !may_overlap) {
            return Err(Stop::Mistake(overlap.clone()));
        }
        let bound = self.kind.buffers;
        if witness.own_blocks_max > bound.blocks {
            return Err(Stop::Mistake(format!(
                "its buffers held {} blocks, and {} are planned: {}",
                witness.own_blocks_max, bound.blocks, bound.because
            )));
        }
        Ok(())
    }

    /// The rules that hold when a layer has had time for all work of its own.
    fn check_quiet(&self, up: &Up) -> Result<(), Stop> {
        if !up.engine.stack.is_quiet() {
            return Err(Stop::Mistake("work is left over".into()));
        }
        match up.engine.buffers.allocated() {
            left if left <= self.kind.kept_buffers => Ok(()),
            left => Err(Stop::Mistake(format!("{left} buffers were not given back"))),
        }
    }

    /// Serves requests, and reads every block.
    fn serve(&mut self, up: &mut Up) -> Result<(), Stop> {
        let fault = self.fault(When::Serving);
        self.expect(fault);
        let asks = workload::asks(self.case.seed, self.case.asks, &up.above);
        let may_fail = match fault {
            Some(_) => MayFail::Anything,
            None => MayFail::Nothing,
        };
        let played = self.play(up, asks, self.case.depth, may_fail, false);
        if fault.is_some() {
            self.operations = self.witness.borrow().operations.clone();
        }
        played?;
        // What has failed works again.
        self.expect(None);
        self.play(up, workload::look(&up.above), 4, may_fail, false)?;
        if fault.is_none() && up.above.zones.is_none() {
            self.play(up, workload::zone_commands(), 2, may_fail, false)?;
        }
        self.check_quiet(up)
    }

    /// Goes down in good order; true when it says so.
    fn close(&mut self, up: &mut Up) -> Result<bool, Stop> {
        if self.kind.passes_on {
            let may_fail = match self.case.fault {
                Some(_) => MayFail::Changes,
                None => MayFail::Nothing,
            };
            self.play(up, vec![Ask::Flush], 1, may_fail, false)?;
            if self.has_failed() {
                return Ok(false);
            }
        }
        let closed = guarded(|| up.engine.close(&mut up.clock))?;
        match closed {
            Ok(()) => {
                self.check_quiet(up)?;
                Ok(true)
            }
            Err(_) if self.has_failed() => Ok(false),
            Err((_, error)) => Err(Stop::Mistake(format!("it does not close: {error}"))),
        }
    }

    /// Nobody holds the disks any more: what no flush has covered may be gone.
    fn cut(&mut self, up: Up) {
        let mut rng = Rng::new(self.case.seed, 90 + self.starts);
        for (medium, disk) in self.media.iter_mut().zip(&up.disks) {
            *medium = disk.borrow_mut().after_the_cut(&mut rng);
        }
        self.oracle.crash();
    }

    /// Comes up once more from what the disks hold.
    ///
    /// Where operations fail meanwhile, or blocks cannot be read, it may refuse, or come up and let
    /// reads fail. When the disks work again and those blocks are replaced, all must be there.
    fn reopen(&mut self) -> Result<Up, Stop> {
        let fault = self.fault(When::Reopening);
        if fault.is_some() || self.media.iter().any(Medium::is_unreadable) {
            self.expect(fault);
            let mut up = self.build();
            let ended = self.reopen_with_failures(&mut up);
            if fault.is_some() {
                self.operations = self.witness.borrow().operations.clone();
            }
            match ended {
                Ok(()) | Err(Stop::PowerCut) => {}
                Err(mistake) => return Err(mistake),
            }
            self.cut(up);
            self.media.iter_mut().for_each(Medium::mend);
        }
        self.expect(None);
        let mut up = self.build();
        let opened = guarded(|| up.engine.open(&mut up.clock, Start::Recover(Some(SET))))?;
        opened.map_err(|(_, error)| format!("it does not open: {error}"))?;
        Ok(up)
    }

    fn reopen_with_failures(&mut self, up: &mut Up) -> Result<(), Stop> {
        let opened = guarded(|| up.engine.open(&mut up.clock, Start::Recover(Some(SET))))?;
        match opened {
            Ok(()) => self.play(up, workload::look(&up.above), 4, MayFail::Anything, false),
            Err(_) => Ok(()),
        }
    }

    /// Comes up over blank disks.
    fn format(&mut self) -> Result<Up, Stop> {
        let mut up = self.build();
        self.expect(None);
        let opened = guarded(|| up.engine.open(&mut up.clock, Start::Format(SET)))?;
        opened.map_err(|(_, error)| format!("it does not open: {error}"))?;
        Ok(up)
    }

    /// Comes up without a disk, and is asked where it does. True then.
    fn serve_without(&mut self, port: usize, start: Start) -> Result<bool, Stop> {
        self.expect(None);
        let mut up = self.build();
        up.engine.stack.lose_disk(DiskId(port as u16));
        // From here on errors are answers like others.
        self.witness.borrow_mut().failures += 1;
        let opened = guarded(|| up.engine.open(&mut up.clock, start))?;
        let is_up = opened.is_ok();
        if is_up {
            let asks = workload::asks(self.case.seed + 2, self.case.asks, &up.above);
            let look = workload::look(&up.above);
            for (asks, depth) in [(look.clone(), 4), (asks, self.case.depth), (look, 4)] {
                self.play(&mut up, asks, depth, MayFail::Anything, false)?;
            }
            self.check_quiet(&up)?;
            let closes = self.case.closes && !self.kind.passes_on;
            if closes && guarded(|| up.engine.close(&mut up.clock))?.is_ok() {
                self.oracle.close();
            }
        }
        self.cut(up);
        Ok(is_up)
    }

    /// Comes up without a disk, and reads everything.
    fn read_without(&mut self, port: usize) -> Result<(), Stop> {
        self.expect(None);
        let mut up = self.build();
        up.engine.stack.lose_disk(DiskId(port as u16));
        let opened = guarded(|| up.engine.open(&mut up.clock, Start::Recover(Some(SET))))?;
        opened.map_err(|(_, error)| Stop::Mistake(format!("without a disk: {error}")))?;
        let look = workload::look(&up.above);
        self.play(&mut up, look, 4, MayFail::Nothing, true)?;
        self.check_quiet(&up)?;
        self.cut(up);
        Ok(())
    }

    /// Loses a disk for one start.
    fn run_without(&mut self, port: usize) -> Result<bool, Stop> {
        if !self.kind.is_durable {
            return self.serve_without(port, Start::Format(SET));
        }
        let mut up = self.format()?;
        self.serve(&mut up)?;
        if self.case.closes && self.close(&mut up)? {
            self.oracle.close();
        }
        self.cut(up);
        let was_served = self.serve_without(port, Start::Recover(Some(SET)))?;
        let mut up = self.reopen()?;
        let look = workload::look(&up.above);
        self.play(&mut up, look, 4, MayFail::Changes, true)?;
        self.check_quiet(&up)?;
        Ok(was_served)
    }

    /// Loses a disk for one start, behind a power cut and a start with all that has ended in order.
    fn run_without_after_a_cut(&mut self, port: usize) -> Result<bool, Stop> {
        let mut up = self.format()?;
        self.serve(&mut up)?;
        self.cut(up);
        let mut up = self.reopen()?;
        if self.close(&mut up)? {
            self.oracle.close();
        }
        self.cut(up);
        let was_served = self.serve_without(port, Start::Recover(Some(SET)))?;
        self.reopen()?;
        Ok(was_served)
    }

    /// Loses a disk for one start behind a power cut, and another when the first is back and has everything again.
    fn run_without_in_turn(&mut self, first: usize, then: usize) -> Result<bool, Stop> {
        let mut up = self.format()?;
        self.serve(&mut up)?;
        self.cut(up);
        let closes = std::mem::replace(&mut self.case.closes, false);
        if !self.serve_without(first, Start::Recover(Some(SET)))? {
            return Ok(false);
        }
        let mut up = self.reopen()?;
        let asks = workload::asks(self.case.seed + 3, self.case.asks, &up.above);
        let look = workload::look(&up.above);
        // Behind the first look the disk has everything.
        for (asks, depth) in [(look.clone(), 4), (asks, self.case.depth), (look, 4)] {
            self.play(&mut up, asks, depth, MayFail::Nothing, false)?;
        }
        self.check_quiet(&up)?;
        if closes && self.close(&mut up)? {
            self.oracle.close();
        }
        self.cut(up);
        let was_served = self.serve_without(then, Start::Recover(Some(SET)))?;
        let mut up = self.reopen()?;
        let look = workload::look(&up.above);
        self.play(&mut up, look, 4, MayFail::Nothing, true)?;
        self.check_quiet(&up)?;
        Ok(was_served)
    }

    fn run(&mut self) -> Result<(), Stop> {
        let mut up = self.format()?;
        match self.serve(&mut up) {
            Err(Stop::PowerCut) => {}
            Err(mistake) => return Err(mistake),
            Ok(()) => {
                if self.case.closes && self.close(&mut up)? {
                    self.oracle.close();
                }
            }
        }
        if !self.kind.is_durable {
            return Ok(());
        }
        self.cut(up);
        let mut up = self.reopen()?;
        let look = workload::look(&up.above);
        self.play(&mut up, look, 4, MayFail::Changes, true)?;
        if self.case.fault.is_none() {
            let asks = workload::asks(self.case.seed + 1, self.case.asks / 2, &up.above);
            self.play(&mut up, asks, self.case.depth, MayFail::Nothing, false)?;
            let look = workload::look(&up.above);
            self.play(&mut up, look, 4, MayFail::Nothing, false)?;
        }
        self.check_quiet(&up)?;
        self.close(&mut up)?;
        Ok(())
    }
}

/// Plays one run of a kind of layer.
///
/// # Errors
/// The first rule that was broken.
pub fn run(kind: &Kind, case: Case) -> Result<Seen, String> {
    let mut world = world(kind, case);
    world.run().map_err(|stop| in_words(case, stop))?;
    Ok(Seen { operations: world.operations, own_blocks_max: world.witness.borrow().own_blocks_max })
}

/// Plays one run in which a disk is lost for one start; true when requests were served then.
///
/// # Errors
/// The first rule that was broken.
pub fn lose(kind: &Kind, case: Case, port: usize) -> Result<bool, String> {
    let lost = world(kind, case).run_without(port);
    lost.map_err(|stop| format!("port {port} lost: {}", in_words(case, stop)))
}

/// Cuts the power, brings the layer up and down again, and loses a disk before the next start: what was mended after the
/// cut must do without the disk.
///
/// # Errors
/// The rule that was broken.
pub fn lose_after_a_cut(kind: &Kind, case: Case, port: usize) -> Result<bool, String> {
    let lost = world(kind, case).run_without_after_a_cut(port);
    lost.map_err(|stop| format!("port {port} lost behind a cut: {}", in_words(case, stop)))
}

/// Plays one run in which a disk is lost behind a power cut, and another one when the first is back and has everything
/// again; true when requests were served without each.
///
/// # Errors
/// The rule that was broken.
pub fn lose_in_turn(kind: &Kind, case: Case, first: usize, then: usize) -> Result<bool, String> {
    let lost = world(kind, case).run_without_in_turn(first, then);
    lost.map_err(|stop| format!("port {first} lost, then {then}: {}", in_words(case, stop)))
}

fn in_words(case: Case, stop: Stop) -> String {
    match stop {
        Stop::PowerCut => format!("{case:?}: the power was cut too early"),
        Stop::Mistake(mistake) => format!("{case:?}: {mistake}"),
    }
}

fn world(kind: &Kind, case: Case) -> World<'_> {
    let tells_destroyed = kind.loses_on_failure && case.fault.is_some();
    let disks = kind.disks.iter().zip(&kind.whole_blocks);
    let media = disks.map(|(geometry, whole_before)| {
        let mut medium = Medium::new(geometry.clone());
        (medium.tells_destroyed, medium.whole_before) = (tells_destroyed, *whole_before);
        medium
    });
    World {
        kind,
        case,
        starts: 0,
        media: media.collect(),
        witness: Rc::default(),
        oracle: Oracle::default(),
        operations: vec![0; kind.disks.len()],
    }
}

/// How much is played.
#[derive(Clone, Copy)]
pub struct Amount {
    /// Workloads without a failure, of which each is played at depth 1 and 4.
    workloads: u64,
    /// Workloads in which every operation fails in its turn.
    failing: u64,
    /// How often each disk is lost before a start, in each of four ways.
    pub losing: u64,
    /// Every operation fails in every way at each depth; otherwise in one way at one depth, by turns.
    in_every_way: bool,
}

/// What `make test` plays.
pub const EVERYDAY: Amount = Amount { workloads: 10, failing: 1, losing: 1, in_every_way: false };
/// What `make soak` plays.
pub const SOAK: Amount = Amount { workloads: 100, failing: 3, losing: 10, in_every_way: true };

/// Runs with fewer operations than were to be carried out before a failure, after which no
/// failure is left to come: one for each way and depth.
const RUNS_WITHOUT_FAILURE: u64 = 6;

/// Plays workloads in which nothing fails: contents, buffers, overlapping operations, and what is
/// there after a shutdown or a power cut. Returns the most blocks its buffers held.
///
/// # Errors
/// The first rule that was broken.
pub fn without_failures(
    kind: &Kind,
    amount: Amount,
    bug: Option<PlantedBug>,
) -> Result<u64, String> {
    let mut own_blocks_max = 0;
    for seed in 0..amount.workloads {
        for depth in [1, 4] {
            let case = Case { seed, depth, asks: 120, fault: None, closes: seed % 2 == 0, bug };
            own_blocks_max = own_blocks_max.max(run(kind, case)?.own_blocks_max);
        }
    }
    Ok(own_blocks_max)
}

/// Lets each operation of each port fail in its turn, or cuts the power there. Returns the number
/// of failures.
///
/// # Errors
/// The first rule that was broken.
pub fn with_failures(
    kind: &Kind,
    amount: Amount,
    when: When,
    bug: Option<PlantedBug>,
) -> Result<u64, String> {
    let hows: &[How] = match (kind.is_durable, when) {
        (true, _) => &[How::Once, How::FromThenOn, How::PowerCut],
        (false, When::Serving) => &[How::Once, How::FromThenOn],
        (false, When::Reopening) => return Ok(0),
    };
    let ways: Vec<(How, usize)> =
        [1, 4].iter().flat_map(|depth| hows.iter().map(|how| (*how, *depth))).collect();
    let mut failures = 0;
    for seed in 0..amount.failing {
        for port in 0..kind.disks.len() {
            let mut without = 0;
            let mut turn = 0;
            while without < RUNS_WITHOUT_FAILURE {
                let (how, depth) = ways[turn % ways.len()];
                let after = match amount.in_every_way {
                    true => turn / ways.len(),
                    false => turn,
                } as u64;
                turn += 1;
                let fault = Fault { port, after, how };
                let case = Case {
                    seed,
                    depth,
                    asks: 30,
                    fault: Some((when, fault)),
                    closes: after % 4 < 2,
                    bug,
                };
                let has_failed = run(kind, case)?.operations[port] > after;
                failures += u64::from(has_failed);
                without = if has_failed { 0 } else { without + 1 };
            }
        }
    }
    Ok(failures)
}
