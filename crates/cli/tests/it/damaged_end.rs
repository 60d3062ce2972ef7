//! The newest journal block of an image whose server was killed: what `serve`, `check` and
//! `inspect` say when it is damaged, and how the mark of the last flush ends that window.

use crate::client::FLUSH;
use crate::serve_members::{BLOCK, member, used};
use crate::served::{Place, run};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Output;
use std::time::Duration;

/// The member with the journal of the cache.
const SSD: &str = "ssd";
/// Ten times as long as a server waits before it writes the mark.
const IDLE: Duration = Duration::from_secs(1);

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The journal of the cache as `imbrex inspect` sees it.
fn journal(place: &Place) -> Value {
    let output = run(&["inspect", &place.data(), "--json", "--all"]);
    let document: Value = serde_json::from_str(&said(&output)).expect("a document");
    let members = document["members"].as_array().expect("members");
    let ssd = members.iter().find(|member| member["name"] == SSD);
    ssd.expect("the flash")["journal"].clone()
}

/// Changes a byte of the journal block with a number.
fn damage(place: &Place, journal: &Value, lsn: u64) {
    let number = |name: &str| journal[name].as_u64().expect("a number");
    let block = number("ring_start") + lsn % number("ring_blocks");
    let file =
        fs::OpenOptions::new().read(true).write(true).open(member(place, SSD)).expect("a member");
    let at = block * BLOCK as u64 + 100;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], at).expect("a write");
}

/// An image whose server was killed some time after a write and a flush were answered.
fn killed(idle: Duration) -> Place {
    let place = used();
    let server = place.serve("pore");
    let mut client = server.client();
    assert_eq!(client.write(0, 0, &[9; 64 << 10]), 0);
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
    std::thread::sleep(idle);
    server.kill_nine();
    place
}

#[test]
fn a_damaged_newest_block_is_told_by_check_inspect_and_serve() {
    let place = killed(Duration::ZERO);
    let journal_before = journal(&place);
    assert_eq!(journal_before["damaged_end"], Value::Null);
    let newest = journal_before["next"].as_u64().expect("a number") - 1;
    damage(&place, &journal_before, newest);
    let words = "the newest journal block is damaged or torn: up to 1004 blocks may have been \
                 rolled back";

    let output = run(&["check", &place.data()]);
    assert_eq!(output.status.code(), Some(0), "no more than a power cut");
    assert!(said(&output).contains(&format!("{SSD}: {words}")), "{}", said(&output));
    let output = run(&["inspect", &place.data()]);
    assert!(said(&output).contains(&format!("{SSD}: {words}")), "{}", said(&output));
    let end = journal(&place)["damaged_end"].clone();
    assert_eq!(end["block"], newest);
    assert_eq!(end["data_blocks_max"], 1004);

    let server = place.serve("pore");
    let path = member(&place, SSD);
    let warning = format!("imbrex: warning: node `cache`: {path}: {words}");
    assert!(server.said().contains(&warning), "{}", server.said());
    server.stop();
    let server = place.serve("pore");
    assert!(!server.said().contains("warning"), "it was told once");
    server.stop();
}

#[test]
fn what_a_flush_covered_before_an_idle_time_is_vouched_for() {
    let place = killed(IDLE);
    let journal = journal(&place);
    let records = journal["every_record"].as_array().expect("records");
    // Records without data may follow, of blocks that were written back meanwhile.
    let mut with_data = records.iter().filter(|record| !record["data"].is_null());
    let newest = with_data.next_back().expect("a record")["lsn"].as_u64();
    let newest = newest.expect("a number");
    assert!(journal["mark"].as_u64() > Some(newest), "{journal}");
    damage(&place, &journal, newest);
    let expected = format!("block {newest} is missing, and block ");
    let output = run(&["check", &place.data()]);
    assert_eq!(output.status.code(), Some(4));
    assert!(said(&output).contains(&expected), "{}", said(&output));
    assert!(place.refused("pore").contains(&expected));
}
