//! Closed forms of HWSR (TPDS 2016) and of the S-block layout it is compared with: no trace, no disk.
//!
//! Sizes are in tracks unless said otherwise. `kappa` is the number of tracks that one shingled write overlaps and the width of
//! a guard band; `spare` is the share of S-blocks (beta in the paper) that a region keeps free.

use imbrex_traces::synthetic::ln;

/// Share of the tracks of a disk that hold data with wave-like shingling: two regions share one guard band, so each pays half of
/// it (section 3.2).
pub fn tracks_used_by_segments(region_tracks: f64, kappa: f64) -> f64 {
    region_tracks / (region_tracks + kappa / 2.0)
}

/// The same for S-blocks, where a region has a guard band and, between the head and the tail of its log, another (section 3.2).
pub fn tracks_used_by_s_blocks(region_tracks: f64, kappa: f64) -> f64 {
    region_tracks / (region_tracks + 2.0 * kappa)
}

/// Share of the slots of a region of S-blocks that hold data when the spare slots are taken from those of the track, as the paper
/// counts (section 3.2).
pub fn slots_used_inside(spare: f64) -> f64 {
    1.0 - spare
}

/// The same when the spare slots are added to those of the track: 1 / (1 + beta).
pub fn slots_used_extra(spare: f64) -> f64 {
    1.0 / (1.0 + spare)
}

/// How many times as much data the same disk holds with segments as with S-blocks: the H-S ratio of section 3.2.
pub fn hs_ratio(region_tracks: f64, kappa: f64, spare: f64) -> f64 {
    tracks_used_by_segments(region_tracks, kappa)
        / (tracks_used_by_s_blocks(region_tracks, kappa) * slots_used_inside(spare))
}

/// Spare slots of a region of `segments` S-blocks: their share to the nearest, at least one.
pub fn spare_slots(segments: f64, spare: f64) -> f64 {
    (spare * segments).round().max(1.0)
}

/// S-blocks moved by a garbage collection, as the paper argues (its Figure 6): moving all that are valid frees the spare ones.
/// None without spare slots.
pub fn moved_as_published(spare: f64) -> Option<f64> {
    (spare > 0.0).then(|| 1.0 / spare)
}

/// S-blocks moved by a garbage collection when all updates go to one S-block: in a round of the log each of the others is moved
/// once, and each slot that is neither theirs frees one.
pub fn moved_when_one_is_hot(segments: f64, spare_slots: f64) -> f64 {
    (segments - 1.0) / (spare_slots + 1.0)
}

/// S-blocks moved by a garbage collection when updates are uniform: v / (1 - v), where v, the share that is still valid when the
/// tail comes to it, solves (1 - v) / -ln v = segments / slots.
pub fn moved_when_uniform(segments: f64, spare_slots: f64) -> f64 {
    let wanted = segments / (segments + spare_slots);
    // The left side grows with v from 0 to 1.
    let (mut low, mut high) = (1e-300, 1.0 - 1e-12);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        match (1.0 - middle) / -ln(middle) < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    low / (1.0 - low)
}

/// Bytes of a table with one entry for each unit of the disk. The 24 GB for 1 TB that the paper quotes are 12 bytes for each sector
/// of 512 bytes, in binary units; HWSR computes addresses and has no table.
pub fn table_bytes(capacity_bytes: f64, unit_bytes: f64, entry_bytes: f64) -> f64 {
    (capacity_bytes / unit_bytes).ceil() * entry_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_paper() {
        for (region_tracks, kappa, spare, expected) in
            [(10.0, 3.0, 0.3, 1.988), (10.0, 6.0, 0.1, 1.880), (32.0, 3.0, 0.1, 1.260)]
        {
            let ratio = hs_ratio(region_tracks, kappa, spare);
            assert_eq!((ratio * 1000.0).round() / 1000.0, expected);
            // The formula as it is printed.
            let printed = 2.0 * (region_tracks + 2.0 * kappa)
                / ((2.0 * region_tracks + kappa) * (1.0 - spare));
            assert!((ratio - printed).abs() < 1e-12);
        }
    }

    #[test]
    fn spare_slots_are_rounded_and_never_none() {
        assert_eq!(spare_slots(64.0, 0.1), 6.0);
        assert_eq!(spare_slots(64.0, 0.0), 1.0);
        assert_eq!(slots_used_extra(0.25), 0.8);
        assert_eq!(slots_used_inside(0.25), 0.75);
    }

    #[test]
    fn a_hot_s_block_moves_nine_at_the_defaults() {
        assert_eq!(moved_when_one_is_hot(64.0, spare_slots(64.0, 0.1)), 9.0);
        assert_eq!(moved_as_published(0.1), Some(10.0));
        assert_eq!(moved_as_published(0.0), None);
    }

    #[test]
    fn uniform_updates_solve_their_equation() {
        for slots in [1.0, 50.0, 100.0, 300.0, 5000.0] {
            let moved = moved_when_uniform(1000.0, slots);
            let valid = moved / (1.0 + moved);
            let left = (1.0 - valid) / -valid.ln();
            assert!((left - 1000.0 / (1000.0 + slots)).abs() < 1e-6, "{slots}");
        }
        assert!((moved_when_uniform(1000.0, 100.0) - 4.677).abs() < 0.001);
    }

    #[test]
    fn a_table_of_sectors_takes_24_gib_for_a_tib() {
        let tib = (1u64 << 40) as f64;
        assert_eq!(table_bytes(tib, 512.0, 12.0), (24u64 << 30) as f64);
    }
}
