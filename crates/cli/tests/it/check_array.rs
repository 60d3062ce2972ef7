//! `imbrex check` and `imbrex inspect` of a durable array of copies: what its members lack is told in
//! notes, and damage names the member.

use crate::served::{Place, run};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;
/// Blocks of a region: its table has one page.
const REGION: u64 = 256;

fn array() -> Place {
    array_with(1)
}

/// Two members, and one spare at most.
pub fn array_with(spares: usize) -> Place {
    let place = Place::new();
    let disk = "[[node]]\nname = \"disk-{}\"\nkind = \"disk\"\ndrive = \"wd1002faex\"\n";
    let array = "[[node]]\nname = \"array\"\nkind = \"raid1\"\nbelow = [\"disk-0\", \"disk-1\"]\n";
    let spare = ["", "spares = [\"disk-2\"]\n"][spares];
    let disks = format!("name = \"copies\"\n{disk}times = {}\n", 2 + spares);
    let text = format!("{disks}{array}{spare}region = \"1 MiB\"\n");
    fs::write(stack(&place), text).expect("a file");
    place.create(&stack(&place), "16MiB", &[]);
    place
}

pub fn stack(place: &Place) -> String {
    place.path("copies.toml")
}

pub fn file(place: &Place, disk: usize) -> String {
    place.path(&format!("data/disk-{disk}.img"))
}

/// Serves the array and writes the same all over some blocks, in order or until the server is killed.
fn write(place: &Place, blocks: std::ops::Range<u64>, fill: u8, kill: bool) {
    let server = place.serve(&stack(place));
    let mut client = server.client();
    for block in blocks.step_by(4) {
        assert_eq!(client.write(0, block * BLOCK, &[fill; 4 * BLOCK as usize]), 0);
    }
    match kill {
        true => server.kill_nine(),
        false => drop(server.stop()),
    }
}

fn check(place: &Place) -> (i32, String) {
    let output = run(&["check", &place.data(), "--data"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.stderr.is_empty(), "{output:?}");
    (output.status.code().expect("no signal"), said)
}

pub fn is_clean(place: &Place) -> String {
    let (code, said) = check(place);
    assert!(code == 0 && said.ends_with("clean\n"), "{said}");
    said
}

fn is_damaged(place: &Place, expected: &str) {
    let (code, said) = check(place);
    let is_named = said.lines().any(|line| line.starts_with(expected));
    assert!(code == 4 && is_named, "{expected}: {said}");
    assert!(said.ends_with("1 damaged\n"), "{said}");
}

pub fn inspected(place: &Place) -> Value {
    let output = run(&["inspect", &place.data(), "--json", "--all"]);
    serde_json::from_slice(&output.stdout).expect("a document")
}

/// What the journal of the array says, and the block of a member in which its first row lies.
pub fn array_of(document: &Value) -> (Value, u64) {
    let mut members = document["members"].as_array().expect("members").iter();
    let base = members.find(|it| it["array"].is_object()).expect("an array");
    let area = base["superblocks"][0]["area_blocks"].as_u64().expect("a number");
    (base["array"].clone(), area)
}

pub fn flip(path: &str, block: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("a member");
    let at = block * BLOCK + 100;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], at).expect("a write");
}

/// What the second reader of the formats makes of a member.
fn second_reader(path: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/format_reader.py");
    let output = Command::new("python3").arg("-B").arg(script).args(["array", path]).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a document")
}

/// Both readers say the same of the members, of regions and of rows.
fn readers_agree(place: &Place, disk: usize) {
    let (ours, _) = array_of(&inspected(place));
    let theirs = &second_reader(&file(place, disk))["array"];
    for name in ["regions", "marked", "unreadable", "missed"] {
        assert_eq!(ours[name], theirs[name], "{name}");
    }
    let both = ours["members"].as_array().into_iter().flatten();
    for (own, other) in both.zip(theirs["members"].as_array().expect("members")) {
        for name in ["port", "number", "state", "rebuilt_to", "is_partial"] {
            assert_eq!(own[name], other[name], "{name}");
        }
    }
}

#[test]
fn an_array_in_order_and_one_whose_server_was_killed_are_clean() {
    let place = array();
    write(&place, 0..1024, 7, false);
    is_clean(&place);
    readers_agree(&place, 0);
    let (found, _) = array_of(&inspected(&place));
    assert_eq!((&found["marked"], &found["members"][1]["state"]), (&json!([]), &json!("in")));
    write(&place, 512..1024, 8, true);
    let said = is_clean(&place);
    let marked = "disk-0: 2 of 16 regions of the array are marked: members may differ";
    assert!(said.lines().any(|line| line == marked), "{said}");
    readers_agree(&place, 1);
    let (found, _) = array_of(&inspected(&place));
    assert_eq!((&found["marked"], &found["regions"]), (&json!([2, 3]), &json!(16)));
    let text = run(&["inspect", &place.data()]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("array: 2 of 16 regions marked, 0 unreadable rows"), "{text}");
    assert!(text.contains("spare `disk-2`"), "{text}");
}

#[test]
fn damage_to_blocks_and_to_pages_names_the_member() {
    let place = array();
    write(&place, 0..1024, 7, false);
    let (found, area) = array_of(&inspected(&place));
    let first = area + found["table_rows"].as_u64().expect("a number");
    flip(&file(&place, 1), first + 300);
    let at = first + 300;
    let expected = format!("disk-1: data: block 300, at block {at} of the member: its data does");
    is_damaged(&place, &expected);
    flip(&file(&place, 1), first + 300);
    is_clean(&place);
    flip(&file(&place, 0), area + 1);
    let problem = "page 0 of its checksums: its checksum does not match its bytes";
    is_damaged(&place, &format!("disk-0: table of checksums: region 1: {problem}"));
    flip(&file(&place, 0), area + 1);
    // A block of which nobody knows what it must be differs.
    flip(&file(&place, 1), first + 8 * REGION);
    let at = first + 8 * REGION;
    let problem =
        format!("block 2048, at block {at} of the member: it differs from that of disk-0");
    is_damaged(&place, &format!("disk-1: data: {problem}"));
    flip(&file(&place, 1), first + 8 * REGION);
    flip(&file(&place, 2), 0);
    is_damaged(&place, "disk-2: superblock: copy 0 at block 0: its checksum does not match");
}

#[test]
fn a_member_that_comes_back_keeps_what_it_has_not_missed() {
    let place = array_with(0);
    write(&place, 0..1024, 7, false);
    let away = place.path("away");
    fs::rename(file(&place, 1), &away).expect("a file");
    write(&place, 0..256, 9, false);
    let said = is_clean(&place);
    let note =
        "disk-1: member 1 of the array: it is out, and gets what it has missed when it is back";
    assert!(said.lines().any(|line| line == note), "{said}");
    write(&place, 600..700, 9, false);
    readers_agree(&place, 0);
    let (found, _) = array_of(&inspected(&place));
    assert_eq!((&found["missed"], &found["members"][1]["rows"]), (&json!([0, 2]), &json!(0)));
    fs::rename(&away, file(&place, 1)).expect("a file");
    is_clean(&place);
    let server = place.serve(&stack(&place));
    let mut client = server.client();
    let since = Instant::now();
    while !server.said().contains("has all of its blocks again") {
        assert!(since.elapsed() < Duration::from_secs(60), "{}", server.said());
        // A region that was not missed.
        assert_eq!(client.write(0, 3000 * BLOCK, &[3; 4096]), 0);
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(client);
    server.stop();
    is_clean(&place);
    let (found, _) = array_of(&inspected(&place));
    assert_eq!((&found["missed"], &found["members"][1]["state"]), (&json!([]), &json!("in")));
}

#[test]
fn a_member_that_is_missing_or_out_is_told_in_notes() {
    let place = array();
    write(&place, 0..512, 7, false);
    let away = place.path("away");
    fs::rename(file(&place, 1), &away).expect("a file");
    let said = is_clean(&place);
    assert!(said.lines().any(|line| line.starts_with("disk-1: it is not there: ")), "{said}");
    // The spare takes its place.
    write(&place, 0..256, 9, false);
    let said = is_clean(&place);
    assert!(said.contains("disk-1: it is not there: "), "{said}");
    readers_agree(&place, 0);
    let (found, _) = array_of(&inspected(&place));
    assert_eq!(found["members"][1]["port"], json!(2), "{found}");
    // It comes back as it was.
    fs::rename(&away, file(&place, 1)).expect("a file");
    let (_, said) = check(&place);
    let note = "disk-1: its copy of the journal of the array does not count: the others have recorded it out";
    assert!(said.lines().any(|line| line == note), "{said}");
}
