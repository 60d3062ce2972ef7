//! What a served stack needs to take commands.

use super::EmulatedDisks;
use super::live_report::LiveReport;
use crate::args::ServeArgs;
use crate::commands::console::remark;
use crate::commands::replace::MemberReplacer;
use crate::failure::{Failure, usage};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::stack::NodeId;
use imbrex_serve::control::{Commands, ControlNode, Figures, NewDisk, Replacer};
use imbrex_serve::disk::{Faults, OpenFiles};
use imbrex_serve::listener::ListenError;
use imbrex_serve::server::{ServeError, Server};
use imbrex_stack::Describe;
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
            return Err(usage(
                "--allow-faults: faults are commands, and nothing takes commands; accepted: with --socket PATH \
                 or --control PATH",
            ));
        }
        return Ok(None);
    };
    match server.bind_control(&path) {
        Ok(()) => Ok(Some(path)),
        // Nobody has asked for it, and the socket of the device fits.
        Err(ServeError::Listen(error @ ListenError::PathTooLong { .. }))
            if args.control.is_none() && !args.allow_faults =>
        {
            remark!(
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
    Image(MemberReplacer),
    /// There are none: the device is only read.
    None,
}

/// What commands can be about. With `--allow-faults` every disk is put under one that can be broken.
pub fn commands(
    args: &ServeArgs,
    engine: &mut Engine,
    describe: &Rc<Describe>,
    disks: NewDisks,
    live: &LiveReport,
) -> Commands {
    let nodes = describe.nodes.iter();
    let nodes: Vec<ControlNode> =
        nodes.map(|node| ControlNode::of(engine, &node.name, node.id)).collect();
    let faults = args.allow_faults.then(Faults::default);
    if let Some(faults) = &faults {
        let disks = std::mem::take(&mut engine.disks);
        let named = disks.into_iter().zip(describe.disks());
        engine.disks =
            named.map(|(disk, node)| Box::new(faults.over(node.name(), disk)) as _).collect();
    }
    let replacer = match disks {
        NewDisks::Emulated(disks) => {
            let next_member = engine.stack.next_member();
            let known = replaceable(&nodes, engine);
            Some(replacer_of_emulated(known, disks, next_member, faults.clone()))
        }
        NewDisks::Image(disks) => Some(replacer_of_image(disks, faults.clone(), describe)),
        NewDisks::None => None,
    };
    Commands {
        replacer,
        nodes,
        faults,
        is_read_only: args.read_only,
        figures: Some(figures(describe, live)),
        files: OpenFiles::default(),
    }
}

/// What `status` tells by the names of reports, made by what makes reports.
fn figures(describe: &Rc<Describe>, live: &LiveReport) -> Figures {
    let (of_node, of_device) = (Rc::clone(describe), Rc::clone(describe));
    let live = live.clone();
    Figures {
        of_node: Box::new(move |node, counts| of_node.counted(node, counts)),
        of_device: Box::new(move || live.of_host(&of_device)),
    }
}

/// A disk node.
struct DiskNode {
    node: NodeId,
    name: String,
    /// Layers that would take a new disk there.
    members: u16,
}

fn replaceable(nodes: &[ControlNode], engine: &Engine) -> Vec<DiskNode> {
    let disks = nodes.iter().filter_map(|node| {
        Some(DiskNode {
            node: node.node,
            name: node.name.clone(),
            members: engine.stack.members_on(node.disk?.disk).len() as u16,
        })
    });
    disks.collect()
}

/// New simulated disks in the place of lost ones.
fn replacer_of_emulated(
    known: Vec<DiskNode>,
    mut disks: EmulatedDisks,
    mut next_member: u16,
    faults: Option<Faults>,
) -> Replacer {
    Replacer {
        begin: Box::new(move |node, path| {
            if let Some(path) = path {
                return Err(format!(
                    "{}: the drives are emulated; accepted: `replace` without a path",
                    path.display()
                ));
            }
            let place = known.iter().find(|place| place.node == node);
            let DiskNode { name, members, .. } = place.ok_or("the node is no disk")?;
            if *members == 0 {
                return Err(format!(
                    "node `{name}`: no layer over the disk can take another one while it runs"
                ));
            }
            let first_member = next_member;
            next_member = next_member
                .checked_add(*members)
                .ok_or("the set has had 65535 members; accepted: no more than that")?;
            let disk = disks.make(name).map_err(|error| error.to_string())?;
            Ok(new_disk(&faults, name, disk, first_member))
        }),
        finish: Box::new(|_| Ok(None)),
        abort: Box::new(|_| {}),
    }
}

/// New files in the place of lost ones.
fn replacer_of_image(
    disks: MemberReplacer,
    faults: Option<Faults>,
    describe: &Rc<Describe>,
) -> Replacer {
    let disks = Rc::new(RefCell::new(disks));
    let (of_finish, of_abort) = (Rc::clone(&disks), Rc::clone(&disks));
    let describe = Rc::clone(describe);
    Replacer {
        begin: Box::new(move |node, path| {
            let (disk, first_member) = disks.borrow_mut().begin(node, path)?;
            let name = describe.name_of(node).unwrap_or_default();
            Ok(new_disk(&faults, name, disk, first_member))
        }),
        finish: Box::new(move |node| of_finish.borrow_mut().finish(node)),
        abort: Box::new(move |node| of_abort.borrow_mut().abort(node)),
    }
}

/// A new disk, which can be broken where the others can.
fn new_disk(
    faults: &Option<Faults>,
    name: &str,
    disk: Box<dyn Disk>,
    first_member: u16,
) -> NewDisk {
    let disk = match faults {
        Some(faults) => Box::new(faults.over(name, disk)),
        None => disk,
    };
    NewDisk { disk, first_member }
}
