//! A new disk in the place of one that is lost.
//!
//! The numbers of its members are used up first, durably, whatever comes of it. Then its file is
//! made, under a name that counts for nothing. When the layers have written down the new numbers it
//! gets a name that no disk of the image ever had, and the description says so: at that moment the
//! image has the new disk, and not the old one. The old file goes last. A cut before the moment
//! leaves the old description, which knows neither the new numbers nor the new file; a cut after it
//! leaves the new one. What a cut leaves beside, the next start or replacement removes, by its label:
//! the first thing that is written to a new disk, and its number is used up with those of its members.

use super::directory::{create_private_file, is_there, name_file, system};
use super::labels::write_label;
use super::{Image, ImageError, ImageNode, format, new_random};
use crate::storage::Storage;
use imbrex_core::label::Label;
use imbrex_core::units::BlockCount;
use std::fs;
use std::path::{Path, PathBuf};

/// No number of a member is greater.
const NUMBER_MAX: u16 = u16::MAX - 1;

/// A new disk on its way into an image, from [`Image::begin_replacement`] on.
#[derive(Debug)]
pub struct NewDisk {
    node: String,
    /// Its file, where that is in the directory.
    path: Option<PathBuf>,
    first_member: u16,
    label: NewLabel,
}

/// The label of a new disk, which is what is written to it first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewLabel {
    /// The number of the disk, which no other one ever had.
    pub number: u16,
    /// The random number of its mark.
    pub random: u32,
}

impl NewDisk {
    /// The node whose disk it becomes.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Its file until it has its name; `None` of a file that is not in the directory.
    pub fn path(&self) -> Option<&PathBuf> {
        self.path.as_ref()
    }

    /// Its label.
    pub fn label(&self) -> NewLabel {
        self.label
    }

    /// The number of the first member on it; further ones count up.
    pub fn first_member(&self) -> u16 {
        self.first_member
    }
}

impl Image {
    /// Uses up the numbers of a new disk and of its members, and makes its file, blank but for its label,
    /// which offers `blocks` blocks; with a path the disk is the file or block device there. What is left
    /// of a new disk that came to nothing is removed, unless it is one of the files that are `in_use`.
    ///
    /// # Errors
    /// When no number is left, a file is in the way, or the system refuses.
    ///
    /// # Panics
    /// When the image has not [got labels](Self::describe_labels).
    pub fn begin_replacement(
        &mut self,
        node: &str,
        members: u16,
        blocks: BlockCount,
        path: Option<&Path>,
        in_use: &[PathBuf],
    ) -> Result<NewDisk, ImageError> {
        let (first_member, number) = self.reserve_numbers(members)?;
        let random = new_random().map_err(system("get a random number for", self.path()))?;
        let label = NewLabel { number, random };
        let disk = NewDisk {
            node: node.to_owned(),
            path: match path {
                Some(_) => None,
                None => Some(self.make_disk(node, in_use)?),
            },
            first_member,
            label,
        };
        if let Some(path) = path.or(disk.path.as_deref()) {
            self.write_first(path, blocks, label)?;
        }
        Ok(disk)
    }

    /// Makes the new disk the one that the image has. Its layers must have written down the new
    /// numbers, and flushed. `members` are the members on it, each a layer and its port, in the
    /// order of their numbers; `stack_toml` is the stack from now on.
    ///
    /// # Errors
    /// When something has the name of the new file, or the system refuses. The image has the old disk then
    /// or the new one, as after a crash. The old file is [left over](Self::remove_leftovers).
    pub fn finish_replacement(
        &mut self,
        disk: &NewDisk,
        members: &[(String, String)],
        stack_toml: String,
    ) -> Result<(), ImageError> {
        self.name_disk(disk)?;
        self.describe_disk(disk, members, stack_toml)
    }

    /// Forgets a new disk. Its numbers stay used up.
    pub fn abort_replacement(&mut self, disk: NewDisk) {
        // What stays is removed at the next start.
        let _ = disk.path.map(fs::remove_file);
    }

    /// The first of `count` numbers that no member ever had, and never will have but for the caller, and
    /// such a number of a disk.
    fn reserve_numbers(&mut self, count: u16) -> Result<(u16, u16), ImageError> {
        let dir = || self.directory.path().to_owned();
        let mut description = self.description.clone();
        let next = &mut description.members.next;
        let first = *next;
        *next = (first.checked_add(count).filter(|next| *next - 1 <= NUMBER_MAX))
            .ok_or_else(|| ImageError::NumbersUsedUp { dir: dir() })?;
        let disks = description.disks.as_mut();
        let disks = disks.expect("an image gets labels before a disk of it is replaced");
        let number = disks.next;
        let next = number.checked_add(1);
        disks.next = next.ok_or_else(|| ImageError::NumbersUsedUp { dir: dir() })?;
        self.directory.replace_description(&format::encode(&description))?;
        self.description = description;
        Ok((first, number))
    }

    fn make_disk(&self, node: &str, in_use: &[PathBuf]) -> Result<PathBuf, ImageError> {
        let path = self.directory.new_node_path(node);
        if is_there(&path) {
            match self.left(&path, in_use) {
                Some(left) => left.remove().map_err(system("remove", &path))?,
                None => return Err(ImageError::Stranger { path }),
            }
        }
        create_private_file(&path).map_err(system("create", &path))?;
        self.directory.synchronise()?;
        Ok(path)
    }

    /// Gives a new disk its label, before anything else is written to it, and so a file of the image its
    /// length.
    fn write_first(
        &self,
        path: &Path,
        blocks: BlockCount,
        NewLabel { number, random }: NewLabel,
    ) -> Result<(), ImageError> {
        let written = Storage::open_to_write(path).and_then(|storage| {
            let label = Label::new(self.description.uuid, number, random);
            write_label(&storage, &label, blocks)?;
            storage.file().map_or_else(|| storage.sync_data(), fs::File::sync_all)
        });
        written.map_err(system("write", path))
    }

    /// Gives the file its name, which nothing describes yet.
    fn name_disk(&self, disk: &NewDisk) -> Result<(), ImageError> {
        let Some(path) = &disk.path else {
            return Ok(());
        };
        let name = self.directory.node_path(&ImageNode {
            name: disk.node.clone(),
            blocks: BlockCount::ZERO,
            replacement: disk.first_member,
        });
        fs::File::open(path)
            .and_then(|file| file.sync_all())
            .map_err(system("synchronise", path))?;
        name_file(path, &name)?;
        self.directory.synchronise()
    }

    /// Describes the disk with its members in the place of the old one.
    fn describe_disk(
        &mut self,
        disk: &NewDisk,
        on_disk: &[(String, String)],
        stack_toml: String,
    ) -> Result<(), ImageError> {
        let mut description = self.description.clone();
        description.stack_toml = stack_toml;
        let nodes = &mut description.nodes;
        if let Some(node) = nodes.iter_mut().find(|node| node.name == disk.node) {
            node.replacement = disk.first_member;
        }
        let disks = description.disks.iter_mut();
        let mut disks = disks.flat_map(|disks| &mut disks.list);
        let of_node = disks.find(|known| known.node == disk.node);
        if let Some(known) = of_node {
            known.number = disk.label.number;
            known.is_labelled = true;
        }
        for member in &mut description.members.list {
            let is_it =
                |(node, port): &(String, String)| member.node == *node && member.port == *port;
            if let Some(at) = on_disk.iter().position(is_it) {
                member.number = disk.first_member + at as u16;
            }
        }
        self.directory.replace_description(&format::encode(&description))?;
        self.description = description;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        ImageDescription, ImageDisk, ImageDisks, ImageMember, ImageMembers, LABEL_BYTES, NewImage,
    };
    use super::*;
    use imbrex_core::lifecycle::Uuid;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    const OLD: &str = "name = \"old\"";
    const NEW: &str = "name = \"new\"";

    fn member(number: u16, node: &str, port: &str) -> ImageMember {
        let (node, port) = (node.to_owned(), port.to_owned());
        ImageMember { number, node, port }
    }

    fn image(dir: &Path) -> Image {
        let node =
            |name: &str| ImageNode { name: name.to_owned(), blocks: BlockCount(4), replacement: 0 };
        let members = ImageMembers {
            next: 4,
            list: vec![
                member(1, "low", "first"),
                member(2, "low", "second"),
                member(3, "top", "below"),
            ],
        };
        let description = ImageDescription {
            uuid: Uuid([9; 16]),
            stack_toml: OLD.to_owned(),
            size_bytes: 4096,
            nodes: vec![node("a"), node("b")],
            members,
            disks: Some(ImageDisks {
                next: 3,
                list: [(1, "a"), (2, "b")]
                    .map(|(number, node)| ImageDisk {
                        number,
                        node: node.to_owned(),
                        is_labelled: true,
                    })
                    .to_vec(),
            }),
        };
        NewImage::begin(dir, description, &[]).and_then(NewImage::finish).expect("an image");
        write(&dir.join("a.img"), "the old disk", Some(1));
        Image::open(dir).expect("an image")
    }

    /// Writes data to the start of a disk of 4 blocks, behind which its label lies.
    fn write(path: &Path, data: &str, number: Option<u16>) {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.expect("a file");
        file.write_all_at(data.as_bytes(), 0).expect("data");
        file.set_len((4 << 12) + LABEL_BYTES).expect("a length");
        if let Some(number) = number {
            let label = Label::new(Uuid([9; 16]), number, 7);
            write_label(&Storage::File(file.into()), &label, BlockCount(4)).expect("a label");
        }
    }

    fn read(path: &Path) -> String {
        let bytes = fs::read(path).expect("a disk");
        let data = bytes.split(|byte| *byte == 0).next();
        String::from_utf8_lossy(data.unwrap_or_default()).into_owned()
    }

    /// The disk `a` holds the second member of `low` and the one of `top`.
    fn members() -> Vec<(String, String)> {
        [("low", "second"), ("top", "below")]
            .map(|(node, port)| (node.to_owned(), port.to_owned()))
            .to_vec()
    }

    /// Goes through the first `steps` steps of a replacement of `a`, then dies.
    fn die_after(steps: usize, dir: &Path) {
        let mut image = image(dir);
        let label = NewLabel { number: 0, random: 8 };
        let mut disk = NewDisk { node: "a".to_owned(), path: None, first_member: 0, label };
        for step in 0..steps {
            match step {
                0 => {
                    (disk.first_member, disk.label.number) =
                        image.reserve_numbers(2).expect("numbers");
                }
                1 => disk.path = Some(image.make_disk("a", &[]).expect("a file")),
                2 => {
                    let path = disk.path.as_ref().expect("a file");
                    let written = image.write_first(path, BlockCount(4), disk.label);
                    written.expect("its label");
                    write(path, "the new disk", None);
                }
                3 => image.name_disk(&disk).expect("a name"),
                4 => {
                    let members = members();
                    let described = image.describe_disk(&disk, &members, NEW.to_owned());
                    described.expect("a description");
                }
                _ => image.remove_leftovers(&[]),
            }
        }
    }

    fn files(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().expect("text")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_replacement_cut_anywhere_leaves_the_old_disk_or_the_new_one() {
        for steps in 0..=6 {
            let dir = tempfile::tempdir().expect("a directory");
            let dir = dir.path();
            die_after(steps, dir);
            let image = Image::open(dir).expect("an image");
            let is_new = steps >= 5;
            let path = image.node_path("a").expect("a disk");
            let (data, stack, file) = match is_new {
                false => ("the old disk", OLD, "a.img"),
                true => ("the new disk", NEW, "a.4.img"),
            };
            assert_eq!(path, dir.join(file), "after {steps} steps");
            assert_eq!(read(&path), data);
            let listed = image.description().disks.as_ref().expect("disks");
            let number = if is_new { 3 } else { 1 };
            assert_eq!(listed.of_node("a").map(|disk| disk.number), Some(number));
            assert_eq!(listed.next, if steps == 0 { 3 } else { 4 });
            assert_eq!(image.description().stack_toml, stack);
            let kept = &image.description().members;
            let expected = match is_new {
                false => [1, 2, 3],
                true => [1, 4, 5],
            };
            let numbers = kept.list.iter().map(|member| member.number);
            assert!(numbers.eq(expected), "after {steps} steps: {kept:?}");
            assert_eq!(kept.next, if steps == 0 { 4 } else { 6 }, "used up for ever");
            image.remove_leftovers(&[]);
            assert_eq!(files(dir), [file, "b.img", "image"], "after {steps} steps");
        }
    }

    #[test]
    fn a_replacement_after_one_that_was_cut_has_other_numbers() {
        for steps in 1..=4 {
            let dir = tempfile::tempdir().expect("a directory");
            let dir = dir.path();
            die_after(steps, dir);
            let mut image = Image::open(dir).expect("an image");
            let disk = image.begin_replacement("a", 2, BlockCount(4), None, &[]);
            let disk = disk.expect("a new disk");
            assert_eq!(disk.first_member(), 6, "after {steps} steps");
            let path = disk.path().expect("a file");
            let bytes = fs::read(path).expect("its data");
            assert_eq!(bytes.len() as u64, (4 << 12) + LABEL_BYTES);
            assert!(bytes[..4 << 12].iter().all(|byte| *byte == 0));
            image.finish_replacement(&disk, &members(), NEW.to_owned()).expect("a new disk");
            image.remove_leftovers(&[]);
            assert_eq!(files(dir), ["a.6.img", "b.img", "image"], "after {steps} steps");
        }
    }

    #[test]
    fn a_replacement_that_is_given_up_leaves_no_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut image = image(dir.path());
        let disk = image.begin_replacement("a", 2, BlockCount(4), None, &[]);
        image.abort_replacement(disk.expect("a new disk"));
        assert_eq!(files(dir.path()), ["a.img", "b.img", "image"]);
        let elsewhere = tempfile::NamedTempFile::new().expect("a file");
        let disk = image.begin_replacement("a", 1, BlockCount(4), Some(elsewhere.path()), &[]);
        let disk = disk.expect("a new disk");
        assert_eq!((disk.first_member(), disk.path()), (6, None));
        image.finish_replacement(&disk, &members()[..1], NEW.to_owned()).expect("a new disk");
        image.remove_leftovers(&[]);
        assert_eq!(files(dir.path()), ["b.img", "image"], "its data is elsewhere now");
    }

    #[test]
    fn only_what_this_program_has_left_is_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut image = image(dir.path());
        let (_, number) = image.reserve_numbers(1).expect("numbers");
        let at = |name: &str| dir.path().join(name);
        // Files of others: by their names, without a label, with one of a disk that is in the image, of
        // another set, or of a number that was never given out.
        let strangers = ["c.img", "a.img.bak", "a.x.img", "a.07.img", "a.0.img", "notes"];
        for name in strangers {
            write(&at(name), "data", Some(number));
        }
        write(&at("a.7.img"), "a copy", None);
        fs::copy(at("a.img"), at("a.8.img")).expect("a copy");
        write(&at("b.9.img"), "data", Some(4));
        fs::write(at("b.img.new"), "data").expect("a file");
        std::os::unix::fs::symlink("notes", at("b.10.img")).expect("a link");
        // One that the stack uses, and one that somebody has locked.
        write(&at("b.11.img"), "a backing", Some(number));
        write(&at("b.12.img"), "data", Some(number));
        let locked = fs::File::open(at("b.12.img")).expect("a file");
        rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        let mut expected = files(dir.path());
        // What is left of a replacement that was cut.
        write(&at("a.13.img"), "data", Some(number));
        let hole = fs::File::create(at("a.img.new")).expect("a file");
        hole.set_len(1 << 20).expect("a length");
        image.remove_leftovers(&[at("b.11.img")]);
        expected.sort_unstable();
        assert_eq!(files(dir.path()), expected);
        let refused = image.begin_replacement("b", 1, BlockCount(4), None, &[]);
        let words = refused.expect_err("a file of somebody").to_string();
        assert!(words.contains("b.img.new: there is such a file"), "{words}");
    }

    #[test]
    fn a_leftover_is_locked_until_it_is_gone() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut image = image(dir.path());
        let (_, number) = image.reserve_numbers(1).expect("numbers");
        let path = dir.path().join("a.7.img");
        write(&path, "data", Some(number));
        let left = image.left(&path, &[]).expect("a leftover");
        let file = fs::File::open(&path).expect("a file");
        let lock = rustix::fs::FlockOperation::NonBlockingLockShared;
        assert!(rustix::fs::flock(&file, lock).is_err(), "nobody else's");
        left.remove().expect("a file");
        assert!(!path.exists());
        rustix::fs::flock(&file, lock).expect("free again");
    }

    #[test]
    fn a_file_that_has_got_the_name_of_a_new_disk_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut image = image(dir.path());
        let disk = image.begin_replacement("a", 2, BlockCount(4), None, &[]);
        let disk = disk.expect("a new disk");
        let mine = dir.path().join("a.4.img");
        fs::write(&mine, "mine").expect("a file");
        let refused = image.finish_replacement(&disk, &members(), NEW.to_owned());
        let expected = format!(
            "cannot create {}: something has got that name meanwhile; accepted: nothing there; move it away, \
             and try again",
            mine.display()
        );
        assert_eq!(refused.expect_err("a file").to_string(), expected);
        assert_eq!(read(&mine), "mine");
        drop(image);
        let image = Image::open(dir.path()).expect("an image");
        assert_eq!(image.node_path("a"), Some(dir.path().join("a.img")));
        assert_eq!(image.description().stack_toml, OLD);
    }

    #[test]
    fn numbers_come_to_an_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut image = image(dir.path());
        let first = image.reserve_numbers(NUMBER_MAX - 4).expect("numbers");
        assert_eq!(first, (4, 3));
        assert_eq!(image.reserve_numbers(1).expect("the last number"), (NUMBER_MAX, 4));
        let error = image.reserve_numbers(1).expect_err("none is left");
        assert!(error.to_string().contains("has used up all 65534 numbers"), "{error}");
        assert_eq!(image.description().members.next, NUMBER_MAX + 1);
    }
}
