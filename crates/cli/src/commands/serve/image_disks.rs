//! New disks for an image that is served.

use crate::Failure;
use crate::commands::create::refuse_used;
use crate::commands::members::{FileIdentity, member_blocks};
use imbrex_core::buffer::ContentKind;
use imbrex_core::disk::Disk;
use imbrex_drives::MeasuredDisk;
use imbrex_serve::clock::Waker;
use imbrex_serve::disk::{DirectIo, FileDisk};
use imbrex_serve::image::{Image, NewDisk};
use imbrex_sim::experiment::config::NodeConfig;
use imbrex_sim::experiment::{Describe, Footprint, Plan, StackConfig};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The disks of an image, of which new ones can take the place of lost ones.
pub struct ImageDisks {
    /// The image, which is closed elsewhere.
    pub image: Rc<RefCell<Image>>,
    /// The stack as the image describes it.
    pub config: StackConfig,
    /// What the stack was built from.
    pub plan: Plan,
    /// Whether operations go round the page cache.
    pub direct: DirectIo,
    /// Ends the waits of the server.
    pub waker: Waker,
    /// What the files of the disks are.
    pub used: Vec<(String, FileIdentity)>,
    /// A new disk that has not taken its place yet, and its file.
    pub under_way: Option<(NewDisk, PathBuf)>,
}

impl ImageDisks {
    /// Makes a disk for a node: over the file or block device at the path, or in the directory of the
    /// image. Returns the disk and the number of the first of its `members` members.
    pub fn begin(
        &mut self,
        node: &str,
        path: Option<&Path>,
        members: u16,
        describe: &Describe,
    ) -> Result<(Box<dyn Disk>, u16), Failure> {
        if let Some((other, _)) = &self.under_way {
            return Err(format!(
                "node `{}` gets a new disk; accepted: the next one when that has ended",
                other.node()
            )
            .into());
        }
        let whole = Footprint::whole_device(self.plan.blocks().bytes());
        let model = self
            .plan
            .new_disk(node, Some(whole), ContentKind::Counted)?;
        let geometry = model.geometry().clone();
        let blocks = match path {
            Some(path) => {
                self.check_path(node, path)?;
                None
            }
            None if self.has_backing(node) => {
                return Err(format!(
                    "node `{node}` is a file or block device outside of the image; accepted: \
                     `replace PATH`"
                )
                .into());
            }
            None => Some(geometry.blocks),
        };
        let mut image = self.image.borrow_mut();
        let new = image.begin_replacement(node, members, blocks)?;
        let file = path.or(new.path().map(PathBuf::as_path));
        let file = file.expect("a file here or there").to_owned();
        let opened = FileDisk::open(&file, geometry, self.direct, self.waker.clone());
        let disk = match opened {
            Ok(disk) => disk.of_node(node),
            Err(error) => {
                image.abort_replacement(new);
                return Err(error.into());
            }
        };
        let mut disks = describe.disks();
        let counted = disks.find(|disk| disk.name() == node);
        let statistics = counted.map_or(model.statistics(), |disk| Rc::clone(disk.statistics()));
        let first_member = new.first_member();
        self.under_way = Some((new, file));
        Ok((
            Box::new(MeasuredDisk::new(Box::new(disk), statistics)),
            first_member,
        ))
    }

    /// The layers have taken the new disk: from now on the image has it.
    pub fn finish(&mut self, node: &str, members: &[(String, String)]) -> Result<(), Failure> {
        let (new, file) = self.take(node)?;
        let mut config = self.config.clone();
        let disks = config.node.iter_mut().filter_map(|node| match node {
            NodeConfig::Disk(disk) => Some(disk),
            _ => None,
        });
        for disk in disks.filter(|disk| disk.name == node) {
            let is_elsewhere = new.path().is_none();
            disk.backing = is_elsewhere.then(|| file.display().to_string());
            disk.measured_blocks = match is_elsewhere {
                true => Some(member_blocks(&file)?.0),
                false => None,
            };
        }
        let text = toml::to_string(&config)?;
        let finished = self.image.borrow_mut();
        { finished }.finish_replacement(&new, members, text)?;
        self.config = config;
        self.used.retain(|(other, _)| other != node);
        let place = self
            .image
            .borrow()
            .node_path(node)
            .filter(|_| new.path().is_some());
        if let Some(identity) = FileIdentity::of(place.as_deref().unwrap_or(&file)) {
            self.used.push((node.to_owned(), identity));
        }
        Ok(())
    }

    /// The layers have refused the new disk.
    pub fn abort(&mut self, node: &str) {
        if let Ok((new, _)) = self.take(node) {
            self.image.borrow_mut().abort_replacement(new);
        }
    }

    fn take(&mut self, node: &str) -> Result<(NewDisk, PathBuf), Failure> {
        let is_it = |(new, _): &mut (NewDisk, PathBuf)| new.node() == node;
        let taken = self.under_way.take_if(is_it);
        taken.ok_or_else(|| format!("node `{node}` gets no new disk").into())
    }

    fn has_backing(&self, node: &str) -> bool {
        matches!(self.config.node(node), Some(NodeConfig::Disk(disk)) if disk.backing.is_some())
    }

    /// Refuses what is another disk, or may hold something that somebody needs.
    fn check_path(&self, node: &str, path: &Path) -> Result<(), Failure> {
        let identity = FileIdentity::of(path);
        let other = self.used.iter().find(|(_, used)| Some(*used) == identity);
        if let Some((other, _)) = other {
            return Err(format!(
                "{} is the disk of node `{other}` already; accepted: another file or block device",
                path.display()
            )
            .into());
        }
        refuse_used(node, path)
    }
}
