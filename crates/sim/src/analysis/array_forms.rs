//! Closed forms of RAID 4SMR (Le, thesis, Santa Clara University 2019, chapter 6): no trace, no disk.
//!
//! `arrays` of `homes` shingled disks and a parity disk each share one disk for what is written again.

/// Disks of all arrays: `n` in the thesis, where an array has three homes.
pub fn disks(arrays: f64, homes: f64) -> f64 {
    arrays * (homes + 1.0) + 1.0
}

/// Share of all disks that holds data when nothing on the data disk is counted: the left side of
/// equation 6.1, 1 - (1 + c) / n.
pub fn used_at_least(arrays: f64, homes: f64) -> f64 {
    1.0 - (1.0 + arrays) / disks(arrays, homes)
}

/// The same when the data disk is counted as full of further data: the right side, 1 - c / n.
pub fn used_at_most(arrays: f64, homes: f64) -> f64 {
    1.0 - arrays / disks(arrays, homes)
}

/// The same of data that is live. A block on the data disk makes the one at home dead, and nothing else takes
/// its place, so that no more is live than the homes hold.
pub fn used_by_live(arrays: f64, homes: f64) -> f64 {
    arrays * homes / disks(arrays, homes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_disks_and_eighty_one_are_as_the_thesis_says() {
        let percent = |share: f64| (10_000.0 * share).round() / 100.0;
        assert_eq!(disks(20.0, 3.0), 81.0);
        assert_eq!([used_at_least(1.0, 3.0), used_at_most(1.0, 3.0)].map(percent), [60.0, 80.0]);
        assert_eq!(
            [used_at_least(20.0, 3.0), used_at_most(20.0, 3.0)].map(percent),
            [74.07, 75.31]
        );
        assert_eq!([used_by_live(1.0, 3.0), used_by_live(20.0, 3.0)].map(percent), [60.0, 74.07]);
    }
}
