//! `--run`, and the end of a server that is busy.

use crate::client::{REQUEST_MAGIC, SIMPLE_REPLY_MAGIC, WRITE};
use crate::served::{Place, Served, disconnect, failure, imbrex, run};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn the_exit_status_of_a_command_passes_through() {
    let place = Place::new();
    place.create("lru", "64MiB", &[]);
    let (data, socket) = (place.data(), place.socket());
    for (command, expected) in
        [("true", Some(0)), ("exit 7", Some(7)), ("kill -KILL $$", Some(137))]
    {
        let output = imbrex()
            .args(["serve", "lru", "--data", &data, "--socket", &socket])
            .args(["--run", command])
            .output()
            .expect("the program");
        assert_eq!(output.status.code(), expected, "{command}");
        assert!(output.stdout.is_empty(), "it belongs to the command");
        let said = String::from_utf8(output.stderr).expect("text");
        let last = said.lines().last().expect("a report");
        let report: serde_json::Value = serde_json::from_str(last).expect("a report");
        assert_eq!(report["workload"]["kind"], "live");
    }
    place.serve("lru").stop();
}

#[test]
fn a_command_finds_the_server_in_its_environment() {
    let place = Place::new();
    place.create("lru", "64MiB", &[]);
    let (data, socket, out) = (place.data(), place.socket(), place.path("out"));
    let said = format!("echo \"$uri $unixsocket\" > {out}");
    let serve = |listen: &[&str]| {
        let arguments = ["serve", "lru", "--data", &data, "--run", &said];
        let output = imbrex()
            .args(arguments)
            .args(listen)
            .env("unixsocket", "stale")
            .output()
            .expect("the program");
        assert!(output.status.success());
        std::fs::read_to_string(&out).expect("what the command wrote")
    };
    assert_eq!(serve(&["--socket", &socket]), format!("nbd+unix:///?socket={socket} {socket}\n"));
    let tcp = serve(&["--listen", "127.0.0.1:0"]);
    let port = tcp.strip_prefix("nbd://127.0.0.1:").expect(&tcp).trim_end();
    assert!(port.parse::<u16>().expect("a port") > 0, "{tcp}");
}

/// Writes as fast as the server takes it, 32 requests ahead of the answers, until the server hangs
/// up. Each request writes its own number into every word of its block. Counts into `answered`
/// the requests of which this and all before were answered without error.
fn load(server: &Served, answered: &AtomicU64) {
    let client = server.client();
    let mut sending = client.stream.try_clone().expect("a descriptor");
    let mut answers = client.stream;
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            for number in 0u64.. {
                let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
                bytes.extend([0, 0]);
                bytes.extend(WRITE.to_be_bytes());
                bytes.extend(number.to_be_bytes());
                bytes.extend((number % 8192 * 4096).to_be_bytes());
                bytes.extend(4096u32.to_be_bytes());
                bytes.extend(number.to_le_bytes().repeat(512));
                if sending.write_all(&bytes).is_err() {
                    return;
                }
            }
        });
        let mut done = std::collections::BTreeSet::new();
        let mut header = [0; 16];
        while answers.read_exact(&mut header).is_ok() {
            assert_eq!(header[..4], SIMPLE_REPLY_MAGIC.to_be_bytes());
            assert_eq!(header[4..8], [0; 4], "a write failed");
            done.insert(u64::from_be_bytes(header[8..].try_into().expect("8 bytes")));
            let mut next = answered.load(Ordering::Relaxed);
            while done.remove(&next) {
                next += 1;
            }
            answered.store(next, Ordering::Relaxed);
        }
        sender.join().expect("the sender");
    });
}

fn a_signal_under_load_loses_nothing(signal: &str) {
    let place = Place::new();
    let small = ["cache.capacity=4MiB", "translation.persistent_cache=4MiB"];
    place.create("pore", "64MiB", &small);
    let server = place.serve("pore");
    let answered = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| load(&server, &answered));
        while answered.load(Ordering::Relaxed) < 3_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.signal(signal);
        client.join().expect("the client");
    });
    let (status, run) = server.wait();
    let answered = answered.into_inner();
    if signal != "KILL" {
        assert_eq!(status, Some(0), "{signal}");
        let written = run["write_blocks"].as_u64().expect("a count");
        assert!(written >= answered, "{written} of {answered} are reported");
    }

    // A block holds what was answered last, or what was written after it.
    let server = place.serve("pore");
    let mut client = server.client();
    for block in 0..answered.min(8192) {
        let data = client.read(block * 4096, 4096).expect("a read");
        let number = u64::from_le_bytes(data[..8].try_into().expect("8 bytes"));
        assert_eq!(data, number.to_le_bytes().repeat(512), "block {block} is torn");
        assert_eq!(number % 8192, block, "block {block} is another one");
        let last = block + (answered - 1 - block) / 8192 * 8192;
        assert!(number >= last, "block {block} holds {number}, {last} was answered");
    }
    server.stop();
}

#[test]
fn signals_under_load_lose_no_answered_write() {
    a_signal_under_load_loses_nothing("TERM");
    a_signal_under_load_loses_nothing("INT");
    a_signal_under_load_loses_nothing("KILL");
}

#[test]
fn a_command_that_a_signal_outruns_is_still_waited_for() {
    let place = Place::new();
    place.create("lru", "64MiB", &[]);
    let (data, socket) = (place.data(), place.socket());
    let mut command = imbrex();
    command
        .args(["serve", "lru", "--data", &data, "--socket", &socket])
        .args(["--run", "sleep 1; exit 5"]);
    let server = Served::start(&mut command, Path::new(&socket));
    server.signal("TERM");
    let (said, (status, _)) = server.wait_and_said();
    assert_eq!(status, Some(5));
    let report: serde_json::Value =
        serde_json::from_str(said.lines().last().expect("lines")).expect("a report");
    assert_eq!(report["runs"][0]["system"], "lru");
    place.serve("lru").stop();
}

#[test]
fn the_contents_of_an_emulated_drive_are_its_owners_alone() {
    let place = Place::new();
    let (data, socket) = (place.data(), place.socket());
    let output = imbrex()
        .args(["serve", "cmr-only", "--emulate", "--size", "8MiB"])
        .args(["--data", &data, "--socket", &socket, "--run", "true"])
        .output()
        .expect("the program");
    assert!(output.status.success());
    let mode = |path: &str| {
        let found = std::fs::metadata(place.path(path)).expect(path);
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("data"), 0o700);
    assert_eq!(mode("data/cmr.contents"), 0o600);
}

#[test]
fn an_emulated_drive_starts_empty_and_leaves_the_files_of_others() {
    let place = Place::new();
    let (data, socket) = (place.data(), place.socket());
    let path = |name: &str| place.path(&format!("data/{name}"));
    std::fs::create_dir(&data).expect("a folder");
    for name in ["notes.contents", "smr.contents", "cmr.contents.old"] {
        std::fs::write(path(name), "mine").expect("a file");
    }
    let emulate = || {
        let mut command = imbrex();
        command
            .args(["serve", "cmr-only", "--emulate", "--size", "8MiB"])
            .args(["--data", &data, "--socket", &socket]);
        Served::start(&mut command, Path::new(&socket))
    };
    let told =
        format!("imbrex: {} was removed: an emulated drive starts empty\n", path("cmr.contents"));
    for start in 0..2 {
        let server = emulate();
        let mut client = server.client();
        assert_eq!(client.read(0, 4096), Ok(vec![0; 4096]));
        assert_eq!(client.write(0, 0, &[7; 4096]), 0);
        disconnect(client);
        let said = server.said();
        assert_eq!(said.matches("was removed").count(), start, "{said}");
        assert!(start == 0 || said.contains(&told), "{said}");
        server.stop();
    }
    for name in ["notes.contents", "smr.contents", "cmr.contents.old"] {
        assert_eq!(std::fs::read(path(name)).expect(name), b"mine");
    }
    // The name of a node leads nowhere else.
    let stack = place.path("mine.toml");
    let text = "name = 'mine'\nsize = '8 MiB'\n[[node]]\nname = 'cmr/../../beside'\nkind = 'disk'\n\
                drive = 'cmr-500gb-7200'\n";
    std::fs::write(&stack, text).expect("a file");
    std::fs::create_dir(path("cmr")).expect("a folder");
    std::fs::write(place.path("beside.contents"), "mine").expect("a file");
    let arguments = ["serve", &stack, "--emulate", "--data", &data, "--socket", &socket];
    let expected = format!(
        "imbrex: node `cmr/../../beside`: its name cannot name a file in {data}; accepted: a name without `/`"
    );
    assert_eq!(failure(&run(&arguments)), expected);
    let beside = std::fs::read(place.path("beside.contents"));
    assert_eq!(beside.expect("a file"), b"mine");
}
