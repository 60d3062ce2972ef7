//! At every bound clients wait, and go on when there is room again.

use crate::client::*;
use crate::support::{TestServer, eventually};
use imbrex_serve::connections::{CONNECTION_REQUESTS_MAX, REQUESTS_MAX};

const BLOCKS: u64 = 8192;

#[test]
fn more_requests_than_the_server_takes_at_once_are_all_answered() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    // Every read touches the held block, so none is answered before all have asked.
    control.lock().expect("control").held_block = Some(0);
    let each = u64::from(CONNECTION_REQUESTS_MAX) + 50;
    let mut clients: Vec<Client> = (0..6).map(|_| Client::ready(&server.socket)).collect();
    for client in &mut clients {
        // In one piece: the system keeps only so many pieces for a server that does not read.
        let requests = (0..each).map(|cookie| request_bytes(READ, 0, cookie, 0, 512));
        client.send(&requests.collect::<Vec<_>>().concat());
    }
    let arrived = || server.events.lock().expect("events").len();
    eventually("the server is full", || arrived() == REQUESTS_MAX as usize);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(arrived(), REQUESTS_MAX as usize, "it takes no more");
    control.lock().expect("control").held_block = None;
    for client in &mut clients {
        for cookie in 0..each {
            assert_eq!(client.reply(), (0, cookie));
            client.bytes(512);
        }
    }
}

#[test]
fn one_client_has_no_more_requests_in_flight_than_allowed() {
    let (server, control) = TestServer::in_memory(BLOCKS, 0);
    control.lock().expect("control").held_block = Some(0);
    let mut client = Client::ready(&server.socket);
    for cookie in 0..400 {
        client.request(READ, 0, cookie, 0, 512);
    }
    let arrived = || server.events.lock().expect("events").len();
    let allowed = CONNECTION_REQUESTS_MAX as usize;
    eventually("the client is held back", || arrived() == allowed);
    let mut other = Client::ready(&server.socket);
    assert_eq!(other.read(4096, 512), Ok(vec![0; 512]), "others are not");
    assert_eq!(arrived(), allowed + 2);
    control.lock().expect("control").held_block = None;
    for cookie in 0..400 {
        assert_eq!(client.reply(), (0, cookie));
        client.bytes(512);
    }
}

/// Ten clients ask for far more memory at once than the server has for them.
#[test]
fn large_requests_wait_for_memory_and_are_all_answered() {
    const LENGTH: u32 = 12 << 20;
    let (server, _) = TestServer::in_memory(BLOCKS, 1_000);
    std::thread::scope(|scope| {
        for index in 0..10u64 {
            let socket = &server.socket;
            scope.spawn(move || {
                let mut client = Client::ready(socket);
                let mut reader =
                    Client { stream: client.stream.try_clone().expect("a second handle") };
                let sender = std::thread::spawn(move || {
                    for cookie in 0..6 {
                        let offset = (index % 2) * u64::from(LENGTH) + 100;
                        if cookie % 2 == 0 {
                            client.request(READ, 0, cookie, offset, LENGTH);
                        } else {
                            client.request(WRITE, 0, cookie, offset, LENGTH);
                            client.send(&vec![index as u8; LENGTH as usize]);
                        }
                    }
                });
                for _ in 0..6 {
                    let (error, cookie) = reader.reply();
                    assert_eq!(error, 0);
                    if cookie % 2 == 0 {
                        let data = reader.bytes(LENGTH as usize);
                        // Where memory is short a write is carried out in parts, of whole blocks.
                        let (head, blocks) = data.split_at(4096 - 100);
                        for block in [head].into_iter().chain(blocks.chunks(4096)) {
                            let whole = block.iter().all(|byte| *byte == block[0]);
                            assert!(whole, "a torn block");
                        }
                    }
                }
                sender.join().expect("all sent");
            });
        }
    });
}
