//! Memory in the place of a drive: its keys, its speed, and what is said of what it survives.

use crate::disks::rig::Rig;
use crate::report::schema_violations;
use crate::simulate::random_writes;
use imbrex_core::buffer::ContentKind;
use imbrex_core::disk::Survival;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Cause, Operation};
use imbrex_drives::DiskOptions;
use imbrex_stack::{BuildOptions, Plan, StackConfig};

const MEMORY: &str = "media = \"memory\"\nsize = \"64 MiB\"\nsurvives = \"nothing\"\n";

fn one(keys: &str) -> String {
    format!("name = \"ram\"\n[[node]]\nname = \"ram\"\nkind = \"disk\"\n{keys}")
}

/// A cache whose flash is memory.
fn cache(survives: &str) -> String {
    format!(
        "name = \"ram\"\n\
         [[node]]\nname = \"ram\"\nkind = \"disk\"\nmedia = \"memory\"\nsize = \"64 MiB\"\n\
         survives = \"{survives}\"\n\
         [[node]]\nname = \"cmr\"\nkind = \"disk\"\ndrive = \"cmr-500gb-7200\"\n\
         [[node]]\nname = \"cache\"\nkind = \"write-back-cache\"\n\
         below = {{ flash = \"ram\", backing = \"cmr\" }}\ncapacity = \"1 MiB\"\npolicy = \"lru\"\n"
    )
}

fn config(text: &str) -> StackConfig {
    StackConfig::from_text("mine.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn keys_that_do_not_go_together_are_refused_with_what_is_accepted() {
    let with = |key: &str| format!("{MEMORY}{key}\n");
    let rows = [
        (
            MEMORY.replace("size = \"64 MiB\"\n", ""),
            "media = \"memory\" needs size, such as size = \"1 GiB\"",
        ),
        (
            MEMORY.replace("survives = \"nothing\"\n", ""),
            "media = \"memory\" needs survives; accepted: \"nothing\", \"process\", \"power\"",
        ),
        (
            with("drive = \"850evo\""),
            "drive and media = \"memory\" are both there; accepted: one of the two",
        ),
        (
            String::new(),
            "neither drive nor media is there; accepted: drive = \"MODEL\", or media = \"memory\" with \
             size and survives",
        ),
        (
            "drive = \"850evo\"\nsurvives = \"power\"\n".to_string(),
            "survives is about memory; accepted: together with media = \"memory\", without drive",
        ),
        (
            with("backing = \"/dev/loop1\""),
            "backing is about a drive; accepted with media = \"memory\": size, survives, bandwidth, \
             latency_us",
        ),
        (
            MEMORY.replace("64 MiB", "5000 B"),
            "size = \"5000 B\"; accepted: a multiple of 4 KiB, one or more",
        ),
    ];
    for (keys, words) in rows {
        let refused = StackConfig::from_text("mine.toml", &one(&keys), &[]);
        let said = refused.expect_err("it is refused").to_string();
        assert_eq!(said, format!("mine.toml: node `ram`: {words}"));
    }
    let negative = StackConfig::from_text("mine.toml", &one(&with("latency_us = -1.0")), &[]);
    let said = negative.expect_err("it is refused").to_string();
    assert!(said.ends_with(": ram.latency_us = -1.0; accepted: 0 to 1000000"), "{said}");
    for (keys, value, accepted) in [
        (MEMORY.replace("nothing", "fire"), "fire", "`power`"),
        (MEMORY.replace("\"memory\"", "\"paper\""), "paper", "memory"),
    ] {
        let refused = StackConfig::from_text("mine.toml", &one(&keys), &[]);
        let said = refused.expect_err("it is refused").to_string();
        assert!(said.contains(value) && said.contains(accepted), "{said}");
    }
}

#[test]
fn a_request_takes_the_latency_and_its_share_of_the_bandwidth() {
    let text = one(&format!("{MEMORY}bandwidth = \"1 GB/s\"\nlatency_us = 5\n"));
    let plan = Plan::new(&config(&text), &BuildOptions::simulate(1)).expect("a plan");
    let mut rig = Rig::of(plan.drive("ram").expect("a disk"), DiskOptions::default());
    assert_eq!(rig.blocks() * 4096, 64 << 20);
    // Two blocks are 8192 bytes, at 1 GB/s so many nanoseconds. The second waits for the transfer of
    // the first and not for its latency; a flush waits for nobody.
    rig.submit(Operation::WRITE, Extent::new(0, 2), 1);
    rig.submit(Operation::Read, Extent::new(9, 1), 1);
    rig.submit(Operation::Flush, Extent::EMPTY, 1);
    let answers: Vec<u64> = (0..3).map(|_| rig.next_answer().latency_ns).collect();
    assert_eq!(answers, [0, 5_000 + 8_192, 5_000 + 8_192 + 4_096]);
}

#[test]
fn a_run_over_memory_takes_what_its_keys_say() {
    let text = one(&format!("{MEMORY}bandwidth = \"2 GB/s\"\nlatency_us = 0.5\n"));
    let report = random_writes(config(&text), 1, &[]);
    assert_eq!(schema_violations(&report), [""; 0]);
    let [disk] = &report.runs[0].disks[..] else {
        panic!("one disk");
    };
    assert_eq!((disk.drive.as_str(), &disk.drive_sha256), ("memory", &None));
    let (writes, bytes) = (disk.writes as f64, disk.written_bytes[Cause::Host] as f64);
    assert!(writes > 0.0);
    let expected = writes * 0.5e-6 + bytes / 2e9;
    assert!((disk.busy_time_s / expected - 1.0).abs() < 1e-9, "{disk:?}");
}

#[test]
fn a_cache_survives_what_both_of_its_ports_survive_and_an_image_must_survive_a_power_cut() {
    let of = |survives: &str, durable: bool| {
        let options = BuildOptions { durable, ..BuildOptions::simulate(1) };
        let plan = Plan::new(&config(&cache(survives)), &options).expect("a plan");
        let built = plan.build(None, None, ContentKind::Counted);
        built.map(|built| built.stack.geometry().survives)
    };
    for (text, survives) in
        [("nothing", Survival::Nothing), ("process", Survival::Process), ("power", Survival::Power)]
    {
        assert_eq!(of(text, false).ok(), Some(survives));
        assert_eq!(of(text, true).is_ok(), text == "power");
    }
    let said = of("process", true).expect_err("it is refused").to_string();
    assert_eq!(
        said,
        "node `ram`: survives = \"process\", and no layer above keeps elsewhere what was flushed; \
         accepted in a stack that is served from files: \"power\""
    );
}

#[test]
fn a_disk_with_a_drive_is_described_as_before() {
    let text = one("drive = \"850evo\"\n");
    let described = toml::to_string(&config(&text)).expect("TOML");
    assert!(described.ends_with("name = \"ram\"\ndrive = \"850evo\"\n"), "{described}");
}
