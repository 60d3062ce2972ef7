//! A parity array as the reader of members sees it: what its journal says, what is damaged, and that nothing makes
//! it panic or go on for ever.

use crate::fsck::{EVERYTHING, problems};
use crate::fsck_images::{Area, Blocks, REPLAY_FROM, SET};
use crate::fsck_layer_images::{LOG_PLACES, log, segments, segments_on};
use crate::fsck_parity_images::{DATA, NAMES, PARITY, area_of, array, array_on, shape_of};
use imbrex_core::rng::Rng;
use imbrex_serve::fsck::{self, Findings, LayerState, ParityArrayState, Reading, Shape};

const BLOCKS: u64 = 12;

fn disks() -> Vec<Blocks> {
    let mut data = Blocks::new(BLOCKS);
    (0..BLOCKS).for_each(|at| {
        data.fill(at, 900 + at);
    });
    array(&data)
}

fn area() -> Area {
    area_of(&shape_of(BLOCKS))
}

fn read_of(disks: &[Option<&Blocks>]) -> Reading {
    let dir = tempfile::tempdir().expect("a directory");
    fsck::read(&array_on(dir.path(), disks, BLOCKS), Some(SET), EVERYTHING)
}

fn read(disks: &[Blocks]) -> Reading {
    read_of(&disks.iter().map(Some).collect::<Vec<_>>())
}

fn said(disks: &[Blocks]) -> Vec<String> {
    problems(&read(disks).findings)
}

fn without(disks: &[Blocks], missing: &[usize]) -> Findings {
    let there = disks.iter().enumerate();
    let there = there.map(|(at, disk)| (!missing.contains(&at)).then_some(disk));
    read_of(&there.collect::<Vec<_>>()).findings
}

fn is_clean(findings: &Findings) {
    assert_eq!(problems(findings), Vec::<String>::new());
}

fn state(reading: &Reading) -> &ParityArrayState {
    let mut states = reading.members.iter().filter_map(|member| match &member.layer {
        LayerState::ParityArray(state) => Some(state),
        _ => None,
    });
    states.next().expect("an array")
}

#[test]
fn members_in_order_are_clean_and_say_what_they_have() {
    let reading = read(&disks());
    is_clean(&reading.findings);
    let state = state(&reading);
    assert_eq!(state.live.runs().collect::<Vec<_>>(), [(0, 12)]);
    // Those of the band row that was collected are at home.
    assert_eq!(state.slots.iter().map(|it| (*it.0, *it.1)).collect::<Vec<_>>(), [(8, 2)]);
    assert_eq!((state.band_rows.clone(), state.spare), (vec![0, 2], 1));
    assert_eq!((state.next_write, state.next_place, state.in_doubt), (8, 12, 2));
    let held: Vec<Vec<(u64, u64)>> = state.held.iter().map(|it| it.runs().collect()).collect();
    assert_eq!(held, [vec![(0, 10)], vec![(0, 10)], vec![(0, 4)]]);
    let note = "data: 2 writes of the array may be on its members or not: the next start finds out";
    assert!(reading.findings.notes.iter().any(|it| it == note), "{:?}", reading.findings.notes);
}

/// A flipped bit in each row of each member that stands in the parity, and in the parity.
#[test]
fn every_block_has_its_checksum_and_every_parity_is_the_sum() {
    let whole = disks();
    let state = read(&whole);
    let state = self::state(&state);
    let shape = shape_of(BLOCKS);
    let first = shape.layout.first_block();
    for (column, name) in NAMES.iter().enumerate() {
        let rows = if column < DATA { shape.bands.rows() } else { shape.slots };
        for row in 0..rows {
            let mut broken = whole.clone();
            let at = if column < DATA { row } else { first + row };
            broken[column].block(at)[80] ^= 1;
            let stands = |column: usize| state.held[column].contains(row);
            let is_held = if column == PARITY { (0..PARITY).any(stands) } else { stands(column) };
            // The rows of blocks in doubt: their parity may be anything.
            let is_damage = is_held && row != 5 && row != 9;
            let said = said(&broken);
            let problem = match column {
                PARITY => "it is not the sum of ",
                _ => "its data does not match its checksum",
            };
            let expected =
                format!("{name}: data: row {row}, at block {at} of the member: {problem}");
            let is_named = said.len() == 1 && said[0].starts_with(&expected);
            let as_it_must = if is_damage { is_named } else { said.is_empty() };
            assert!(as_it_must, "{name}, row {row}: {said:?}");
        }
    }
}

/// A flipped bit in each table of checksums. The other disk has a copy: all blocks are compared with it.
#[test]
fn a_damaged_table_of_checksums_is_named() {
    let whole = disks();
    let tables = shape_of(BLOCKS).layout.tables();
    for (column, name) in NAMES.iter().enumerate().skip(DATA) {
        for table in 0..tables.blocks.0 {
            let mut broken = whole.clone();
            broken[column].block(tables.start.0 + table)[80] ^= 1;
            let said = said(&broken);
            let expected = format!("{name}: table of checksums: table {table}: ");
            assert!(said.len() == 1 && said[0].starts_with(&expected), "{said:?}");
        }
    }
}

#[test]
fn every_damage_of_the_journal_names_the_member() {
    let area = area();
    for (index, name) in NAMES.iter().enumerate().skip(DATA) {
        for (address, structure) in [
            (0, "superblock"),
            (2, "membership"),
            (area.page(), "checkpoint"),
            (area.journal_block(REPLAY_FROM + 1), "journal"),
        ] {
            let mut broken = disks();
            broken[index].block(address)[66] ^= 1;
            let said = said(&broken);
            let expected = format!("{name}: {structure}: ");
            assert!(said.len() == 1 && said[0].starts_with(&expected), "{expected}: {said:?}");
        }
    }
}

#[test]
fn one_member_that_is_not_there_is_a_note_and_two_are_damage() {
    let disks = disks();
    for (missing, name) in NAMES.iter().enumerate() {
        let found = without(&disks, &[missing]);
        is_clean(&found);
        let note = format!("{name}: it is not there: nobody has it");
        assert!(found.notes.contains(&note), "{:?}", found.notes);
        let other = (missing + 1) % 3;
        let both = problems(&without(&disks, &[missing, other]));
        let lacks = |it: &String| it.contains("each of them lacks blocks of the array");
        assert!(missing == other || both.iter().any(lacks), "{name}: {both:?}");
    }
}

/// Home 0 has come back. It has what it has not missed: by the checkpoint nothing, or row 5; by the records the band row
/// that was collected, and a row that was written.
#[test]
fn a_member_that_is_back_has_what_it_has_not_missed() {
    let area = area();
    // Behind the members and 37 words lie the bits of regions of a row each.
    let (state_at, missed_at) = (1 + 4, 1 + 4 * 13 + 8 * 37);
    for (row, missed, is_missed) in
        [(5, 0, false), (5, 1 << 5, true), (4, 1 << 5, false), (2, 0, true), (9, 0, true)]
    {
        let mut broken = disks();
        for disk in broken.iter_mut().skip(DATA) {
            let page = disk.block(area.page());
            (page[64 + state_at], page[64 + missed_at]) = (4, missed);
            disk.fix(area.page());
            disk.fix_checkpoint(area);
        }
        broken[0].block(row)[80] ^= 1;
        let reading = read(&broken);
        let said = problems(&reading.findings);
        let expected = format!(
            "home-0: data: row {row}, at block {row} of the member: its data does not match its checksum"
        );
        let is_named = said.len() == 1 && said[0].starts_with(&expected);
        assert!(if is_missed { said.is_empty() } else { is_named }, "row {row}: {said:?}");
        let lacks = 4 + 1 + u64::from(missed != 0);
        assert_eq!(state(&reading).rows_of(0), 12 - lacks);
    }
}

/// The checkpoint and records of both copies are whole and say what cannot be.
#[test]
fn a_journal_that_says_what_cannot_be_is_damage() {
    let area = area();
    let page = area.page();
    let [first, second, third] = [0, 1, 2].map(|at| area.journal_block(REPLAY_FROM + at));
    // Four members are followed by words.
    let word = |number: usize| 1 + 4 * 13 + 8 * number;
    for (address, at, byte, expected) in [
        (page, 0, 3, "checkpoint: it lists 3 members, and the array has 4"),
        (page, 2, 1, "checkpoint: member 0 is behind port 1, that of another one"),
        (page, 5, 5, "checkpoint: member 0 is 5 with 0 rows"),
        (page, word(1), 200, "checkpoint: the next place is 200, which is not there"),
        (page, word(4), 13, "checkpoint: block 0 lies past the array"),
        (page, word(5), 1, "checkpoint: place 1 is none that was given"),
        (page, word(8), 200, "checkpoint: it speaks of a place past 16"),
        (page, word(9), 200, "checkpoint: 200 slots were used, and there are 16"),
        (page, word(11), 0, "checkpoint: slot 0 is there twice"),
        (page, word(11), 9, "checkpoint: slot 9 was never used"),
        (page, word(10), 0, "checkpoint: slot 5 was never used"),
        (page, word(13), 99, "checkpoint: place 99 is not there"),
        (page, word(16), 2, "checkpoint: slot 2 is there twice"),
        (page, word(19), 1, "checkpoint: two band rows lie in place 1 of the homes"),
        (
            page,
            word(20),
            7,
            "checkpoint: a band row lies in place 7 of the homes, which is not there",
        ),
        (page, word(22), 9, "checkpoint: 9 blocks of band 0 were written"),
        (page, word(29) + 1, 0, "array: place 9 has data and is not in the parity"),
        (page, word(31), 0x0b, "array: slot 2 is in use and not in the parity"),
        (page, word(33), 0xff, "checkpoint: it speaks of a table of checksums past 4"),
        (page, word(34), 9, "checkpoint: it ends within what it lists"),
        (page, word(35), 2, "checkpoint: its regions have 2 rows, and not 1"),
        (page, word(37) + 2, 0xf0, "checkpoint: it speaks of a region past 20"),
        (first, 8, 4, "write 4 comes late"),
        (first, 8 + 24, 12, "block 12 lies past the array"),
        (first, 8 + 24, 0, "block 0 has place 0, and it says 10"),
        (first, 8 + 40, 16, "place 16 is not there"),
        (first, 8 + 8, 65, "it has 65 rows in the log, and 64 are the most"),
        (first, 8 + 48 + 8, 2, "band row 2 is not there"),
        (first, 8 + 48 + 16, 1, "it speaks of band row 1 of the homes, and 0 is spare"),
        (second, 0, 12, "it is of the unknown kind 12, without data"),
        (second, 16 + 8, 1, "it speaks of places behind those of a band row"),
        (third, 8 + 32, 3, "it has 1 rows in the log, and names others"),
        (third, 8 + 80 + 8 + 80, 16, "slot 16 is not there"),
    ] {
        let mut broken = disks();
        for disk in broken.iter_mut().skip(DATA) {
            disk.block(address)[64 + at] = byte;
            disk.fix(address);
            disk.fix_checkpoint(area);
        }
        let said = said(&broken);
        let is_named = |it: &String| it.starts_with("data: ") && it.ends_with(expected);
        assert!(said.iter().any(is_named), "{expected}: {said:?}");
    }
}

/// The log of a write buffer on an array: what it reads is right whichever member is not there.
#[test]
fn a_journal_is_read_through_an_array() {
    let log = log();
    let blocks = (log.0.len() / 4096) as u64;
    let disks = array(&log);
    for missing in 0..=NAMES.len() {
        let dir = tempfile::tempdir().expect("a directory");
        let there: Vec<Option<&Blocks>> =
            disks.iter().enumerate().map(|(at, disk)| (at != missing).then_some(disk)).collect();
        let shape = Shape::MemoryBuffer {
            log: Some((Box::new(array_on(dir.path(), &there, blocks)), LOG_PLACES)),
            below: Box::new(segments_on(dir.path(), &segments(), false)),
            blocks: 72,
        };
        let reading = fsck::read(&shape, Some(SET), EVERYTHING);
        is_clean(&reading.findings);
        let mut layers = reading.members.iter().map(|member| &member.layer);
        let is_read =
            layers.any(|layer| matches!(layer, LayerState::Buffer(state) if state.live.len() == 3));
        assert!(is_read, "without member {missing}");
    }
}

/// Random damage, with and without making the checksums right again. It must come to an end without a panic.
#[test]
fn any_bytes_come_to_an_end() {
    let mut rng = Rng::new(17, 1);
    let (mut found, mut reached) = (0, 0);
    let (whole, area) = (disks(), area());
    for _ in 0..600 {
        let mut broken = whole.clone();
        let fixed = rng.below(4) > 0;
        for _ in 0..1 + rng.below(3) {
            let address = match rng.below(6) {
                0 => area.superblocks()[rng.below(4) as usize],
                1..4 => area.page(),
                _ => area.journal_block(REPLAY_FROM + rng.below(3)),
            };
            let length = u32::from_le_bytes(
                whole[DATA].clone().block(address)[12..16].try_into().expect("4"),
            );
            let at = 64 + rng.below(u64::from(length).clamp(1, 4032)) as usize;
            let (kind, any) = (rng.below(4), rng.next_u64());
            let value = [0, 1, u64::MAX, u64::MAX / 2, 1 << 40, 1 << 24][rng.below(6) as usize];
            for disk in broken.iter_mut().skip(DATA) {
                let block = disk.block(address);
                match kind {
                    0 => block[at] ^= 1 << (any % 8),
                    1 => block[at] = any as u8,
                    2 => block[at] = 0xff,
                    // Words begin behind the members, or behind the head of a record.
                    _ => {
                        let at = if address == area.page() {
                            (at - 61) / 8 * 8 + 61
                        } else {
                            at / 8 * 8
                        };
                        block[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
                    }
                }
                if fixed {
                    disk.fix(address);
                    if address == area.page() {
                        disk.fix_checkpoint(area);
                    }
                }
            }
        }
        let missing = rng.below(8) as usize;
        let there = broken.iter().enumerate().map(|(at, disk)| (at != missing).then_some(disk));
        let reading = read_of(&there.collect::<Vec<_>>());
        found += u32::from(reading.findings.left > 0);
        for member in &reading.members {
            if let LayerState::ParityArray(state) = &member.layer {
                reached += 1;
                assert!((0..=PARITY).all(|column| state.rows_of(column) <= state.rows(column)));
            }
        }
    }
    assert!(found > 300 && reached > 200, "{found}, {reached}");
}
