//! What a served stack needs to take commands.

use super::EmulatedDisks;
use crate::Failure;
use crate::args::ServeArgs;
use imbrex_core::engine::Engine;
use imbrex_core::stack::NodeId;
use imbrex_serve::control::{Commands, ControlNode, NewDisk, Replacer};
use imbrex_serve::disk::Faults;
use imbrex_serve::listener::ListenError;
use imbrex_serve::server::{ServeError, Server};
use imbrex_sim::experiment::Describe;
use std::ffi::OsString;
use std::path::PathBuf;

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

/// What commands can be about. With `--allow-faults` every disk is put under one that can be broken.
pub fn commands(
    args: &ServeArgs,
    engine: &mut Engine,
    describe: &Describe,
    emulated: Option<EmulatedDisks>,
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
    Commands {
        replacer: emulated.map(|disks| replacer(disks, &nodes, engine, faults.clone())),
        nodes,
        faults,
        is_read_only: args.read_only,
    }
}

/// New simulated disks in the place of lost ones.
fn replacer(
    mut disks: EmulatedDisks,
    nodes: &[ControlNode],
    engine: &Engine,
    faults: Option<Faults>,
) -> Replacer {
    let members = nodes.iter().filter_map(|node| {
        let members = engine.stack.members_on(node.disk?.disk).len();
        Some((node.node, node.name.clone(), members as u16))
    });
    let members: Vec<(NodeId, String, u16)> = members.collect();
    let mut next_member = engine.stack.next_member();
    Replacer {
        begin: Box::new(move |node, path| {
            if let Some(path) = path {
                return Err(format!(
                    "{}: the drives are emulated; accepted: `replace` without a path",
                    path.display()
                ));
            }
            let known = members.iter().find(|(known, ..)| *known == node);
            let (_, name, count) = known.ok_or("the node is no disk")?;
            let disk = disks.make(name).map_err(|error| error.to_string())?;
            let first_member = next_member;
            next_member = next_member
                .checked_add(*count)
                .ok_or("the set has had 65535 members; accepted: no more than that")?;
            Ok(NewDisk {
                disk: match &faults {
                    Some(faults) => Box::new(faults.over(name, disk)),
                    None => disk,
                },
                first_member,
            })
        }),
        finish: Box::new(|_| Ok(())),
        abort: Box::new(|_| {}),
    }
}
