//! Disks that cannot be opened, or that are lost while they are served.

use crate::client::{Client, FLUSH};
use crate::serve_members::{BLOCK, member, used};
use crate::served::{Place, Served, disconnect, imbrex};
use std::fs::{self, OpenOptions};
use std::path::Path;

const EIO: u32 = 5;

fn flush(client: &mut Client) -> u32 {
    client.call(FLUSH, 0, 0, 0)
}

/// The error of a read of one block; 0 when there is none.
fn error_of_read(client: &mut Client, at: u64) -> u32 {
    client.read(at, BLOCK as u32).err().unwrap_or(0)
}

#[test]
fn a_start_without_its_disks_names_them_all() {
    let place = used();
    let paths = ["smr", "ssd"].map(|name| member(&place, name));
    fs::remove_file(&paths[0]).expect("a member");
    OpenOptions::new()
        .write(true)
        .open(&paths[1])
        .and_then(|file| file.set_len(5 << 12))
        .expect("a shorter member");
    let said = place.refused("pore");
    let expected = format!(
        "imbrex: node `smr`: cannot open {} as a disk: No such file or directory (os error 2); node `ssd`: {} holds \
         20480 bytes, the disk needs ",
        paths[0], paths[1]
    );
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// A plain disk that is served; every block of the first MiB holds its fill.
fn plain() -> (Place, Served, String) {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let server = place.serve("cmr-only");
    let mut client = server.client();
    for block in 0..256 {
        assert_eq!(client.write(0, block * BLOCK as u64, &[block as u8 | 1; BLOCK]), 0);
    }
    assert_eq!(flush(&mut client), 0);
    disconnect(client);
    let path = member(&place, "cmr");
    (place, server, path)
}

fn cut(path: &str, bytes: u64) {
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.set_len(bytes)).expect("a cut");
}

#[test]
fn a_disk_that_was_cut_is_lost_and_never_reads_as_zeroes() {
    // Found by a read behind the end, by a write before it or behind it, and by a flush.
    type Find = fn(&mut Client) -> u32;
    let finds: [(&str, Find); 4] = [
        ("a read", |client| error_of_read(client, 200 * BLOCK as u64)),
        ("a write of the last block", |client| {
            client.write(0, (8 << 20) - BLOCK as u64, &[9; BLOCK])
        }),
        ("a write of the first block", |client| client.write(0, 0, &[9; BLOCK])),
        ("a flush", flush),
    ];
    for (name, find) in finds {
        let (place, server, path) = plain();
        cut(&path, 100 * BLOCK as u64);
        let mut client = server.client();
        assert_eq!(find(&mut client), EIO, "{name}");
        for block in [0, 99, 100, 255] {
            let error = error_of_read(&mut client, block * BLOCK as u64);
            assert_eq!(error, EIO, "{name}: block {block}");
        }
        assert_eq!(client.write(0, 0, &[9; BLOCK]), EIO, "{name}");
        assert_eq!(flush(&mut client), EIO, "{name}");
        disconnect(client);
        server.signal("TERM");
        let (said, (status, _)) = server.wait_and_said();
        assert_eq!(status, Some(1), "{name}: {said}");
        let lost = format!(
            "imbrex: node `cmr`: {path} is lost: it has become shorter, 409600 bytes, and the disk needs 8396800; from \
             now on everything on it fails\n"
        );
        assert_eq!(said.matches(&lost).count(), 1, "{name}: {said}");
        let end = "the flush at the end failed (disk is lost): writes that no earlier flush covers may be lost";
        assert!(said.contains(end), "{name}: {said}");
        let again = place.refused("cmr-only");
        let expected =
            format!("imbrex: node `cmr`: {path} holds 409600 bytes, the disk needs 8388608");
        assert_eq!(again, expected, "{name}");
    }
}

#[test]
fn a_deleted_disk_is_served_to_the_end_and_said_once() {
    let (place, server, path) = plain();
    fs::remove_file(&path).expect("a member");
    let mut client = server.client();
    for fill in [3, 4] {
        assert_eq!(client.write(0, 0, &[fill; BLOCK]), 0);
        assert_eq!(flush(&mut client), 0);
        assert_eq!(client.read(0, BLOCK as u32), Ok(vec![fill; BLOCK]));
    }
    disconnect(client);
    server.signal("TERM");
    let (said, (status, _)) = server.wait_and_said();
    assert_eq!(status, Some(0), "{said}");
    let deleted =
        format!("imbrex: node `cmr`: {path} was deleted: it is served until the server ends");
    assert_eq!(said.matches(&deleted).count(), 1, "{said}");
    let again = place.refused("cmr-only");
    let expected =
        format!("imbrex: node `cmr`: cannot open {path} as a disk: No such file or directory");
    assert!(again.starts_with(&expected), "{again}");
}

#[test]
fn a_cache_whose_flash_was_cut_serves_what_is_not_in_it() {
    let place = used();
    let (data, socket) = (place.data(), place.socket());
    let arguments = ["serve", "pore", "--data", &data, "--socket", &socket];
    let server = Served::start(imbrex().args(arguments), Path::new(&socket));
    let mut client = server.client();
    assert_eq!(client.write(0, 0, &[7; BLOCK]), 0);
    assert_eq!(flush(&mut client), 0);
    cut(&member(&place, "ssd"), BLOCK as u64);
    // The block is in the flash alone, and nobody may be told that it holds zeroes.
    assert_eq!(error_of_read(&mut client, 0), EIO);
    assert_eq!(client.write(0, 0, &[8; BLOCK]), EIO);
    assert_eq!(flush(&mut client), EIO);
    let mut served = 0;
    for at in (0..8 << 20).step_by(64 << 10) {
        match client.read(at, BLOCK as u32) {
            Ok(read) => {
                let fill = if at < 4 << 20 { 1 } else { 0 };
                assert!(read.iter().all(|byte| *byte == fill), "at {at}");
                served += 1;
            }
            Err(error) => assert_eq!(error, EIO, "at {at}"),
        }
    }
    assert!(served > 64, "{served} of 128 parts could be read");
    disconnect(client);
    server.signal("TERM");
    let (said, (status, _)) = server.wait_and_said();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("ssd.img is lost: it has become shorter"), "{said}");
    assert!(said.contains("the flush at the end failed (disk is lost)"), "{said}");
}

/// A span of two caches, each over a disk of its own; the first window begins at 0, the second at `SECOND`.
const SECOND: u64 = 4 << 20;

fn spanned() -> (Place, String) {
    let place = Place::new();
    let node = |name: &str, drive: &str| {
        let path = place.path(&format!("{name}.disk"));
        // Two blocks behind the device are the cache's own.
        let blocks = if name.starts_with("disk") { SECOND / BLOCK as u64 + 2 } else { 2560 };
        let file = fs::File::create(&path).expect("a file");
        // A label lies behind them.
        file.set_len((blocks + 2) * BLOCK as u64).expect("a length");
        format!(
            "[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\nbacking = \"{path}\"\n"
        )
    };
    let cache = |number: u8| {
        format!(
            "[[node]]\nname = \"cache{number}\"\nkind = \"write-back-cache\"\ncapacity = \"1 MiB\"\npolicy = \
             \"lru\"\nbelow = {{ flash = \"ssd{number}\", backing = \"disk{number}\" }}\n"
        )
    };
    let nodes = [
        node("disk0", "wd-4tb-7200"),
        node("ssd0", "850evo"),
        cache(0),
        node("disk1", "wd-4tb-7200"),
        node("ssd1", "850evo"),
        cache(1),
    ];
    let span = "[[node]]\nname = \"both\"\nkind = \"span\"\nbelow = [\"cache0\", \"cache1\"]\n";
    let stack = place.path("mine.toml");
    let text = format!("name = \"mine\"\n{}{span}", nodes.concat());
    fs::write(&stack, text).expect("a stack");
    let data = place.data();
    let output = crate::served::run(&["create", &stack, "--data", &data]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    (place, stack)
}

/// Writes all of a window, flushes and reads it again.
fn fill(client: &mut Client, window: u64, fill: u8) {
    for at in (window..window + SECOND).step_by(64 << 10) {
        assert_eq!(client.write(0, at, &[fill; 64 << 10]), 0);
    }
    assert_eq!(flush(client), 0);
    verify(client, window, fill);
}

fn verify(client: &mut Client, window: u64, fill: u8) {
    for at in (window..window + SECOND).step_by(64 << 10) {
        assert_eq!(client.read(at, 64 << 10), Ok(vec![fill; 64 << 10]), "at {at}");
    }
}

#[test]
fn a_window_that_is_lost_at_a_start_is_told_of_and_the_others_are_served() {
    let (place, stack) = spanned();
    let server = place.serve(&stack);
    let mut client = server.client();
    fill(&mut client, 0, 1);
    fill(&mut client, SECOND, 2);
    disconnect(client);
    server.stop();
    for (lost, window, other, kept) in [("disk0", 0, SECOND, 2), ("ssd1", SECOND, 0, 1)] {
        let (path, away) = (place.path(&format!("{lost}.disk")), place.path("away"));
        fs::rename(&path, &away).expect("a disk");
        let server = place.serve(&stack);
        let warning = format!(
            "imbrex: warning: node `{lost}`: cannot open {path} as a disk: No such file or directory (os error 2); the \
             disk counts as lost\n"
        );
        assert_eq!(server.said().matches(&warning).count(), 1, "{}", server.said());
        let mut client = server.client();
        for at in (window..window + SECOND).step_by(64 << 10) {
            assert_eq!(error_of_read(&mut client, at), EIO, "{lost}: at {at}");
        }
        assert_eq!(client.write(0, window, &[9; BLOCK]), EIO);
        verify(&mut client, other, kept);
        fill(&mut client, other, kept);
        disconnect(client);
        server.stop();
        fs::rename(&away, &path).expect("a disk");
    }
    let server = place.serve(&stack);
    let mut client = server.client();
    verify(&mut client, 0, 1);
    verify(&mut client, SECOND, 2);
    disconnect(client);
    server.stop();
}

#[test]
fn a_window_whose_disk_was_cut_fails_and_the_others_go_on() {
    let (place, stack) = spanned();
    let server = place.serve(&stack);
    let mut client = server.client();
    fill(&mut client, 0, 1);
    fill(&mut client, SECOND, 2);
    // Written and not flushed: that it may be lost must be said.
    assert_eq!(client.write(0, 0, &[7; BLOCK]), 0);
    cut(&place.path("disk0.disk"), 1 << 20);
    cut(&place.path("ssd0.disk"), 1 << 12);
    for at in (0..SECOND).step_by(64 << 10) {
        assert_eq!(error_of_read(&mut client, at), EIO, "at {at}");
    }
    assert_eq!(flush(&mut client), EIO);
    verify(&mut client, SECOND, 2);
    assert_eq!(client.write(0, SECOND, &[3; BLOCK]), 0);
    assert_eq!(client.read(SECOND, BLOCK as u32), Ok(vec![3; BLOCK]));
    disconnect(client);
    server.signal("TERM");
    let (said, (status, _)) = server.wait_and_said();
    assert_eq!(status, Some(1), "{said}");
    // The cache is lost with its flash, and nobody asks its disk any more.
    let path = place.path("ssd0.disk");
    let words = format!("node `ssd0`: {path} is lost: it has become shorter");
    assert_eq!(said.matches(&words).count(), 1, "{said}");
    let server = place.serve(&stack);
    assert_eq!(server.said().matches("the disk counts as lost").count(), 2, "{}", server.said());
    let mut client = server.client();
    assert_eq!(client.read(SECOND, BLOCK as u32), Ok(vec![3; BLOCK]));
    assert_eq!(error_of_read(&mut client, 0), EIO);
    disconnect(client);
    server.stop();
}
