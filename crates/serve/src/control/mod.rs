//! Commands to the nodes of a served stack, over a socket of their own.
//!
//! Nothing here blocks, and every quantity that a client can make grow has a bound, named below.
//! A command belongs to no client: one that goes away does not end it, and another one that asks
//! for it under the same id is told how it ends.

mod array;
mod client;
mod message;
mod rate;
mod replacer;
mod status;
mod targets;

pub use replacer::{NewDisk, Replacer};
pub use status::{DeviceFigures, Figures, NodeFigures};
pub use targets::{ControlDisk, ControlNode};

use crate::clock::Poller;
use crate::disk::{Faults, OpenFiles};
use crate::listener::{ListenError, Listener};
use crate::signals::say;
use client::{Client, Received};
use imbrex_core::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, CommandState,
};
use imbrex_core::engine::{CommandArrival, Replacement};
use imbrex_core::units::{Duration, Instant};
use message::{Asked, Request};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::rc::Rc;
use targets::Targets;

/// Clients of a control socket at once. One more takes the place of the one that has been there
/// longest without a command under way, or else is told so and disconnected.
pub const CONTROL_CLIENTS_MAX: usize = 16;
/// Commands under way at once.
pub const COMMANDS_MAX: usize = 64;
/// Bytes of a request, its end of line aside.
pub const REQUEST_LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes of answers that a client has not taken; it is disconnected beyond them.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Until clients that wait because descriptors have run out are tried again. Those of this server
/// that become free are not waited for.
pub const CONTROL_ACCEPT_AGAIN_MS: u64 = 100;
/// Between two lines that tell how far a command has come.
pub const PROGRESS_MS_MIN: u64 = 200;

/// Events of the control socket itself.
pub(crate) const CONTROL_LISTENER: u64 = u64::MAX - 3;
/// Events of the first client; further ones count down.
const FIRST_CLIENT: u64 = u64::MAX - 16;
/// Clients before their tokens begin again. The lower half of such a token is no number of a place
/// for an NBD client.
const CLIENT_TOKENS: u64 = 1 << 30;

const STOPPING: &str = "the server is stopping";

/// What commands of a served stack need beside the stack.
#[derive(Default)]
pub struct Commands {
    /// The nodes by name. Commands to others are refused.
    pub nodes: Vec<ControlNode>,
    /// Makes new disks; without it `replace` is refused.
    pub replacer: Option<Replacer>,
    /// The disks that can be broken on purpose; without it faults are refused.
    pub faults: Option<Faults>,
    /// Commands that would change what the disks hold are refused.
    pub is_read_only: bool,
    /// What `status` tells beside what the layers say.
    pub figures: Option<Figures>,
    /// The files of the disks, of which `status` tells whether they are still there, and events too.
    pub files: OpenFiles,
}

/// A command that is not yet answered.
struct UnderWay {
    /// What the engine calls it at the first of its nodes; at the others the numbers that follow.
    id: CommandId,
    request: Request,
    nodes: Vec<ControlNode>,
    /// What is to be told of the nodes that have ended it, in their order.
    ended: Vec<Value>,
    /// The clients that asked for it.
    clients: Vec<u64>,
    /// When its progress was last told.
    told: Option<Instant>,
    /// A new disk is yet to be made: first it is asked whether the old one is lost.
    is_asking: bool,
}

impl UnderWay {
    /// True of what the engine calls it at one of its nodes.
    fn is_called(&self, id: CommandId) -> bool {
        (self.id.0..self.id.0 + self.nodes.len() as u64).contains(&id.0)
    }
}

/// The control socket of a server, or none.
pub(crate) struct Control {
    poller: Rc<Poller>,
    listener: Option<OwnedFd>,
    targets: Targets,
    commands: Commands,
    /// The commands that some node takes.
    offered: Vec<&'static str>,
    clients: BTreeMap<u64, Client>,
    /// Descriptors ran out, and clients may wait; to be tried again then, or at the next turn before.
    accept_again: Option<Instant>,
    /// Clients so far.
    accepted: u64,
    /// Clients that may have sent more than was read at once.
    unread: Vec<u64>,
    ready: VecDeque<CommandArrival>,
    under_way: Vec<UnderWay>,
    /// Commands so far.
    started: u64,
    is_stopping: bool,
}

/// A bound control socket, before the server runs.
pub(crate) struct ControlSocket(Listener);

impl ControlSocket {
    pub fn bind(path: &Path, poller: &Poller) -> Result<ControlSocket, ListenError> {
        let listener = Listener::bind_private(path)?;
        let watched = poller.add(listener.socket(), CONTROL_LISTENER);
        watched.map_err(|errno| ListenError::System {
            address: path.display().to_string(),
            source: errno.into(),
        })?;
        Ok(ControlSocket(listener))
    }

    /// Where it is.
    pub fn path(&self) -> Option<&Path> {
        self.0.unix_path()
    }

    pub fn take(&mut self) -> OwnedFd {
        self.0.take_socket()
    }
}

impl Control {
    pub fn new(poller: Rc<Poller>, socket: Option<OwnedFd>, mut commands: Commands) -> Control {
        let targets = Targets::new(std::mem::take(&mut commands.nodes));
        Control {
            poller,
            listener: socket,
            offered: targets.offered(&commands),
            targets,
            commands,
            clients: BTreeMap::new(),
            accept_again: None,
            accepted: 0,
            unread: Vec::new(),
            ready: VecDeque::new(),
            under_way: Vec::new(),
            started: 0,
            is_stopping: false,
        }
    }

    /// True of a token whose events belong here.
    pub fn owns(token: u64) -> bool {
        token == CONTROL_LISTENER
            || (FIRST_CLIENT - CLIENT_TOKENS + 1..=FIRST_CLIENT).contains(&token)
    }

    /// When there is something to do, as far as is known.
    pub fn next_event(&self) -> Option<Instant> {
        match self.ready.is_empty() && self.unread.is_empty() {
            false => Some(Instant::ZERO),
            true => self.accept_again,
        }
    }

    /// True while a new disk takes its place, which is soon over and must not be left half done.
    pub fn is_replacing(&self) -> bool {
        let replaces = |it: &UnderWay| matches!(it.request.asked, Asked::Replace(_));
        self.under_way.iter().any(replaces)
    }

    /// The next command for the engine.
    pub fn pop_ready(&mut self) -> Option<CommandArrival> {
        self.ready.pop_front()
    }

    /// Reads on where more was sent than is read at once.
    pub fn begin_turn(&mut self) {
        for token in std::mem::take(&mut self.unread) {
            self.read(token);
        }
    }

    /// Takes in those who wait for a descriptor, where there may be one by now. An edge is told once, so
    /// nothing else would.
    ///
    /// # Errors
    /// When clients begin to wait: as the system says.
    pub fn end_turn(&mut self, now: Instant) -> io::Result<()> {
        match self.accept_again {
            Some(_) => self.accept(now),
            None => Ok(()),
        }
    }

    pub fn handle_event(&mut self, token: u64, flags: EventFlags) {
        if token == CONTROL_LISTENER {
            // With the end of the turn.
            self.accept_again = Some(Instant::ZERO);
            return;
        }
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        client.has_gone |= flags.intersects(EventFlags::HUP | EventFlags::ERR);
        client.send();
        self.read(token);
    }

    /// Takes in everybody who has connected.
    fn accept(&mut self, now: Instant) -> io::Result<()> {
        let has_waited = self.accept_again.take() > Some(Instant::ZERO);
        loop {
            let Some(listener) = &self.listener else {
                return Ok(());
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(listener, flags) {
                Ok(socket) => self.greet(socket),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // Out of descriptors.
                Err(errno) => {
                    self.accept_again = Some(now + Duration::from_ms(CONTROL_ACCEPT_AGAIN_MS));
                    return match has_waited {
                        true => Ok(()),
                        false => Err(errno.into()),
                    };
                }
            }
        }
    }

    fn greet(&mut self, socket: OwnedFd) {
        let token = FIRST_CLIENT - self.accepted % CLIENT_TOKENS;
        self.accepted += 1;
        if self.clients.len() >= CONTROL_CLIENTS_MAX && !self.close_idle() {
            let words = format!(
                "there are {CONTROL_CLIENTS_MAX} clients, and each has a command under way; try \
                 again when one has ended"
            );
            Client::new(socket).tell(&message::error(None, &words));
            return;
        }
        // Watched for room to write as well: an edge is told once, when there is room again.
        let watched = self.poller.add(&socket, token);
        if watched.and_then(|()| self.poller.modify(&socket, token, true)).is_ok() {
            self.clients.insert(token, Client::new(socket));
            self.read(token);
        }
    }

    /// Closes the client that has been there longest of those without a command under way.
    fn close_idle(&mut self) -> bool {
        let is_idle = |token: &&u64| !self.under_way.iter().any(|it| it.clients.contains(token));
        // Tokens count down.
        let idle = self.clients.keys().rev().find(is_idle).copied();
        idle.is_some_and(|token| self.clients.remove(&token).is_some())
    }

    /// Reads what a client has sent, up to a share, and begins what it asks for.
    fn read(&mut self, token: u64) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        let received = client.receive();
        while let Some(line) = self.clients.get_mut(&token).and_then(Client::take_line) {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let (id, begun) = match message::parse(&line, &self.offered) {
                Ok(request) => (Some(request.id), self.begin(request, token)),
                Err((id, words)) => (id, Err(words)),
            };
            if let (Err(words), Some(client)) = (begun, self.clients.get_mut(&token)) {
                client.tell(&message::error(id, &words));
            }
        }
        match (received, self.clients.get_mut(&token)) {
            (Received::More, Some(_)) => self.unread.push(token),
            (Received::TooLong, Some(client)) => {
                let words = format!(
                    "a line has more than {REQUEST_LINE_BYTES_MAX} bytes; accepted: one JSON \
                     object a line, no longer than that"
                );
                client.tell(&message::error(None, &words));
            }
            _ => {}
        }
        self.close_if_done(token);
    }

    /// Forgets a client that cannot be told anything, or has nothing more to be told.
    fn close_if_done(&mut self, token: u64) {
        let Some(client) = self.clients.get(&token) else {
            return;
        };
        let waits = self.under_way.iter().any(|it| it.clients.contains(&token));
        let is_done = client.has_ended && !waits && !client.has_unsent();
        // What a client that has gone sent before is read first.
        let has_gone = client.is_broken || (client.has_gone && client.has_ended);
        if is_done || has_gone {
            self.clients.remove(&token);
            for it in &mut self.under_way {
                it.clients.retain(|other| *other != token);
            }
        }
    }

    /// Begins a command, or joins one that is under way.
    fn begin(&mut self, request: Request, client: u64) -> Result<(), String> {
        if self.is_stopping {
            return Err(format!("{STOPPING}; it takes no further command"));
        }
        let id = request.id;
        if let Some(same) = self.under_way.iter_mut().find(|it| it.request.id == id) {
            if same.request != request {
                return Err(format!(
                    "id {id} is that of another command under way ({}); accepted: the same command \
                     again, or another id",
                    same.request.words()
                ));
            }
            if !same.clients.contains(&client) {
                same.clients.push(client);
            }
            return Ok(());
        }
        if self.under_way.len() >= COMMANDS_MAX {
            return Err(format!(
                "{COMMANDS_MAX} commands are under way; try again when one has ended"
            ));
        }
        let nodes = self.targets.check(&request, &self.commands)?;
        let id = CommandId(self.started);
        match &request.asked {
            Asked::Kind(kind) => {
                let numbered = (id.0..).map(CommandId).zip(&nodes);
                self.ready.extend(numbered.map(|(id, node)| CommandArrival::Command {
                    node: node.node,
                    command: Command { id, kind: *kind },
                }));
            }
            // Nothing is made for a disk that is not lost, and nothing written.
            Asked::Replace(_) => self.ready.push_back(CommandArrival::Command {
                node: nodes[0].node,
                command: Command { id, kind: CommandKind::Status },
            }),
        };
        let is_asking = matches!(request.asked, Asked::Replace(_));
        self.started += nodes.len() as u64;
        self.under_way.push(UnderWay {
            id,
            request,
            nodes,
            ended: Vec::new(),
            clients: vec![client],
            told: None,
            is_asking,
        });
        Ok(())
    }

    /// Makes a new disk in the place of one, if that is lost, and hands it to the engine.
    fn begin_replacement(&mut self, index: usize, is_lost: bool) -> Result<(), String> {
        let UnderWay { id, request, nodes, is_asking, .. } = &mut self.under_way[index];
        *is_asking = false;
        let node = &nodes[0];
        let (disk, replacer) = match (&node.disk, &mut self.commands.replacer) {
            (Some(disk), Some(replacer)) => (disk.disk, replacer),
            _ => return Err(targets::NO_REPLACER.into()),
        };
        if !is_lost {
            return Err(format!(
                "node `{0}` is not lost; accepted: a disk that is, as after `fail` of `{0}`",
                node.name
            ));
        }
        let path = match &request.asked {
            Asked::Replace(path) => path.as_deref(),
            Asked::Kind(_) => None,
        };
        let NewDisk { disk: with, first_member } = (replacer.begin)(node.node, path)?;
        let replacement = Replacement { id: *id, disk, with, first_member };
        self.ready.push_back(CommandArrival::Replace(replacement));
        Ok(())
    }

    /// The engine has something to say of a command.
    pub fn reply(&mut self, now: Instant, reply: CommandReply) {
        // One that the server no longer waits for was answered when it began to stop.
        let is_it = |it: &UnderWay| it.is_called(reply.id);
        let Some(index) = self.under_way.iter().position(is_it) else {
            return;
        };
        match reply.state {
            CommandState::Progress { done, total } => {
                let it = &mut self.under_way[index];
                let span = Duration::from_ms(PROGRESS_MS_MIN);
                if it.told.is_some_and(|told| now < told + span) {
                    return;
                }
                it.told = Some(now);
                let line = message::progress(it.request.id, done, total);
                for token in &it.clients {
                    // Whoever has not read the last line learns nothing from one more.
                    if let Some(client) = self.clients.get_mut(token)
                        && !client.has_unsent()
                    {
                        client.tell(&line);
                    }
                }
            }
            CommandState::Ended(Ok(status)) if self.under_way[index].is_asking => {
                if let Err(words) = self.begin_replacement(index, status.is_lost) {
                    let ended = self.under_way.remove(index);
                    self.answer(ended, Err(words));
                }
            }
            CommandState::Ended(Ok(status)) => {
                let it = &mut self.under_way[index];
                let node = &it.nodes[(reply.id.0 - it.id.0) as usize];
                it.ended.push(status::of_node(node, &status, &self.targets, &self.commands));
                if it.ended.len() == it.nodes.len() {
                    let ended = self.under_way.remove(index);
                    let result = self.settle(&ended, Ok(()));
                    self.answer(ended, result);
                }
            }
            CommandState::Ended(Err(error)) => {
                let ended = self.under_way.remove(index);
                let result = self.settle(&ended, Err(error));
                self.answer(ended, result);
            }
        }
    }

    /// Does what is left to do when the engine has ended a command.
    fn settle(&mut self, ended: &UnderWay, result: Result<(), CommandError>) -> Result<(), String> {
        let result = result.map_err(|error| match error {
            CommandError::NotTaken => {
                format!("{}: the node does not take it", ended.request.words())
            }
            CommandError::Needed(above) => status::refusal(&ended.nodes[0], &above, &self.targets),
            error => error.to_string(),
        });
        if let (Asked::Replace(_), Some(replacer)) =
            (&ended.request.asked, &mut self.commands.replacer)
        {
            let node = ended.nodes[0].node;
            match &result {
                Ok(()) => {
                    let label = (replacer.finish)(node)?;
                    self.ready.extend(label.map(CommandArrival::NewLabel));
                }
                Err(_) => (replacer.abort)(node),
            }
        }
        result
    }

    /// Tells everybody who waits for a command how it has ended.
    fn answer(&mut self, mut ended: UnderWay, result: Result<(), String>) {
        let id = ended.request.id;
        let line = match (result, &ended.request.node) {
            (Ok(()), Some(_)) => message::ok(id, &ended.ended[0]),
            (Ok(()), None) => {
                let nodes = std::mem::take(&mut ended.ended);
                let told = status::of_device(nodes, self.commands.figures.as_ref());
                message::ok(id, &told)
            }
            (Err(words), _) => message::error(Some(id), &words),
        };
        for token in ended.clients {
            if let Some(client) = self.clients.get_mut(&token) {
                client.tell(&line);
            }
            self.close_if_done(token);
        }
    }

    /// Takes no further command, answers those whose end is not waited for, and lets go on what was
    /// told to hang.
    pub fn begin_stop(&mut self) {
        self.is_stopping = true;
        self.listener = None;
        self.accept_again = None;
        for (disk, operations) in self.commands.faults.iter().flat_map(Faults::end_waits) {
            say(&format!(
                "node `{disk}` was told to hang; operations held back and carried out now, because \
                 {STOPPING}: {operations}"
            ));
        }
        let (replacing, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.under_way)
            .into_iter()
            .partition(|it| matches!(it.request.asked, Asked::Replace(_)));
        self.under_way = replacing;
        for it in others {
            let words = format!(
                "{STOPPING} and does not wait for {}; give the command again after the next start",
                it.request.words()
            );
            self.answer(it, Err(words));
        }
    }
}
