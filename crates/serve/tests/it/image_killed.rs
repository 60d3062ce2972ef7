//! What a creation that was killed leaves, and what the next one removes of it: nothing else.

use crate::image::{create, description, image_by_hand, refusal, with_header};
use imbrex_core::error::IoError;
use imbrex_core::label::{LABEL_BLOCKS, Label, LabelCopy, LabelStore, Labels, ListedDisk, Mark};
use imbrex_core::lifecycle::Uuid;
use imbrex_serve::image::{Image, NewImage};
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

const BLOCK: u64 = 4096;
const DATA: &[u8] = b"old";

/// What lies under a name.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// Disk of a creation that was killed after it had written something.
    Killed,
    /// The same after the first thing that it writes.
    FirstCopy,
    /// The same before that.
    Hole,
    /// A disk that somebody was served from.
    Served,
    /// A disk that somebody was served from since its image got labels, at that start.
    WentOver,
    /// A disk that somebody was served from since it took the place of another one, at that start.
    Replaced,
    /// A disk that a creation of another image has left.
    OtherSet,
    /// Another disk of the same creation.
    OtherDisk,
    /// What is no disk at all.
    Mine,
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("plain names"))
        .collect();
    names.sort();
    names
}

/// The names in a directory at the steps of a creation, in the order in which it comes to them.
const STEPS: [&[&str]; 6] = [
    &[],
    &["ssd.img.new"],
    &["ssd.img.new", "smr.img.new"],
    &["ssd.img.new", "smr.img.new", "image.new"],
    &["ssd.img", "smr.img.new", "image.new"],
    &["ssd.img", "smr.img", "image.new"],
];

fn put(path: &Path, content: Content) {
    let name = path.file_name().expect("a name").to_str().expect("plain");
    let (disk, blocks) = match name.starts_with("ssd") {
        true => (1, 3),
        false => (0x101, 1 << 28),
    };
    let file = File::create(path).expect("a file");
    if let Content::Mine = content {
        return file.write_all_at(b"mine", 0).expect("a write");
    }
    file.set_len((blocks + LABEL_BLOCKS) * BLOCK).expect("a length");
    let (set, disk, count) = match content {
        Content::OtherSet => (Uuid([0xa6; 16]), disk, 1),
        Content::OtherDisk => (description().uuid, disk ^ 0x100, 1),
        Content::Served => (description().uuid, disk, 2),
        Content::Replaced => (description().uuid, disk, 0),
        _ => (description().uuid, disk, 1),
    };
    let label = Label { mark: Mark { count, random: 7 }, ..Label::new(set, disk, 0) };
    let copies: &[LabelCopy] = match content {
        Content::Hole | Content::WentOver => &[],
        Content::FirstCopy => &[LabelCopy::First],
        _ => &LabelCopy::ALL,
    };
    for copy in copies {
        let block = label.seal(*copy, blocks).expect("a label");
        let at = copy.address(blocks) * BLOCK;
        file.write_all_at(&block, at).expect("a write");
    }
    if let Content::WentOver = content {
        get_label(OneDisk { file: &file, blocks }, disk);
    }
    if copies.len() > 1 || matches!(content, Content::WentOver) {
        file.write_all_at(DATA, BLOCK).expect("a write");
    }
}

/// Gives a disk its label at the first start that writes one, as an image of version 3 gets them.
fn get_label(mut disk: OneDisk<'_>, number: u16) {
    let listed = ListedDisk { number, is_labelled: false };
    let mut labels = Labels::new(description().uuid, &[Some(listed)]);
    labels.check(&mut disk).expect("no label");
    labels.move_count(&mut disk, 7).expect("a label");
}

struct OneDisk<'a> {
    file: &'a File,
    blocks: u64,
}

impl LabelStore for OneDisk<'_> {
    fn is_absent(&self, _disk: usize) -> bool {
        false
    }

    fn blocks(&self, _disk: usize) -> u64 {
        self.blocks
    }

    fn read(&mut self, _disk: usize, block: u64) -> Result<Vec<u8>, IoError> {
        let mut bytes = vec![0; BLOCK as usize];
        let read = self.file.read_exact_at(&mut bytes, block * BLOCK);
        read.map(|()| bytes).map_err(|_| IoError::Medium)
    }

    fn write(&mut self, _disk: usize, block: u64, bytes: &[u8]) -> Result<(), IoError> {
        let written = self.file.write_all_at(bytes, block * BLOCK);
        written.map_err(|_| IoError::Medium)
    }

    fn flush(&mut self, _disk: usize) -> Result<(), IoError> {
        Ok(())
    }
}

/// Puts into `dir` what a creation leaves that is killed at a step.
fn kill_at(dir: &Path, names: &[&str], new_description: &[u8], content: Content) {
    for name in names {
        match name.starts_with("image") {
            true => fs::write(dir.join(name), new_description).expect("a description"),
            false => put(&dir.join(name), content),
        }
    }
}

#[test]
fn a_creation_after_one_that_was_killed_succeeds_whenever_that_was() {
    let description = image_by_hand(4);
    let mut states: Vec<(&[&str], &[u8], Content)> =
        STEPS.iter().map(|step| (*step, &description[..], Content::Killed)).collect();
    // A kill, or a power cut, while the description was written.
    let cut = [0, 5, 64, 100].map(|length| (STEPS[3], &description[..length], Content::Killed));
    states.extend(cut);
    let early = [Content::Hole, Content::FirstCopy].map(|content| (STEPS[2], &[][..], content));
    states.extend(early);
    for (names, new_description, content) in states {
        let dir = tempfile::tempdir().expect("a directory");
        kill_at(dir.path(), names, new_description, content);
        let shown = dir.path().display();
        assert_eq!(refusal(dir.path()), format!("there is no image in {shown}"));
        create(dir.path()).unwrap_or_else(|error| panic!("{names:?}: {error}"));
        assert_eq!(names_in(dir.path()), ["image", "smr.img", "ssd.img"], "{names:?}");
        let mut start = [1; 8];
        let member = File::open(dir.path().join("ssd.img")).expect("a member");
        member.read_exact_at(&mut start, BLOCK).expect("a block");
        assert_eq!(start, [0; 8], "{names:?}: nothing of the old one is left");
        Image::open(dir.path()).expect("an image");
    }
}

#[test]
fn a_creation_goes_through_its_steps_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let new = NewImage::begin(dir.path(), description(), &[]).expect("an image");
    assert_eq!(names_in(dir.path()), ["smr.img.new", "ssd.img.new"]);
    new.finish().expect("an image");
    assert_eq!(names_in(dir.path()), ["image", "smr.img", "ssd.img"]);
}

/// The names and the first bytes of all files.
fn state(dir: &Path) -> Vec<(String, [u8; 16])> {
    let names = names_in(dir).into_iter();
    let start = |name: String| {
        let mut start = [0; 16];
        let file = File::open(dir.join(&name)).expect("a file");
        let _ = file.read_at(&mut start, 0).expect("bytes");
        (name, start)
    };
    names.map(start).collect()
}

/// A creation that a file is in the way of, which is named and where nothing has changed.
fn refused(dir: &Path, in_the_way: &str, in_use: &[&str]) {
    let before = state(dir);
    let in_use: Vec<_> = in_use.iter().map(|name| dir.join(name)).collect();
    let error = NewImage::begin(dir, description(), &in_use).expect_err("a file in the way");
    let path = dir.join(in_the_way);
    let reason = match in_the_way.ends_with(".img.new") {
        true => {
            "nothing says that this program has left it; delete it if nobody needs it, or move it away"
        }
        false => {
            "no image that it belongs to; delete it if nobody needs it, or name another folder"
        }
    };
    let expected = format!("cannot create {}: there is such a file, and {reason}", path.display());
    assert_eq!(error.to_string(), expected, "{before:?}");
    assert_eq!(state(dir), before);
}

/// Only what a creation has made may go.
#[test]
fn files_that_no_killed_creation_has_left_are_not_touched() {
    use Content::{Killed, Mine, OtherDisk, OtherSet, Replaced, Served, WentOver};
    let (whole, of_version_3) = (image_by_hand(4), image_by_hand(3));
    let cut = &whole[..80];
    type State<'a> = (&'a str, &'a [(&'a str, Content)], Option<&'a [u8]>);
    let states: [State<'_>; 17] = [
        ("ssd.img", &[("ssd.img", Mine)], None),
        ("ssd.img", &[("ssd.img", Killed)], None),
        ("ssd.img", &[("ssd.img", Mine)], Some(&whole)),
        // The disk of the killed creation has its first name still: the other is somebody else's.
        ("ssd.img", &[("ssd.img", OtherSet), ("ssd.img.new", Killed)], Some(&whole)),
        ("ssd.img", &[("ssd.img", OtherDisk)], Some(&whole)),
        ("ssd.img", &[("ssd.img", Served)], Some(&whole)),
        // Its description was never whole, so none of its disks was renamed.
        ("smr.img", &[("smr.img", Killed)], Some(cut)),
        // It lists no label.
        ("ssd.img", &[("ssd.img", Killed)], Some(&of_version_3)),
        ("image.new", &[("ssd.img.new", Killed)], Some(b"my pictures")),
        ("ssd.img.new", &[("ssd.img.new", Mine)], None),
        ("ssd.img.new", &[("ssd.img.new", Mine)], Some(&whole)),
        ("ssd.img.new", &[("ssd.img.new", Served)], None),
        ("ssd.img.new", &[("ssd.img.new", WentOver)], None),
        ("ssd.img.new", &[("ssd.img.new", Replaced)], None),
        ("ssd.img", &[("ssd.img", WentOver)], Some(&whole)),
        ("ssd.img", &[("ssd.img", Replaced)], Some(&whole)),
        ("smr.img.new", &[("ssd.img.new", Killed), ("smr.img.new", Served)], Some(cut)),
    ];
    for (in_the_way, files, new_description) in states {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, content) in files {
            put(&dir.path().join(name), *content);
        }
        if let Some(bytes) = new_description {
            fs::write(dir.path().join("image.new"), bytes).expect("a description");
        }
        refused(dir.path(), in_the_way, &[]);
    }
}

/// The description of a creation of a stack with another disk in the place of `ssd`, whose name has as many
/// letters.
fn image_of_other_stack(name: &[u8; 3]) -> Vec<u8> {
    let mut body = image_by_hand(4)[64..].to_vec();
    let mut named = 0;
    for at in 0..body.len() - 2 {
        if body[at..].starts_with(b"ssd") {
            body[at..at + 3].copy_from_slice(name);
            named += 1;
        }
    }
    assert_eq!(named, 2, "as a node, and as a disk with a label");
    with_header(4, &body)
}

#[test]
fn disks_of_a_killed_creation_of_another_stack_go_too() {
    let whole = image_of_other_stack(b"hdd");
    // Before it had its name, and after. The label of a disk says its number, not its name.
    for name in ["hdd.img.new", "hdd.img"] {
        let dir = tempfile::tempdir().expect("a directory");
        put(&dir.path().join("ssd"), Content::Killed);
        fs::rename(dir.path().join("ssd"), dir.path().join(name)).expect("a file");
        put(&dir.path().join("smr.img.new"), Content::Killed);
        fs::write(dir.path().join("image.new"), &whole).expect("a description");
        create(dir.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(names_in(dir.path()), ["image", "smr.img", "ssd.img"]);
    }
    // What it cannot have left stays, and is in nobody's way.
    for content in [Content::Mine, Content::Served, Content::OtherSet] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("hdd.img");
        put(&path, content);
        fs::write(dir.path().join("image.new"), &whole).expect("a description");
        create(dir.path()).unwrap_or_else(|error| panic!("{content:?}: {error}"));
        let names = ["hdd.img", "image", "smr.img", "ssd.img"];
        assert_eq!(names_in(dir.path()), names, "{content:?}");
    }
}

/// A description may say any name; its file would be `../.img`, beside the folder.
#[test]
fn a_description_of_a_killed_creation_leads_nowhere_else() {
    let above = tempfile::tempdir().expect("a directory");
    let dir = above.path().join("data");
    fs::create_dir(&dir).expect("a directory");
    let whole = image_of_other_stack(b"../");
    fs::write(dir.join("image.new"), whole).expect("a description");
    for name in [".img", ".img.new"] {
        put(&above.path().join("ssd"), Content::Killed);
        fs::rename(above.path().join("ssd"), above.path().join(name)).expect("a file");
    }
    create(&dir).expect("an image");
    assert_eq!(names_in(above.path()), [".img", ".img.new", "data"]);
    assert_eq!(names_in(&dir), ["image", "smr.img", "ssd.img"]);
}

#[test]
fn a_file_that_has_got_a_name_while_an_image_was_created_stays() {
    for taken in ["ssd.img", "smr.img", "image"] {
        let dir = tempfile::tempdir().expect("a directory");
        let new = NewImage::begin(dir.path(), description(), &[]).expect("files");
        let path = dir.path().join(taken);
        fs::write(&path, "mine").expect("a file");
        let error = new.finish().expect_err("a file");
        let expected = format!(
            "cannot create {}: something has got that name meanwhile; accepted: nothing there; move it away, \
             and try again",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(names_in(dir.path()), [taken], "its own files are gone");
        assert_eq!(fs::read(&path).expect("a file"), b"mine");
    }
}

#[test]
fn what_somebody_uses_and_what_is_a_link_is_nothing_that_was_left() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ssd.img.new");
    put(&path, Content::Hole);
    refused(dir.path(), "ssd.img.new", &["ssd.img.new"]);
    let file = File::open(&path).expect("a file");
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).expect("a lock");
    refused(dir.path(), "ssd.img.new", &[]);
    drop(file);
    fs::rename(&path, dir.path().join("elsewhere")).expect("a file");
    symlink("elsewhere", &path).expect("a link");
    refused(dir.path(), "ssd.img.new", &[]);
    fs::remove_file(&path).expect("a link");
    create(dir.path()).expect("an image");
}
