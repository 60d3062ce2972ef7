//! A stack with an array, from power on to power off.

use super::array::{ArrayOfStack, Observed};
use super::disk::{StringedDisk, Strings};
use super::door::{Description, Door};
use super::operator::{Mark, Operator};
use super::site::{Site, Wrong};
use super::story::Event;
use crate::crashtest::host::{Flusher, Host, Reader, TrialClock};
use crate::crashtest::oracle::{Leniency, Oracle, ReadBack, Violation};
use crate::crashtest::recording_disk::{RecordingDisk, World};
use crate::crashtest::trial::NotUp;
use crate::crashtest::workload::Step;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::Counter;
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::label::{LabelledOpenError, Labels, ListedDisk};
use imbrex_core::lifecycle::Start;
use imbrex_core::stack::DiskId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How a stack comes up.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// Formatted or recovered, as a set.
    pub start: Start,
    /// The disks that are not there.
    pub missing: &'a [usize],
    /// Decides the random numbers of the labels.
    pub random: u64,
    /// What is wrong on purpose.
    pub wrong: Wrong,
}

/// A device that is up.
pub struct Life<'a> {
    /// Its disks.
    pub world: Rc<RefCell<World>>,
    /// What can be done to each disk.
    pub strings: Vec<Strings>,
    site: &'a Site,
    engine: Engine,
    clock: TrialClock,
}

/// What came of a workload with deeds of a person.
pub struct Played {
    /// The door, with all that it has described.
    pub door: Door,
    /// What has happened.
    pub marks: Vec<(u64, Mark)>,
    /// What the host has found.
    pub violation: Option<Violation>,
    /// A new disk that was not taken, though nothing was wrong with it.
    pub refused: Option<String>,
}

impl<'a> Life<'a> {
    /// Builds the stack over disks of a world and lets it come up.
    ///
    /// # Errors
    /// Which disks are to blame.
    pub fn start(
        site: &'a Site,
        world: &Rc<RefCell<World>>,
        description: &Description,
        opening: Opening<'_>,
    ) -> Result<Life<'a>, NotUp> {
        let mut stack = site.stack.built_with(&description.numbers).expect("a stack as planned");
        if let Some(bug) = opening.wrong.plant {
            stack.plant(bug);
        }
        for lost in opening.missing {
            stack.lose_disk(DiskId(*lost as u16));
        }
        let strings = vec![(); site.disks()].into_iter().map(|()| Strings::default());
        let strings: Vec<Strings> = strings.collect();
        let disk = |(at, member): (usize, &crate::crashtest::subject::Member)| {
            let (world, medium) = (Rc::clone(world), description.media[at]);
            let inner = RecordingDisk::new(member.geometry.clone(), world, medium, site.seed);
            Box::new(StringedDisk::new(inner, strings[at].clone())) as Box<dyn Disk>
        };
        let disks = site.stack.members().iter().enumerate().map(disk).collect();
        let mut life = Life {
            world: Rc::clone(world),
            site,
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 1 + (site.seed % 8) as u32,
            },
            clock: TrialClock::default(),
            strings,
        };
        match life.open(description, opening) {
            Ok(()) => Ok(life),
            Err(error) => Err(NotUp::new(error, &life.engine.stack)),
        }
    }

    fn open(
        &mut self,
        description: &Description,
        opening: Opening<'_>,
    ) -> Result<(), LabelledOpenError> {
        let Life { engine, clock, .. } = self;
        if !self.site.is_labelled {
            let opened = engine.open(clock, opening.start);
            return opened.map_err(|(node, error)| LabelledOpenError::Layer(node, error));
        }
        let (set, is_labelled) = match opening.start {
            Start::Format(set) => (set, false),
            Start::Recover(set) => (set.unwrap_or_default(), true),
        };
        let listed = description.media.iter().map(|medium| {
            let number = 1 + *medium as u16;
            Some(ListedDisk { number, is_labelled })
        });
        let labels = Labels::new(set, &listed.collect::<Vec<_>>());
        engine.open_labelled(clock, opening.start, labels, opening.random)
    }

    /// Plays a workload beside a person's deeds to its end.
    pub fn play(
        &mut self,
        steps: &[Step],
        events: Vec<Event>,
        door: Door,
        oracle: &mut Oracle,
        leniency: Leniency,
    ) -> Played {
        let world = Rc::clone(&self.world);
        let host = Host::new(steps, world, oracle, self.site.seed).lenient(leniency);
        let observed = Rc::new(Cell::new(self.observed()));
        let shared = (Rc::clone(&self.world), Rc::clone(&observed));
        let strings = self.strings.clone();
        let mut operator =
            Operator::new(host, self.site, &self.engine.stack, shared, (door, strings), events);
        let seen: RefCell<Vec<(u64, Mark)>> = RefCell::default();
        let (site, world) = (self.site, Rc::clone(&self.world));
        let mut observe = |_, stack: &imbrex_core::stack::Stack| {
            let now = site.observe(stack);
            if observed.replace(now) != now {
                seen.borrow_mut().push((world.borrow().log.events, Mark::Observed(now)));
            }
        };
        self.engine.run(&mut self.clock, &mut operator, &mut observe);
        let mut marks = std::mem::take(&mut operator.marks);
        marks.extend(seen.into_inner());
        // What the counts say at an index is what all that happened up to there has led to.
        marks.sort_by_key(|(index, mark)| (*index, matches!(mark, Mark::Observed(_))));
        let door = operator.door.clone();
        self.strings.clone_from(&operator.strings);
        Played {
            door,
            marks,
            refused: operator.refused.take(),
            violation: operator.into_host().violation.take(),
        }
    }

    /// Plays a workload without any deed.
    ///
    /// # Errors
    /// At the first read that was wrong, and the first request that failed.
    pub fn play_alone(
        &mut self,
        steps: &[Step],
        oracle: &mut Oracle,
        leniency: Leniency,
    ) -> Result<(), Violation> {
        let world = Rc::clone(&self.world);
        let mut host = Host::new(steps, world, oracle, self.site.seed).lenient(leniency);
        self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        host.violation.take().map_or(Ok(()), Err)
    }

    /// Reads the whole device.
    pub fn read_all(&mut self) -> Vec<ReadBack> {
        let mut host = Reader::new(self.site.stack.shape().blocks, self.site.seed);
        self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        if host.retry_by_block() {
            self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        }
        host.reads
    }

    /// How the arrays are.
    pub fn observed(&self) -> Observed {
        self.site.observe(&self.engine.stack)
    }

    /// Members that lack something, as the status of each array says.
    pub fn lacking(&self) -> u64 {
        let lacking = |array: &ArrayOfStack| {
            let facts = self.engine.stack.status_of(array.node).facts;
            let found = facts.iter().find(|(name, _)| *name == "members_lacking");
            found.map_or(0, |(_, value)| *value)
        };
        self.site.arrays().map(lacking).sum()
    }

    /// What the array has counted.
    pub fn counted(&self, counter: Counter) -> u64 {
        self.engine.stack.counts(self.site.array.node).counter(counter)
    }

    /// True when the top of the stack is lost.
    pub fn is_lost(&self) -> bool {
        self.engine.stack.is_lost(self.engine.stack.top())
    }

    /// Goes down in good order, behind a last flush, as a server does.
    ///
    /// # Errors
    /// What went wrong.
    pub fn close(&mut self) -> Result<(), IoError> {
        let Life { engine, clock, site, .. } = self;
        // An array flushes its members when it goes down. One that is lost below another layer is not asked
        // to, and that layer keeps nothing: the flush alone tells that something was not made durable.
        if engine.stack.top() != site.array.node {
            let mut last = Flusher::default();
            engine.run(clock, &mut last, &mut |_, _| {});
            last.result?;
        }
        engine.close_labelled(clock).map(|_| ()).map_err(|(_, error)| error)
    }
}
