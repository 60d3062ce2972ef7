//! The socket that clients connect to.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen,
    socket_with, sockopt,
};
use std::fmt::Write;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Clients that have connected and are not yet accepted.
const BACKLOG: i32 = 64;
/// Bytes of a path in a socket address, its end mark aside (unix(7)).
const PATH_BYTES_MAX: usize = 107;

/// Where a server is to be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// A Unix socket, created with access for its owner alone.
    Unix(PathBuf),
    /// A loopback address; port 0 takes any that is free.
    Tcp(SocketAddr),
    /// Any address. Whoever reaches it may read and write: clients are not authenticated.
    Network(SocketAddr),
}

/// Why nobody can connect.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A server answers there.
    #[error("cannot listen on {path}: another server is listening there", path = path.display())]
    SocketTaken {
        /// The socket.
        path: PathBuf,
    },
    /// Something is there that is not ours to remove.
    #[error("cannot listen on {path}: it exists and is not a socket", path = path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The path does not fit a socket address.
    #[error(
        "cannot listen on {path}: the path has {bytes} bytes, a socket takes at most {max}",
        path = path.display(),
        max = PATH_BYTES_MAX
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// Another process has the port.
    #[error("cannot listen on {address}: the port is taken; port 0 takes any that is free")]
    PortTaken {
        /// The address.
        address: SocketAddr,
    },
    /// An address that other machines can reach.
    #[error(
        "cannot listen on {address}: only loopback addresses (127.0.0.1, ::1) are accepted, \
         because NBD clients are not authenticated; accepted: another one with --trust-network, where \
         everybody who reaches it may read and write"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// Anything else.
    #[error("cannot listen on {address}: {source}")]
    System {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A listening socket. A Unix socket is removed when it is dropped.
pub(crate) struct Listener {
    socket: Option<OwnedFd>,
    listen: Listen,
}

impl Listener {
    pub fn bind(listen: &Listen) -> Result<Listener, ListenError> {
        match listen {
            Listen::Unix(path) => bind_unix(path),
            Listen::Tcp(address) if !address.ip().is_loopback() => {
                Err(ListenError::NotLoopback { address: *address })
            }
            Listen::Tcp(address) | Listen::Network(address) => bind_tcp(*address),
        }
    }

    /// A Unix socket that only its owner may ever have connected to.
    pub fn bind_private(path: &Path) -> Result<Listener, ListenError> {
        bind_unix(path)
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("the socket is here").as_fd()
    }

    pub fn take_socket(&mut self) -> OwnedFd {
        self.socket.take().expect("the socket is taken once")
    }

    pub fn unix_path(&self) -> Option<&Path> {
        match &self.listen {
            Listen::Unix(path) => Some(path),
            Listen::Tcp(_) | Listen::Network(_) => None,
        }
    }

    /// The address as an NBD URI.
    pub fn uri(&self) -> String {
        match &self.listen {
            Listen::Unix(path) => format!("nbd+unix:///?socket={}", percent_encoded(path)),
            Listen::Tcp(address) | Listen::Network(address) => format!("nbd://{address}"),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listen::Unix(path) = &self.listen {
            // Somebody may have removed it already, which is what we want.
            let _ = fs::remove_file(path);
        }
    }
}

fn bind_unix(path: &Path) -> Result<Listener, ListenError> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        let path = path.to_owned();
        return Err(ListenError::PathTooLong { path, bytes });
    }
    let failed = |errno: Errno| ListenError::System {
        address: path.display().to_string(),
        source: errno.into(),
    };
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    remove_dead_socket(path, &address)?;
    let socket = new_socket(AddressFamily::UNIX).map_err(failed)?;
    // The file has the mode of the socket from its first moment, so nobody else can connect ever.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    bind(&socket, &address).map_err(failed)?;
    listen(&socket, BACKLOG).map_err(failed)?;
    Ok(Listener { socket: Some(socket), listen: Listen::Unix(path.to_owned()) })
}

/// A server that was killed leaves its socket behind, and nobody answers there.
fn remove_dead_socket(path: &Path, address: &SocketAddrUnix) -> Result<(), ListenError> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let path = path.to_owned();
    if !metadata.file_type().is_socket() {
        return Err(ListenError::NotASocket { path });
    }
    let probe = new_socket(AddressFamily::UNIX).and_then(|socket| connect(&socket, address));
    if probe != Err(Errno::CONNREFUSED) {
        return Err(ListenError::SocketTaken { path });
    }
    fs::remove_file(&path)
        .map_err(|source| ListenError::System { address: path.display().to_string(), source })
}

fn bind_tcp(address: SocketAddr) -> Result<Listener, ListenError> {
    let failed = |errno: Errno| match errno {
        Errno::ADDRINUSE => ListenError::PortTaken { address },
        errno => ListenError::System { address: address.to_string(), source: errno.into() },
    };
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = new_socket(family).map_err(failed)?;
    // Connections of a server that has just ended do not keep its port.
    sockopt::set_socket_reuseaddr(&socket, true).map_err(failed)?;
    bind(&socket, &address).map_err(failed)?;
    listen(&socket, BACKLOG).map_err(failed)?;
    let bound = getsockname(&socket).map_err(failed)?;
    let bound = SocketAddr::try_from(bound).map_err(failed)?;
    Ok(Listener { socket: Some(socket), listen: Listen::Tcp(bound) })
}

fn new_socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::STREAM, flags, None)
}

/// The path as a URI spells it (RFC 3986, section 2.3).
fn percent_encoded(path: &Path) -> String {
    let mut encoded = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(*byte));
            }
            byte => write!(encoded, "%{byte:02X}").expect("a string takes anything"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri() {
        let listener = Listener {
            socket: None,
            listen: Listen::Tcp("127.0.0.1:10809".parse().expect("an address")),
        };
        assert_eq!(listener.uri(), "nbd://127.0.0.1:10809");
        assert_eq!(percent_encoded(Path::new("/a b/c+d.sock")), "/a%20b/c%2Bd.sock");
    }
}
