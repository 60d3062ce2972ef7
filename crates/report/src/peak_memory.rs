//! How much memory the process has held at most, and whether that is the memory of one run.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest resident set of this process so far, in bytes; none where the system does not say.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// Those who have used the memory of this process so far. The system tells the peak of the process alone, so it
/// is the peak of a run only where there is no other one.
static PROCESS: Users = Users(AtomicUsize::new(0));

struct Users(AtomicUsize);

impl Users {
    /// Counts one more, for as long as the process lives: memory that was freed is in the peak. True for the first.
    fn enter(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) == 0
    }

    fn is_one(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

/// One of those who use the memory of the process: a run, a look at a trace, or a program that is not ours.
#[derive(Debug)]
pub struct MemoryUser {
    is_first: bool,
}

impl MemoryUser {
    /// Begins to use memory.
    pub fn enter() -> MemoryUser {
        MemoryUser { is_first: PROCESS.enter() }
    }

    /// The largest resident set of the process in bytes, where nobody else has used its memory; none where
    /// somebody has, before this user or beside it, and where the system does not say.
    pub fn peak_rss_bytes(&self) -> Option<u64> {
        (self.is_first && PROCESS.is_one()).then(peak_rss_bytes).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_that_of_the_first_user_until_the_second_comes() {
        let users = Users(AtomicUsize::new(0));
        assert!(users.enter() && users.is_one());
        assert!(!users.enter() && !users.is_one());
    }

    #[test]
    fn the_process_has_held_what_it_has_written_to() {
        let before = peak_rss_bytes().expect("a system that says");
        // Without the box the compiler leaves out memory that nobody reads.
        let held = std::hint::black_box(vec![1u8; before as usize + (8 << 20)]);
        assert!(peak_rss_bytes() >= Some(held.len() as u64));
    }
}
