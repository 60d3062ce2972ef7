//! `imbrex control`: commands to the nodes of a served stack.

use crate::client::{ACK, Client, EXPORT_NAME, FLUSH, LIST, READ, SERVER, WRITE};
use crate::served::{Place, Served, failure, imbrex, run};
use rustix::process::{Pid, Resource, getrlimit, prlimit};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

const EIO: u32 = 5;

/// `imbrex serve` with further arguments, on the socket of a place.
pub fn serve(place: &Place, stack: &str, more: &[&str]) -> Served {
    let socket = place.socket();
    let mut command = imbrex();
    command.args(["serve", stack, "--socket", &socket]).args(more);
    Served::start(&mut command, Path::new(&socket))
}

/// An emulated disk, which may be broken.
fn emulated(place: &Place) -> Served {
    serve(place, "cmr-only", &["--emulate", "--size", "64MiB", "--allow-faults"])
}

pub fn control_of(place: &Place) -> String {
    format!("{}.control", place.socket())
}

fn control(place: &Place, arguments: &[&str]) -> Output {
    let socket = control_of(place);
    let mut all = vec!["control", &socket];
    all.extend(arguments);
    run(&all)
}

/// What a command that succeeds prints.
pub fn done(place: &Place, arguments: &[&str]) -> String {
    let output = control(place, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    assert_eq!(said, "", "progress is for terminals");
    String::from_utf8(output.stdout).expect("text")
}

/// What a command that fails says.
pub fn refused(place: &Place, arguments: &[&str]) -> String {
    failure(&control(place, arguments))
}

#[test]
fn nodes_of_an_image_are_asked_how_they_are() {
    let place = Place::new();
    place.create("pore", "64MiB", &["cache.capacity=16MiB"]);
    let data = place.data();
    let server = serve(&place, "pore", &["--data", &data]);
    let path = control_of(&place);
    let mode = std::fs::metadata(&path).expect("a socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert!(server.said().contains(&format!("commands at {path}")));
    assert!(done(&place, &["cache", "status"]).starts_with("cache: in use\n"));
    let json = done(&place, &["ssd", "status", "--json", "--id", "17"]);
    let answer: Value = serde_json::from_str(&json).expect("one document");
    assert_eq!(answer["id"], 17);
    assert_eq!(answer["ok"]["is_lost"], false);
    for (arguments, words) in [
        (&["ssd0", "status"][..], "accepted: smr, translation, ssd, cache"),
        (&["cache", "fail"], "is no disk; accepted by `fail`: smr, ssd"),
        (&["cache", "rebuild", "--rate", "5"], "such as \"50MiB/s\""),
        (
            &["cache", "rebuild", "--rate", "5MiB/s"],
            "no node of this stack takes `rebuild`; accepted: status, fail",
        ),
        (&["smr", "hang"], "--allow-faults"),
        (&["smr", "corrupt", "1..2"], "--allow-faults"),
        (&["cache", "scrub"], "takes `scrub`; accepted: status, fail"),
        (&["smr", "replace"], "takes `replace`; accepted: status, fail"),
    ] {
        let said = refused(&place, arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    for wrong in
        [&["smr"][..], &["smr", "stop"], &["smr", "corrupt", "4..4"], &["smr", "slow"], &["fail"]]
    {
        assert_eq!(control(&place, wrong).status.code(), Some(2), "{wrong:?}");
    }
    let device = run(&["control", &place.socket(), "cache", "status"]);
    let said = failure(&device);
    assert!(said.contains(&format!("commands are taken at {path}")), "{said}");
    let json = control(&place, &["cache", "fail", "--json"]);
    assert_eq!(json.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&json.stdout).expect("one document");
    assert!(answer["error"].is_string());
    server.stop();
    assert!(!Path::new(&path).exists());
    let said = refused(&place, &["cache", "status"]);
    assert!(said.contains("cannot reach"), "{said}");
}

/// The help names all commands; a server whose stack has no array takes no `replace`, `rebuild` and `scrub`, and one without
/// a controller no `off` and `on`.
#[test]
fn commands_that_no_node_takes_are_not_offered() {
    let help = run(&["control", "--help"]).stdout;
    let help = String::from_utf8(help).expect("text");
    let offered: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.split_whitespace().next())
        .collect();
    let faults = ["fail-reads", "fail-writes", "slow", "hang", "corrupt", "heal"];
    let of_arrays = ["replace", "rebuild", "scrub"];
    let of_controllers = ["off", "on"];
    let expected =
        [&["status", "fail"][..], &of_arrays, &of_controllers, &faults, &["help"]].concat();
    assert_eq!(offered, expected);
    let place = Place::new();
    let server = emulated(&place);
    for command in of_arrays.into_iter().chain(of_controllers) {
        assert_eq!(
            refused(&place, &["cmr", command]),
            format!(
                "imbrex: no node of this stack takes `{command}`; accepted: status, fail, {}",
                faults.join(", ")
            )
        );
    }
    server.stop();
}

#[test]
fn an_image_that_is_only_read_takes_no_command_that_writes() {
    let place = Place::new();
    place.create("cmr-only", "16MiB", &[]);
    let data = place.data();
    let server = serve(&place, "cmr-only", &["--data", &data, "--read-only"]);
    assert!(done(&place, &["cmr", "status"]).starts_with("cmr: in use\n"));
    let said = refused(&place, &["cmr", "replace"]);
    assert!(said.contains("no node of this stack takes"), "{said}");
    server.stop();
}

#[test]
fn without_a_unix_socket_commands_need_a_path() {
    let place = Place::new();
    let listen = ["serve", "cmr-only", "--emulate", "--size", "16MiB", "--listen", "127.0.0.1:0"];
    let mut faults = listen.to_vec();
    faults.push("--allow-faults");
    let said = failure(&run(&faults));
    assert!(said.contains("accepted: with --socket PATH or --control PATH"), "{said}");
    let path = control_of(&place);
    let mut command = imbrex();
    command.args(faults).args(["--control", &path]);
    let server = Served::start(&mut command, Path::new(&place.socket()));
    done(&place, &["cmr", "status"]);
    server.stop();
    // Nobody finds the private socket of a command, so nothing is put beside it.
    let script = "test -z \"$control\" && test ! -e \"$unixsocket.control\"";
    let output = run(&["serve", "cmr-only", "--emulate", "--size", "16MiB", "--run", script]);
    assert_eq!(output.status.code(), Some(0));
    let program = imbrex().get_program().to_str().expect("a path").to_owned();
    let script = format!("{program} control \"$control\" cmr status > {}", place.path("out"));
    let output = run(&[
        "serve",
        "cmr-only",
        "--emulate",
        "--size",
        "16MiB",
        "--control",
        &path,
        "--run",
        &script,
    ]);
    assert_eq!(output.status.code(), Some(0));
    let told = std::fs::read_to_string(place.path("out")).expect("a file");
    assert!(told.starts_with("cmr: in use\n"), "{told}");
}

#[test]
fn a_path_that_is_no_socket_is_refused_and_one_too_long_is_told() {
    let place = Place::new();
    let path = control_of(&place);
    std::fs::write(&path, "mine").expect("a file");
    let socket = place.socket();
    let serve = ["serve", "cmr-only", "--emulate", "--size", "16MiB", "--socket", &socket];
    let said = failure(&run(&serve));
    assert!(said.contains("is not a socket (for commands)"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "mine");
    // The socket of the device fits, that for commands does not.
    let fill = 105 - place.path("").len();
    let long = place.path(&"x".repeat(fill));
    let mut command = imbrex();
    let arguments = ["serve", "cmr-only", "--emulate", "--size", "16MiB", "--socket", &long];
    let server = Served::start(command.args(arguments), Path::new(&long));
    assert!(server.said().contains("no commands are taken"), "{}", server.said());
    server.stop();
}

#[test]
fn emulated_disks_are_broken_and_healed() {
    let place = Place::new();
    let server = emulated(&place);
    let mut nbd = server.client();
    assert_eq!(nbd.write(0, 8 * 4096, &[3; 4096]), 0);
    done(&place, &["cmr", "fail-reads", "8..9"]);
    assert_eq!(nbd.read(8 * 4096, 4096), Err(EIO));
    assert!(nbd.read(9 * 4096, 4096).is_ok());
    done(&place, &["cmr", "fail-writes"]);
    assert_eq!(nbd.write(0, 0, &[3; 4096]), EIO);
    done(&place, &["cmr", "heal"]);
    done(&place, &["cmr", "corrupt", "8..9"]);
    let wrong = nbd.read(8 * 4096, 4096).expect("no error is told");
    assert_ne!(wrong, [3; 4096]);
    done(&place, &["cmr", "heal"]);
    assert_eq!(nbd.read(8 * 4096, 4096), Ok(vec![3; 4096]));
    done(&place, &["cmr", "slow", "200"]);
    let started = Instant::now();
    assert!(nbd.read(0, 4096).is_ok());
    assert!(started.elapsed() >= Duration::from_millis(200));
    let said = refused(&place, &["cmr", "fail-reads", "16383..16385"]);
    assert!(said.contains("accepted: blocks from 0 to 16384"), "{said}");
    server.stop();
}

#[test]
fn a_server_whose_disk_hangs_ends_soon_and_says_why() {
    let place = Place::new();
    place.create("cmr-only", "16MiB", &[]);
    let data = place.data();
    for more in [&["--data", &data][..], &["--emulate", "--size", "16MiB"]] {
        let mut arguments = vec!["--allow-faults"];
        arguments.extend(more);
        let server = serve(&place, "cmr-only", &arguments);
        let mut nbd = server.client();
        done(&place, &["cmr", "hang"]);
        nbd.request(WRITE, 0, 1, 4096, 4096);
        nbd.send(&[6; 4096]);
        nbd.request(READ, 0, 2, 0, 4096);
        let mut other = server.client();
        other.request(FLUSH, 0, 3, 0, 0);
        assert!(done(&place, &["cmr", "status"]).starts_with("cmr: in use\n"));
        let started = Instant::now();
        server.signal("TERM");
        let (said, (status, run)) = server.wait_and_said();
        assert_eq!(status, Some(0), "{said}");
        assert!(started.elapsed() < Duration::from_secs(20));
        assert!(said.contains("node `cmr` was told to hang"), "{said}");
        assert_eq!(run["write_blocks"], 1);
    }
    let server = place.serve("cmr-only");
    let mut nbd = server.client();
    assert_eq!(nbd.read(4096, 4096), Ok(vec![6; 4096]), "it was carried out");
    server.stop();
}

/// Lets a process have as many descriptors as `most`; answers how many it might have before.
fn limit_descriptors(server: &Served, most: Option<u64>) -> Option<u64> {
    let id = Pid::from_raw(server.id() as i32);
    let limits = prlimit(id, Resource::Nofile, getrlimit(Resource::Nofile));
    let mut limits = limits.expect("its own child");
    let before = std::mem::replace(&mut limits.current, most);
    prlimit(id, Resource::Nofile, limits).expect("its own child");
    before
}

/// The kernel tells of a client once. Before, nobody looked again until another one came.
#[test]
fn a_client_waits_no_longer_than_descriptors_are_short() {
    let place = Place::new();
    let server = emulated(&place);
    done(&place, &["cmr", "status"]);
    // All that are below the limit are in use.
    let before = limit_descriptors(&server, Some(3));
    let mut waiting = UnixStream::connect(control_of(&place)).expect("a socket");
    let request = "{\"id\": 1, \"node\": \"cmr\", \"command\": \"status\"}\n";
    waiting.write_all(request.as_bytes()).expect("it waits");
    let patience = |ms| Some(Duration::from_millis(ms));
    waiting.set_read_timeout(patience(500)).expect("a timeout");
    let mut answer = [0; 10];
    let error = waiting.read_exact(&mut answer).expect_err("no descriptor");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let words = "cannot accept a client for commands: Too many open files";
    assert_eq!(server.said().matches(words).count(), 1, "{}", server.said());
    limit_descriptors(&server, before);
    waiting.set_read_timeout(patience(20_000)).expect("a timeout");
    waiting.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, *b"{\"id\":1,\"o");
    server.stop();
}

#[test]
fn a_device_whose_only_disk_fails_answers_errors_and_ends() {
    let place = Place::new();
    place.create("cmr-only", "16MiB", &[]);
    let data = place.data();
    let server = serve(&place, "cmr-only", &["--data", &data, "--allow-faults"]);
    let mut nbd: Client = server.client();
    done(&place, &["cmr", "hang"]);
    nbd.request(READ, 0, 1, 0, 4096);
    done(&place, &["cmr", "fail"]);
    assert_eq!(nbd.reply(), (EIO, 1));
    assert!(done(&place, &["cmr", "status"]).starts_with("cmr: lost\n"));
    server.signal("TERM");
    let (said, (status, _)) = server.wait_and_said();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("disk is lost"), "{said}");
}

/// Two parts of a disk.
const PARTS: &str = r#"
[[node]]
name = "disk"
kind = "disk"
drive = "wd-4tb-7200"

[[node]]
name = "a"
kind = "slice"
below = "disk"
offset = "0"
size = "8 MiB"

[[node]]
name = "b"
kind = "slice"
below = "disk"
offset = "8 MiB"
size = "4 MiB"
"#;

/// A stack of this name: two parts of a disk and what `others` adds, joined in this order.
pub fn span(name: &str, others: &str, joined: &[&str]) -> String {
    let top = format!("[[node]]\nname = \"top\"\nkind = \"span\"\nbelow = {joined:?}\n");
    format!("name = {name:?}\n{PARTS}{others}\n{top}")
}

#[test]
fn the_parts_of_a_span_are_exports_by_their_names() {
    let place = Place::new();
    let stack = place.path("halves.toml");
    let text = span("halves", "", &["a", "b"]);
    std::fs::write(&stack, &text).expect("a file");
    let server = serve(&place, &stack, &["--emulate"]);
    let mut whole = server.client();
    let mut client = Client::haggling(Path::new(&place.socket()));
    client.option(LIST, &[]);
    for name in ["halves", "a", "b"] {
        let (_, kind, data) = client.option_reply();
        assert_eq!(kind, SERVER);
        assert_eq!(&data[4..4 + name.len()], name.as_bytes());
    }
    assert_eq!(client.option_reply().1, ACK);
    client.option(EXPORT_NAME, b"b");
    assert_eq!(client.bytes(10)[..8], (4u64 << 20).to_be_bytes());
    assert_eq!(client.write(0, 4096, &[9; 4096]), 0);
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
    assert_eq!(whole.read((8 << 20) + 4096, 4096), Ok(vec![9; 4096]));
    assert!(client.read(4 << 20, 4096).is_err(), "it ends there");
    server.stop();
    let wrong = text.replace("\"b\"", "\"halves\"");
    std::fs::write(&stack, wrong).expect("a file");
    let socket = place.socket();
    let said = failure(&run(&["serve", &stack, "--emulate", "--socket", &socket]));
    assert!(said.contains("has the name of the stack"), "{said}");
}
