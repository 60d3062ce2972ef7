//! What a caller may say about a trace before it is read.

use std::ops::RangeInclusive;

use super::column_map::TimeUnit;
use super::error::TraceError;
use super::fio_reader::FioWait;
use super::read_watch::ReadWatch;
use super::stop_reading::StopReading;
use super::subsecond::Subsecond;
use super::web_log::HttpWrites;

/// Which moment of a request a trace of the block layer is read at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlkEvent {
    /// `Q`: the request enters the queue, as the file system or the program asked for it.
    #[default]
    Queue,
    /// `D`: the request goes to the driver, after merging and scheduling.
    Issue,
    /// `C`: the request is complete.
    Complete,
}

impl BlkEvent {
    const ALL: [Self; 3] = [Self::Queue, Self::Issue, Self::Complete];

    /// Name on the command line and in `blkparse`.
    pub fn letter(self) -> char {
        match self {
            Self::Queue => 'Q',
            Self::Issue => 'D',
            Self::Complete => 'C',
        }
    }
}

impl std::str::FromStr for BlkEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |event: &Self| text.chars().eq([event.letter()]);
        let event = Self::ALL.into_iter().find(named);
        event.ok_or_else(|| format!("unknown event {text:?}; accepted: Q, D, C"))
    }
}

/// What the object ids of a libCacheSim trace are. Ids that are hashes have no place on a disk, so they are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectId {
    /// The address of the first byte.
    Bytes,
    /// The number of a block of 4 KiB.
    Blocks,
}

impl ObjectId {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Blocks => "blocks",
        }
    }
}

impl std::str::FromStr for ObjectId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ids = [Self::Bytes, Self::Blocks];
        let found = ids.into_iter().find(|id| id.name() == text);
        found.ok_or_else(|| match text {
            "hash" => "hash: such ids have no place on a disk; accepted: bytes, blocks".to_owned(),
            _ => format!("unknown kind of id {text:?}; accepted: bytes, blocks"),
        })
    }
}

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// MSR Cambridge CSV.
    Msr,
    /// SPC, as in the UMass traces.
    Spc,
    /// The CloudPhysics traces as libCacheSim prints them: `version,time,op,size,lbn`.
    LibCacheSim,
    /// Delimited columns with a column map.
    Csv,
    /// DiskSim ASCII, also as written by MQSim and SSDsim.
    DiskSim,
    /// `.lis` page references of the ARC paper.
    Arc,
    /// Alibaba block traces of 2020.
    Alibaba,
    /// Tencent CBS traces of 2018.
    Tencent,
    /// SYSTOR '17 traces.
    Systor,
    /// FIU traces, of srcmap and I/O deduplication.
    Fiu,
    /// fio iolog of version 2 or 3.
    Fio,
    /// Log of a web server in common log format, turned into block requests by a recipe.
    Clf,
    /// What blkparse prints by default.
    Blkparse,
    /// fio iolog of version 1; it has to be asked for.
    FioV1,
    /// Imbrex's own recording format.
    Recording,
    /// Binary blktrace, versions 7 and 8.
    Blktrace,
    /// The CloudPhysics traces as they were published, versions 1 and 2.
    Vscsi,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// libCacheSim's LCS, versions 1 to 8.
    Lcs,
    /// SRT of HP Laboratories, records of version 1 to 4.
    Srt,
    /// Parquet, with a column map, that of the file or names that speak for themselves.
    Parquet,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 21] = [
        Self::Msr,
        Self::Spc,
        Self::LibCacheSim,
        Self::Csv,
        Self::DiskSim,
        Self::Arc,
        Self::Alibaba,
        Self::Tencent,
        Self::Systor,
        Self::Fiu,
        Self::Fio,
        Self::FioV1,
        Self::Blkparse,
        Self::Clf,
        Self::Recording,
        Self::Blktrace,
        Self::Vscsi,
        Self::OracleGeneral,
        Self::Lcs,
        Self::Srt,
        Self::Parquet,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::LibCacheSim => "libcachesim",
            Self::Csv => "csv",
            Self::DiskSim => "disksim",
            Self::Arc => "arc",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Systor => "systor",
            Self::Fiu => "fiu",
            Self::Fio => "fio",
            Self::FioV1 => "fio-v1",
            Self::Blkparse => "blkparse",
            Self::Clf => "clf",
            Self::Recording => "imbrex",
            Self::Blktrace => "blktrace",
            Self::Vscsi => "vscsi",
            Self::OracleGeneral => "oracle-general",
            Self::Lcs => "lcs",
            Self::Srt => "srt",
            Self::Parquet => "parquet",
        }
    }

    /// True of other people's binary formats.
    pub(super) fn has_binary_records(self) -> bool {
        matches!(self, Self::Blktrace | Self::Vscsi | Self::OracleGeneral | Self::Lcs | Self::Srt)
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            format!(
                "unknown trace format {text:?}; accepted: {}",
                Self::ALL.map(Self::name).join(", ")
            )
        })
    }
}

/// How to read a trace. The default recognises everything by content; an option the format has no use for is an error.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The format, instead of recognising it.
    pub format: Option<Format>,
    /// Column map of [`Format::Csv`] and [`Format::Parquet`], for example `time=2:us,op=3:scsi,len=4:bytes,off=5:sectors`; what
    /// is no Parquet file is then CSV.
    pub columns: Option<String>,
    /// Delimiter of [`Format::Csv`]; a comma by default, a space means any run of blanks.
    pub delimiter: Option<u8>,
    /// Unit of the times of [`Format::DiskSim`]; milliseconds by default if they have a decimal point.
    pub time_unit: Option<TimeUnit>,
    /// Page size of [`Format::Arc`], bytes; 512 by default.
    pub page_bytes: Option<u64>,
    /// How the requests of one second are spread in [`Format::Tencent`], [`Format::Clf`], [`Format::OracleGeneral`] and
    /// [`Format::Lcs`]; evenly by default.
    pub subsecond: Option<Subsecond>,
    /// What a server is assumed to write in [`Format::Clf`]; nothing by default.
    pub http_writes: Option<HttpWrites>,
    /// What waits mean in [`Format::Fio`] of version 2; as fio does them by default.
    pub fio_wait: Option<FioWait>,
    /// Event of [`Format::Blktrace`] and [`Format::Blkparse`] that stands for a request; `Q` by default.
    pub event: Option<BlkEvent>,
    /// What the ids of [`Format::OracleGeneral`] and [`Format::Lcs`] are; it has to be said.
    pub object_id: Option<ObjectId>,
    /// Only the requests of these devices; the others are counted as skipped.
    pub devices: Option<RangeInclusive<u16>>,
    /// Places device n at n times this many bytes, so that several devices share one address space. Without it they
    /// overlay each other.
    pub device_stride_bytes: Option<u64>,
    /// Takes a recording without a trailer as far as it goes, as a server that was killed leaves it.
    pub accept_unfinished: bool,
    /// Computes the SHA-256 of the file while it is read.
    pub sha256: bool,
    /// Hears how much of the file was read.
    pub watch: Option<ReadWatch>,
    /// Ends the reading before its time.
    pub stop: StopReading,
}

/// The devices that a text such as `3` or `0-2` names.
///
/// # Errors
/// It is neither a number nor a range of them.
pub fn parse_devices(text: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = || {
        format!("devices {text}: accepted: one number, or two with a `-` between, from 0 to 65535")
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first: u16 = first.trim().parse().map_err(|_| wrong())?;
    let last: u16 = last.trim().parse().map_err(|_| wrong())?;
    if first > last {
        return Err(wrong());
    }
    Ok(first..=last)
}

/// The delimiter that a text such as `;` or `\t` names.
///
/// # Errors
/// It is not one character.
pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ if text == "\\t" => Ok(b'\t'),
        _ => Err(format!("delimiter {text}: accepted: one ASCII character, or \\t")),
    }
}

impl ReadOptions {
    /// The options that belong to a format, by their name on the command line, and whether they are given.
    pub(super) fn specific(&self) -> [(&'static str, bool); 11] {
        [
            ("--format", self.format.is_some()),
            ("--map", self.columns.is_some()),
            ("--delimiter", self.delimiter.is_some()),
            ("--time-unit", self.time_unit.is_some()),
            ("--page-bytes", self.page_bytes.is_some()),
            ("--subsecond", self.subsecond.is_some()),
            ("--http-writes", self.http_writes.is_some()),
            ("--fio-wait", self.fio_wait.is_some()),
            ("--accept-unfinished", self.accept_unfinished),
            ("--event", self.event.is_some()),
            ("--obj-id", self.object_id.is_some()),
        ]
    }

    pub(super) fn check(&self, format: Format) -> Result<(), TraceError> {
        for (option, given) in self.specific() {
            let homes = homes(option).filter(|homes| given && !homes.contains(&format));
            if let Some(homes) = homes {
                let names: Vec<_> = homes.iter().map(|home| home.name()).collect();
                let reason = format!(
                    "the format {} has no use for it; accepted: with {}",
                    format.name(),
                    names.join(", ")
                );
                return Err(TraceError::Option { option, reason });
            }
        }
        if self.page_bytes == Some(0) {
            return Err(TraceError::Option {
                option: "--page-bytes",
                reason: "0; accepted: 1 or more".to_owned(),
            });
        }
        if self.device_stride_bytes == Some(0) {
            return Err(TraceError::Option {
                option: "--device-stride",
                reason: "0; accepted: 1 or more".to_owned(),
            });
        }
        Ok(())
    }
}

/// The formats that have a use for an option; `None` for one that all have.
fn homes(option: &str) -> Option<&'static [Format]> {
    Some(match option {
        "--map" => &[Format::Csv, Format::Parquet],
        "--delimiter" => &[Format::Csv],
        "--time-unit" => &[Format::DiskSim],
        "--page-bytes" => &[Format::Arc],
        "--subsecond" => &[Format::Tencent, Format::Clf, Format::OracleGeneral, Format::Lcs],
        "--http-writes" => &[Format::Clf],
        "--fio-wait" => &[Format::Fio],
        "--event" => &[Format::Blktrace, Format::Blkparse],
        "--accept-unfinished" => &[Format::Recording],
        "--obj-id" => &[Format::OracleGeneral, Format::Lcs],
        _ => return None,
    })
}
