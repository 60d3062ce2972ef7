//! Disks that are lost before a stack comes up and while it runs, new ones in their place, and the commands that say so.

use crate::common::harness::JumpingClock;
use crate::common::harness::MemoryDisk;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, CommandState, OnReplacement,
};
use imbrex_core::disk::{Disk, Geometry, Media};
use imbrex_core::engine::{CommandArrival, Replacement};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::notice::Notice;
use imbrex_core::operation::{Cause, Completion, Operation, Request, RequestId, Tag};
use imbrex_core::stack::{Arrival, DiskId, NodeId, StackBuilder};
use imbrex_core::units::{BlockCount, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const BLOCKS: u64 = 8;
/// No operation of a disk takes longer.
const LATENCY_MAX_NS: u64 = 1000;

type Diary = Rc<RefCell<Vec<String>>>;

/// Sends reads to every port and is content with one answer. It writes down what it is told.
struct Any {
    ports: u8,
    waiting: Vec<(RequestId, u8, Result<(), IoError>)>,
    diary: Diary,
}

impl Any {
    fn note(&self, words: String) {
        self.diary.borrow_mut().push(words);
    }
}

impl Layer for Any {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let number = self.waiting.len() as u64;
        self.note(format!("request {number}"));
        let failed = Err(IoError::Medium);
        self.waiting.push((request.id, self.ports, failed));
        for port in 0..self.ports {
            ctx.issue(Issue {
                port: Port(port),
                operation: request.operation,
                extent: request.extent,
                buffer: request.buffer,
                cause: Cause::Host,
                tag: Tag(number << 8 | u64::from(port)),
            });
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let (number, port) = (completion.tag.0 >> 8, completion.tag.0 & 0xff);
        if completion.result == Err(IoError::Lost) {
            self.note(format!("request {number} lost at {port}"));
        }
        let (id, missing, result) = &mut self.waiting[number as usize];
        *missing -= 1;
        if completion.result.is_ok() {
            *result = Ok(());
        }
        if *missing == 0 {
            ctx.finish(*id, *result);
        }
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        let is_lost = |port| ctx.is_lost(Port(port));
        let lost = (0..self.ports).filter(|port| is_lost(*port)).count();
        let is_alone = lost == usize::from(self.ports);
        self.note(format!("opens with {lost} lost"));
        ctx.opened(match is_alone {
            true => Err(OpenError::Io(IoError::Lost)),
            false => Ok(()),
        });
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        self.note(format!("lost {}", port.0));
        ctx.notice(Notice::MemberLost { member: port.0 });
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        let number = ctx.member_number(port);
        self.note(format!("port {} is member {number:?}", port.0));
        ctx.answer_command(command, Ok(()));
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        self.note(format!("command {}", command.id.0));
        ctx.tell_progress(command.id, 1, 2);
        ctx.answer_command(command.id, Ok(()));
    }
}

/// Passes everything on, and cannot do without what is below it.
struct PassOn {
    waiting: Vec<RequestId>,
    on_replacement: OnReplacement,
}

impl PassOn {
    fn new(on_replacement: OnReplacement) -> Box<PassOn> {
        Box::new(PassOn { waiting: Vec::new(), on_replacement })
    }
}

impl Layer for PassOn {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.waiting.push(request.id);
        ctx.issue(Issue {
            port: Port(0),
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
            cause: request.cause,
            tag: Tag(self.waiting.len() as u64 - 1),
        });
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        ctx.finish(self.waiting[completion.tag.0 as usize], completion.result);
    }

    fn on_replacement(&self) -> OnReplacement {
        self.on_replacement
    }
}

/// What a host does, at which nanosecond.
enum Deed {
    Read(u64),
    Command(NodeId, u64, CommandKind),
    Replace(u64, Box<dyn Disk>),
}

/// Does one thing after another and hears all answers.
struct Script {
    deeds: VecDeque<(u64, Deed)>,
    buffers: Vec<BufferSlice>,
    replies: Vec<Result<(), IoError>>,
    said: Vec<CommandReply>,
    notices: Vec<(NodeId, Notice)>,
    asked: usize,
}

impl Script {
    fn new(deeds: Vec<(u64, Deed)>) -> Script {
        Script {
            deeds: deeds.into(),
            buffers: Vec::new(),
            replies: Vec::new(),
            said: Vec::new(),
            notices: Vec::new(),
            asked: 0,
        }
    }

    fn is_command_next(&self) -> bool {
        !matches!(self.deeds.front(), Some((_, Deed::Read(_))) | None)
    }
}

impl Frontend for Script {
    fn next_arrival(&self) -> Option<Instant> {
        self.deeds.front().map(|(at, _)| Instant(*at))
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival().filter(|at| *at <= now)?;
        if self.is_command_next() {
            return None;
        }
        let Some((_, Deed::Read(block))) = self.deeds.pop_front() else {
            unreachable!("a read comes next")
        };
        let buffer = buffers.allocate(1);
        self.buffers.push(buffer);
        self.asked += 1;
        Some(Arrival {
            tag: Tag(self.buffers.len() as u64 - 1),
            operation: Operation::Read,
            extent: Extent::new(block, 1),
            buffer,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        buffers.release(self.buffers[completion.tag.0 as usize]);
        self.replies.push(completion.result);
    }

    fn finished(&self) -> bool {
        self.deeds.is_empty() && self.replies.len() == self.asked
    }

    fn poll_command(&mut self, now: Instant) -> Option<CommandArrival> {
        self.next_arrival().filter(|at| *at <= now)?;
        if !self.is_command_next() {
            return None;
        }
        Some(match self.deeds.pop_front()?.1 {
            Deed::Read(_) => unreachable!("a command comes next"),
            Deed::Command(node, id, kind) => {
                CommandArrival::Command { node, command: Command { id: CommandId(id), kind } }
            }
            Deed::Replace(id, with) => CommandArrival::Replace(Replacement {
                id: CommandId(id),
                disk: DiskId(1),
                with,
                first_member: 7,
            }),
        })
    }

    fn reply_to_command(&mut self, _now: Instant, reply: CommandReply) {
        self.said.push(reply);
    }

    fn notice(&mut self, _now: Instant, node: NodeId, notice: Notice) {
        self.notices.push((node, notice));
    }
}

fn disk(seed: u64, blocks: u64) -> MemoryDisk {
    let geometry = Geometry::plain(BlockCount(blocks), Media::Conventional);
    MemoryDisk::new(geometry, seed, LATENCY_MAX_NS)
}

/// A layer over two disks, the second behind another layer, and what the first is told.
struct World {
    engine: Engine,
    diary: Diary,
    nodes: [NodeId; 4],
}

fn world(on_replacement: OnReplacement) -> World {
    world_with(PassOn::new(on_replacement))
}

fn world_with(layer: Box<dyn Layer>) -> World {
    let geometry = Geometry::plain(BlockCount(BLOCKS), Media::Conventional);
    let mut builder = StackBuilder::new(0);
    let first = builder.disk(geometry.clone());
    let second = builder.disk(geometry.clone());
    let between = builder.layer(layer, geometry.clone(), &[second]);
    let diary = Diary::default();
    let any = Any { ports: 2, waiting: Vec::new(), diary: Rc::clone(&diary) };
    let top = builder.layer(Box::new(any), geometry, &[first, between]);
    let engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(disk(1, BLOCKS)), Box::new(disk(2, BLOCKS))],
        buffers: Buffers::new(ContentKind::Stamped),
        in_flight_max: 8,
    };
    World { engine, diary, nodes: [first, second, between, top] }
}

impl World {
    fn open(&mut self) -> Result<(), (NodeId, OpenError)> {
        let start = Start::Format(Uuid::default());
        self.engine.open(&mut JumpingClock::default(), start)
    }

    /// Plays a script; returns it and the diary of the time.
    fn play(&mut self, deeds: Vec<(u64, Deed)>) -> (Script, Vec<String>) {
        self.diary.borrow_mut().clear();
        let mut script = Script::new(deeds);
        let mut clock = JumpingClock::default();
        self.engine.run(&mut clock, &mut script, &mut |_, _| {});
        (script, self.diary.take())
    }
}

fn ended(said: &[CommandReply]) -> Vec<(u64, Result<(), CommandError>)> {
    let result = |reply: &CommandReply| match &reply.state {
        CommandState::Ended(result) => Some((reply.id.0, result.clone().map(|_| ()))),
        CommandState::Progress { .. } => None,
    };
    said.iter().filter_map(result).collect()
}

#[test]
fn a_disk_that_is_told_to_fail_is_lost_once_with_what_is_in_flight() {
    let mut world = world(OnReplacement::PassesOn);
    world.open().expect("both disks are there");
    let second = world.nodes[1];
    let fail = |id| Deed::Command(second, id, CommandKind::Fail);
    let deeds = vec![(0, Deed::Read(1)), (0, fail(1)), (9000, fail(2)), (9000, Deed::Read(2))];
    let (script, diary) = world.play(deeds);
    assert_eq!(script.replies, [Ok(()), Ok(())]);
    assert_eq!(ended(&script.said), [(1, Ok(())), (2, Ok(()))]);
    let expected =
        ["request 0", "lost 1", "request 0 lost at 1", "request 1", "request 1 lost at 1"];
    assert_eq!(diary, expected);
    let lost = world.nodes.map(|node| world.engine.stack.is_lost(node));
    assert_eq!(lost, [false, true, true, false]);
}

#[test]
fn a_lost_disk_and_what_a_layer_says_of_it_are_told_once_and_at_a_start_too() {
    let mut world = world(OnReplacement::PassesOn);
    world.open().expect("both disks are there");
    let [first, second, _, top] = world.nodes;
    let fail = |node, id| Deed::Command(node, id, CommandKind::Fail);
    let deeds = vec![(0, fail(second, 1)), (0, fail(second, 2)), (9000, fail(first, 3))];
    let (script, _) = world.play(deeds);
    let expected = [
        (second, Notice::DiskLost),
        (top, Notice::MemberLost { member: 1 }),
        (first, Notice::DiskLost),
        (top, Notice::MemberLost { member: 0 }),
    ];
    assert_eq!(script.notices, expected);

    let mut degraded = world_with(PassOn::new(OnReplacement::PassesOn));
    degraded.engine.stack.lose_disk(DiskId(1));
    degraded.open().expect("one disk is enough");
    let (script, _) = degraded.play(vec![(0, Deed::Read(1))]);
    assert_eq!(script.notices, [(degraded.nodes[1], Notice::DiskLost)]);
}

#[test]
fn each_layer_decides_what_becomes_of_a_disk_that_is_lost_from_the_start() {
    let mut degraded = world(OnReplacement::PassesOn);
    degraded.engine.stack.lose_disk(DiskId(1));
    degraded.open().expect("one disk is enough");
    assert_eq!(degraded.diary.take(), ["opens with 1 lost"]);
    let (script, _) = degraded.play(vec![(0, Deed::Read(1))]);
    assert_eq!(script.replies, [Ok(())]);
    degraded
        .engine
        .close(&mut JumpingClock::default())
        .expect("what is lost has nothing to write down");

    let mut gone = world(OnReplacement::PassesOn);
    gone.engine.stack.lose_disk(DiskId(0));
    gone.engine.stack.lose_disk(DiskId(1));
    let refusal = (gone.nodes[3], OpenError::Io(IoError::Lost));
    assert_eq!(gone.open(), Err(refusal), "a lost top does not come up");
}

/// Cannot come up over a lost node, and must not be asked for anything then. Before that it has wished to be
/// woken.
struct Absent;

impl Layer for Absent {
    fn submit(&mut self, _request: Request, _ctx: &mut Context<'_>) {
        panic!("a request to a layer that did not come up");
    }

    fn complete(&mut self, _completion: Completion, _ctx: &mut Context<'_>) {}

    fn wake(&mut self, _ctx: &mut Context<'_>) {
        panic!("a layer that did not come up was woken");
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        ctx.wake_at(Instant(50));
        ctx.opened(ctx.nothing_lost());
    }

    fn close(&mut self, _ctx: &mut Context<'_>) {
        panic!("a layer that did not come up goes down");
    }

    fn lost(&mut self, _port: Port, _ctx: &mut Context<'_>) {
        panic!("a layer that did not come up hears of what it lost");
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, _port: Port, _command: CommandId, _ctx: &mut Context<'_>) {
        panic!("a layer that did not come up takes a new disk");
    }

    fn command(&mut self, _command: Command, _ctx: &mut Context<'_>) {
        panic!("a command to a layer that did not come up");
    }

    fn status(&self, _facts: &mut Vec<(&'static str, u64)>) {
        panic!("a layer that did not come up says how it is");
    }
}

#[test]
fn a_layer_that_did_not_come_up_is_never_asked() {
    let mut world = world_with(Box::new(Absent));
    world.engine.stack.lose_disk(DiskId(1));
    world.open().expect("one disk is enough");
    let between = world.nodes[2];
    let command = |id, kind| (100, Deed::Command(between, id, kind));
    let deeds = vec![
        (0, Deed::Read(1)),
        command(1, CommandKind::Scrub(None)),
        command(2, CommandKind::Status),
        (100, Deed::Replace(3, Box::new(disk(3, BLOCKS)))),
    ];
    let (script, diary) = world.play(deeds);
    assert_eq!(script.replies, [Ok(())], "the other disk has it");
    assert_eq!(diary, ["request 0", "request 0 lost at 1"]);
    let ended = ended(&script.said);
    let refused = |id| matches!(ended.iter().find(|end| end.0 == id), Some((_, Err(_))));
    assert!(refused(1) && !refused(2) && refused(3), "{ended:?}");
    world
        .engine
        .close(&mut JumpingClock::default())
        .expect("what did not come up has nothing to write down");
}

#[test]
fn a_lost_disk_alone_does_not_come_up() {
    let geometry = Geometry::plain(BlockCount(BLOCKS), Media::Conventional);
    let mut builder = StackBuilder::new(0);
    let only = builder.disk(geometry);
    let mut engine = Engine {
        stack: builder.build(only),
        disks: vec![Box::new(disk(1, BLOCKS))],
        buffers: Buffers::new(ContentKind::Stamped),
        in_flight_max: 8,
    };
    engine.stack.lose_disk(DiskId(0));
    let opened = engine.open(&mut JumpingClock::default(), Start::Recover(None));
    assert_eq!(opened, Err((only, OpenError::Io(IoError::Lost))));
}

#[test]
fn a_new_disk_in_the_place_of_a_lost_one_has_a_new_number() {
    let mut world = world(OnReplacement::PassesOn);
    world.open().expect("both disks are there");
    let second = world.nodes[1];
    let new = |blocks| Box::new(disk(3, blocks)) as Box<dyn Disk>;
    let deeds = vec![
        (0, Deed::Replace(1, new(BLOCKS))),
        (0, Deed::Command(second, 2, CommandKind::Fail)),
        (0, Deed::Replace(3, new(BLOCKS - 1))),
        (0, Deed::Replace(4, new(BLOCKS))),
        (0, Deed::Read(1)),
    ];
    let (script, diary) = world.play(deeds);
    let ended = ended(&script.said);
    let is_refused = |id| {
        matches!(ended.iter().find(|end| end.0 == id), Some((_, Err(CommandError::NotNow(_)))))
    };
    assert!(is_refused(1), "it was not lost: {ended:?}");
    assert!(is_refused(3), "it was too small: {ended:?}");
    assert!(ended.contains(&(4, Ok(()))), "{ended:?}");
    assert_eq!(diary, ["lost 1", "port 1 is member Some(7)", "request 0"]);
    assert_eq!(script.replies, [Ok(())]);
    assert!(world.nodes.iter().all(|node| !world.engine.stack.is_lost(*node)));
}

#[test]
fn a_layer_that_keeps_something_of_its_own_refuses_a_new_disk() {
    let mut world = world(OnReplacement::Refuses);
    world.open().expect("both disks are there");
    let second = world.nodes[1];
    let deeds = vec![
        (0, Deed::Command(second, 1, CommandKind::Fail)),
        (0, Deed::Replace(2, Box::new(disk(3, BLOCKS)))),
    ];
    let (script, _) = world.play(deeds);
    assert!(matches!(ended(&script.said)[1], (2, Err(CommandError::NotNow(_)))));
    assert!(world.engine.stack.is_lost(second));
}

#[test]
fn a_command_comes_after_the_requests_that_its_node_has() {
    let mut world = world(OnReplacement::PassesOn);
    world.open().expect("both disks are there");
    let [first, _, _, top] = world.nodes;
    let deeds = vec![
        (0, Deed::Read(1)),
        (0, Deed::Command(top, 1, CommandKind::Scrub(None))),
        (0, Deed::Read(2)),
        (0, Deed::Command(first, 2, CommandKind::Scrub(None))),
        (0, Deed::Command(first, 3, CommandKind::Status)),
    ];
    let (script, diary) = world.play(deeds);
    assert_eq!(diary, ["request 0", "command 1", "request 1"]);
    let progress = CommandState::Progress { done: 1, total: 2 };
    assert_eq!(script.said[0].state, progress);
    let expected = [(1, Ok(())), (2, Err(CommandError::NotTaken)), (3, Ok(()))];
    assert_eq!(ended(&script.said), expected);
}
