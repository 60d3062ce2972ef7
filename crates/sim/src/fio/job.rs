//! A job of fio, as plain data.

use imbrex_core::units::{BLOCK_BYTES, Duration};

/// Requests of all jobs that run together, in flight at once at most.
pub const IN_FLIGHT_MAX: u64 = 1 << 16;
/// Jobs that one description may be multiplied into.
pub const CLONES_MAX: u32 = 4096;
/// The largest request: 1 GiB.
pub const REQUEST_BYTES_MAX: u64 = 1 << 30;
/// The longest span a job may state: 10 years.
pub const SPAN_NS_MAX: u64 = 10 * 365 * 24 * 3600 * 1_000_000_000;

/// Which way a request moves data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
    /// Gives blocks up.
    Trim,
}

impl Direction {
    /// Every direction, in fio's order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// The word in fio's output.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// Which requests a job makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// One direction alone.
    Only(Direction),
    /// Reads, this many percent of the requests, and writes.
    ReadWrite {
        /// 0 to 100.
        read_percent: u32,
    },
}

impl Mix {
    /// True when the job may make requests in the direction.
    pub fn has(self, direction: Direction) -> bool {
        match self {
            Mix::Only(only) => only == direction,
            Mix::ReadWrite { .. } => direction != Direction::Trim,
        }
    }
}

/// How a request follows the one before it, unless a fresh offset is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequencer {
    /// At the end of the one before.
    Sequential,
    /// At the same offset.
    Identical,
}

/// Where the requests of a job go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Access {
    /// One after another, each direction for itself; after each request `skip_bytes` are left out
    /// (fio's `rw=read:8k`; negative goes back).
    Sequential {
        /// A multiple of the block.
        skip_bytes: i64,
    },
    /// Drawn at random, with a fresh draw for every `per_draw` requests (`rw=randread:8`).
    Random {
        /// 1 for ordinary random access.
        per_draw: u64,
        /// What the others do.
        sequencer: Sequencer,
    },
}

/// How long the requests of one direction are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockSizes {
    /// All of one length.
    Fixed(u64),
    /// Uniform from `min` on for `max` bytes, rounded down to a multiple of `min`, and `max` for
    /// what is longer. When `max` is a multiple of `min` the multiples are equally frequent.
    Range {
        /// Shortest, bytes.
        min: u64,
        /// Longest, bytes.
        max: u64,
    },
    /// Lengths with weights (`bssplit`), rounded down to a multiple of the shortest.
    Split(Vec<(u64, u32)>),
}

impl BlockSizes {
    /// The shortest request, bytes. Offsets are multiples of it.
    pub fn min(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split(sizes) => sizes.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0),
        }
    }

    /// The longest request, bytes.
    pub fn max(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { max, .. } => *max,
            BlockSizes::Split(sizes) => sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }
}

/// How random offsets are distributed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// Every offset alike.
    Uniform,
    /// The offset of rank r with probability proportional to r^-theta; the ranks are scattered over
    /// the region.
    Zipf {
        /// Above 0, not 1.
        theta: f64,
    },
}

/// A pause after every few requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Think {
    /// How long, from the completion of what is in flight.
    pub pause: Duration,
    /// After how many requests (`thinktime_blocks`).
    pub every: u64,
    /// Requests count when they are issued (`thinktime_blocks_type=issue`). Otherwise they count
    /// when fio takes their answers, which it does when the queue is full.
    pub counts_issued: bool,
}

/// Parts of the region that are used, parts that are left out (`zonemode=strided`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stride {
    /// Bytes moved in a zone before the job goes on to the next (`zonesize`).
    pub zone_bytes: u64,
    /// Bytes from the start of a zone that requests may touch (`zonerange`).
    pub range_bytes: u64,
    /// Bytes left out between two ranges (`zoneskip`).
    pub skip_bytes: u64,
}

/// Requests go where a zoned device takes them (`zonemode=zbd`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ZonedAccess {
    /// Size of a zone as the job states it (`zonesize`); must be that of the device.
    pub zone_bytes: Option<u64>,
    /// Bytes that a sequential job leaves out behind each zone it is done with (`zoneskip`).
    pub skip_bytes: u64,
    /// Zones that are written at once (`max_open_zones`); the limit of the device when absent.
    pub open_max: Option<u32>,
    /// Reads go past the write pointers too (`read_beyond_wp`).
    pub read_beyond_pointer: bool,
    /// Share of the region that has to be written before `reset_frequency` counts
    /// (`zone_reset_threshold`).
    pub reset_threshold: f64,
    /// Resets for each write from then on (`zone_reset_frequency`).
    pub reset_frequency: f64,
}

impl Default for ZonedAccess {
    /// As fio: reads stay within what was written, and only full zones are reset.
    fn default() -> ZonedAccess {
        ZonedAccess {
            zone_bytes: None,
            skip_bytes: 0,
            open_max: None,
            read_beyond_pointer: false,
            reset_threshold: 1.0,
            reset_frequency: 0.0,
        }
    }
}

/// How fast a direction may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateLimit {
    /// As fast as the device.
    None,
    /// Bytes a second.
    Bytes(u64),
    /// Requests a second.
    Requests(u64),
}

/// A job: one or more closed loops over one region of the device. Every field is fio's option of
/// the same meaning; defaults are fio's.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Its name in results.
    pub name: String,
    /// Directions.
    pub mix: Mix,
    /// Offsets.
    pub access: Access,
    /// Lengths, by [`Direction`].
    pub block_sizes: [BlockSizes; 3],
    /// Start of the region.
    pub offset_bytes: u64,
    /// By how much the region of each further clone starts later.
    pub offset_increment_bytes: u64,
    /// Length of the region; to the end of the device when absent.
    pub size_bytes: Option<u64>,
    /// Bytes to move; the size of the region when absent.
    pub io_bytes: Option<u64>,
    /// How often that is done.
    pub loops: u64,
    /// Requests to make at most.
    pub number_ios: Option<u64>,
    /// Requests in flight.
    pub iodepth: u32,
    /// Clones.
    pub numjobs: u32,
    /// A flush after every so many writes; 0 for none. `fdatasync` is the same on a device.
    pub fsync: u64,
    /// A flush when the job has done its work.
    pub end_fsync: bool,
    /// A write counts as done when a flush after it is done (`sync=sync`).
    pub sync_writes: bool,
    /// The longest time after the ramp.
    pub runtime: Option<Duration>,
    /// Start over when the region is done, until the runtime is over.
    pub time_based: bool,
    /// Time at the start that is not measured.
    pub ramp_time: Duration,
    /// Idle time before the job starts.
    pub start_delay: Duration,
    /// Pauses.
    pub think: Option<Think>,
    /// Limits, by [`Direction`].
    pub rate: [RateLimit; 3],
    /// Requests under a rate limit come at random instants, as a Poisson process.
    pub rate_poisson: bool,
    /// Waits until every job before it is done.
    pub stonewall: bool,
    /// Begins a new group in results.
    pub new_group: bool,
    /// Results are one entry a group.
    pub group_reporting: bool,
    /// Its end ends all jobs that run with it.
    pub exit_all: bool,
    /// The random choices depend on `rand_seed` and on the place of the job among those given alone:
    /// a further run draws the same again. Otherwise they depend on the seed of the session and on
    /// the number of the run as well.
    pub rand_repeat: bool,
    /// Seed of its random choices.
    pub rand_seed: Option<u64>,
    /// Each block of the region once before any a second time.
    pub random_map: bool,
    /// Distribution of offsets.
    pub distribution: Distribution,
    /// How many percent of the requests of a random job are random; the others are sequential.
    pub percentage_random: u32,
    /// Parts that are left out.
    pub stride: Option<Stride>,
    /// By the rules of the zones of the device.
    pub zones: Option<ZonedAccess>,
    /// Keep the latency of every request.
    pub samples: bool,
}

impl Job {
    /// Sequential reads of 4 KiB, one at a time, over the whole device: fio's defaults.
    pub fn new(name: impl Into<String>) -> Job {
        Job {
            name: name.into(),
            mix: Mix::Only(Direction::Read),
            access: Access::Sequential { skip_bytes: 0 },
            block_sizes: [const { BlockSizes::Fixed(4096) }; 3],
            offset_bytes: 0,
            offset_increment_bytes: 0,
            size_bytes: None,
            io_bytes: None,
            loops: 1,
            number_ios: None,
            iodepth: 1,
            numjobs: 1,
            fsync: 0,
            end_fsync: false,
            sync_writes: false,
            runtime: None,
            time_based: false,
            ramp_time: Duration::ZERO,
            start_delay: Duration::ZERO,
            think: None,
            rate: [RateLimit::None; 3],
            rate_poisson: false,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            exit_all: false,
            rand_repeat: true,
            rand_seed: None,
            random_map: true,
            distribution: Distribution::Uniform,
            percentage_random: 100,
            stride: None,
            zones: None,
            samples: false,
        }
    }

    /// A job of one direction with requests of one length, at random or in sequence.
    pub fn simple(name: &str, direction: Direction, random: bool, block_bytes: u64) -> Job {
        let mut job = Job::new(name);
        job.mix = Mix::Only(direction);
        job.block_sizes = std::array::from_fn(|_| BlockSizes::Fixed(block_bytes));
        if random {
            job.access = Access::RANDOM;
        }
        job
    }

    /// The region of a clone: its first byte and its length. `None` when it does not fit the device.
    pub fn region(&self, clone: u32, device_bytes: u64) -> Option<(u64, u64)> {
        let shift = self.offset_increment_bytes.checked_mul(u64::from(clone))?;
        let start = self.offset_bytes.checked_add(shift)?;
        let room = device_bytes.checked_sub(start)?;
        let length = self.size_bytes.unwrap_or(room);
        (length <= room && length > 0).then_some((start, length))
    }

    /// The shortest request of any direction the job uses.
    pub fn smallest_block(&self) -> u64 {
        let used = Direction::ALL.into_iter().filter(|d| self.mix.has(*d));
        used.map(|d| self.block_sizes[d as usize].min()).min().unwrap_or(0)
    }

    /// True when a request of the job may cover a part of a block of the device, which counts there
    /// as the whole block.
    pub fn has_partial_blocks(&self) -> bool {
        let used = Direction::ALL.into_iter().filter(|d| self.mix.has(*d));
        let partial = |bytes: u64| !bytes.is_multiple_of(BLOCK_BYTES);
        partial(self.offset_bytes)
            || partial(self.offset_increment_bytes)
            || used.map(|d| &self.block_sizes[d as usize]).any(|sizes| match sizes {
                BlockSizes::Fixed(bytes) => partial(*bytes),
                BlockSizes::Range { min, max } => partial(*min) || partial(*max),
                BlockSizes::Split(sizes) => sizes.iter().any(|(bytes, _)| partial(*bytes)),
            })
    }
}

impl Access {
    /// A fresh draw for every request.
    pub const RANDOM: Access = Access::Random { per_draw: 1, sequencer: Sequencer::Sequential };
}

/// Why a job cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("job `{job}`: {option}={value}: accepted: {accepted}")]
pub struct JobError {
    /// The job.
    pub job: String,
    /// The option of fio.
    pub option: &'static str,
    /// Its value.
    pub value: String,
    /// What would be accepted.
    pub accepted: String,
}
