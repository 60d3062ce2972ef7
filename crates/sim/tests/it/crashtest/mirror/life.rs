//! A mirror over slices of two disks, from power on to power off.

use super::disk::{OperationsLeft, VanishingDisk};
use super::door::{Description, Door};
use super::operator::{Event, Mark, Operator, Site};
use super::toy::{self, Flaw, Mirror};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::Port;
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::planted::PlantedBug;
use imbrex_core::slice::{FlushFailure, Slice};
use imbrex_core::stack::{DiskId, NodeId, StackBuilder};
use imbrex_core::units::BlockCount;
use imbrex_sim::crashtest::host::{Host, Reader, TrialClock};
use imbrex_sim::crashtest::medium::Medium;
use imbrex_sim::crashtest::oracle::{Leniency, Oracle, ReadBack, Violation};
use imbrex_sim::crashtest::recording_disk::{RecordingDisk, World};
use imbrex_sim::crashtest::workload::Step;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Blocks of the mirror.
pub const BLOCKS: u64 = 64;
/// Where its slice of each disk begins; another slice lies before it.
pub const OFFSET: u64 = 8;

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wrong {
    pub plant: Option<PlantedBug>,
    pub flaw: Flaw,
    /// The door gives a new member the number of the one that it replaces.
    pub reuses_numbers: bool,
}

/// The name of the set that a seed formats.
pub fn set_of(seed: u64) -> Uuid {
    let mut bytes = *b"mirrors.........";
    bytes[8..].copy_from_slice(&seed.to_be_bytes());
    Uuid(bytes)
}

pub fn disk_geometry() -> Geometry {
    let blocks = OFFSET + toy::area_blocks() + BLOCKS;
    Geometry::plain(BlockCount(blocks), Media::Conventional)
}

/// A disk on which nothing was ever written. It never tears a block: the mirror has no checksums.
pub fn blank() -> Medium {
    Medium::new(&disk_geometry()).trusted_if(true)
}

/// Where a block of the mirror lies on a disk.
pub fn block_on_disk(block: u64) -> u64 {
    OFFSET + toy::area_blocks() + block
}

/// A device that is up.
pub struct Life {
    pub world: Rc<RefCell<World>>,
    engine: Engine,
    clock: TrialClock,
    top: NodeId,
    disks: [NodeId; 2],
    left: [OperationsLeft; 2],
    seed: u64,
}

/// What came of a workload with deeds of a person.
pub struct Played {
    pub door: Door,
    pub marks: Vec<(u64, Mark)>,
    pub violation: Option<Violation>,
    pub refused: Option<String>,
}

/// What a mirror says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    pub ports_in: u64,
    pub rebuilt_blocks: u64,
}

impl Life {
    /// Builds the stack over members of a world and lets it come up. A port without a medium has
    /// a lost disk.
    ///
    /// # Errors
    /// What the layer that could not come up has said.
    pub fn start(
        world: &Rc<RefCell<World>>,
        description: Description,
        missing: Option<usize>,
        start: Start,
        seed: u64,
        wrong: Wrong,
    ) -> Result<Life, OpenError> {
        let mut builder = StackBuilder::new(seed);
        let disks = [0, 1].map(|_| builder.disk(disk_geometry()));
        let extent = Extent::new(OFFSET, toy::area_blocks() + BLOCKS);
        let slices = disks.map(|disk| {
            let failure = FlushFailure::default();
            let slice = Slice::new(extent, builder.geometry(disk), &failure);
            let (slice, told) = slice.expect("a slice inside of its disk");
            builder.part(Box::new(slice), told, disk)
        });
        let mirror = Mirror::new(BLOCKS, true).flawed(wrong.flaw);
        let told = Geometry::plain(BlockCount(BLOCKS), Media::Conventional);
        let top = builder.layer(Box::new(mirror), told, &slices);
        for (port, number) in (0..).map(Port).zip(description.numbers) {
            builder.number_member(top, port, number);
        }
        let mut stack = builder.build(top);
        if let Some(bug) = wrong.plant {
            stack.plant(bug);
        }
        if let Some(port) = missing {
            stack.lose_disk(DiskId(port as u16));
        }
        let left = [0, 1].map(|_| Rc::new(Cell::new(u64::MAX)));
        let disk = |port: usize| {
            let medium = description.media[port];
            let world = Rc::clone(world);
            let inner = RecordingDisk::new(disk_geometry(), world, medium, seed);
            Box::new(VanishingDisk::new(inner, Rc::clone(&left[port]))) as Box<dyn Disk>
        };
        let mut life = Life {
            world: Rc::clone(world),
            engine: Engine {
                stack,
                disks: vec![disk(0), disk(1)],
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 1 + (seed % 8) as u32,
            },
            clock: TrialClock::default(),
            top,
            disks,
            left,
            seed,
        };
        match life.engine.open(&mut life.clock, start) {
            Ok(()) => Ok(life),
            Err((_, error)) => Err(error),
        }
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
        let host = Host::new(steps, world, oracle, self.seed).lenient(leniency);
        let site = Site {
            world: Rc::clone(&self.world),
            top: self.top,
            disks: self.disks,
            geometry: disk_geometry(),
            seed: self.seed,
        };
        let left = self.left.each_ref().map(Rc::clone);
        let mut operator = Operator::new(host, site, door, left, events);
        self.engine.run(&mut self.clock, &mut operator, &mut |_, _| {});
        let door = operator.door.clone();
        let marks = std::mem::take(&mut operator.marks);
        Played {
            door,
            marks,
            refused: operator.refused.take(),
            violation: operator.into_host().violation.take(),
        }
    }

    pub fn read_all(&mut self) -> Vec<ReadBack> {
        let mut host = Reader::new(BLOCKS, self.seed);
        self.engine.run(&mut self.clock, &mut host, &mut |_, _| {});
        host.reads
    }

    pub fn status(&self) -> Status {
        let facts = self.engine.stack.status_of(self.top).facts;
        let fact = |name| {
            let found = facts.iter().find(|(other, _)| *other == name);
            found.expect("a fact of the mirror").1
        };
        Status { ports_in: fact("ports_in"), rebuilt_blocks: fact("rebuilt_blocks") }
    }

    pub fn is_lost(&self) -> bool {
        self.engine.stack.is_lost(self.top)
    }

    pub fn close(&mut self) -> Result<(), IoError> {
        let result = self.engine.close(&mut self.clock);
        result.map_err(|(_, error)| error)
    }
}
