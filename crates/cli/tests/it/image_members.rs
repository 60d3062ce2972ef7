//! Members of an image of two caches, each of which would fit the other: every mistake that can be made with their
//! files is refused, with the file, what it is and what belongs there.

use crate::serve_members::copy;
use crate::served::{Place, WAY_OUT, disconnect, run};
use std::fs;

const BLOCK: usize = 4096;
/// Every file is a whole number of blocks of this many bytes at most.
const FILES: [&str; 3] = ["disk", "ssd0", "ssd1"];

/// A cache over a cache over a plain disk, all of them small.
fn create() -> Place {
    let place = Place::new();
    let disk = |name: &str, drive: &str| {
        format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\n")
    };
    let cache = |name: &str, flash: &str, backing: &str| {
        format!(
            "[[node]]\nname = \"{name}\"\nkind = \"write-back-cache\"\ncapacity = \"1 MiB\"\npolicy = \"lru\"\n\
             below = {{ flash = \"{flash}\", backing = \"{backing}\" }}\n"
        )
    };
    let nodes = [
        disk("disk", "wd-4tb-7200"),
        disk("ssd0", "850evo"),
        disk("ssd1", "850evo"),
        cache("low", "ssd0", "disk"),
        cache("top", "ssd1", "low"),
    ];
    let stack = format!("name = \"two\"\n{}", nodes.concat());
    fs::write(place.path("two.toml"), stack).expect("a stack");
    place.create(&place.path("two.toml"), "8MiB", &[]);
    write(&place, 1);
    place
}

/// Writes more than the caches hold, and ends in order.
fn write(place: &Place, fill: u8) {
    let server = place.serve(&place.path("two.toml"));
    let mut client = server.client();
    for at in (0..4 << 20).step_by(64 << 10) {
        assert_eq!(client.write(0, at, &[fill; 64 << 10]), 0);
    }
    disconnect(client);
    server.stop();
}

fn file(place: &Place, disk: &str) -> String {
    place.path(&format!("data/{disk}.img"))
}

fn swap(one: &str, other: &str, place: &Place) {
    let between = place.path("between");
    for (from, to) in [(one, between.as_str()), (other, one), (&between, other)] {
        fs::rename(from, to).expect("a rename");
    }
}

fn refused(place: &Place) -> String {
    let before: Vec<Vec<u8>> =
        FILES.map(|disk| fs::read(file(place, disk)).expect("a file")).to_vec();
    let said = place.refused(&place.path("two.toml"));
    for (disk, before) in FILES.iter().zip(before) {
        assert!(fs::read(file(place, disk)).expect("a file") == before, "{disk} has changed");
    }
    said
}

fn found_by_check(place: &Place) -> String {
    let output = run(&["check", &place.data()]);
    assert_eq!(output.status.code(), Some(4));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn members_of_two_caches_that_have_changed_places_are_refused() {
    let place = create();
    swap(&file(&place, "ssd0"), &file(&place, "ssd1"), &place);
    assert_eq!(
        refused(&place),
        format!(
            "imbrex: node `ssd0`: {}: it is disk 3 of this image; expected: disk 2 of this image; node `ssd1`: {}: it \
             is disk 2 of this image; expected: disk 3 of this image; {WAY_OUT}",
            file(&place, "ssd0"),
            file(&place, "ssd1")
        )
    );
    let said = found_by_check(&place);
    for words in [
        "ssd0: superblock: it is member 3 of the image, and member 1 belongs here\n",
        "ssd1: superblock: it is member 1 of the image, and member 3 belongs here\n",
    ] {
        assert!(said.contains(words), "{said}");
    }
    swap(&file(&place, "ssd0"), &file(&place, "ssd1"), &place);
    write(&place, 2);
}

#[test]
fn one_member_in_two_places_is_refused() {
    for (copied, to, found, expected) in [("ssd0", "ssd1", 2, 3), ("ssd1", "ssd0", 3, 2)] {
        let place = create();
        copy(&file(&place, copied), &file(&place, to));
        let expected = format!(
            "imbrex: node `{to}`: {}: it is disk {found} of this image; expected: disk {expected} of this image; \
             {WAY_OUT}",
            file(&place, to)
        );
        assert_eq!(refused(&place), expected);
    }
}

#[test]
fn a_member_of_another_image_is_refused_wherever_it_is() {
    let other = create();
    for disk in FILES {
        let place = create();
        copy(&file(&other, disk), &file(&place, disk));
        let uuid = |place: &Place| {
            let output = run(&["inspect", &place.data(), "--json"]);
            let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            document["image"]["set"].as_str().expect("a name").to_owned()
        };
        let theirs = uuid(&other);
        let number = 1 + FILES.iter().position(|it| *it == disk).expect("a disk");
        let path = file(&place, disk);
        assert_eq!(
            refused(&place),
            format!(
                "imbrex: node `{disk}`: {path}: it is a disk of image {theirs}; expected: disk {number} of this image; \
                 {WAY_OUT}"
            )
        );
    }
}

#[test]
fn an_older_copy_of_one_member_is_refused_by_the_other_one() {
    for disk in FILES {
        let place = create();
        let older = place.path("older");
        copy(&file(&place, disk), &older);
        write(&place, 2);
        copy(&older, &file(&place, disk));
        let start = format!(
            "imbrex: node `{disk}`: {}: it is an older copy of itself: its label has come to count ",
            file(&place, disk)
        );
        let said = refused(&place);
        assert!(said.starts_with(&start), "{said}");
    }
}

#[test]
fn the_members_are_numbered_in_the_order_of_the_file() {
    let place = create();
    let output = run(&["inspect", &place.data(), "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let member = |number: u16, node: &str, port: &str| serde_json::json!({ "number": number, "node": node, "port": port });
    let expected = [
        member(1, "low", "flash"),
        member(2, "low", "backing"),
        member(3, "top", "flash"),
        member(4, "top", "backing"),
    ];
    assert_eq!(document["image"]["version"], 4);
    let label = |(number, node): (u16, &&str)| serde_json::json!({ "number": number, "node": node, "is_labelled": true });
    let labels: Vec<_> = (1..).zip(&FILES).map(label).collect();
    assert_eq!(document["image"]["labels"], serde_json::json!(labels));
    assert_eq!(document["image"]["next_disk"], 4);
    assert_eq!(document["image"]["members"], serde_json::json!(expected));
    assert_eq!(document["image"]["next_member"], 5);
    let output = run(&["inspect", &place.data()]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("\nmember 4: `backing` of node `top`\n"), "{said}");
    let blocks = fs::metadata(file(&place, "disk")).expect("a file").len() / BLOCK as u64;
    assert_eq!(document["image"]["disks"][0]["blocks"], blocks - 2, "without its label");
}
