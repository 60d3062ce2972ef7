//! What a served stack needs to take commands.

use super::EmulatedDisks;
use super::image_disks::ImageDisks;
use crate::Failure;
use crate::args::ServeArgs;
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::layer::Port;
use imbrex_core::stack::NodeId;
use imbrex_serve::control::{Commands, ControlNode, NewDisk, Replacer};
use imbrex_serve::disk::Faults;
use imbrex_serve::listener::ListenError;
use imbrex_serve::server::{ServeError, Server};
use imbrex_sim::experiment::Describe;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

/// What is put behind the path of a Unix socket to make that of its control socket.
const ENDING: &str = ".control";

/// Opens the control socket: the one that is asked for, or the one beside a Unix socket that is not
/// private. Returns where commands are taken.
pub fn bind(args: &ServeArgs, server: &mut Server) -> Result<Option<PathBuf>, Failure> {
    let beside = args.socket.as_ref().map(|socket| {
        let mut path = OsString::from(socket);
        path.push(ENDING);
        PathBuf::from(path)
    });
    let Some(path) = args.control.clone().or(beside) else {
        if args.allow_faults {
            return Err(
                "--allow-faults: faults are commands, and nothing takes commands; accepted: with \
                        --socket PATH or --control PATH"
                    .into(),
            );
        }
        return Ok(None);
    };
    match server.bind_control(&path) {
        Ok(()) => Ok(Some(path)),
        // Nobody has asked for it, and the socket of the device fits.
        Err(ServeError::Listen(error @ ListenError::PathTooLong { .. }))
            if args.control.is_none() && !args.allow_faults =>
        {
            eprintln!(
                "imbrex: warning: no commands are taken: {error}; accepted: --control with a shorter path"
            );
            Ok(None)
        }
        Err(error) => Err(format!("{error} (for commands)").into()),
    }
}

/// Where new disks come from.
pub enum NewDisks {
    /// They are simulated.
    Emulated(EmulatedDisks),
    /// They are files.
    Image(ImageDisks),
    /// There are none: the device is only read.
    None,
}

/// What commands can be about. With `--allow-faults` every disk is put under one that can be broken.
pub fn commands(
    args: &ServeArgs,
    engine: &mut Engine,
    describe: &Rc<Describe>,
    disks: NewDisks,
) -> Commands {
    let nodes = describe.nodes.iter();
    let nodes: Vec<ControlNode> = nodes
        .map(|node| ControlNode::of(engine, &node.name, node.id))
        .collect();
    let faults = args.allow_faults.then(Faults::default);
    if let Some(faults) = &faults {
        let disks = std::mem::take(&mut engine.disks);
        let named = disks.into_iter().zip(describe.disks());
        engine.disks = named
            .map(|(disk, node)| Box::new(faults.over(node.name(), disk)) as _)
            .collect();
    }
    let known = Known {
        disks: replaceable(&nodes, engine, describe),
        faults: faults.clone(),
    };
    let replacer = match disks {
        NewDisks::Emulated(disks) => {
            let next_member = engine.stack.next_member();
            Some(replacer_of_emulated(known, disks, next_member))
        }
        NewDisks::Image(disks) => Some(replacer_of_image(known, disks, Rc::clone(describe))),
        NewDisks::None => None,
    };
    Commands {
        replacer,
        nodes,
        faults,
        is_read_only: args.read_only,
    }
}

/// A disk node.
struct DiskNode {
    node: NodeId,
    name: String,
    /// The layers that would take a new disk there, each with its port.
    members: Vec<(NodeId, Port)>,
}

/// What does not change while a stack is served.
struct Known {
    disks: Vec<DiskNode>,
    faults: Option<Faults>,
}

impl Known {
    /// A disk whose place a new one can take.
    fn disk(&self, node: NodeId) -> Result<&DiskNode, String> {
        let disk = self.disks.iter().find(|disk| disk.node == node);
        let disk = disk.ok_or("the node is no disk")?;
        match disk.members.is_empty() {
            false => Ok(disk),
            true => Err(format!(
                "no layer over the disk of node `{}` can take another one while it runs; accepted: a \
                 disk whose data an array above has elsewhere",
                disk.name
            )),
        }
    }

    fn name(&self, node: NodeId) -> String {
        let disk = self.disks.iter().find(|disk| disk.node == node);
        disk.map_or(String::new(), |disk| disk.name.clone())
    }

    /// A new disk, which can be broken where the others can.
    fn new_disk(&self, name: &str, disk: Box<dyn Disk>, first_member: u16) -> NewDisk {
        let disk = match &self.faults {
            Some(faults) => Box::new(faults.over(name, disk)),
            None => disk,
        };
        NewDisk { disk, first_member }
    }
}

fn replaceable(nodes: &[ControlNode], engine: &Engine, describe: &Describe) -> Vec<DiskNode> {
    let disks = nodes.iter().filter_map(|node| {
        Some(DiskNode {
            node: node.node,
            name: describe.name_of(node.node)?.to_owned(),
            members: engine.stack.members_on(node.disk?.disk),
        })
    });
    disks.collect()
}

/// New simulated disks in the place of lost ones.
fn replacer_of_emulated(known: Known, mut disks: EmulatedDisks, mut next_member: u16) -> Replacer {
    Replacer {
        begin: Box::new(move |node, path| {
            if let Some(path) = path {
                return Err(format!(
                    "{}: the drives are emulated; accepted: `replace` without a path",
                    path.display()
                ));
            }
            let DiskNode { name, members, .. } = known.disk(node)?;
            let first_member = next_member;
            next_member = next_member
                .checked_add(members.len() as u16)
                .ok_or("the set has had 65535 members; accepted: no more than that")?;
            let disk = disks.make(name).map_err(|error| error.to_string())?;
            Ok(known.new_disk(name, disk, first_member))
        }),
        finish: Box::new(|_| Ok(())),
        abort: Box::new(|_| {}),
    }
}

/// New files in the place of lost ones.
fn replacer_of_image(known: Known, disks: ImageDisks, describe: Rc<Describe>) -> Replacer {
    let known = Rc::new(known);
    let disks = Rc::new(RefCell::new(disks));
    let (of_finish, of_abort) = (
        (Rc::clone(&known), Rc::clone(&disks)),
        (Rc::clone(&known), Rc::clone(&disks)),
    );
    let of_begin = Rc::clone(&describe);
    Replacer {
        begin: Box::new(move |node, path| {
            let DiskNode { name, members, .. } = known.disk(node)?;
            let count = members.len() as u16;
            let begun = disks.borrow_mut().begin(name, path, count, &of_begin);
            let (disk, first_member) = begun.map_err(|error| error.to_string())?;
            Ok(known.new_disk(name, disk, first_member))
        }),
        finish: Box::new(move |node| {
            let (known, disks) = &of_finish;
            let mut disks = disks.borrow_mut();
            let members: Vec<(String, String)> = (known.disk(node)?.members.iter())
                .filter_map(|(layer, port)| {
                    let layer = describe.name_of(*layer)?;
                    let mut members = disks.plan.members().iter();
                    let member = members.find(|it| it.node == layer && it.port == *port)?;
                    Some((member.node.clone(), member.port_name.to_owned()))
                })
                .collect();
            let finished = disks.finish(&known.name(node), &members);
            finished.map_err(|error| error.to_string())
        }),
        abort: Box::new(move |node| {
            let (known, disks) = &of_abort;
            disks.borrow_mut().abort(&known.name(node));
        }),
    }
}
