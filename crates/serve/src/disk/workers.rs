//! Threads for the calls that would block.

use super::bounce::Bounce;
use crate::clock::Waker;
use crate::lockable_file::LockableFile;
use crate::signals::say;
use imbrex_core::units::BLOCK_BYTES;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::process;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Threads of a disk whose writes go to the page cache: reads that wait for the medium at once, and
/// a synchronisation beside them.
const THREADS_BUFFERED: usize = 4;
/// Threads of a disk without page cache, where every operation waits for the medium.
const THREADS_DIRECT: usize = 16;
/// Bytes of zeroes written in one call.
const ZEROES: usize = 1 << 20;
/// Exit status of a program that panics.
const PANIC_EXIT_STATUS: i32 = 101;

/// What is to be done.
pub(super) enum Task {
    /// Fill the bytes from the offset.
    Read { offset: u64, bytes: Bounce },
    /// Write the bytes to the offset.
    Write { offset: u64, bytes: Bounce },
    /// Zero the bytes by the shortest way there is.
    Zero { offset: u64, length: u64, may_unmap: bool },
    /// Write zeroes, where the file system has no shorter way.
    WriteZeroes { offset: u64, length: u64 },
    /// Make everything written so far durable.
    Synchronise,
}

/// A task that is done, and what it was for.
pub(super) struct Done<K> {
    pub key: K,
    /// The bytes of a read or write; empty for others.
    pub bytes: Bounce,
    pub result: Result<(), Errno>,
}

/// A few threads over one file. They start with the first task: many files never need them.
pub(super) struct Workers<K> {
    file: Arc<LockableFile>,
    direct: bool,
    waker: Waker,
    tasks: Option<Sender<(K, Task)>>,
    results: (Sender<Done<K>>, Receiver<Done<K>>),
    threads: Vec<JoinHandle<()>>,
    outstanding: usize,
}

impl<K: Send + 'static> Workers<K> {
    /// Threads for a file that was opened with `O_DIRECT` or without.
    pub fn new(file: Arc<LockableFile>, direct: bool, waker: Waker) -> Workers<K> {
        Workers {
            file,
            direct,
            waker,
            tasks: None,
            results: channel(),
            threads: Vec::new(),
            outstanding: 0,
        }
    }

    /// Hands out a task.
    pub fn start(&mut self, key: K, task: Task) {
        self.outstanding += 1;
        if self.tasks.is_none() {
            self.tasks = Some(self.start_threads());
        }
        if let Some(tasks) = &self.tasks {
            tasks.send((key, task)).expect("the threads hold the queue");
        }
    }

    /// A task that has ended.
    #[inline]
    pub fn poll(&mut self) -> Option<Done<K>> {
        if self.outstanding == 0 {
            return None;
        }
        let done = self.results.1.try_recv().ok()?;
        self.outstanding -= 1;
        Some(done)
    }

    fn start_threads(&mut self) -> Sender<(K, Task)> {
        let (tasks, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let threads = if self.direct { THREADS_DIRECT } else { THREADS_BUFFERED };
        for _ in 0..threads {
            let (file, waker) = (Arc::clone(&self.file), self.waker.clone());
            let (queue, results) = (Arc::clone(&queue), self.results.0.clone());
            self.threads.push(thread::spawn(move || {
                let _end = EndOfProcess;
                while let Some((key, task)) = next_task(&queue) {
                    let done = carry_out(&file, key, task);
                    if results.send(done).is_err() {
                        return;
                    }
                    waker.wake();
                }
            }));
        }
        tasks
    }
}

/// Ends the process when a thread that holds it panics. The task of the thread is lost, so what
/// waits for it would wait for ever; after an end recovery does at the next start what is to be done.
struct EndOfProcess;

impl Drop for EndOfProcess {
    fn drop(&mut self) {
        if thread::panicking() {
            say(
                "a thread of a disk has panicked: the server ends as in a crash, and its image is recovered when it is served next",
            );
            process::exit(PANIC_EXIT_STATUS);
        }
    }
}

impl<K> Drop for Workers<K> {
    fn drop(&mut self) {
        self.tasks = None;
        if self.outstanding > 0 {
            // The disk is lost, and may hang: nobody waits for it. The threads end with what they do.
            return;
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

fn next_task<K>(queue: &Mutex<Receiver<(K, Task)>>) -> Option<(K, Task)> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn carry_out<K>(file: &File, key: K, task: Task) -> Done<K> {
    let (result, bytes) = match task {
        Task::Read { offset, mut bytes } => (read_at(file, offset, bytes.bytes_mut()), bytes),
        Task::Write { offset, bytes } => (write_at(file, offset, bytes.bytes()), bytes),
        Task::Zero { offset, length, may_unmap } => {
            (zero_anyhow(file, offset, length, may_unmap), Bounce::default())
        }
        Task::WriteZeroes { offset, length } => {
            (write_zeroes(file, offset, length), Bounce::default())
        }
        Task::Synchronise => (rustix::fs::fdatasync(file), Bounce::default()),
    };
    Done { key, bytes, result }
}

/// Reads until the bytes are full. The file is at least as long as the disk, so its end means
/// that somebody has cut it.
pub(super) fn read_at(file: &File, offset: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(file, &mut bytes[filled..], offset + filled as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => filled = advanced(filled, count, bytes.len()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Writes all of the bytes, however little the system takes at once.
pub(super) fn write_at(file: &File, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::pwrite(file, &bytes[written..], offset + written as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => written = advanced(written, count, bytes.len()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Where to go on after `count` more bytes: at a whole block where there is one, because direct I/O
/// starts nowhere else.
fn advanced(at: usize, count: usize, length: usize) -> usize {
    let reached = at + count;
    let block = reached - reached % BLOCK_BYTES as usize;
    if reached < length && block > at { block } else { reached }
}

/// Zeroes a range by the shortest way there is that leaves it allocated, or not, as wanted.
/// `false`: the file system has none, and the zeroes must be written.
pub(super) fn zero_at(
    file: &File,
    offset: u64,
    length: u64,
    may_unmap: bool,
) -> Result<bool, Errno> {
    let how = if may_unmap { FallocateFlags::PUNCH_HOLE } else { FallocateFlags::ZERO_RANGE };
    loop {
        match rustix::fs::fallocate(file, how | FallocateFlags::KEEP_SIZE, offset, length) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
}

/// Zeroes a range by the shortest way there is, or writes zeroes.
pub(super) fn zero_anyhow(
    file: &File,
    offset: u64,
    length: u64,
    may_unmap: bool,
) -> Result<(), Errno> {
    match zero_at(file, offset, length, may_unmap)? {
        true => Ok(()),
        false => write_zeroes(file, offset, length),
    }
}

/// Writes zeroes to a range.
fn write_zeroes(file: &File, mut offset: u64, length: u64) -> Result<(), Errno> {
    let mut zeroes = Bounce::new(ZEROES.min(length as usize));
    zeroes.bytes_mut().fill(0);
    let end = offset + length;
    while offset < end {
        let count = (end - offset).min(zeroes.bytes().len() as u64);
        write_at(file, offset, &zeroes.bytes()[..count as usize])?;
        offset += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WallClock;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Set for the process in which a thread of a disk panics.
    const IN_CHILD: &str = "IMBREX_TEST_WORKER_PANICS";
    const TEST: &str = "disk::workers::tests::a_panic_of_a_thread_ends_the_process_at_once";
    /// How long the child waits for a task that is lost; far longer than it takes to end at once.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn lose_a_task() {
        let (_clock, waker) = WallClock::alone().expect("an epoll instance");
        let file = Arc::new(LockableFile::from(File::open("/dev/null").expect("a file")));
        let mut workers = Workers::new(file, false, waker);
        // The end of this range is no number.
        let task = Task::WriteZeroes { offset: u64::MAX, length: 1 };
        workers.start(1, task);
        let since = Instant::now();
        while workers.poll().is_none() && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_panic_of_a_thread_ends_the_process_at_once() {
        if std::env::var_os(IN_CHILD).is_some() {
            return lose_a_task();
        }
        let since = Instant::now();
        let output = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", TEST, "--nocapture"])
            .env(IN_CHILD, "1")
            .output()
            .expect("this program");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(PANIC_EXIT_STATUS), "{said}");
        assert!(since.elapsed() < PATIENCE, "not at once: {said}");
        assert!(said.contains("a thread of a disk has panicked"), "{said}");
        assert!(said.contains("attempt to add with overflow"), "{said}");
    }
}
