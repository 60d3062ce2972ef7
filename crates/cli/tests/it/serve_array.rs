//! A served array of copies that loses members, gets new ones and tells how it is.

use crate::check_array::{array_of, array_with, file, flip, inspected, is_clean, stack};
use crate::control::{done, refused, serve};
use crate::control_status::status;
use crate::serve_members::uuid_of;
use crate::served::{Place, Served, failure, imbrex, run};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
const EIO: u32 = 5;
/// A rate at which the 16 MiB of an array take half a minute.
const SLOWLY: [&str; 2] = ["--rate", "500KiB/s"];

fn start(place: &Place) -> Served {
    serve(place, &stack(place), &["--data", &place.data()])
}

/// Writes the first `blocks` blocks.
fn write(server: &Served, blocks: u64, fill: u8) {
    let mut client = server.client();
    for block in 0..blocks {
        assert_eq!(client.write(0, block * BLOCK as u64, &[fill; BLOCK]), 0);
    }
}

fn read(server: &Served, block: u64) -> Result<Vec<u8>, u32> {
    server.client().read(block * BLOCK as u64, BLOCK as u32)
}

/// What the array tells of itself.
fn told(place: &Place) -> Value {
    status(place, &["array"])["array"].clone()
}

fn states(told: &Value) -> (&str, Vec<&str>) {
    let members = told["members"].as_array().into_iter().flatten();
    let states = members.filter_map(|member| member["state"].as_str());
    (told["state"].as_str().unwrap_or_default(), states.collect())
}

/// Waits until something holds of what the array tells.
fn wait_until(place: &Place, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let told = told(place);
        if holds(&told) {
            return told;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{what}: {told}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A command that takes long, given by a process of its own.
fn begin(place: &Place, arguments: &[&str]) -> Child {
    let mut command = imbrex();
    command.arg("control").arg(format!("{}.control", place.socket())).args(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program")
}

#[test]
fn a_disk_without_which_data_would_be_lost_is_taken_out_by_force_alone() {
    let place = array_with(0);
    let server = start(&place);
    write(&server, 8, 7);
    let goes_on = "array goes on: the other members have what it had; the device is served on";
    assert_eq!(status(&place, &["disk-1"])["when_lost"], goes_on);
    done(&place, &["disk-0", "fail"]);
    done(&place, &["disk-0", "fail"]);
    let is_needed = |when: &str| {
        let said = refused(&place, &["disk-1", "fail"]);
        assert_eq!(
            said,
            "imbrex: node `disk-1`: nothing else has what is on this disk; without it array is lost too; requests \
             of the device end with an error; accepted: `fail` when an array has its data elsewhere, or with \
             --force (`\"force\": true`)",
            "{when}"
        );
        assert_eq!(status(&place, &["disk-1"])["is_lost"], false, "{when}");
        assert_eq!(read(&server, 3), Ok(vec![7; BLOCK]), "{when}");
    };
    is_needed("degraded");
    let lost = "array is lost too; requests of the device end with an error";
    assert_eq!(status(&place, &["disk-1"])["when_lost"], lost);
    done(&place, &["disk-0", "replace"]);
    is_needed("before the rebuild");
    let mut rebuild = begin(&place, &[&["array", "rebuild"], &SLOWLY[..]].concat());
    wait_until(&place, "it is rebuilt", |told| states(told).0 == "rebuilding");
    is_needed("while it is read for the rebuild");
    // The one that is rebuilt is needed by nobody.
    done(&place, &["disk-0", "fail"]);
    assert!(!rebuild.wait().expect("a status").success(), "its disk is gone");
    is_needed("degraded again");
    done(&place, &["disk-0", "replace"]);
    done(&place, &["array", "rebuild"]);
    done(&place, &["disk-1", "fail"]);
    let said = refused(&place, &["disk-0", "fail"]);
    assert!(said.starts_with("imbrex: node `disk-0`: nothing else has"), "{said}");
    done(&place, &["disk-0", "fail", "--force"]);
    assert_eq!(read(&server, 3), Err(EIO));
    assert_eq!(states(&told(&place)).0, "lost");
    server.signal("TERM");
    assert_eq!(server.wait().0, Some(1));
}

#[test]
fn a_status_tells_what_each_member_has_and_what_to_do_next() {
    let place = array_with(0);
    let server = start(&place);
    write(&server, 64, 7);
    let whole = json!({
        "state": "whole",
        "members": [{"node": "disk-0", "state": "in"}, {"node": "disk-1", "state": "in"}],
        "spares": [],
        "unreadable_blocks": 0,
        "next": [],
    });
    assert_eq!(told(&place), whole);
    done(&place, &["disk-1", "fail"]);
    let degraded = told(&place);
    assert_eq!(states(&degraded), ("degraded", vec!["in", "out"]));
    assert_eq!(degraded["next"], json!(["`disk-1` is lost: give `replace` to `disk-1`"]));
    done(&place, &["disk-1", "replace"]);
    let replaced = told(&place);
    assert_eq!(states(&replaced), ("degraded", vec!["in", "new disk"]));
    let next = "the disk of `disk-1` was replaced: give `rebuild` to `array`";
    assert_eq!(replaced["next"], json!([next]));
    assert!(done(&place, &["array", "status"]).contains(&format!("\n  next: {next}\n")));
    let mut rebuild = begin(&place, &[&["array", "rebuild"], &SLOWLY[..]].concat());
    let rebuilt = wait_until(&place, "it has a speed", |told| {
        told["members"][1]["bytes_per_s"].as_u64() > Some(0)
    });
    assert_eq!(
        (states(&rebuilt), &rebuilt["next"]),
        (("rebuilding", vec!["in", "rebuilding"]), &json!([]))
    );
    let member = &rebuilt["members"][1];
    let number = |key: &str| member[key].as_u64().unwrap_or_else(|| panic!("{key}: {member}"));
    assert!(number("done_bytes") > 0 && number("done_bytes") < number("total_bytes"), "{member}");
    assert!(number("total_bytes") >= 16 << 20 && number("total_bytes") < 17 << 20, "{member}");
    let expected = (number("total_bytes") - number("done_bytes")) / number("bytes_per_s");
    assert!(number("left_s").abs_diff(expected) <= 1, "{member}");
    let text = done(&place, &["array", "status"]);
    assert!(
        text.contains("\n  array: rebuilding\n  member disk-0  in\n  member disk-1  rebuilding, "),
        "{text}"
    );
    // As fast as it goes from now on.
    done(&place, &["array", "rebuild"]);
    assert!(rebuild.wait().expect("a status").success());
    assert_eq!(told(&place), whole);
    done(&place, &["array", "rebuild"]);
    assert_eq!(told(&place), whole, "what is whole is left as it is");
    let mut scrub = begin(&place, &[&["array", "scrub"], &SLOWLY[..]].concat());
    let scrubbed = wait_until(&place, "it is scrubbed", |told| told["scrub"].is_object());
    assert!(scrubbed["scrub"]["total_bytes"].as_u64() >= Some(16 << 20), "{scrubbed}");
    done(&place, &["array", "scrub"]);
    assert!(scrub.wait().expect("a status").success());
    assert_eq!(told(&place), whole);
    server.stop();
}

#[test]
fn a_spare_that_steps_in_is_told_by_its_name() {
    let place = array_with(1);
    let server = start(&place);
    write(&server, 64, 7);
    assert_eq!(told(&place)["spares"], json!(["disk-2"]));
    assert!(done(&place, &["array", "status"]).contains("\n  spares left: disk-2\n"));
    done(&place, &["disk-0", "fail"]);
    let told = wait_until(&place, "the spare is in", |told| states(told).0 == "whole");
    assert_eq!((&told["members"][0]["node"], &told["spares"]), (&json!("disk-2"), &json!([])));
    server.stop();
}

#[test]
fn blocks_that_no_member_has_are_listed_until_they_are_written() {
    let place = array_with(0);
    let server = start(&place);
    write(&server, 1024, 7);
    server.stop();
    let (found, area) = array_of(&inspected(&place));
    let first = area + found["table_rows"].as_u64().expect("a number");
    for block in [20, 21, 40] {
        for disk in [0, 1] {
            flip(&file(&place, disk), first + block);
        }
    }
    let server = start(&place);
    for block in [20, 21, 40] {
        assert_eq!(read(&server, block), Err(EIO));
    }
    assert_eq!(read(&server, 22), Ok(vec![7; BLOCK]));
    let found = wait_until(&place, "all are listed", |told| told["unreadable_blocks"] == 3);
    assert_eq!(
        (&found["state"], &found["unreadable"]),
        (&json!("whole"), &json!([[20, 22], [40, 41]]))
    );
    let next = found["next"][0].as_str().expect("words");
    assert!(
        next.starts_with("3 blocks cannot be read, because no member has them any more"),
        "{next}"
    );
    let text = done(&place, &["array", "status"]);
    assert!(text.contains("\n  unreadable: 3 blocks, from 20..22, 40..41\n"), "{text}");
    write(&server, 41, 8);
    assert_eq!(told(&place)["unreadable_blocks"], 0);
    server.stop();
}

/// Before, it began with the first request that came.
#[test]
fn a_member_that_is_back_gets_what_it_missed_before_anybody_asks_for_anything() {
    let place = array_with(0);
    let (own, away) = (file(&place, 1), place.path("away"));
    fs::rename(&own, &away).expect("a file");
    let server = start(&place);
    write(&server, 300, 9);
    assert_eq!(states(&told(&place)), ("degraded", vec!["in", "out"]));
    server.stop();
    fs::rename(&away, &own).expect("a file");
    let server = start(&place);
    let words = "its member `disk-1` is back and was given 2097152 bytes";
    let since = Instant::now();
    while !server.said().contains(words) {
        assert!(since.elapsed() < Duration::from_secs(60), "it waits: {}", server.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    server.stop();
    is_clean(&place);
}

#[test]
fn a_rebuild_goes_on_at_the_next_start_before_anybody_asks_for_anything() {
    let place = array_with(0);
    let server = start(&place);
    write(&server, 1024, 9);
    done(&place, &["disk-1", "fail"]);
    done(&place, &["disk-1", "replace"]);
    let mut rebuild = begin(&place, &[&["array", "rebuild"], &SLOWLY[..]].concat());
    wait_until(&place, "it has begun", |told| told["members"][1]["done_bytes"].as_u64() > Some(0));
    server.stop();
    assert!(!rebuild.wait().expect("a status").success(), "the server has stopped");
    let server = start(&place);
    let words = "the rebuild of member `disk-1` is over: it has all of its blocks again";
    let since = Instant::now();
    while !server.said().contains(words) {
        assert!(since.elapsed() < Duration::from_secs(60), "it waits: {}", server.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(states(&told(&place)), ("whole", vec!["in", "in"]));
    server.stop();
    is_clean(&place);
}

/// A file of so many bytes beside the image.
fn other_file(place: &Place, name: &str, bytes: u64) -> String {
    let path = place.path(name);
    fs::File::create(&path).and_then(|file| file.set_len(bytes)).expect("a file");
    path
}

#[test]
fn a_file_that_cannot_be_a_new_disk_is_named_and_left_as_it_is() {
    let place = array_with(0);
    let other = Place::new();
    other.create("cmr-only", "32MiB", &[]);
    let others = format!("{}/cmr.img", other.data());
    let (own, description) = (file(&place, 0), format!("{}/image", place.data()));
    let server = start(&place);
    let blank = other_file(&place, "blank", 32 << 20);
    let short = other_file(&place, "short", 4 << 20);
    let used = other_file(&place, "used", 32 << 20);
    let written = fs::OpenOptions::new().write(true).open(&used);
    written.and_then(|file| file.write_all_at(&[1], 5000)).expect("a byte");
    let link = place.path("link");
    std::os::unix::fs::symlink(&own, &link).expect("a link");
    let hard = place.path("hard");
    fs::hard_link(&own, &hard).expect("a link");
    let bytes = |path: &str| fs::read(path).expect("a file");
    let is_refused = |node: &str, path: &str, words: &str| {
        let before = (bytes(path), bytes(&description));
        let said = refused(&place, &[node, "replace", path]);
        assert!(said.starts_with(&format!("imbrex: node `{node}`")), "{said}");
        assert!(said.contains(words) && said.contains("accepted: "), "{words}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(before == (bytes(path), bytes(&description)), "{said}: something was written");
    };
    is_refused("disk-1", &blank, "`disk-1` is not lost; accepted: a disk that is");
    done(&place, &["disk-1", "fail"]);
    is_refused("disk-1", &short, "short has 4194304 bytes; accepted: ");
    is_refused(
        "disk-1",
        &used,
        "used holds data; accepted: a file, block device or export whose first 1.00 MiB",
    );
    for path in [&own, &link, &hard] {
        let said = refused(&place, &["disk-1", "replace", path]);
        assert_eq!(
            said,
            format!(
                "imbrex: node `disk-1`: {path} is the disk of node `disk-0` already; accepted: a file or block device of its own"
            )
        );
    }
    is_refused("disk-1", &file(&place, 1), "holds data");
    is_refused("disk-1", &others, &format!("cmr.img is a disk of image {}", uuid_of(&other)));
    // A copy of a member whose start was wiped has the label of this image still.
    let wiped = place.path("wiped");
    fs::copy(&own, &wiped).expect("a copy");
    let file = fs::OpenOptions::new().write(true).open(&wiped).expect("a file");
    file.write_all_at(&vec![0; 1 << 20], 0).expect("zeroes");
    is_refused("disk-1", &wiped, "wiped is disk 1 of this image, that of node `disk-0`");
    assert_eq!(states(&told(&place)), ("degraded", vec!["in", "out"]));
    // As the error says.
    let said = refused(&place, &["disk-1", "replace", &others]);
    let command = said.split("to give up what is there: ").nth(1).expect("a command");
    let wipe = std::process::Command::new("sh").args(["-c", command]).output();
    assert!(wipe.expect("a shell").status.success(), "{command}");
    done(&place, &["disk-1", "replace", &others]);
    done(&place, &["array", "rebuild"]);
    assert_eq!(states(&told(&place)), ("whole", vec!["in", "in"]));
    server.stop();
}

#[test]
fn two_members_on_one_file_are_refused_and_nothing_is_made() {
    let place = Place::new();
    let one = other_file(&place, "one", 32 << 20);
    let [link, hard] = ["link", "hard"].map(|name| place.path(name));
    std::os::unix::fs::symlink(&one, &link).expect("a link");
    fs::hard_link(&one, &hard).expect("a link");
    let path = stack(&place);
    for other in [&one, &link, &hard] {
        let disk = |name: &str, path: &str| {
            format!(
                "[[node]]\nname = {name:?}\nkind = \"disk\"\ndrive = \"wd1002faex\"\nbacking = {path:?}\n"
            )
        };
        let disks = disk("left", &one) + &disk("right", other);
        let array = "[[node]]\nname = \"array\"\nkind = \"raid1\"\nbelow = [\"left\", \"right\"]\n";
        fs::write(&path, format!("name = \"copies\"\n{disks}{array}")).expect("a file");
        let said = failure(&run(&["create", &path, "--data", &place.data(), "--size", "16MiB"]));
        assert_eq!(
            said,
            format!(
                "imbrex: node `right`: {other} is the disk of node `left` already; accepted: a file or block device of its own"
            )
        );
        assert!(!Path::new(&place.data()).exists(), "a folder was made");
        assert!(fs::read(&one).expect("a file").iter().all(|byte| *byte == 0));
    }
    // An image one of whose files was replaced by a link to the other one.
    let place = array_with(0);
    fs::remove_file(file(&place, 1)).expect("a file");
    fs::hard_link(file(&place, 0), file(&place, 1)).expect("a link");
    let before = fs::read(file(&place, 0)).expect("a file");
    let said = place.refused(&stack(&place));
    let expected = format!(
        "imbrex: node `disk-1`: {} is the disk of node `disk-0` already; accepted: a file or block device of its own",
        file(&place, 1)
    );
    assert_eq!(said, expected);
    assert!(before == fs::read(file(&place, 0)).expect("a file"), "something was written");
}
