//! Where a synthetic volume keeps its data: touched bands, extents inside them, the hot set.

use super::sampling::{Random, zipf_weight};
use super::volume::Volume;

/// 4 KiB, the request size of every volume recipe.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// A run of blocks that belong together, as a file's extent does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub first_block: u64,
    pub blocks: u64,
}

/// The data of one touched band.
#[derive(Debug, Clone)]
pub(super) struct Band {
    pub first_block: u64,
    /// Writable extents in ascending order; empty in a band that is only read.
    pub extents: Vec<Run>,
}

/// Everything the generator needs to know about addresses; fixed before the first request.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub device_blocks: u64,
    /// Written bands first (in random order), then the bands that are only read.
    pub bands: Vec<Band>,
    pub written_bands: usize,
    /// Indices of the bands that one long file fills.
    pub dense: Vec<usize>,
    /// Written bands that are not dense, in order of popularity.
    pub scatter: Vec<usize>,
    /// Candidates for the hot set, in random order; the set slides along them.
    pub hot: Vec<Run>,
    /// Size of the hot set, in candidates.
    pub hot_items: usize,
    /// Bands in address order, as a backup reads them.
    pub scan_order: Vec<usize>,
}

impl Layout {
    pub(super) fn new(volume: &Volume, random: &mut Random) -> Self {
        let counts = volume.counts();
        let locality = &volume.locality;
        let (places, device_bands) = places(volume, random);
        let mut bands: Vec<Band> = places
            .iter()
            .map(|&place| Band { first_block: place * counts.band_blocks, extents: Vec::new() })
            .collect();
        random.shuffle(&mut bands);

        let written = counts.written_bands as usize;
        let dense_bands =
            share(locality.dense_bands_percent, written).min(written.saturating_sub(1));
        let dense: Vec<usize> = (0..dense_bands).collect();
        let mut scatter: Vec<usize> = (dense_bands..written).collect();
        let dense_blocks = percent(locality.dense_coverage_percent, counts.band_blocks).max(1);
        for &band in &dense {
            let first_block = bands[band].first_block;
            bands[band].extents.push(Run { first_block, blocks: dense_blocks });
        }
        let writable =
            percent(locality.written_coverage_percent, counts.band_blocks * written as u64);
        let sparse_blocks = writable.saturating_sub(dense_blocks * dense_bands as u64);
        let coverage =
            coverages(scatter.len(), sparse_blocks, counts.band_blocks, locality.density_skew);
        for (&band, &blocks) in scatter.iter().zip(&coverage) {
            let first_block = bands[band].first_block;
            bands[band].extents =
                extents(first_block, counts.band_blocks, blocks, locality.extent_blocks, random);
        }
        // Popularity is drawn independently of density: a busy band may be full or almost empty.
        random.shuffle(&mut scatter);
        let hot_blocks = percent(locality.hot_blocks_percent, writable).max(1);
        let (hot, hot_items) = hot_set(volume, &bands, &scatter, hot_blocks, random);
        let mut scan_order: Vec<usize> = (0..bands.len()).collect();
        scan_order.sort_by_key(|&band| bands[band].first_block);
        Self {
            device_blocks: device_bands * counts.band_blocks,
            bands,
            written_bands: written,
            dense,
            scatter,
            hot,
            hot_items,
            scan_order,
        }
    }
}

/// `value` percent of `whole`, rounded to nearest.
pub(super) fn percent(value: f64, whole: u64) -> u64 {
    (value * whole as f64 / 100.0).round() as u64
}

fn share(value: f64, whole: usize) -> usize {
    let count = percent(value, whole as u64) as usize;
    if value > 0.0 { count.max(1) } else { 0 }
}

/// The device's bands that are touched, ascending, and how many bands the device has.
fn places(volume: &Volume, random: &mut Random) -> (Vec<u64>, u64) {
    let locality = &volume.locality;
    let wanted = volume.counts().accessed_bands;
    let mut places = Vec::with_capacity(wanted as usize);
    let mut next = 0;
    let gap_mean = locality.touched_run_bands * (locality.device_to_touched - 1.0);
    while (places.len() as u64) < wanted {
        for _ in 0..random.geometric(locality.touched_run_bands).min(wanted - places.len() as u64) {
            places.push(next);
            next += 1;
        }
        if gap_mean > 0.0 {
            next += random.geometric(gap_mean.max(1.0));
        }
    }
    (places, next)
}

/// Writable blocks of each sparse band: proportional to `1 / rank^skew`, at most 70 % of the band, `total` in all.
fn coverages(bands: usize, total: u64, band_blocks: u64, skew: f64) -> Vec<u64> {
    let most = (band_blocks * 7 / 10).max(1);
    let weights: Vec<f64> = (0..bands).map(|rank| zipf_weight(rank, skew)).collect();
    let mut scale = total as f64 / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    // Bands clipped at the top hand their share to the others; a few rounds settle it.
    for _ in 0..20 {
        let (mut clipped, mut free) = (0.0, 0.0);
        for weight in &weights {
            if weight * scale >= most as f64 {
                clipped += most as f64;
            } else {
                free += weight;
            }
        }
        if free == 0.0 || clipped >= total as f64 {
            break;
        }
        scale = (total as f64 - clipped) / free;
    }
    weights.iter().map(|weight| ((weight * scale) as u64).clamp(1, most)).collect()
}

/// Cuts the band into equal cells and puts one extent of about `mean` blocks at a random place in each.
fn extents(
    first_block: u64,
    band_blocks: u64,
    blocks: u64,
    mean: f64,
    random: &mut Random,
) -> Vec<Run> {
    let count = ((blocks as f64 / mean).round() as u64).clamp(1, blocks);
    let cell = band_blocks / count;
    let mut left = blocks;
    let mut runs = Vec::with_capacity(count as usize);
    for index in 0..count {
        let extents_left = count - index;
        // The mean of what is left keeps the total exact up to the cell size.
        let length = random
            .geometric(left as f64 / extents_left as f64)
            .min(left - (extents_left - 1))
            .clamp(1, cell);
        let offset = random.below(cell - length + 1);
        runs.push(Run { first_block: first_block + index * cell + offset, blocks: length });
        left = (left - length).max(extents_left - 1);
    }
    runs
}

/// Hot candidates: pieces of the extents of the bands that hold hot data.
fn hot_set(
    volume: &Volume,
    bands: &[Band],
    scatter: &[usize],
    blocks: u64,
    random: &mut Random,
) -> (Vec<Run>, usize) {
    let locality = &volume.locality;
    let homes = share(locality.hot_bands_percent, scatter.len()).max(1).min(scatter.len());
    let mut pieces = Vec::new();
    // Every second popular band: hot data is found in busy and quiet bands alike.
    let stride = (scatter.len() / homes).max(1);
    for &band in scatter.iter().step_by(stride).take(homes) {
        for extent in &bands[band].extents {
            let mut start = 0;
            while start < extent.blocks {
                let length = locality.hot_item_blocks.min(extent.blocks - start);
                pieces.push(Run { first_block: extent.first_block + start, blocks: length });
                start += length;
            }
        }
    }
    if pieces.is_empty() {
        // Every written band is dense: the head of each long file is the hot data.
        pieces.extend(
            bands
                .iter()
                .filter_map(|band| band.extents.first())
                .map(|extent| Run { blocks: 1, ..*extent }),
        );
    }
    random.shuffle(&mut pieces);
    let items = (blocks / locality.hot_item_blocks).clamp(1, pieces.len() as u64) as usize;
    let candidates = (items as f64 * (1.0 + locality.hot_replacements)) as usize;
    pieces.truncate(candidates.max(items));
    (pieces, items)
}
