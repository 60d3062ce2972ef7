//! Members as a build has left them, which every later build must open.

use super::journal_disk::Image;
use std::io::Read;
use std::rc::Rc;

/// The bytes of a member that is kept packed.
pub fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = liblzma::read::XzDecoder::new(packed).read_to_end(&mut bytes);
    read.expect("whole");
    bytes
}

/// The blocks of a member.
pub fn image_of(bytes: &[u8]) -> Image {
    let blocks = bytes.chunks_exact(4096).map(Rc::from);
    (0..).zip(blocks).collect()
}

/// Writes a member to its file again, packed where the name says so: only for a new version of the
/// format, never for this one.
#[allow(clippy::disallowed_methods)]
pub fn write(name: &str, bytes: Vec<u8>) {
    // `make soak` runs what is ignored, and must not touch what other tests are compared with.
    if std::env::var_os("IMBREX_WRITE_FIXTURE").is_none() {
        println!("skipped: IMBREX_WRITE_FIXTURE is not set");
        return;
    }
    let mut kept = Vec::new();
    if name.ends_with(".xz") {
        let read = liblzma::read::XzEncoder::new(&bytes[..], 9).read_to_end(&mut kept);
        read.expect("packed");
    } else {
        kept = bytes;
    }
    std::fs::write(format!("tests/fixtures/format-1/{name}"), kept).expect("written");
}
