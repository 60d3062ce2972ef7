//! `imbrex check` and `imbrex inspect` as commands: what they say of images in order, damaged,
//! foreign, missing and in use, every exit status, and that nothing is written unasked.

use crate::serve_members::{BLOCK, MEMBERS, change_superblocks, contents, copy};
use crate::serve_members::{member, used, uuid_of, write};
use crate::served::{Place, disconnect, run};
use rustix::fs::FlockOperation;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Output;

const CLEAN: i32 = 0;
const REPAIRED: i32 = 1;
const DAMAGE_LEFT: i32 = 4;
const COULD_NOT_RUN: i32 = 8;
const WRONG_USAGE: i32 = 16;

/// The exit status, and what was said on standard output.
fn status(output: &Output) -> (i32, String) {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().expect("no signal"), said)
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

/// `imbrex check` on the data directory.
fn check(place: &Place, options: &[&str]) -> (i32, String) {
    let data = place.data();
    let output = run(&[&["check", &data], options].concat());
    assert_eq!(errors(&output), "", "what was found is no error");
    status(&output)
}

/// `imbrex check` and `imbrex inspect` of what cannot be read at all: both say the same.
fn neither_can_run(place: &Place, expected: &str) {
    let data = place.data();
    for (command, code) in [("check", COULD_NOT_RUN), ("inspect", 1)] {
        let output = run(&[command, &data]);
        assert_eq!(status(&output), (code, String::new()), "{command}");
        assert_eq!(errors(&output), format!("imbrex: {expected}"), "{command}");
    }
}

fn inspected(place: &Place) -> Value {
    let output = run(&["inspect", &place.data(), "--json", "--all"]);
    let (code, said) = status(&output);
    assert_eq!((code, errors(&output)), (0, String::new()));
    serde_json::from_str(&said).expect("a document")
}

/// Changes one byte of a block.
fn damage(path: &str, block: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    let (file, at) = (file.expect("a member"), block * BLOCK as u64 + 100);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], at).expect("a write");
}

#[test]
fn an_image_in_order_is_clean_and_left_alone() {
    let place = used();
    let before = contents(&place);
    for options in [&[][..], &["--data"], &["--repair"], &["--data", "--repair"]] {
        assert_eq!(check(&place, options), (CLEAN, "clean\n".to_owned()));
    }
    let (code, said) = check(&place, &["--data", "--json"]);
    let document: Value = serde_json::from_str(&said).expect("one document");
    let expected = json!({
        "schema": "imbrex.check/1",
        "clean": true, "repaired": 0, "left": 0,
        "findings": [], "notes": [],
    });
    assert_eq!((code, document), (CLEAN, expected));
    let document = inspected(&place);
    assert_eq!(document["schema"], "imbrex.inspect/1");
    assert_eq!(document["size_bytes"], 8 << 20);
    assert_eq!(document["findings"], json!([]));
    for (member, layer) in [(0, "translation"), (1, "cache")] {
        assert_eq!(document["members"][member]["name"], MEMBERS[member]);
        assert!(document["members"][member][layer].is_object());
        let copies = document["members"][member]["superblocks"].as_array();
        let copies = copies.expect("superblocks");
        assert_eq!(copies.len(), 4);
        assert!(copies.iter().all(|copy| copy["clean"] == true));
        assert!(copies.iter().all(|copy| copy["set"] == *uuid_of(&place)));
    }
    assert!(contents(&place) == before, "something was written");
}

#[test]
fn an_image_whose_server_was_killed_is_clean_and_left_alone() {
    let place = used();
    let server = place.serve("pore");
    let mut client = server.client();
    for at in (0..4 << 20).step_by(256 << 10) {
        assert_eq!(client.write(0, at, &[9; 64 << 10]), 0);
    }
    server.kill_nine();
    let before = contents(&place);
    assert_eq!(check(&place, &["--data"]), (CLEAN, "clean\n".to_owned()));
    let document = inspected(&place);
    let copy = &document["members"][1]["superblocks"][0];
    assert_eq!(copy["clean"], false);
    assert!(document["members"][1]["cache"]["dirty_blocks"].as_u64() > Some(0));
    assert!(contents(&place) == before, "something was written");
}

#[test]
fn a_damaged_superblock_is_named_and_repaired_only_when_asked() {
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        damage(&path, 1);
        let before = contents(&place);
        let found =
            format!("{name}: superblock: copy 1 at block 1: its checksum does not match its bytes");
        let (code, said) = check(&place, &[]);
        assert_eq!((code, said), (DAMAGE_LEFT, format!("{found}\n1 damaged\n")));
        let document = inspected(&place);
        assert_eq!(document["findings"][0]["member"], name);
        assert_eq!(document["findings"][0]["structure"], "superblock");
        assert!(contents(&place) == before, "something was written");

        let (code, said) = check(&place, &["--repair"]);
        let expected = format!("{found} (repaired)\n1 repaired\n");
        assert_eq!((code, said), (REPAIRED, expected));
        assert_eq!(check(&place, &["--data"]), (CLEAN, "clean\n".to_owned()));
        place.serve("pore").stop();
    }
}

#[test]
fn what_cannot_be_repaired_is_left_as_it_is() {
    for name in MEMBERS {
        let place = used();
        change_superblocks(&member(&place, name), false, |block| block[100] ^= 4);
        let before = contents(&place);
        for options in [&[][..], &["--repair"], &["--data", "--repair"]] {
            let (code, said) = check(&place, options);
            assert_eq!(code, DAMAGE_LEFT, "{said}");
            let first =
                format!("{name}: superblock: copy 0: its checksum does not match its bytes");
            assert!(said.starts_with(&first), "{said}");
        }
        assert!(contents(&place) == before, "something was written");
    }
}

#[test]
fn one_repair_beside_damage_that_stays_is_damage_left() {
    let place = used();
    damage(&member(&place, "smr"), 0);
    change_superblocks(&member(&place, "ssd"), false, |block| block[100] ^= 4);
    let (code, said) = check(&place, &["--repair", "--json"]);
    let document: Value = serde_json::from_str(&said).expect("one document");
    assert_eq!(code, DAMAGE_LEFT);
    assert_eq!(document["clean"], false);
    assert_eq!((&document["repaired"], &document["left"]), (&json!(1), &json!(1)));
    let findings = document["findings"].as_array().expect("findings");
    let of = |name: &str| findings.iter().find(|one| one["member"] == name);
    assert_eq!(of("smr").expect("one of smr")["repaired"], true);
    assert_eq!(of("ssd").expect("one of ssd")["repaired"], false);
}

#[test]
fn damaged_data_is_found_when_data_is_read() {
    let place = used();
    let document = inspected(&place);
    let cache = &document["members"][1];
    let area = cache["superblocks"][0]["area_blocks"].as_u64().expect("a number");
    let (block, slot) = (&cache["cache"]["dirty"][0][0], &cache["cache"]["dirty"][0][1]);
    damage(&member(&place, "ssd"), area + slot.as_u64().expect("a slot"));
    assert_eq!(check(&place, &[]), (CLEAN, "clean\n".to_owned()));
    for options in [&["--data"][..], &["--data", "--repair"]] {
        let (code, said) = check(&place, options);
        let expected = format!("ssd: data: dirty block {block} in slot {slot}");
        assert_eq!(code, DAMAGE_LEFT);
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn a_member_of_another_image_is_damage() {
    let other = used();
    for name in MEMBERS {
        let place = used();
        copy(&member(&other, name), &member(&place, name));
        let (theirs, ours) = (uuid_of(&other), uuid_of(&place));
        let found =
            format!("{name}: superblock: it belongs to image {theirs}, not to image {ours}");
        let (code, said) = check(&place, &["--repair"]);
        assert_eq!(code, DAMAGE_LEFT, "{said}");
        assert!(said.lines().any(|line| line == found), "{said}");
        let output = run(&["inspect", &place.data()]);
        let (code, said) = status(&output);
        assert_eq!(code, 0);
        assert!(said.lines().any(|line| line == found), "{said}");
    }
}

#[test]
fn an_older_copy_of_a_member_is_damage() {
    for name in MEMBERS {
        let place = used();
        let (path, older) = (member(&place, name), place.path("older"));
        copy(&path, &older);
        write(&place, 2);
        copy(&older, &path);
        let (code, said) = check(&place, &[]);
        assert_eq!(code, DAMAGE_LEFT, "{name}: {said}");
    }
}

#[test]
fn a_member_that_was_cut_is_damage() {
    for name in MEMBERS {
        let place = used();
        let file = fs::OpenOptions::new().write(true).open(member(&place, name));
        let file = file.expect("a member");
        let blocks = file.metadata().expect("metadata").len() / BLOCK as u64;
        file.set_len((blocks - 1) * BLOCK as u64).expect("a length");
        let (code, said) = check(&place, &[]);
        assert_eq!(code, DAMAGE_LEFT);
        let length = format!("{name}: length: {} holds", member(&place, name));
        assert!(said.starts_with(&length), "{said}");
    }
}

#[test]
fn a_member_without_its_end_is_not_repaired() {
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        let file = fs::OpenOptions::new().write(true).open(&path);
        // Two copies of the superblock are left, and two are gone.
        file.and_then(|file| file.set_len(16 * BLOCK as u64)).expect("a length");
        let (code, said) = check(&place, &["--repair"]);
        assert_eq!(code, DAMAGE_LEFT, "{said}");
        assert!(!said.contains("(repaired)"), "{said}");
        let length = fs::metadata(&path).expect("metadata").len();
        assert_eq!(length, 16 * BLOCK as u64, "nothing was written behind its end");
    }
}

#[test]
fn a_damaged_description_is_damage_and_another_version_is_none() {
    let place = used();
    let path = place.path("data/image");
    let whole = fs::read(&path).expect("a description");
    fs::write(&path, &whole[..whole.len() - 1]).expect("a write");
    let found = format!("{path}: description of the image: it is not as long as its header says");
    let (code, said) = check(&place, &[]);
    assert_eq!((code, said), (DAMAGE_LEFT, format!("{found}\n1 damaged\n")));
    let output = run(&["inspect", &place.data()]);
    assert_eq!(status(&output), (1, String::new()));
    assert_eq!(
        errors(&output),
        format!("imbrex: {path} is damaged: it is not as long as its header says")
    );

    let mut newer = whole;
    newer[8] = 9;
    fs::write(&path, newer).expect("a write");
    neither_can_run(&place, &format!("{path} has format version 9; accepted: versions 3 and 4"));
}

#[test]
fn what_is_missing_cannot_be_read() {
    let place = Place::new();
    let data = place.data();
    neither_can_run(&place, &format!("there is no image in {data}"));
    fs::create_dir(&data).expect("a directory");
    neither_can_run(&place, &format!("there is no image in {data}"));
    let place = used();
    let path = member(&place, "ssd");
    fs::remove_file(&path).expect("a member");
    let expected = format!("cannot open {path}: No such file or directory (os error 2)");
    neither_can_run(&place, &expected);
}

#[test]
fn what_is_in_use_cannot_be_read() {
    let place = used();
    let server = place.serve("pore");
    let data = place.data();
    let in_use = format!(
        "the image in {data} is in use by another process; while it is served, `imbrex control SOCKET \
         status` says what its nodes hold"
    );
    neither_can_run(&place, &in_use);
    disconnect(server.client());
    server.stop();
    // A disk of its own may be in use by another image.
    for name in MEMBERS {
        let path = member(&place, name);
        let user = fs::File::open(&path).expect("a member");
        rustix::fs::flock(&user, FlockOperation::LockExclusive).expect("a lock");
        let in_use = format!("cannot open {path}: it is in use by another process");
        neither_can_run(&place, &in_use);
        drop(user);
        // Who repairs must be alone.
        let reader = fs::File::open(&path).expect("a member");
        rustix::fs::flock(&reader, FlockOperation::LockShared).expect("a lock");
        assert_eq!(check(&place, &[]).0, CLEAN);
        let output = run(&["check", &data, "--repair"]);
        assert_eq!(status(&output), (COULD_NOT_RUN, String::new()));
        assert_eq!(errors(&output), format!("imbrex: {in_use}"));
    }
}

#[test]
fn a_stack_without_a_journal_is_clean() {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let said = "cmr: no layer keeps anything on it that could be checked\nclean\n";
    assert_eq!(check(&place, &["--data"]), (CLEAN, said.to_owned()));
    assert_eq!(inspected(&place)["members"], json!([]));
}

#[test]
fn a_wrong_command_line_has_a_status_of_its_own() {
    for (command, code) in [("check", WRONG_USAGE), ("inspect", 2)] {
        for arguments in [&[][..], &["dir", "--nonsense"], &["dir", "another"]] {
            let output = run(&[&[command], arguments].concat());
            let (found, said) = status(&output);
            assert_eq!(found, code, "{command} {arguments:?}");
            assert_eq!(said, "");
            assert!(errors(&output).starts_with("error: "), "{output:?}");
        }
        let (code, said) = status(&run(&[command, "--help"]));
        assert_eq!(code, 0);
        assert!(said.contains(&format!("Usage: imbrex {command}")), "{said}");
    }
}
