//! Members that must not be used: what is said of each, and that nothing is written.

use crate::served::{Place, WAY_OUT, disconnect, failure, imbrex};
use rustix::fs::SeekFrom;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

pub const BLOCK: usize = 4096;
pub const MEMBERS: [&str; 2] = ["smr", "ssd"];
/// Bands, log and cache are small, so that files are.
const SETTINGS: [&str; 4] = [
    "translation.bands=uniform:1MiB..3MiB",
    "translation.persistent_cache=1MiB",
    "cache.capacity=1MiB",
    "cache.zone=2MiB",
];

/// An image of a stack with a cache and a translation that has been used and closed.
pub fn used() -> Place {
    let place = Place::new();
    place.create("pore", "8MiB", &SETTINGS);
    write(&place, 1);
    place
}

/// Writes enough for blocks to leave the cache.
pub fn write(place: &Place, fill: u8) {
    let server = place.serve("pore");
    let mut client = server.client();
    for at in (0..4 << 20).step_by(64 << 10) {
        assert_eq!(client.write(0, at, &[fill; 64 << 10]), 0);
    }
    disconnect(client);
    server.stop();
}

pub fn member(place: &Place, name: &str) -> String {
    place.path(&format!("data/{name}.img"))
}

/// The parts of a file that are not holes, each with its offset.
pub type Parts = Vec<(u64, Vec<u8>)>;

fn parts(path: &Path) -> Parts {
    let file = fs::File::open(path).expect("a file");
    let mut parts = Vec::new();
    let mut at = 0;
    while let Ok(start) = rustix::fs::seek(&file, SeekFrom::Data(at)) {
        let end = rustix::fs::seek(&file, SeekFrom::Hole(start)).expect("a hole or the end");
        let mut part = vec![0; (end - start) as usize];
        file.read_exact_at(&mut part, start).expect("a part");
        parts.push((start, part));
        at = end;
    }
    parts
}

/// Everything in the data directory.
pub fn contents(place: &Place) -> Vec<(PathBuf, Parts)> {
    let entries = fs::read_dir(place.data()).expect("the directory");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), parts(&path))).collect()
}

/// A copy of a file with its holes.
pub fn copy(from: &str, to: &str) {
    let status = Command::new("cp").args(["--sparse=always", from, to]).status();
    assert!(status.expect("cp").success());
}

/// The refusal of an image, which must leave it as it is.
fn refused(place: &Place) -> String {
    let before = contents(place);
    let said = place.refused("pore");
    assert!(contents(place) == before, "something was written: {said}");
    said
}

/// Changes the superblocks of a member: `change` is given each of them, and its checksum is made
/// right again where `seal` says so.
pub fn change_superblocks(path: &str, seal: bool, change: impl Fn(&mut [u8])) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("a member");
    let mut changed = 0;
    for (start, part) in parts(Path::new(path)) {
        for (index, block) in part.chunks_exact(BLOCK).enumerate() {
            // The magic of a sealed block, and its kind.
            if block[..4] != *b"ImBx" || block[10..12] != [1, 0] {
                continue;
            }
            let mut block = block.to_vec();
            change(&mut block);
            if seal {
                block[4..8].fill(0);
                let checksum = crc32c::crc32c(&block);
                block[4..8].copy_from_slice(&checksum.to_le_bytes());
            }
            let offset = start + (index * BLOCK) as u64;
            file.write_all_at(&block, offset).expect("a write");
            changed += 1;
        }
    }
    assert_eq!(changed, 4, "superblocks of {path}");
}

/// The node whose journal a member holds.
fn layer_of(member: &str) -> &'static str {
    if member == "ssd" { "cache" } else { "translation" }
}

pub fn uuid_of(place: &Place) -> String {
    let description = fs::read(place.path("data/image")).expect("a description");
    let hex: String = description[16..32].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[test]
fn a_member_of_a_newer_version_is_refused() {
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        change_superblocks(&path, true, |block| block[8..10].copy_from_slice(&9u16.to_le_bytes()));
        assert_eq!(
            refused(&place),
            format!(
                "imbrex: node `{}`: {path}: it has format version 9; this build reads up to version 1",
                layer_of(name)
            )
        );
    }
}

#[test]
fn a_damaged_member_is_refused() {
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        change_superblocks(&path, false, |block| block[100] ^= 4);
        let wrong = |copy: u32| format!("copy {copy}: its checksum does not match its bytes");
        let copies: Vec<String> = (0..4).map(wrong).collect();
        assert_eq!(
            refused(&place),
            format!(
                "imbrex: node `{}`: {path}: its superblock is damaged: {}",
                layer_of(name),
                copies.join("; ")
            )
        );
    }
}

#[test]
fn a_member_that_was_never_formatted_is_refused() {
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        let bytes = fs::metadata(&path).expect("a member").len();
        fs::remove_file(&path).expect("a member");
        fs::File::create(&path).expect("a file").set_len(bytes).expect("a length");
        assert_eq!(
            refused(&place),
            format!(
                "imbrex: node `{name}`: {path}: it has no label (it is all zeroes); expected: the label of this disk; \
                 {WAY_OUT}"
            )
        );
    }
}

#[test]
fn a_member_of_another_image_is_refused() {
    let other = used();
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        copy(&member(&other, name), &path);
        assert_eq!(
            refused(&place),
            format!(
                "imbrex: node `{name}`: {path}: it is a disk of image {}; expected: disk {} of this image; {WAY_OUT}",
                uuid_of(&other),
                if name == "smr" { 1 } else { 2 }
            )
        );
    }
}

/// A copy from before the last checkpoint, of one member only. Rolling back all of them cannot be
/// noticed.
#[test]
fn an_older_copy_of_a_member_is_refused() {
    for name in MEMBERS {
        let place = used();
        let (path, older) = (member(&place, name), place.path("older"));
        copy(&path, &older);
        write(&place, 2);
        copy(&older, &path);
        let said = refused(&place);
        let start =
            format!("imbrex: node `{name}`: {path}: it is an older copy of itself: its label");
        assert!(said.starts_with(&start), "{said}");
    }
}

#[test]
fn a_member_that_was_cut_is_refused() {
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        let file = fs::OpenOptions::new().write(true).open(&path).expect("a member");
        let needed = file.metadata().expect("metadata").len();
        file.set_len(needed - 1).expect("a length");
        assert_eq!(
            refused(&place),
            format!(
                "imbrex: node `{name}`: {path} holds {} bytes, the disk needs {needed}",
                needed - 1
            )
        );
    }
}

#[test]
fn a_member_in_use_is_refused() {
    for name in MEMBERS {
        let place = used();
        let path = member(&place, name);
        let user = fs::File::open(&path).expect("a member");
        rustix::fs::flock(&user, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        assert_eq!(
            refused(&place),
            format!("imbrex: node `{name}`: {path} is in use by another process")
        );
        drop(user);
        place.serve("pore").stop();
    }
}

#[test]
fn a_member_without_permission_is_refused() {
    let place = used();
    let path = member(&place, "ssd");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("permissions");
    let (data, socket) = (place.data(), place.socket());
    let before = contents(&place);
    // Root may do anything unless it gives that up.
    let mut command = if rustix::process::geteuid().is_root() {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--bounding-set", "-dac_override,-dac_read_search"]);
        setpriv.arg(imbrex().get_program());
        setpriv
    } else {
        imbrex()
    };
    command.args(["serve", "pore", "--data", &data, "--socket", &socket]);
    assert_eq!(
        failure(&command.output().expect("the program")),
        format!(
            "imbrex: node `ssd`: cannot open {path} as a disk: Permission denied (os error 13)"
        )
    );
    assert!(contents(&place) == before, "something was written");
}
