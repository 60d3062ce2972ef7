//! Somebody who hears how much of a trace was read.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

/// Hears of bytes of the stored file when they are read, from the thread that reads.
#[derive(Clone)]
pub struct ReadWatch(Arc<dyn Fn(u64) + Send + Sync>);

impl ReadWatch {
    /// Calls this with the number of bytes of each piece.
    pub fn new(hears: impl Fn(u64) + Send + Sync + 'static) -> ReadWatch {
        ReadWatch(Arc::new(hears))
    }

    /// A file of which it hears.
    pub fn watched<R: Read>(&self, raw: R) -> impl Read + use<R> {
        Watched { raw, watch: self.clone() }
    }
}

impl fmt::Debug for ReadWatch {
    /// The same for all: who watches changes nothing of what is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadWatch")
    }
}

/// A file that somebody watches.
struct Watched<R> {
    raw: R,
    watch: ReadWatch,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(to)?;
        (self.watch.0)(count as u64);
        Ok(count)
    }
}
