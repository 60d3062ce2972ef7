//! Commands to nodes over the control socket.

use crate::client::*;
use crate::support::{Control, ControlClient, Served, TestDisk, TestServer, eventually};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::command::{Command, CommandError, CommandId, CommandKind, OnReplacement, Without};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Request, Tag};
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::{Duration, Instant};
use imbrex_serve::control::{COMMANDS_MAX, Commands, NewDisk, Replacer};
use imbrex_serve::server::Server;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

const BLOCKS: u64 = 64;

/// An array of one disk that goes on without it: reads and writes of a lost disk fail. A new one with
/// number 13 is refused, one with number 15 taken after a while, any other at once. A rebuild says that it goes on until a request for block 0 comes.
#[derive(Default)]
struct Array {
    rebuilds: Vec<CommandId>,
    requests: Vec<Request>,
    lost: u64,
    /// A replacement that is not yet written down, and until when.
    writing: Option<(CommandId, Instant)>,
}

const DISK: Port = Port(0);

impl Layer for Array {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.extent.start.0 == 0 && !request.extent.is_empty() {
            for id in std::mem::take(&mut self.rebuilds) {
                ctx.answer_command(id, Ok(()));
            }
        }
        ctx.issue(Issue {
            port: DISK,
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
            cause: Cause::Host,
            tag: Tag(self.requests.len() as u64),
        });
        self.requests.push(request);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let request = self.requests[completion.tag.0 as usize];
        ctx.finish(request.id, completion.result);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if let Some((id, until)) = self.writing {
            if ctx.now() < until {
                return ctx.wake_at(until);
            }
            self.writing = None;
            ctx.answer_command(id, Ok(()));
        }
        for id in &self.rebuilds {
            ctx.tell_progress(*id, 3, BLOCKS);
        }
        if !self.rebuilds.is_empty() && !ctx.host_is_done() {
            ctx.wake_at(ctx.now() + Duration::from_ms(1));
        }
    }

    fn lost(&mut self, _port: Port, _ctx: &mut Context<'_>) {
        self.lost += 1;
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        let number = ctx.member_number(port);
        let result = match number {
            Some(13) => Err(CommandError::Failed("13 is no number".into())),
            Some(15) => {
                let until = ctx.now() + Duration::from_ms(300);
                self.writing = Some((command, until));
                return ctx.wake_at(until);
            }
            _ => Ok(()),
        };
        ctx.answer_command(command, result);
    }

    fn takes(&self, kind: CommandKind) -> bool {
        matches!(kind, CommandKind::Rebuild(_))
    }

    fn without(&self, _is_lost: &dyn Fn(Port) -> bool) -> Without {
        Without::GoesOn("reads and writes of it fail")
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        match command.kind {
            CommandKind::Rebuild(_) => {
                self.rebuilds.push(command.id);
                ctx.wake_at(ctx.now());
            }
            _ => ctx.answer_command(command.id, Err(CommandError::NotTaken)),
        }
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        facts.push(("lost", self.lost));
        facts.push(("rebuilds", self.rebuilds.len() as u64));
    }
}

/// What became of replacements, in words.
type Told = Arc<Mutex<Vec<String>>>;

fn replacer(told: &Told) -> Replacer {
    let say = |what: &'static str| {
        let told = Arc::clone(told);
        move |words: String| told.lock().expect("told").push(format!("{what}{words}"))
    };
    let (begun, finished, aborted) = (say("begin "), say("finish"), say("abort"));
    let mut number = 11;
    Replacer {
        begin: Box::new(move |_, path| {
            begun(format!("{path:?}"));
            number += 1;
            let disk: Box<dyn Disk> = Box::new(TestDisk::new(BLOCKS, 0, Control::default()));
            Ok(NewDisk { disk, first_member: number })
        }),
        finish: Box::new(move |_| {
            finished(String::new());
            Ok(None)
        }),
        abort: Box::new(move |_| aborted(String::new())),
    }
}

/// An array over one disk, with names.
fn array(server: &Server, told: &Told) -> Served {
    let disk: Box<dyn Disk> = Box::new(TestDisk::new(BLOCKS, 0, Control::default()));
    let mut builder = StackBuilder::new(0);
    let geometry = disk.geometry().clone();
    let below = builder.disk(geometry.clone());
    let top = builder.layer(Box::new(Array::default()), geometry, &[below]);
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![disk],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    let start = Start::Format(Uuid([0; 16]));
    server.open(&mut engine, start).expect("it opens");
    Served {
        names: vec![("member", below), ("array", top)],
        commands: Commands { replacer: Some(replacer(told)), ..Commands::default() },
        ..Served::over(engine)
    }
}

fn served() -> (TestServer, Told) {
    let told = Told::default();
    let of_server = Arc::clone(&told);
    (TestServer::of(move |server| array(server, &of_server)), told)
}

fn ask(id: u64, node: &str, command: &str) -> Value {
    json!({"id": id, "node": node, "command": command})
}

#[test]
fn the_socket_is_its_owners_alone_and_goes_away() {
    let (server, _) = served();
    let path = server.control();
    let mode = std::fs::metadata(&path).expect("a socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    server.stop.stop();
    server.join().expect("a clean end");
    assert!(!path.exists());
}

#[test]
fn a_disk_that_is_told_to_fail_is_lost_and_can_be_replaced() {
    let (server, told) = served();
    let mut nbd = Client::ready(&server.socket);
    assert_eq!(nbd.write(0, 4096, &[7; 4096]), 0);
    let mut control = ControlClient::connect(&server.control());
    let status = control.call(ask(1, "member", "status")).expect("a status");
    assert_eq!(
        status,
        json!({
            "node": "member",
            "is_lost": false,
            "facts": {},
            "when_lost": "array goes on: reads and writes of it fail; the device is served on"
        })
    );
    let refused = control.call(json!({"id": 2, "node": "member", "command": "replace"}));
    let not_lost =
        "node `member` is not lost; accepted: a disk that is, as after `fail` of `member`";
    assert_eq!(refused, Err(not_lost.into()));
    assert!(told.lock().expect("told").is_empty(), "nothing is made for it");
    control.call(ask(3, "member", "fail")).expect("it fails");
    control.call(ask(4, "member", "fail")).expect("once more");
    let status = control.call(ask(5, "array", "status")).expect("a status");
    assert_eq!(status["facts"], json!({"lost": 1, "rebuilds": 0}));
    assert_eq!(nbd.read(4096, 4096), Err(5), "the disk is lost");
    control.call(ask(6, "member", "replace")).expect("a new disk");
    control.call(ask(7, "member", "fail")).expect("it fails");
    let replace = json!({"id": 8, "node": "member", "command": "replace", "path": "new.img"});
    let refused = control.call(replace.clone());
    assert_eq!(refused, Err("13 is no number".into()));
    control.call(replace).expect("a new disk");
    assert_eq!(nbd.read(4096, 4096), Ok(vec![0; 4096]), "it is blank");
    let new = "begin Some(\"new.img\")";
    assert_eq!(*told.lock().expect("told"), ["begin None", "finish", new, "abort", new, "finish"]);
}

#[test]
fn a_command_is_joined_by_its_id_and_outlives_its_client() {
    let (server, _) = served();
    let mut first = ControlClient::connect(&server.control());
    first.send(&ask(9, "array", "rebuild").to_string());
    let progress = first.answer().expect("progress");
    assert_eq!(progress, json!({"id": 9, "progress": {"done": 3, "total": BLOCKS}}));
    let mut second = ControlClient::connect(&server.control());
    let other = second.call(ask(9, "array", "scrub"));
    assert!(other.expect_err("another command").contains("id 9"));
    second.send(&ask(9, "array", "rebuild").to_string());
    drop(first);
    // Progress is told to both, so the second one has joined.
    let progress = second.answer().expect("progress");
    assert_eq!(progress["id"], 9);
    let mut third = ControlClient::connect(&server.control());
    let status = third.call(ask(10, "array", "status")).expect("a status");
    assert_eq!(status["facts"]["rebuilds"], 1, "the same one");
    let mut nbd = Client::ready(&server.socket);
    assert_eq!(nbd.write(0, 0, &[1; 4096]), 0);
    loop {
        let answer = second.answer().expect("an answer");
        if answer["progress"].is_null() {
            assert_eq!(answer["ok"]["node"], "array", "{answer}");
            break;
        }
    }
}

#[test]
fn a_server_that_stops_does_not_wait_for_a_rebuild() {
    let (server, _) = served();
    let mut control = ControlClient::connect(&server.control());
    control.send(&ask(1, "array", "rebuild").to_string());
    control.answer().expect("progress");
    server.stop.stop();
    let error = loop {
        let answer = control.answer().expect("an answer");
        if answer["progress"].is_null() {
            break answer["error"].as_str().expect("an error").to_owned();
        }
    };
    assert!(error.contains("after the next start"), "{error}");
    assert_eq!(control.answer(), None);
    server.join().expect("a clean end");
}

#[test]
fn a_server_that_stops_waits_for_a_replacement() {
    let (server, told) = served();
    let mut control = ControlClient::connect(&server.control());
    let mut call = |id: u64, command: &str| control.call(ask(id, "member", command));
    for number in 12..15 {
        // Numbers that a refused disk had are used up.
        call(number, "fail").expect("it fails");
        assert_eq!(call(number, "replace").is_err(), number == 13);
    }
    call(3, "fail").expect("it fails");
    control.send(&ask(4, "member", "replace").to_string());
    eventually("it has begun", || told.lock().expect("told").len() == 7);
    server.stop.stop();
    let answer = control.answer().expect("an answer");
    assert_eq!(answer["ok"]["is_lost"], false, "{answer}");
    server.join().expect("a clean end");
    let told = told.lock().expect("told");
    assert_eq!(told[6..], ["begin None", "finish"]);
}

#[test]
fn commands_that_cannot_be_are_refused_with_what_is_accepted() {
    let (server, _) = served();
    let mut control = ControlClient::connect(&server.control());
    for (request, words) in [
        (ask(1, "disk", "fail"), "accepted: member, array"),
        (ask(2, "array", "fail"), "accepted by `fail`: member"),
        (ask(3, "member", "rebuild"), "accepted by `rebuild`: array"),
        (
            ask(4, "array", "scrub"),
            "no node of this stack takes `scrub`; accepted: status, fail, replace, rebuild",
        ),
        (ask(5, "member", "hang"), "--allow-faults"),
        (
            ask(6, "member", "stop"),
            "`command` is \"stop\"; accepted: status, fail, replace, rebuild",
        ),
        (ask(7, "array", "replace"), "is no disk; accepted by `replace`: member"),
    ] {
        let error = control.call(request).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
    let (server, _) = TestServer::read_only(8);
    let mut control = ControlClient::connect(&server.control());
    let error = control.call(ask(1, "disk", "status"));
    assert!(error.expect_err("no name").contains("none of this stack"));
}

#[test]
fn commands_under_way_are_bounded() {
    let (server, _) = served();
    let mut control = ControlClient::connect(&server.control());
    for id in 0..=COMMANDS_MAX as u64 {
        control.send(&ask(id, "array", "rebuild").to_string());
    }
    let mut refused = Vec::new();
    while refused.is_empty() {
        let answer = control.answer().expect("an answer");
        if let Some(words) = answer["error"].as_str() {
            refused.push((answer["id"].clone(), words.to_owned()));
        }
    }
    assert_eq!(refused[0].0, COMMANDS_MAX as u64);
    assert!(refused[0].1.contains("try again"), "{refused:?}");
    let mut other = ControlClient::connect(&server.control());
    eventually("the commands are known", || {
        let status = other.call(ask(1_000, "array", "status"));
        status.is_err_and(|words| words.contains("under way"))
    });
}

#[test]
fn a_lost_disk_without_an_array_answers_that_it_is_lost() {
    let server = TestServer::of(|_| {
        let disk = Box::new(TestDisk::new(BLOCKS, 0, Control::default()));
        let engine = crate::support::engine_over(disk);
        let top = engine.stack.top();
        Served { names: vec![("disk", top)], ..Served::over(engine) }
    });
    let mut nbd = Client::ready(&server.socket);
    let mut control = ControlClient::connect(&server.control());
    control.call(ask(1, "disk", "fail")).expect("it fails");
    let lost = imbrex_serve::nbd::transmission::Errno::from(IoError::Lost) as u32;
    assert_eq!(nbd.read(0, 4096), Err(lost));
    let error = control.call(ask(2, "disk", "replace"));
    assert!(
        error
            .expect_err("no array")
            .contains("no node of this stack takes `replace`; accepted: status, fail")
    );
    server.stop.stop();
    let ended = server.join();
    assert!(ended.is_err(), "the last flush has nowhere to go");
}
