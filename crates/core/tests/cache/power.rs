//! A rig that cuts the power of a cache in mid-run.

use crate::common::oracle::{Ask, Host, Look, MayFail, Oracle, version_of};
use crate::power_disk::{ByteDisk, Platter, Power, PowerCut, PoweredClock, Survivors};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::cache::{Cache, CacheSettings};
use imbrex_core::disk::{Disk, Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, StackBuilder};
use imbrex_core::units::{BlockCount, Instant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// Two members and what may happen to them.
pub struct Rig {
    pub settings: CacheSettings,
    pub blocks: u64,
    pub flash: Rc<RefCell<Platter>>,
    pub backing: Rc<RefCell<Platter>>,
    pub power: Power,
    pub oracle: Oracle,
    pub seed: u64,
    pub latency_max_ns: u64,
    pub planted: Option<PlantedBug>,
    /// The next stack is only read.
    pub is_read_only: bool,
    /// The node of the cache that was opened last.
    pub node: Option<NodeId>,
}

/// How a run has ended.
pub enum Ended {
    /// With the engine as it was left.
    Up(Box<Engine>),
    PowerCut,
    Refused(OpenError),
}

impl Rig {
    pub fn new(settings: CacheSettings, blocks: u64, seed: u64) -> Rig {
        Rig {
            settings,
            blocks,
            flash: Rc::default(),
            backing: Rc::default(),
            power: Rc::new(Cell::new(u64::MAX)),
            oracle: Oracle::default(),
            seed,
            latency_max_ns: 1000,
            planted: None,
            is_read_only: false,
            node: None,
        }
    }

    fn engine(&mut self) -> Engine {
        let disk = |platter: &Rc<RefCell<Platter>>, blocks, media, seed| {
            Box::new(ByteDisk {
                geometry: Geometry::plain(BlockCount(blocks), media),
                platter: Rc::clone(platter),
                rng: Rng::new(seed, 3),
                queue: Vec::new(),
                latency_max_ns: self.latency_max_ns,
                power: Rc::clone(&self.power),
            }) as Box<dyn Disk>
        };
        let flash_blocks = self.settings.flash_blocks().0;
        let flash = disk(&self.flash, flash_blocks, Media::SolidState, self.seed);
        let backing = disk(&self.backing, self.blocks, Media::Conventional, !self.seed);
        let mut builder = StackBuilder::new(self.seed);
        let below =
            [builder.disk(flash.geometry().clone()), builder.disk(backing.geometry().clone())];
        let (cache, geometry) =
            Cache::new(self.settings.clone(), flash.geometry(), backing.geometry())
                .expect("settings that fit");
        let node = builder.layer(Box::new(cache), geometry, &below);
        self.node = Some(node);
        let mut stack = builder.build(node);
        if let Some(bug) = self.planted {
            stack.plant(bug);
        }
        if self.is_read_only {
            stack.set_read_only();
        }
        Engine {
            stack,
            disks: vec![flash, backing],
            buffers: Buffers::new(ContentKind::Bytes),
            in_flight_max: 64,
        }
    }

    fn clock(&self) -> PoweredClock {
        PoweredClock { now: Instant::ZERO, power: Rc::clone(&self.power) }
    }

    /// Opens the cache, until it is up or the power fails.
    pub fn open(&mut self, start: Start) -> Ended {
        let mut clock = self.clock();
        let mut engine = self.engine();
        let opened = catch_unwind(AssertUnwindSafe(|| engine.open(&mut clock, start)));
        if self.power.get() == 0 {
            return Ended::PowerCut;
        }
        match opened {
            Ok(Ok(())) => Ended::Up(Box::new(engine)),
            Ok(Err((_, error))) => Ended::Refused(error),
            Err(panic) if panic.is::<PowerCut>() => Ended::PowerCut,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Plays what is asked until the end or until the power fails. True at the end.
    ///
    /// # Errors
    /// The first mistake.
    pub fn play(
        &mut self,
        engine: &mut Engine,
        asks: Vec<Ask>,
        depth: usize,
    ) -> Result<bool, String> {
        let mut clock = self.clock();
        let mut host = Host::new(&mut self.oracle, asks, depth);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            engine.run(&mut clock, &mut host, &mut |_, _| {});
        }));
        if let Some(mistake) = host.mistake {
            return Err(mistake);
        }
        match ran {
            Ok(()) => Ok(self.power.get() > 0),
            Err(panic) if panic.is::<PowerCut>() => Ok(false),
            Err(panic) => resume_unwind(panic),
        }
    }

    pub fn close(&mut self, engine: &mut Engine) -> bool {
        let mut clock = self.clock();
        let closed = catch_unwind(AssertUnwindSafe(|| engine.close(&mut clock)));
        match closed {
            Ok(result) => {
                result.expect("a cache that closes");
                self.power.get() > 0
            }
            Err(panic) if panic.is::<PowerCut>() => false,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Plays what is asked on a cache of which operations may fail, and returns those that did.
    ///
    /// # Errors
    /// The first wrong answer.
    pub fn play_with_faults(
        &mut self,
        engine: &mut Engine,
        asks: Vec<Ask>,
        depth: usize,
        may_fail: MayFail,
    ) -> Result<Vec<Ask>, String> {
        let mut clock = self.clock();
        let mut host = Host::new(&mut self.oracle, asks, depth);
        host.may_fail = may_fail;
        engine.run(&mut clock, &mut host, &mut |_, _| {});
        match host.mistake {
            Some(mistake) => Err(mistake),
            None => Ok(host.failed),
        }
    }

    /// The power is gone: of what no flush covered, some survives. Then it is back.
    pub fn cut(&mut self, survivors: Survivors, rng: &mut Rng) {
        self.flash.borrow_mut().cut(survivors, 0, rng);
        let served = self.blocks - 2;
        self.backing.borrow_mut().cut(survivors, served, rng);
        self.oracle.crash();
        self.power.set(u64::MAX);
    }

    /// Reads every block, checks it, and takes what was found as what is there.
    ///
    /// # Errors
    /// The first mistake.
    pub fn look_at_everything(&mut self, engine: &mut Engine) -> Result<(), String> {
        self.look_beside(engine, &BTreeSet::new())
    }

    /// The same, but some blocks may be unreadable.
    ///
    /// # Errors
    /// The first mistake.
    pub fn look_beside(
        &mut self,
        engine: &mut Engine,
        unreadable: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let blocks = engine.stack.geometry().blocks.0;
        let mut clock = self.clock();
        for lba in 0..blocks {
            let mut look = Look::new(lba);
            engine.run(&mut clock, &mut look, &mut |_, _| {});
            let Some(data) = look.seen else {
                match unreadable.contains(&lba) {
                    true => continue,
                    false => return Err(format!("block {lba} cannot be read")),
                }
            };
            let version = version_of(&data, lba)?;
            let history = self.oracle.blocks.entry(lba).or_default();
            let allowed = &history.versions[history.gone..];
            if !allowed.contains(&version) {
                return Err(format!(
                    "block {lba} holds v{version} after a crash, allowed is {allowed:?}"
                ));
            }
            self.oracle.settle(lba, version);
        }
        Ok(())
    }
}
