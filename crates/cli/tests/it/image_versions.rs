//! Images that builds have made when version 2, 3 and 4 were the newest, and whose servers were killed. One of version 2
//! is refused, as it is; one of version 3 gets labels.
//!
//! `tests/fixtures/image-N/killed.parts.xz` holds the files of each, as `tests/e2e/_image_fixtures.py` packs them. For each: u32
//! length of the name, the name, u64 length of the file, u32 number of the parts that are not holes, and for each part u64
//! offset, u64 length, the bytes.

use crate::serve_members::BLOCK;
use crate::served::{Place, disconnect, run};
use liblzma::read::XzDecoder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;

const VERSION_2: &[u8] = include_bytes!("../fixtures/image-2/killed.parts.xz");
const VERSION_3: &[u8] = include_bytes!("../fixtures/image-3/killed.parts.xz");
const VERSION_4: &[u8] = include_bytes!("../fixtures/image-4/killed.parts.xz");
/// What was written: first every one of these blocks, then the first ones again.
const BLOCKS: u64 = 1024;
const BLOCKS_AGAIN: u64 = 64;

fn fill_of(block: u64) -> u8 {
    match block < BLOCKS_AGAIN {
        true => block as u8 + 100,
        false => (block % 251) as u8 + 1,
    }
}

fn unpack(place: &Place, files: &[u8]) {
    fs::create_dir(place.data()).expect("a directory");
    let mut packed = XzDecoder::new(files);
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

fn description(place: &Place) -> Vec<u8> {
    fs::read(place.path("data/image")).expect("a description")
}

/// Every file of the image with its bytes.
fn files(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(place.data()).expect("a directory");
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("text");
        (name, fs::read(entry.path()).expect("a file"))
    };
    entries.map(|entry| file(entry.expect("an entry"))).collect()
}

fn check(place: &Place) {
    let output = run(&["check", &place.data(), "--data"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "clean\n");
}

/// What `inspect` says that the image is made of.
fn inspected(place: &Place) -> serde_json::Value {
    let output = run(&["inspect", &place.data(), "--json"]);
    let mut document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["image"].take()
}

/// Serves the image twice: all blocks are right, and one that is written stays. What each server has said.
fn serve_twice(place: &Place) -> [String; 2] {
    check(place);
    [0, 1].map(|round| {
        let server = place.serve("pore");
        let said = server.said();
        let mut client = server.client();
        for block in 0..BLOCKS {
            let fill = match round == 1 && block == 7 {
                true => 0xee,
                false => fill_of(block),
            };
            let read = client.read(block * BLOCK as u64, BLOCK as u32).expect("its data");
            assert!(read.iter().all(|byte| *byte == fill), "round {round}, block {block}");
        }
        assert_eq!(client.write(0, 7 * BLOCK as u64, &[0xee; BLOCK]), 0);
        disconnect(client);
        server.stop();
        check(place);
        said
    })
}

#[test]
fn an_image_of_version_2_is_refused_with_the_build_that_serves_it_and_stays_what_it_is() {
    let place = Place::new();
    unpack(&place, VERSION_2);
    let before = files(&place);
    assert_eq!(description(&place)[8..12], [2, 0, 0, 0], "the fixture is of version 2");
    let expected = format!(
        "imbrex: {} has format version 2; accepted: versions 3 and 4: the build of commit 66affc8 is the last one \
         that serves version 2; copy the data with that one, and create the image anew",
        place.path("data/image")
    );
    let (data, socket) = (place.data(), place.socket());
    let commands: [&[&str]; 7] = [
        &["serve", "pore", "--data", &data, "--socket", &socket],
        &["serve", "pore", "--data", &data, "--socket", &socket, "--read-only"],
        &["serve", "pore", "--data", &data, "--socket", &socket, "--read-only", "--force"],
        &["check", &data],
        &["check", &data, "--repair"],
        &["inspect", &data],
        &["inspect", &data, "--json"],
    ];
    for command in commands {
        let output = run(command);
        assert!(!output.status.success(), "{command:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).trim_end(), expected, "{command:?}");
        assert_eq!(output.stdout, b"", "{command:?}");
    }
    assert!(files(&place) == before, "something has changed");
}

/// The members of both later fixtures, and their disks when these have labels.
fn check_lists(image: &serde_json::Value) {
    let members = serde_json::json!([
        { "number": 1, "node": "translation", "port": "below" },
        { "number": 2, "node": "cache", "port": "flash" },
        { "number": 3, "node": "cache", "port": "backing" },
    ]);
    assert_eq!(image["members"], members);
    assert_eq!(image["next_member"], 4);
    if image["version"] == 4 {
        let labels = serde_json::json!([
            { "number": 1, "node": "smr", "is_labelled": true },
            { "number": 2, "node": "ssd", "is_labelled": true },
        ]);
        assert_eq!(image["labels"], labels);
        assert_eq!(image["next_disk"], 3);
    }
}

#[test]
fn an_image_of_version_3_is_recovered_and_gets_labels() {
    let place = Place::new();
    unpack(&place, VERSION_3);
    let length = |disk: &str| fs::metadata(place.path(disk)).expect("a disk").len();
    let before = ["data/smr.img", "data/ssd.img"].map(length);
    assert_eq!(description(&place)[8..12], [3, 0, 0, 0], "the fixture is of version 3");
    let image = inspected(&place);
    assert_eq!(image["version"], 3);
    check_lists(&image);
    let [first, second] = serve_twice(&place);
    let news = "its disks have labels from now on (format version 4)";
    assert!(first.contains(news), "{first}");
    assert!(!second.contains("label"), "{second}");
    let image = inspected(&place);
    assert_eq!(image["version"], 4);
    check_lists(&image);
    let after = ["data/smr.img", "data/ssd.img"].map(length);
    assert_eq!(after, before.map(|bytes| bytes + 2 * BLOCK as u64));
}

#[test]
fn an_image_of_version_4_is_recovered_by_its_labels() {
    let place = Place::new();
    unpack(&place, VERSION_4);
    let before = description(&place);
    assert_eq!(before[8..12], [4, 0, 0, 0], "the fixture is of version 4");
    let image = inspected(&place);
    assert_eq!(image["version"], 4);
    check_lists(&image);
    // The labels of the fixture are what is compared: an older copy of one disk is one.
    let (disk, old) = (place.path("data/ssd.img"), place.path("old"));
    fs::copy(&disk, &old).expect("a copy");
    for said in serve_twice(&place) {
        assert!(!said.contains("label"), "{said}");
    }
    assert_eq!(description(&place), before);
    fs::copy(&old, &disk).expect("a copy");
    let said = place.refused("pore");
    assert!(said.contains("it is an older copy of itself"), "{said}");
}
