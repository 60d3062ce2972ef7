//! What is told of nodes above a lost disk is what becomes of them.

use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::command::{Command, CommandId, CommandKind, CommandReply, CommandState, Without};
use imbrex_core::engine::{CommandArrival, Engine, Frontend};
use imbrex_core::operation::Completion;
use imbrex_core::stack::{Arrival, NodeId};
use imbrex_core::units::Instant;
use imbrex_sim::simulation::{VirtualClock, format};
use imbrex_stack::{BuildOptions, Built, Footprint, Plan, Setting, StackConfig, ready_made};

const DEVICE_BYTES: u64 = 256 << 20;

/// Has a disk fail.
struct Fails {
    command: Option<CommandArrival>,
    has_ended: bool,
}

impl Frontend for Fails {
    fn next_arrival(&self) -> Option<Instant> {
        None
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        None
    }

    fn reply(&mut self, _now: Instant, _completion: Completion, _buffers: &mut Buffers) {}

    fn finished(&self) -> bool {
        self.has_ended
    }

    fn next_command(&self) -> Option<Instant> {
        self.command.is_some().then_some(Instant::ZERO)
    }

    fn poll_command(&mut self, _now: Instant) -> Option<CommandArrival> {
        self.command.take()
    }

    fn reply_to_command(&mut self, _now: Instant, reply: CommandReply) {
        assert!(matches!(reply.state, CommandState::Ended(Ok(_))));
        self.has_ended = true;
    }
}

/// A stack of a device, and the names of its nodes.
fn built(stack: &str) -> (Engine, Vec<(String, NodeId)>) {
    let settings: [Setting; 0] = [];
    let config = StackConfig::load(stack, &settings).expect("a stack");
    let of_size = |size_bytes| BuildOptions { size_bytes, ..BuildOptions::simulate(1) };
    let plan = Plan::new(&config, &of_size(Some(DEVICE_BYTES)));
    // Some of those that join nodes are as large as these.
    let plan = plan.or_else(|_| Plan::new(&config, &of_size(None)));
    let plan = plan.expect("a plan");
    let footprint = Some(Footprint::whole_device(plan.blocks().bytes()));
    let Built { stack, disks, describe } =
        plan.build(footprint, None, ContentKind::Counted).expect("a stack that fits");
    let mut engine =
        Engine { stack, disks, buffers: Buffers::new(ContentKind::Counted), in_flight_max: 1 };
    format(&mut engine);
    let nodes = describe.nodes.iter();
    let nodes = nodes.map(|node| (node.name.clone(), node.id)).collect();
    (engine, nodes)
}

#[test]
fn nodes_are_lost_with_a_disk_as_they_say_before() {
    let (mut lost, mut goes_on) = (0, 0);
    for stack in ready_made() {
        let (engine, nodes) = built(stack);
        let disks = nodes.iter().filter(|(_, node)| engine.stack.disk_of(*node).is_some());
        for (name, disk) in disks {
            let (mut engine, nodes) = built(stack);
            let told = engine.stack.without(*disk);
            let mut fails = Fails {
                command: Some(CommandArrival::Command {
                    node: *disk,
                    command: Command { id: CommandId(1), kind: CommandKind::Fail },
                }),
                has_ended: false,
            };
            engine.run(&mut VirtualClock::default(), &mut fails, &mut |_, _| {});
            for (above, node) in &nodes {
                let is_told = *node == *disk || told.contains(&(*node, Without::Lost));
                let is_lost = engine.stack.is_lost(*node);
                assert_eq!(is_lost, is_told, "{stack}: {above} without {name}");
            }
            lost += told.iter().filter(|(_, it)| *it == Without::Lost).count();
            goes_on += told.len();
        }
    }
    goes_on -= lost;
    assert!(lost > 20 && goes_on > 5, "{lost} lost, {goes_on} go on");
}
