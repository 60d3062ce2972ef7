//! `imbrex check` and `imbrex inspect` of segments, S-blocks and write buffers, and of trees that no
//! ready-made stack is: slices of a translation, of a slice, and caches over segments and S-blocks.

use crate::served::{Place, run};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;

const BLOCK: u64 = 4096;

fn check(place: &Place) -> (i32, String) {
    let output = run(&["check", &place.data(), "--data"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.stderr.is_empty(), "{output:?}");
    (output.status.code().expect("no signal"), said)
}

fn is_clean(place: &Place, state: &str) {
    let (code, said) = check(place);
    assert!(code == 0 && said.ends_with("clean\n"), "{state}: {said}");
}

fn inspected(place: &Place) -> Value {
    let output = run(&["inspect", &place.data(), "--json", "--all"]);
    serde_json::from_slice(&output.stdout).expect("a document")
}

/// Serves the image, writes all over the first 4 MiB and kills the server.
fn write_and_kill(place: &Place, stack: &str) {
    let server = place.serve(stack);
    let mut client = server.client();
    for at in (0..4 << 20).step_by(48 << 10) {
        assert_eq!(client.write(0, at, &[7; 16 << 10]), 0);
    }
    server.kill_nine();
}

/// A disk of its own for each node that wants one.
fn disks(names: &[&str]) -> String {
    let disk = |name: &&str| {
        let drive = match *name {
            "smr" => "st5000as0011",
            "disk" => "wd1002faex",
            _ => "850evo",
        };
        format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\n\n")
    };
    names.iter().map(disk).collect()
}

/// A node with its keys, as they stand in a stack file.
fn node(name: &str, kind: &str, keys: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n{keys}\n\n")
}

fn slice(name: &str, below: &str, offset: &str, size: &str) -> String {
    let keys = format!("below = \"{below}\"\noffset = \"{offset}\"\nsize = \"{size}\"");
    node(name, "slice", &keys)
}

fn cache(name: &str, flash: &str, backing: &str) -> String {
    let below = format!("below = {{ flash = \"{flash}\", backing = \"{backing}\" }}");
    let keys = format!("{below}\ncapacity = \"1 MiB\"\npolicy = \"lru\"");
    node(name, "write-back-cache", &keys)
}

/// Two caches on slices of one translation, whose flash are slices of a slice.
fn slices() -> String {
    let translation =
        "below = \"smr\"\nbands = \"uniform:1MiB..3MiB\"\npersistent_cache = \"1MiB\"";
    [
        disks(&["smr", "ssd"]),
        node("translation", "persistent-cache", translation),
        slice("a-part", "translation", "0", "8MiB"),
        slice("b-part", "translation", "8MiB", "8MiB"),
        slice("half", "ssd", "64MiB", "128MiB"),
        slice("a-flash", "half", "0", "64MiB"),
        slice("b-flash", "half", "64MiB", "64MiB"),
        cache("a", "a-flash", "a-part"),
        cache("b", "b-flash", "b-part"),
        node("all", "span", "below = [\"a\", \"b\"]"),
    ]
    .concat()
}

/// A buffer over a cache over a translation.
fn buffered(translation: &str, kind: &str, more: &[&str]) -> String {
    let buffer = "below = { below = \"cache\", log = \"log\" }\ncapacity = \"1MiB\"";
    [
        disks(&["disk", "log", "flash"]),
        disks(more),
        node("translation", kind, translation),
        cache("cache", "flash", "translation"),
        node("buffer", "memory-buffer", buffer),
    ]
    .concat()
}

#[test]
fn trees_of_any_nodes_are_read() {
    let segments = "below = { disk = \"disk\", journal = \"slots\" }";
    let stacks = [
        (slices(), vec!["smr", "a-flash", "b-flash"]),
        (buffered(segments, "segments", &["slots"]), vec!["slots", "flash", "log"]),
        (buffered("below = \"disk\"", "s-block", &[]), vec!["disk", "flash", "log"]),
    ];
    for (nodes, members) in stacks {
        let place = Place::new();
        let file = place.path("stack.toml");
        fs::write(&file, format!("name = \"tree\"\n\n{nodes}")).expect("a file");
        let mut arguments = vec!["create", &file, "--data"];
        let data = place.data();
        arguments.push(&data);
        if !nodes.contains("\"span\"") {
            arguments.extend(["--size", "16MiB"]);
        }
        let created = run(&arguments);
        assert!(created.status.success(), "{created:?}");
        is_clean(&place, "new");
        write_and_kill(&place, &file);
        is_clean(&place, "killed");
        let document = inspected(&place);
        let found = document["members"].as_array().expect("members").iter();
        let found: Vec<&str> = found.filter_map(|member| member["name"].as_str()).collect();
        assert_eq!(found, members);
        place.serve(&file).stop();
        is_clean(&place, "closed");
    }
}

/// Changes one byte of a block of a file.
fn damage(place: &Place, disk: &str, block: u64) {
    let path = place.path(&format!("data/{disk}.img"));
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    let (file, at) = (file.expect("a member"), block * BLOCK + 100);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], at).expect("a write");
}

#[test]
fn damage_to_a_buffer_and_its_translation_is_named() {
    for (stack, part) in [("hwsr", "segments"), ("s-block", "s_blocks")] {
        let place = Place::new();
        place.create(stack, "16MiB", &["buffer.capacity=1MiB"]);
        write_and_kill(&place, stack);
        is_clean(&place, stack);
        let document = inspected(&place);
        let of = |name: &str| {
            let mut members = document["members"].as_array().expect("members").iter();
            members.find(|it| it["name"] == name).expect("a member")
        };
        let (log, disk) = (of("log"), of("disk"));
        assert!(disk[part].is_object());
        let number = |value: &Value| value.as_u64().expect("a number");
        let dirty = log["memory_buffer"]["dirty"].as_array().expect("blocks");
        assert!(!dirty.is_empty());
        // The records of the first ones are long durable; the log is a slice at the start of its disk.
        let (lba, at) = (number(&dirty[0][0]), number(&dirty[0][1]));
        damage(&place, "ssd", number(&log["superblocks"][0]["area_blocks"]) + at);
        let (code, said) = check(&place);
        let expected = format!("log: data: block {lba} in place {at}: ");
        let is_named = |line: &str| line.starts_with(&expected);
        assert!(code == 4 && said.lines().any(is_named), "{said}");

        damage(&place, "disk", 0);
        let (code, said) = check(&place);
        let expected = "disk: superblock: copy 0 at block 0: its checksum does not match its bytes";
        assert!(code == 4 && said.lines().any(|line| line == expected), "{said}");
    }
}
