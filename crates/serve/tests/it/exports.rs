//! Parts of a device that clients find by name.

use crate::client::*;
use crate::support::{Control, EXPORT, Served, TestDisk, TestServer, engine_over};
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_serve::connections::RequestEvent;
use std::sync::Arc;

const BLOCKS: u64 = 64;
const BLOCK: u64 = 4096;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

/// A device of 64 blocks with a window on blocks 8 to 23 and one on the last 16.
fn served() -> (TestServer, Control) {
    let control = Control::default();
    let of_disk = Arc::clone(&control);
    let server = TestServer::of(move |_| Served {
        windows: vec![("a", 8 * BLOCK, 16 * BLOCK), ("b", 48 * BLOCK, 16 * BLOCK)],
        ..Served::over(engine_over(Box::new(TestDisk::new(BLOCKS, 0, of_disk))))
    });
    (server, control)
}

/// A client of an export, and the size that it was told.
fn client_of(server: &TestServer, name: &str) -> (Client, u64) {
    let mut client = Client::haggling(&server.socket);
    client.option(GO, &go_data(name.as_bytes(), &[1]));
    let (_, kind, data) = client.option_reply();
    assert_eq!(kind, INFORMATION);
    let bytes = u64::from_be_bytes(data[2..10].try_into().expect("8 bytes"));
    let (_, kind, found) = client.option_reply();
    let canonical = if name.is_empty() { EXPORT } else { name };
    assert_eq!((kind, &found[2..]), (INFORMATION, canonical.as_bytes()));
    assert_eq!(client.option_reply().1, ACK);
    (client, bytes)
}

#[test]
fn the_device_and_its_windows_are_listed() {
    let (server, _) = served();
    let mut client = Client::haggling(&server.socket);
    client.option(LIST, &[]);
    for name in [EXPORT, "a", "b"] {
        let (_, kind, data) = client.option_reply();
        assert_eq!(kind, SERVER);
        let length = u32::from_be_bytes(data[..4].try_into().expect("4 bytes"));
        assert_eq!(&data[4..4 + length as usize], name.as_bytes());
    }
    assert_eq!(client.option_reply().1, ACK);
    client.option(GO, &go_data(b"c", &[]));
    assert_eq!(client.option_reply().1, UNKNOWN);
    client.option(INFO, &go_data(b"b", &[]));
    assert_eq!(client.option_reply().1, INFORMATION);
    assert_eq!(client.option_reply().1, ACK);
    // An answer to INFO chooses nothing.
    client.option(EXPORT_NAME, b"a");
    let answer = client.bytes(10);
    assert_eq!(answer[..8], (16 * BLOCK).to_be_bytes());
    assert_eq!(client.write(0, 0, &[3; 4096]), 0);
    let (mut whole, _) = client_of(&server, "");
    assert_eq!(whole.read(8 * BLOCK, 4096), Ok(vec![3; 4096]));
    let mut client = Client::haggling(&server.socket);
    client.option(EXPORT_NAME, b"c");
    assert!(client.is_closed(), "this option cannot say no");
}

#[test]
fn a_window_is_a_device_of_its_own() {
    let (server, _) = served();
    let (mut whole, bytes) = client_of(&server, "");
    assert_eq!(bytes, BLOCKS * BLOCK);
    for name in [EXPORT, "a", "b"] {
        let (mut client, bytes) = client_of(&server, name);
        let first = [("a", 8), ("b", 48)].iter().find(|(it, _)| *it == name);
        let offset = first.map_or(0, |(_, block)| block * BLOCK);
        // Whole blocks, and the bytes from the middle of one to that of the next.
        for (at, length) in [(2 * BLOCK, 4096), (5 * BLOCK + 100, 5000), (bytes - 7, 7)] {
            let data: Vec<u8> = (0..length).map(|i| (i + at) as u8).collect();
            assert_eq!(client.write(0, at, &data), 0);
            let there = whole.read(offset + at, length as u32);
            assert_eq!(there.as_ref(), Ok(&data), "{name} at {at}");
            assert_eq!(client.read(at, length as u32), Ok(data));
        }
        assert_eq!(client.call(TRIM, 0, 2 * BLOCK, 4096), 0);
        assert_eq!(whole.read(offset + 2 * BLOCK, 4096), Ok(vec![0; 4096]));
        assert_eq!(client.read(bytes - 4096, 4097), Err(EINVAL));
        assert_eq!(client.read(u64::MAX - 4095, 4096), Err(EINVAL));
        assert_eq!(client.write(0, bytes, &[0; 4096]), ENOSPC);
    }
    let events = server.events.lock().expect("events");
    let last = events.iter().rev().find_map(|event| match event {
        RequestEvent::Arrived(record) => Some(record.offset_bytes),
        RequestEvent::Answered { .. } => None,
    });
    assert_eq!(last, Some(50 * BLOCK), "recordings are about the whole device");
}

#[test]
fn a_flush_names_the_blocks_of_its_window() {
    let (server, control) = served();
    for (name, extent) in
        [("", Extent::EMPTY), ("a", Extent::new(8, 16)), ("b", Extent::new(48, 16))]
    {
        let (mut client, _) = client_of(&server, name);
        // A write of a part of a block holds a lock, for which a flush does not wait.
        client.request(WRITE, 0, 1, 100, 200);
        client.send(&[1; 200]);
        client.request(FLUSH, 0, 2, 0, 0);
        let mut cookies = [client.reply(), client.reply()];
        cookies.sort_by_key(|(_, cookie)| *cookie);
        assert_eq!(cookies, [(0, 1), (0, 2)]);
        let operations = &control.lock().expect("control").operations;
        let mut flushes = operations.iter().rev();
        let flush = flushes.find(|op| op.operation == Operation::Flush);
        assert_eq!(flush.expect("a flush").extent, extent, "{name}");
    }
}
