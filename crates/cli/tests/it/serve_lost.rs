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
        assert_eq!(
            client.write(0, block * BLOCK as u64, &[block as u8 | 1; BLOCK]),
            0
        );
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
        ("a write of the first block", |client| {
            client.write(0, 0, &[9; BLOCK])
        }),
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
            "imbrex: node `cmr`: {path} is lost: it has become shorter, 409600 bytes, and the disk needs 8388608; from \
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
    assert!(
        said.contains("ssd.img is lost: it has become shorter"),
        "{said}"
    );
    assert!(
        said.contains("the flush at the end failed (disk is lost)"),
        "{said}"
    );
}
