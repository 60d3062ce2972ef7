//! Where a remote disk is: an export of an NBD server, as a URI names it.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The port of the protocol (IANA).
const PORT: u16 = 10809;
/// What a URI looks like.
const ACCEPTED: &str = "accepted: nbd://HOST:PORT/NAME or nbd+unix:///NAME?socket=PATH, such as nbd://10.0.0.2:10809/disk-1";

/// How the server is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Over a Unix socket.
    Unix(PathBuf),
    /// Over TCP.
    Tcp {
        /// A name or an address; one of IPv6 is without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

/// An export of a server.
///
/// The URIs are those of the NetworkBlockDevice project (`doc/uri.md`), without TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteAddress {
    /// How the server is reached.
    pub transport: Transport,
    /// The name of the export; the empty name is the server's default.
    pub export: String,
}

impl RemoteAddress {
    /// The address that stands in the place of a path; `None` of a path.
    ///
    /// # Errors
    /// When it begins as a URI of a remote disk and is none.
    pub fn of(place: &Path) -> Result<Option<RemoteAddress>, String> {
        match place.to_str().filter(|text| is_remote(text)) {
            Some(text) => text.parse().map(Some),
            None => Ok(None),
        }
    }
}

/// True of a URI, which is no path.
pub fn is_remote(text: &str) -> bool {
    text.contains("://")
}

impl FromStr for RemoteAddress {
    type Err = String;

    fn from_str(uri: &str) -> Result<RemoteAddress, String> {
        let wrong = |what: &str| format!("{uri}: {what}; {ACCEPTED}");
        let (scheme, rest) = uri.split_once("://").ok_or_else(|| wrong("it is no URI"))?;
        if !matches!(scheme, "nbd" | "nbd+unix") {
            return Err(wrong("only nbd and nbd+unix are spoken, both without TLS"));
        }
        if rest.contains('#') {
            return Err(wrong("a fragment means nothing"));
        }
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        let decoded = |text: &str| decode(text).ok_or_else(|| wrong("a % without two digits"));
        let text = |text: &str| {
            String::from_utf8(decoded(text)?).map_err(|_| wrong("the name is not in UTF-8"))
        };
        let export = text(name)?;
        if export.len() > crate::nbd::handshake::NAME_BYTES_MAX {
            return Err(wrong("the name of the export is longer than 4096 bytes"));
        }
        let transport = match (scheme, query) {
            ("nbd", None) => tcp(authority).map_err(wrong)?,
            ("nbd", Some(_)) => return Err(wrong("a query is for nbd+unix alone")),
            (_, query) => {
                if !authority.is_empty() {
                    return Err(wrong("a Unix socket has no host"));
                }
                let socket = query.and_then(|query| query.strip_prefix("socket="));
                let socket = socket.filter(|it| !it.is_empty() && !it.contains('&'));
                let socket = decoded(socket.ok_or_else(|| wrong("it names no socket"))?)?;
                Transport::Unix(PathBuf::from(OsString::from_vec(socket)))
            }
        };
        Ok(RemoteAddress { transport, export })
    }
}

fn tcp(authority: &str) -> Result<Transport, &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("the address has no ]")?;
            match rest.strip_prefix(':') {
                None if !rest.is_empty() => return Err("something follows the ]"),
                port => (host, port),
            }
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() || host.contains('@') || host.contains(':') != authority.starts_with('[') {
        return Err("it names no host");
    }
    let number = |port: &str| port.parse().ok().filter(|port| *port > 0);
    let port = match port {
        Some(port) => number(port).ok_or("the port is no number from 1 to 65535")?,
        None => PORT,
    };
    Ok(Transport::Tcp { host: host.to_owned(), port })
}

/// A text with its `%xx` resolved.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    Some(decoded)
}

fn encode(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/:".contains(&byte);
    bytes.iter().try_for_each(|byte| match is_plain(*byte) {
        true => write!(f, "{}", char::from(*byte)),
        false => write!(f, "%{byte:02X}"),
    })
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.transport {
            Transport::Unix(socket) => {
                f.write_str("nbd+unix:///")?;
                encode(f, self.export.as_bytes())?;
                f.write_str("?socket=")?;
                encode(f, socket.as_os_str().as_bytes())
            }
            Transport::Tcp { host, port } => {
                match host.contains(':') {
                    true => write!(f, "nbd://[{host}]:{port}/")?,
                    false => write!(f, "nbd://{host}:{port}/")?,
                }
                encode(f, self.export.as_bytes())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_say_where_an_export_is() {
        let tcp = |host: &str, port| Transport::Tcp { host: host.into(), port };
        let unix = |path: &str| Transport::Unix(path.into());
        for (uri, transport, export, shown) in [
            ("nbd://a:1/x", tcp("a", 1), "x", "nbd://a:1/x"),
            ("nbd://a", tcp("a", 10809), "", "nbd://a:10809/"),
            ("nbd://[::1]:9/d", tcp("::1", 9), "d", "nbd://[::1]:9/d"),
            ("nbd://[::1]", tcp("::1", 10809), "", "nbd://[::1]:10809/"),
            ("nbd+unix:///?socket=/run/a", unix("/run/a"), "", "nbd+unix:///?socket=/run/a"),
            ("nbd+unix:///n%20m?socket=s", unix("s"), "n m", "nbd+unix:///n%20m?socket=s"),
        ] {
            let address: RemoteAddress = uri.parse().expect(uri);
            assert_eq!(address, RemoteAddress { transport, export: export.into() }, "{uri}");
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse(), Ok(address));
        }
    }

    #[test]
    fn what_is_no_such_uri_is_refused_with_what_would_be() {
        for uri in [
            "nbd:/x",
            "nbds://a/x",
            "nbds+unix:///x?socket=s",
            "nbd://",
            "nbd:///x",
            "nbd://a:0/x",
            "nbd://a:65536/x",
            "nbd://a:b/x",
            "nbd://[::1/x",
            "nbd://[::1]junk/x",
            "nbd://a:b:1/x",
            "nbd://[a]:1/x",
            "nbd://me@a/x",
            "nbd://a/x?socket=s",
            "nbd://a/x#y",
            "nbd://a/%4",
            "nbd://a/%ff",
            "nbd+unix:///x",
            "nbd+unix:///x?socket=",
            "nbd+unix:///x?sock=s",
            "nbd+unix:///x?socket=s&tls=1",
            "nbd+unix://a/x?socket=s",
            &format!("nbd://a/{}", "x".repeat(4097)),
        ] {
            let error = uri.parse::<RemoteAddress>().expect_err(uri);
            assert!(error.starts_with(uri) && error.ends_with(ACCEPTED), "{error}");
        }
    }

    #[test]
    fn paths_are_no_addresses() {
        for path in ["disk.img", "/dev/sda", "nbd", "nbd:/x"] {
            assert_eq!(RemoteAddress::of(Path::new(path)), Ok(None));
        }
        assert!(RemoteAddress::of(Path::new("nbds://a/x")).is_err());
    }
}
