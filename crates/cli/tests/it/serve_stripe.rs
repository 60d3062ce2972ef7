//! A stripe over drive-managed disks that is served from files.

use crate::client::{Client, FLUSH};
use crate::serve_members::{BLOCK, member};
use crate::served::{Place, disconnect, run};
use std::fs;

/// Bytes of the device.
const SIZE: u64 = 12 << 20;
/// A request: it has several chunks on each disk.
const STEP: usize = 128 << 10;

/// A stripe in chunks of 8 KiB over two translations, one of them under a cache.
fn striped() -> (Place, String) {
    let place = Place::new();
    let disk = |name: &str, drive: &str| {
        format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\n")
    };
    let translation = |name: &str, below: &str| {
        format!(
            "[[node]]\nname = \"{name}\"\nkind = \"persistent-cache\"\nbelow = \"{below}\"\n\
             bands = \"uniform:1MiB..3MiB\"\npersistent_cache = \"1 MiB\"\n"
        )
    };
    let nodes = [
        disk("smr-0", "st5000as0011"),
        translation("left", "smr-0"),
        disk("smr-1", "st5000as0011"),
        translation("bands", "smr-1"),
        disk("ssd", "850evo"),
        "[[node]]\nname = \"right\"\nkind = \"write-back-cache\"\ncapacity = \"512 KiB\"\npolicy = \"lru\"\n\
         below = { flash = \"ssd\", backing = \"bands\" }\n"
            .to_string(),
        "[[node]]\nname = \"array\"\nkind = \"stripe\"\nbelow = [\"left\", \"right\"]\nchunk = \"8KiB\"\n"
            .to_string(),
    ];
    let stack = place.path("mine.toml");
    fs::write(&stack, format!("name = \"mine\"\n{}", nodes.concat())).expect("a stack");
    place.create(&stack, "12MiB", &[]);
    (place, stack)
}

/// What a step of the device holds: each block another byte.
fn contents(at: u64) -> Vec<u8> {
    let fill = |offset: usize| ((at as usize + offset) / BLOCK % 251) as u8;
    (0..STEP).map(fill).collect()
}

fn fill(client: &mut Client) {
    for at in (0..SIZE).step_by(STEP) {
        assert_eq!(client.write(0, at, &contents(at)), 0);
    }
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
}

fn verify(client: &mut Client) {
    for at in (0..SIZE).step_by(STEP) {
        assert!(client.read(at, STEP as u32) == Ok(contents(at)), "at {at}");
    }
}

#[test]
fn a_stripe_is_served_killed_recovered_and_checked() {
    let (place, stack) = striped();
    let server = place.serve(&stack);
    let mut client = server.client();
    fill(&mut client);
    verify(&mut client);
    drop(client);
    server.signal("KILL");
    server.wait();
    let server = place.serve(&stack);
    let mut client = server.client();
    verify(&mut client);
    disconnect(client);
    server.stop();
    let output = run(&["inspect", &place.data()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    for name in ["smr-0", "smr-1", "ssd"] {
        assert!(said.contains(name), "{name}: {said}");
    }
    let output = run(&["check", "--data", &place.data()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.ends_with("clean\n"), "{said}");
}

#[test]
fn without_one_of_its_disks_a_stripe_does_not_start() {
    let (place, stack) = striped();
    let path = member(&place, "smr-0");
    let away = place.path("away");
    fs::rename(&path, &away).expect("a member");
    let said = place.refused(&stack);
    assert!(said.contains(&format!("node `smr-0`: cannot open {path} as a disk")), "{said}");
    fs::rename(&away, &path).expect("a member");
    let server = place.serve(&stack);
    let mut client = server.client();
    fill(&mut client);
    let file = fs::OpenOptions::new().write(true).open(&path);
    file.and_then(|file| file.set_len(1 << 16)).expect("a cut");
    let found = (0..SIZE).step_by(STEP).filter(|at| client.read(*at, STEP as u32).is_err());
    assert!(found.count() > 0, "the loss is noticed");
    // From then on nothing is taken, on whichever disk it would lie.
    for at in [0, 8 << 10] {
        assert_ne!(client.write(0, at, &[1; BLOCK]), 0, "at {at}");
    }
    assert_ne!(client.call(FLUSH, 0, 0, 0), 0);
    server.signal("TERM");
    let (status, _) = server.wait();
    assert_eq!(status, Some(1));
}

#[test]
fn what_a_cache_keeps_on_a_stripe_is_found_by_the_check() {
    let place = Place::new();
    let node = |name: &str, drive: &str| {
        format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\n")
    };
    let (a, b, ssd) = (node("a", "wd-4tb-7200"), node("b", "wd-4tb-7200"), node("ssd", "850evo"));
    let text = format!(
        "name = \"mine\"\n{a}{b}{ssd}[[node]]\nname = \"array\"\nkind = \"stripe\"\nbelow = [\"a\", \"b\"]\n\
         chunk = \"64KiB\"\n[[node]]\nname = \"cache\"\nkind = \"write-back-cache\"\ncapacity = \"512 KiB\"\n\
         policy = \"lru\"\nbelow = {{ flash = \"ssd\", backing = \"array\" }}\n"
    );
    let stack = place.path("mine.toml");
    fs::write(&stack, text).expect("a stack");
    // The cache's own blocks behind it are in a row of the stripe that is not whole.
    place.create(&stack, "12MiB", &[]);
    let server = place.serve(&stack);
    let mut client = server.client();
    fill(&mut client);
    verify(&mut client);
    disconnect(client);
    server.stop();
    let clean = run(&["check", "--data", &place.data()]);
    let said = String::from_utf8_lossy(&clean.stdout).into_owned();
    assert!(clean.status.success() && said.ends_with("clean\n"), "{said}");
    // Without the notes of the cache there the check has something to say.
    let length = fs::metadata(member(&place, "a")).expect("a disk").len();
    for name in ["a", "b"] {
        let file = fs::OpenOptions::new().write(true).open(member(&place, name));
        use std::os::unix::fs::FileExt;
        let row = vec![0x55; 64 << 10];
        file.expect("a disk").write_all_at(&row, length - (64 << 10)).expect("damage");
    }
    let damaged = run(&["check", &place.data()]);
    assert!(!damaged.status.success(), "the notes were not read");
}
