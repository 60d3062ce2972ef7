//! Job files: ten ordinary ones run or are refused with the option named.

use imbrex_sim::fio::{
    Direction, JobFile, OPTIONS, Outcome, REFUSED, Session, Setting, WITH_ONE_VALUE,
    WITHOUT_EFFECT, ZBD_OPTIONS, ZONE_OPTIONS, document, log_files, summary,
};
use imbrex_stack::{BuildOptions, StackConfig};

const GIB: u64 = 1 << 30;

fn parse(text: &str) -> Result<JobFile, String> {
    JobFile::parse("job.fio", text, 500 * GIB).map_err(|error| error.to_string())
}

pub(super) fn run(text: &str) -> (JobFile, Outcome) {
    let file = parse(text).expect("a job file that is accepted");
    let config = StackConfig::of_drive("cmr-500gb-7200", &[]).expect("a drive of the library");
    let mut options = BuildOptions::simulate(1);
    options.size_bytes = Some(400 * GIB);
    let mut session = Session::open(&config, &options, &file.jobs).expect("a session");
    let outcome = session.run(&file.jobs).expect("jobs that fit");
    (file, outcome)
}

fn ios(outcome: &Outcome, direction: Direction) -> Vec<u64> {
    let jobs = outcome.jobs.iter();
    jobs.map(|job| job.direction(direction).ios).collect()
}

#[test]
fn random_reads_beside_random_writes() {
    let (_, outcome) = run("
        [global]
        rw=randread
        size=128m   ; of the device
        ioengine=libaio
        direct=1
        [reader]
        iodepth=4
        number_ios=300
        [writer]
        rw=randwrite
        numjobs=2
        number_ios=200
    ");
    assert_eq!(ios(&outcome, Direction::Read), [300, 0, 0]);
    assert_eq!(ios(&outcome, Direction::Write), [0, 200, 200]);
    assert_eq!(outcome.jobs[0].iodepth, 4);
}

#[test]
fn a_mix_by_percent_with_lengths_by_direction() {
    let (file, outcome) = run("
        # mixed
        [mixed]
        rw=randrw
        rwmixwrite=25
        bs=4k,8k
        size=1g
        io_size=8m
        direct=1
        runtime=60
    ");
    let (read, write) = (ios(&outcome, Direction::Read)[0], ios(&outcome, Direction::Write)[0]);
    let bytes = read * 4096 + write * 8192;
    assert!((8 << 20..(8 << 20) + 8192).contains(&bytes));
    assert!((0.7..0.8).contains(&(read as f64 / (read + write) as f64)));
    assert!(file.notes.is_empty(), "{:?}", file.notes);
}

#[test]
fn sequential_passes_behind_stonewalls() {
    let (_, outcome) = run("
        [global]
        bs=1m
        size=10%
        io_size=64m
        direct=1
        [fill]
        rw=write
        [read-back]
        stonewall
        rw=read
        [backwards]
        stonewall
        rw=read:-2m
        offset=1g
    ");
    assert_eq!(ios(&outcome, Direction::Write), [64, 0, 0]);
    assert_eq!(ios(&outcome, Direction::Read), [0, 64, 64]);
    assert_eq!(outcome.jobs.iter().map(|job| job.group).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_journal_with_a_flush_after_each_write() {
    let (_, outcome) = run("
        [journal]
        rw=write
        bs=16k
        size=1m
        fdatasync=1
        direct=1
        [database]
        rw=randwrite
        bsrange=4k-16k
        size=256m
        io_size=2m
        sync=dsync
        direct=1
    ");
    assert_eq!(outcome.jobs[0].flushes.spread.count, 63);
    assert_eq!(outcome.jobs[1].flushes.spread.count, 0);
}

#[test]
fn surfing_with_pauses_and_rates() {
    let (_, outcome) = run("
        [global]
        direct=1
        time_based
        runtime=2s
        size=1g
        [surf]
        rw=randread
        thinktime=10ms
        thinktime_blocks=4
        [stream]
        rw=read
        bs=64k
        rate=2m
        [ticks]
        rw=randwrite
        rate_iops=20,50
    ");
    let stream = &outcome.jobs[1];
    let rate = stream.direction(Direction::Read).bytes_per_s() / (2 << 20) as f64;
    assert!((0.9..1.1).contains(&rate), "{rate}");
    assert!((95..=101).contains(&ios(&outcome, Direction::Write)[2]));
    assert!(outcome.jobs.iter().all(|job| job.runtime.as_seconds() > 1.9));
}

#[test]
fn a_file_server_with_split_lengths_and_zipf() {
    let (_, outcome) = run("
        [server]
        rw=randrw
        rwmixread=80
        bssplit=4k/60:16k/25:64k
        random_distribution=zipf:1.2
        size=10g
        number_ios=500
        iodepth=8
        ioengine=io_uring
        norandommap
        direct=1
        group_reporting
        numjobs=4
    ");
    assert_eq!(outcome.jobs.len(), 4);
    assert!(outcome.jobs.iter().all(|job| job.ios() == 500));
}

#[test]
fn zones_with_strides() {
    let (_, outcome) = run("
        [strided]
        rw=read
        zonemode=strided
        zonesize=1m
        zonerange=2m
        zoneskip=6m
        bs=256k
        size=64m
        io_size=16m
        direct=1
        write_lat_log=strided
    ");
    let offsets: Vec<u64> = outcome.jobs[0].samples.iter().map(|s| s.offset >> 20).collect();
    assert!(offsets.iter().all(|mib| mib % 8 == 0), "{offsets:?}");
    assert_eq!(offsets.len(), 64);
    assert_eq!(offsets[63], 56);
}

/// Four that have no meaning on a model: the error names file, line, option, value and why.
#[test]
fn what_has_no_meaning_is_refused_by_name() {
    for (text, words) in [
        ("[ss]\nrw=randwrite\nsteadystate=iops:5%", "job.fio:3: steadystate=iops:5%: refused"),
        ("[latency]\nlatency_target=200us\n", "job.fio:2: latency_target=200us: refused"),
        ("[v]\nrw=write\nverify=crc32c", "job.fio:3: verify=crc32c: refused"),
        ("[v]\nverify_dump=1", "job.fio:2: verify_dump=1: refused"),
        ("[cpu]\nioengine=cpuio\ncpuload=50", "job.fio:2: ioengine=cpuio: accepted: libaio"),
        ("[z]\nzonemode=zones", "job.fio:2: zonemode=zones: accepted: none, strided or zbd"),
        ("[a]\nrw=randomly", "job.fio:2: rw=randomly: accepted: read, write"),
        ("[a]\nbs=4x", "job.fio:2: bs=4x: accepted: a size"),
        ("[a]\niodept=4", "did you mean `iodepth`?"),
        ("[a]\niodepth=0", "iodepth=0: accepted: a whole number from 1"),
        ("[a]\niodepth", "job.fio:2: iodepth: accepted: a value"),
        ("[a]\nsize=${SIZE}", "accepted: a value without variables"),
        ("include other.fio", "before the first section"),
        ("[a]\ninclude other.fio", "accepted: the included lines"),
        ("[a]\nfilename=/dev/sda:/dev/sdb", "accepted: one name"),
        ("[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb", "job.fio:4: filename=/dev/sdb"),
        ("[a]\nsize=1t", "job.fio:1: job `a`: size=1099511627776 at offset 0"),
        ("[a]\nrate=1m\nrate_iops=5", "accepted: one of them"),
        ("[a\nrw=read", "job.fio:1: `[a`"),
        ("[global]\nrw=read", "no job"),
        ("", "no job"),
        ("[a]\nbssplit=4k/50:8k/20", "add up to 100"),
        ("[a]\nsize=1g\nkb_base=1000", "a place before all sizes"),
        ("[a]\nzonesize=0", "zonerange=0 with zonesize=0"),
        ("[a]\nruntime=fast", "accepted: a time"),
        ("[a]\niodepth_batch=8", "accepted: 1 (requests are issued one by one)"),
        ("[a]\ndirect=yes", "direct=yes: accepted: 0 or 1"),
        ("[a]\ntime_based", "time_based=1: accepted: together with runtime"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(words), "{text:?}: {error}");
        assert!(error.starts_with("job.fio:"), "{error}");
    }
}

#[test]
fn no_line_makes_the_reader_panic() {
    let values =
        ["", "=", "=0", "=-1", "=99999999999999999999", "=a:b,c/d", "=1%", "=4k-", "=,,,,", "=é"];
    let names = OPTIONS.iter().chain(ZONE_OPTIONS).chain(ZBD_OPTIONS);
    let names = names.copied();
    let names = names.chain(WITH_ONE_VALUE.iter().map(|(name, ..)| *name));
    for name in names {
        for value in values {
            let _ = parse(&format!("[é]\n{name}{value}"));
        }
    }
}

#[test]
fn an_engine_without_a_queue_has_no_depth() {
    let file = parse("[a]\niodepth=32\nsize=1m").unwrap();
    assert_eq!(file.jobs[0].iodepth, 1);
    assert!(file.notes[0].contains("iodepth=32 has no effect with ioengine=psync"));
    assert!(file.notes[1].contains("without direct=1"));
    let file = parse("[a]\niodepth=32\nioengine=libaio\ndirect=1\nbs=512").unwrap();
    assert_eq!(file.jobs[0].iodepth, 32);
    assert!(file.notes[0].contains("part of a 4 KiB block"));
}

#[test]
fn the_page_lists_every_option() {
    let page = include_str!("../../../../../docs/fio.md");
    let names = OPTIONS.iter().chain(ZONE_OPTIONS).chain(ZBD_OPTIONS);
    let names = names.copied();
    let names = names
        .chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name))
        .chain(WITH_ONE_VALUE.iter().map(|(name, ..)| *name))
        .chain(REFUSED.iter().map(|(name, _)| *name));
    let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/fio.md does not list {missing:?}");
}

const LOGGED: &str = "
    [logged]
    rw=randrw
    size=1g
    number_ios=400
    direct=1
    write_lat_log=out
    write_bw_log=out
    write_iops_log
    numjobs=2
";

#[test]
fn logs_have_a_line_for_each_request() {
    let (file, outcome) = run(LOGGED);
    let files = log_files(&file, &outcome);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "logged_iops.1.log",
        "logged_iops.2.log",
        "out_bw.1.log",
        "out_bw.2.log",
        "out_clat.1.log",
        "out_clat.2.log",
        "out_lat.1.log",
        "out_lat.2.log",
        "out_slat.1.log",
        "out_slat.2.log",
    ];
    assert_eq!(names, expected);
    let job = &outcome.jobs[1];
    let rows: Vec<Vec<u64>> = files["out_clat.2.log"]
        .lines()
        .map(|line| line.split(", ").map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 400);
    let sum: u64 = rows.iter().filter(|row| row[2] == 0).map(|row| row[1]).sum();
    let reads = &job.direction(Direction::Read).latency.spread;
    assert!((sum as f64 / reads.count as f64 / reads.mean - 1.0).abs() < 1e-9);
    assert!(rows.iter().all(|row| row.len() == 5 && row[3] == 4096 && row[4] == 0));
    assert!(rows.is_sorted_by_key(|row| row[0]));
    let offsets = LOGGED.replace("numjobs=2", "log_offset=1\n per_job_logs=0");
    let (file, outcome) = run(&offsets);
    let files = log_files(&file, &outcome);
    let line = files["out_lat.log"].lines().next().unwrap();
    let cells: Vec<u64> = line.split(", ").map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(cells.len(), 6);
    assert_eq!(cells[4], outcome.jobs[0].samples[0].offset);
}

#[test]
fn averaged_logs_have_a_line_for_each_span_and_direction() {
    let (file, outcome) = run(&LOGGED.replace("numjobs=2", "log_avg_msec=500"));
    let files = log_files(&file, &outcome);
    let cells = |name: &str| -> Vec<Vec<u64>> {
        let rows = files[name].lines();
        rows.map(|line| line.split(", ").map(|cell| cell.parse().unwrap()).collect()).collect()
    };
    let iops = cells("logged_iops.1.log");
    let full: Vec<&Vec<u64>> = iops.iter().filter(|row| row[0] % 500 == 0).collect();
    let requests: u64 = full.iter().map(|row| row[1] / 2).sum();
    assert!(full.len() >= 4 && (300..=400).contains(&requests), "{iops:?}");
    let bandwidth = cells("out_bw.1.log");
    assert!(bandwidth.iter().zip(&iops).all(|(b, i)| b[1].abs_diff(i[1] * 4) <= 4));
    let job = &outcome.jobs[0];
    let most = job.samples.iter().map(|sample| sample.latency_ns).max().unwrap();
    assert!(cells("out_lat.1.log").iter().all(|row| row[1] < most && row[3] == 0));
    let largest = LOGGED.replace("numjobs=2", "log_avg_msec=500\n log_max_value=1");
    let (file, outcome) = run(&largest);
    let log = &log_files(&file, &outcome)["out_lat.1.log"];
    assert!(log.contains(&format!(" {most}, ")), "{most}: {log}");
}

#[test]
fn a_document_and_a_summary_say_what_was_done() {
    let (file, outcome) = run("
        [global]
        size=1g
        direct=1
        [a]
        rw=randrw
        numjobs=3
        number_ios=100
        group_reporting
        description=three at once
        [b]
        stonewall
        rw=write
        fsync=10
        number_ios=100
        percentile_list=50:99
    ");
    let setting =
        Setting { system: "disk".to_string(), device_bytes: 400 * GIB, seed: 1, scale: 1 };
    let document = document(&file, &outcome, &setting);
    let text = serde_json::to_string(&document).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let jobs = value["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    let total = |job: &serde_json::Value, way: &str| job[way]["total_ios"].as_u64().unwrap();
    assert_eq!(total(&jobs[0], "read") + total(&jobs[0], "write"), 300);
    assert_eq!(jobs[0]["job options"]["rw"], "randrw");
    assert_eq!(value["global options"]["size"], "1g");
    assert_eq!(total(&jobs[1], "sync"), 9);
    let list = jobs[1]["write"]["clat_ns"]["percentile"].as_object().unwrap();
    assert_eq!(list.keys().collect::<Vec<_>>(), ["50.000000", "99.000000"]);
    for job in jobs {
        let of = |name: &str| -> f64 {
            let steps = job[name].as_object().unwrap().values();
            steps.map(|share| share.as_f64().unwrap()).sum()
        };
        let whole = of("latency_ns") + of("latency_us") + of("latency_ms");
        assert!((whole - 100.0).abs() < 1e-6, "{whole}");
        // As in fio a flush has a depth, and is not among the requests that the shares are of.
        let requests: u64 = ["read", "write", "trim"].map(|way| total(job, way)).iter().sum();
        let flushes = 100.0 * total(job, "sync") as f64 / requests as f64;
        assert!((of("iodepth_level") - 100.0 - flushes).abs() < 1e-6);
        assert!((of("iodepth_submit") - 100.0).abs() < 1e-6);
        assert!((of("iodepth_complete") - 100.0).abs() < 1e-6);
    }
    let write = &jobs[1]["write"];
    let bw = write["io_bytes"].as_f64().unwrap() / jobs[1]["job_runtime"].as_f64().unwrap() * 1e3;
    assert!((bw / write["bw_bytes"].as_f64().unwrap() - 1.0).abs() < 0.02);
    let words = summary(&file, &outcome, &setting);
    for part in [
        "a: (groupid=0, jobs=3): err= 0",
        "Description  : [three at once]",
        "  write: IOPS=",
        "fsync/fdatasync",
        "Run status group 1 (all jobs):",
        "issued rwts: total=0,100,0,9",
    ] {
        assert!(words.contains(part), "no {part:?} in\n{words}");
    }
}
