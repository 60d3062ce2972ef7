//! The write-intent pages that a cache keeps on what it caches.

use super::cache::CacheState;
use super::findings::Findings;
use super::words::Words;
use imbrex_core::durability::block::{self, BlockKind, Expected};
use imbrex_core::lifecycle::Uuid;

/// Pages at the end of the backing.
pub(super) const PAGES: u64 = 2;
pub(super) const STRUCTURE: &str = "write-intent page";

/// What a page says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentPage {
    /// The member that it was written to.
    pub member: Uuid,
    /// Counts the pages.
    pub version: u64,
    /// Blocks of a region.
    pub region_blocks: u64,
    /// Regions.
    pub regions: u64,
    /// The generation of the cache that was durable when it was written.
    pub generation: u64,
    /// The generation that was about to become durable, or 0.
    pub pending: u64,
    /// The regions that may hold dirty blocks, in order.
    pub marked: Vec<u64>,
}

/// The pages of a cache: the newest good one counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IntentState {
    /// The two pages, or why they are bad.
    pub pages: Vec<Result<IntentPage, String>>,
}

impl IntentPage {
    /// Takes a page apart that was read at `address` of the backing.
    pub fn decode(bytes: &[u8], address: u64) -> Result<IntentPage, String> {
        let expected = Expected::new(BlockKind::WriteIntent, None, address);
        let (header, payload) = block::unseal(bytes, expected).map_err(|error| error.message())?;
        let mut words = Words::new(payload);
        let mut next = || words.u64().ok_or("it is shorter than its head");
        let (region_blocks, regions) = (next()?, next()?);
        let (generation, pending) = (next()?, next()?);
        if region_blocks == 0 || words.left() != regions.div_ceil(64).saturating_mul(8) {
            return Err("it has not as many bits as regions".to_owned());
        }
        let mut marked = Vec::new();
        for first in (0..regions).step_by(64) {
            let bits = words.u64().unwrap_or(0);
            marked.extend((0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| first + bit));
        }
        Ok(IntentPage {
            member: header.member,
            version: header.sequence,
            region_blocks,
            regions,
            generation,
            pending,
            marked,
        })
    }
}

impl IntentState {
    /// Reads the pages with `read`, which reads a block of the backing.
    pub fn read(
        blocks: u64,
        mut read: impl FnMut(u64, &mut Vec<u8>) -> Result<(), String>,
    ) -> IntentState {
        let mut bytes = Vec::new();
        let pages = (blocks.saturating_sub(PAGES)..blocks).map(|address| {
            read(address, &mut bytes)?;
            IntentPage::decode(&bytes, address)
        });
        IntentState { pages: pages.collect() }
    }

    /// The page that counts.
    pub fn newest(&self) -> Option<&IntentPage> {
        let good = self.pages.iter().filter_map(|page| page.as_ref().ok());
        good.max_by_key(|page| page.version)
    }

    /// Checks the pages, and that they and the cache know of each other.
    pub fn check(&self, cache: Option<(&CacheState, u64)>, backing: &str, into: &mut Findings) {
        for (number, page) in self.pages.iter().enumerate() {
            if let Err(problem) = page {
                into.damage(backing, STRUCTURE, format!("page {number}: {problem}"));
            }
        }
        let (Some(page), Some((cache, generation))) = (self.newest(), cache) else {
            return;
        };
        if generation < page.generation {
            let words = format!(
                "the cache has reached generation {generation}, and the page remembers {}: the \
                 flash is an older copy of itself",
                page.generation
            );
            into.damage(backing, STRUCTURE, words);
        }
        if generation > page.generation.max(page.pending) {
            let words = format!(
                "the cache has reached generation {generation}, and the page knows of {} at most: \
                 the backing is an older copy of itself",
                page.generation.max(page.pending)
            );
            into.damage(backing, STRUCTURE, words);
        }
        let unmarked = |lba: &&u64| {
            let region = **lba / page.region_blocks;
            page.marked.binary_search(&region).is_err()
        };
        if let Some(lba) = cache.dirty.keys().find(unmarked) {
            let words = format!("block {lba} is dirty, and its region is not marked");
            into.damage(backing, STRUCTURE, words);
        }
    }
}
