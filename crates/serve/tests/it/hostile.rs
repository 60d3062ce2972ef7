//! Bytes that no honest client sends: the server neither falls, nor grows, nor neglects others.

use crate::client::*;
use crate::support::{TestServer, start_program};
use imbrex_core::rng::Rng;
use imbrex_serve::nbd::handshake::{Export, Handshake, Next, OPTION_BYTES_MAX};
use imbrex_serve::nbd::transmission::{REQUEST_BYTES, RequestHeader};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const BLOCKS: u64 = 256;
const SESSIONS: u64 = 3_000;
/// The buffers of requests in flight, those kept for reuse, and the input of 64 connections.
const RESIDENT_BYTES_MAX: u64 = 256 << 20;

/// A session as a client might lead it, up to and into the transmission phase.
fn plausible_session(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = 0b11u32.to_be_bytes().to_vec();
    for _ in 0..rng.below(4) {
        let option = rng.below(12) as u32;
        let data: Vec<u8> = (0..rng.below(40)).map(|_| rng.next_u64() as u8).collect();
        bytes.extend(option_bytes(option, &data));
    }
    if rng.below(10) > 0 {
        bytes.extend(option_bytes(GO, &go_data(b"", &[3])));
    }
    for cookie in 0..rng.below(12) {
        let command = rng.below(8) as u16;
        let length = match rng.below(4) {
            0 => rng.next_u64() as u32,
            1 => rng.below(3) as u32 * 4096,
            _ => rng.below(20_000) as u32,
        };
        let offset = if rng.below(8) == 0 { rng.next_u64() } else { rng.below(BLOCKS * 4096) };
        bytes.extend(request_bytes(command, rng.below(3) as u16, cookie, offset, length));
        if command == WRITE {
            let payload = rng.below(u64::from(length.min(20_000)) + 2);
            bytes.extend((0..payload).map(|i| i as u8));
        }
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.below(4) {
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(4) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next_u64() as u8,
            2 if bytes.len() > 1 => {
                bytes.remove(at);
            }
            _ => bytes.truncate(at.max(1)),
        }
    }
}

fn peak_resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size") * 1024
}

#[test]
fn random_sessions_leave_the_server_well() {
    let (server, _) = TestServer::in_memory(BLOCKS, 20);
    // The last block but one belongs to an honest client; the others write where they like, but
    // a damaged request may hit anything, so the honest one only checks that it is answered.
    let mut honest = Client::ready(&server.socket);
    let mut rng = Rng::new(22, 0);
    let mut answered_sessions = 0;
    for session in 0..SESSIONS {
        let mut bytes = plausible_session(&mut rng);
        damage(&mut bytes, &mut rng);
        let mut client = Client::connect(&server.socket);
        let patience = Some(Duration::from_millis(2));
        client.stream.set_read_timeout(patience).expect("a timeout");
        // The server may close in the middle.
        let _ = client.stream.write_all(&bytes);
        let mut answer = vec![0; 4096];
        let mut answered = 0;
        while let Ok(count @ 1..) = client.stream.read(&mut answer) {
            answered += count;
        }
        answered_sessions += u64::from(answered > 18);
        if session % 16 == 0 {
            let started = Instant::now();
            assert_eq!(honest.read(0, 4096).map(|data| data.len()), Ok(4096));
            assert!(started.elapsed() < Duration::from_secs(1), "an honest client waited");
        }
    }
    assert!(answered_sessions > SESSIONS / 3, "the sessions were not plausible");
}

#[test]
fn clients_that_do_not_read_do_not_make_the_server_grow() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = start_program(dir.path(), 32 << 20);
    let socket = dir.path().join("s");
    let mut silent = Vec::new();
    for _ in 0..40 {
        let mut client = Client::ready(&socket);
        client.stream.set_nonblocking(true).expect("a mode");
        // 16 MiB each, asked for again and again, never read.
        for cookie in 0..1_000 {
            let request = request_bytes(READ, 0, cookie, 4096 * (cookie % 3), 16 << 20);
            if client.stream.write_all(&request).is_err() {
                break;
            }
        }
        silent.push(client);
    }
    // Haggling without reading must be bounded too.
    for _ in 0..10 {
        let client = Client::connect(&socket);
        client.stream.set_nonblocking(true).expect("a mode");
        let mut stream = &client.stream;
        let _ = stream.write_all(&0b11u32.to_be_bytes());
        for _ in 0..900 {
            if stream.write_all(&option_bytes(LIST, &[])).is_err() {
                break;
            }
        }
        silent.push(client);
    }
    // Those who hold the memory are given ten seconds; then others get it.
    let mut honest = Client::ready(&socket);
    let started = Instant::now();
    assert_eq!(honest.read(4096, 1 << 20).map(|data| data.len()), Ok(1 << 20));
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(15), "an honest client waited {waited:?}");
    let resident = peak_resident_bytes(program.0.id());
    assert!(resident < RESIDENT_BYTES_MAX, "{resident} bytes resident");
    assert!(resident > 64 << 20, "{resident} bytes: the bound was not tried");
}

#[test]
fn one_connection_too_many_is_closed_and_the_others_live() {
    let (server, _) = TestServer::in_memory(BLOCKS, 0);
    let mut clients: Vec<Client> = (0..imbrex_serve::connections::CONNECTIONS_MAX)
        .map(|_| Client::ready(&server.socket))
        .collect();
    let mut surplus = Client::connect(&server.socket);
    assert!(surplus.is_closed());
    for client in &mut clients {
        assert_eq!(client.read(0, 16), Ok(vec![0; 16]));
    }
    clients.pop();
    let mut replacement = None;
    crate::support::eventually("a place is free again", || {
        let mut client = Client::connect(&server.socket);
        let mut greeting = [0; 18];
        let greeted = client.stream.read_exact(&mut greeting).is_ok();
        replacement = greeted.then_some(client);
        greeted
    });
    assert!(replacement.is_some());
}

/// Feeds a handshake in pieces of random length and returns all it answers and how it ends.
fn haggle(bytes: &[u8], mut piece: impl FnMut() -> usize) -> (Vec<u8>, Next, usize) {
    let mut handshake = Handshake::new(
        [Export {
            name: "disk".into(),
            description: String::new(),
            offset: 0,
            bytes: 4096,
            is_read_only: false,
        }]
        .into(),
    );
    let (mut output, mut start, mut end) = (Vec::new(), 0, 0);
    loop {
        let (consumed, next) = handshake.advance(&bytes[start..end], &mut output);
        assert!(consumed <= end - start, "it took more than it was given");
        start += consumed;
        if next != Next::Input {
            return (output, next, start);
        }
        if consumed == 0 {
            assert!(end - start < OPTION_BYTES_MAX as usize + 16, "no message is longer");
            if end == bytes.len() {
                return (output, next, start);
            }
            end = bytes.len().min(end + piece());
        }
    }
}

#[test]
fn a_handshake_is_the_same_in_whatever_pieces_it_arrives() {
    let mut rng = Rng::new(23, 0);
    let mut ends = [0u32; 3];
    for _ in 0..100_000 {
        let mut bytes = plausible_session(&mut rng);
        damage(&mut bytes, &mut rng);
        let whole = haggle(&bytes, || bytes.len());
        let pieces = haggle(&bytes, || 1 + rng.below(30) as usize);
        assert_eq!(whole, pieces);
        ends[whole.1 as usize] += 1;
        // What follows a handshake is judged without overflow or panic, whatever it is.
        for request in bytes[whole.2..].chunks_exact(REQUEST_BYTES) {
            if let Some(header) = RequestHeader::decode(request)
                && let Ok(command) = header.command(BLOCKS * 4096)
            {
                let text = format!("{command:?}");
                let end = header.offset.saturating_add(u64::from(header.length));
                let anywhere = ["Flush", "Disconnect"].contains(&text.as_str());
                assert!(anywhere || end <= BLOCKS * 4096, "{text} up to {end}");
            }
        }
    }
    assert!(ends.iter().all(|count| *count > 1_000), "ends: {ends:?}");
}
