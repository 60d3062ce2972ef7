use super::*;
use crate::rng::Rng;

/// The same decisions, taken by going through a list.
struct Naive {
    policy: BufferPolicy,
    window: usize,
    /// Entries with their segments, the least recently used first.
    list: Vec<(u32, u64)>,
}

impl Naive {
    fn victims(&self) -> Vec<u32> {
        let Some((oldest, _)) = self.list.first() else {
            return vec![];
        };
        let window = &self.list[..self.window.min(self.list.len())];
        let of = |part: &[(u32, u64)], segment: u64| -> Vec<u32> {
            let mine = part.iter().filter(|(_, it)| *it == segment);
            mine.map(|(entry, _)| *entry).collect()
        };
        // The first of equals, from the tail on.
        let most = |part: &[(u32, u64)]| {
            let mut best = (0, 0);
            for (_, segment) in part {
                let count = of(part, *segment).len();
                if count > best.0 {
                    best = (count, *segment);
                }
            }
            best.1
        };
        match self.policy {
            BufferPolicy::LruBlock => vec![*oldest],
            BufferPolicy::Lwa(Scope::Window) => of(window, most(window)),
            BufferPolicy::Lwa(Scope::WholeBuffer) => of(&self.list, most(window)),
            BufferPolicy::Most => of(&self.list, most(&self.list)),
            BufferPolicy::LruSegment => {
                let newest = |segment: u64| self.list.iter().rposition(|(_, it)| *it == segment);
                let segments = self.list.iter().map(|(_, segment)| *segment);
                let oldest = segments.min_by_key(|segment| newest(*segment));
                of(&self.list, oldest.expect("a block"))
            }
        }
    }
}

const POLICIES: [BufferPolicy; 5] = [
    BufferPolicy::Lwa(Scope::Window),
    BufferPolicy::Lwa(Scope::WholeBuffer),
    BufferPolicy::Most,
    BufferPolicy::LruBlock,
    BufferPolicy::LruSegment,
];

fn victims(replacement: &Replacement) -> Vec<u32> {
    let mut out = Vec::new();
    replacement.victims(&mut out);
    out
}

#[test]
fn every_policy_decides_as_a_search_through_a_list_does() {
    for case in 0..4000 {
        let mut rng = Rng::new(case, 8);
        let policy = POLICIES[(case % 5) as usize];
        let capacity = 1 + rng.below(24) as usize;
        let window = 1 + rng.below(capacity as u64) as usize;
        let segments = 1 + rng.below(8);
        let mut fast = Replacement::new(policy, capacity as u32, window as u32);
        let mut naive = Naive { policy, window, list: Vec::new() };
        for _ in 0..120 {
            let entry = rng.below(3 * capacity as u64) as u32;
            let segment = u64::from(entry) % segments;
            match naive.list.iter().position(|(it, _)| *it == entry) {
                Some(at) if rng.below(12) == 0 => {
                    naive.list.remove(at);
                    fast.remove(entry);
                }
                Some(at) => {
                    let it = naive.list.remove(at);
                    naive.list.push(it);
                    fast.touch(entry);
                }
                None => {
                    if naive.list.len() == capacity {
                        let leaving = naive.victims();
                        assert_eq!(victims(&fast), leaving, "case {case}, {policy:?}");
                        assert!(!leaving.is_empty());
                        naive.list.retain(|(it, _)| !leaving.contains(it));
                        leaving.iter().for_each(|it| fast.remove(*it));
                    }
                    naive.list.push((entry, segment));
                    fast.insert(entry, segment);
                }
            }
            assert_eq!(victims(&fast), naive.victims(), "case {case}, {policy:?}");
            let order = naive.list.iter().map(|(it, _)| *it);
            assert!(fast.oldest_first().eq(order));
        }
    }
}

/// Segments of blocks as in Figure 10 of the paper, from the head to the tail: the replacement region
/// holds MB12, MB13 and MB15 of segment 1 and one block each of the others.
fn figure_10(policy: BufferPolicy) -> Vec<u32> {
    let head_to_tail =
        [(11, 1), (21, 2), (31, 3), (22, 2), (12, 1), (23, 2), (13, 1), (32, 3), (15, 1)];
    let mut replacement = Replacement::new(policy, 9, 5);
    for (block, segment) in head_to_tail.iter().rev() {
        replacement.insert(*block, *segment);
    }
    let mut victims = victims(&replacement);
    victims.sort_unstable();
    victims
}

#[test]
fn the_example_of_the_paper() {
    let window = BufferPolicy::Lwa(Scope::Window);
    assert_eq!(figure_10(window), [12, 13, 15]);
    let whole = BufferPolicy::Lwa(Scope::WholeBuffer);
    assert_eq!(figure_10(whole), [11, 12, 13, 15]);
    assert_eq!(figure_10(BufferPolicy::Most), [11, 12, 13, 15]);
    assert_eq!(figure_10(BufferPolicy::LruBlock), [15]);
    // Segment 3 was last used at its block 31, segment 2 at 21, segment 1 at 11.
    assert_eq!(figure_10(BufferPolicy::LruSegment), [31, 32]);
}

#[test]
fn of_equal_segments_the_one_nearest_the_tail_leaves() {
    for policy in [BufferPolicy::Lwa(Scope::Window), BufferPolicy::Most] {
        let mut replacement = Replacement::new(policy, 4, 4);
        for (block, segment) in [(1, 7), (2, 9), (3, 9), (4, 7)] {
            replacement.insert(block, segment);
        }
        assert_eq!(victims(&replacement), [1, 4], "{policy:?}");
        replacement.touch(1);
        assert_eq!(victims(&replacement), [2, 3], "{policy:?}");
    }
}
