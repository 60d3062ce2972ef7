//! What each option of fio does to a job here.

use super::job::{
    Access, BlockSizes, Direction, Job, Mix, RateLimit, Sequencer, Stride, Think, ZonedAccess,
};
use super::known_options::{
    ASYNCHRONOUS, OPTIONS, REFUSED, SYNCHRONOUS, WITH_ONE_VALUE, WITHOUT_EFFECT, ZBD_OPTIONS,
    ZONE_OPTIONS,
};
use super::parse::{JobReport, Line, LogSettings, Problem};
use super::spread::PERCENTILES;
use super::units::{KbBase, boolean, number, per_direction, range, size, size_or_percent, time};
use super::values::{distribution, pattern, percentiles, split, zbd_option};
use imbrex_core::units::Duration;

/// A job while its lines are read.
#[derive(Clone)]
pub(super) struct Draft {
    job: Job,
    report: JobReport,
    base: KbBase,
    device_bytes: u64,
    direct: bool,
    read_percent: u32,
    /// A size was read, so that `kb_base` comes too late.
    has_sizes: bool,
    rate_bytes: bool,
    rate_iops: bool,
    zone_mode: ZoneMode,
    zones: [Option<u64>; 3],
    /// What `zonemode=zbd` begins with, and the options of its own that were given.
    zbd: ZonedAccess,
    zbd_option: Option<String>,
    think_pause: Duration,
    think_every: u64,
    think_counts_issued: bool,
    sequencer: Sequencer,
    log_names: [Option<Option<String>>; 3],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ZoneMode {
    Unset,
    None,
    Strided,
    Zbd,
}

impl Draft {
    pub fn new(device_bytes: u64) -> Draft {
        Draft {
            job: Job::new(""),
            report: JobReport {
                options: Vec::new(),
                description: None,
                engine: "psync".to_string(),
                iodepth: 1,
                percentiles: PERCENTILES.to_vec(),
                logs: LogSettings {
                    latency: None,
                    bandwidth: None,
                    requests: None,
                    average_ms: 0,
                    largest: false,
                    offsets: false,
                    per_job: true,
                },
            },
            base: KbBase::Compatible,
            device_bytes,
            direct: false,
            read_percent: 50,
            has_sizes: false,
            rate_bytes: false,
            rate_iops: false,
            zone_mode: ZoneMode::Unset,
            zones: [None; 3],
            zbd: ZonedAccess::default(),
            zbd_option: None,
            think_pause: Duration::ZERO,
            think_every: 1,
            think_counts_issued: false,
            sequencer: Sequencer::Sequential,
            log_names: [const { None }; 3],
        }
    }

    /// A job of that name that starts from these defaults.
    pub fn job(&self, name: &str) -> Draft {
        let mut draft = self.clone();
        draft.job.name = name.to_string();
        draft.report.options = Vec::new();
        draft
    }

    /// Applies a line.
    pub fn apply(&mut self, line: &Line<'_>) -> Result<(), Problem> {
        self.option(line)?;
        if let Some(value) = line.value
            && line.option != "name"
        {
            let entry = (line.option.to_string(), value.to_string());
            self.report.options.push(entry);
        }
        Ok(())
    }

    fn option(&mut self, line: &Line<'_>) -> Result<(), Problem> {
        let name = line.option;
        // Options that are set by being there.
        let set = || line.value.map_or(Ok(true), boolean);
        match name {
            "time_based" => self.job.time_based = set()?,
            "stonewall" | "wait_for_previous" => self.job.stonewall = set()?,
            "new_group" => self.job.new_group = set()?,
            "group_reporting" => self.job.group_reporting = set()?,
            "exitall" => self.job.exit_all = set()?,
            "norandommap" => self.job.random_map = !set()?,
            "write_lat_log" => self.log_names[0] = Some(line.value.map(str::to_string)),
            "write_bw_log" => self.log_names[1] = Some(line.value.map(str::to_string)),
            "write_iops_log" => self.log_names[2] = Some(line.value.map(str::to_string)),
            _ => return self.option_with_value(name, line.value),
        }
        Ok(())
    }

    fn option_with_value(&mut self, name: &str, value: Option<&str>) -> Result<(), Problem> {
        if changes_nothing(name, value)? {
            return self.note_cache(name, value);
        }
        let is_zbd = ZBD_OPTIONS.contains(&name);
        let is_known = is_zbd || OPTIONS.contains(&name) || ZONE_OPTIONS.contains(&name);
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return Err(match is_known {
                true => Problem::Value("a value after `=`".to_string()),
                false => Problem::Unknown,
            });
        };
        if !is_known {
            return Err(Problem::Unknown);
        }
        if is_zbd {
            self.zbd_option = Some(name.to_string());
            return Ok(zbd_option(&mut self.zbd, name, value)?);
        }
        self.work_option(name, value)
    }

    /// What the job does, how much of it and with how many requests in flight.
    fn work_option(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let job = &mut self.job;
        match name {
            "name" => job.name = value.to_string(),
            "filename" if value.contains(':') => {
                return Err("one name, because one drive takes its place".to_string().into());
            }
            "filename" => {}
            "iodepth" => job.iodepth = number(value, 1, 1 << 16)? as u32,
            "numjobs" => job.numjobs = number(value, 1, 4096)? as u32,
            "loops" => job.loops = counted(value, 1)?,
            "number_ios" => job.number_ios = Some(counted(value, 1)?),
            "fsync" => job.fsync = counted(value, 0)?,
            // A drive has no metadata of a file to leave out.
            "fdatasync" => job.fsync = counted(value, 0)?,
            "end_fsync" => job.end_fsync = boolean(value)?,
            "sync" => {
                job.sync_writes = match value {
                    "none" | "0" => false,
                    "sync" | "dsync" | "1" => true,
                    _ => return Err("none, sync or dsync".to_string().into()),
                }
            }
            "rwmixread" => self.read_percent = number(value, 0, 100)? as u32,
            "rwmixwrite" => self.read_percent = 100 - number(value, 0, 100)? as u32,
            _ => return self.random_option(name, value),
        }
        Ok(())
    }

    /// What the job draws.
    fn random_option(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let job = &mut self.job;
        match name {
            "randrepeat" | "allrandrepeat" => job.rand_repeat = boolean(value)?,
            "randseed" => job.rand_seed = Some(counted(value, 0)?),
            "percentage_random" => job.percentage_random = number(value, 0, 100)? as u32,
            "random_distribution" => job.distribution = distribution(value)?,
            "rw_sequencer" => {
                self.sequencer = match value {
                    "sequential" => Sequencer::Sequential,
                    "identical" => Sequencer::Identical,
                    _ => return Err("sequential or identical".to_string().into()),
                }
            }
            _ => return self.time_option(name, value),
        }
        Ok(())
    }

    /// When the job makes requests.
    fn time_option(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let job = &mut self.job;
        match name {
            "runtime" => job.runtime = Some(time(value, 1_000_000_000)?),
            "ramp_time" => job.ramp_time = time(value, 1_000_000_000)?,
            "startdelay" => job.start_delay = time(value, 1_000_000_000)?,
            "thinktime" => self.think_pause = time(value, 1_000)?,
            "thinktime_blocks" => self.think_every = counted(value, 1)?,
            "thinktime_blocks_type" => {
                self.think_counts_issued = match value {
                    "complete" => false,
                    "issue" => true,
                    _ => return Err("complete or issue".to_string().into()),
                }
            }
            "rate_process" => {
                job.rate_poisson = match value {
                    "linear" => false,
                    "poisson" => true,
                    _ => return Err("linear or poisson".to_string().into()),
                }
            }
            _ => return self.report_option(name, value),
        }
        Ok(())
    }

    /// What is printed and logged of the job.
    fn report_option(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let report = &mut self.report;
        match name {
            "description" => report.description = Some(value.to_string()),
            "ioengine" => {
                let engines = ASYNCHRONOUS.iter().chain(SYNCHRONOUS);
                if !engines.clone().any(|known| *known == value) {
                    let names: Vec<&str> = engines.copied().collect();
                    return Err(names.join(", ").into());
                }
                report.engine = value.to_string();
            }
            "percentile_list" => report.percentiles = percentiles(value)?,
            "log_avg_msec" => report.logs.average_ms = counted(value, 0)?,
            "log_max_value" => report.logs.largest = boolean(value)?,
            "log_offset" => report.logs.offsets = boolean(value)?,
            "per_job_logs" => report.logs.per_job = boolean(value)?,
            _ => return self.size_option(name, value),
        }
        Ok(())
    }

    /// What a `k` is in sizes. It comes before all of them, because each is read once.
    fn set_base(&mut self, value: &str) -> Result<(), String> {
        if self.has_sizes {
            return Err("a place before all sizes".to_string());
        }
        self.base = match value {
            "1024" => KbBase::Compatible,
            "1000" => KbBase::International,
            _ => return Err("1000 or 1024".to_string()),
        };
        Ok(())
    }

    /// Where the job goes, and its lengths and rates.
    fn size_option(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        if name == "kb_base" {
            return Ok(self.set_base(value)?);
        }
        let (base, whole) = (self.base, self.device_bytes);
        let job = &mut self.job;
        self.has_sizes = true;
        match name {
            "rw" | "readwrite" => pattern(value, base, job)?,
            "size" => job.size_bytes = Some(size_or_percent(value, base, whole)?),
            "io_size" | "io_limit" => job.io_bytes = Some(size_or_percent(value, base, whole)?),
            "offset" => job.offset_bytes = size_or_percent(value, base, whole)?,
            "offset_increment" => {
                job.offset_increment_bytes = size_or_percent(value, base, whole)?;
            }
            "bs" | "blocksize" => {
                let sizes = per_direction(value, |text| size(text, base).map(BlockSizes::Fixed))?;
                job.set_block_sizes(sizes);
            }
            "bsrange" | "blocksize_range" => {
                let value = value.replace('/', ",");
                let sizes = per_direction(&value, |text| {
                    range(text, base).map(|(min, max)| BlockSizes::Range { min, max })
                })?;
                job.set_block_sizes(sizes);
            }
            "bssplit" => {
                let sizes = per_direction(value, |text| split(text, base))?;
                job.set_block_sizes(sizes);
            }
            "rate" => {
                let limits = per_direction(value, |text| size(text, base).map(RateLimit::Bytes))?;
                job.rate = limits.map(|limit| limit.unwrap_or(RateLimit::None));
                self.rate_bytes = true;
            }
            "rate_iops" => {
                let limits = per_direction(value, |text| {
                    number(text, 1, u64::MAX).map(RateLimit::Requests)
                })?;
                job.rate = limits.map(|limit| limit.unwrap_or(RateLimit::None));
                self.rate_iops = true;
            }
            "zonemode" => {
                self.zone_mode = match value {
                    "none" => ZoneMode::None,
                    "strided" => ZoneMode::Strided,
                    "zbd" => ZoneMode::Zbd,
                    _ => return Err("none, strided or zbd".to_string().into()),
                }
            }
            "zonesize" => self.zones[0] = Some(size(value, base)?),
            "zonerange" => self.zones[1] = Some(size(value, base)?),
            "zoneskip" => self.zones[2] = Some(size(value, base)?),
            _ => return Err(Problem::Unknown),
        }
        Ok(())
    }

    /// Keeps in mind whether a real run would go round the page cache.
    fn note_cache(&mut self, name: &str, value: Option<&str>) -> Result<(), Problem> {
        if matches!(name, "direct" | "buffered") {
            self.direct = boolean(value.unwrap_or_default())? == (name == "direct");
        }
        Ok(())
    }

    /// The job, when all its lines are read.
    pub fn finish(mut self, notes: &mut Vec<String>) -> Result<(Job, JobReport), String> {
        let job = &mut self.job;
        let mut note = |text: String| {
            if !notes.contains(&text) {
                notes.push(text);
            }
        };
        if self.rate_bytes && self.rate_iops {
            return Err(format!("job `{}`: rate and rate_iops: accepted: one of them", job.name));
        }
        if let Mix::ReadWrite { read_percent } = &mut job.mix {
            *read_percent = self.read_percent;
        }
        if let Access::Random { sequencer, .. } = &mut job.access {
            *sequencer = self.sequencer;
        }
        if self.think_pause > Duration::ZERO {
            job.think = Some(Think {
                pause: self.think_pause,
                every: self.think_every,
                counts_issued: self.think_counts_issued,
            });
        }
        self.report.iodepth = job.iodepth;
        if SYNCHRONOUS.contains(&self.report.engine.as_str()) && job.iodepth > 1 {
            note(format!(
                "job `{}`: iodepth={} has no effect with ioengine={}, which makes one request at a time",
                job.name, job.iodepth, self.report.engine
            ));
            job.iodepth = 1;
        }
        if !self.direct {
            let words = "without direct=1 a real run goes through the page cache, which a model has not: every \
                         request goes to the drive";
            note(words.to_string());
        }
        if job.has_partial_blocks() {
            note(format!(
                "job `{}`: requests that cover a part of a 4 KiB block count as the whole block",
                job.name
            ));
        }
        self.zone_mode()?;
        let job = &mut self.job;
        let logs = &mut self.report.logs;
        let [latency, bandwidth, requests] = self.log_names;
        let named = |given: Option<Option<String>>| {
            given.map(|name| name.filter(|n| !n.is_empty()).unwrap_or(job.name.clone()))
        };
        logs.latency = named(latency);
        logs.bandwidth = named(bandwidth);
        logs.requests = named(requests);
        job.samples = logs.any();
        Ok((self.job, self.report))
    }

    /// Takes over what was said of zones.
    fn zone_mode(&mut self) -> Result<(), String> {
        let [size, range, skip] = self.zones;
        let job = &mut self.job;
        let wrong = |what: &str| Err(format!("job `{}`: {what}", job.name));
        let mode = match (self.zone_mode, size) {
            (ZoneMode::Unset, Some(_)) => ZoneMode::Strided,
            (mode, _) => mode,
        };
        if let Some(option) = self.zbd_option.as_ref().filter(|_| mode != ZoneMode::Zbd) {
            return wrong(&format!("{option}: accepted: together with zonemode=zbd"));
        }
        match mode {
            ZoneMode::Unset | ZoneMode::None => {
                if self.zones.iter().any(Option::is_some) {
                    return wrong(
                        "zonesize, zonerange and zoneskip: accepted: together with zonemode=strided, zonesize \
                         and zoneskip with zonemode=zbd",
                    );
                }
            }
            ZoneMode::Strided => {
                let Some(zone_bytes) = size else {
                    return wrong("zonemode=strided: accepted: together with zonesize");
                };
                job.stride = Some(Stride {
                    zone_bytes,
                    range_bytes: range.unwrap_or(zone_bytes),
                    skip_bytes: skip.unwrap_or(0),
                });
            }
            ZoneMode::Zbd => {
                if range.is_some() {
                    return wrong("zonerange: accepted: together with zonemode=strided");
                }
                if job.mix != Mix::Only(Direction::Read) && !self.direct {
                    return wrong("zonemode=zbd: accepted: with direct=1, as fio writes zones");
                }
                job.zones = Some(ZonedAccess {
                    zone_bytes: size.filter(|bytes| *bytes > 0),
                    skip_bytes: skip.unwrap_or(0),
                    ..self.zbd
                });
            }
        }
        Ok(())
    }
}

/// True when an option has no effect here, or has the one value with which it has none.
fn changes_nothing(name: &str, value: Option<&str>) -> Result<bool, Problem> {
    if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
        return Err(Problem::Refused(why));
    }
    if name.starts_with("verify") || name.starts_with("replay_") {
        return Err(Problem::Refused("a model keeps no data, and replays no trace of fio's"));
    }
    if let Some((_, values, why)) = WITH_ONE_VALUE.iter().find(|(known, ..)| *known == name) {
        let fits = value.is_some_and(|value| values.contains(&value));
        let accepted = || format!("{} ({why})", values.join(" or "));
        return fits.then_some(true).ok_or_else(|| accepted().into());
    }
    Ok(WITHOUT_EFFECT.iter().any(|(known, _)| *known == name))
}

/// A whole number of at least `from`.
fn counted(value: &str, from: u64) -> Result<u64, String> {
    number(value, from, u64::MAX)
}

impl Job {
    fn set_block_sizes(&mut self, sizes: [Option<BlockSizes>; 3]) {
        for (mine, given) in self.block_sizes.iter_mut().zip(sizes) {
            if let Some(given) = given {
                *mine = given;
            }
        }
    }
}
