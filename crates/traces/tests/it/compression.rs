//! Each compression, with several members or streams in one file, and each cut short.

use std::io::Write;

use imbrex_traces::{ReadOptions, TraceReader};
use sha2::{Digest, Sha256};

use crate::{fixture, read_bytes, read_fixture};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;
const KINDS: [(&str, Compress); 4] = [("gzip", gzip), ("zstd", zst), ("xz", xz), ("bzip2", bz2)];

#[test]
fn several_members_are_read_through() {
    let text = std::fs::read(fixture("msr.csv")).unwrap();
    let (plain, _) = read_fixture("msr.csv", &ReadOptions::default());
    for (name, compress) in KINDS {
        // Cut in the middle of a line: members know nothing of lines.
        let members =
            [compress(&text[..70]), compress(&text[70..100]), compress(&text[100..])].concat();
        assert_eq!(read_bytes(&members, &ReadOptions::default()).unwrap(), plain, "{name}");
        let reader =
            TraceReader::from_read("t", std::io::Cursor::new(members), &ReadOptions::default())
                .unwrap();
        assert!(
            reader.detected().contains(&format!("in the {name} stream")),
            "{}",
            reader.detected()
        );
    }
}

#[test]
fn a_truncated_stream_is_an_error() {
    // Long enough that the cut loses whole lines, in every kind of block.
    let text: String = (0..20_000u64)
        .map(|index| {
            format!(
                "{},host,0,Write,{},4096,{}\n",
                128_166_372_000_000_000 + index * 7919,
                index * 4096 % 99_991,
                index * 31 % 977
            )
        })
        .collect();
    for (name, compress) in KINDS {
        let whole = compress(text.as_bytes());
        assert_eq!(read_bytes(&whole, &ReadOptions::default()).unwrap().len(), 20_000, "{name}");
        for cut in [whole.len() - 1, whole.len() - 5, whole.len() * 2 / 3] {
            let error =
                read_bytes(&whole[..cut], &ReadOptions::default()).expect_err(name).to_string();
            assert!(
                error
                    .starts_with(&format!("t: the {name} stream cannot be read to its end after ")),
                "{name}: {error}"
            );
        }
    }
}

#[test]
fn a_long_zstd_window_is_accepted() {
    let text = std::fs::read(fixture("msr.csv")).unwrap();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(30).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.write_all(&text).unwrap();
    let bytes = encoder.finish().unwrap();
    assert_eq!(read_bytes(&bytes, &ReadOptions::default()).unwrap().len(), 4);
}

#[test]
fn sha256_is_that_of_the_stored_file() {
    let stored = gzip(&std::fs::read(fixture("msr.csv")).unwrap());
    let expected: String =
        Sha256::digest(&stored).iter().map(|byte| format!("{byte:02x}")).collect();
    let options = ReadOptions { sha256: true, ..ReadOptions::default() };
    let mut reader = TraceReader::from_read("t", std::io::Cursor::new(stored), &options).unwrap();
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 4);
    assert_eq!(reader.sha256(), Some(expected));
}
