//! What no policy can pass on a workload, for the bands, the log and the caches that a stack has.

use super::footprints::Footprints;
use super::rounds::Rounds;
use super::run::{RunError, Task};
use super::workload::NEVER;
use crate::analysis::bound::{
    BlockWrites, BlockWritesBuilder, Cost, Limits, Lookup, WriteBound, read_misses, write_bound,
};
use crate::progress::{Pieces, Progress};
use crate::record_source::RecordSource;
use crate::replay::{ReplayError, place};
use imbrex_core::cache::next_uses;
use imbrex_core::map::BandTable;
use imbrex_core::operation::Operation;
use imbrex_core::units::{BLOCK_BYTES, Lba};
use imbrex_report::UNKNOWN_COMMIT;
use imbrex_stack::{ConfigError, Describe, Plan, StackConfig};
use serde::Serialize;

/// Identifies the document.
pub const SCHEMA: &str = "imbrex.bound/1";

/// How a bound is looked for.
#[derive(Clone, Copy, Debug)]
pub struct BoundOptions {
    /// Cells of time at most; more give a higher bound and take longer.
    pub cells: u32,
    /// Whether what is held at the end must be rewritten too.
    pub is_drained: bool,
}

/// Where written blocks may be held back from the bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Room {
    /// Capacity of the caches.
    pub cache_blocks: u64,
    /// Blocks that may be on their way out of the caches beside that.
    pub destage_slots: u64,
    /// Slots of the log.
    pub log_blocks: u64,
}

impl Room {
    /// All of it.
    pub fn blocks(self) -> u64 {
        let caches = self.cache_blocks.saturating_add(self.destage_slots);
        caches.saturating_add(self.log_blocks)
    }

    /// What lies in front of the bands. A rewrite merges what the log holds of its band and nothing
    /// else: what is still above the log stays held.
    fn limits(self) -> Limits {
        Limits { room: self.blocks(), merged_max: self.log_blocks }
    }
}

/// The bounds of a stack on a workload, with what proves them.
#[derive(Clone, Debug, Serialize)]
pub struct Bound {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// Commit the program was built from.
    pub commit: String,
    /// The stack.
    pub system: String,
    /// The workload.
    pub trace: String,
    /// SHA-256 of the trace file as stored; null for a recipe.
    pub sha256: Option<String>,
    /// Seed of the band layout.
    pub seed: u64,
    /// What shares were shares of, in bytes; null where nothing was one.
    pub footprint_bytes: Option<u64>,
    /// Where written blocks may be held.
    #[serde(flatten)]
    pub room: Room,
    /// Whether what is held at the end must be rewritten too.
    pub drained: bool,
    /// Block writes of the trace, without those of blocks that it also trims or zeroes.
    pub block_writes: u64,
    /// Start and length, in blocks, of each band that is written.
    pub bands: Vec<(u64, u64)>,
    /// The least number of band rewrites.
    pub bands_rewritten: WriteBound,
    /// The least number of blocks that are written home; null where a rewrite may write less than its
    /// band.
    pub band_blocks_written: Option<WriteBound>,
    /// What the trace reads, and the least of it that the caches do not have.
    #[serde(flatten)]
    pub reads: ReadBound,
}

/// The bound on reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ReadBound {
    /// Blocks that the trace reads.
    pub read_blocks: u64,
    /// The least number of them that the caches do not have.
    pub read_misses: u64,
}

impl Bound {
    /// The least bytes that are written home, where it is known.
    pub fn band_bytes_written(&self) -> Option<u64> {
        let blocks = self.band_blocks_written.as_ref()?;
        Some(blocks.bound * BLOCK_BYTES)
    }
}

/// A stack whose sizes are known, with the bands that its room lies in front of.
pub(super) struct Bounded {
    plan: Plan,
    pub room: Room,
    footprint_bytes: Option<u64>,
    rewrites_whole_bands: bool,
}

impl Bounded {
    /// What a bound depends on beside the workload, so that equal stacks need one.
    pub fn key(&self) -> (String, Limits) {
        (self.plan.bands_key().to_string(), self.room.limits())
    }

    fn bands(&self) -> &BandTable {
        self.plan.bands().expect("a stack with bands")
    }
}

/// The requests of a workload as the bounds see them.
struct Requests {
    writes: BlockWrites,
    lookups: Vec<Lookup>,
    lookup_ends: Vec<u32>,
}

impl Task<'_> {
    /// The bounds for the stack and the workload of the task. `progress` hears of the requests that are read and of
    /// each bound.
    ///
    /// # Errors
    /// When the stack or the trace is wrong, or no bound holds for the stack.
    pub fn bound(&self, options: &BoundOptions, progress: Progress<'_>) -> Result<Bound, RunError> {
        let bounded = self.bounded(&Footprints::default())?.map_err(|why| {
            let system = &self.case.config.name;
            ConfigError::words(format!("system `{system}`: {why}"))
        })?;
        let pieces = Pieces::begin(progress, 0, if bounded.rewrites_whole_bands { 4 } else { 3 });
        let requests = self.requests(&bounded)?;
        pieces.end("requests read");
        let limits = bounded.room.limits();
        let bound = |cost, name| {
            let (piece, BoundOptions { cells, is_drained }) = (pieces.piece(), *options);
            let reached = |share| piece.reach(share);
            let found = write_bound(&requests.writes, limits, cost, is_drained, cells, &reached);
            piece.end(name);
            found
        };
        let bands_rewritten = bound(Cost::Rewrites, "least rewrites of bands");
        let whole_bands = bounded.rewrites_whole_bands;
        let band_blocks_written =
            whole_bands.then(|| bound(Cost::Blocks, "least blocks written home"));
        let read_misses =
            read_misses(&requests.lookups, &requests.lookup_ends, bounded.room.cache_blocks);
        pieces.end("least reads missed");
        let bands = requests.writes.bands().iter().map(|band| {
            let extent = bounded.bands().extent_of(*band);
            (extent.start.0, extent.blocks.0)
        });
        Ok(Bound {
            schema: SCHEMA,
            commit: UNKNOWN_COMMIT.to_string(),
            system: self.case.config.name.clone(),
            trace: self.workload.path.clone(),
            sha256: self.workload.sha256()?,
            seed: self.seed,
            footprint_bytes: bounded.footprint_bytes,
            room: bounded.room,
            drained: options.is_drained,
            block_writes: requests.writes.len(),
            bands: bands.collect(),
            bands_rewritten,
            band_blocks_written,
            reads: ReadBound {
                read_blocks: requests.lookups.iter().filter(|it| it.is_read).count() as u64,
                read_misses,
            },
        })
    }

    /// The least number of band rewrites alone, of a stack that [`bounded`](Self::bounded) found.
    pub(super) fn rewrites_bound(&self, bounded: &Bounded, cells: u32) -> Result<u64, RunError> {
        let writes = self.requests(bounded)?.writes;
        let limits = bounded.room.limits();
        Ok(write_bound(&writes, limits, Cost::Rewrites, false, cells, &|_| {}).bound)
    }

    /// The sizes of the stack, as a run would have them; or in words why no bound holds for it.
    pub(super) fn bounded(
        &self,
        footprints: &Footprints,
    ) -> Result<Result<Bounded, String>, RunError> {
        if self.workload.is_stream() {
            let words =
                "a bound reads the trace twice, which standard input does not allow; give a file";
            return Err(ConfigError::words(words.to_string()).into());
        }
        let (plan, footprint, built) = self.build(&self.options(), footprints, &NEVER)?;
        let room = room_of(&self.case.config, &plan, &built.describe);
        Ok(room.map(|(room, rewrites_whole_bands)| Bounded {
            plan,
            room,
            footprint_bytes: footprint.map(|it| it.touched_bytes),
            rewrites_whole_bands,
        }))
    }

    fn requests(&self, bounded: &Bounded) -> Result<Requests, RunError> {
        let (device, replay) = (bounded.plan.blocks(), self.case.replay);
        let drop_reads = replay.drop_reads || bounded.plan.is_write_only();
        let mut writes = BlockWritesBuilder::new(bounded.bands());
        let mut lbas: Vec<Lba> = Vec::new();
        let mut are_reads = Vec::new();
        let mut lookup_ends = Vec::new();
        let mut records = Rounds::new(self.workload, self.workload.limit, &NEVER)?;
        let mut number = 0;
        while let Some(record) = records.next_record()? {
            number += 1;
            let Some((operation, extent)) = place(&record, device, replay.placement) else {
                let error = ReplayError::beyond(number, &record, "device".into(), device);
                return Err(RunError::Replay {
                    trace: self.workload.path.clone(),
                    error: Box::new(error),
                });
            };
            match operation {
                Operation::Read if drop_reads => continue,
                Operation::Read => {}
                Operation::Write { .. } => writes.write(extent),
                Operation::Zero { .. } => {
                    writes.forget(extent);
                    continue;
                }
                _ => continue,
            }
            lbas.extend((extent.start.0..extent.end().0).map(Lba));
            are_reads.resize(lbas.len(), operation == Operation::Read);
            lookup_ends.push(lbas.len() as u32);
        }
        let lookups = next_uses(&lbas).into_iter().zip(are_reads);
        Ok(Requests {
            writes: writes.finish(),
            lookups: lookups.map(|(next, is_read)| Lookup { next, is_read }).collect(),
            lookup_ends,
        })
    }
}

/// Where written blocks may be held, and whether a rewrite writes its whole band. On the way from the
/// host to the translation there may be write-back caches and nothing else: what other nodes hold is not
/// counted, and the bound would be too high.
fn room_of(config: &StackConfig, plan: &Plan, describe: &Describe) -> Result<(Room, bool), String> {
    let mut room = Room { cache_blocks: 0, destage_slots: 0, log_blocks: 0 };
    let mut node = config.top();
    let (name, translation) = loop {
        let name = node.name();
        let facts = describe.facts_of(name).ok_or_else(no_translation)?;
        if let Some(translation) = facts.translation() {
            break (name, translation);
        }
        if let Some(cache) = facts.cache() {
            room.cache_blocks = room.cache_blocks.saturating_add(cache.capacity_blocks);
            room.destage_slots += cache.destage_slots;
        } else if node.is_last_translation() {
            return Err(no_translation());
        } else {
            return Err(format!(
                "node `{name}`: it stands above the translation, and what it holds is not counted, \
                 so no bound holds; accepted: nodes of kind \"write-back-cache\" and no others there"
            ));
        }
        let below = node.below().pop().and_then(|name| config.node(name));
        node = below.ok_or_else(no_translation)?;
    };
    let translations = describe.nodes.iter().filter_map(|node| node.facts.translation());
    if plan.bands().is_none() || translations.count() != 1 {
        return Err(no_translation());
    }
    if let Some((what, accepted)) = translation.unbounded_by {
        return Err(format!(
            "node `{name}`: {what} brings blocks home without a band rewrite that is counted, so no \
             bound holds; accepted: {accepted}"
        ));
    }
    room.log_blocks = translation.log_blocks;
    Ok((room, translation.rewrites_whole_bands))
}

fn no_translation() -> String {
    "a bound needs the bands of one translation on the way of the data; accepted: a stack such as \
     `pore` or `smr-only`"
        .to_string()
}
