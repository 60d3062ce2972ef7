//! Disks at other servers: a member of a stack that is an export of an NBD server.
//!
//! [`RemoteAddress`] is where one is, [`RemoteStorage`] reads and writes it one request at a time, for
//! labels and for `check`, and [`RemoteDisk`] is the disk of a stack that is served, with the [`requests`] that have no answer. A connection may break
//! and come again, and a server that was started again may have forgotten what it answered and had not
//! flushed: [`unflushed`] keeps that, so that it can be sent once more.

mod address;
mod connection;
mod disk;
mod link;
mod reconnect;
mod requests;
mod storage;
mod unflushed;

pub use address::{RemoteAddress, Transport, is_remote};
pub use disk::{RemoteBug, RemoteDisk, RemoteSettings};
pub use storage::RemoteStorage;
