//! What a server says and runs when something happens to its nodes.

use crate::client::Client;
use crate::support::{Control, ControlClient, Served, TestDisk, TestServer, eventually, plain};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::notice::Notice;
use imbrex_core::operation::{Cause, Completion, Request, RequestId, Tag};
use imbrex_core::stack::StackBuilder;
use imbrex_serve::events::OnEvent;
use imbrex_serve::server::Server;
use serde_json::json;
use std::fs;
use std::path::Path;

const BLOCKS: u64 = 64;

/// An array of two that says much: of each kind of notice one, when block 0 is read. It comes up with one
/// that is back.
#[derive(Default)]
struct Talkative {
    waiting: Vec<RequestId>,
}

impl Layer for Talkative {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.extent.start.0 == 0 && !request.extent.is_empty() {
            ctx.notice(Notice::SecondLoss { member: 1 });
            ctx.notice(Notice::SpareTaken { member: 1, port: 0 });
            ctx.notice(Notice::RebuildEnded { member: 0, is_whole: false });
            ctx.notice(Notice::ScrubFound { member: 1, block: 9, is_repaired: true });
            ctx.notice(Notice::ScrubEnded { wrong: 3, repaired: 2, unreadable: 1 });
        }
        ctx.issue(Issue {
            port: Port(0),
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
            cause: Cause::Host,
            tag: Tag(self.waiting.len() as u64),
        });
        self.waiting.push(request.id);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        ctx.finish(self.waiting[completion.tag.0 as usize], completion.result);
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        ctx.notice(Notice::MemberReturned { member: 1, resynced_bytes: 8192 });
        ctx.opened(Ok(()));
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        ctx.notice(Notice::MemberLost { member: port.0 });
    }
}

fn talkative(server: &mut Server, command: String) -> Served {
    let disk = || Box::new(TestDisk::new(BLOCKS, 0, Control::default())) as Box<dyn Disk>;
    let mut builder = StackBuilder::new(0);
    let [left, right] = [(); 2].map(|()| builder.disk(plain(BLOCKS)));
    let layer = Box::new(Talkative::default());
    let top = builder.layer(layer, plain(BLOCKS), &[left, right]);
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![disk(), disk()],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    server.open(&mut engine, Start::Format(Uuid([0; 16]))).expect("it opens");
    let image = Some("/some/where".into());
    server.run_on_event(OnEvent { command, stack: "toy".into(), image });
    Served { names: vec![("left", left), ("right", right), ("array", top)], ..Served::over(engine) }
}

/// What a command has written of an event, which ends with its last line.
fn variables(dir: &Path, event: &str) -> String {
    let path = dir.join(event);
    eventually(event, || fs::read_to_string(&path).is_ok_and(|text| text.ends_with("end\n")));
    fs::read_to_string(&path).expect("a file")
}

#[test]
fn every_event_has_a_command_with_the_names_of_nodes_and_its_numbers() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().to_owned();
    let command =
        format!("(env | grep ^IMBREX_ | sort; echo end) >> {}/$IMBREX_EVENT", at.display());
    let server = TestServer::of(move |server| talkative(server, command));
    let mut nbd = Client::ready(&server.socket);
    assert!(nbd.read(0, 4096).is_ok());
    let mut control = ControlClient::connect(&server.control());
    let fail = json!({"id": 1, "node": "right", "command": "fail"});
    control.call(fail).expect("it fails");
    for (event, expected) in [
        ("member-returned", &["IMBREX_MEMBER=right", "IMBREX_RESYNCED_BYTES=8192"][..]),
        ("second-loss", &["IMBREX_NODE=array", "IMBREX_MEMBER=right", "IMBREX_STACK=toy"]),
        ("spare-taken", &["IMBREX_MEMBER=right", "IMBREX_SPARE=left", "IMBREX_COUNT=1"]),
        ("rebuild-ended", &["IMBREX_MEMBER=left", "IMBREX_IS_WHOLE=0"]),
        ("scrub-found", &["IMBREX_MEMBER=right", "IMBREX_BLOCK=9", "IMBREX_IS_REPAIRED=1"]),
        ("scrub-ended", &["IMBREX_WRONG=3", "IMBREX_REPAIRED=2", "IMBREX_UNREADABLE=1"]),
        (
            "disk-lost",
            &[
                "IMBREX_NODE=right",
                "IMBREX_IMAGE=/some/where",
                "IMBREX_DETAIL=node `right`: the disk",
            ],
        ),
        (
            "member-lost",
            &["IMBREX_DETAIL=node `array`: its member `right` is lost, and it goes on without\n"],
        ),
    ] {
        let told = variables(dir.path(), event);
        for words in expected {
            assert!(told.contains(words), "{event}: {words}: {told}");
        }
        assert_eq!(told.matches("IMBREX_EVENT").count(), 1, "{told}");
        let has_member = !matches!(event, "scrub-ended" | "disk-lost");
        assert_eq!(told.contains("IMBREX_MEMBER="), has_member, "{told}");
    }
    server.stop.stop();
    server.join().expect("a clean end");
}
