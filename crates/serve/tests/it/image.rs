//! Images: created, used, closed, and all the ways in which one is refused.

use imbrex_core::units::BlockCount;
use imbrex_serve::image::{Image, ImageDescription, ImageError, ImageNode};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

fn description() -> ImageDescription {
    let node = |name: &str, blocks| ImageNode {
        name: name.into(),
        blocks: BlockCount(blocks),
    };
    ImageDescription {
        stack_toml: "name = \"pöre\"\n".into(),
        size_bytes: 40_960,
        nodes: vec![node("ssd", 3), node("smr", 1 << 28)],
    }
}

fn refusal(dir: &Path) -> String {
    Image::open(dir).expect_err("a refusal").to_string()
}

/// The state file of `description()` as `docs/formats/image.md` draws it, written down by hand.
fn state_by_hand(version: u32, flags: u32, states: &[&[u8]]) -> Vec<u8> {
    let toml = "name = \"pöre\"\n".as_bytes();
    let mut body = toml.to_vec();
    body.extend([3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    body.extend(b"ssd");
    body.extend([3, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0]);
    body.extend(b"smr");
    for state in states {
        body.extend((state.len() as u64).to_le_bytes());
        body.extend(*state);
    }
    let mut bytes = b"IMBREXIM".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend([0, 160, 0, 0, 0, 0, 0, 0]);
    bytes.extend([15, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([2, 0, 0, 0]);
    bytes.extend((states.len() as u32).to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(crc32c::crc32c(&body).to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn the_state_file_is_as_the_page_draws_it() {
    let dir = tempfile::tempdir().expect("a directory");
    Image::create(dir.path(), &description()).expect("an image");
    let state = dir.path().join("state");
    let read = || fs::read(&state).expect("a state");
    assert_eq!(read(), state_by_hand(1, 1, &[]));
    let image = Image::open(dir.path())
        .expect("an image")
        .begin_use()
        .expect("in use");
    assert_eq!(read(), state_by_hand(1, 0, &[]));
    let states = [vec![], vec![1, 2, 3], vec![9; 80]];
    image.close_cleanly(&states).expect("closed");
    assert_eq!(read(), state_by_hand(1, 1, &[&[], &[1, 2, 3], &[9; 80]]));
}

#[test]
fn an_image_comes_back_as_it_was_closed() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("new").join("nested");
    Image::create(&dir, &description()).expect("an image");
    let image = Image::open(&dir).expect("an image");
    assert_eq!(image.description(), &description());
    assert!(image.layer_states().is_empty(), "never used");
    drop(image);
    let image = Image::open(&dir).expect("looking changes nothing");
    let image = image.begin_use().expect("in use");
    assert_eq!(image.node_path("none"), None);
    let path = image.node_path("smr").expect("a node");
    let file = OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("its file");
    file.write_all_at(b"here", (1 << 40) - 4096)
        .expect("a write");
    let metadata = file.metadata().expect("metadata");
    assert_eq!(metadata.len(), 1 << 40);
    assert!(metadata.blocks() < 1000, "the file is sparse");
    let states = [vec![], vec![7; 24], vec![]];
    image.close_cleanly(&states).expect("closed");
    let image = Image::open(&dir).expect("an image");
    assert_eq!(image.description(), &description());
    assert_eq!(image.layer_states(), states);
}

#[test]
fn an_image_not_closed_cleanly_is_refused_for_ever() {
    let dir = tempfile::tempdir().expect("a directory");
    Image::create(dir.path(), &description()).expect("an image");
    let image = Image::open(dir.path()).expect("an image");
    drop(image.begin_use().expect("in use"));
    let expected = format!(
        "the image in {} was not closed cleanly: what it holds may be stale, so it is refused",
        dir.path().display()
    );
    for _ in 0..2 {
        assert_eq!(refusal(dir.path()), expected);
    }
}

#[test]
fn an_image_in_use_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    Image::create(dir.path(), &description()).expect("an image");
    let expected = format!(
        "the image in {} is in use by another process",
        dir.path().display()
    );
    let image = Image::open(dir.path()).expect("an image");
    assert_eq!(refusal(dir.path()), expected);
    let image = image.begin_use().expect("in use");
    assert_eq!(refusal(dir.path()), expected);
    image.close_cleanly(&[]).expect("closed");
    Image::open(dir.path()).expect("free again");
}

#[test]
fn an_image_of_another_version_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    Image::create(dir.path(), &description()).expect("an image");
    let mut state = state_by_hand(2, 1, &[]);
    // Nothing else of another version can be judged, its checksums included.
    state[60] ^= 1;
    fs::write(dir.path().join("state"), state).expect("a state");
    let expected = format!(
        "the image in {} has format version 2, this build reads version 1",
        dir.path().display()
    );
    assert_eq!(refusal(dir.path()), expected);
}

#[test]
fn no_image_and_a_second_image_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let shown = dir.path().display();
    assert_eq!(refusal(dir.path()), format!("there is no image in {shown}"));
    let missing = dir.path().join("none");
    let expected = format!("there is no image in {}", missing.display());
    assert_eq!(refusal(&missing), expected);
    Image::create(dir.path(), &description()).expect("an image");
    let error = Image::create(dir.path(), &description()).expect_err("a second one");
    assert_eq!(
        error.to_string(),
        format!("there is already an image in {shown}")
    );
    Image::open(dir.path()).expect("the first is as it was");
}

#[test]
fn a_failed_creation_leaves_no_file_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("smr.img"), "precious").expect("a file");
    let error = Image::create(dir.path(), &description()).expect_err("a file in the way");
    let expected = format!(
        "cannot create {}: File exists (os error 17)",
        dir.path().join("smr.img").display()
    );
    assert_eq!(error.to_string(), expected);
    let left: Vec<_> = fs::read_dir(dir.path())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["smr.img"]);
    for name in ["", "a/b", "..", "x y"] {
        let mut description = description();
        description.nodes[0].name = name.into();
        let error = Image::create(dir.path(), &description).expect_err("a bad name");
        assert!(matches!(error, ImageError::NodeName { .. }));
        let expected =
            format!("the node name `{name}` cannot name a file: use letters, digits, `-` and `_`");
        assert_eq!(error.to_string(), expected);
    }
}

/// Every bit of the state file is covered: none can flip unseen.
#[test]
fn a_damaged_state_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    Image::create(dir.path(), &description()).expect("an image");
    let path = dir.path().join("state");
    let good = state_by_hand(1, 1, &[&[], &[5; 16]]);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&path, bytes).expect("a state");
            let error = Image::open(dir.path()).expect_err("a refusal");
            let is_version = (8..12).contains(&at);
            assert_eq!(matches!(error, ImageError::OtherVersion { .. }), is_version);
            assert_eq!(matches!(error, ImageError::Damaged { .. }), !is_version);
        }
    }
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).expect("a state");
        assert!(Image::open(dir.path()).is_err(), "cut to {length} bytes");
    }
    fs::write(&path, b"").expect("a state");
    let expected = format!(
        "{} is damaged: it is shorter than its header",
        path.display()
    );
    assert_eq!(refusal(dir.path()), expected);
}
