//! Disks that are taken out: refused where an array would lose what nothing else has.

use crate::common::harness::{JumpingClock, MemoryDisk};
use crate::host::{Deed, Host, Known};
use crate::worlds::{World, plain};
use imbrex_core::array::Level;
use imbrex_core::array::raid1::Raid1;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry};
use imbrex_core::engine::Engine;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::stack::{NodeId, StackBuilder};

const BLOCKS: u64 = 60;

/// Takes out a disk and says whether that was done.
fn take_out(engine: &mut Engine, clock: &mut JumpingClock, disk: NodeId) -> bool {
    let mut known = Known::default();
    let deeds = vec![Deed::TakeOut(disk), Deed::Settle];
    Host::play(engine, clock, &mut known, deeds, 1).expect("an answer");
    let is_done = known.refused.is_empty();
    assert!(is_done || known.refused == ["an array would lose data without the disk"]);
    assert_eq!(engine.stack.is_lost(disk), is_done, "what is refused changes nothing");
    is_done
}

#[test]
fn an_array_gives_up_as_many_disks_as_it_can_do_without() {
    for (level, disks, spared) in
        [(Level::Raid1, 2, 1), (Level::Raid1, 4, 3), (Level::Raid4, 3, 1), (Level::Raid5, 5, 1)]
    {
        let World { mut engine, mut clock, nodes, .. } =
            World::raid(level, &vec![BLOCKS; disks], 0, 1);
        let told = format!("{level:?} of {disks}");
        for (at, disk) in nodes.iter().enumerate() {
            assert_eq!(take_out(&mut engine, &mut clock, *disk), at < spared, "{told}: {at}");
        }
        // One that is out already is out.
        assert!(take_out(&mut engine, &mut clock, nodes[0]), "{told}");
    }
}

/// The disks of two arrays of two copies, which are the two copies of a third.
fn nested() -> (Engine, Vec<NodeId>) {
    let mut builder = StackBuilder::new(1);
    let nodes: Vec<NodeId> = (0..4).map(|_| builder.disk(plain(BLOCKS))).collect();
    let inner: Vec<(NodeId, Geometry)> = nodes
        .chunks(2)
        .map(|disks| {
            let (raid, told) =
                Raid1::new(&[&plain(BLOCKS), &plain(BLOCKS)], 0, None, None).expect("an array");
            (builder.layer(Box::new(raid), told.clone(), disks), told)
        })
        .collect();
    let (raid, told) = Raid1::new(&[&inner[0].1, &inner[1].1], 0, None, None).expect("an array");
    let top = builder.layer(Box::new(raid), told, &[inner[0].0, inner[1].0]);
    let disk = |seed| Box::new(MemoryDisk::new(plain(BLOCKS), seed, 100)) as Box<dyn Disk>;
    let mut engine = Engine {
        stack: builder.build(top),
        disks: (0..4).map(disk).collect(),
        buffers: Buffers::new(ContentKind::Stamped),
        in_flight_max: 64,
    };
    let format = Start::Format(Uuid::default());
    engine.open(&mut JumpingClock::default(), format).expect("blank disks");
    (engine, nodes)
}

#[test]
fn an_array_may_be_lost_whose_data_an_array_above_has_elsewhere() {
    let (mut engine, nodes) = nested();
    let mut clock = JumpingClock::default();
    let taken: Vec<bool> =
        nodes.iter().map(|disk| take_out(&mut engine, &mut clock, *disk)).collect();
    assert_eq!(taken, [true, true, true, false]);
    let (mut engine, nodes) = nested();
    let order = [0, 2, 3, 1];
    let taken = order.map(|at| take_out(&mut engine, &mut clock, nodes[at]));
    assert_eq!(taken, [true, true, true, false]);
}
