//! Addresses, counts and times as types of their own, so that a block address is never added to a
//! byte count by accident.

use crate::saved::SavedValue;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Bytes in one block, the unit of every address and every mapping (4 KiB).
pub const BLOCK_BYTES: u64 = 4096;

/// The address of a block, counted from the start of the device it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SavedValue)]
pub struct Lba(pub u64);

/// A number of blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SavedValue)]
pub struct BlockCount(pub u64);

/// A point in time, in nanoseconds since the start of the run. Only the engine knows where it
/// comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SavedValue)]
pub struct Instant(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SavedValue)]
pub struct Duration(pub u64);

impl Lba {
    /// The address `self - earlier` blocks after `earlier`.
    ///
    /// Panics when `earlier` is the higher address.
    #[inline]
    pub fn offset_from(self, earlier: Lba) -> u64 {
        self.0 - earlier.0
    }
}

impl BlockCount {
    /// No blocks.
    pub const ZERO: BlockCount = BlockCount(0);

    /// The blocks in a size of `bytes`, rounded down.
    #[inline]
    pub const fn from_bytes_floor(bytes: u64) -> BlockCount {
        BlockCount(bytes / BLOCK_BYTES)
    }

    /// The size in bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.0 * BLOCK_BYTES
    }
}

impl Instant {
    /// The start of the run.
    pub const ZERO: Instant = Instant(0);

    /// The time from `earlier` to `self`; zero when `earlier` is the later one.
    #[inline]
    pub fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// A span of whole microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Duration {
        Duration(us * 1_000)
    }

    /// A span of whole milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Duration {
        Duration(ms * 1_000_000)
    }

    /// The span in seconds, for reports only.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<BlockCount> for Lba {
    type Output = Lba;
    #[inline]
    fn add(self, count: BlockCount) -> Lba {
        Lba(self.0 + count.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn add(self, span: Duration) -> Instant {
        Instant(self.0 + span.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl fmt::Debug for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lba {}", self.0)
    }
}

impl fmt::Debug for BlockCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks", self.0)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns", self.0)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}
