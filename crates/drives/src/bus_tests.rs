//! Drives on a bus, whose answers are worked out by hand: a disk of 10 ms a turn and 100 sectors a
//! track, of 0.1 ms each, whose seeks take 1 ms, without rotational waits where not said.

use super::design::DiskOptions;
use super::library::Drive;
use super::simulated::SimulatedDisk;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::Disk;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, Tag};
use imbrex_core::stack::{Arrival, DiskId, Stack, StackBuilder};
use imbrex_core::units::Instant;

pub(super) const BASE: &str = r#"
name = "made up"
media = "conventional"
capacity = "4096000 B"
sector = "512 B"
interface = "10 MB/s"
write_cache = true

[platters]
rpm = 6000
heads = 2
layout = "cylinder-by-cylinder"
head_switch = "1 ms"
write_settle = "0 ms"
zone_table = [[0, 99, 100, 0, 0, 0]]

[seek]
table = [[1, 1.0], [99, 1.0]]

[queue]
command_overhead = "0.5 ms"
depth = 1
scheduler = "fcfs"
guard = "0 ms"
age_window = 0

[cache]
latency = "0.2 ms"
write_buffer = "25600 B"
write_segments = 1
destage_after = "0 ms"
read_ahead = "25600 B"

[segments]
count = 3
size = "25600 B"
read_ahead_to = "segment"
after_hit = false
keeps_passed = false
keeps_written = true

[bus]
read_sector = "0.05 ms"
write_sector = "0.05 ms"
"#;

/// The drive file with other lines in the place of some, and lines more at its end.
pub(super) fn text(changes: &[(&str, &str)], bus: &str) -> String {
    let mut text = BASE.to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text + bus
}

pub(super) struct Rig {
    disk: SimulatedDisk,
    stack: Stack,
    buffers: Buffers,
    pub now: u64,
    tag: u64,
}

impl Rig {
    pub fn of(text: &str, rotation: bool) -> Rig {
        let drive = Drive::parse("made-up.toml", text).unwrap();
        let options = DiskOptions { in_sectors: true, rotation, ..DiskOptions::default() };
        let disk = SimulatedDisk::new(&drive, &options).unwrap();
        let mut builder = StackBuilder::new(1);
        let top = builder.disk(disk.geometry().clone());
        Rig {
            stack: builder.build(top),
            disk,
            buffers: Buffers::new(ContentKind::Counted),
            now: 0,
            tag: 0,
        }
    }

    fn new(changes: &[(&str, &str)], bus: &str) -> Rig {
        Rig::of(&text(changes, bus), false)
    }

    pub fn submit(&mut self, operation: Operation, start: u64, sectors: u64) {
        self.tag += 1;
        let blocks = if operation.has_data() { sectors } else { 0 };
        let arrival = Arrival {
            tag: Tag(self.tag),
            operation,
            extent: Extent::new(start, sectors),
            buffer: self.buffers.allocate(blocks),
        };
        let now = Instant(self.now);
        self.stack.handle_request(now, arrival, &mut self.buffers);
        self.submit_disk_operations();
    }

    fn submit_disk_operations(&mut self) {
        while let Some((_, op)) = self.stack.poll_disk_op() {
            self.disk.submit(Instant(self.now), op, &mut self.buffers);
        }
    }

    /// The tag of what the disk has answered by now.
    fn poll(&mut self) -> Option<u64> {
        let now = Instant(self.now);
        let completion = self.disk.poll(now, &mut self.buffers)?;
        let disk = DiskId(0);
        self.stack.handle_disk_completion(now, disk, completion, &mut self.buffers);
        // The stack may have held an operation back that overlaps this one.
        self.submit_disk_operations();
        Some(self.stack.poll_reply().expect("an answer").tag.0)
    }

    /// How long the next operation takes from now, in microseconds.
    fn answer(&mut self) -> u64 {
        let from = self.now;
        while self.poll().is_none() {
            self.now = self.disk.next_event().expect("something is due").0;
        }
        (self.now - from) / 1000
    }

    /// Goes on to `until`, noting the tag and the moment of each answer on the way.
    pub fn answers_until(&mut self, until: u64, answers: &mut Vec<(u64, u64)>) {
        loop {
            while let Some(tag) = self.poll() {
                answers.push((tag, self.now));
            }
            match self.disk.next_event() {
                Some(next) if next.0 <= until => {
                    assert!(next.0 > self.now, "{next:?} is due after {}", self.now);
                    self.now = next.0;
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn read(&mut self, start: u64, sectors: u64) -> u64 {
        self.submit(Operation::Read, start, sectors);
        self.answer()
    }

    fn write(&mut self, start: u64, sectors: u64) -> u64 {
        self.submit(Operation::WRITE, start, sectors);
        self.answer()
    }

    fn wait_us(&mut self, us: u64) {
        self.now += us * 1000;
    }
}

/// Ten sectors pass the head from 0.5 to 1.5 ms.
#[test]
fn a_read_ends_at_the_slower_of_medium_and_bus() {
    // The last sector crosses after it has been read ...
    assert_eq!(Rig::new(&[], "").read(0, 10), 1_550);
    // ... or all of them after the first one has been read.
    let slow = [("read_sector = \"0.05 ms\"", "read_sector = \"0.2 ms\"")];
    assert_eq!(Rig::new(&slow, "").read(0, 10), 600 + 10 * 200);
}

#[test]
fn leaving_and_taking_the_bus_cost_time_unless_it_is_held() {
    // Taken again at 0.6 ms, from 0.9 ms on seven sectors cross as they come, to 1.25 ms; then
    // there are no more. The bus is left and taken again for the last three, from 1.6 ms on.
    let reselect = "reselect = \"0.3 ms\"\n";
    assert_eq!(Rig::new(&[], reselect).read(0, 10), 1_600 + 3 * 50);
    // Held, the bus waits for each sector.
    let held = format!("{reselect}held_for_whole_read = true\n");
    assert_eq!(Rig::new(&[], &held).read(0, 10), 1_550);
    // Leaving takes 0.2 ms: taken again at 0.7 ms, nine sectors cross from 1.0 to 1.45 ms; left
    // until 1.65 ms, and taken again for the last one.
    let leave = format!("{reselect}leave_read_after_read = \"0.2 ms\"\n");
    assert_eq!(Rig::new(&[], &leave).read(0, 10), 1_650 + 300 + 50);
    // With all of the read in memory before the bus is taken, it is taken once.
    let all = format!("{reselect}read_watermark = 1\n");
    assert_eq!(Rig::new(&[], &all).read(0, 10), 1_500 + 300 + 10 * 50);
    // What is never left is not taken again.
    assert_eq!(Rig::new(&[], "never_released = true\n").read(0, 10), 1_550);
    let ends = "prepare_data = \"0.02 ms\"\ncomplete_read = \"0.07 ms\"\n";
    assert_eq!(Rig::new(&[], ends).read(0, 10), 1_550 + 20 + 70);
}

/// The second command comes 0.6 ms after the first one.
#[test]
fn a_bus_that_is_taken_keeps_the_next_command_waiting() {
    let second = |bus: &str| {
        let mut rig = Rig::new(&[], bus);
        rig.submit(Operation::Read, 0, 10);
        rig.wait_us(700);
        rig.submit(Operation::Read, 2_000, 1);
        rig.answer();
        rig.answer();
        rig.now / 1000
    };
    // It is decoded at 1.2 ms; the arm is free at 1.5 ms, a seek of 1 ms and a sector later the
    // data are there.
    assert_eq!(second(""), 1_500 + 1_000 + 100 + 50);
    // The first read holds the bus from 0.6 to 1.55 ms: the command comes then.
    assert_eq!(second("held_for_whole_read = true\n"), 1_550 + 500 + 1_000 + 100 + 50);
    assert_eq!(second("never_released = true\n"), 1_550 + 500 + 1_000 + 100 + 50);
}

#[test]
fn requests_in_flight_share_the_bus() {
    let slow = [("read_sector = \"0.05 ms\"", "read_sector = \"0.3 ms\"")];
    for held in ["", "held_for_whole_read = true\n"] {
        let mut rig = Rig::new(&slow, held);
        for i in 0..4 {
            rig.submit(Operation::Read, i * 40, 40);
        }
        for _ in 0..4 {
            rig.answer();
        }
        // The first sector has been read at 0.6 ms; the bus never waits after that.
        assert_eq!(rig.now / 1000, 600 + 4 * 40 * 300, "{held}");
    }
}

/// The head reads on after a read of sectors 0 to 9 that ends at 1.5 ms on the medium.
#[test]
fn a_read_behind_the_head_is_not_answered_before_the_medium_has_delivered() {
    let after = |wait_us: u64, start: u64, sectors: u64| {
        let mut rig = Rig::new(&[], "");
        assert_eq!(rig.read(0, 10), 1_550);
        rig.wait_us(wait_us);
        rig.read(start, sectors)
    };
    // At 2.55 ms sectors 10 to 19 have passed and cross from 2.75 ms on.
    assert_eq!(after(1_000, 10, 10), 200 + 10 * 50);
    // Of a longer read the last sector passes at 4.5 ms, and crosses then.
    assert_eq!(after(1_000, 10, 30), 4_500 + 50 - 2_550);
    // What has not passed the head is no hit: the arm is asked again, and the command costs more.
    assert_eq!(after(1_000, 20, 4), 500 + 400 + 50);
    // With rotation that costs nearly a turn.
    let mut rig = Rig::of(&text(&[], ""), true);
    rig.read(0, 10);
    rig.wait_us(1_000);
    let response = rig.read(20, 4);
    assert!((9_900..10_600).contains(&response), "{response}");
}

#[test]
fn reading_ahead_ends_with_a_step_that_was_begun() {
    // The track ends at 10.5 ms; 0.3 ms later the step to the next one takes another 0.7 ms.
    let wide = ("size = \"25600 B\"", "size = \"102400 B\"");
    let ahead = ("read_ahead = \"25600 B\"", "read_ahead = \"102400 B\"");
    let mut rig = Rig::new(&[wide, ahead], "");
    assert_eq!(rig.read(0, 90), 500 + 9_000 + 50);
    rig.wait_us(1_250);
    // Now 10.8 ms. Decoded at 11.3 ms; the step had ended at 11.5 ms, under the other head.
    assert_eq!(rig.read(2_000, 1), 700 + 1_000 + 100 + 50);
}

#[test]
fn a_hit_that_finds_the_stream_at_work_lets_it_read_on() {
    let found = |after_hit: &str| {
        let mut rig = Rig::new(&[("after_hit = false", after_hit)], "");
        rig.read(0, 10);
        rig.wait_us(3_000);
        assert_eq!(rig.read(10, 10), 200 + 500);
        rig.wait_us(20_000);
        // The first stream would have ended at sector 50 or 60.
        rig.read(55, 5)
    };
    assert_eq!(found("after_hit = false"), 200 + 250);
    assert_eq!(found("after_hit = true"), 200 + 250);
}

#[test]
fn a_write_is_answered_when_its_data_have_crossed() {
    let mut rig = Rig::new(&[], "complete_write = \"0.03 ms\"\n");
    assert_eq!(rig.write(2_000, 10), 200 + 10 * 50 + 30);
    // It is on the medium at 0.2 + 1 + 1 ms; a command at 0.73 ms that finds the arm busy leaves
    // the bus, and its data cross when the arm is free.
    assert_eq!(rig.write(4_000, 10), 2_200 - 730 + 10 * 50 + 30);
    let mut rig = Rig::new(&[], "leave_write = \"2 ms\"\nreselect = \"0.3 ms\"\n");
    rig.write(2_000, 10);
    assert_eq!(rig.write(4_000, 10), 200 + 2_000 + 300 + 10 * 50);
}

#[test]
fn a_read_waits_for_what_was_written_before_it() {
    let mut rig = Rig::new(&[], "");
    rig.read(0, 10);
    rig.wait_us(20_000);
    assert_eq!(rig.read(10, 4), 200 + 4 * 50);
    assert_eq!(rig.write(4_000, 10), 200 + 10 * 50);
    // The memory has the sectors, and the firmware is at the write until 1.5 ms after 0.7 ms.
    assert_eq!(rig.read(20, 4), 1_500 + 4 * 50);
}

#[test]
fn writes_that_continue_one_another_are_taken_while_the_arm_writes() {
    let mut rig = Rig::new(&[], "");
    rig.write(2_000, 10);
    assert_eq!(rig.write(2_010, 10), 200 + 10 * 50);
    assert_ne!(rig.write(2_040, 10), 200 + 10 * 50, "it does not continue them");
    let several = [("write_segments = 1", "write_segments = 2")];
    let mut rig = Rig::new(&several, "takes_writes_early = true\n");
    rig.write(2_000, 10);
    assert_eq!(rig.write(4_000, 10), 200 + 10 * 50);
    // A flush ends when both are on the medium: at 2.2 ms and two tracks further.
    rig.submit(Operation::Flush, 0, 0);
    rig.answer();
    assert_eq!(rig.now / 1000, 2_200 + 2_000);
}

#[test]
fn without_write_back_a_write_ends_on_the_medium() {
    let off = ("write_cache = true", "write_cache = false");
    let mut rig = Rig::new(&[off], "");
    assert_eq!(rig.write(2_000, 10), 500 + 1_000 + 1_000);
    let ends = "reselect = \"0.3 ms\"\ncomplete_write = \"0.1 ms\"\n";
    let mut rig = Rig::new(&[off], ends);
    assert_eq!(rig.write(2_000, 10), 2_500 + 300 + 100);
    let least = ("write_settle = \"0 ms\"", "write_settle = \"0 ms\"\nleast_write_seek = \"3 ms\"");
    assert_eq!(Rig::new(&[off, least], "").write(2_000, 10), 500 + 3_000 + 1_000);
    // On the track where the head is there is nothing to seek, and the least time all the same.
    assert_eq!(Rig::new(&[off, least], "").write(0, 10), 500 + 3_000 + 1_000);
    let less = ("write_settle = \"0 ms\"", "write_settle = \"-0.4 ms\"");
    assert_eq!(Rig::new(&[off, less], "").write(2_000, 10), 500 + 600 + 1_000);
}

#[test]
fn a_write_that_is_longer_than_the_buffer_goes_in_parts_unless_the_bus_is_held() {
    // Sixty sectors, of which the buffer has room for fifty.
    let ends = "reselect = \"0.3 ms\"\n";
    let parts = Rig::new(&[], ends).write(2_000, 60);
    // The bus is taken again when the first fifty are written, and for the answer.
    assert_eq!(parts, 500 + 1_000 + 5_000 + 300 + 50 + 1_000 + 300);
    let held = format!("{ends}held_for_whole_write = true\n");
    assert_eq!(Rig::new(&[], &held).write(2_000, 60), 500 + 1_000 + 6_000 + 300);
}

#[test]
fn a_sector_whose_data_are_late_waits_for_the_next_turn() {
    // The bus takes 0.3 ms for a sector, the medium 0.1 ms: with ten in a row on the track where
    // the head is, the last one is always late, so the write takes more than a turn.
    let slow = [
        ("write_sector = \"0.05 ms\"", "write_sector = \"0.3 ms\""),
        ("write_cache = true", "write_cache = false"),
    ];
    let writes = |changes: &[(&str, &str)]| {
        let mut rig = Rig::of(&text(changes, ""), true);
        rig.read(0, 1);
        (0..20).map(|i| rig.write(i * 13 % 90, 10)).min().unwrap()
    };
    let quick = writes(&slow[1..]);
    let late = writes(&slow);
    assert!(quick < 10_000, "{quick}");
    assert!(late > 500 + 10 * 300, "{late}");
}

#[test]
fn a_write_can_wait_for_its_first_sectors() {
    // On the head's own track the data are the later ones: ten have crossed 0.5 ms after 0.5 ms.
    let off = [("write_cache = true", "write_cache = false")];
    assert_eq!(Rig::new(&off, "").write(0, 10), 500 + 50 + 1_000);
    let start = "write_head_start = 10\n";
    assert_eq!(Rig::new(&off, start).write(0, 10), 500 + 500 + 1_000);
    assert_eq!(Rig::new(&off, start).write(0, 4), 500 + 200 + 400);
}

#[test]
fn a_write_after_a_write_elsewhere_can_leave_the_bus_first() {
    let split = "write_after_write = { command = \"0.6 ms\", leave = \"0.1 ms\", away = \"0.4 ms\", \
                 leave_again = \"0.2 ms\", reselect_again = \"0.3 ms\", seek_after = \"0.25 ms\" }\n";
    let mut rig = Rig::new(&[("write_cache = true", "write_cache = false")], split);
    assert_eq!(rig.write(2_000, 10), 2_500);
    // Decoded at 0.6 ms; the arm begins at 0.85 ms, the data cross from 1.1 to 1.6 ms; on the
    // medium at 2.85 ms.
    assert_eq!(rig.write(4_000, 10), 2_850 + 300);
    // One that goes on where the last one ended does not; its first sector has to come.
    assert_eq!(rig.write(4_010, 10), 500 + 50 + 1_000);
}

/// A file of each kind of fact that DiskSim's disks state.
#[test]
fn every_kind_of_mapping_sparing_and_memory_can_be_stated() {
    let table = "zone_table = [[0, 99, 100, 0, 0, 0]]";
    let rows = |row: &str, key: &str| {
        format!("zone_table = [[0, 59, 100, 7, 9, {row}], [60, 99, 90, 5, 8, 0, 3]]\n{key}")
    };
    let changes = [
        ("layout = \"cylinder-by-cylinder\"", "layout = \"cylinder-serpentine\"".to_string()),
        ("layout = \"cylinder-by-cylinder\"", "layout = \"zone-serpentine\"".to_string()),
        (table, rows("0", "")),
        (table, rows("150", "")),
        (table, rows("12", "spares_every = 20")),
        (table, rows("12", "spares_every = 1\nspares_at = \"start\"")),
        (table, rows("2", "spares_at = \"track\"")),
        (table, rows("0, 4, 700", "")),
        ("read_ahead_to = \"segment\"", "read_ahead_to = \"track\"".to_string()),
        ("read_ahead_to = \"segment\"", "read_ahead_to = \"track-end\"".to_string()),
        ("read_ahead_to = \"segment\"", "read_ahead_to = \"cylinder-end\"".to_string()),
        ("read_ahead = \"25600 B\"", "read_ahead = \"0 B\"".to_string()),
        ("after_hit = false", "after_hit = true".to_string()),
        ("keeps_passed = false", "keeps_passed = true".to_string()),
        ("keeps_written = true", "keeps_written = false".to_string()),
        (
            "keeps_written = true",
            "keeps_written = false\nseparate_write_segment = true".to_string(),
        ),
        ("count = 3", "count = 1".to_string()),
        ("write_cache = true", "write_cache = false".to_string()),
        ("write_settle = \"0 ms\"", "write_settle = \"-0.483 ms\"".to_string()),
    ];
    for (from, to) in &changes {
        for bus in ["", "held_for_whole_read = true\n", "never_released = true\n"] {
            let text = text(&[("4096000 B", "3686400 B"), (from, to)], bus);
            let mean_ms = mean_of_a_mix(&text);
            assert!((1.0..14.0).contains(&mean_ms), "{to}: {mean_ms} ms");
        }
    }
}

/// Mean response of 400 reads and writes here and there, some of what was read or written before.
fn mean_of_a_mix(text: &str) -> f64 {
    let mut rig = Rig::of(text, true);
    let start = |i: u64| i * i * 37 % 7_100;
    let mut total = 0;
    for i in 0..400 {
        total += match i % 5 {
            0 | 3 => rig.write(start(i), 1 + i % 40),
            1 => rig.read(start(i), 1 + i % 60),
            _ => rig.read(start(i - 1) + i % 60, 8),
        };
        rig.wait_us(i * 97 % 15_000);
    }
    total as f64 / 400.0 / 1e3
}

#[test]
fn facts_that_contradict_one_another_are_refused() {
    let rows = [
        (
            ("read_sector = \"0.05 ms\"", "read_sector = \"0 ms\""),
            "",
            "bus.read_sector = \"0 ms\"; accepted",
        ),
        (
            ("count = 3", "count = 3"),
            "read_watermark = 1.5\n",
            "bus.read_watermark = 1.5; accepted",
        ),
        (
            ("count = 3", "count = 3"),
            "never_released = true\nreselect = \"1 ms\"\n",
            "bus.reselect has no meaning",
        ),
        (
            ("destage_after = \"0 ms\"", "destage_after = \"3 ms\""),
            "",
            "cache.destage_after = \"3 ms\"; accepted",
        ),
        (
            ("count = 3", "count = 3\nseparate_write_segment = true"),
            "",
            "segments.keeps_written = true; accepted",
        ),
        (("0, 0, 0]]", "0, 0]]"), "", "has 5 numbers; accepted"),
        (("0, 0, 0]]", "0, 0, 0]]\nspares_at = \"middle\""), "", "middle"),
        (
            ("0, 0, 0]]", "0, 0, 0]]\nspares_at = \"track\"\nspares_every = 10"),
            "",
            "spares_every has no meaning",
        ),
        (("0, 0, 0]]", "0, 0, 0, 0, 20000]]"), "", "no sectors are left"),
    ];
    for (change, bus, expected) in rows {
        let error = Drive::parse("made-up.toml", &text(&[change], bus));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let without = BASE.split("[bus]").next().unwrap();
    let text = without.replace("heads = 2", "heads = 2\nleast_write_seek = \"1 ms\"");
    let error = Drive::parse("made-up.toml", &text).unwrap_err().to_string();
    assert!(error.contains("needs a table [bus]"), "{error}");
}
