//! Addresses that are taken, dead or not acceptable.

use imbrex_serve::listener::Listen;
use imbrex_serve::server::Server;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

fn message(listen: &Listen) -> String {
    Server::bind(listen).err().expect("an error").to_string()
}

fn unix(path: &Path) -> Listen {
    Listen::Unix(path.to_owned())
}

#[test]
fn a_socket_in_use_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let first = Server::bind(&unix(&path)).expect("a free path");
    let expected =
        format!("cannot listen on {}: another server is listening there", path.display());
    assert_eq!(message(&unix(&path)), expected);
    let mode = fs::metadata(&path).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "for its owner alone");
    drop(first);
    assert!(!path.exists(), "the socket is removed at the end");
}

#[test]
fn a_socket_of_a_dead_server_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists(), "std leaves it behind, as a killed server does");
    let server = Server::bind(&unix(&path)).expect("nobody answers there");
    let metadata = fs::symlink_metadata(&path).expect("the new socket");
    assert!(metadata.file_type().is_socket());
    let uri = format!("nbd+unix:///?socket={}", path.display());
    assert_eq!(server.uri(), uri);
}

#[test]
fn other_files_are_never_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("precious");
    fs::write(&path, "data").expect("a file");
    let expected = format!("cannot listen on {}: it exists and is not a socket", path.display());
    assert_eq!(message(&unix(&path)), expected);
    assert_eq!(fs::read_to_string(&path).expect("the file"), "data");
}

#[test]
fn a_path_that_is_too_long_is_said_to_be() {
    let path = Path::new("/tmp").join("x".repeat(200));
    let expected = format!(
        "cannot listen on {}: the path has 205 bytes, a socket takes at most 107",
        path.display()
    );
    assert_eq!(message(&unix(&path)), expected);
    let missing = Path::new("/nonexistent-directory/s");
    assert_eq!(
        message(&unix(missing)),
        "cannot listen on /nonexistent-directory/s: No such file or directory (os error 2)"
    );
}

#[test]
fn a_port_in_use_is_said_to_be() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let expected =
        format!("cannot listen on {address}: the port is taken; port 0 takes any that is free");
    assert_eq!(message(&Listen::Tcp(address)), expected);
}

#[test]
fn only_loopback_addresses_are_accepted() {
    for (address, text) in [("0.0.0.0:10809", "0.0.0.0:10809"), ("[::]:0", "[::]:0")] {
        let listen = Listen::Tcp(address.parse().expect("an address"));
        let expected = format!(
            "cannot listen on {text}: only loopback addresses (127.0.0.1, ::1) are accepted, \
             because NBD clients are not authenticated; accepted: another one with --trust-network, where \
         everybody who reaches it may read and write"
        );
        assert_eq!(message(&listen), expected);
    }
    let server = Server::bind(&Listen::Tcp("127.0.0.1:0".parse().expect("an address")));
    let uri = server.expect("any free port").uri();
    let port = uri.strip_prefix("nbd://127.0.0.1:").expect("the address");
    assert_ne!(port, "0", "the port that was found");
}
