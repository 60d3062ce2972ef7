//! Commands to a node of a running stack: what a person, a script or an experiment asks of it beside
//! requests.
//!
//! A command arrives through the [`Frontend`](crate::engine::Frontend). It comes after all requests
//! that its node has received and before all later ones. It is answered when what it has done is
//! durable. To repeat one is harmless.

use crate::array::status::ArrayStatus;
use crate::counters::Counts;
use crate::extent::Extent;
use crate::idle_control::ControlStatus;
use crate::node::NodeId;
use crate::saved::SavedValue;
use crate::units::Duration;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Names a command while it is under way. Whoever gives the command chooses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, SavedValue)]
pub struct CommandId(pub u64);

/// A command to a layer or a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Comes back with every answer.
    pub id: CommandId,
    /// What to do.
    pub kind: CommandKind,
}

/// How fast work of a command may go, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Bytes of the device that are worked through in a second.
    pub bytes_per_s: u64,
}

/// What a node can be asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandKind {
    /// Any node: say how it is.
    Status,
    /// A disk: it counts as lost from now on, unless an array would lose data with it.
    TakeOut,
    /// A disk: it counts as lost from now on, whatever is lost with it.
    Fail,
    /// An array: bring what a replaced member lacks back onto it. Without a rate as fast as it goes.
    Rebuild(Option<Rate>),
    /// An array: read everything and compare it. Without a rate as fast as it goes.
    Scrub(Option<Rate>),
    /// A controller: hold requests as its policy says, or let all of them pass.
    Switch {
        /// It holds them.
        is_on: bool,
    },
    /// A disk that is served: break it in a way.
    Fault(Fault),
}

/// How a disk can be broken, for those who test what stands on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Reads that touch the blocks fail with a medium error; all reads where there is no extent.
    FailReads(Option<Extent>),
    /// Writes that touch the blocks fail with a medium error; all writes where there is no extent.
    FailWrites(Option<Extent>),
    /// Every operation takes so much longer.
    Slow(Duration),
    /// Operations are taken and not answered.
    Hang,
    /// What reads of the blocks return is changed.
    Corrupt(Extent),
    /// All of the above end. What hangs is carried out.
    None,
}

/// How a node is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeStatus {
    /// It is lost to the nodes above.
    pub is_lost: bool,
    /// What else there is to know, by name.
    pub facts: Vec<(&'static str, u64)>,
    /// What has been counted there; `None` where nobody has asked for the status.
    pub counts: Option<Box<Counts>>,
    /// What becomes of the nodes above when it is lost, from the bottom up.
    pub above: Vec<(NodeId, Without)>,
    /// How the array is that the node is.
    pub array: Option<ArrayStatus>,
    /// How the controller is that the node is.
    pub controller: Option<Box<ControlStatus>>,
}

/// What becomes of a node without one of those below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Without {
    /// It is lost too.
    Lost,
    /// It goes on; in words, what is missing then.
    GoesOn(&'static str),
}

impl Without {
    /// Of a node whose store of copies is lost.
    pub const NO_COPIES: Without =
        Without::GoesOn("it reads from the disk what it would have had a copy of");
}

/// Why a command came to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandError {
    /// The node takes no such command.
    NotTaken,
    /// The node is not in a state for it; the words say why and what would help.
    NotNow(String),
    /// What it has done cannot be made durable.
    Failed(String),
    /// An array would lose data; what would become of the nodes above, from the bottom up.
    Needed(Vec<(NodeId, Without)>),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::NotTaken => f.write_str("the node takes no such command"),
            CommandError::Needed(_) => f.write_str("an array would lose data without the disk"),
            CommandError::NotNow(words) | CommandError::Failed(words) => f.write_str(words),
        }
    }
}

/// How far a command has come.
#[derive(Clone, PartialEq, Debug)]
pub enum CommandState {
    /// It goes on.
    Progress {
        /// Blocks worked through.
        done: u64,
        /// Blocks there are.
        total: u64,
    },
    /// It is over. Nothing more is said of it.
    Ended(Result<NodeStatus, CommandError>),
}

/// What is said of a command.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandReply {
    /// Which command.
    pub id: CommandId,
    /// How far it has come.
    pub state: CommandState,
}

/// What a layer makes of a new disk below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnReplacement {
    /// It cannot use one while it runs.
    Refuses,
    /// The node above decides: the layer keeps nothing of its own on the disk.
    PassesOn,
    /// It takes the disk in.
    Takes,
}
