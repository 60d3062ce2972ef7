//! What a ledger tells its layer.

use crate::durability::Recovery;
use crate::error::IoError;
use crate::layer::Port;
use crate::lifecycle::OpenError;
use crate::saved::SavedValue;
use alloc::boxed::Box;

/// Whether an answer may go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum When {
    /// The layer answers now. The ledger has kept no token.
    Now,
    /// The ledger gives the token back when the answer may go out.
    Later,
}

/// How far the life of a ledger has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Stage {
    /// It was not opened yet, it could not be opened, or it has gone down.
    Shut,
    /// It comes up.
    Opening,
    /// It takes records. A volatile ledger is here from the start.
    Running,
    /// It goes down, and takes records of what comes to its end.
    Closing,
    /// Its last map is being written.
    Sealing,
}

/// Whether a copy of a mirrored ledger counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyState {
    /// It has every record.
    In,
    /// It is lost, stale, foreign or recorded out, or not admitted yet.
    Out,
}

/// Something that a layer must know.
#[derive(Debug)]
pub enum LedgerEvent<T> {
    /// The members are to be formatted. The layer answers with the map of an empty device:
    /// [`begin`](super::Ledger::begin).
    Blank,
    /// Everything that recovery needs was read. The layer takes it back and answers with its map:
    /// [`begin`](super::Ledger::begin).
    Recovered(Box<Recovery>),
    /// The ledger takes records from now on.
    Opened,
    /// The layer cannot come up.
    Refused(OpenError),
    /// Records were written: [`next_written`](super::Ledger::next_written) says whom to answer.
    Written,
    /// Everything recorded and written before the token was given to the ledger is durable on this
    /// port.
    Flushed {
        /// Which port was flushed.
        port: Port,
        /// What waited for it.
        token: T,
    },
    /// More records are durable than before, so places that wait for them may be used again. It
    /// comes behind every token of the same flush.
    PlacesFree,
    /// The layer hands over the next piece of its map:
    /// [`take_piece`](super::Ledger::take_piece).
    PieceWanted,
    /// A checkpoint is durable, and there is room for records again.
    Checkpointed,
    /// The copy behind this port is in from now on, and the other copies have recorded that
    /// durably.
    CopyAdmitted(Port),
    /// The copy behind this port is out from now on, because an operation of it has failed. It is
    /// told at once, and every answer waits until the other copies have recorded it durably. The
    /// layer must not count on the port any more, not even for its data. The layer is not told of
    /// a copy that it has [lost](super::Ledger::lose_copy) itself.
    CopyOut(Port),
    /// The ledger goes down: the layer brings to an end what it has under way, and then gives its
    /// last map: [`close`](super::Ledger::close).
    Drain,
    /// The ledger has gone down, or it could not keep what it had to.
    Closed(Result<(), IoError>),
    /// Nothing can be made durable any more. The layer ends what
    /// [`next_failed`](super::Ledger::next_failed) gives it with this error.
    Failed {
        /// What went wrong first.
        error: IoError,
        /// False when it was told before. It is told again whenever the layer commits or flushes,
        /// so that whoever has begun to wait since then does not wait for ever.
        is_first: bool,
    },
}
