//! An image that a build before version 3 has made, and whose server was killed: it is served for ever, as it is.
//!
//! `tests/fixtures/image-2/killed.parts.xz` holds its files. For each: u32 length of the name, the name, u64 length of
//! the file, u32 number of the parts that are not holes, and for each part u64 offset, u64 length, the bytes.

use crate::serve_members::BLOCK;
use crate::served::{Place, disconnect, run};
use liblzma::read::XzDecoder;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;

const FILES: &[u8] = include_bytes!("../fixtures/image-2/killed.parts.xz");
/// What was written: first every one of these blocks, then the first ones again.
const BLOCKS: u64 = 1024;
const BLOCKS_AGAIN: u64 = 64;

fn fill_of(block: u64) -> u8 {
    match block < BLOCKS_AGAIN {
        true => block as u8 + 100,
        false => (block % 251) as u8 + 1,
    }
}

fn unpack(place: &Place) {
    fs::create_dir(place.data()).expect("a directory");
    let mut packed = XzDecoder::new(FILES);
    let mut name_bytes = [0; 4];
    loop {
        match packed.read_exact(&mut name_bytes) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return,
            result => result.expect("a file"),
        }
        let mut take = |count: usize| {
            let mut bytes = vec![0; count];
            packed.read_exact(&mut bytes).expect("bytes");
            bytes
        };
        let name = take(u32::from_le_bytes(name_bytes) as usize);
        let name = String::from_utf8(name).expect("a name");
        let number = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().expect("a number"));
        let file = File::create(place.path(&format!("data/{name}"))).expect("a file");
        file.set_len(number(take(8))).expect("a length");
        let parts = u32::from_le_bytes(take(4).try_into().expect("a number"));
        for _ in 0..parts {
            let (offset, length) = (number(take(8)), number(take(8)));
            let part = take(length as usize);
            file.write_all_at(&part, offset).expect("a part");
        }
    }
}

#[test]
fn an_image_of_version_2_is_recovered_and_served_and_stays_what_it_is() {
    let place = Place::new();
    unpack(&place);
    let description = || fs::read(place.path("data/image")).expect("a description");
    let before = description();
    assert_eq!(before[8..12], [2, 0, 0, 0], "the fixture is of version 2");
    let data = place.data();
    let check = || {
        let output = run(&["check", &data, "--data"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "clean\n");
    };
    check();
    for round in 0..2 {
        let server = place.serve("pore");
        let mut client = server.client();
        for block in 0..BLOCKS {
            let fill = if round == 1 && block == 7 {
                0xee
            } else {
                fill_of(block)
            };
            let read = client
                .read(block * BLOCK as u64, BLOCK as u32)
                .expect("its data");
            assert!(
                read.iter().all(|byte| *byte == fill),
                "round {round}, block {block}"
            );
        }
        assert_eq!(client.write(0, 7 * BLOCK as u64, &[0xee; BLOCK]), 0);
        disconnect(client);
        server.stop();
        check();
    }
    assert_eq!(description(), before);
    let output = run(&["inspect", &data, "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["image"]["version"], 2);
    assert_eq!(document["image"]["members"], serde_json::json!([]));
    assert_eq!(document["image"]["next_member"], serde_json::Value::Null);
}
