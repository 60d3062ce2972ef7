//! Host-managed drives from their files, against what zonedstorage.io measured on an HGST HC620.

use imbrex_core::buffer::ContentKind;
use imbrex_core::error::IoError;
use imbrex_core::operation::Operation;
use imbrex_core::units::Duration;
use imbrex_core::zone::{DESCRIPTOR_BYTES, ZoneCondition, ZoneDescriptor};
use imbrex_sim::bench::Subject;
use imbrex_sim::bench::host_managed::{
    four_streams, measure, mib_per_s, open_past_limit, percentile_ms, random_write, read_beyond,
    sequential_write,
};
use imbrex_sim::bench::zoned_host::{Step, Stream, ZonedDrive};
use imbrex_stack::{BuildOptions, Plan, StackConfig};

const DRIVE: &str = "hc620-15tb";
const SEED: u64 = 1;

fn subject() -> Subject {
    Subject {
        drive: DRIVE.to_string(),
        settings: Vec::new(),
        seed: SEED,
        quick: false,
        traces: None,
    }
}

/// A small host-managed device on the medium of a drive without zones.
fn stack(node: &str) -> String {
    format!(
        "name = 'zoned'\nsize = '256 MiB'\n\
         [[node]]\nname = 'smr'\nkind = 'disk'\ndrive = 'st5000as0011'\n\
         [[node]]\nname = 'zones'\nkind = 'host-managed'\nbelow = 'smr'\n{node}"
    )
}

fn error_of(text: &str) -> String {
    let plan = StackConfig::from_text("zoned.toml", text, &[])
        .and_then(|config| Plan::new(&config, &BuildOptions::simulate(SEED)));
    let built = plan.and_then(|plan| plan.build(None, None, ContentKind::Counted));
    built.err().expect("an error").to_string()
}

#[test]
fn the_15_tb_drive_has_the_zones_it_reports() {
    for (name, zones) in [(DRIVE, 55_880), ("hc620-14tb", 52_156)] {
        let options = BuildOptions::simulate(SEED);
        let drive = ZonedDrive::open(name, &[], &options, ContentKind::Counted).unwrap();
        assert_eq!(drive.zones.zones(), zones);
        assert_eq!(drive.zones.conventional_zones, 524);
        assert_eq!(drive.zones.open_max, Some(128));
        assert_eq!(drive.zone(zones - 1).blocks.bytes(), 256 << 20, "no runt");
    }
}

#[test]
fn sequential_writes_run_at_the_rate_of_the_medium() {
    let run = measure(&subject(), sequential_write).unwrap();
    let rate = mib_per_s(&run);
    assert!((236.0 * 0.95..236.0 * 1.05).contains(&rate), "V31: {rate}");
    let median = percentile_ms(&run, 50.0);
    assert!((8.23 * 0.95..8.23 * 1.05).contains(&median), "V31: {median}");
}

#[test]
fn reads_past_the_pointer_run_at_the_rate_of_the_interface() {
    let run = measure(&subject(), read_beyond).unwrap();
    let rate = mib_per_s(&run);
    assert!((353.0 * 0.95..353.0 * 1.05).contains(&rate), "V33: {rate}");
    let median = percentile_ms(&run, 50.0);
    assert!((5.67 * 0.95..5.67 * 1.05).contains(&median), "V33: {median}");
}

#[test]
fn opening_past_the_limit_is_refused_with_the_sense_of_the_standard() {
    let (open, error) = open_past_limit(&subject()).unwrap();
    assert_eq!((open, error), (128, IoError::ZoneResources), "V39b");
    let sense = error.sense().unwrap();
    assert_eq!(sense.key, "DATA PROTECT");
    assert_eq!(sense.additional, "INSUFFICIENT ZONE RESOURCES");
}

#[test]
fn several_zones_written_at_once_cost_seeks() {
    let random = mib_per_s(&measure(&subject(), random_write).unwrap());
    let streams = mib_per_s(&measure(&subject(), four_streams).unwrap());
    let one = mib_per_s(&measure(&subject(), sequential_write).unwrap());
    eprintln!("V38: {random:.0} MiB/s; V39: {streams:.0} MiB/s");
    assert!(random < streams && streams < one, "{random} {streams} {one}");
}

#[test]
fn a_report_of_zones_reads_as_the_standard_says() {
    let config = StackConfig::from_text(
        "zoned.toml",
        &stack("zone_size = '32 MiB'\nconventional_zones = 1\nreport_zones = '7 ms'"),
        &[],
    )
    .unwrap();
    let options = BuildOptions::simulate(SEED);
    let mut drive = ZonedDrive::of_stack(&config, &options, ContentKind::Bytes).unwrap();
    let (write, mut report) = (drive.zone(2), drive.zone(0));
    (report.blocks.0, report.start.0) = (1, 0);
    let mut write = write;
    write.blocks.0 = 10;
    let steps = [Step::new(Operation::WRITE, write), Step::new(Operation::ZoneReport, report)];
    let mut reported = Vec::new();
    let run = drive
        .run_observed(vec![Stream::new(1, steps.into_iter())], &mut |bytes| {
            reported = bytes.to_vec();
        })
        .unwrap();
    assert_eq!(Duration(run.ns[1]), Duration::from_ms(7));
    let zones: Vec<ZoneDescriptor> = reported
        .chunks_exact(DESCRIPTOR_BYTES)
        .skip(1)
        .map_while(|bytes| ZoneDescriptor::decode(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(zones.len(), 8);
    assert_eq!(zones[0].condition, ZoneCondition::NoWritePointer);
    assert_eq!(zones[2].condition, ZoneCondition::ImplicitlyOpen);
    assert_eq!(zones[2].write_pointer, Some(write.end()));
    assert_eq!(zones[3].condition, ZoneCondition::Empty);
}

#[test]
fn what_a_zoned_stack_cannot_be_is_said() {
    let rows = [
        (
            stack(""),
            "node `zones`: `zone_size` is needed, because the drive `Seagate ST5000AS0011` has none",
        ),
        (
            stack("zone_size = '5000 B'"),
            "node `zones`: zone_size = \"5000 B\"; accepted: a multiple of 4 KiB up to 1 TiB",
        ),
        (stack("zone_size = '32 MiB'\nmax_open = 0"), "at least 1 open"),
        (
            stack("zone_size = '32 MiB'\noffline_zones = [8]"),
            "node `zones`: zone 8 cannot be lost: the zones are 0 to 7",
        ),
        (stack("zone_size = '32 MiB'\nmax_opne = 3"), "did you mean `max_open`?"),
        (
            stack("zone_size = '32 MiB'")
                + "\n[[node]]\nname = 'ssd'\nkind = 'disk'\ndrive = '850evo'\n\
                   [[node]]\nname = 'cache'\nkind = 'write-back-cache'\ncapacity = '4 MiB'\n\
                   policy = 'lru'\nbelow = { flash = 'ssd', backing = 'zones' }\n",
            "node `zones`: its zones must be written in sequence, which the node above does not do; accepted above it: kind = \"raid4smr\", as one of its homes",
        ),
    ];
    for (text, expected) in rows {
        let error = error_of(&text);
        assert!(error.contains(expected), "{error}");
    }
}
