//! The bound from windows: what is written in one and does not fit into the room was rewritten in it.

use super::prices::Problem;

/// Cells between whose ends the windows are chosen.
const CELLS: u32 = 32;

/// A window and the least cost of rewrites inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Window {
    /// The first block write in it, counted from 0.
    pub start: u32,
    /// The block write after the last one in it.
    pub end: u32,
    /// The least cost of the rewrites in it.
    pub cost: u64,
}

/// Windows that do not overlap and whose costs add up to the most.
pub(super) fn best_windows(problem: &Problem<'_>) -> Vec<Window> {
    let ends = problem.writes.cell_ends(CELLS);
    let bands = problem.writes.by_band(&ends);
    let mut best: Vec<(u64, Option<Window>)> = vec![(0, None); ends.len() + 1];
    let mut distinct: Vec<Vec<u32>> = bands.iter().map(|band| vec![0; band.len()]).collect();
    let mut costs = vec![vec![0; ends.len() + 1]; ends.len()];
    // Of each band, the first of its cells that is not before the start of the window.
    let mut firsts: Vec<usize> = bands.iter().map(|band| band.len()).collect();
    for start in (0..ends.len()).rev() {
        for ((band, distinct), first) in bands.iter().zip(&mut distinct).zip(&mut firsts) {
            if *first > 0 && band.cells[*first - 1] as usize == start {
                *first -= 1;
                band.widen(*first, band.len(), distinct);
            }
        }
        for (end, least) in costs[start].iter_mut().enumerate().skip(start + 1) {
            let written = bands.iter().zip(&distinct).zip(&firsts).zip(problem.costs);
            let held = written.filter_map(|(((band, distinct), first), cost)| {
                let after = band.cells.partition_point(|cell| (*cell as usize) < end);
                (after > *first).then(|| (u64::from(distinct[after - 1]), *cost))
            });
            let must_be_clean = problem.is_drained && end == ends.len();
            let room = if must_be_clean { 0 } else { problem.room };
            *least = least_cover(held.collect(), room, problem.merged_max);
        }
    }
    let position = |cell: usize| if cell == 0 { 0 } else { ends[cell - 1] };
    for end in 1..=ends.len() {
        best[end] = (best[end - 1].0, None);
        for start in 0..end {
            let cost = costs[start][end];
            if best[start].0 + cost > best[end].0 {
                let window = Window { start: position(start), end: position(end), cost };
                best[end] = (best[start].0 + cost, Some(window));
            }
        }
    }
    windows_back_from(&best, &ends)
}

fn windows_back_from(best: &[(u64, Option<Window>)], ends: &[u32]) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut at = ends.len();
    while at > 0 {
        match best[at].1 {
            Some(window) => {
                windows.push(window);
                at = ends.partition_point(|end| *end <= window.start);
            }
            None => at -= 1,
        }
    }
    windows.reverse();
    windows
}

/// The least cost of rewrites after which no more than `room` blocks are held, where each band is
/// given by the blocks it holds and the cost of its rewrite, which cleans `merged_max` of them at most. A
/// part of a rewrite may be had for that part of the cost, which only makes it less; the sum is rounded up.
fn least_cover(held: Vec<(u64, u64)>, room: u64, merged_max: u64) -> u64 {
    let blocks: u64 = held.iter().map(|it| it.0).sum();
    let mut excess = blocks.saturating_sub(room);
    // What each rewrite cleans, its cost, and how many such there are.
    let mut rewrites: Vec<(u64, u64, u64)> = Vec::new();
    for (blocks, cost) in held {
        rewrites.push((merged_max, cost, blocks / merged_max));
        rewrites.push((blocks % merged_max, cost, u64::from(blocks % merged_max > 0)));
    }
    rewrites.retain(|it| it.2 > 0);
    rewrites.sort_unstable_by(|it, other| {
        let (own, others) =
            (u128::from(it.0) * u128::from(other.1), u128::from(other.0) * u128::from(it.1));
        others.cmp(&own)
    });
    let mut sum = 0;
    for (blocks, cost, count) in rewrites {
        let whole = count.min(excess / blocks);
        sum += whole * cost;
        excess -= whole * blocks;
        if whole < count {
            let part = u128::from(excess) * u128::from(cost);
            return sum + part.div_ceil(u128::from(blocks)) as u64;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bands_that_free_most_for_their_cost_go_first() {
        let cover = |held: &[(u64, u64)], room| least_cover(held.to_vec(), room, 100);
        let held = [(4, 1), (1, 1), (3, 1)];
        assert_eq!(cover(&held, 8), 0);
        assert_eq!(cover(&held, 7), 1);
        assert_eq!(cover(&held, 4), 1);
        assert_eq!(cover(&held, 3), 2);
        assert_eq!(cover(&held, 0), 3);
        // A part of the second band, at its cost of 10 for 5 blocks.
        assert_eq!(cover(&[(5, 10), (5, 5)], 3), 5 + 4);
    }

    #[test]
    fn a_rewrite_frees_no_more_than_it_cleans() {
        let cover = |room, merged_max| least_cover(vec![(7, 1), (2, 1)], room, merged_max);
        assert_eq!(cover(2, 7), 1);
        // 3, 3, then 2 of the other band, then the last 1.
        assert_eq!(cover(2, 3), 3);
        assert_eq!(cover(3, 3), 2);
        assert_eq!(cover(0, 3), 4);
        assert_eq!(cover(0, 1), 9);
    }
}
