//! `trace info` on small traces counted by hand.

use imbrex_traces::{BlockRule, ReadOptions, TraceReader, characterise};

fn reader(text: &str) -> TraceReader {
    TraceReader::from_read(
        "t",
        std::io::Cursor::new(text.as_bytes().to_vec()),
        &ReadOptions::default(),
    )
    .unwrap()
}

/// Five requests of 512-byte sectors; every figure below is counted by hand.
const TRACE: &str =
    "0,8,4096,w,0.0\n0,16,4096,w,1.0\n0,12,4096,w,2.0\n0,0,512,r,3.0\n1,8,1024,r,10.5\n";

#[test]
fn figures_are_those_counted_by_hand() {
    let info = characterise(reader(TRACE), BlockRule::Touched).unwrap();
    assert_eq!((info.requests, info.read.requests, info.write.requests), (5, 2, 3));
    assert_eq!((info.read.bytes, info.write.bytes), (1536, 12_288));
    // The third write starts in the middle of a block and touches two.
    assert_eq!((info.read.blocks, info.write.blocks), (2, 4));
    assert_eq!((info.write.mean_bytes, info.read.mean_bytes), (4096.0, 768.0));
    assert_eq!((info.read.median_bytes, info.write.median_bytes), (512, 4096));
    // Writes cover sectors 8 to 24 of device 0, reads sector 0 there and two sectors of device 1.
    assert_eq!(
        (info.write.unique_bytes, info.read.unique_bytes, info.unique_bytes),
        (8192, 1536, 9728)
    );
    assert_eq!((info.write.unique_blocks, info.read.unique_blocks, info.unique_blocks), (2, 2, 4));
    assert_eq!(info.updates, 1);
    assert_eq!(info.write_percent, 60.0);
    assert_eq!((info.written_blocks_percent, info.updated_blocks_percent), (50.0, 50.0));
    assert_eq!(info.footprint_bytes, 12_288);
    // Of the three requests with one before on their device, the second alone follows on.
    assert!((info.random_percent - 200.0 / 3.0).abs() < 1e-9);
    assert_eq!((info.devices, info.duration_s), (2, Some(10.5)));
    assert_eq!((info.written_band_bytes, info.accessed_band_bytes), (18 << 20, 36 << 20));
    let table = info.to_string();
    assert!(table.contains("captured") && table.contains("skipped lines         none"), "{table}");
}

/// By size, the third write covers one block from that of its offset.
#[test]
fn blocks_by_size() {
    let info = characterise(reader(TRACE), BlockRule::Size).unwrap();
    assert_eq!(info.write.blocks, 3);
    assert_eq!(info.write.unique_blocks, 2);
}

/// Table I of PORE through the reader, at a sixty-fourth.
#[test]
fn synthetic_volumes_are_characterised_and_labelled() {
    let reader = imbrex_traces::open("synthetic:hm-like/64", &ReadOptions::default()).unwrap();
    let info = characterise(reader, BlockRule::Touched).unwrap();
    assert_eq!(info.requests, 140_398);
    assert!((info.write_percent - 67.3).abs() < 0.001);
    assert_eq!(info.written_band_bytes, 8 * (18 << 20));
    assert!(info.label.starts_with("synthetic hm-like at 1/64"), "{}", info.label);
    assert_eq!(serde_json::to_value(&info).unwrap()["kind"], "synthetic");
    assert_eq!(info.sha256.unwrap().len(), 64);
}
