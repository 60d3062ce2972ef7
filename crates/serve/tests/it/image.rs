//! Images: created, used, closed, and all the ways in which one is refused.

use imbrex_core::lifecycle::Uuid;
use imbrex_core::units::BlockCount;
use imbrex_serve::image::{
    Image, ImageDescription, ImageDisk, ImageDisks, ImageError, ImageMember, ImageMembers,
    ImageNode, NewImage, new_uuid,
};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

pub fn description() -> ImageDescription {
    let node = |name: &str, blocks| ImageNode {
        name: name.into(),
        blocks: BlockCount(blocks),
        replacement: 0,
    };
    let member = |number, node: &str, port: &str| ImageMember {
        number,
        node: node.into(),
        port: port.into(),
    };
    ImageDescription {
        uuid: Uuid([0xa5; 16]),
        stack_toml: "name = \"pöre\"\n".into(),
        size_bytes: 40_960,
        nodes: vec![node("ssd", 3), node("smr", 1 << 28)],
        members: ImageMembers {
            next: 0x203,
            list: vec![member(1, "cache", "flash"), member(0x202, "map", "below")],
        },
        disks: Some(ImageDisks {
            next: 0x102,
            list: vec![disk(1, "ssd", true), disk(0x101, "smr", false)],
        }),
    }
}

fn disk(number: u16, node: &str, is_labelled: bool) -> ImageDisk {
    ImageDisk { number, node: node.into(), is_labelled }
}

pub fn create(dir: &Path) -> Result<(), ImageError> {
    NewImage::begin(dir, description(), &[])?.finish()
}

/// Opens an image that only this test uses. A program that another test starts has the locks of this
/// process until it runs.
fn open_own(dir: &Path) -> Result<Image, ImageError> {
    let since = Instant::now();
    loop {
        match Image::open(dir) {
            Err(ImageError::InUse { .. }) if since.elapsed() < Duration::from_secs(10) => {
                thread::sleep(Duration::from_millis(1));
            }
            opened => return opened,
        }
    }
}

pub fn refusal(dir: &Path) -> String {
    Image::open(dir).expect_err("a refusal").to_string()
}

/// The file of `description()` as `docs/formats/image.md` draws it, written down by hand.
pub fn image_by_hand(version: u32) -> Vec<u8> {
    let toml = "name = \"pöre\"\n".as_bytes();
    let mut body = toml.to_vec();
    body.extend([3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    body.extend(b"\0\0ssd");
    body.extend([3, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0]);
    body.extend(b"\0\0smr");
    body.extend([3, 2, 2, 0]);
    body.extend(b"\x01\0\x05\0cache\x05\0flash");
    body.extend(b"\x02\x02\x03\0map\x05\0below");
    if version > 3 {
        body.extend([2, 1, 2, 0]);
        body.extend(b"\x01\0\x01\0\x03\0ssd");
        body.extend(b"\x01\x01\0\0\x03\0smr");
    }
    with_header(version, &body)
}

/// A description file of two nodes with that body, which begins with 15 bytes of TOML.
pub fn with_header(version: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"IMBREXIM".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend([2, 0, 0, 0]);
    bytes.extend([0xa5; 16]);
    bytes.extend([0, 160, 0, 0, 0, 0, 0, 0]);
    bytes.extend([15, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(crc32c::crc32c(body).to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn an_image_of_version_3_is_read_and_gets_labels_when_they_are_written_down() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    fs::write(dir.path().join("image"), image_by_hand(3)).expect("a description");
    let mut image = Image::open(dir.path()).expect("an image");
    let expected = ImageDescription { disks: None, ..description() };
    assert_eq!(image.description(), &expected);
    assert_eq!(image.version(), 3);
    let disks = description().disks.expect("disks");
    let is_new = image.describe_labels(disks.clone());
    assert!(is_new.expect("a description"));
    assert!(!image.describe_labels(disks).expect("it says so already"));
    let described = fs::read(dir.path().join("image")).expect("a description");
    assert_eq!(described, image_by_hand(4));
}

#[test]
fn disks_that_no_image_has_are_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    let path = dir.path().join("image");
    let number = "the number of a disk is 0, not below the next one, or that of another";
    let label = "whether a disk has a label is neither 0 nor 1";
    let cases = [([1, 0, 0, 0], number), ([0, 0, 0, 0], number), ([2, 1, 0, 0], number)];
    for (disk, what) in cases.into_iter().chain([([1, 1, 2, 0], label)]) {
        let mut body = image_by_hand(4)[64..].to_vec();
        let at = body.len() - 5 - 4;
        assert_eq!(body[at..at + 4], [1, 1, 0, 0]);
        body[at..at + 4].copy_from_slice(&disk);
        fs::write(&path, with_header(4, &body)).expect("a description");
        let expected = format!("{} is damaged: {what}", path.display());
        assert_eq!(refusal(dir.path()), expected, "{disk:?}");
    }
}

#[test]
fn numbers_that_no_image_has_are_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    let path = dir.path().join("image");
    // The second number is that of the first member, 0, and the next one.
    for number in [[1, 0], [0, 0], [3, 2]] {
        let mut body = image_by_hand(3)[64..].to_vec();
        let at = body.len() - 12 - 2;
        assert_eq!(body[at..at + 2], [2, 2]);
        body[at..at + 2].copy_from_slice(&number);
        fs::write(&path, with_header(3, &body)).expect("a description");
        let expected = format!(
            "{} is damaged: the number of a member is 0, not below the next one, or that of another",
            path.display()
        );
        assert_eq!(refusal(dir.path()), expected, "{number:?}");
    }
}

#[test]
fn the_description_is_as_the_page_draws_it_and_never_changes() {
    let dir = tempfile::tempdir().expect("a directory");
    let new = NewImage::begin(dir.path(), description(), &[]).expect("an image");
    let path = dir.path().join("image");
    assert!(!path.exists(), "it is no image before it is finished");
    new.finish().expect("an image");
    let read = || fs::read(&path).expect("a description");
    assert_eq!(read(), image_by_hand(4));
    let image = Image::open(dir.path()).expect("an image");
    image.mark_in_use();
    assert_eq!(read(), image_by_hand(4));
    image.close();
    assert_eq!(read(), image_by_hand(4));
}

#[test]
fn an_image_comes_back_as_it_was_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("new").join("nested");
    create(&dir).expect("an image");
    let image = Image::open(&dir).expect("an image");
    assert_eq!(image.description(), &description());
    assert_eq!(image.node_path("none"), None);
    let path = image.node_path("smr").expect("a node");
    let file = OpenOptions::new().write(true).open(&path).expect("its file");
    file.write_all_at(b"here", (1 << 40) - 4096).expect("a write");
    let metadata = file.metadata().expect("metadata");
    assert_eq!(metadata.len(), 1 << 40);
    assert!(metadata.blocks() < 1000, "the file is sparse");
}

#[test]
fn only_an_image_that_was_not_closed_is_said_to_be_interrupted() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    let open = || open_own(dir.path()).expect("an image");
    assert!(!open().was_interrupted());
    open().mark_in_use();
    assert!(open().was_interrupted(), "nobody has closed it");
    open().close();
    assert!(!open().was_interrupted());
}

#[test]
fn two_images_have_two_names() {
    let names = [new_uuid(), new_uuid()].map(|name| name.expect("random bytes"));
    assert_ne!(names[0], names[1]);
    for name in names {
        assert_eq!((name.0[6] >> 4, name.0[8] >> 6), (4, 2), "{name}");
    }
}

#[test]
fn an_image_in_use_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    let expected = format!("the image in {} is in use by another process", dir.path().display());
    let image = Image::open(dir.path()).expect("an image");
    assert_eq!(refusal(dir.path()), expected);
    image.close();
    Image::open(dir.path()).expect("free again");
}

#[test]
fn an_image_of_another_version_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    let path = dir.path().join("image");
    let mut newer = image_by_hand(5);
    // Nothing else of another version can be judged, its checksums included.
    newer[60] ^= 1;
    fs::write(&path, newer).expect("a description");
    let shown = path.display();
    assert_eq!(
        refusal(dir.path()),
        format!("{shown} has format version 5; accepted: versions 3 and 4")
    );
    let header = |version| {
        let mut bytes = b"IMBREXIM".to_vec();
        bytes.extend(u32::to_le_bytes(version));
        bytes.resize(200, 0);
        bytes
    };
    fs::write(&path, header(2)).expect("a description");
    let expected = format!(
        "{shown} has format version 2; accepted: versions 3 and 4: the build of commit 66affc8 is the last one that \
         serves version 2; copy the data with that one, and create the image anew"
    );
    assert_eq!(refusal(dir.path()), expected);
    let read_only = Image::open_read_only(dir.path()).expect_err("a refusal");
    assert_eq!(read_only.to_string(), expected);
    assert_eq!(fs::read(&path).expect("a description"), header(2), "it is as it was");
    // Version 1 had another file.
    fs::remove_file(&path).expect("the description");
    let state = dir.path().join("state");
    fs::write(&state, header(1)).expect("a state");
    assert_eq!(
        refusal(dir.path()),
        format!(
            "{} has format version 1; accepted: versions 3 and 4: copy its data with the build that made it, and \
             create it anew",
            state.display()
        )
    );
    let error = create(dir.path()).expect_err("it is an image");
    assert!(matches!(error, ImageError::Exists { .. }));
}

#[test]
fn no_image_and_a_second_image_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let shown = dir.path().display();
    assert_eq!(refusal(dir.path()), format!("there is no image in {shown}"));
    let missing = dir.path().join("none");
    let expected = format!("there is no image in {}", missing.display());
    assert_eq!(refusal(&missing), expected);
    create(dir.path()).expect("an image");
    let error = create(dir.path()).expect_err("a second one");
    assert_eq!(error.to_string(), format!("there is already an image in {shown}"));
    Image::open(dir.path()).expect("the first is as it was");
}

#[test]
fn a_failed_creation_leaves_no_file_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("smr.img"), "precious").expect("a file");
    let error = create(dir.path()).expect_err("a file in the way");
    let expected = format!(
        "cannot create {}: there is such a file, and no image that it belongs to; delete it if nobody needs \
         it, or name another folder",
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
        let error = NewImage::begin(dir.path(), description, &[]).expect_err("a bad name");
        assert!(matches!(error, ImageError::NodeName { .. }));
        let expected =
            format!("the node name `{name}` cannot name a file: use letters, digits, `-` and `_`");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_image_that_is_not_finished_leaves_no_file_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let new = NewImage::begin(dir.path(), description(), &[]).expect("an image");
    assert!(new.node_path("ssd").expect("a node").exists());
    drop(new);
    assert_eq!(fs::read_dir(dir.path()).expect("the directory").count(), 0);
}

/// Whoever can write to the folder must not have the server write elsewhere.
#[test]
fn a_new_description_is_never_written_through_a_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let (victim, data) = (dir.path().join("victim"), dir.path().join("data"));
    fs::write(&victim, "mine").expect("a file");
    let new = NewImage::begin(&data, description(), &[]).expect("an image");
    std::os::unix::fs::symlink(&victim, data.join("image.new")).expect("a link");
    new.finish().expect("an image");
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "mine");
    let description = fs::symlink_metadata(data.join("image"));
    assert!(description.expect("a description").is_file());
    Image::open(&data).expect("an image");
}

#[test]
fn an_image_and_its_folder_are_their_owners_alone() {
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("new").join("image");
    create(&dir).expect("an image");
    Image::open(&dir).expect("an image").mark_in_use();
    for name in ["image", "in-use", "smr.img", "ssd.img"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&dir), 0o700);
    // A folder that was there stays as its owner wants it.
    let shared = parent.path().join("shared");
    fs::create_dir(&shared).expect("a folder");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).expect("a mode");
    create(&shared).expect("an image");
    assert_eq!(mode(&shared), 0o755);
}

/// Every bit of the description is covered: none can flip unseen.
#[test]
fn a_damaged_description_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    let path = dir.path().join("image");
    // No version that is read is one bit away from this one.
    let good = image_by_hand(4);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&path, bytes).expect("a description");
            let error = open_own(dir.path()).expect_err("a refusal");
            let is_version = (8..12).contains(&at);
            assert_eq!(matches!(error, ImageError::OtherVersion { .. }), is_version);
            assert_eq!(matches!(error, ImageError::Damaged { .. }), !is_version);
        }
    }
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).expect("a description");
        assert!(Image::open(dir.path()).is_err(), "cut to {length} bytes");
    }
    fs::write(&path, b"").expect("a description");
    let expected = format!("{} is damaged: it is shorter than its header", path.display());
    assert_eq!(refusal(dir.path()), expected);
}

#[test]
fn readers_share_an_image_exclude_a_writer_and_leave_no_mark() {
    let dir = tempfile::tempdir().expect("a directory");
    create(dir.path()).expect("an image");
    let read = || Image::open_read_only(dir.path());
    let (one, two) = (read().expect("an image"), read().expect("two at once"));
    assert!(matches!(Image::open(dir.path()), Err(ImageError::InUse { .. })));
    one.mark_in_use();
    assert!(!two.was_interrupted(), "who reads leaves no mark");
    drop((one, two));
    let writer = Image::open(dir.path()).expect("an image");
    assert!(matches!(read(), Err(ImageError::InUse { .. })));
    writer.mark_in_use();
    drop(writer);
    let reader = read().expect("an image");
    assert!(reader.was_interrupted());
    reader.close();
    assert!(read().expect("an image").was_interrupted(), "the mark is the writer's");
}
