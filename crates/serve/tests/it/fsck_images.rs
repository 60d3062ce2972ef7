//! Members written by hand, byte by byte as the pages of the formats draw them.

use imbrex_core::durability::LayerKind;
use imbrex_core::durability::block::{BlockKind, Header, PAYLOAD_BYTES, checksum_of, seal};
use imbrex_core::durability::superblock::{FEATURE_MIRRORED, Superblock};
use imbrex_core::lifecycle::Uuid;
use imbrex_serve::fsck::{Member, Shape};
use std::path::Path;

pub const BLOCK: usize = 4096;
pub const SET: Uuid = Uuid([0x31; 16]);
const DISK: Uuid = Uuid([0x32; 16]);
const FLASH: Uuid = Uuid([0x33; 16]);

/// The area of a journal: blocks of each place for a checkpoint and of the ring, and the features of
/// the superblock.
#[derive(Clone, Copy)]
pub struct Area {
    pub checkpoint: u64,
    pub ring: u64,
    pub features: u32,
}

impl Area {
    /// Blocks at each end that are neither of a checkpoint nor of the ring.
    const fn end(self) -> u64 {
        match self.features & FEATURE_MIRRORED {
            0 => 2,
            _ => 3,
        }
    }

    pub const fn blocks(self) -> u64 {
        2 * self.end() + 2 * self.checkpoint + self.ring
    }

    pub fn superblocks(self) -> [u64; 4] {
        [0, 1, self.blocks() - 2, self.blocks() - 1]
    }

    /// The first page of the checkpoint.
    pub const fn page(self) -> u64 {
        self.end() + self.checkpoint
    }

    /// Where a journal block lies.
    pub const fn journal_block(self, sequence: u64) -> u64 {
        self.end() + 2 * self.checkpoint + sequence % self.ring
    }
}

/// The area of caches and translations here.
const AREA: Area = Area { checkpoint: 2, ring: 8, features: 0 };
const AREA_BLOCKS: u64 = AREA.blocks();
/// The first journal block that is not in the checkpoint: the ring wraps behind it.
pub const REPLAY_FROM: u64 = 21;
const GENERATION: u64 = 9;
const EPOCH: u64 = 4;

/// A record: kind, payload, first block of its data, checksums.
pub type Record = (u8, Vec<u8>, Option<u64>, Vec<u32>);

/// The blocks of a member.
#[derive(Clone)]
pub struct Blocks(pub Vec<u8>);

impl Blocks {
    pub fn new(blocks: u64) -> Blocks {
        Blocks(vec![0; blocks as usize * BLOCK])
    }

    pub fn block(&mut self, address: u64) -> &mut [u8] {
        let at = address as usize * BLOCK;
        &mut self.0[at..at + BLOCK]
    }

    /// Fills a block with something that is nowhere else, and returns its checksum.
    pub fn fill(&mut self, address: u64, what: u64) -> u32 {
        let words = (0..BLOCK as u64 / 8).flat_map(|at| (what << 20 ^ at).to_le_bytes());
        let bytes: Vec<u8> = words.collect();
        self.block(address).copy_from_slice(&bytes);
        crc32c::crc32c(&bytes)
    }

    pub fn seal(&mut self, header: Header, payload: &[u8]) {
        let block = seal(&header, payload);
        self.block(header.address).copy_from_slice(&block);
    }

    /// Makes the checksum of a sealed block right again.
    pub fn fix(&mut self, address: u64) {
        let block = self.block(address);
        let checksum = checksum_of(block);
        block[4..8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Makes the checksum of a checkpoint of one page right again, in every copy of the superblock.
    pub fn fix_checkpoint(&mut self, area: Area) {
        let page = self.block(area.page());
        let length = u32::from_le_bytes(page[12..16].try_into().expect("4 bytes")).min(4032);
        let checksum = crc32c::crc32c(&page[64..64 + length as usize]);
        for address in area.superblocks() {
            let copy = self.block(address);
            copy[132..136].copy_from_slice(&checksum.to_le_bytes());
            copy[136..144].copy_from_slice(&u64::from(length).to_le_bytes());
            self.fix(address);
        }
    }

    pub fn journal(
        &mut self,
        area: Area,
        (layer, member): (LayerKind, Uuid),
        checkpoint: &[u8],
        journal: &[Vec<Record>],
    ) {
        let superblock = Superblock {
            compatible_features: 0,
            read_only_features: 0,
            required_features: area.features,
            layer: layer as u32,
            set: SET,
            member,
            generation: GENERATION,
            epoch: EPOCH,
            member_blocks: (self.0.len() / BLOCK) as u64,
            area_blocks: area.blocks(),
            checkpoint_blocks: area.checkpoint,
            checkpoint_place: 1,
            clean: false,
            checkpoint_checksum: crc32c::crc32c(checkpoint),
            checkpoint_bytes: checkpoint.len() as u64,
            replay_from: REPLAY_FROM,
            checkpoint_pages: 0,
        };
        for address in area.superblocks() {
            let block = superblock.encode(address);
            self.block(address).copy_from_slice(&block);
        }
        let pages = checkpoint.chunks(PAYLOAD_BYTES);
        let mark = pages.len() as u64;
        for (sequence, page) in (0..).zip(pages) {
            let header = Header {
                kind: BlockKind::CheckpointPage,
                member,
                address: area.page() + sequence,
                generation: GENERATION,
                sequence,
                mark,
            };
            self.seal(header, page);
        }
        for (sequence, records) in (REPLAY_FROM..).zip(journal) {
            let header = Header {
                kind: BlockKind::Journal,
                member,
                address: area.journal_block(sequence),
                generation: EPOCH,
                sequence,
                // All but the last block are known to be durable.
                mark: REPLAY_FROM.max(sequence.min(REPLAY_FROM + journal.len() as u64 - 1)),
            };
            self.seal(header, &payload(records));
        }
    }
}

fn payload(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, payload, data, checksums) in records {
        bytes.extend([*kind, u8::from(data.is_some())]);
        bytes.extend((payload.len() as u16).to_le_bytes());
        bytes.extend((checksums.len() as u32).to_le_bytes());
        bytes.extend(payload);
        if let Some(data) = data {
            bytes.extend(data.to_le_bytes());
            checksums.iter().for_each(|sum| bytes.extend(sum.to_le_bytes()));
        }
    }
    bytes
}

pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Checksums two to a word.
fn pairs(sums: &[u32]) -> Vec<u64> {
    let pair = |pair: &[u32]| {
        let high = pair.get(1).copied().unwrap_or(0);
        u64::from(high) << 32 | u64::from(pair[0])
    };
    sums.chunks(2).map(pair).collect()
}

/// The disk of a translation: bands of 20, 24 and 20 blocks, a log of 16.
pub fn disk() -> Blocks {
    disk_that_holds(&[0])
}

/// The same, with these words about the scratch band in its checkpoint.
pub fn disk_that_holds(held: &[u64]) -> Blocks {
    const BANDS: [(u64, u64); 3] = [(66, 20), (90, 24), (118, 20)];
    const TABLES: u64 = AREA_BLOCKS;
    const LOG: u64 = TABLES + 6;
    const SCRATCH: u64 = 40;
    let mut disk = Blocks::new(144);

    // Band 0 is in the middle of a rewrite from its block 4 on; its old table is in place 1.
    let home: Vec<u32> = (0..20).map(|at| disk.fill(66 + at, 100 + at)).collect();
    let mut merged = home[..4].to_vec();
    merged.extend((4..20).map(|at| disk.fill(SCRATCH + at - 4, 200 + at)));
    let open: Vec<u32> = (0..8).map(|at| disk.fill(90 + at, 300 + at)).collect();
    let third: Vec<u32> = (0..20).map(|at| disk.fill(118 + at, 400 + at)).collect();
    for (address, generation, sums) in
        [(TABLES + 1, 2, &home), (TABLES, 3, &merged), (TABLES + 4, 1, &third)]
    {
        let header = Header {
            kind: BlockKind::ChecksumTable,
            member: DISK,
            address,
            generation,
            sequence: 0,
            mark: 1,
        };
        let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        disk.seal(header, &bytes);
    }
    // The write-intent pages of the cache are the last two blocks of the device.
    let mut intent = Vec::new();
    for (page, bits) in [(6u64, 0b0001u64), (7, 0b0111)] {
        let header = Header {
            kind: BlockKind::WriteIntent,
            member: Uuid([0x34; 16]),
            address: 62 + page % 2,
            generation: GENERATION,
            sequence: page,
            mark: 0,
        };
        let block = seal(&header, &words(&[16, 4, GENERATION, 0, bits]));
        disk.block(LOG + page).copy_from_slice(&block);
        intent.push(crc32c::crc32c(&block));
    }
    let logged = [disk.fill(LOG + 4, 500), disk.fill(LOG + 5, 501)];
    let single = [disk.fill(LOG + 8, 502)];

    let lengths =
        BANDS.iter().fold(0, |sum, (_, blocks)| crc32c::crc32c_append(sum, &blocks.to_le_bytes()));
    let mut checkpoint = vec![1, 16, 64, 3, u64::from(lengths), SCRATCH, 140, 2, 4, 12, 3];
    for (lba, position, sums) in [(3u64, 4, &logged[..]), (30, 8, &single), (62, 6, &intent)] {
        checkpoint.extend([lba << 24 | sums.len() as u64, position]);
        checkpoint.extend(pairs(sums));
    }
    checkpoint.extend([1, 8, 2, 1, 50, 1]);
    checkpoint.extend(held);
    for ((home, blocks), (table, pointer)) in BANDS.iter().zip([(5, 20), (0, 6), (2, 18)]) {
        checkpoint.extend([table, pointer, *home, *blocks]);
    }
    checkpoint.extend([1, 1, 6]);
    checkpoint.extend(pairs(&open[..6]));

    let appended = vec![disk.fill(LOG + 12, 600), disk.fill(LOG + 13, 601)];
    let last = vec![disk.fill(LOG + 14, 602), 77];
    let journal = [
        vec![
            (1, words(&[5, 12]), Some(LOG + 12), appended),
            (2, words(&[2, 1]), None, vec![]),
            (7, words(&[41, 1]), None, vec![]),
        ],
        vec![(5, words(&[26]), Some(96), open[6..].to_vec())],
        vec![(3, words(&[0, 4, 16, 6]), None, vec![])],
        // The second block of it never became durable.
        vec![(1, words(&[31, 14]), Some(LOG + 14), last)],
    ];
    disk.journal(AREA, (LayerKind::PersistentCache, DISK), &words(&checkpoint), &journal);
    disk
}

/// The flash of a cache with 10 slots.
pub fn flash() -> Blocks {
    const SLOTS: u64 = AREA_BLOCKS;
    let mut flash = Blocks::new(SLOTS + 10);
    let sums: Vec<u32> = (0..10).map(|slot| flash.fill(SLOTS + slot, 700 + slot)).collect();
    let mut checkpoint = words(&[10, 2, 1, 8]);
    for (lba, slot) in [(40u64, 0u32), (3, 2)] {
        checkpoint.extend(lba.to_le_bytes());
        checkpoint.extend(slot.to_le_bytes());
        checkpoint.extend(sums[slot as usize].to_le_bytes());
    }
    checkpoint.extend(5u32.to_le_bytes());
    checkpoint.extend(sums[5].to_le_bytes());
    checkpoint.extend([7; 8]);
    let slots = |slots: &[u32]| slots.iter().flat_map(|slot| slot.to_le_bytes()).collect();
    let journal = [
        vec![
            (1, words(&[20]), Some(SLOTS + 6), sums[6..8].to_vec()),
            (2, slots(&[0]), None, vec![]),
        ],
        vec![(3, slots(&[7]), None, vec![])],
        // This never became durable.
        vec![(1, words(&[3]), Some(SLOTS + 8), vec![78])],
    ];
    flash.journal(AREA, (LayerKind::Cache, FLASH), &checkpoint, &journal);
    flash
}

/// A cache over a translation, from the bytes of its members.
pub fn stack(dir: &Path, flash: &Blocks, disk: &Blocks, for_repair: bool) -> Shape {
    let member = |name: &str, blocks: &Blocks| {
        let path = dir.join(name);
        std::fs::write(&path, &blocks.0).expect("a file");
        Member::open(name, &path, for_repair).expect("a member")
    };
    Shape::Cache {
        flash: Box::new(Shape::Disk(member("flash", flash))),
        backing: Box::new(Shape::PersistentCache(member("disk", disk))),
    }
}

/// Disks of an array as files; what is `None` is not there.
pub fn on_files(
    dir: &Path,
    names: &[&str],
    disks: &[Option<&Blocks>],
    for_repair: bool,
) -> Vec<(String, Shape)> {
    let shape_of = |(name, disk): (&&str, &Option<&Blocks>)| {
        let shape = match disk {
            None => Shape::Missing("nobody has it".to_owned()),
            Some(disk) => {
                let path = dir.join(name);
                std::fs::write(&path, &disk.0).expect("a file");
                Shape::Disk(Member::open(name, &path, for_repair).expect("a member"))
            }
        };
        ((*name).to_owned(), shape)
    };
    names.iter().zip(disks).map(shape_of).collect()
}
