//! A new disk in the place of one that is lost.
//!
//! The numbers of its members are used up first, durably, whatever comes of it. Then its file is
//! made, under a name that counts for nothing. When the layers have written down the new numbers it
//! gets a name that no disk of the image ever had, and the description says so: at that moment the
//! image has the new disk, and not the old one. The old file goes last. A cut before the moment
//! leaves the old description, which knows neither the new numbers nor the new file; a cut after it
//! leaves the new one. What a cut leaves beside, the next start or replacement removes.

use super::directory::{create_private_file, system};
use super::{Image, ImageError, ImageMembers, ImageNode, format};
use imbrex_core::units::BlockCount;
use std::fs;
use std::io;
use std::path::PathBuf;

/// No number of a member is greater.
const NUMBER_MAX: u16 = u16::MAX - 1;

/// A new disk on its way into an image, from [`Image::begin_replacement`] on.
#[derive(Debug)]
pub struct NewDisk {
    node: String,
    /// Its file, where that is in the directory.
    path: Option<PathBuf>,
    first_member: u16,
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

    /// The number of the first member on it; further ones count up.
    pub fn first_member(&self) -> u16 {
        self.first_member
    }
}

impl Image {
    /// Uses up the numbers of the members of a new disk, and makes its file, blank, of `blocks`
    /// blocks; `None` where the disk is a file or block device elsewhere.
    ///
    /// # Errors
    /// When the image has no numbers, none is left, or the system refuses.
    pub fn begin_replacement(
        &mut self,
        node: &str,
        members: u16,
        blocks: Option<BlockCount>,
    ) -> Result<NewDisk, ImageError> {
        let first_member = self.reserve_numbers(members)?;
        let path = blocks.map(|blocks| self.make_disk(node, blocks));
        Ok(NewDisk {
            node: node.to_owned(),
            path: path.transpose()?,
            first_member,
        })
    }

    /// Makes the new disk the one that the image has. Its layers must have written down the new
    /// numbers, and flushed. `members` are the members on it, each a layer and its port, in the
    /// order of their numbers; `stack_toml` is the stack from now on.
    ///
    /// # Errors
    /// When the system refuses. The image has the old disk then or the new one, as after a crash.
    pub fn finish_replacement(
        &mut self,
        disk: &NewDisk,
        members: &[(String, String)],
        stack_toml: String,
    ) -> Result<(), ImageError> {
        self.name_disk(disk)?;
        self.describe_disk(disk, members, stack_toml)?;
        self.remove_leftovers();
        Ok(())
    }

    /// Forgets a new disk. Its numbers stay used up.
    pub fn abort_replacement(&mut self, disk: NewDisk) {
        // What stays is removed at the next start.
        let _ = disk.path.map(fs::remove_file);
    }

    /// Removes what a crash has left of disks that came too late or were replaced, unless the image
    /// is only read.
    pub fn remove_leftovers(&self) {
        if self.directory.is_read_only() {
            return;
        }
        for path in self.directory.leftovers(&self.description.nodes) {
            // It is in nobody's way.
            let _ = fs::remove_file(path);
        }
        let _ = self.directory.synchronise();
    }

    /// The first of `count` numbers that no member ever had, and never will have but for the caller.
    fn reserve_numbers(&mut self, count: u16) -> Result<u16, ImageError> {
        let dir = || self.directory.path().to_owned();
        let mut description = self.description.clone();
        let Some(ImageMembers { next, .. }) = &mut description.members else {
            return Err(ImageError::NoNumbers { dir: dir() });
        };
        let first = *next;
        *next = (first
            .checked_add(count)
            .filter(|next| *next - 1 <= NUMBER_MAX))
        .ok_or_else(|| ImageError::NumbersUsedUp { dir: dir() })?;
        self.directory
            .replace_description(&format::encode(&description))?;
        self.description = description;
        Ok(first)
    }

    fn make_disk(&self, node: &str, blocks: BlockCount) -> Result<PathBuf, ImageError> {
        let path = self.directory.new_node_path(node);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(system("remove", &path)(error));
            }
            _ => {}
        }
        let file = create_private_file(&path).map_err(system("create", &path))?;
        file.set_len(blocks.bytes())
            .and_then(|()| file.sync_all())
            .map_err(system("create", &path))?;
        self.directory.synchronise()?;
        Ok(path)
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
            .and_then(|()| fs::rename(path, &name))
            .map_err(system("name", path))?;
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
        let members = description.members.iter_mut();
        for member in members.flat_map(|members| &mut members.list) {
            let is_it =
                |(node, port): &(String, String)| member.node == *node && member.port == *port;
            if let Some(at) = on_disk.iter().position(is_it) {
                member.number = disk.first_member + at as u16;
            }
        }
        self.directory
            .replace_description(&format::encode(&description))?;
        self.description = description;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ImageDescription, ImageMember, NewImage};
    use super::*;
    use imbrex_core::lifecycle::Uuid;
    use std::path::Path;

    const OLD: &str = "name = \"old\"";
    const NEW: &str = "name = \"new\"";

    fn member(number: u16, node: &str, port: &str) -> ImageMember {
        let (node, port) = (node.to_owned(), port.to_owned());
        ImageMember { number, node, port }
    }

    fn image(dir: &Path) -> Image {
        let node = |name: &str| ImageNode {
            name: name.to_owned(),
            blocks: BlockCount(4),
            replacement: 0,
        };
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
            members: Some(members),
        };
        NewImage::begin(dir, description)
            .and_then(NewImage::finish)
            .expect("an image");
        fs::write(dir.join("a.img"), "the old disk").expect("a file");
        Image::open(dir).expect("an image")
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
        let mut disk = NewDisk {
            node: "a".to_owned(),
            path: None,
            first_member: 0,
        };
        for step in 0..steps {
            match step {
                0 => disk.first_member = image.reserve_numbers(2).expect("numbers"),
                1 => disk.path = Some(image.make_disk("a", BlockCount(4)).expect("a file")),
                2 => {
                    let path = disk.path.as_ref().expect("a file");
                    fs::write(path, "the new disk").expect("its data");
                }
                3 => image.name_disk(&disk).expect("a name"),
                4 => {
                    let members = members();
                    let described = image.describe_disk(&disk, &members, NEW.to_owned());
                    described.expect("a description");
                }
                _ => image.remove_leftovers(),
            }
        }
    }

    fn files(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.into_string().expect("text"))
            .collect();
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
            assert_eq!(fs::read_to_string(&path).expect("its data"), data);
            assert_eq!(image.description().stack_toml, stack);
            let kept = image.description().members.as_ref().expect("members");
            let expected = match is_new {
                false => [1, 2, 3],
                true => [1, 4, 5],
            };
            let numbers = kept.list.iter().map(|member| member.number);
            assert!(numbers.eq(expected), "after {steps} steps: {kept:?}");
            assert_eq!(
                kept.next,
                if steps == 0 { 4 } else { 6 },
                "used up for ever"
            );
            image.remove_leftovers();
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
            let disk = image.begin_replacement("a", 2, Some(BlockCount(4)));
            let disk = disk.expect("a new disk");
            assert_eq!(disk.first_member(), 6, "after {steps} steps");
            let path = disk.path().expect("a file");
            assert!(
                fs::read(path)
                    .expect("its data")
                    .iter()
                    .all(|byte| *byte == 0)
            );
            image
                .finish_replacement(&disk, &members(), NEW.to_owned())
                .expect("a new disk");
            assert_eq!(
                files(dir),
                ["a.6.img", "b.img", "image"],
                "after {steps} steps"
            );
        }
    }

    #[test]
    fn a_replacement_that_is_given_up_leaves_no_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut image = image(dir.path());
        let disk = image.begin_replacement("a", 2, Some(BlockCount(4)));
        image.abort_replacement(disk.expect("a new disk"));
        assert_eq!(files(dir.path()), ["a.img", "b.img", "image"]);
        let disk = image.begin_replacement("a", 1, None).expect("a new disk");
        assert_eq!((disk.first_member(), disk.path()), (6, None));
        image
            .finish_replacement(&disk, &members()[..1], NEW.to_owned())
            .expect("a new disk");
        assert_eq!(
            files(dir.path()),
            ["b.img", "image"],
            "its data is elsewhere now"
        );
    }

    #[test]
    fn only_files_of_disks_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let image = image(dir.path());
        let strangers = [
            "c.img",
            "a.img.bak",
            "a.x.img",
            "a.07.img",
            "a.0.img",
            "notes",
        ];
        for name in strangers.iter().chain(&["a.7.img", "b.img.new"]) {
            fs::write(dir.path().join(name), "").expect("a file");
        }
        image.remove_leftovers();
        let mut expected = [&strangers[..], &["a.img", "b.img", "image"]].concat();
        expected.sort_unstable();
        assert_eq!(files(dir.path()), expected);
    }

    #[test]
    fn numbers_come_to_an_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut image = image(dir.path());
        let first = image.reserve_numbers(NUMBER_MAX - 4).expect("numbers");
        assert_eq!(first, 4);
        assert_eq!(
            image.reserve_numbers(1).expect("the last number"),
            NUMBER_MAX
        );
        let error = image.reserve_numbers(1).expect_err("none is left");
        assert!(
            error.to_string().contains("has used up all 65534 numbers"),
            "{error}"
        );
        let next = image.description().members.as_ref().map(|it| it.next);
        assert_eq!(next, Some(NUMBER_MAX + 1));
    }
}
