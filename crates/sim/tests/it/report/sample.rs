//! A report of seven systems with made-up but plausible numbers, through the public interface.

use std::collections::BTreeMap;

use imbrex_core::operation::Cause;
use imbrex_drives::HeatMapRecorder;
use imbrex_report::{
    ByCause, Cell, Column, DiskAreaUse, DiskUse, NodeTable, Recorder, ReplayMode, Report, Run,
    Series, SimulationCost, TableOfKind, Workload, WorkloadKind,
};
use serde_json::json;

/// The ready-made stacks, with the share of host bytes that is rewritten home.
const SYSTEMS: [(&str, f64); 7] = [
    ("cmr-only", 0.0),
    ("smr-only", 31.0),
    ("lru", 14.2),
    ("lru-band", 7.9),
    ("pore-cf", 4.4),
    ("pore-pf", 4.1),
    ("pore", 3.46),
];

/// A report whose workload is of `kind`.
pub fn report(kind: WorkloadKind) -> Report {
    let mut report = Report::new(
        7,
        Workload {
            path: "workloads/pgbench.imbrex.zst".to_string(),
            kind,
            requests: 412_000,
            sha256: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into()),
            format: Some("imbrex".to_string()),
            skipped_lines: BTreeMap::from([("zero length".to_string(), 12)]),
            repeat: 1,
            new_blocks: false,
            captured_response_ms: None,
            time_inversions: 0,
            combination: None,
        },
    );
    report.commit = "0123456789abcdef0123456789abcdef01234567".to_string();
    report.runs = SYSTEMS.iter().map(|(system, home)| run(system, *home)).collect();
    report
}

/// Simulates nothing: random numbers shaped like a run in which each host byte costs `home` bytes.
pub fn run(system: &str, home: f64) -> Run {
    let has_cache = !system.ends_with("-only");
    let has_bands = system != "cmr-only";
    let mut random = Random(system.bytes().map(u64::from).sum());
    let mut recorder = Recorder::new();
    let mut band_writes = HeatMapRecorder::new(96, 160);
    let mut now_ns = 0u64;
    let mut fill = 0u64;
    let (capacity, mut bands) = (4_000u64, 0u64);
    for i in 0..60_000u64 {
        let write = random.below(10) < 7;
        let mut latency_ns = match random.below(100) {
            0..60 if has_cache => 40_000 + random.below(80_000),
            0..97 => 4_000_000 + random.below(9_000_000),
            _ => 20_000_000 + random.below(60_000_000),
        };
        if write && has_bands && random.below(3) < 2 {
            fill += 1 + (home / 8.0) as u64;
            if fill >= capacity {
                latency_ns += 700_000_000 + random.below(1_500_000_000);
                fill = fill.saturating_sub(600 + random.below(2_500));
                let phase = (i / 6_000) * 3_000;
                for _ in 0..(home as u64).max(1) {
                    let band = phase + random.below(9_000);
                    band_writes.add(now_ns + latency_ns, (1 << 20) + band * 300, 6_400);
                    bands += 1;
                }
            }
        }
        now_ns += latency_ns;
        if has_bands {
            recorder.persistent_cache_used(now_ns, fill, capacity);
        }
        match write {
            true => recorder.write_completed(now_ns, latency_ns, 16_384),
            false => recorder.read_completed(now_ns, latency_ns, 8_192),
        }
    }
    let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
    recorder.finish(now_ns, &mut run);
    run.figures.band_writes = band_writes.heat_map(now_ns);
    run.host.requests = 60_000;
    run.host.read_blocks = 36_000;
    run.host.write_blocks = 168_000;
    if has_cache {
        run.hits.read_hits = 19_000 + random.below(3_000);
        run.hits.write_hits = 119_000 + random.below(9_000);
        run.cache.capacity_blocks = Some(81_920);
        run.inputs.footprint_bytes = Some(16 << 30);
    }
    let host_bytes = (run.host.write_blocks * 4096) as f64;
    if has_bands {
        run.log.bands = Some(203_000);
        run.log.band_seed = Some(7);
        run.rewrites.bands_rewritten = bands * 40;
        run.rewrites.band_bytes_written = (home * host_bytes) as u64;
        run.rewrites.band_bytes_read = run.rewrites.band_bytes_written;
        run.log.scratch_bytes_written = run.rewrites.band_bytes_written;
        run.log.persistent_cache_bytes = Some(64 << 20);
        run.log.persistent_cache_bytes_appended = (0.8 * host_bytes) as u64;
        run.log.persistent_cache_bytes_merged = (0.7 * host_bytes) as u64;
        run.log.persistent_cache_full_s = home * 1.7;
    }
    run.disks = disks(has_cache, home, host_bytes);
    run.nodes = run.disks.iter().map(|disk| (disk.name.clone(), counts(disk))).collect();
    run.figures.tables = run.disks.iter().flat_map(tables).collect();
    run.configuration = json!({"node": [{"name": "smr", "kind": "disk", "drive": "</script>"}]});
    run.simulation =
        SimulationCost { wall_s: 0.2, requests_per_s: 3e5, peak_rss_bytes: Some(40 << 20) };
    run.derive_ratios();
    run
}

fn counts(disk: &DiskUse) -> BTreeMap<String, u64> {
    [("reads", disk.reads), ("writes", disk.writes)].map(|(name, n)| (name.into(), n)).into()
}

const AREAS: TableOfKind = TableOfKind {
    name: "areas",
    title: "Areas",
    sentence: "What was done in each.",
    over_time: false,
    columns: &[
        Column::new("area", "", "Its name."),
        Column::new("read_bytes", "bytes", "Bytes read."),
        Column::new("write_time_s", "s", "Time busy writing."),
    ],
};

const WRITES: TableOfKind = TableOfKind {
    name: "writes",
    title: "Writes",
    sentence: "What was written when.",
    over_time: true,
    columns: &[TableOfKind::TIME, Column::new("written_mib_per_s", "MiB/s", "Written.")],
};

/// A table and a series of a disk.
fn tables(disk: &DiskUse) -> [NodeTable; 2] {
    let row = |area: &DiskAreaUse| {
        let name = Cell::Text(area.name.clone());
        vec![name, Cell::Count(area.read_bytes), Cell::Number(area.write_time_s)]
    };
    let rows = disk.areas.iter().map(row).collect();
    let series = Series { bucket_s: 2.5, values: vec![0.5, 12.0, 7.25] };
    [
        NodeTable::new(&disk.name, "disk", &AREAS, rows),
        NodeTable::new(&disk.name, "disk", &WRITES, series.rows()),
    ]
}

fn disks(has_cache: bool, home: f64, host_bytes: f64) -> Vec<DiskUse> {
    let mut disks = vec![];
    let share = |factor: f64| (factor * host_bytes) as u64;
    let shape = |name: &str, drive: &str| DiskUse {
        name: name.to_string(),
        drive: drive.to_string(),
        drive_sha256: Some(
            "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752".into(),
        ),
        write_cache: !drive.contains("ssd"),
        reads: 12_000,
        writes: 34_000,
        read_bytes: by_cause(&[(Cause::Host, share(0.2)), (Cause::Cleaning, share(home))]),
        written_bytes: ByCause::default(),
        write_amplification: ByCause::default(),
        seek_time_s: 0.0,
        busy_time_s: 0.0,
        busy_time_by_cause_s: ByCause::default(),
        areas: vec![DiskAreaUse {
            name: "bands".to_string(),
            read_bytes: share(home),
            written_bytes: share(home),
            read_time_s: 11.0,
            write_time_s: 12.5,
        }],
    };
    if has_cache {
        let mut ssd = shape("ssd", "generic-sata-ssd");
        ssd.written_bytes = by_cause(&[(Cause::Host, share(1.0)), (Cause::Metadata, share(0.01))]);
        ssd.busy_time_by_cause_s = by_cause(&[(Cause::Host, 21.0), (Cause::Destage, 4.0)]);
        disks.push(ssd);
    }
    let mut smr = shape("smr", "st5000as0011");
    let (host, destage) = if has_cache { (0.0, 0.8) } else { (1.0, 0.0) };
    smr.written_bytes = by_cause(&[
        (Cause::Host, share(host)),
        (Cause::Destage, share(destage)),
        (Cause::Cleaning, share(2.0 * home)),
        (Cause::Metadata, share(0.02)),
    ]);
    smr.busy_time_by_cause_s = by_cause(&[
        (Cause::Host, 90.0 + 300.0 * host),
        (Cause::Destage, 200.0 * destage),
        (Cause::Cleaning, 61.0 * home),
    ]);
    smr.seek_time_s = 80.0 + 12.0 * home;
    disks.push(smr);
    for disk in &mut disks {
        disk.busy_time_s = disk.busy_time_by_cause_s.values().iter().sum();
    }
    disks
}

/// Values of some causes.
fn by_cause<T: Copy + Default>(values: &[(Cause, T)]) -> ByCause<T> {
    let mut by_cause = ByCause::default();
    for (cause, value) in values {
        by_cause[*cause] = *value;
    }
    by_cause
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}
