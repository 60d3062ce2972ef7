//! What each option of fio does to a job here.

use super::job::{
    Access, BlockSizes, Direction, Distribution, Job, Mix, RateLimit, Sequencer, Stride, Think,
    ZonedAccess,
};
use super::known_options::{
    ASYNCHRONOUS, OPTIONS, REFUSED, SYNCHRONOUS, WITH_ONE_VALUE, WITHOUT_EFFECT, ZBD_OPTIONS,
    ZONE_OPTIONS,
};
use super::parse::{JobReport, Line, LogSettings, Problem};
use super::spread::PERCENTILES;
use super::units::{KbBase, boolean, number, per_direction, range, size, size_or_percent, time};
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
        if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
            return Err(Problem::Refused(why));
        }
        if name.starts_with("verify") || name.starts_with("replay_") {
            return Err(Problem::Refused(
                "a model keeps no data, and replays no trace of fio's",
            ));
        }
        if let Some((_, values, why)) = WITH_ONE_VALUE.iter().find(|(known, ..)| *known == name) {
            let fits = value.is_some_and(|value| values.contains(&value));
            let accepted = || format!("{} ({why})", values.join(" or "));
            return fits.then_some(()).ok_or_else(|| accepted().into());
        }
        if WITHOUT_EFFECT.iter().any(|(known, _)| *known == name) {
            self.note_cache(name, value)?;
            return Ok(());
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
        let counted = |from| number(value, from, u64::MAX);
        let job = &mut self.job;
        match name {
            "name" => job.name = value.to_string(),
            "description" => self.report.description = Some(value.to_string()),
            "filename" if value.contains(':') => {
                return Err("one name, because one drive takes its place"
                    .to_string()
                    .into());
            }
            "filename" => {}
            "kb_base" if self.has_sizes => {
                return Err("a place before all sizes".to_string().into());
            }
            "kb_base" => {
                self.base = match value {
                    "1024" => KbBase::Compatible,
                    "1000" => KbBase::International,
                    _ => return Err("1000 or 1024".to_string().into()),
                }
            }
            "ioengine" => {
                let engines = ASYNCHRONOUS.iter().chain(SYNCHRONOUS);
                if !engines.clone().any(|known| *known == value) {
                    let names: Vec<&str> = engines.copied().collect();
                    return Err(names.join(", ").into());
                }
                self.report.engine = value.to_string();
            }
            "iodepth" => job.iodepth = number(value, 1, 1 << 16)? as u32,
            "numjobs" => job.numjobs = number(value, 1, 4096)? as u32,
            "loops" => job.loops = counted(1)?,
            "number_ios" => job.number_ios = Some(counted(1)?),
            "fsync" => job.fsync = counted(0)?,
            // A drive has no metadata of a file to leave out.
            "fdatasync" => job.fsync = counted(0)?,
            "end_fsync" => job.end_fsync = boolean(value)?,
            "randrepeat" | "allrandrepeat" => job.rand_repeat = boolean(value)?,
            "randseed" => job.rand_seed = Some(counted(0)?),
            "rwmixread" => self.read_percent = number(value, 0, 100)? as u32,
            "rwmixwrite" => self.read_percent = 100 - number(value, 0, 100)? as u32,
            "percentage_random" => job.percentage_random = number(value, 0, 100)? as u32,
            "runtime" => job.runtime = Some(time(value, 1_000_000_000)?),
            "ramp_time" => job.ramp_time = time(value, 1_000_000_000)?,
            "startdelay" => job.start_delay = time(value, 1_000_000_000)?,
            "thinktime" => self.think_pause = time(value, 1_000)?,
            "thinktime_blocks" => self.think_every = counted(1)?,
            "thinktime_blocks_type" => {
                self.think_counts_issued = match value {
                    "complete" => false,
                    "issue" => true,
                    _ => return Err("complete or issue".to_string().into()),
                }
            }
            "sync" => {
                job.sync_writes = match value {
                    "none" | "0" => false,
                    "sync" | "dsync" | "1" => true,
                    _ => return Err("none, sync or dsync".to_string().into()),
                }
            }
            "rate_process" => {
                job.rate_poisson = match value {
                    "linear" => false,
                    "poisson" => true,
                    _ => return Err("linear or poisson".to_string().into()),
                }
            }
            "random_distribution" => job.distribution = distribution(value)?,
            "rw_sequencer" => {
                self.sequencer = match value {
                    "sequential" => Sequencer::Sequential,
                    "identical" => Sequencer::Identical,
                    _ => return Err("sequential or identical".to_string().into()),
                }
            }
            "percentile_list" => self.report.percentiles = percentiles(value)?,
            "log_avg_msec" => self.report.logs.average_ms = counted(0)?,
            "log_max_value" => self.report.logs.largest = boolean(value)?,
            "log_offset" => self.report.logs.offsets = boolean(value)?,
            "per_job_logs" => self.report.logs.per_job = boolean(value)?,
            _ => return self.size_option(name, value),
        }
        Ok(())
    }

    fn size_option(&mut self, name: &str, value: &str) -> Result<(), Problem> {
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
            return Err(format!(
                "job `{}`: rate and rate_iops: accepted: one of them",
                job.name
            ));
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

fn zbd_option(zbd: &mut ZonedAccess, name: &str, value: &str) -> Result<(), String> {
    let share = || {
        let share = value.parse::<f64>().ok();
        share
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| "0 to 1".to_string())
    };
    match name {
        // As in fio, 0 is the limit of the drive.
        "max_open_zones" => {
            let zones = number(value, 0, 1 << 20)? as u32;
            zbd.open_max = (zones > 0).then_some(zones);
        }
        "read_beyond_wp" => zbd.read_beyond_pointer = boolean(value)?,
        "zone_reset_threshold" => zbd.reset_threshold = share()?,
        _ => zbd.reset_frequency = share()?,
    }
    Ok(())
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

fn pattern(value: &str, base: KbBase, job: &mut Job) -> Result<(), String> {
    let (word, tail) = match value.split_once(':') {
        Some((word, tail)) => (word.trim(), Some(tail.trim())),
        None => (value, None),
    };
    let (random, mix) = match word {
        "read" => (false, Mix::Only(Direction::Read)),
        "write" => (false, Mix::Only(Direction::Write)),
        "trim" => (false, Mix::Only(Direction::Trim)),
        "rw" | "readwrite" => (false, Mix::ReadWrite { read_percent: 50 }),
        "randread" => (true, Mix::Only(Direction::Read)),
        "randwrite" => (true, Mix::Only(Direction::Write)),
        "randtrim" => (true, Mix::Only(Direction::Trim)),
        "randrw" => (true, Mix::ReadWrite { read_percent: 50 }),
        _ => {
            return Err(
                "read, write, trim, rw, randread, randwrite, randtrim or randrw, with :N if need be"
                    .to_string(),
            );
        }
    };
    job.mix = mix;
    job.access = match (random, tail) {
        (true, None) => Access::RANDOM,
        (true, Some(tail)) => Access::Random {
            per_draw: number(tail, 1, u64::MAX)?,
            sequencer: Sequencer::Sequential,
        },
        (false, None) => Access::Sequential { skip_bytes: 0 },
        (false, Some(tail)) => {
            let (sign, digits) = match tail.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, tail),
            };
            let bytes = i64::try_from(size(digits, base)?).map_err(|_| super::units::SIZES)?;
            Access::Sequential {
                skip_bytes: sign * bytes,
            }
        }
    };
    Ok(())
}

fn distribution(value: &str) -> Result<Distribution, String> {
    let accepted = || "random, or zipf:THETA with THETA above 0 and not 1".to_string();
    if value == "random" {
        return Ok(Distribution::Uniform);
    }
    let theta = value.strip_prefix("zipf").ok_or_else(accepted)?;
    let theta = match theta.strip_prefix(':') {
        // fio's default.
        None if theta.is_empty() => 1.1,
        None => return Err(accepted()),
        Some(theta) => theta.parse::<f64>().map_err(|_| accepted())?,
    };
    if !(theta > 0.0 && theta.is_finite() && theta != 1.0) {
        return Err(accepted());
    }
    Ok(Distribution::Zipf { theta })
}

/// Lengths with percentages; those without one share what is left.
fn split(text: &str, base: KbBase) -> Result<BlockSizes, String> {
    let accepted = || "lengths with percentages such as 4k/60:64k/40".to_string();
    let mut sizes: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':') {
        let (length, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent.trim() {
            "" => None,
            digits => Some(digits.parse::<u32>().map_err(|_| accepted())?),
        };
        sizes.push((size(length, base)?, percent));
    }
    let given: u64 = sizes
        .iter()
        .filter_map(|(_, percent)| *percent)
        .map(u64::from)
        .sum();
    let open = sizes
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count() as u64;
    if given > 100 || (open == 0 && given < 100) {
        return Err(format!("{} that add up to 100", accepted()));
    }
    // In parts of a percent that the open ones can share evenly.
    let scale = open.max(1);
    let weight = |percent: Option<u32>| match percent {
        Some(percent) => u64::from(percent) * scale,
        None => 100 - given,
    };
    let weighted = sizes
        .into_iter()
        .map(|(bytes, p)| (bytes, weight(p) as u32));
    Ok(BlockSizes::Split(
        weighted.filter(|(_, weight)| *weight > 0).collect(),
    ))
}

fn percentiles(value: &str) -> Result<Vec<f64>, String> {
    let accepted = || "up to 20 numbers above 0 up to 100, such as 50:99:99.9".to_string();
    let mut list = value
        .split(':')
        .map(|text| {
            text.trim()
                .parse::<f64>()
                .ok()
                .filter(|p| *p > 0.0 && *p <= 100.0)
        })
        .collect::<Option<Vec<f64>>>()
        .ok_or_else(accepted)?;
    if list.len() > 20 {
        return Err(accepted());
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}
