//! Lines that no honest client sends over a control socket.

use crate::client::Client;
use crate::support::{Control, ControlClient, Served, TestDisk, TestServer, engine_over};
use imbrex_core::rng::Rng;
use imbrex_serve::control::{ANSWER_BYTES_MAX, CONTROL_CLIENTS_MAX, REQUEST_LINE_BYTES_MAX};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;

const LINES: u64 = 20_000;

fn served() -> TestServer {
    TestServer::of(|_| {
        let disk = Box::new(TestDisk::new(64, 0, Control::default()));
        let engine = engine_over(disk);
        let names = vec![("disk", engine.stack.top())];
        Served { names, ..Served::over(engine) }
    })
}

fn status(id: u64) -> Value {
    json!({"id": id, "node": "disk", "command": "status"})
}

/// A line as a client might send it, damaged more or less. It has no end of line in it.
fn line(rng: &mut Rng) -> Vec<u8> {
    let commands =
        ["status", "replace", "rebuild", "scrub", "slow", "corrupt", "", "fail-reads", "off", "on"];
    let values = [
        json!(null),
        json!(1),
        json!(-7.5),
        json!("50MiB/s"),
        json!([1, 2]),
        json!([9, u64::MAX]),
        json!({"a": []}),
        json!("\u{0}\u{ffff}"),
    ];
    let command = commands[rng.below(8) as usize];
    let mut request = json!({"id": rng.below(9), "node": "disk", "command": command});
    for key in ["rate", "path", "blocks", "ms", "id", "node", "mode"] {
        if rng.below(12) == 0 {
            request[key] = values[rng.below(8) as usize].clone();
        }
    }
    let mut bytes = match rng.below(20) {
        0 => (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect(),
        1 => vec![b'['; 1 + rng.below(5_000) as usize],
        _ => request.to_string().into_bytes(),
    };
    for _ in 0..rng.below(3) {
        let at = rng.below(bytes.len().max(1) as u64) as usize;
        match rng.below(3) {
            0 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
    }
    bytes.retain(|byte| *byte != b'\n');
    bytes
}

#[test]
fn every_line_is_answered_once_whatever_it_says() {
    let server = served();
    let mut nbd = Client::ready(&server.socket);
    let mut honest = ControlClient::connect(&server.control());
    let mut rng = Rng::new(41, 0);
    let (mut refused, mut done) = (0, 0);
    let mut hostile = ControlClient::connect(&server.control());
    for number in 0..LINES {
        let mut bytes = line(&mut rng);
        let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
        bytes.push(b'\n');
        hostile.stream.write_all(&bytes).expect("it reads");
        if is_blank {
            continue;
        }
        let answer = hostile.answer().expect("an answer");
        match answer["error"].as_str() {
            Some(words) => {
                refused += 1;
                assert!(words.len() < 1_000 && !words.is_empty(), "{words}");
            }
            None => done += u64::from(!answer["ok"].is_null()),
        }
        if number % 500 == 0 {
            honest.call(status(number)).expect("a status");
            assert_eq!(nbd.read(0, 4096).map(|data| data.len()), Ok(4096));
        }
    }
    assert!(refused > LINES / 2 && done > LINES / 50, "{refused}, {done}");
}

#[test]
fn pieces_and_ends_of_lines_do_not_matter() {
    let server = served();
    let mut client = ControlClient::connect(&server.control());
    for byte in format!("\r\n {}\n", status(3)).bytes() {
        client.stream.write_all(&[byte]).expect("it reads");
    }
    assert_eq!(client.answer().expect("an answer")["id"], 3);
    let many: String = (0..50).map(|id| format!("{}\n", status(id))).collect();
    client.stream.write_all(many.as_bytes()).expect("it reads");
    for id in 0..50 {
        assert_eq!(client.answer().expect("an answer")["id"], id);
    }
    // The last line may lack its end, and its answer finds who has closed one direction only.
    let last = status(7).to_string();
    client.stream.write_all(last.as_bytes()).expect("it reads");
    client.stream.shutdown(Shutdown::Write).expect("an end");
    assert_eq!(client.answer().expect("an answer")["id"], 7);
    assert_eq!(client.answer(), None, "nothing is left to say");
}

#[test]
fn a_line_without_end_is_refused_and_closed() {
    let server = served();
    let mut client = ControlClient::connect(&server.control());
    let long = vec![b'x'; REQUEST_LINE_BYTES_MAX];
    client.stream.write_all(&long).expect("it reads");
    // The server may have closed already.
    let _ = client.stream.write_all(&long);
    let words = client.answer().expect("an answer")["error"].to_string();
    assert!(words.contains("65536 bytes"), "{words}");
    // Once more: what was sent and not read makes the end of a connection a reset.
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let mut other = ControlClient::connect(&server.control());
    other.call(status(1)).expect("a status");
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let server = served();
    let mut silent = ControlClient::connect(&server.control());
    let lines = "{}\n".repeat(10_000);
    let mut sent = 0;
    // Each line is answered with more bytes than it has.
    while silent.stream.write_all(lines.as_bytes()).is_ok() {
        sent += lines.len();
        assert!(sent < 100 * ANSWER_BYTES_MAX, "it is still read");
    }
    let mut other = ControlClient::connect(&server.control());
    other.call(status(1)).expect("a status");
}

#[test]
fn newcomers_take_the_place_of_the_oldest_client() {
    let server = served();
    let mut clients: Vec<_> =
        (0..CONTROL_CLIENTS_MAX).map(|_| ControlClient::connect(&server.control())).collect();
    for (id, client) in clients.iter_mut().enumerate() {
        client.call(status(id as u64)).expect("a status");
    }
    let mut newcomer = ControlClient::connect(&server.control());
    newcomer.call(status(99)).expect("a status");
    assert_eq!(clients[0].answer(), None, "the oldest one has left");
    clients[1].call(status(1)).expect("a status");
    // However many come and go, those who are there can go on.
    for _ in 0..200 {
        drop(ControlClient::connect(&server.control()));
    }
    let mut last = ControlClient::connect(&server.control());
    last.call(status(1)).expect("a status");
}
