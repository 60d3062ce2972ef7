//! An array of copies as the reader of members sees it: what its members have, what is damaged, and that
//! nothing makes it panic or go on for ever.

use crate::fsck::{EVERYTHING, REPAIR, agree_on, problems};
use crate::fsck_array_images::{
    ARRAY_AREA, CHANGES, COLUMNS, NAMES, array, array_layout, array_on, list, ten_blocks,
};
use crate::fsck_images::{Blocks, REPLAY_FROM, SET};
use crate::fsck_layer_images::{LOG_AREA, LOG_PLACES, log, segments, segments_on};
use imbrex_core::rng::Rng;
use imbrex_serve::fsck::{self, ArrayState, Checks, Findings, Has, LayerState, Reading, Shape};
use serde_json::json;

/// Where the first row of each member lies, and the first one behind the tables.
const FIRST: u64 = ARRAY_AREA.blocks();
const DATA: u64 = FIRST + 3;

fn disks() -> Vec<Blocks> {
    array(&ten_blocks())
}

fn read_of(disks: &[Option<&Blocks>], checks: Checks) -> Reading {
    let dir = tempfile::tempdir().expect("a directory");
    fsck::read(&array_on(dir.path(), disks, 10, checks.repair), Some(SET), checks)
}

fn read(disks: &[Blocks]) -> Reading {
    let there: Vec<Option<&Blocks>> = disks.iter().map(Some).collect();
    read_of(&there, EVERYTHING)
}

fn said(disks: &[Blocks]) -> Vec<String> {
    problems(&read(disks).findings)
}

fn state(reading: &Reading) -> &ArrayState {
    let mut states = reading.members.iter().filter_map(|member| match &member.layer {
        LayerState::Array(state) => Some(state),
        _ => None,
    });
    states.next().expect("an array")
}

fn is_noted(findings: &Findings, note: &str) {
    assert_eq!(problems(findings), Vec::<String>::new());
    assert!(findings.notes.iter().any(|it| it == note), "{note}: {:?}", findings.notes);
}

#[test]
fn members_in_order_are_clean_and_say_what_they_have() {
    let reading = read(&disks());
    assert_eq!(problems(&reading.findings), Vec::<String>::new());
    let state = state(&reading);
    let has: Vec<Has> = state.members.iter().map(|member| member.has).collect();
    assert_eq!(has, [Has::All, Has::Returned(5), Has::Rebuilt(9)]);
    let rows: Vec<u64> = (0..COLUMNS).map(|column| state.rows_of(column)).collect();
    assert_eq!((state.rows(), rows), (13, vec![13, 11, 9]));
    let kept = [&state.marked, &state.unreadable, &state.missed];
    let kept: Vec<Vec<u64>> = kept.iter().map(|all| all.iter().copied().collect()).collect();
    assert_eq!(kept, [[1], [12], [0]]);
    for note in [
        "second: member 1 of the array: it was away and has come back, and has 11 of 13 rows",
        "third: member 2 of the array: it is being rebuilt, and has 9 of 13 rows",
        "first: 1 of 3 regions of the array are marked: members may differ",
        "first: no member has 1 blocks of the array any more",
    ] {
        is_noted(&reading.findings, note);
    }
}

/// A flipped bit in each structure of each member, and in each of its blocks.
#[test]
fn every_damage_names_the_member() {
    for (index, name) in NAMES.iter().enumerate() {
        for (address, structure) in [
            (0, "superblock"),
            (FIRST - 1, "superblock"),
            (2, "membership"),
            (FIRST - 3, "membership"),
            (ARRAY_AREA.page(), "checkpoint"),
            (ARRAY_AREA.journal_block(REPLAY_FROM + 1), "journal"),
        ] {
            let mut broken = disks();
            broken[index].block(address)[66] ^= 1;
            let said = said(&broken);
            let expected = format!("{name}: {structure}: ");
            // The first member is the only one that has everything.
            let all = if index == 0 && structure == "checkpoint" { 2 } else { 1 };
            let is_named = said.len() == all && said[0].starts_with(&expected);
            assert!(is_named, "{expected}: {said:?}");
        }
    }
    // Whether a flipped bit of a row of a member is damage: not in rows that it lacks, in marked regions, or
    // where the block cannot be read.
    let is_damage = |index: usize, row: u64| match row {
        0..3 => true,
        7..=10 | 12 => false,
        _ if index == 1 => row == 3 || row == 4 || row == 11,
        _ if index == 2 => row < 9,
        _ => true,
    };
    for (index, name) in NAMES.iter().enumerate().take(COLUMNS) {
        for row in 0..13 {
            let mut broken = disks();
            broken[index].block(FIRST + row)[80] ^= 1;
            let structure = if row < 3 { "table of checksums" } else { "data" };
            let expected = format!("{name}: {structure}: ");
            let said = said(&broken);
            let is_named = said.len() == 1 && said[0].starts_with(&expected);
            let as_it_must = if is_damage(index, row) { is_named } else { said.is_empty() };
            assert!(as_it_must, "{name}, row {row}: {said:?}");
        }
    }
}

/// Of a copy that should be in neither page says which one it is.
#[test]
fn a_copy_without_its_pages_is_damage() {
    let mut broken = disks();
    for address in [2, FIRST - 3] {
        broken[1].block(address)[66] ^= 1;
    }
    let said = said(&broken);
    let of_second = said.iter().filter(|it| it.starts_with("second: membership: "));
    assert_eq!((of_second.count(), said.len()), (3, 3), "{said:?}");
}

#[test]
fn blocks_of_which_nobody_knows_anything_must_be_the_same() {
    let mut blank = disks();
    // The page was never written.
    blank.iter_mut().take(COLUMNS).for_each(|disk| disk.block(FIRST + 2).fill(0));
    assert_eq!(said(&blank), Vec::<String>::new());
    blank[1].block(DATA + 8)[80] ^= 1;
    let at = DATA + 8;
    let problem = format!("block 8, at block {at} of the member: it differs from that of first");
    assert_eq!(said(&blank), [format!("second: data: {problem}")]);
}

#[test]
fn a_damaged_superblock_is_repaired() {
    let mut broken = disks();
    broken[1].block(1)[70] ^= 4;
    let there: Vec<Option<&Blocks>> = broken.iter().map(Some).collect();
    let found = read_of(&there, REPAIR).findings;
    assert_eq!((found.left, found.repaired), (0, 1), "{:?}", found.kept);
}

#[test]
fn copies_that_do_not_count_are_told_in_notes() {
    // The others have gone on without it; it has not noticed.
    let mut out = disks();
    for index in [0, 2, 3] {
        list(&mut out[index], index, [CHANGES + 1; 2], &[true, false, true, true]);
    }
    // Nothing of what it holds counts.
    out[1].block(DATA + 8)[80] ^= 1;
    out[1].block(FIRST + 2)[80] ^= 1;
    out[1].block(0)[80] ^= 1;
    let note = "second: its copy of the journal of the array does not count: the others have recorded it out";
    is_noted(&read(&out).findings, note);

    // It is older than it was.
    let mut stale = disks();
    list(&mut stale[2], 2, [CHANGES - 1; 2], &[true; COLUMNS + 1]);
    stale[2].block(DATA)[80] ^= 1;
    let note = "third: its copy of the journal of the array does not count: it is not the disk, or not the \
                state of it, that the others have recorded";
    is_noted(&read(&stale).findings, note);

    // Another disk is listed in its place, which was replaced while it was being written.
    let mut replaced = disks();
    for index in [0, 2, 3] {
        list(&mut replaced[index], index, [CHANGES + 1; 2], &[true; COLUMNS + 1]);
        for address in [2, FIRST - 3] {
            // The number of the second copy.
            replaced[index].block(address)[64 + 4] = 9;
            replaced[index].fix(address);
        }
    }
    replaced[1].block(ARRAY_AREA.page())[80] ^= 1;
    let note = "second: its copy of the journal of the array does not count: it is not the disk, or not the \
                state of it, that the others have recorded";
    is_noted(&read(&replaced).findings, note);

    // A change of the membership was being written.
    let mut torn = disks();
    list(&mut torn[0], 0, [CHANGES + 1, CHANGES], &[true; COLUMNS + 1]);
    let found = read(&torn).findings;
    assert_eq!(problems(&found), Vec::<String>::new());
    assert!(!found.notes.iter().any(|note| note.contains("does not count")), "{:?}", found.notes);
}

#[test]
fn a_disk_that_is_not_there_is_told_and_the_rest_is_checked() {
    for (missing, name) in NAMES.iter().enumerate() {
        let mut disks = disks();
        let there = |disks: &[Blocks]| {
            let there = disks.iter().enumerate();
            let there = there.map(|(index, disk)| (index != missing).then(|| disk.clone()));
            let there: Vec<Option<Blocks>> = there.collect();
            let there: Vec<Option<&Blocks>> = there.iter().map(Option::as_ref).collect();
            read_of(&there, EVERYTHING).findings
        };
        let found = there(&disks);
        let note = format!("{name}: it is not there: nobody has it");
        assert!(found.notes.contains(&note), "{:?}", found.notes);
        if missing > 0 {
            is_noted(&found, &note);
        } else {
            // The only one that has everything.
            let expected =
                ["first, second, third: array: no member that is there has all of its blocks"];
            assert_eq!(problems(&found), expected);
        }
        let other = if missing == 1 { 2 } else { 1 };
        disks[other].block(DATA)[80] ^= 1;
        let expected = format!("{}: data: block 0, at block {DATA} ", NAMES[other]);
        let said = problems(&there(&disks));
        assert!(said.iter().any(|it| it.starts_with(&expected)), "{expected}: {said:?}");
    }
}

/// A member that is out says whether it was being rebuilt: it gets more when it is back.
#[test]
fn a_member_that_is_out_is_told_with_what_it_gets() {
    let at = 64 + 1 + 13 + 4;
    for (partial, gets) in [(0, "what it has missed"), (1, "all rows")] {
        let mut disks = disks();
        let record = ARRAY_AREA.journal_block(REPLAY_FROM + 2);
        for disk in &mut disks {
            let page = disk.block(ARRAY_AREA.page());
            page[at..at + 9].copy_from_slice(&[1, partial, 0, 0, 0, 0, 0, 0, 0]);
            disk.fix(ARRAY_AREA.page());
            disk.fix_checkpoint(ARRAY_AREA);
            // The record that it has come back is not there any more.
            disk.block(record).fill(0);
        }
        let reading = read(&disks);
        assert_eq!(state(&reading).members[1].has, Has::Out { is_partial: partial == 1 });
        let note =
            format!("second: member 1 of the array: it is out, and gets {gets} when it is back");
        is_noted(&reading.findings, &note);
        // What was marked since is missed.
        let missed: Vec<u64> = state(&reading).missed.iter().copied().collect();
        assert_eq!(missed, [0, 1]);
    }
}

#[test]
fn members_that_have_gone_on_without_each_other_are_refused() {
    let mut apart = disks();
    list(&mut apart[0], 0, [CHANGES + 1; 2], &[true, false, false, false]);
    list(&mut apart[1], 1, [CHANGES + 2; 2], &[false, true, true, true]);
    let said = said(&apart);
    let problem = "two members have each gone on without the other";
    assert_eq!(said, [format!("first, second, third, spare: array: {problem}")]);
}

/// The checkpoint and records of all copies are whole and say what cannot be.
#[test]
fn a_journal_that_says_what_cannot_be_is_damage() {
    let page = ARRAY_AREA.page();
    let [first, second] = [0, 1].map(|at| ARRAY_AREA.journal_block(REPLAY_FROM + at));
    // Three members of 13 bytes are followed by counts, and these by a region and two rows.
    let (counts, listed) = (1 + 3 * 13, 1 + 3 * 13 + 24);
    for (address, at, byte, expected) in [
        (page, 0, 4, "checkpoint: it lists 4 members, and the array has 3"),
        (page, 1, 2, "checkpoint: it lists member 2 in the place of member 0"),
        (page, 2, 4, "checkpoint: member 0 is behind port 4, which is not there"),
        (page, 5, 5, "checkpoint: member 0 is 5 with 0 rows"),
        (page, 14 + 5, 14, "checkpoint: member 1 is 4 with 14 rows"),
        (page, 14 + 4, 2, "checkpoint: member 1 is 2 with 1 rows"),
        (page, counts, 2, "checkpoint: region 11 is not there"),
        (page, counts + 8, 3, "checkpoint: it ends within what it lists"),
        (page, counts + 8, 1, "checkpoint: there is more behind what it lists"),
        (page, counts, 0, "checkpoint: row 2 is none of data"),
        (page, counts + 16, 2, "checkpoint: it is of 2 regions, and the array has 3"),
        (page, listed, 3, "checkpoint: region 3 is not there"),
        (page, listed + 8, 13, "checkpoint: row 13 is none of data"),
        (first, 0, 9, "it is of the unknown kind 9, without data"),
        (first, 8, 3, "region 3 is not there"),
        (first, 16 + 8, 3, "member 3 is not there"),
        (first, 16 + 8 + 4, 7, "member 2 is 7 with 9 rows"),
        (second, 8, 3, "region 3 is not there"),
        (second, 16 + 8, 1, "row 1 is none of data"),
    ] {
        let mut broken = disks();
        for disk in &mut broken {
            disk.block(address)[64 + at] = byte;
            disk.fix(address);
            disk.fix_checkpoint(ARRAY_AREA);
        }
        let said = said(&broken);
        let is_named = |it: &String| it.starts_with("first: ") && it.ends_with(expected);
        assert!(said.iter().any(is_named), "{expected}: {said:?}");
    }
}

/// The log of a write buffer on an array: what it reads is right as long as one member has it.
#[test]
fn a_journal_is_read_through_an_array() {
    let mut log = log();
    let blocks = (log.0.len() / 4096) as u64;
    let read = |log: &Blocks, damage: &dyn Fn(&mut [Blocks])| {
        let dir = tempfile::tempdir().expect("a directory");
        let mut disks = array(log);
        damage(&mut disks);
        let there: Vec<Option<&Blocks>> = disks.iter().map(Some).collect();
        let shape = Shape::MemoryBuffer {
            log: Some((Box::new(array_on(dir.path(), &there, blocks, false)), LOG_PLACES)),
            below: Box::new(segments_on(dir.path(), &segments(), false)),
            blocks: 72,
        };
        fsck::read(&shape, Some(SET), EVERYTHING)
    };
    let tables = array_layout(blocks).shape.table_rows();
    assert_eq!(problems(&read(&log, &|_| {}).findings), Vec::<String>::new());
    let of_log = |reading: &Reading| {
        let mut layers = reading.members.iter().map(|member| &member.layer);
        layers.any(|layer| matches!(layer, LayerState::Buffer(state) if state.live.len() == 3))
    };
    let damage = |disks: &mut [Blocks]| disks[0].block(FIRST + tables)[80] ^= 1;
    let reading = read(&log, &damage);
    let said = problems(&reading.findings);
    assert!(said.len() == 1 && said[0].starts_with("first: data: block 0,"), "{said:?}");
    assert!(of_log(&reading), "the second member has it");
    log.block(LOG_AREA.blocks() + 6)[80] ^= 1;
    let said = problems(&read(&log, &|_| {}).findings);
    assert!(said.len() == 1 && said[0].contains("data: block 7 in place 6"), "{said:?}");
}

/// Random damage, with and without making the checksums right again. It must come to an end without a panic.
#[test]
fn any_bytes_come_to_an_end() {
    let mut rng = Rng::new(13, 1);
    let (mut found, mut clean, mut reached) = (0, 0, 0);
    let whole = disks();
    for _ in 0..1000 {
        let mut broken = whole.clone();
        let fixed = rng.below(4) > 0;
        // What all copies say, or one of them.
        let all = rng.below(2) == 0;
        let one = rng.below(COLUMNS as u64 + 1) as usize;
        for _ in 0..1 + rng.below(3) {
            let address = match rng.below(8) {
                0 => ARRAY_AREA.superblocks()[rng.below(4) as usize],
                1 => [2, FIRST - 3][rng.below(2) as usize],
                2..5 => ARRAY_AREA.page(),
                5 => FIRST + rng.below(13),
                _ => ARRAY_AREA.journal_block(REPLAY_FROM + rng.below(3)),
            };
            let length =
                u32::from_le_bytes(whole[0].clone().block(address)[12..16].try_into().expect("4"));
            let at = 64 + rng.below(u64::from(length).clamp(1, 4032)) as usize;
            let (kind, any) = (rng.below(4), rng.next_u64());
            let value = [0, 1, u64::MAX, u64::MAX / 2, 1 << 40, 1 << 24][rng.below(6) as usize];
            for (_, disk) in broken.iter_mut().enumerate().filter(|(index, _)| all || *index == one)
            {
                let block = disk.block(address);
                match kind {
                    0 => block[at] ^= 1 << (any % 8),
                    1 => block[at] = any as u8,
                    2 => block[at] = 0xff,
                    _ => {
                        block[at / 8 * 8..at / 8 * 8 + 8].copy_from_slice(&u64::to_le_bytes(value))
                    }
                }
                if fixed {
                    disk.fix(address);
                    if address == ARRAY_AREA.page() {
                        disk.fix_checkpoint(ARRAY_AREA);
                    }
                }
            }
        }
        let reading = read(&broken);
        found += u32::from(reading.findings.left > 0);
        clean += u32::from(reading.findings.left == 0);
        for member in &reading.members {
            if let LayerState::Array(state) = &member.layer {
                reached += 1;
                assert!((0..COLUMNS).all(|column| state.rows_of(column) <= state.rows()));
            }
        }
    }
    assert!(found > 500 && clean > 20 && reached > 300, "{found}, {clean}, {reached}");
}

/// The second reader, which was written from the pages alone, finds what this one finds.
#[test]
fn a_reader_written_from_the_pages_agrees() {
    let dir = tempfile::tempdir().expect("a directory");
    let disks = disks();
    let there: Vec<Option<&Blocks>> = disks.iter().map(Some).collect();
    let shape = array_on(dir.path(), &there, 10, false);
    let reading = fsck::read(&shape, None, Checks::default());
    let state = state(&reading);
    for member in &reading.members {
        let theirs = agree_on(member, "array", &dir.path().join(&member.name));
        let theirs = &theirs["array"];
        assert_eq!(theirs["regions"], json!(state.shape.regions));
        let kept = [&theirs["marked"], &theirs["unreadable"], &theirs["missed"]];
        assert_eq!(kept, [&json!(state.marked), &json!(state.unreadable), &json!(state.missed)]);
        let expected = json!([
            { "port": 0, "number": 1, "state": "in", "rebuilt_to": null, "is_partial": false },
            { "port": 1, "number": 2, "state": "returning", "rebuilt_to": 5, "is_partial": false },
            { "port": 2, "number": 3, "state": "rebuilding", "rebuilt_to": 9, "is_partial": false },
        ]);
        assert_eq!(theirs["members"], expected);
    }
    assert_eq!(reading.members.len(), COLUMNS + 1);
}
