//! SIGHUP ends a server in order, SIGUSR1 asks it how it is doing.

use crate::client::Client;
use crate::served::{Place, Served, imbrex};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// The figures that a server has printed, each a line of JSON.
fn figures(server: &Served) -> Vec<Value> {
    let said = server.said();
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    let lines = whole.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Asks for figures and waits until they are there, the `count`th.
fn ask(server: &Served, count: usize) -> Value {
    server.signal("USR1");
    let since = Instant::now();
    loop {
        let found = figures(server);
        if found.len() == count {
            return found[count - 1].clone();
        }
        assert!(since.elapsed() < PATIENCE, "no figures: {}", server.said());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn write(client: &mut Client, blocks: std::ops::Range<u64>) {
    for block in blocks {
        assert_eq!(client.write(0, block * 4096, &[7; 4096]), 0);
    }
}

fn figures_are_told_and_a_hangup_ends(server: Served) {
    // Nobody is connected, so that nothing but the signal wakes the server.
    let idle = ask(&server, 1);
    assert_eq!(idle["schema"], "imbrex.figures/1");
    assert_eq!(idle["runs"][0]["requests"], 0);
    assert_eq!(idle["runs"][0]["response_ms"]["mean"], Value::Null);
    let mut client = server.client();
    write(&mut client, 0..40);
    let busy = ask(&server, 2);
    assert_eq!(busy["workload"]["requests"], 40);
    write(&mut client, 40..50);
    server.signal("HUP");
    let (said, (status, run)) = server.wait_and_said();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(run["requests"], 50, "it went on after the figures");

    let told = busy["runs"][0].as_object().expect("a run");
    assert_eq!(told["write_blocks"], 40);
    assert!(told["write_response_ms"]["p99"].as_f64() > Some(0.0));
    assert!(told["finish_s"].as_f64() > Some(0.0));
    assert_eq!(told["write_hits"], run["write_hits"], "first writes miss");
    let missing: Vec<&String> =
        run.as_object().expect("a run").keys().filter(|key| !told.contains_key(*key)).collect();
    assert_eq!(missing, ["configuration", "figures"]);
}

/// `imbrex` with these arguments, whatever runs the tests: under `nohup` it would inherit that a
/// hangup is ignored.
fn heeding_hangups(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP");
    command.arg(imbrex().get_program()).args(arguments);
    command
}

#[test]
fn figures_are_told_while_an_image_is_served_and_a_hangup_ends_it_in_order() {
    let place = Place::new();
    place.create("lru", "64MiB", &[]);
    let (data, socket) = (place.data(), place.socket());
    let arguments = ["serve", "lru", "--data", &data, "--socket", &socket];
    let server = Served::start(&mut heeding_hangups(&arguments), Path::new(&socket));
    figures_are_told_and_a_hangup_ends(server);
    let server = place.serve("lru");
    let said = server.said();
    assert!(!said.contains("not closed in order"), "{said}");
    server.stop();
}

#[test]
fn figures_are_told_while_a_drive_is_emulated_and_a_hangup_ends_it_in_order() {
    let place = Place::new();
    let socket = place.socket();
    let arguments = ["serve", "lru", "--emulate", "--size", "64MiB", "--socket", &socket];
    let server = Served::start(&mut heeding_hangups(&arguments), Path::new(&socket));
    figures_are_told_and_a_hangup_ends(server);
}

/// Nobody drains what wakes the loop but the loop itself.
#[test]
fn figures_are_told_however_often_they_were_asked_for() {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let server = place.serve("cmr-only");
    // A socket pair holds less than three hundred bytes that were sent one at a time.
    for _ in 0..400 {
        server.signal("USR1");
    }
    let since = Instant::now();
    let mut count = 0;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = figures(&server).len();
        if now > 0 && now == count {
            break;
        }
        count = now;
        assert!(since.elapsed() < PATIENCE, "no end of figures");
    }
    ask(&server, count + 1);
    server.stop();
}

#[test]
fn a_server_that_nohup_started_outlives_a_hangup() {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let (data, socket) = (place.data(), place.socket());
    let serve = format!(
        "trap '' HUP; exec {} serve cmr-only --data {data} --socket {socket}",
        imbrex().get_program().display()
    );
    let mut shell = Command::new("sh");
    let server = Served::start(shell.args(["-c", &serve]), Path::new(&socket));
    server.signal("HUP");
    ask(&server, 1);
    write(&mut server.client(), 0..3);
    assert_eq!(server.stop()["requests"], 3);
}
