//! New disks for a stack that is served from an image: joins the image, which knows files and
//! numbers, with the stack file, which knows what a disk is called and where it is.

use super::create::refuse_used_backing;
use super::members::{StackOnFiles, is_same_file, member_blocks, open_remote};
use imbrex_core::disk::{Disk, Geometry};
use imbrex_core::engine::NewLabel;
use imbrex_core::label::LABEL_BLOCKS;
use imbrex_core::stack::{DiskId, NodeId};
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_drives::{DiskStatistics, MeasuredDisk, shell_word};
use imbrex_serve::clock::Waker;
use imbrex_serve::disk::{DirectIo, DiskError, FileDisk, OpenFiles};
use imbrex_serve::image::{FoundLabel, Image, NewDisk, find_label};
use imbrex_serve::remote::{RemoteAddress, is_remote};
use imbrex_stack::{DiskConfig, NodeConfig, StackConfig};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A disk of the stack, and what lies on it.
struct Place {
    node: NodeId,
    disk: DiskId,
    name: String,
    geometry: Geometry,
    statistics: Rc<DiskStatistics>,
    /// The members on it, each a layer and its port, in the order in which the stack numbers them.
    members: Vec<(String, String)>,
}

/// A new disk that the layers have not taken yet.
struct Pending {
    node: NodeId,
    disk: NewDisk,
    /// The stack with it.
    config: StackConfig,
}

/// Makes new disks for a stack, and has the image describe those that have taken their place. After
/// [`begin`](Self::begin) comes either [`finish`](Self::finish) or [`abort`](Self::abort).
pub struct MemberReplacer {
    image: Rc<RefCell<Image>>,
    config: StackConfig,
    places: Vec<Place>,
    direct: DirectIo,
    waker: Waker,
    open_files: OpenFiles,
    pending: Vec<Pending>,
}

impl MemberReplacer {
    /// Makes new disks for a stack of an image, which is used as the ones that it has.
    pub fn new(
        image: Rc<RefCell<Image>>,
        stack: &StackOnFiles,
        direct: DirectIo,
        waker: Waker,
    ) -> MemberReplacer {
        MemberReplacer {
            image,
            config: stack.config().clone(),
            places: places(stack),
            direct,
            waker,
            open_files: stack.files.clone(),
            pending: Vec::new(),
        }
    }

    /// A blank disk for the node of a lost one, and the number of the first member on it: a file in
    /// the image, or the file or block device at `path`.
    ///
    /// # Errors
    /// In words, when there can be no such disk. The numbers may be used up then.
    pub fn begin(
        &mut self,
        node: NodeId,
        path: Option<&Path>,
    ) -> Result<(Box<dyn Disk>, u16), String> {
        let place = self.places.iter().find(|place| place.node == node);
        let place = place.ok_or("the node is no disk; accepted: a disk of the image")?;
        let name = &place.name;
        let wrong = |words: &str| Err(format!("node `{name}`: {words}"));
        if place.members.is_empty() {
            return wrong("no layer over the disk can take another one while it runs");
        }
        if self.pending.iter().any(|pending| pending.node == node) {
            return wrong("a new disk is taking its place already");
        }
        let config = self.config_with(place, path)?;
        let members = place.members.len() as u16;
        let blocks = place.geometry.blocks;
        let in_use: Vec<PathBuf> = self.files().map(|(_, path)| path).collect();
        let mut image = self.image.borrow_mut();
        let new = image.begin_replacement(name, members, blocks, path, &in_use);
        let new = new.map_err(|error| error.to_string())?;
        let at: PathBuf = match (path, new.path()) {
            (Some(path), _) => path.to_owned(),
            (None, Some(path)) => path.clone(),
            (None, None) => return wrong("the image has no such disk"),
        };
        let known = config.node(name).and_then(NodeConfig::disk);
        let disk = match self.open(known.expect("a disk of the stack"), &at, place) {
            Ok(disk) => disk,
            Err(words) => {
                image.abort_replacement(new);
                return Err(format!("node `{name}`: {words}"));
            }
        };
        let first_member = new.first_member();
        self.pending.push(Pending { node, disk: new, config });
        let statistics = Rc::clone(&place.statistics);
        let disk = MeasuredDisk::new(disk, statistics);
        Ok((Box::new(disk), first_member))
    }

    /// Opens what holds a new disk, which has its label already.
    fn open(&self, disk: &DiskConfig, at: &Path, place: &Place) -> Result<Box<dyn Disk>, String> {
        let (geometry, waker) = (place.geometry.clone(), self.waker.clone());
        if disk.is_remote() {
            let remote = open_remote(disk, at, geometry, true, false, waker)?;
            return Ok(Box::new(remote.listed_in(&self.open_files)));
        }
        let file = FileDisk::open(at, geometry, self.direct, waker);
        match file.and_then(|file| file.with_label(at)) {
            Ok(file) => Ok(Box::new(file.of_node(&disk.name).listed_in(&self.open_files))),
            Err(error @ DiskError::InUse { .. }) => {
                Err(format!("{error}; a file that this server has lost is its own until it ends"))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The layers have durably taken the disk: from now on the image has it, and not the old one. Returns
    /// its label.
    ///
    /// # Errors
    /// In words, when the image cannot be described anew. What it has then is the old disk or the
    /// new one, as after a crash.
    pub fn finish(&mut self, node: NodeId) -> Result<Option<NewLabel>, String> {
        let Some(Pending { disk, config, .. }) = self.take(node) else {
            return Err("no new disk is taking the place of that node".into());
        };
        let place = self.places.iter().find(|place| place.node == node);
        let members = place.map_or(&[][..], |place| &place.members);
        let stack_toml = toml::to_string(&config).map_err(|error| error.to_string())?;
        let mut image = self.image.borrow_mut();
        image
            .finish_replacement(&disk, members, stack_toml)
            .map_err(|error| format!("node `{}`: {error}", disk.node()))?;
        let label = place.map(|place| {
            let label = disk.label();
            NewLabel { disk: place.disk, number: label.number, random: label.random }
        });
        let own = image.node_path(disk.node());
        drop(image);
        self.config = config;
        // A file of the image gets the name that the lost one had.
        let named = self.config.node(disk.node()).and_then(NodeConfig::disk);
        if let (Some(path), Some(None)) = (own, named.map(|disk| &disk.backing)) {
            self.open_files.renamed(disk.node(), &path);
        }
        let in_use: Vec<PathBuf> = self.files().map(|(_, path)| path).collect();
        self.image.borrow().remove_leftovers(&in_use);
        Ok(label)
    }

    /// The layers have refused the disk. Its numbers stay used up.
    pub fn abort(&mut self, node: NodeId) {
        if let Some(Pending { disk, .. }) = self.take(node) {
            self.image.borrow_mut().abort_replacement(disk);
        }
    }

    fn take(&mut self, node: NodeId) -> Option<Pending> {
        let at = self.pending.iter().position(|it| it.node == node)?;
        Some(self.pending.remove(at))
    }

    /// The stack with a disk at another path, which must be blank and large enough, and nobody's.
    fn config_with(&self, place: &Place, path: Option<&Path>) -> Result<StackConfig, String> {
        let Place { name, geometry, .. } = place;
        let wrong = |words: String| Err(format!("node `{name}`: {words}"));
        let mut config = self.config.clone();
        let in_use: Vec<(String, PathBuf)> = self.files().collect();
        let disks = config.node.iter_mut().filter_map(NodeConfig::disk_mut);
        let Some(disk) = disks.into_iter().find(|disk| disk.name == *name) else {
            return wrong("the stack has no such disk".into());
        };
        if path.is_some() && disk.media.is_some() {
            return wrong(
                "it is memory; accepted: `replace` without a path, for a new file of the image"
                    .into(),
            );
        }
        let Some(path) = path else {
            return match &disk.backing {
                None => Ok(config),
                Some(old) => wrong(format!(
                    "its data is on {old}, which is no file of the image; accepted: `replace PATH`, a blank \
                     file or block device"
                )),
            };
        };
        let is_uri =
            RemoteAddress::of(path).map_err(|words| format!("node `{name}`: {words}"))?.is_some();
        let Some(text) = path.to_str().filter(|_| path.is_absolute() || is_uri) else {
            return wrong(format!(
                "{} cannot be its path; accepted: an absolute path in UTF-8, or the URI of an export",
                path.display()
            ));
        };
        let other = |(node, used): &&(String, PathBuf)| node != name && is_same_file(used, path);
        if let Some((node, _)) = in_use.iter().find(other) {
            return wrong(format!(
                "{text} is the disk of node `{node}` already; accepted: a file or block device of its own"
            ));
        }
        let found =
            member_blocks(path).map_err(|error| format!("node `{name}`: {text}: {error}"))?;
        let needed = BlockCount(geometry.blocks.0 + LABEL_BLOCKS);
        if found < needed {
            return wrong(format!(
                "{text} has {} bytes; accepted: {} or more",
                found.bytes(),
                needed.bytes()
            ));
        }
        disk.backing = Some(text.to_owned());
        disk.measured_blocks = Some(found.0 - LABEL_BLOCKS);
        refuse_used_backing(disk).map_err(|error| error.to_string())?;
        self.refuse_disk_of_image(place, path)?;
        Ok(config)
    }

    /// A file whose start is blank may be a disk of an image all the same: its label says so.
    fn refuse_disk_of_image(&self, place: &Place, path: &Path) -> Result<(), String> {
        let Place { name, geometry, .. } = place;
        let shown = path.display();
        let found = find_label(path, geometry.blocks)
            .map_err(|error| format!("node `{name}`: {shown}: {error}"))?;
        let Some(FoundLabel { image, disk, block }) = found else { return Ok(()) };
        let own = self.image.borrow();
        let known = own.description();
        let mut listed = known.disks.iter().flat_map(|disks| &disks.list);
        let whose = match image == known.uuid {
            false => format!("a disk of image {image}"),
            true => match listed.find(|known| known.number == disk) {
                Some(known) => format!("disk {disk} of this image, that of node `{}`", known.node),
                // It was replaced, or a replacement by it came to nothing.
                None => return Ok(()),
            },
        };
        let text = path.to_string_lossy();
        let word = shell_word(&text);
        let give_up = match path.to_str().is_some_and(is_remote) {
            true => format!("qemu-io -f raw -c 'write -z {} 8k' {word}", block * BLOCK_BYTES),
            false => format!(
                "dd if=/dev/zero of={word} bs=4096 seek={block} count={LABEL_BLOCKS} conv=notrunc,fsync"
            ),
        };
        Err(format!(
            "node `{name}`: {shown} is {whose}; accepted: a file or block device that is no disk of an image; to \
             give up what is there: {give_up}"
        ))
    }

    /// The files of the disks, those on their way included.
    fn files(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let file = |place: &Place| {
            let disk = self.config.node(&place.name).and_then(NodeConfig::disk);
            let config = disk.and_then(|disk| disk.backing.as_ref()).map(PathBuf::from);
            let own = || self.image.borrow().node_path(&place.name);
            Some((place.name.clone(), config.or_else(own)?))
        };
        let pending = |pending: &Pending| {
            let name = pending.disk.node();
            let disk = pending.config.node(name)?.disk()?;
            Some((name.to_owned(), PathBuf::from(disk.backing.as_ref()?)))
        };
        let pending = self.pending.iter().filter_map(pending);
        self.places.iter().filter_map(file).chain(pending)
    }
}

/// The disks of a stack with what lies on them.
fn places(stack: &StackOnFiles) -> Vec<Place> {
    let (engine, describe) = (&stack.engine, &stack.describe);
    let disks = describe
        .nodes
        .iter()
        .filter_map(|node| Some((node, node.facts.disk()?, engine.stack.disk_of(node.id)?)));
    disks
        .map(|(node, facts, disk)| {
            let members = engine.stack.members_on(disk).into_iter();
            Place {
                node: node.id,
                disk,
                name: node.name.clone(),
                geometry: engine.disks[usize::from(disk.0)].geometry().clone(),
                statistics: Rc::clone(facts.statistics()),
                members: members
                    .filter_map(|(layer, port)| stack.member_behind(layer, port))
                    .collect(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CreateArgs;
    use crate::commands::create;
    use crate::commands::members::{self, FileUse, image_options, listed_members};
    use imbrex_serve::clock::WallClock;
    use imbrex_stack::{MemberNumbers, Plan};
    use std::fs::{self, File};

    /// A replacer over a new image of a cache, whose disk `ssd` is said to hold its flash: no layer
    /// takes new disks in this stack.
    struct World {
        dir: tempfile::TempDir,
        image: Rc<RefCell<Image>>,
        replacer: MemberReplacer,
        /// Keeps the files locked.
        stack: StackOnFiles,
    }

    fn node(stack: &StackOnFiles, name: &str) -> NodeId {
        let mut nodes = stack.describe.nodes.iter();
        nodes.find(|node| node.name == name).expect("a node").id
    }

    fn opened(data: &Path) -> (Image, StackOnFiles, Waker) {
        let image = Image::open(data).expect("an image");
        let description = image.description();
        let config = StackConfig::from_image(&description.stack_toml).expect("a stack");
        let members = MemberNumbers::Listed(listed_members(&description.members));
        let plan = Plan::new(&config, &image_options(members)).expect("a plan");
        let (_, waker) = WallClock::alone().expect("an epoll instance");
        let files = FileUse {
            disks: description.disks.as_ref(),
            image: description.uuid,
            place: members::Place::default(),
            direct: DirectIo::Off,
            overlay_bytes_max: None,
        };
        let path_of = |name: &str| image.node_path(name);
        let stack = StackOnFiles::build(&config, &plan, &path_of, files, &waker);
        let stack = stack.unwrap_or_else(|error| panic!("{error}"));
        (image, stack, waker)
    }

    fn world() -> World {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        let args = CreateArgs {
            stack: "pore".to_owned(),
            data: data.clone(),
            preallocate: false,
            size: Some("64MiB".to_owned()),
            set: Vec::new(),
        };
        create::run(&args).expect("an image");
        let (image, stack, waker) = opened(&data);
        let image = Rc::new(RefCell::new(image));
        let mut replacer = MemberReplacer::new(Rc::clone(&image), &stack, DirectIo::Off, waker);
        let place = replacer.places.iter_mut().find(|place| place.name == "ssd");
        let place = place.expect("a disk");
        place.members.push(("cache".to_owned(), "flash".to_owned()));
        World { dir, image, replacer, stack }
    }

    impl World {
        /// Closes the image and its files.
        fn ends(self) -> tempfile::TempDir {
            self.dir
        }

        fn begin(&mut self, name: &str, path: Option<&Path>) -> Result<u16, String> {
            let node = node(&self.stack, name);
            let begun = self.replacer.begin(node, path);
            begun.map(|(disk, first_member)| {
                let place = self.replacer.places.iter().find(|place| place.node == node);
                let blocks = place.expect("a disk").geometry.blocks;
                assert_eq!(disk.geometry().blocks, blocks);
                first_member
            })
        }

        fn file(&self, name: &str, bytes: u64) -> PathBuf {
            let path = self.dir.path().join(name);
            let file = File::create(&path).expect("a file");
            file.set_len(bytes).expect("a length");
            path
        }

        fn numbers(&self) -> Vec<u16> {
            let image = self.image.borrow();
            image.description().members.list.iter().map(|member| member.number).collect()
        }
    }

    #[test]
    fn a_new_disk_gets_the_next_number_and_the_image_keeps_it() {
        let mut world = world();
        let ssd = node(&world.stack, "ssd");
        assert_eq!(world.begin("ssd", None), Ok(4));
        let twice = "node `ssd`: a new disk is taking its place already";
        assert_eq!(world.begin("ssd", None), Err(twice.to_owned()));
        world.replacer.abort(ssd);
        assert_eq!(world.begin("ssd", None), Ok(5));
        assert_eq!(world.numbers(), [1, 2, 3], "not before the layers have it");
        world.replacer.finish(ssd).expect("a new disk");
        assert_eq!(world.numbers(), [1, 5, 3]);
        assert!(world.replacer.finish(ssd).is_err(), "nothing is pending");
        let data = world.dir.path().join("data");
        let dir = world.ends();
        let (image, stack, _) = opened(&data);
        assert!(image.node_path("ssd").is_some_and(|path| path.ends_with("ssd.5.img")));
        assert!(stack.refuse_lost().is_ok(), "every file is there");
        drop(dir);
    }

    #[test]
    fn a_new_disk_elsewhere_is_in_the_stack_from_then_on() {
        let mut world = world();
        let ssd = node(&world.stack, "ssd");
        let path = world.file("new.disk", 64 << 20);
        assert_eq!(world.begin("ssd", Some(&path)), Ok(4));
        world.replacer.finish(ssd).expect("a new disk");
        let no_path = world.begin("ssd", None).expect_err("it is elsewhere");
        let expected = format!(
            "node `ssd`: its data is on {}, which is no file of the image; accepted: `replace PATH`, a blank file or \
             block device",
            path.display()
        );
        assert_eq!(no_path, expected);
        let data = world.dir.path().join("data");
        assert!(data.join("ssd.img").exists(), "the stack still has it");
        let dir = world.ends();
        let (image, stack, _) = opened(&data);
        image.remove_leftovers(&[]);
        assert!(!data.join("ssd.img").exists(), "the old disk is gone");
        assert!(stack.refuse_lost().is_ok(), "every file is there");
        let member = stack.members.iter().find(|member| member.node == "ssd");
        assert_eq!(member.map(|member| &member.path), Some(&path));
        drop(dir);
    }

    #[test]
    fn what_cannot_be_a_new_disk_is_refused_before_anything_changes() {
        let mut world = world();
        let short = world.file("short", 4096);
        let used = world.file("used", 64 << 20);
        fs::write(&used, [1; 4096]).expect("data");
        File::options()
            .write(true)
            .open(&used)
            .and_then(|file| file.set_len(64 << 20))
            .expect("a length");
        let smr = world.dir.path().join("data/smr.img");
        let missing = world.dir.path().join("missing");
        let cases: [(&str, &Path, &str); 5] = [
            ("ssd", &short, "has 4096 bytes; accepted: "),
            ("ssd", &used, "holds data; accepted: a file, block device or export whose first "),
            ("ssd", &smr, "is the disk of node `smr` already"),
            ("ssd", &missing, "No such file or directory"),
            ("ssd", Path::new("here"), "cannot be its path; accepted: an absolute path"),
        ];
        for (name, path, expected) in cases {
            let error = world.begin(name, Some(path)).expect_err(expected);
            assert!(error.starts_with("node `ssd`: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        let error = world.begin("smr", None).expect_err("nobody takes it");
        let expected = "node `smr`: no layer over the disk can take another one while it runs";
        assert_eq!(error, expected);
        let error = world.begin("cache", None).expect_err("no disk");
        assert_eq!(error, "the node is no disk; accepted: a disk of the image");
        let next = world.image.borrow().description().members.next;
        assert_eq!(next, 4, "no number is used up");
    }
}
