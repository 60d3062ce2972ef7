//! `imbrex serve --read-only`: an image as it is, looked at by several, and left as it is.

use crate::client::{Client, FLUSH, FUA, TRIM, WRITE_ZEROES};
use crate::serve_members::{contents, member};
use crate::served::{Place, Served, disconnect, failure, imbrex, run};
use imbrex_core::rng::Rng;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const DEVICE_BYTES: u64 = 8 << 20;
const BLOCK_BYTES: u64 = 4096;
/// NBD's number for what is not permitted, the same as errno's.
const EPERM: u32 = 1;
const STACKS: [&str; 8] =
    ["cmr-only", "smr-only", "lru", "lru-band", "pore-cf", "pore-pf", "pore", "ride"];
/// Bands, log and cache so small that blocks leave the cache and bands are rewritten.
const TRANSLATION: [&str; 2] =
    ["translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=1MiB"];

/// An image whose server was killed in the middle of its work, and what was answered.
fn killed(stack: &str) -> (Place, Vec<u8>) {
    let place = Place::new();
    let settings = match stack {
        "cmr-only" => vec![],
        "smr-only" => TRANSLATION.to_vec(),
        "lru" | "lru-band" => [&TRANSLATION[..], &["cache.capacity=1MiB"]].concat(),
        _ => [&TRANSLATION[..], &["cache.capacity=1MiB", "cache.zone=2MiB"]].concat(),
    };
    place.create(stack, &format!("{}MiB", DEVICE_BYTES >> 20), &settings);
    let server = place.serve(stack);
    let mut client = server.client();
    let mut expected = vec![0; DEVICE_BYTES as usize];
    let mut rng = Rng::new(11, 2);
    for fill in 1..=450u64 {
        let blocks = 1 + rng.below(16);
        let all = DEVICE_BYTES / BLOCK_BYTES;
        let within = if rng.below(2) == 0 { all } else { all / 12 };
        let offset = rng.below(within - blocks) * BLOCK_BYTES;
        let bytes = (blocks * BLOCK_BYTES) as usize;
        let here = &mut expected[offset as usize..][..bytes];
        match rng.below(20) {
            0 => assert_eq!(client.call(FLUSH, 0, 0, 0), 0),
            1 => {
                here.fill(0);
                assert_eq!(client.call(TRIM, 0, offset, bytes as u32), 0);
            }
            kind => {
                for (number, block) in here.chunks_mut(BLOCK_BYTES as usize).enumerate() {
                    block.fill(fill as u8);
                    block[..8].copy_from_slice(&(fill << 16 | number as u64).to_le_bytes());
                }
                let flags = if kind == 2 { FUA } else { 0 };
                assert_eq!(client.write(flags, offset, here), 0);
            }
        }
    }
    server.kill_nine();
    (place, expected)
}

/// A server that only reads, as somebody who may do no more.
fn look(place: &Place, stack: &str, socket: &str, options: &[&str]) -> Served {
    let (data, socket) = (place.data(), place.path(socket));
    // Root may do anything unless it gives that up.
    let mut command = if rustix::process::geteuid().is_root() {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--bounding-set", "-dac_override,-dac_read_search"]);
        setpriv.arg(imbrex().get_program());
        setpriv
    } else {
        imbrex()
    };
    command.args(["serve", stack, "--data", &data, "--socket", &socket, "--read-only"]);
    command.args(options);
    Served::start(&mut command, Path::new(&socket))
}

/// Takes away, or gives back, the permission to write to anything of an image.
fn forbid_writing(place: &Place, forbid: bool) {
    let data = place.data();
    let (files, folder) = if forbid { (0o400, 0o500) } else { (0o600, 0o700) };
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for entry in fs::read_dir(&data).expect("the directory") {
        set(&entry.expect("an entry").path(), files).expect("permissions");
    }
    set(Path::new(&data), folder).expect("permissions");
}

fn verify(client: &mut Client, expected: &[u8], what: &str) {
    const PART: usize = 1 << 20;
    for (index, part) in expected.chunks(PART).enumerate() {
        let offset = (index * PART) as u64;
        let read = client.read(offset, part.len() as u32).expect("a read");
        let differs = read.iter().zip(part).position(|(a, b)| a != b);
        let at = differs.map(|at| offset + at as u64);
        assert_eq!(at, None, "{what}: the first byte that is another one");
    }
}

fn nothing_may_be_changed(client: &mut Client) {
    for flags in [0, FUA] {
        assert_eq!(client.write(flags, 0, &[9; 8192]), EPERM);
        assert_eq!(client.call(TRIM, flags, 0, 8192), EPERM);
        assert_eq!(client.call(WRITE_ZEROES, flags, 4096, 8192), EPERM);
        assert_eq!(client.call(FLUSH, flags, 0, 0), 0);
    }
}

fn an_image_is_looked_at(stack: &str) {
    let (place, expected) = killed(stack);
    let before = contents(&place);
    forbid_writing(&place, true);
    let servers = [look(&place, stack, "one", &[]), look(&place, stack, "two", &[])];
    let data = place.data();
    for server in &servers {
        let said = server.said();
        assert!(said.contains("was not closed in order: recovered in memory in "), "{said}");
        assert!(said.contains("; read-only, buffered I/O"), "{said}");
        let mut client = server.client();
        verify(&mut client, &expected, stack);
        nothing_may_be_changed(&mut client);
        verify(&mut client, &expected, stack);
        disconnect(client);
    }
    for command in ["check", "inspect"] {
        let output = run(&[command, &data]);
        assert!(output.status.success(), "{stack}: {output:?}");
    }
    let in_use = format!("imbrex: the image in {data} is in use by another process");
    assert_eq!(place.refused(stack), in_use);
    let [one, two] = servers;
    one.stop();
    assert_eq!(place.refused(stack), in_use);
    two.stop();
    assert!(contents(&place) == before, "{stack}: something was written");

    forbid_writing(&place, false);
    let server = place.serve(stack);
    assert!(server.said().contains("was not closed in order"), "the mark is there still");
    let socket = place.path("three");
    let arguments = ["serve", stack, "--data", &data, "--socket", &socket, "--read-only"];
    assert_eq!(failure(&run(&arguments)), in_use);
    let mut client = server.client();
    verify(&mut client, &expected, stack);
    assert_eq!(client.write(0, 0, &[9; 4096]), 0);
    disconnect(client);
    server.stop();

    // One that was closed in order has little to recover, and is left closed.
    let before = contents(&place);
    look(&place, stack, "four", &[]).stop();
    assert!(contents(&place) == before, "{stack}: something was written");
}

#[test]
fn stacks_without_a_cache_can_be_looked_at_and_stay_as_they_are() {
    STACKS[..2].iter().for_each(|stack| an_image_is_looked_at(stack));
}

#[test]
fn stacks_with_a_cache_can_be_looked_at_and_stay_as_they_are() {
    STACKS[2..].iter().for_each(|stack| an_image_is_looked_at(stack));
}

#[test]
fn what_is_recorded_of_a_look_is_what_was_read() {
    let (place, _) = killed("lru");
    let recording = place.path("look.imbrex");
    let server = look(&place, "lru", "s", &["--record", &recording]);
    let mut client = server.client();
    client.read(0, 4096).expect("a read");
    assert_eq!(client.write(0, 0, &[1; 4096]), EPERM);
    disconnect(client);
    let report = server.stop();
    assert_eq!((&report["read_blocks"], &report["write_blocks"]), (&1.into(), &0.into()));
    let output = run(&["trace", "info", &recording, "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    let text = info.to_string();
    assert!(text.contains("\"requests\":1"), "{text}");
}

#[test]
fn an_emulated_drive_has_nothing_to_look_at() {
    let place = Place::new();
    let socket = place.socket();
    let arguments = ["serve", "smr-only", "--emulate", "--read-only", "--socket", &socket];
    let output = run(&arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("'--emulate' cannot be used with '--read-only'"), "{said}");
}

/// What labels refuse may be looked at, and never be written to.
#[test]
fn force_needs_read_only() {
    let place = Place::new();
    place.create("striped", "16MiB", &[]);
    let (data, socket) = (place.data(), place.socket());
    let serve = ["serve", "striped", "--data", &data, "--socket", &socket];
    let output = run(&[&serve[..], &["--force"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = "imbrex: --force: no disk of the stack is at another server; accepted: with --read-only, to show \
                    disks that do not belong together\n";
    assert_eq!(said, expected);
    assert!(!Path::new(&place.path("data/in-use")).exists());
    // With it the same image is shown.
    let shown = [&serve[..], &["--force", "--read-only"]].concat();
    let server = Served::start(imbrex().args(shown), Path::new(&socket));
    let said = server.said();
    assert!(said.contains("--force: the labels of the disks are not compared"), "{said}");
    server.stop();
}

#[test]
fn a_member_that_may_not_be_read_is_refused() {
    let (place, _) = killed("smr-only");
    let path = member(&place, "smr");
    fs::remove_file(&path).expect("a member");
    let (data, socket) = (place.data(), place.socket());
    let arguments = ["serve", "smr-only", "--data", &data, "--socket", &socket, "--read-only"];
    let expected = format!(
        "imbrex: node `smr`: cannot open {path} as a disk: No such file or directory (os error 2)"
    );
    assert_eq!(failure(&run(&arguments)), expected);
}
