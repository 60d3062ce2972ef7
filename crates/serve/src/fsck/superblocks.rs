//! The copies of the superblock of a member: finding them, choosing one, and repairing the others.

use super::findings::Findings;
use super::member::{BLOCK, Member};
use imbrex_core::durability::block::{BlockError, FORMAT_VERSION, MAGIC};
use imbrex_core::durability::superblock::{COPIES, Superblock};
use std::fmt;
use std::io;

/// Blocks at the start of a member in which a copy is looked for when the first two are damaged.
const SEARCH_BLOCKS_MAX: u64 = 1 << 18;
/// Blocks that are read at once.
const CHUNK_BLOCKS: u64 = 64;
/// Fewest blocks of an area: four superblocks, two places of one block and the smallest ring.
const AREA_BLOCKS_MIN: u64 = 4 + 2 + 8;
/// A superblock that counts further is not one that a device has written.
pub(super) const COUNT_MAX: u64 = u64::MAX / 2;

/// One copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copy {
    /// Its block on the member.
    pub address: u64,
    /// What it says, or why it is bad.
    pub found: Result<Superblock, String>,
}

/// Why a member cannot be judged by its superblocks.
#[derive(Debug)]
pub enum NoSuperblock {
    /// Nothing looks like one.
    NotFormatted,
    /// Another format wrote them.
    Version(u16),
    /// All are bad.
    Damaged(String),
    /// The system cannot read.
    Io(io::Error),
}

impl fmt::Display for NoSuperblock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSuperblock::NotFormatted => f.write_str("no copy was found: it is not formatted"),
            NoSuperblock::Version(found) => write!(
                f,
                "it has format version {found}; this build reads version {FORMAT_VERSION}"
            ),
            NoSuperblock::Damaged(problem) => f.write_str(problem),
            NoSuperblock::Io(error) => write!(f, "{error}"),
        }
    }
}

/// The copies of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblocks {
    /// The four copies, in their order.
    pub copies: Vec<Copy>,
    /// Which of the good ones count, the best first: see the page of the format.
    pub candidates: Vec<Superblock>,
}

impl Superblocks {
    /// Finds the copies of a member whose area begins at its first block.
    ///
    /// # Errors
    /// When there is no good copy.
    pub fn find(member: &Member) -> Result<Superblocks, NoSuperblock> {
        let mut first = Vec::new();
        for address in 0..2 {
            first.push(read_copy(member, address).map_err(NoSuperblock::Io)?);
        }
        let good = first.iter().find_map(|copy| copy.clone().ok());
        let area = match good.filter(is_plausible) {
            Some(superblock) => superblock.area_blocks,
            None => search(member).map_err(NoSuperblock::Io)?.ok_or_else(|| why_none(&first))?,
        };
        let mut copies = Vec::with_capacity(COPIES);
        for address in [0, 1, area - 2, area - 1] {
            let found = match read_copy(member, address) {
                Ok(found) => found.map_err(|error| error.message()),
                Err(error) => Err(format!("it cannot be read: {error}")),
            };
            let found = found.and_then(|superblock| match is_plausible(&superblock) {
                true => Ok(superblock),
                false => Err("it holds numbers that no device writes".to_owned()),
            });
            copies.push(Copy { address, found });
        }
        let candidates = candidates(&copies);
        match candidates.is_empty() {
            true => Err(NoSuperblock::Damaged("no copy is whole".to_owned())),
            false => Ok(Superblocks { copies, candidates }),
        }
    }

    /// Says which copies are bad or do not agree, and with `repair` writes the bad ones again.
    ///
    /// Copies of another generation are what a crash during a checkpoint leaves behind; the next
    /// opening writes them again.
    pub fn check(&self, chosen: &Superblock, member: &Member, repair: bool, into: &mut Findings) {
        const STRUCTURE: &str = "superblock";
        let name = member.name();
        // Writing past the end of a member that was cut would only hide that.
        let repair = repair && member.blocks() >= chosen.member_blocks;
        for (number, copy) in self.copies.iter().enumerate() {
            match &copy.found {
                Err(problem) => {
                    let words = format!("copy {number} at block {}: {problem}", copy.address);
                    if !repair {
                        into.damage(name, STRUCTURE, words);
                    } else if let Err(error) =
                        member.write(copy.address, &chosen.encode(copy.address))
                    {
                        into.damage(name, STRUCTURE, format!("{words}; repairing it: {error}"));
                    } else {
                        into.repaired(name, STRUCTURE, words);
                    }
                }
                Ok(found) if found.generation == chosen.generation && found != chosen => {
                    let words = format!("copy {number} differs from others of its generation");
                    into.damage(name, STRUCTURE, words);
                }
                Ok(found) if found.member != chosen.member => {
                    let words = format!("copy {number} is of member {}", found.member);
                    into.damage(name, STRUCTURE, words);
                }
                Ok(found) if found.generation != chosen.generation => into.note(
                    name,
                    format!(
                        "superblock copy {number} has generation {}, and {} counts: a checkpoint \
                         was cut short",
                        found.generation, chosen.generation
                    ),
                ),
                Ok(_) => {}
            }
        }
    }
}

fn read_copy(member: &Member, address: u64) -> io::Result<Result<Superblock, BlockError>> {
    let mut bytes = Vec::new();
    member.read(address, 1, &mut bytes)?;
    Ok(Superblock::decode(&bytes, address, false))
}

/// The newest that two copies agree on, then those that are newer; without agreement the newest.
fn candidates(copies: &[Copy]) -> Vec<Superblock> {
    let good: Vec<Superblock> = copies.iter().filter_map(|copy| copy.found.clone().ok()).collect();
    let agree = |one: &&Superblock| good.iter().filter(|other| other == one).count() >= 2;
    let newest = |one: &&Superblock| one.generation;
    let agreed = good.iter().filter(agree).max_by_key(newest);
    let Some(chosen) = agreed.or(good.iter().max_by_key(newest)) else {
        return Vec::new();
    };
    let mut newer: Vec<Superblock> =
        good.iter().filter(|copy| copy.generation > chosen.generation).copied().collect();
    newer.sort_by_key(|copy| core::cmp::Reverse(copy.generation));
    let mut all = vec![*chosen];
    all.append(&mut newer);
    all
}

fn is_plausible(superblock: &Superblock) -> bool {
    let Superblock { area_blocks, checkpoint_blocks, .. } = *superblock;
    let places = checkpoint_blocks.checked_mul(2);
    let least = places.and_then(|places| places.checked_add(AREA_BLOCKS_MIN - 2));
    let counts = [superblock.generation, superblock.epoch, superblock.replay_from, area_blocks];
    checkpoint_blocks > 0
        && least.is_some_and(|least| least <= area_blocks)
        && superblock.checkpoint_place <= 1
        && counts.iter().all(|count| *count <= COUNT_MAX)
}

/// The length of the area that one of the last two copies speaks of.
fn search(member: &Member) -> io::Result<Option<u64>> {
    let end = member.blocks().min(SEARCH_BLOCKS_MAX);
    let mut bytes = Vec::new();
    for start in (0..end).step_by(CHUNK_BLOCKS as usize) {
        member.read(start, CHUNK_BLOCKS.min(end - start), &mut bytes)?;
        for (address, block) in (start..).zip(bytes.chunks_exact(BLOCK)) {
            if block[..4] != MAGIC.to_le_bytes() {
                continue;
            }
            if let Ok(superblock) = Superblock::decode(block, address, false)
                && is_plausible(&superblock)
                && (superblock.area_blocks - 2..superblock.area_blocks).contains(&address)
            {
                return Ok(Some(superblock.area_blocks));
            }
        }
    }
    Ok(None)
}

fn why_none(first: &[Result<Superblock, BlockError>]) -> NoSuperblock {
    let mut words = Vec::new();
    for (copy, found) in first.iter().enumerate() {
        match found {
            Err(BlockError::Version(found)) => return NoSuperblock::Version(*found),
            Err(BlockError::Zero | BlockError::Magic(_)) => {}
            Err(error) => words.push(format!("copy {copy}: {}", error.message())),
            Ok(_) => words.push(format!("copy {copy} holds numbers that no device writes")),
        }
    }
    match words.is_empty() {
        true => NoSuperblock::NotFormatted,
        false => NoSuperblock::Damaged(words.join("; ")),
    }
}
