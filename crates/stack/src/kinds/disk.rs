//! A disk: a leaf of the stack.

use super::drive_managed::{DiskTranslation, Inside, seen_by_host};
use super::memory::DiskMedia;
use super::ports::PortNodes;
use super::reported::Rows;
use super::slice::use_of;
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, NodeConfig, Offer, OnDisk, Part, Planned,
    Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use crate::measured::Measured;
use imbrex_core::counters::Counter;
use imbrex_core::disk::{Geometry, Survival};
use imbrex_core::flush_failure::FlushFailure;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};
use imbrex_drives::keys;
use imbrex_drives::quantity::{Rate, Size};
use imbrex_drives::{
    AnyWord, AreaUse, Direction, DiskDesign, DiskOptions, DiskStatistics, Drive, MediaModel, OnOff,
    OperationKind, Scheduler as DriveScheduler, Word,
};
use imbrex_report::{ByCause, Cell, Column, DiskAreaUse, DiskUse, TableOfKind, rates};
use std::path::PathBuf;
use std::rc::Rc;

keys! {
    /// A disk.
    pub struct DiskConfig {
        /// Name of the node.
        name: String => "any but `total`";
        /// The drive model: how large it is and, simulated, what it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        drive: Option<String> => "a drive of the library, or the path of a [drive file](drives.md) relative to the current folder", "needed, or `media`";
        /// What the disk is instead of a drive.
        #[serde(skip_serializing_if = "Option::is_none")]
        media: Option<Word<DiskMedia>> => AnyWord, "none";
        /// Of memory: what its contents survive: nothing, the death of the process, or a power cut.
        #[serde(skip_serializing_if = "Option::is_none")]
        survives: Option<Word<Survival>> => AnyWord, "needed with `media`";
        /// Of memory: its size.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<Size> => "a multiple of 4 KiB", "needed with `media`";
        /// Simulated memory: what it moves in a second.
        #[serde(skip_serializing_if = "Option::is_none")]
        bandwidth: Option<Rate> => "a rate", r#"`"10 GB/s"`, an assumption"#;
        /// Simulated memory: microseconds of a request beside its transfer.
        #[serde(skip_serializing_if = "Option::is_none")]
        latency_us: Option<f64> => 0.0..=1_000_000.0, "`1`, an assumption";
        /// Served: the file or block device that holds the data, or the export of an NBD server that does
        /// ([serving](serving.md#disks-at-other-servers)); a simulation leaves it alone.
        backing: Option<String> => "a path, `nbd://HOST:PORT/NAME`, `nbd+unix:///NAME?socket=PATH`", "a file `NAME.img` in the data directory";
        /// Of a disk at another server: for how many seconds a new connection is tried when one breaks; then
        /// the disk is lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        reconnect_s: Option<u32> => 0..=86_400, "`30`";
        /// Of a disk at another server: memory for what it has answered and not flushed, which is sent again
        /// on a new connection. Where it is full a flush is forced.
        #[serde(skip_serializing_if = "Option::is_none")]
        resend_max: Option<Size> => "from 1 MiB to 64 GiB", "`\"64 MiB\"`";
        /// Simulated: whether the drive answers writes before they are on the medium.
        write_cache: Option<bool> => "`true`, `false`", "as the drive file says";
        /// Simulated: in which order the drive serves the commands that it has, instead of as its file says: the one
        /// that it reaches first, or the oldest.
        #[serde(skip_serializing_if = "Option::is_none")]
        scheduler: Option<DriveScheduler> => r#"`"sptf"`, `"fcfs"`, with a drive that rotates"#, "as the drive file says";
        /// Simulated: whether the arm waits until a block comes round. `"off"` leaves rotational
        /// latency out; seeks, head switches, settling, transfers and the electronics take as long as
        /// before. It shows what a prototype measures that only remaps addresses of a conventional
        /// drive, where the blocks of a segment need not lie at one angle.
        #[serde(skip_serializing_if = "Option::is_none")]
        rotation: Option<Word<OnOff>> => r#"`"on"`, `"off"`, with a drive that rotates"#, r#"`"on"`"#;
        /// Served: that the drive is a real one that hides its shingles and cleans by itself
        /// ([serving](serving.md#a-drive-that-cleans-by-itself)).
        #[serde(skip_serializing_if = "Option::is_none")]
        translation: Option<Word<DiskTranslation>> => r#"`"drive-managed"`, with a drive whose file has a `[translation]`"#, "none: a node above translates";
        /// The length of the `backing` in blocks of 4 KiB, in the description of an image: `create`
        /// measures it once, and `serve` wants at least that.
        #[serde(skip_serializing_if = "Option::is_none")]
        measured_blocks: Option<u64> => "none in a stack file: `create` writes it", "none";
    }
}

impl Kind for DiskConfig {
    const NAME: &'static str = "disk";
    const TABLES: &'static [TableOfKind] = &[AREAS, HOME_WRITES];
}

/// Use of the parts of a disk that a translation has divided.
const AREAS: TableOfKind = TableOfKind {
    name: "areas",
    title: "Use of the areas of disks",
    sentence: "What the medium read and wrote in each part of a disk that a translation has divided, and how \
               long it was busy there. An operation counts where it starts.",
    over_time: false,
    columns: &[
        Column::new(
            "area",
            "",
            "What is there; that of a translation on a slice begins with its name.",
        ),
        Column::new("read_bytes", "bytes", "Bytes the medium read."),
        Column::new("written_bytes", "bytes", "Bytes the medium wrote."),
        Column::new("read_time_s", "s", "Time busy reading."),
        Column::new("write_time_s", "s", "Time busy writing."),
    ],
};

/// Writes to the bands of a disk over time.
const HOME_WRITES: TableOfKind = TableOfKind {
    name: "home_writes",
    title: "Home writes of disks over time",
    sentence: "What the medium wrote to home bands in a second: when bands were cleaned, and how much that \
               took. Of several translations on one disk, those of the last.",
    over_time: true,
    columns: &[
        TableOfKind::TIME,
        Column::new("written_mib_per_s", "MiB/s", "Written to home bands, by whatever cause."),
    ],
};

impl NodeConfig {
    /// Forgets keys that say what a simulation does without them too.
    pub(crate) fn forget_stated_defaults(&mut self) {
        if let NodeConfig::Disk(disk) = self {
            disk.rotation = disk.rotation.filter(|rotation| *rotation != Word(OnOff::On));
        }
    }
}

impl Node for DiskConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        vec![]
    }

    fn disk(&self) -> Option<&DiskConfig> {
        Some(self)
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Disk)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let of_drive = world.drives[&self.name].model.user_blocks(scale);
        let measured = self.measured_blocks.map_or(of_drive, BlockCount);
        Ok(of_drive.min(measured))
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        self.check_remote()?;
        if self.measured_blocks.is_some() && !world.options.durable {
            return Err(wrong(
                &self.name,
                &"measured_blocks is written by `imbrex create`, of what it has measured; accepted: \
                  no such key",
            ));
        }
        let drive = &world.drives[&self.name];
        if self.rotation.is_some() && drive.model.media == MediaModel::SolidState {
            return Err(wrong(
                &self.name,
                &format_args!(
                    "rotation is about a drive that rotates, and the drive `{}` does not; accepted: no \
                     such key",
                    drive.model.name
                ),
            ));
        }
        let drive = &self.scheduled(drive)?;
        let (drive, inside) = match self.translation {
            Some(Word(DiskTranslation::DriveManaged)) => {
                seen_by_host(&self.name, drive, asked, world)?
            }
            None => (drive.clone(), Inside::default()),
        };
        let knows_tracks = matches!(asked.writer, Writer::Tracks { .. });
        if drive.model.media == MediaModel::Shingled && !knows_tracks {
            return Err(wrong(
                &self.name,
                &format_args!(
                    "the tracks of the drive `{}` overlap, so it cannot be written anywhere; \
                     accepted: a drive whose tracks do not, or below a node of kind \
                     \"persistent-cache\" or \"host-managed\"; a real drive that cleans by itself is \
                     served with translation = \"drive-managed\"",
                    drive.model.name
                ),
            ));
        }
        let planned = PlannedDisk { config: self.clone(), drive, inside, asked };
        Ok((Box::new(planned), vec![]))
    }
}

impl DiskConfig {
    /// True of a disk at another server: its `backing` is a URI.
    pub fn is_remote(&self) -> bool {
        self.backing.as_ref().is_some_and(|backing| backing.contains("://"))
    }

    /// Keys of disks at other servers.
    fn check_remote(&self) -> Result<(), ConfigError> {
        let keys = [
            ("reconnect_s", self.reconnect_s.is_some()),
            ("resend_max", self.resend_max.is_some()),
        ];
        let mut keys = keys.into_iter().filter(|(_, is_there)| *is_there);
        if let Some((key, _)) = keys.next().filter(|_| !self.is_remote()) {
            let words = format!(
                "{key} is about a disk at another server; accepted: together with backing = \"nbd://HOST:PORT/NAME\""
            );
            return Err(wrong(&self.name, &words));
        }
        let accepted = 1 << 20..=64 << 30;
        match self.resend_max.filter(|Size(bytes)| !accepted.contains(bytes)) {
            Some(Size(bytes)) => {
                let words = format!("resend_max = {bytes} B; accepted: from 1 MiB to 64 GiB");
                Err(wrong(&self.name, &words))
            }
            None => Ok(()),
        }
    }

    /// The drive with the order of commands that the node states.
    fn scheduled(&self, drive: &Drive) -> Result<Drive, ConfigError> {
        let mut drive = drive.clone();
        if let Some(scheduler) = self.scheduler {
            let Some(queue) = &mut drive.model.queue else {
                let words = format!(
                    "scheduler is about a drive that rotates, and the drive `{}` does not; accepted: no such key",
                    drive.model.name
                );
                return Err(wrong(&self.name, &words));
            };
            queue.scheduler = scheduler;
        }
        Ok(drive)
    }
}

struct PlannedDisk {
    config: DiskConfig,
    drive: Drive,
    inside: Inside,
    asked: Asked,
}

impl PlannedDisk {
    fn contents_file(&self, known: &Known<'_>) -> Option<PathBuf> {
        let folder = known.options.contents_dir.as_ref()?;
        Some(folder.join(format!("{}.contents", self.config.name)))
    }
}

impl Planned for PlannedDisk {
    fn build(&self, known: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let asked = self.asked;
        let capacity = match (asked.is_part, asked.writer) {
            (true, _) => known.options.trim_disks.then_some(asked.blocks),
            (false, Writer::Tracks { whole: true }) => None,
            (false, _) => {
                let conventional = below.conventional.iter().map(|part| part.blocks.0);
                let conventional = BlockCount(conventional.sum());
                Some(self.drive.model.physical_blocks(asked.blocks, conventional))
            }
        };
        let options = DiskOptions {
            capacity,
            scale: self.asked.scale,
            conventional: below.conventional.to_vec(),
            contents: known.contents,
            contents_file: self.contents_file(known),
            write_cache: self.config.write_cache,
            rotation: self.config.rotation != Some(Word(OnOff::Off)),
            seed: known.options.seed,
            survives: self.config.survival(),
            in_sectors: false,
        };
        let disk = DiskDesign::new(&self.drive, options)
            .map_err(|error| ConfigError::words(error.to_string()))?;
        Ok(Part {
            offer: Offer {
                geometry: Geometry {
                    log: self.inside.log,
                    // What is made for an image is zeroes; a file or block device that is named may
                    // have been in use.
                    is_blank: self.config.backing.is_none(),
                    ..disk.geometry().clone()
                },
                mean_band: self.inside.mean_band,
                on_disk: Some(OnDisk {
                    statistics: disk.statistics(),
                    start: 0,
                    area_prefix: String::new(),
                }),
                flush_failure: FlushFailure::default(),
            },
            facts: super::Facts::Disk(DescribeDisk::new(
                &self.config,
                &self.drive,
                self.asked.scale,
                &disk,
            )),
            body: Body::Disk(Box::new(disk)),
        })
    }
}

/// What a report needs to know of a disk.
pub struct DescribeDisk {
    name: String,
    drive: String,
    /// None of memory, which no file describes.
    drive_sha256: Option<String>,
    write_cache: bool,
    media: Media,
    capacity_bytes: u64,
    statistics: Rc<DiskStatistics>,
}

/// What a disk keeps its blocks on, as far as hardware is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Media {
    /// Platters.
    Rotating,
    /// Flash.
    Flash,
    /// Memory of the machine.
    Memory,
}

impl DescribeDisk {
    fn new(config: &DiskConfig, drive: &Drive, scale: u64, disk: &DiskDesign) -> DescribeDisk {
        DescribeDisk {
            name: config.name.clone(),
            drive: drive.model.name.clone(),
            drive_sha256: config.drive.is_some().then(|| drive.sha256.clone()),
            write_cache: disk.write_cache(),
            media: match drive.model.media {
                _ if config.media.is_some() => Media::Memory,
                MediaModel::Conventional | MediaModel::Shingled => Media::Rotating,
                MediaModel::SolidState => Media::Flash,
            },
            capacity_bytes: drive.model.user_blocks(scale).bytes(),
            statistics: disk.statistics(),
        }
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it keeps its blocks on.
    pub(crate) fn media(&self) -> Media {
        self.media
    }

    /// Bytes that its drive offers, divided by the scale of the stack.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// What the disk counts.
    pub fn statistics(&self) -> &Rc<DiskStatistics> {
        &self.statistics
    }

    /// The rows of the writes to its bands; none where nothing was written there.
    fn home_writes(&self, measured: Measured) -> Rows {
        let map = self.statistics.write_map(measured.until).filter(|map| !map.blocks.is_empty());
        let series = map.map(|map| {
            let width_ns = (map.time_bin_s * 1e9).round() as u64;
            let mib_per_block = BLOCK_BYTES as f64 / f64::from(1 << 20);
            rates(&map.blocks_by_time(), width_ns, measured.length().0, mib_per_block)
        });
        series.map_or_else(Rows::new, |series| series.rows())
    }

    /// What it did, as reports tell it.
    pub(crate) fn disk_use(&self) -> DiskUse {
        let s = &self.statistics;
        DiskUse {
            name: self.name.clone(),
            drive: self.drive.clone(),
            drive_sha256: self.drive_sha256.clone(),
            write_cache: self.write_cache,
            reads: s.operations_of(OperationKind::Read),
            writes: s.operations_of(OperationKind::Write),
            read_bytes: ByCause::of(|cause| s.blocks(OperationKind::Read, cause) * BLOCK_BYTES),
            written_bytes: ByCause::of(|cause| s.blocks(OperationKind::Write, cause) * BLOCK_BYTES),
            write_amplification: ByCause::default(),
            seek_time_s: s.seek_time().as_seconds(),
            busy_time_s: s.busy_total().as_seconds(),
            busy_time_by_cause_s: ByCause::of(|cause| {
                (s.busy(Direction::Read, cause) + s.busy(Direction::Write, cause)).as_seconds()
            }),
            areas: s.areas().iter().map(area_use).collect(),
        }
    }
}

impl Reported for DescribeDisk {
    fn others(&self) -> Vec<(Counter, u64)> {
        use_of(&self.statistics)
    }

    fn restart(&self, from: Instant) {
        self.statistics.restart(from);
    }

    fn tables(&self, measured: Measured) -> Vec<(TableOfKind, Rows)> {
        let areas: Rows = self.statistics.areas().iter().map(row_of_area).collect();
        let home_writes = self.home_writes(measured);
        let all = [(AREAS, areas), (HOME_WRITES, home_writes)];
        all.into_iter().filter(|(_, rows)| !rows.is_empty()).collect()
    }
}

fn row_of_area(area: &AreaUse) -> Vec<Cell> {
    let DiskAreaUse { name, read_bytes, written_bytes, read_time_s, write_time_s } = area_use(area);
    vec![
        Cell::Text(name),
        Cell::Count(read_bytes),
        Cell::Count(written_bytes),
        Cell::Number(read_time_s),
        Cell::Number(write_time_s),
    ]
}

fn area_use(area: &AreaUse) -> DiskAreaUse {
    let bytes = |direction| area.blocks_in(direction) * BLOCK_BYTES;
    DiskAreaUse {
        name: area.name.clone(),
        read_bytes: bytes(Direction::Read),
        written_bytes: bytes(Direction::Write),
        read_time_s: area.busy_in(Direction::Read).as_seconds(),
        write_time_s: area.busy_in(Direction::Write).as_seconds(),
    }
}
