//! Requests and replies, obligation by obligation.

use crate::client::*;
use crate::support::{TestServer, eventually};
use imbrex_core::error::IoError;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::units::Lba;
use imbrex_serve::connections::RequestEvent;
use std::net::Shutdown;

const BLOCKS: u64 = 1024;
const SIZE: u64 = BLOCKS * 4096;

const EPERM: u32 = 1;
const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const ESHUTDOWN: u32 = 108;

#[test]
fn what_was_written_is_read() {
    let (server, _) = TestServer::in_memory(BLOCKS, 100);
    let mut client = Client::ready(&server.socket);
    let data: Vec<u8> = (0..65_536u32).map(|i| (i * 7 % 251) as u8).collect();
    assert_eq!(client.write(0, 8192, &data), 0);
    assert_eq!(client.read(8192, 65_536), Ok(data.clone()));
    assert_eq!(client.call(TRIM, 0, 8192, 4096), 0);
    assert_eq!(client.call(WRITE_ZEROES, NO_HOLE, 16_384, 8192), 0);
    assert_eq!(client.read(8192, 4096), Ok(vec![0; 4096]));
    assert_eq!(client.read(12_288, 4096), Ok(data[4096..8192].to_vec()));
    assert_eq!(client.read(16_384, 8192), Ok(vec![0; 8192]));
    assert_eq!(client.read(24_576, 4096), Ok(data[16_384..20_480].to_vec()));
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
}

#[test]
fn commands_become_operations_with_their_durability() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    client.write(0, 0, &[1; 4096]);
    client.write(FUA, 0, &[1; 4096]);
    for flags in [0, FUA] {
        assert_eq!(client.call(TRIM, flags, 0, 4096), 0);
        assert_eq!(client.call(WRITE_ZEROES, flags, 0, 4096), 0);
        assert_eq!(client.call(WRITE_ZEROES, flags | NO_HOLE, 0, 4096), 0);
        assert_eq!(client.call(FLUSH, flags, 0, 0), 0);
    }
    assert_eq!(client.call(READ, FUA, 0, 4096), 0);
    client.bytes(4096);
    let zero = |durability, may_unmap| Operation::Zero { durability, may_unmap };
    let (cached, durable) = (Durability::Cached, Durability::Durable);
    let operations = &control.lock().expect("control").operations;
    let seen: Vec<Operation> = operations.iter().map(|op| op.operation).collect();
    assert_eq!(
        seen,
        [
            Operation::WRITE,
            Operation::WRITE_DURABLE,
            zero(cached, true),
            zero(cached, true),
            zero(cached, false),
            Operation::Flush,
            zero(durable, true),
            zero(durable, true),
            zero(durable, false),
            Operation::Flush,
            Operation::Read,
        ]
    );
}

#[test]
fn requests_past_the_end_change_nothing() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    for (offset, length) in [(SIZE, 512), (SIZE - 512, 1024), (u64::MAX - 100, 512), (u64::MAX, 1)]
    {
        assert_eq!(client.read(offset, length), Err(EINVAL));
        assert_eq!(client.write(0, offset, &vec![1; length as usize]), ENOSPC);
        assert_eq!(client.call(TRIM, 0, offset, length), EINVAL);
        assert_eq!(client.call(WRITE_ZEROES, 0, offset, length), ENOSPC);
    }
    assert_eq!(client.call(TRIM, 0, 0, u32::MAX), EINVAL);
    assert_eq!(control.lock().expect("control").operations.len(), 0);
    assert_eq!(client.read(SIZE - 512, 512), Ok(vec![0; 512]));
}

#[test]
fn commands_and_flags_nobody_offered_are_invalid() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    // 7 is BLOCK_STATUS, which needs structured replies.
    for command in [CACHE, 7, 8, 4711, u16::MAX] {
        assert_eq!(client.call(command, 0, 0, 4096), EINVAL, "command {command}");
    }
    for flag in (1..16).map(|bit| 1 << bit) {
        assert_eq!(client.call(READ, flag, 0, 512), EINVAL, "flag {flag:#x}");
        assert_eq!(client.write(flag, 0, &[1; 512]), EINVAL, "flag {flag:#x}");
    }
    assert_eq!(control.lock().expect("control").operations.len(), 0);
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
}

#[test]
fn requests_of_no_bytes_succeed() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    for command in [READ, WRITE, TRIM, WRITE_ZEROES] {
        assert_eq!(client.call(command, 0, 0, 0), 0);
        assert_eq!(client.call(command, 0, 100, 0), 0);
        assert_eq!(client.call(command, 0, SIZE, 0), 0);
    }
    assert_eq!(control.lock().expect("control").operations.len(), 0);
}

#[test]
fn payloads_beyond_the_limit_are_refused() {
    let (server, _) = TestServer::in_memory(3 * 8192, 0);
    let mut client = Client::ready(&server.socket);
    assert_eq!(client.read(0, (32 << 20) + 1), Err(EINVAL));
    assert_eq!(client.read(0, 32 << 20).map(|data| data.len()), Ok(32 << 20));
    assert_eq!(client.write(0, 4096, &vec![7; 32 << 20]), 0);
    assert_eq!(client.read((32 << 20) + 4095, 2), Ok(vec![7, 0]));
    client.request(WRITE, 0, 1, 0, (32 << 20) + 1);
    assert!(client.is_closed(), "its payload cannot be told from requests");
}

#[test]
fn a_request_that_is_none_ends_the_session() {
    let (server, _) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    let mut bytes = request_bytes(READ, 0, 1, 0, 512);
    bytes[3] ^= 0x80;
    client.send(&bytes);
    assert!(client.is_closed());
}

#[test]
fn a_fast_request_overtakes_a_slow_one() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    control.lock().expect("control").held_block = Some(3);
    client.request(READ, 0, 0xdead_beef_0000_0001, 3 * 4096, 4096);
    client.request(READ, 0, 0xffff_ffff_ffff_ffff, 5 * 4096, 512);
    assert_eq!(client.reply(), (0, 0xffff_ffff_ffff_ffff));
    client.bytes(512);
    control.lock().expect("control").held_block = None;
    assert_eq!(client.reply(), (0, 0xdead_beef_0000_0001));
    client.bytes(4096);
}

#[test]
fn errors_of_the_disk_reach_the_client_and_nobody_else() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    for (error, errno) in [
        (IoError::Medium, EIO),
        (IoError::NoSpace, ENOSPC),
        (IoError::NotPermitted, EPERM),
        (IoError::Invalid, EINVAL),
        (IoError::ShutDown, ESHUTDOWN),
    ] {
        control.lock().expect("control").failing = Some((9, error));
        assert_eq!(client.read(9 * 4096, 4096), Err(errno));
        assert_eq!(client.write(0, 9 * 4096, &[1; 4096]), errno);
        assert_eq!(client.call(WRITE_ZEROES, 0, 9 * 4096, 4096), errno);
        assert_eq!(client.write(0, 9 * 4096 + 1, &[1; 6]), errno, "at its edge read");
        assert_eq!(client.write(0, 10 * 4096, &[2; 4096]), 0);
        control.lock().expect("control").failing = None;
        assert_eq!(client.read(9 * 4096, 4096), Ok(vec![0; 4096]));
    }
}

#[test]
fn a_flush_on_one_connection_covers_the_writes_of_another() {
    let (server, control) = TestServer::in_memory(BLOCKS, 200);
    let mut clients: Vec<Client> = (0..4).map(|_| Client::ready(&server.socket)).collect();
    for round in 0..20u64 {
        for (index, client) in clients.iter_mut().enumerate() {
            let offset = (round * 4 + index as u64) * 4096;
            assert_eq!(client.write(0, offset, &[round as u8; 4096]), 0);
        }
        assert_eq!(clients[round as usize % 4].call(FLUSH, 0, 0, 0), 0);
        let control = control.lock().expect("control");
        assert_eq!(control.flushes, round + 1);
        let last = control.operations.last().expect("operations");
        assert_eq!(last.operation, Operation::Flush, "after all writes");
    }
}

#[test]
fn disconnect_answers_what_is_outstanding() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    control.lock().expect("control").held_block = Some(0);
    client.request(READ, 0, 1, 0, 4096);
    client.request(DISCONNECT, 0, 2, 0, 0);
    client.request(READ, 0, 3, 4096, 4096);
    eventually("the read reaches the disk", || {
        !control.lock().expect("control").operations.is_empty()
    });
    control.lock().expect("control").held_block = None;
    assert_eq!(client.reply(), (0, 1));
    client.bytes(4096);
    assert!(client.is_closed(), "nothing after a disconnect is answered");
}

#[test]
fn a_client_that_stops_sending_still_gets_its_answers() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    control.lock().expect("control").held_block = Some(0);
    client.request(READ, 0, 1, 0, 4096);
    client.stream.shutdown(Shutdown::Write).expect("half a shutdown");
    std::thread::sleep(std::time::Duration::from_millis(50));
    control.lock().expect("control").held_block = None;
    assert_eq!(client.reply(), (0, 1));
    client.bytes(4096);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_leaves_early_disturbs_nobody() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    control.lock().expect("control").held_block = Some(0);
    for _ in 0..20 {
        let mut client = Client::ready(&server.socket);
        client.request(READ, 0, 1, 0, 8192);
        client.request(WRITE, 0, 1, 0, 8192);
        client.send(&[1; 5000]);
    }
    let mut client = Client::ready(&server.socket);
    client.request(READ, 0, 9, 0, 512);
    control.lock().expect("control").held_block = None;
    assert_eq!(client.reply(), (0, 9));
    assert_eq!(client.bytes(512), vec![0; 512], "no half write was carried out");
}

#[test]
fn the_observer_sees_requests_as_the_client_stated_them() {
    let (server, _) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    assert_eq!(client.write(FUA, 1000, &[1; 77]), 0);
    assert_eq!(client.call(FLUSH, 0, 12_345, 99), 0);
    assert_eq!(client.read(SIZE, 1), Err(EINVAL));
    assert_eq!(client.read(5, 9), Ok(vec![0; 9]));
    let events = server.events.lock().expect("events").clone();
    let mut arrived = Vec::new();
    let mut answered = Vec::new();
    for event in events {
        match event {
            RequestEvent::Arrived(record) => arrived.push(record),
            RequestEvent::Answered { record, latency, result } => {
                assert_eq!(result, Ok(()));
                assert!(latency.0 > 0 && latency.0 < 5_000_000_000, "{latency:?}");
                answered.push(record);
            }
        }
    }
    assert_eq!(arrived, answered);
    let stated: Vec<_> = arrived
        .iter()
        .map(|record| (record.operation, record.offset_bytes, record.length_bytes))
        .collect();
    assert_eq!(
        stated,
        [(Operation::WRITE_DURABLE, 1000, 77), (Operation::Flush, 0, 0), (Operation::Read, 5, 9),]
    );
    assert!(arrived.is_sorted_by_key(|record| record.arrived));
}

#[test]
fn a_client_with_a_full_queue_does_not_keep_others_waiting() {
    let (server, _) = TestServer::in_memory(BLOCKS, 50);
    let socket = server.socket.clone();
    let greedy = std::thread::spawn(move || {
        let mut client = Client::ready(&socket);
        let requests: Vec<u8> = (0..2_000u64)
            .flat_map(|i| request_bytes(READ, 0, i, (i % BLOCKS) * 4096, 4096))
            .collect();
        let mut reader = Client { stream: client.stream.try_clone().expect("a second handle") };
        let sender = std::thread::spawn(move || {
            for _ in 0..10 {
                client.send(&requests);
            }
        });
        for _ in 0..20_000 {
            assert_eq!(reader.reply().0, 0);
            reader.bytes(4096);
        }
        sender.join().expect("all sent");
    });
    let mut client = Client::ready(&server.socket);
    let mut rounds = 0;
    while !greedy.is_finished() {
        let started = std::time::Instant::now();
        assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
        assert!(started.elapsed().as_millis() < 1_000, "kept waiting");
        rounds += 1;
    }
    greedy.join().expect("the greedy client is served too");
    assert!(rounds > 20, "only {rounds} requests beside the greedy client");
}

#[test]
fn operations_stay_inside_the_blocks_a_request_touches() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    let mut client = Client::ready(&server.socket);
    assert_eq!(client.call(TRIM, 0, 100, 8192), 0);
    assert_eq!(client.call(TRIM, 0, 100, 4096), 0, "covers no whole block");
    let operations = &control.lock().expect("control").operations;
    let extents: Vec<_> = operations.iter().map(|op| op.extent).collect();
    assert_eq!(extents.len(), 1);
    assert_eq!((extents[0].start, extents[0].blocks.0), (Lba(1), 1));
}

#[test]
fn an_export_that_is_only_read_refuses_every_change_before_the_stack_sees_it() {
    /// EPERM.
    const NOT_PERMITTED: u32 = 1;
    let (server, control) = TestServer::read_only(64);
    let mut client = Client::ready(&server.socket);
    let device = 64 * 4096;
    for offset in [0, 4096, 100, device - 4096, device, u64::MAX - 4095] {
        for flags in [0, FUA] {
            assert_eq!(client.write(flags, offset, &[1; 4096]), NOT_PERMITTED);
            assert_eq!(client.call(TRIM, flags, offset, 4096), NOT_PERMITTED);
            assert_eq!(client.call(WRITE_ZEROES, flags, offset, 4096), NOT_PERMITTED);
            assert_eq!(client.call(FLUSH, flags, 0, 0), 0);
        }
    }
    assert_eq!(client.write(0, 0, &[1; 1 << 20]), NOT_PERMITTED);
    assert_eq!(client.read(4096, 8192), Ok(vec![0; 8192]));
    let control = control.lock().expect("control");
    let seen = |operation: &Operation| matches!(operation, Operation::Read | Operation::Flush);
    assert!(control.operations.iter().all(|op| seen(&op.operation)));
    assert!(control.operations.iter().any(|op| op.operation == Operation::Read));
}
