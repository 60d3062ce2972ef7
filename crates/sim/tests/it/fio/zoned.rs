//! `zonemode=zbd` on drives with zones.

use imbrex_core::counters::{Counter, Gauge};
use imbrex_sim::fio::{Direction, JobFile, Outcome, Sample, Session, Setting, document, summary};
use imbrex_stack::{BuildOptions, StackConfig};

const ZONE: u64 = 256 << 20;
/// Of the 15 TB drive.
const CONVENTIONAL: u64 = 524;
const MANAGED: &str = "hc620-15tb";
const AWARE: &str = "st8000as0022";
/// Of the host-aware drive.
const CONVENTIONAL_AWARE: u64 = 64;

struct Ran {
    file: JobFile,
    session: Session,
    outcome: Outcome,
}

impl Ran {
    fn count(&self, counter: Counter) -> u64 {
        let node = self.session.describe.zones().expect("a drive with zones");
        self.session.engine.stack.counts(node).counter(counter)
    }

    fn present(&self, gauge: Gauge) -> u64 {
        let node = self.session.describe.zones().expect("a drive with zones");
        self.session.engine.stack.counts(node).gauge(gauge)
    }

    /// Samples of all jobs in the order in which they were done.
    fn samples(&self) -> Vec<Sample> {
        let jobs = self.outcome.jobs.iter();
        let mut all: Vec<Sample> = jobs.flat_map(|job| job.samples.iter().copied()).collect();
        all.sort_by_key(|sample| sample.time_ns);
        all
    }

    /// Nothing that the drive had to refuse, or to put elsewhere than at a write pointer.
    fn assert_in_policy(&self) {
        for counter in [
            Counter::WritesOffPointer,
            Counter::WritesAcrossZones,
            Counter::WritesToFullZones,
            Counter::WritesWithoutZoneResources,
            Counter::ZoneReadsRefused,
            Counter::BlocksOutOfSequence,
            Counter::ZonesClosedForOthers,
        ] {
            assert_eq!(self.count(counter), 0, "{counter:?}");
        }
        assert!(self.outcome.error().is_none());
    }
}

fn session_of(drive: &str) -> Session {
    let config = StackConfig::of_drive(drive, &[]).expect("a drive of the library");
    Session::open(&config, &BuildOptions::simulate(1), &[]).expect("a session")
}

fn try_run(drive: &str, text: &str) -> Result<Ran, String> {
    let mut session = session_of(drive);
    let bytes = session.device_bytes();
    let text = format!("[global]\nzonemode=zbd\ndirect=1\nioengine=libaio\n{text}");
    let file = JobFile::parse("job.fio", &text, bytes).map_err(|error| error.to_string())?;
    let outcome = session.run(&file.jobs).map_err(|error| error.to_string())?;
    Ok(Ran { file, session, outcome })
}

fn run(drive: &str, text: &str) -> Ran {
    try_run(drive, text).expect("a job that is accepted")
}

/// Three zones with a write pointer; `first` of them have none.
fn region(first: u64) -> String {
    format!("offset={}\nsize={}\n", first * ZONE, 3 * ZONE)
}

#[test]
fn a_sequential_job_resets_full_zones_before_it_writes_them_again() {
    for (drive, first) in [(MANAGED, CONVENTIONAL), (AWARE, CONVENTIONAL_AWARE)] {
        let job = "[a]\nrw=write\nbs=1m\niodepth=8\nio_size=1536m\nwrite_lat_log=a\n";
        let ran = run(drive, &format!("{}{job}", region(first)));
        ran.assert_in_policy();
        let job = &ran.outcome.jobs[0];
        assert_eq!(job.direction(Direction::Write).ios, 6 * 256, "{drive}");
        assert_eq!(job.zone_resets, 3, "{drive}");
        assert_eq!(ran.count(Counter::ZonesReset), 3, "{drive}");
        // With several in flight the last writes of a zone and the first of the next come mixed.
        let samples = ran.samples();
        let firsts = samples.iter().filter(|s| s.offset % ZONE == 0);
        let order: Vec<u64> = firsts.map(|s| s.offset / ZONE - first).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2], "{drive}");
        let setting = Setting {
            system: drive.to_string(),
            device_bytes: ran.session.device_bytes(),
            seed: 1,
            scale: 1,
        };
        let words = summary(&ran.file, &ran.outcome, &setting);
        assert!(words.contains("msec); 3 zone resets\n"), "{words}");
        let document = document(&ran.file, &ran.outcome, &setting);
        let value = serde_json::to_value(&document).expect("JSON");
        assert_eq!(value["imbrex"]["zone_resets"], 3);
    }
}

/// Whatever jobs do together, each write is where the one before it in the zone ended.
#[test]
fn random_writes_of_several_jobs_go_to_the_write_pointers() {
    for (drive, first) in [(MANAGED, CONVENTIONAL), (AWARE, CONVENTIONAL_AWARE)] {
        let job = "[a]\nrw=randwrite\nbsrange=64k-1m\niodepth=8\nnumjobs=3\nmax_open_zones=2\n\
                   number_ios=1500\nwrite_lat_log=a\n";
        let ran = run(drive, &format!("{}{job}", region(first)));
        ran.assert_in_policy();
        let resets: u64 = ran.outcome.jobs.iter().map(|job| job.zone_resets).sum();
        assert!(resets > 5, "{drive}: {resets}");
        assert_eq!(ran.count(Counter::ZonesReset), resets, "{drive}");
        let mut pointers = [0u64; 3];
        for sample in ran.samples() {
            let zone = sample.offset / ZONE - first;
            let within = sample.offset % ZONE;
            let pointer = &mut pointers[zone as usize];
            assert!(within == *pointer || within == 0, "{drive}: {sample:?}");
            *pointer = within + u64::from(sample.bytes);
        }
        // What is left of a full zone is less than the shortest write.
        let partial = pointers.iter().filter(|p| (1..=ZONE - 65_536).contains(*p));
        assert!(partial.count() <= 2, "{drive}: {pointers:?}");
        if drive == MANAGED {
            assert!(ran.present(Gauge::OpenZones) <= 2);
        }
    }
}

#[test]
fn without_a_limit_of_its_own_a_job_keeps_that_of_the_drive() {
    let job = format!(
        "[a]\nrw=randwrite\nbs=64k\niodepth=32\nnumber_ios=3000\noffset={}\nsize={}\n",
        CONVENTIONAL * ZONE,
        1000 * ZONE
    );
    let ran = run(MANAGED, &job);
    ran.assert_in_policy();
    assert_eq!(ran.present(Gauge::OpenZones), 128);
}

#[test]
fn reads_stay_within_what_was_written() {
    for (drive, first) in [(MANAGED, CONVENTIONAL), (AWARE, CONVENTIONAL_AWARE)] {
        let job = "[w]\nrw=write\nbs=1m\nio_size=300m\n[r]\nstonewall\nrw=randread\nbs=128k\n\
                   iodepth=4\nnumjobs=2\nnumber_ios=400\nwrite_lat_log=r\n\
                   [s]\nstonewall\nrw=read\nbs=1m\nwrite_lat_log=s\n";
        let ran = run(drive, &format!("{}{job}", region(first)));
        ran.assert_in_policy();
        let end = first * ZONE + (300 << 20);
        for sample in ran.outcome.jobs[1].samples.iter() {
            assert!(sample.offset + u64::from(sample.bytes) <= end, "{sample:?}");
            assert!(sample.bytes == 128 << 10);
        }
        // A third of what was drawn lies in the zone that holds nothing; none is lost.
        let in_second = |s: &&Sample| s.offset >= (first + 1) * ZONE;
        let second = ran.outcome.jobs[1].samples.iter().filter(in_second).count();
        assert!((180..350).contains(&second), "{second}");
        // In sequence the 300 MiB are read over and over until as much as the region was read.
        let passes = ran.outcome.jobs[3].samples.iter();
        assert_eq!(passes.filter(|s| s.offset == first * ZONE).count(), 3);
        assert_eq!(ran.outcome.jobs[3].direction(Direction::Read).ios, 768);
    }
}

#[test]
fn reads_past_the_write_pointer_are_made_when_they_are_asked_for() {
    let job = "[r]\nrw=randread\nbs=128k\nnumber_ios=200\n";
    let ran = run(MANAGED, &format!("{}{job}", region(CONVENTIONAL)));
    assert_eq!(ran.outcome.jobs[0].ios(), 0);
    assert!(ran.outcome.jobs[0].ran_out_of_zones);
    let ran = run(MANAGED, &format!("{}{job}read_beyond_wp=1\n", region(CONVENTIONAL)));
    assert_eq!(ran.count(Counter::ReadsPastPointer), 200);
    assert!(!ran.outcome.jobs[0].ran_out_of_zones);
}

#[test]
fn a_mixed_job_writes_until_there_is_something_to_read() {
    let job = "[m]\nrw=randrw\nrwmixread=70\nbs=64k\niodepth=4\nnumber_ios=1000\nwrite_lat_log=m\n";
    let ran = run(MANAGED, &format!("{}{job}", region(CONVENTIONAL)));
    ran.assert_in_policy();
    let job = &ran.outcome.jobs[0];
    assert_eq!(job.samples[0].direction, Direction::Write);
    assert!((600..780).contains(&job.direction(Direction::Read).ios));
    assert_eq!(ran.count(Counter::ReadsPastPointer), 0);
}

#[test]
fn zones_are_skipped_trimmed_and_reset_now_and_then() {
    // Every third zone of nine.
    let skip = format!(
        "[w]\nrw=write\nbs=8m\nzoneskip=512m\noffset={}\nsize={}\nio_size=768m\nwrite_lat_log=w\n",
        CONVENTIONAL * ZONE,
        9 * ZONE
    );
    let ran = run(MANAGED, &skip);
    ran.assert_in_policy();
    let zones = ran.samples();
    let mut zones: Vec<u64> = zones.iter().map(|s| s.offset / ZONE - CONVENTIONAL).collect();
    zones.dedup();
    assert_eq!(zones, [0, 3, 6]);

    let trim =
        "[w]\nrw=write\nbs=8m\nio_size=512m\n[t]\nstonewall\nrw=randtrim\nbs=256m\nnumber_ios=5\n";
    let ran = run(MANAGED, &format!("{}{trim}", region(CONVENTIONAL)));
    ran.assert_in_policy();
    assert_eq!(ran.outcome.jobs[1].direction(Direction::Trim).ios, 2);
    assert_eq!(ran.count(Counter::ZonesReset), 2);

    let often = "[w]\nrw=randwrite\nbs=1m\nnumber_ios=600\nzone_reset_threshold=0.5\n\
                 zone_reset_frequency=0.1\n";
    let ran = run(MANAGED, &format!("{}{often}", region(CONVENTIONAL)));
    ran.assert_in_policy();
    // 384 writes fill half of the region; a tenth of a part of the others resets a zone.
    assert!((2..25).contains(&ran.outcome.jobs[0].zone_resets));
}

#[test]
fn a_region_is_made_of_whole_zones_and_conventional_ones_are_written_anywhere() {
    let odd = format!(
        "[w]\nrw=write\nbs=4m\noffset={}\nsize={}\nwrite_lat_log=w\n",
        CONVENTIONAL * ZONE + 4096,
        2 * ZONE
    );
    let ran = run(MANAGED, &odd);
    ran.assert_in_policy();
    let samples = ran.samples();
    assert_eq!(samples[0].offset, (CONVENTIONAL + 1) * ZONE);
    assert_eq!(samples.len(), 64);
    let over = format!(
        "[w]\nrw=write\nbs=96m\noffset={}\nsize={}\nwrite_lat_log=w\n",
        (CONVENTIONAL - 1) * ZONE,
        2 * ZONE
    );
    let ran = run(MANAGED, &over);
    ran.assert_in_policy();
    let mib: Vec<u32> = ran.samples().iter().map(|s| s.bytes >> 20).collect();
    // The third is cut where the zones with a write pointer begin; what is left of a zone is less
    // than a write.
    assert_eq!(mib[..2], [96, 96]);
    assert_eq!(mib[2], 64);
}

#[test]
fn jobs_that_zones_have_no_place_for_are_refused_by_name() {
    let bs = |bytes: u64| format!("{}[a]\nrw=write\nbs={bytes}\n", region(CONVENTIONAL));
    let with = |line: &str| format!("{}[a]\nrw=randwrite\n{line}\n", region(CONVENTIONAL));
    for (drive, text, words) in [
        (
            "cmr-500gb-7200",
            "[a]\nrw=read\nsize=1g\n".to_string(),
            "job `a`: zonemode=zbd: accepted: none or strided, because this drive has no zones",
        ),
        ("st5000as0011", "[a]\nrw=read\nsize=1g\n".to_string(), "has no zones"),
        (
            MANAGED,
            with("zonesize=1g"),
            "zonesize=1073741824: accepted: 268435456, the size of the zones",
        ),
        (MANAGED, with("max_open_zones=129"), "max_open_zones=129: accepted: 0 to 128"),
        (
            MANAGED,
            format!("{}[b]\nrw=write\nmax_open_zones=4\n", with("max_open_zones=2")),
            "max_open_zones=4: accepted: the same for all jobs (2 before)",
        ),
        (MANAGED, with("zoneskip=1m"), "zoneskip=1048576: accepted: a multiple"),
        (MANAGED, with("zonerange=1g"), "zonerange: accepted: together with zonemode=strided"),
        (MANAGED, with("zone_reset_frequency=2"), "zone_reset_frequency=2: accepted: 0 to 1"),
        (MANAGED, with("direct=0"), "zonemode=zbd: accepted: with direct=1"),
        (MANAGED, bs(512), "bs=a part of 4 KiB: accepted: multiples of 4 KiB"),
        (MANAGED, bs(2 * ZONE), "bs=536870912: accepted: at most the size of the zones"),
        (
            MANAGED,
            format!("{}[a]\nrw=write:8k\n", region(CONVENTIONAL)),
            "rw=..:8192: accepted: zoneskip instead",
        ),
        (
            MANAGED,
            format!("{}[a]\nrw=trim\nbs=1m\n", region(CONVENTIONAL)),
            "bs=1048576: accepted: 268435456, because a trim resets a zone",
        ),
        (
            MANAGED,
            format!("[a]\nrw=write\noffset={}\nsize=64m\n", CONVENTIONAL * ZONE),
            "accepted: at least one whole zone",
        ),
        (MANAGED, with("job_max_open_zones=2"), "job_max_open_zones=2: refused"),
        (MANAGED, with("zonecapacity=1m"), "zonecapacity=1m: refused"),
        (
            MANAGED,
            "[a]\nzonemode=none\nmax_open_zones=2\n".to_string(),
            "max_open_zones: accepted: together with zonemode=zbd",
        ),
    ] {
        let error = try_run(drive, &text).err().unwrap_or_else(|| panic!("{text}"));
        assert!(error.contains(words), "{text:?}: {error}");
    }
}

/// The job files that a user can repeat a published measurement with, on the whole drive.
#[test]
fn the_job_files_of_published_measurements_give_their_figures() {
    let read = |text: &str| {
        let mut session = session_of(MANAGED);
        let file = JobFile::parse("job.fio", text, session.device_bytes()).expect("a job file");
        let outcome = session.run(&file.jobs).expect("jobs that fit");
        assert!(outcome.error().is_none());
        outcome.reported(&file.jobs)
    };
    macro_rules! ran {
        ($name:literal) => {
            read(include_str!(concat!("../../../../../experiments/zoned/", $name, ".fio")))
        };
    }
    let near = |what: &str, value: f64, published: f64, share: f64| {
        println!("{what}: {value:.1}, published {published}");
        assert!((value / published - 1.0).abs() <= share, "{what}: {value}");
    };
    let mib = f64::from(1 << 20);
    let written = ran!("sequential-write");
    let of = written[0].direction(Direction::Write);
    near("V31, MiB/s", of.bytes_per_s() / mib, 236.0, 0.05);
    let beyond = ran!("read-beyond");
    let of = beyond[0].direction(Direction::Read);
    near("V33, MiB/s", of.bytes_per_s() / mib, 353.0, 0.05);
    let random = ran!("random-write");
    let of = random[0].direction(Direction::Write);
    near("V38, MiB/s", of.bytes_per_s() / mib, 125.0, 0.25);
    for (id, outcome, iops, iops_share) in [
        ("V34", ran!("random-read-written"), 118.0, 0.1),
        ("V35", ran!("random-read-conventional"), 215.0, 0.15),
    ] {
        let of = outcome.last().expect("reads").direction(Direction::Read);
        near(id, of.ios_per_s(), iops, iops_share);
    }
}
