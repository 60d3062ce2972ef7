//! Commands to nodes while a trace is replayed.

use crate::report::schema::violations;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::command::{Command, CommandId, CommandKind, OnReplacement, Rate};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::operation::{Cause, Completion, Request, Tag};
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::{BlockCount, Duration, Instant};
use imbrex_report::{EventUse, Recorder, ReplayMode};
use imbrex_sim::events::{Event, EventAction, Scripted, When};
use imbrex_sim::experiment::{Experiment, Found, Watch, execute};
use imbrex_sim::replay::{Placement, ReplayOptions, Replayer};
use imbrex_sim::simulation::{VirtualClock, format};
use imbrex_traces::{TraceError, TraceOperation, TraceRecord};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;

const BLOCKS: u64 = 1000;
/// What each operation takes.
const OPERATION: Duration = Duration(1_000_000);

/// Two systems, of which one has no cache, on a small load.
const PLAIN: &str = r#"
name = "events"
title = "a test"
size = "8 GiB"
systems = ["cmr-only", "pore"]

[workload]
path = "synthetic:uniform-random-write"
scale = 500
"#;

fn parse(text: &str) -> Experiment {
    Experiment::parse("test.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

/// The report of an experiment, or why it was not run.
fn report(text: &str) -> Result<Value, String> {
    let experiment = Experiment::parse("test.toml", text, Path::new(""));
    let experiment = experiment.map_err(|error| error.to_string())?;
    let outcomes = execute(&[experiment], &[], None, 2, &Watch::nobody());
    let mut outcomes = outcomes.map_err(|error| error.to_string())?;
    match outcomes.remove(0).workloads.remove(0).found {
        Found::Runs(report) => Ok(serde_json::from_str(&report.to_json()).expect("JSON")),
        Found::Trace(_) | Found::Form(_) => panic!("stacks were run"),
    }
}

/// The same without what differs from run to run.
fn without(mut report: Value, key: &str) -> Value {
    for run in report["runs"].as_array_mut().expect("runs") {
        let run = run.as_object_mut().expect("a run");
        run.remove(key);
        run.remove("simulation");
    }
    report
}

#[test]
fn a_report_tells_what_came_of_events_and_is_the_same_beside_them() {
    let events = r#"
[[event]]
after_requests = 100
node = "cmr"
command = "status"

[[event]]
at_s = 0.5
node = "cache"
command = "rebuild"
rate = "50 MiB/s"
"#;
    let plain = report(PLAIN).expect("a report");
    assert!(plain["runs"][0].get("events").is_none(), "nothing to tell");
    let told = report(&format!("{PLAIN}{events}")).expect("a report");
    let of_schema = include_str!("../../../../docs/schema/report.schema.json");
    let schema: Value = serde_json::from_str(of_schema).expect("JSON");
    assert_eq!(violations(&schema, &schema, &told, "$"), Vec::<String>::new());
    let cmr = told["runs"][0]["events"].as_array().expect("events");
    assert_eq!(cmr.len(), 1, "it has no cache");
    assert_eq!(cmr[0]["outcome"], "done");
    assert_eq!(cmr[0]["facts"], json!({"is_lost": 0}));
    assert!(cmr[0]["at_s"].as_f64() > Some(0.0));
    let cache = &told["runs"][1]["events"][0];
    let expected = json!({
        "at_s": 0.5,
        "node": "cache",
        "command": "rebuild",
        "ended_at_s": 0.5,
        "outcome": "the node takes no such command",
    });
    assert_eq!(*cache, expected);
    assert_eq!(without(told, "events"), without(plain, "events"));
}

#[test]
fn a_run_whose_only_disk_fails_says_so() {
    let event = "[[event]]\nafter_requests = 7\nnode = \"cmr\"\ncommand = \"fail\"\n";
    let text = PLAIN.replace(", \"pore\"", "");
    let error = report(&format!("{text}{event}")).expect_err("the disk is lost");
    assert!(error.contains("record 7: disk is lost"), "{error}");
}

#[test]
fn events_that_cannot_be_are_refused_with_what_is_accepted() {
    for (event, words) in [
        ("at_s = 1\nafter_requests = 2\nnode = \"cmr\"\ncommand = \"fail\"", "one of"),
        ("node = \"cmr\"\ncommand = \"fail\"", "one of `at_s` and `after_requests`"),
        ("at_s = -1\nnode = \"cmr\"\ncommand = \"fail\"", "at_s = -1; accepted"),
        ("at_s = nan\nnode = \"cmr\"\ncommand = \"fail\"", "accepted: seconds"),
        ("at_s = 1e18\nnode = \"cmr\"\ncommand = \"fail\"", "accepted: seconds"),
        ("at_s = 1\nnode = \"cachee\"\ncommand = \"status\"", "did you mean `cache`"),
        ("at_s = 1\nnode = \"cmr\"\ncommand = \"hang\"", "`status`, `fail`"),
        ("at_s = 1\nnode = \"cmr\"\ncommand = \"fail\"\nms = 1", "unknown field `ms`"),
        ("at_s = 1\nnode = \"cmr\"\ncommand = \"fail\"\nrate = \"1MiB/s\"", "has no `rate`"),
        ("at_s = 1\nnode = \"cache\"\ncommand = \"scrub\"\nrate = \"fast\"", "rate"),
        ("at_s = 1\nnode = \"cmr\"\ncommand = \"replace\"\npath = \"x\"", "no `path`"),
        ("at_s = 1\nnode = \"cache\"\ncommand = \"fail\"", "is no disk"),
        ("at_s = 1\nnode = \"cmr\"\ncommand = \"rebuild\"", "is a disk"),
        ("after_requests = 9999999\nnode = \"cmr\"\ncommand = \"status\"", "the workload has"),
    ] {
        let error = report(&format!("{PLAIN}\n[[event]]\n{event}\n")).expect_err(event);
        assert!(error.contains(words), "{event}: {error}");
        let toml =
            error.contains("test.toml") || error.contains("[[event]] `status` of node `cmr`");
        assert!(toml, "it says where: {error}");
    }
    let analysis = "name = \"a\"\ntitle = \"t\"\n[analysis]\nkind = \"characteristics\"\n[workload]\n\
                    path = \"synthetic:uniform-random-write\"\n[[event]]\nat_s = 1\nnode = \"d\"\n\
                    command = \"fail\"\n";
    let error = report(analysis).expect_err("nothing is run");
    assert!(error.contains("leave out [[event]]"), "{error}");
    parse(PLAIN);
}

/// Takes a while for each operation, one after the other.
struct Steady {
    geometry: Geometry,
    pending: VecDeque<(Instant, DiskOp)>,
}

impl Steady {
    fn boxed() -> Box<dyn Disk> {
        Box::new(Steady {
            geometry: Geometry::plain(BlockCount(BLOCKS), Media::Conventional),
            pending: VecDeque::new(),
        })
    }
}

impl Disk for Steady {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        let from = self.pending.back().map_or(now, |(at, _)| *at);
        self.pending.push_back((from + OPERATION, op));
    }

    fn poll(&mut self, now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        let due = self.pending.front().is_some_and(|(at, _)| *at <= now);
        let (_, op) = due.then(|| self.pending.pop_front()).flatten()?;
        let (id, result) = (op.id, Ok(()));
        Some(DiskCompletion { id, result })
    }

    fn next_event(&self) -> Option<Instant> {
        self.pending.front().map(|(at, _)| *at)
    }
}

/// What a [`Pair`] was told, in order.
type Told = Rc<RefCell<Vec<String>>>;

/// Reads and writes one disk, or the other when that is lost. A rebuild takes its time.
struct Pair {
    lost: [bool; 2],
    requests: Vec<Request>,
    rebuild: Option<(CommandId, Instant)>,
    told: Told,
}

impl Layer for Pair {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let number = self.requests.len();
        self.told.borrow_mut().push(format!("request {number}"));
        ctx.issue(Issue {
            port: Port(u8::from(self.lost[0])),
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
            cause: Cause::Host,
            tag: Tag(number as u64),
        });
        self.requests.push(request);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let request = self.requests[completion.tag.0 as usize];
        // What a lost disk had need not be done again: nobody reads it.
        let result = completion.result.or(match completion.result {
            Err(IoError::Lost) => Ok(()),
            result => result,
        });
        ctx.finish(request.id, result);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if let Some((id, _)) = self.rebuild.take_if(|(_, until)| *until <= ctx.now()) {
            ctx.answer_command(id, Ok(()));
        }
    }

    fn lost(&mut self, port: Port, _ctx: &mut Context<'_>) {
        self.told.borrow_mut().push(format!("lost {}", port.0));
        self.lost[usize::from(port.0)] = true;
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        let number = ctx.member_number(port);
        let text = format!("replaced {} by {number:?}", port.0);
        self.told.borrow_mut().push(text);
        self.lost[usize::from(port.0)] = false;
        ctx.answer_command(command, Ok(()));
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        self.told.borrow_mut().push(format!("{:?}", command.kind));
        let until = ctx.now() + Duration::from_ms(1_000);
        self.rebuild = Some((command.id, until));
        ctx.wake_at(until);
    }
}

type Records = std::vec::IntoIter<Result<TraceRecord, TraceError>>;

/// Replays 20 writes that arrive every 10 ms over a pair of disks, with these events: an instant in
/// ms or a count of requests, and what the first disk or the pair is asked to do.
fn replayed(script: &[(When, Option<CommandKind>)]) -> (Vec<String>, Vec<EventUse>) {
    replayed_every(10, script)
}

/// The same with writes that arrive every `gap_ms`.
fn replayed_every(
    gap_ms: u64,
    script: &[(When, Option<CommandKind>)],
) -> (Vec<String>, Vec<EventUse>) {
    let told = Told::default();
    let mut builder = StackBuilder::new(0);
    let geometry = Geometry::plain(BlockCount(BLOCKS), Media::Conventional);
    let below = [(); 2].map(|()| builder.disk(geometry.clone()));
    let pair =
        Pair { lost: [false; 2], requests: Vec::new(), rebuild: None, told: Rc::clone(&told) };
    let top = builder.layer(Box::new(pair), geometry, &below);
    for (port, number) in [(0, 4), (1, 5)] {
        builder.number_member(top, Port(port), number);
    }
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![Steady::boxed(), Steady::boxed()],
        buffers: Buffers::new(ContentKind::Counted),
        in_flight_max: 16,
    };
    format(&mut engine);
    let records = (0..20).map(|i| {
        let at_ns = i * gap_ms * 1_000_000;
        Ok(TraceRecord::new(at_ns, TraceOperation::Write, i * 4096, 4096))
    });
    let records: Records = records.collect::<Vec<_>>().into_iter();
    let options = ReplayOptions {
        mode: ReplayMode::OpenLoop { speed: 1.0 },
        limit: None,
        drop_reads: false,
        placement: Placement::default(),
    };
    let recorder = Rc::new(RefCell::new(Recorder::new()));
    let replayer = Replayer::new(records, options, BlockCount(BLOCKS), recorder);
    let events = script.iter().map(|(when, kind)| Event {
        when: *when,
        node: match kind {
            Some(CommandKind::Rebuild(_)) => top,
            _ => below[0],
        },
        action: match kind {
            Some(kind) => EventAction::Command(*kind),
            None => EventAction::Replace {
                disk: imbrex_core::stack::DiskId(0),
                members: 1,
                make: Box::new(|| Ok(Steady::boxed())),
            },
        },
        name: "n".into(),
        command: "c".into(),
    });
    let next_member = engine.stack.next_member();
    let mut scripted = Scripted::new(replayer, events.collect(), next_member, Instant::ZERO);
    engine.run(&mut VirtualClock::default(), &mut scripted, &mut |_, _| {});
    let (mut replayer, events) = scripted.finish();
    replayer.take_error().expect("a replay to the end");
    assert_eq!(replayer.counts.requests, 20);
    (told.take(), events.expect("enough requests"))
}

fn ms(ms: u64) -> When {
    When::At(Instant::ZERO + Duration::from_ms(ms))
}

#[test]
fn an_event_comes_before_the_requests_of_its_instant() {
    for (at, requests) in [(ms(0), 0), (ms(50), 5), (ms(55), 6), (When::AfterRequests(9), 9)] {
        let (told, events) = replayed(&[(at, Some(CommandKind::Fail))]);
        let before = told.iter().position(|it| it == "lost 0");
        assert_eq!(before, Some(requests), "{at:?}: {told:?}");
        assert_eq!(told.len(), 21);
        assert_eq!(events[0].outcome, "done");
        let at_s = match at {
            When::At(at) => at.0 as f64 / 1e9,
            // When the ninth has come.
            When::AfterRequests(_) => 0.08,
        };
        assert_eq!((events[0].at_s, events[0].ended_at_s), (at_s, at_s));
    }
}

#[test]
fn a_run_ends_when_every_command_has_ended() {
    let rate = Some(Rate { bytes_per_s: 7 });
    let (told, events) = replayed(&[
        (ms(185), Some(CommandKind::Rebuild(rate))),
        (ms(35), Some(CommandKind::Fail)),
        (When::AfterRequests(20), None),
        (ms(45), None),
        (ms(46), None),
        (ms(9_000), Some(CommandKind::Status)),
    ]);
    let others: Vec<&String> = told.iter().filter(|it| !it.starts_with("request")).collect();
    let rebuild = "Rebuild(Some(Rate { bytes_per_s: 7 }))";
    assert_eq!(others, ["lost 0", "replaced 0 by Some(6)", rebuild]);
    assert_eq!((events[0].at_s, events[0].ended_at_s), (0.185, 1.185));
    assert!(events[2].outcome.contains("not lost"), "{}", events[2].outcome);
    assert_eq!(events[3].outcome, "done");
    assert!(events[4].outcome.contains("not lost"));
    assert_eq!(events[5].ended_at_s, 9.0);
    assert_eq!(events[5].facts["is_lost"], 0);
}

#[test]
fn an_event_after_requests_comes_between_requests_of_one_instant() {
    for count in [0, 1, 9, 20] {
        let fail = Some(CommandKind::Fail);
        let (told, _) = replayed_every(0, &[(When::AfterRequests(count), fail)]);
        let before = told.iter().position(|it| it == "lost 0");
        assert_eq!(before, Some(count as usize), "{told:?}");
    }
}

#[test]
fn a_run_waits_for_its_last_command() {
    let (_, events) = replayed(&[(ms(100), Some(CommandKind::Rebuild(None)))]);
    assert_eq!((events[0].at_s, events[0].ended_at_s), (0.1, 1.1));
}
