//! `imbrex doctor`, on disks made of files that look like sysfs.

use std::path::Path;
use std::process::{Command, Output};

/// A disk in a folder that looks like sysfs.
struct FakeDisk<'a> {
    name: &'a str,
    files: &'a [(&'a str, &'a [u8])],
}

fn sysfs(disks: &[FakeDisk<'_>]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for disk in disks {
        let folder = root.path().join("class/block").join(disk.name);
        for (file, bytes) in disk.files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, bytes).expect("a file");
        }
    }
    root
}

fn doctor(root: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .arg("doctor")
        .args(arguments)
        .args(["--sysfs", root.to_str().expect("text")])
        .output()
        .expect("the command starts")
}

/// Kind and confidence of the one disk asked about.
fn verdict(root: &Path, disk: &str) -> (String, String) {
    let output = doctor(root, &[disk, "--json", "--no-rebuild"]);
    assert!(output.status.success(), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let disk = &document["disks"][0]["disk"];
    let word = |key: &str| disk[key].as_str().expect("a word").to_string();
    (word("kind"), word("confidence"))
}

fn identify_data(word_69: u8) -> Vec<u8> {
    let mut page = vec![0; 572];
    page[60 + 2 * 69] = word_69;
    page
}

#[test]
fn what_a_disk_says_of_itself_comes_before_what_is_known_of_its_model() {
    let (conventional, drive_managed, host_aware) =
        (identify_data(0), identify_data(2), identify_data(1));
    let mut characteristics = vec![0; 64];
    characteristics[8] = 0x10;
    let rotating: [(&str, &[u8]); 3] =
        [("queue/rotational", b"1\n"), ("queue/zoned", b"none\n"), ("device/type", b"0\n")];
    let with = |more: &[(&'static str, &'static [u8])]| -> Vec<(&'static str, &'static [u8])> {
        rotating.iter().copied().chain(more.iter().copied()).collect()
    };
    // Leaked, so that the rows below may borrow them.
    let leak = |bytes: Vec<u8>| -> &'static [u8] { Vec::leak(bytes) };
    let (conventional, drive_managed, host_aware) =
        (leak(conventional), leak(drive_managed), leak(host_aware));
    let characteristics = leak(characteristics);
    let rows = [
        // Nothing speaks for shingles, which says nothing: drive-managed disks may keep silent.
        (
            with(&[("device/model", b"WDC WD99XXXX\n"), ("device/vpd_pg89", conventional)]),
            "unknown",
            "guess",
        ),
        (with(&[("device/model", b"WDC WD80EFAX-68K\n")]), "conventional", "known"),
        (with(&[("device/model", b"ST8000AS0002-1NA\n")]), "drive-managed", "known"),
        (
            with(&[("device/model", b"WDC WD99XXXX\n"), ("device/vpd_pg89", drive_managed)]),
            "drive-managed",
            "reported",
        ),
        // The kernel has forgotten host-aware disks; the disk has not.
        (
            with(&[("device/model", b"ST8000AS0022\n"), ("device/vpd_pg89", host_aware)]),
            "host-aware",
            "reported",
        ),
        (
            with(&[("device/model", b"X\n"), ("device/vpd_pgb1", characteristics)]),
            "host-aware",
            "reported",
        ),
        (
            with(&[("device/model", b"X\n"), ("queue/discard_max_bytes", b"1073741824\n")]),
            "drive-managed",
            "likely",
        ),
        // A virtual disk takes trims and has no model.
        (with(&[("queue/discard_max_bytes", b"1073741824\n")]), "unknown", "guess"),
    ];
    for (files, kind, confidence) in &rows {
        let root = sysfs(&[FakeDisk { name: "sda", files }]);
        let found = verdict(root.path(), "/dev/sda");
        assert_eq!(found, (kind.to_string(), confidence.to_string()), "{files:?}");
    }
    let zoned: [(&str, &[u8]); 3] = [
        ("queue/zoned", b"host-managed\n"),
        ("device/type", b"20\n"),
        ("device/model", b"HGST HSH721415ALN6M0\n"),
    ];
    let root = sysfs(&[FakeDisk { name: "sdb", files: &zoned }]);
    assert_eq!(verdict(root.path(), "sdb"), ("host-managed".into(), "reported".into()));
    let flash: [(&str, &[u8]); 2] =
        [("queue/rotational", b"0\n"), ("device/model", b"Samsung SSD 850\n")];
    let root = sysfs(&[FakeDisk { name: "sdc", files: &flash }]);
    assert_eq!(verdict(root.path(), "sdc"), ("solid-state".into(), "reported".into()));
}

#[test]
fn a_model_is_told_what_it_means_and_how_long_a_rebuild_takes() {
    let root = sysfs(&[]);
    let output = doctor(root.path(), &["WD40EFAX"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for part in [
        "drive-managed shingled recording (SMR) (by its model)",
        "Western Digital's list",
        "ZFS resilver                   avoid",
        "backup and archive             with care",
        "simulated on `wd40efax` for 4.0 TB",
        "published of the `wd40efax`: 13 times as long as a conventional disk",
        "synthetic:",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let rebuild = |name: &str| -> serde_json::Value {
        let output = doctor(root.path(), &[name, "--json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        document["disks"][0]["rebuild"].clone()
    };
    let ratio = |rebuild: &serde_json::Value| {
        let ratio = number(&rebuild["resilver_hours"]) / number(&rebuild["sequential_hours"]);
        assert!((ratio / number(&rebuild["resilver_over_sequential"]) - 1.0).abs() < 1e-9);
        ratio
    };
    let (shingled, conventional) = (rebuild("wd20efax"), rebuild("WD1002FAEX"));
    assert!(ratio(&shingled) > 4.0 * ratio(&conventional));
    // The size of the model, not that of the drive it is simulated on.
    assert_eq!(number(&shingled["capacity_bytes"]), 2e12);
    // What was published lies between the two walks.
    let published = &shingled["published"];
    let [in_order, anywhere] = [0, 1].map(|walk| number(&published["model_times"][walk]));
    let times = number(&published["times"]);
    assert!(in_order < times && times < anywhere);
    assert!(conventional["published"].is_null());
}

#[test]
fn the_nearest_drive_model_is_named_with_the_reason_and_no_emulator_is() {
    let root = sysfs(&[]);
    let rows = [
        ("ST8000AS0002-1NA17Z", "st8000as0002", "this very disk"),
        ("ST4000DM004", "st8000dm004", "Seagate BarraCuda 3.5-inch"),
        ("ST5000LM000", "st5000as0011", "the same maker (Seagate)"),
        ("ST2000LM015", "st5000as0011", "nearest in size (5.0 TB)"),
        ("ST6000AS0002", "st8000as0002", "Seagate Archive HDD"),
        ("WDC WD60EFAX-68S", "wd40efax", "WD Red"),
        ("WD10SPZX", "wd40efax", "the same maker (Western Digital)"),
        ("TOSHIBA HDWD240", "wd40efax", "the library has none of Toshiba"),
        ("WSH722020ALN604", "hc620-15tb", "the same maker"),
        ("WD80EFAX", "wd-4tb-7200", "the same maker"),
    ];
    for (model, drive, why) in rows {
        let output = doctor(root.path(), &[model, "--no-rebuild"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        let line = text.lines().find(|line| line.contains("nearest model: "));
        let line = line.unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(&format!("`{drive}`")), "{model}: {line}");
        assert!(line.contains(why), "{model}: {line}");
        assert!(!text.contains("smr-only"), "{text}");
        assert!(text.contains("  a workload on it: `imbrex "), "{text}");
        let output = doctor(root.path(), &[model, "--no-rebuild", "--json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let disk = &document["disks"][0]["disk"];
        assert_eq!(disk["nearest_drive"], drive);
        assert!(disk["nearest_drive_why"].as_str().expect("words").contains(why));
    }
}

#[test]
fn a_disk_that_nothing_is_known_of_is_unknown_for_every_use() {
    let root = sysfs(&[FakeDisk {
        name: "sda",
        files: &[("queue/rotational", b"1\n"), ("device/model", b"NONSENSE 1\n")],
    }]);
    for (asked, status) in [("nonsense", 1), ("WD99XXXX", 1), ("/dev/sda", 0)] {
        let output = doctor(root.path(), &[asked]);
        assert_eq!(output.status.code(), Some(status), "{asked}");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains(": not known (nothing says)"), "{text}");
        assert_eq!(text.matches("unknown      find out first").count(), 4, "{text}");
        assert!(text.contains("to find out: `DISK=/dev/sdX fio experiments/fit/small-writes.fio`"));
        assert!(!text.contains("simulated on"), "{text}");
        assert!(!text.contains("nearest model"), "{text}");
        let message = String::from_utf8(output.stderr).expect("text");
        if status == 1 {
            let start = format!("imbrex: {asked}: not in the table of known models; accepted: ");
            assert!(message.starts_with(&start), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        let output = doctor(root.path(), &[asked, "--json"]);
        assert_eq!(output.status.code(), Some(status), "{asked}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let disk = &document["disks"][0];
        assert_eq!(disk["disk"]["kind"], "unknown");
        assert!(disk["rebuild"].is_null() && disk["find_out"].is_string());
        for advice in disk["uses"].as_array().expect("uses") {
            assert_eq!(advice["verdict"], "unknown");
        }
    }
}

#[test]
fn a_path_that_leads_to_no_block_device_is_one_clear_error() {
    let root = sysfs(&[FakeDisk {
        name: "null",
        files: &[("queue/rotational", b"1\n"), ("device/model", b"WDC WD40EFAX-68J\n")],
    }]);
    let file = root.path().join("file");
    std::fs::write(&file, "no disk").expect("a file");
    for path in [file.as_path(), root.path(), Path::new("/dev/zero")] {
        let path = path.to_str().expect("text");
        let output = doctor(root.path(), &[path]);
        assert_eq!(output.status.code(), Some(1), "{path}");
        let message = String::from_utf8(output.stderr).expect("text");
        let start = format!("imbrex: {path}: is not a block device; accepted: ");
        assert!(message.starts_with(&start), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(output.stdout.is_empty());
    }
    // A link is followed to the name that sysfs knows, here one of a device that is surely there.
    let link = root.path().join("ata-WDC_WD40EFAX");
    std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
    let found = verdict(root.path(), link.to_str().expect("text"));
    assert_eq!(found, ("drive-managed".into(), "known".into()));
}

#[test]
fn a_device_that_is_not_there_is_one_clear_error() {
    let root = sysfs(&[FakeDisk { name: "sda", files: &[("queue/zoned", b"none\n")] }]);
    let output = doctor(root.path(), &["/dev/sdz"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).expect("text");
    assert!(message.starts_with("imbrex: /dev/sdz: no such block device in "), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn without_a_name_every_disk_is_listed() {
    let disk = |name| FakeDisk {
        name,
        files: &[("queue/rotational", b"1\n"), ("device/model", b"ST8000DM004-2CX188\n")],
    };
    let root = sysfs(&[disk("sda"), disk("sdb")]);
    let output = doctor(root.path(), &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.matches("drive-managed shingled").count(), 2, "{text}");
    assert!(!text.contains("simulated on"), "{text}");
}
