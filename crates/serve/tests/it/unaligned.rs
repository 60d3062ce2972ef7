//! Requests that do not begin or end with a block, alone and on top of each other.

use crate::client::*;
use crate::support::TestServer;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::rng::Rng;
use std::collections::HashMap;

const BLOCKS: u64 = 32;
const SIZE: u64 = BLOCKS * 4096;

/// What the device holds after `command`; a trim changes whole blocks only.
fn apply(model: &mut [u8], command: u16, offset: u64, data: &[u8], length: u64) {
    let range = |from: u64, to: u64| from as usize..to as usize;
    match command {
        WRITE => model[range(offset, offset + length)].copy_from_slice(data),
        WRITE_ZEROES => model[range(offset, offset + length)].fill(0),
        TRIM => {
            let (from, to) = (offset.div_ceil(4096) * 4096, (offset + length) / 4096 * 4096);
            if from < to {
                model[range(from, to)].fill(0);
            }
        }
        _ => {}
    }
}

#[test]
fn every_offset_and_length_around_a_block_edge() {
    let (server, _) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    let background: Vec<u8> = (0..SIZE).map(|i| (i % 253) as u8 + 1).collect();
    for command in [WRITE, WRITE_ZEROES, TRIM] {
        for offset in [0, 1, 4095, 4096, 4097, 8191, 12_288] {
            for length in [1, 2, 4094, 4095, 4096, 4097, 8192, 8193, 12_287, 20_000] {
                let mut model = background.clone();
                assert_eq!(client.write(0, 0, &background), 0);
                let data = vec![0xee; length as usize];
                let error = match command {
                    WRITE => client.write(0, offset, &data),
                    command => client.call(command, 0, offset, length as u32),
                };
                assert_eq!(error, 0);
                apply(&mut model, command, offset, &data, length);
                let found = client.read(0, SIZE as u32).expect("a read");
                assert!(found == model, "command {command} at {offset}, {length} bytes");
                let part = client.read(offset, length as u32).expect("a read");
                let (from, to) = (offset as usize, (offset + length) as usize);
                assert!(part == model[from..to], "a read at {offset}, {length} bytes");
            }
        }
    }
}

/// One client, many requests in flight: overlapping ones take effect in the order of arrival.
#[test]
fn overlapping_requests_of_one_client_keep_their_order() {
    let (server, _) = TestServer::in_memory(BLOCKS, 60);
    let mut client = Client::ready(&server.socket);
    let mut rng = Rng::new(20, 0);
    let mut model = vec![0; SIZE as usize];
    let (mut sent, mut answered, mut overlaps) = (0u64, 0u64, 0);
    let mut expected: HashMap<u64, Vec<u8>> = HashMap::new();
    while answered < 6_000 {
        if sent < 6_000 && sent - answered < 24 {
            // A few hot blocks, so that most requests meet another.
            let offset = rng.below(5 * 4096);
            let length = match rng.below(4) {
                0 => 4096,
                1 => 1 + rng.below(100),
                _ => 1 + rng.below(3 * 4096),
            };
            let offset = if rng.below(4) == 0 { offset / 4096 * 4096 } else { offset };
            let command = [READ, READ, WRITE, WRITE, WRITE_ZEROES, TRIM][rng.below(6) as usize];
            let data = vec![rng.next_u64() as u8; length as usize];
            client.request(command, 0, sent, offset, length as u32);
            if command == WRITE {
                client.send(&data);
            }
            if command == READ {
                let (from, to) = (offset as usize, (offset + length) as usize);
                expected.insert(sent, model[from..to].to_vec());
            }
            apply(&mut model, command, offset, &data, length);
            overlaps += u64::from(sent > answered);
            sent += 1;
            continue;
        }
        let (error, cookie) = client.reply();
        assert_eq!(error, 0);
        if let Some(expected) = expected.remove(&cookie) {
            let found = client.bytes(expected.len());
            assert!(found == expected, "request {cookie} read something else");
        }
        answered += 1;
    }
    assert!(overlaps > 3_000, "only {overlaps} requests met others");
    assert!(client.read(0, SIZE as u32) == Ok(model));
}

/// Several clients write next to each other in the same blocks: nobody's bytes get lost.
#[test]
fn neighbours_in_one_block_do_not_lose_each_others_writes() {
    const CLIENTS: u64 = 4;
    /// No divisor of the block size, so that blocks are shared in many ways.
    const STRIDE: u64 = 1_000;
    let (server, _) = TestServer::in_memory(BLOCKS, 40);
    let pieces = SIZE / STRIDE;
    let mut last: Vec<HashMap<u64, u8>> = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|own| {
                let socket = &server.socket;
                scope.spawn(move || {
                    let mut client = Client::ready(socket);
                    let mut rng = Rng::new(21, own);
                    let mut last = HashMap::new();
                    for round in 0..400u64 {
                        let mut requests = 0;
                        for _ in 0..8 {
                            let piece = rng.below(pieces / CLIENTS) * CLIENTS + own;
                            let value = rng.next_u64() as u8;
                            let zero = rng.below(5) == 0;
                            let command = if zero { WRITE_ZEROES } else { WRITE };
                            let offset = piece * STRIDE;
                            client.request(command, 0, round, offset, STRIDE as u32);
                            if !zero {
                                client.send(&[value; STRIDE as usize]);
                            }
                            last.insert(piece, if zero { 0 } else { value });
                            requests += 1;
                        }
                        for _ in 0..requests {
                            assert_eq!(client.reply(), (0, round));
                        }
                    }
                    last
                })
            })
            .collect();
        for thread in threads {
            last.push(thread.join().expect("a client"));
        }
    });
    let found = Client::ready(&server.socket).read(0, SIZE as u32).expect("a read");
    for (piece, value) in last.iter().flatten() {
        let from = (piece * STRIDE) as usize;
        let bytes = &found[from..from + STRIDE as usize];
        assert!(bytes.iter().all(|byte| byte == value), "piece {piece} lost a write");
    }
}

/// What a forced request changes at its edges is forced with it, and nothing else is written.
#[test]
fn the_edges_of_a_request_are_as_durable_as_the_request() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    for (flags, durability) in [(0, Durability::Cached), (FUA, Durability::Durable)] {
        control.lock().expect("control").operations.clear();
        assert_eq!(client.write(flags, 4095, &[7; 4098]), 0);
        assert_eq!(client.call(WRITE_ZEROES, flags, 4095, 8194), 0);
        assert_eq!(client.call(TRIM, flags, 1, 4096), 0, "no whole block");
        let control = control.lock().expect("control");
        let changes = control.operations.iter();
        let changes = changes.filter(|op| op.operation != Operation::Read);
        let mut seen: Vec<_> =
            changes.map(|op| (op.operation, op.extent.start.0, op.extent.blocks.0)).collect();
        seen.sort_by_key(|(_, start, blocks)| (*blocks == 1, *start));
        let write = Operation::Write { durability };
        let zero = Operation::Zero { durability, may_unmap: true };
        assert_eq!(
            seen,
            [(write, 0, 3), (zero, 1, 2), (write, 0, 1), (write, 3, 1)],
            "flags {flags}"
        );
    }
}
