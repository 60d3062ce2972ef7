//! The handshake, obligation by obligation.

use crate::client::*;
use crate::support::{EXPORT, TestServer};

const SIZE: u64 = 64 * 4096;
/// HAS_FLAGS, FLUSH, FUA, ROTATIONAL, TRIM, WRITE_ZEROES, MULTI_CONN.
const FLAGS: u16 = 0b1_0111_1101;

/// HAS_FLAGS, READ_ONLY, FLUSH, ROTATIONAL, MULTI_CONN.
const READ_ONLY_FLAGS: u16 = 0b1_0001_0111;

fn server() -> TestServer {
    TestServer::in_memory(64, 0).0
}

fn export_info() -> Vec<u8> {
    let mut info = vec![0, 0];
    info.extend(SIZE.to_be_bytes());
    info.extend(FLAGS.to_be_bytes());
    info
}

/// The connection still follows the protocol.
fn assert_in_step(client: &mut Client) {
    client.option(LIST, &[]);
    let (option, kind, data) = client.option_reply();
    assert_eq!((option, kind), (LIST, SERVER));
    assert_eq!(data[..4], (EXPORT.len() as u32).to_be_bytes());
    assert!(data[4..].starts_with(EXPORT.as_bytes()));
    assert_eq!(client.option_reply(), (LIST, ACK, vec![]));
}

#[test]
fn unknown_client_flags_end_the_session() {
    let server = server();
    for flags in [0b100, 1 << 31, u32::MAX] {
        let mut client = Client::connect(&server.socket);
        client.greet(flags);
        assert!(client.is_closed(), "flags {flags:#x}");
    }
}

#[test]
fn export_name_pads_with_zeroes_unless_told_not_to() {
    let server = server();
    for (flags, padding) in [(0b01, 124), (0b11, 0)] {
        for name in [&b""[..], EXPORT.as_bytes()] {
            let mut client = Client::connect(&server.socket);
            client.greet(flags);
            client.option(EXPORT_NAME, name);
            let answer = client.bytes(10 + padding);
            assert_eq!(answer[..10], export_info()[2..]);
            assert!(answer[10..].iter().all(|byte| *byte == 0));
            assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
        }
    }
}

#[test]
fn export_name_of_nothing_we_serve_ends_the_session() {
    let server = server();
    for name in [vec![b'x'], vec![b'x'; 4096], vec![b'x'; 4097]] {
        let mut client = Client::haggling(&server.socket);
        client.option(EXPORT_NAME, &name);
        assert!(client.is_closed(), "a name of {} bytes", name.len());
    }
}

#[test]
fn names_up_to_the_limit_are_unknown_and_longer_ones_too_big() {
    let server = server();
    let mut client = Client::haggling(&server.socket);
    for option in [INFO, GO] {
        for (bytes, answer) in
            [(1, UNKNOWN), (256, UNKNOWN), (257, UNKNOWN), (4096, UNKNOWN), (4097, TOO_BIG)]
        {
            client.option(option, &go_data(&vec![b'x'; bytes], &[3]));
            assert_eq!(client.option_reply(), (option, answer, vec![]), "{bytes} bytes");
        }
        client.option(option, &go_data(b"di\0k", &[]));
        assert_eq!(client.option_reply(), (option, INVALID, vec![]));
    }
    assert_in_step(&mut client);
}

#[test]
fn options_we_do_not_know_are_skipped_with_their_data() {
    let server = server();
    let mut client = Client::haggling(&server.socket);
    // 4 PEEK_EXPORT, 5 STARTTLS, 8 STRUCTURED_REPLY, 9 and 10 meta contexts, 11 EXTENDED_HEADERS.
    for option in [0, 4, 5, 8, 9, 10, 11, 0xffff, u32::MAX] {
        for data in [vec![], vec![0xa5; 5], option_bytes(ABORT, &[]), vec![1; 65_536]] {
            client.option(option, &data);
            assert_eq!(client.option_reply(), (option, UNSUPPORTED, vec![]));
        }
    }
    assert_in_step(&mut client);
}

#[test]
fn an_option_beyond_the_bound_is_refused_and_skipped() {
    let server = server();
    let mut client = Client::haggling(&server.socket);
    for option in [INFO, LIST, 4711] {
        client.option(option, &vec![0x55; 65_537]);
        assert_eq!(client.option_reply(), (option, TOO_BIG, vec![]));
        client.option(option, &vec![0x55; 3 << 20]);
        assert_eq!(client.option_reply(), (option, TOO_BIG, vec![]));
    }
    assert_in_step(&mut client);
}

#[test]
fn list_takes_no_data() {
    let server = server();
    let mut client = Client::haggling(&server.socket);
    client.option(LIST, b"?");
    assert_eq!(client.option_reply(), (LIST, INVALID, vec![]));
    assert_in_step(&mut client);
}

#[test]
fn abort_is_acknowledged_and_ends_the_session() {
    let server = server();
    for data in [&b""[..], b"good bye"] {
        let mut client = Client::haggling(&server.socket);
        client.option(ABORT, data);
        assert_eq!(client.option_reply(), (ABORT, ACK, vec![]));
        assert!(client.is_closed());
    }
}

#[test]
fn info_and_go_tell_the_same_and_sizes_only_when_asked() {
    let server = server();
    for name in [&b""[..], EXPORT.as_bytes()] {
        let mut client = Client::haggling(&server.socket);
        for option in [INFO, INFO, GO] {
            // 77 is not an information anybody has defined.
            client.option(option, &go_data(name, &[77, 3, 1]));
            assert_eq!(client.option_reply(), (option, INFORMATION, export_info()));
            let mut own_name = vec![0, 1];
            own_name.extend(EXPORT.as_bytes());
            assert_eq!(client.option_reply(), (option, INFORMATION, own_name));
            let mut sizes = vec![0, 3];
            sizes.extend([1u32, 4096, 32 << 20].iter().flat_map(|s| s.to_be_bytes()));
            assert_eq!(client.option_reply(), (option, INFORMATION, sizes));
            assert_eq!(client.option_reply(), (option, ACK, vec![]));
        }
        assert_eq!(client.read(SIZE - 1, 1), Ok(vec![0]), "no padding after GO");
    }
    Client::ready(&server.socket);
}

#[test]
fn malformed_go_data_is_invalid_and_leaves_the_session_usable() {
    let server = server();
    let mut client = Client::haggling(&server.socket);
    let good = go_data(EXPORT.as_bytes(), &[3]);
    for length in 0..good.len() {
        client.option(GO, &good[..length]);
        assert_eq!(client.option_reply(), (GO, INVALID, vec![]), "cut to {length} bytes");
    }
    let mut long = good.clone();
    long.push(0);
    client.option(GO, &long);
    assert_eq!(client.option_reply(), (GO, INVALID, vec![]));
    let mut huge_name = good;
    huge_name[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    client.option(GO, &huge_name);
    assert_eq!(client.option_reply(), (GO, INVALID, vec![]));
    assert_in_step(&mut client);
}

#[test]
fn a_wrong_option_magic_ends_the_session() {
    let server = server();
    let mut client = Client::haggling(&server.socket);
    let mut bytes = option_bytes(LIST, &[]);
    bytes[7] ^= 1;
    client.send(&bytes);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_only_sends_options_is_closed() {
    let server = server();
    let mut client = Client::haggling(&server.socket);
    for _ in 0..1000 {
        client.option(4711, &[]);
        assert_eq!(client.option_reply().1, UNSUPPORTED);
    }
    client.option(4711, &[]);
    assert!(client.is_closed());
}

#[test]
fn bytes_may_arrive_one_by_one() {
    let server = server();
    let mut client = Client::connect(&server.socket);
    let mut bytes = 0b11u32.to_be_bytes().to_vec();
    bytes.extend(option_bytes(GO, &go_data(EXPORT.as_bytes(), &[])));
    bytes.extend(request_bytes(READ, 0, 5, 4096, 4096));
    for byte in bytes {
        client.send(&[byte]);
    }
    client.bytes(18);
    assert_eq!(client.option_reply().1, INFORMATION);
    assert_eq!(client.option_reply().1, ACK);
    assert_eq!(client.reply(), (0, 5));
    assert_eq!(client.bytes(4096), vec![0; 4096]);
}

#[test]
fn a_client_that_says_nothing_is_closed_after_ten_seconds() {
    let server = server();
    let mut silent = Client::connect(&server.socket);
    silent.bytes(18);
    let started = std::time::Instant::now();
    assert!(silent.is_closed());
    let waited = started.elapsed().as_secs_f64();
    assert!((9.5..15.0).contains(&waited), "closed after {waited} s");
}

#[test]
fn an_export_that_is_only_read_says_so_and_offers_no_change() {
    let (server, _) = TestServer::read_only(64);
    let mut client = Client::connect(&server.socket);
    client.greet(0b11);
    client.option(EXPORT_NAME, b"");
    assert_eq!(client.bytes(10)[8..], READ_ONLY_FLAGS.to_be_bytes());
    let mut client = Client::haggling(&server.socket);
    client.option(GO, &go_data(b"", &[]));
    let (_, kind, info) = client.option_reply();
    assert_eq!(kind, INFORMATION);
    assert_eq!(info[10..], READ_ONLY_FLAGS.to_be_bytes());
}
