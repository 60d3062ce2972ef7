//! Members that are longer than the disk they hold, as a whole disk is that a smaller device was made on: the place
//! of every structure follows from what the image was made for, not from where the member ends.

use crate::serve_members::{BLOCK, copy};
use crate::served::{Place, disconnect, run};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt;

const SIZE_MIB: u64 = 8;
/// Blocks behind the disk that are not of the image.
const MORE_BLOCKS: u64 = 300;
const TRANSLATION: [&str; 2] =
    ["translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=1MiB"];

/// A cache over a disk that keeps all as it is written, each on a file of its own.
fn plain_stack(place: &Place) -> String {
    let node = |name: &str, drive: &str| {
        let path = place.path(&format!("{name}.disk"));
        let file = fs::File::create(&path).expect("a file");
        file.set_len(64 << 20).expect("a length");
        format!(
            "[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\nbacking = \"{path}\"\n"
        )
    };
    let text = format!(
        "name = \"mine\"\n{}{}[[node]]\nname = \"cache\"\nkind = \"write-back-cache\"\n\
         below = {{ flash = \"ssd\", backing = \"disk\" }}\ncapacity = \"1 MiB\"\npolicy = \"lru\"\n",
        node("disk", "wd-4tb-7200"),
        node("ssd", "850evo"),
    );
    let path = place.path("mine.toml");
    fs::write(&path, text).expect("a stack");
    path
}

/// An image of a stack that has been used, closed and used again until its server was killed: a name for `serve`, and
/// the files of its disks.
fn used(place: &Place, stack: &str) -> (String, Vec<String>) {
    let image = |names: &[&str]| {
        let path = |name: &&str| place.path(&format!("data/{name}.img"));
        names.iter().map(path).collect()
    };
    let (stack, settings, members) = match stack {
        "mine" => {
            let members = vec![place.path("ssd.disk"), place.path("disk.disk")];
            (plain_stack(place), vec![], members)
        }
        "smr-only" => (stack.to_owned(), TRANSLATION.to_vec(), image(&["smr"])),
        _ => {
            let settings = [&TRANSLATION[..], &["cache.capacity=1MiB"]].concat();
            (stack.to_owned(), settings, image(&["ssd", "smr"]))
        }
    };
    place.create(&stack, &format!("{SIZE_MIB}MiB"), &settings);
    for fill in [1, 2] {
        let server = place.serve(&stack);
        let mut client = server.client();
        for at in (0..3 << 20).step_by(64 << 10) {
            assert_eq!(client.write(0, at, &[fill; 64 << 10]), 0);
        }
        if fill == 1 {
            disconnect(client);
            server.stop();
        } else {
            server.kill_nine();
        }
    }
    (stack, members)
}

/// Puts blocks behind the end of a member that look like the structures of another image.
fn lengthen(path: &str) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    let file = file.expect("a member");
    let end = file.metadata().expect("metadata").len();
    let mut block = [0xee; BLOCK];
    file.read_exact_at(&mut block, 0).expect("a superblock");
    for number in 0..MORE_BLOCKS {
        file.write_all_at(&block, end + number * BLOCK as u64).expect("a write");
    }
}

fn checked(place: &Place) -> (Option<i32>, String) {
    let output = run(&["check", &place.data(), "--data"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said)
}

fn inspected(place: &Place) -> Value {
    let output = run(&["inspect", &place.data(), "--json", "--all"]);
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).expect("a document")
}

/// What does not depend on how long a member is.
fn without_lengths(mut document: Value) -> Value {
    for member in document["members"].as_array_mut().expect("members") {
        member["blocks"] = Value::Null;
    }
    document
}

fn damage(path: &str, block: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    let (file, at) = (file.expect("a member"), block * BLOCK as u64 + 100);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], at).expect("a write");
}

fn longer_members_are_clean(stack: &str) {
    let place = Place::new();
    let (stack, members) = used(&place, stack);
    let plain = inspected(&place);
    assert_eq!(plain["findings"], json!([]), "{stack}");
    let mut choices: Vec<Vec<&String>> = members.iter().map(|member| vec![member]).collect();
    choices.push(members.iter().collect());
    for longer in choices {
        let kept = |path: &String| format!("{path}.kept");
        for path in &longer {
            copy(path, &kept(path));
            lengthen(path);
        }
        let (code, said) = checked(&place);
        assert_eq!((code, &*said), (Some(0), "clean\n"), "{stack}: {longer:?}");
        assert_eq!(without_lengths(inspected(&place)), without_lengths(plain.clone()));
        for path in &longer {
            fs::rename(kept(path), path).expect("a file");
        }
    }
    for path in &members {
        lengthen(path);
    }
    place.serve(&stack).stop();
    assert_eq!(checked(&place), (Some(0), "clean\n".to_owned()));
}

#[test]
fn members_longer_than_their_disks_are_clean_over_a_translation() {
    for stack in ["pore", "lru", "smr-only"] {
        longer_members_are_clean(stack);
    }
}

#[test]
fn members_longer_than_their_disks_are_clean_over_a_plain_disk() {
    longer_members_are_clean("mine");
}

#[test]
fn damage_of_a_longer_member_is_found_where_it_is() {
    for stack in ["pore", "mine"] {
        let place = Place::new();
        let (_, members) = used(&place, stack);
        for path in &members {
            lengthen(path);
        }
        let document = inspected(&place);
        let flash = document["members"].as_array().expect("members").last();
        let area = flash.expect("a flash")["superblocks"][0]["area_blocks"].as_u64();
        let last_copy = area.expect("a number") - 1;
        damage(&members[0], last_copy);
        let expected = format!(
            "ssd: superblock: copy 3 at block {last_copy}: its checksum does not match its bytes\n\
             1 damaged\n"
        );
        assert_eq!(checked(&place), (Some(4), expected), "{stack}");
        damage(&members[0], last_copy);
        assert_eq!(checked(&place).0, Some(0));
    }
    // The pages that a cache keeps behind what it serves.
    let place = Place::new();
    let (_, members) = used(&place, "mine");
    lengthen(&members[1]);
    let first = (SIZE_MIB << 20) / BLOCK as u64;
    for page in 0..2 {
        damage(&members[1], first + page);
        // Where it is the newer page, blocks that became dirty since the other one was written are named as well.
        let expected = format!(
            "disk: write-intent page: page {page}: its checksum does not match its bytes\n"
        );
        let (code, said) = checked(&place);
        assert_eq!(code, Some(4), "{said}");
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!(said.matches("write-intent page: page").count(), 1, "{said}");
        let document = inspected(&place);
        let pages = &document["members"][0]["write_intent"];
        assert!(pages[page as usize]["problem"].is_string(), "{pages}");
        assert!(pages[1 - page as usize]["number"].is_number(), "{pages}");
        damage(&members[1], first + page);
    }
}

#[test]
fn a_plain_disk_without_its_end_has_no_pages_that_can_be_read() {
    let place = Place::new();
    let (_, members) = used(&place, "mine");
    let blocks = (SIZE_MIB << 20) / BLOCK as u64;
    let file = fs::OpenOptions::new().write(true).open(&members[1]);
    file.and_then(|file| file.set_len((blocks + 1) * BLOCK as u64)).expect("a length");
    let (code, said) = checked(&place);
    let expected = format!(
        "disk: write-intent page: page 1: block {} lies past the end of the member, {} blocks\n",
        blocks + 1,
        blocks + 1
    );
    assert_eq!(code, Some(4), "{said}");
    assert!(said.starts_with("disk: length: "), "{said}");
    assert!(said.contains(&expected), "{said}");
}
