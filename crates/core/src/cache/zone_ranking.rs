//! Of many zones, the one with the greatest weight.

use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// The zones by their weights, as a tournament: each match is won by the greater weight, and by the lower
/// zone of two that weigh the same.
#[derive(SavedValue)]
pub(super) struct ZoneRanking {
    /// The winner of each match: the final is at 1, those before match `n` at `2 n` and `2 n + 1`.
    matches: Vec<u32>,
    /// By zone.
    weights: Vec<u32>,
}

impl ZoneRanking {
    /// So many zones of weight 0.
    pub fn new(zones: usize) -> ZoneRanking {
        let half = zones.next_power_of_two();
        let mut ranking = ZoneRanking { matches: vec![0; half], weights: vec![0; zones] };
        for number in (1..half).rev() {
            ranking.matches[number] = ranking.winner(number);
        }
        ranking
    }

    /// Who wins a match, given who wins those before it.
    fn winner(&self, number: usize) -> u32 {
        let half = self.matches.len();
        let [left, right] = [2 * number, 2 * number + 1].map(|before| match before < half {
            true => self.matches[before],
            // In the first round zones meet their neighbours.
            false => (before - half) as u32,
        });
        let weight = |zone: u32| self.weights.get(zone as usize).copied().unwrap_or(0);
        if weight(right) > weight(left) { right } else { left }
    }

    /// A zone has another weight from now on.
    pub fn set(&mut self, zone: u32, weight: u32) {
        if core::mem::replace(&mut self.weights[zone as usize], weight) == weight {
            return;
        }
        let mut number = (zone as usize + self.matches.len()) / 2;
        while number > 0 {
            self.matches[number] = self.winner(number);
            number /= 2;
        }
    }

    /// The zone with the greatest weight, the lowest of those that have it; none when all weigh 0.
    pub fn first(&self) -> Option<u32> {
        // Where there is one zone there is no match.
        let zone = self.matches.get(1).copied().unwrap_or(0);
        let weight = self.weights.get(zone as usize).copied().unwrap_or(0);
        (weight > 0).then_some(zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_first_is_the_lowest_of_the_heaviest() {
        for zones in [1, 2, 3, 7, 8, 9, 100] {
            let mut rng = Rng::new(zones, 1);
            let mut ranking = ZoneRanking::new(zones as usize);
            let mut weights = vec![0u32; zones as usize];
            assert_eq!(ranking.first(), None);
            for _ in 0..2_000 {
                let (zone, weight) =
                    (rng.below(zones) as u32, rng.below(6).saturating_sub(2) as u32);
                weights[zone as usize] = weight;
                ranking.set(zone, weight);
                let most = weights.iter().max().copied().filter(|most| *most > 0);
                let first = most.and_then(|most| weights.iter().position(|w| *w == most));
                assert_eq!(ranking.first(), first.map(|zone| zone as u32));
            }
        }
    }
}
