//! Closed forms of mean times to a loss, for exponential lives and repairs.

use super::layout::{Kind, Layout};
use super::markov::{Chain, Rates};

/// The mean time to a loss in hours; none where there is no closed form.
///
/// Of N disks of which one may be missing: (mu + (2N - 1) l) / (N (N - 1) l^2) (Le, thesis, 2019, equation 6.7, for N = 5). With a
/// read error in a rebuild counted as a loss, which happens with probability q:
/// (1 / (N l) + 1 / ((N - 1) l + mu)) / P, where P = ((N - 1) l + q mu) / ((N - 1) l + mu).
pub fn mean_time(layout: &Layout, rates: &Rates) -> Option<f64> {
    let disks = f64::from(layout.disks());
    let (failure, repair, [error, _]) = (rates.failure, rates.repair, rates.read_error);
    if layout.tolerance() == 0 {
        return Some(1.0 / (disks * failure));
    }
    if rates.correlated > 0.0 || layout.kind == Kind::Chain || layout.tolerance() > 1 {
        return None;
    }
    let second = (disks - 1.0) * failure;
    Some(match error {
        0.0 => {
            (repair + (2.0 * disks - 1.0) * failure) / (disks * (disks - 1.0) * failure * failure)
        }
        _ => {
            let ends = (second + error * repair) / (second + repair);
            (1.0 / (disks * failure) + 1.0 / (second + repair)) / ends
        }
    })
}

/// The same to first order, where repairs are far faster than failures: one over the rate at which a second disk fails while
/// the first is repaired. Of c arrays of own disks m that share one: c m (m + 1) l^2 / mu.
pub fn first_order(layout: &Layout, rates: &Rates) -> Option<f64> {
    let pairs = match layout.kind {
        Kind::Chain => f64::from(layout.arrays * layout.own() * (layout.own() + 1)),
        _ if layout.tolerance() == 1 => f64::from(layout.disks() * (layout.disks() - 1)),
        _ => return None,
    };
    let is_alone = rates.correlated == 0.0;
    is_alone.then(|| rates.repair / (pairs * rates.failure * rates.failure))
}

/// Mean times to a loss by missing disks, in hours, of arrays of equal disks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanTimes {
    /// Arrays that share a data disk: by the exact chain, as there is no closed form.
    pub chain: f64,
    /// The same to first order.
    pub chain_first_order: Option<f64>,
    /// One array with a data disk of its own.
    pub raid4smr: Option<f64>,
    /// The same homes and a parity.
    pub raid4: Option<f64>,
}

impl MeanTimes {
    /// Of so many arrays of so many homes, for rates per hour.
    pub fn of(arrays: u32, homes: u32, failure: f64, repair: f64) -> MeanTimes {
        let rates = Rates { failure, repair, correlated: 0.0, read_error: [0.0; 2] };
        let layout = |kind, arrays| Layout { kind, homes, arrays, log_share: 0.0 };
        let chain = layout(Kind::Chain, arrays);
        MeanTimes {
            chain: Chain::of(&chain, &rates).mean_time(),
            chain_first_order: first_order(&chain, &rates),
            raid4smr: mean_time(&layout(Kind::Raid4smr, 1), &rates),
            raid4: mean_time(&layout(Kind::Raid4, 1), &rates),
        }
    }
}

/// The probability that something cannot be read of so many bytes.
pub fn read_error(read_error_per_bit: f64, bytes: f64) -> f64 {
    -libm::expm1(-read_error_per_bit * bytes * 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_are_the_exact_ones() {
        let kinds = [Kind::Raid0, Kind::Raid4, Kind::Raid5, Kind::Raid4smr, Kind::SplitDedicated];
        for kind in kinds {
            for (failure, repair, error) in
                [(1e-3, 0.1, 0.0), (1.8e-6, 0.05, 0.0), (1e-3, 0.1, 0.9)]
            {
                let layout = Layout { kind, homes: 3, arrays: 1, log_share: 0.1 };
                let rates = Rates { failure, repair, correlated: 0.0, read_error: [error; 2] };
                let exact = Chain::of(&layout, &rates).mean_time();
                let closed = mean_time(&layout, &rates).expect("a closed form");
                assert!((closed / exact - 1.0).abs() < 1e-9, "{kind:?}: {closed} {exact}");
            }
        }
    }

    #[test]
    fn what_others_computed_comes_out() {
        let rates = Rates { failure: 1e-3, repair: 0.1, correlated: 0.0, read_error: [0.0; 2] };
        let chain = |arrays| Layout { kind: Kind::Chain, homes: 3, arrays, log_share: 0.0 };
        assert!((first_order(&chain(3), &rates).expect("one") - 1_666.667).abs() < 1e-3);
        assert!((first_order(&chain(20), &rates).expect("one") - 250.0).abs() < 1e-9);
        assert_eq!(mean_time(&chain(3), &rates), None);
        // Four disks of 8 TB (V72).
        let read = |per_bit| (read_error(per_bit, 32e12) * 1e3).round() / 1e3;
        assert_eq!([read(1e-14), read(1e-15)], [0.923, 0.226]);
        // 8.9e4, 3.1e4 and 7.8e3 years (V71).
        let five = Layout { kind: Kind::Raid4smr, homes: 3, arrays: 1, log_share: 0.0 };
        for (mean_h, years) in [(20.0, 8.9e4), (57.0, 3.1e4), (230.0, 7.8e3)] {
            let rates = Rates { failure: 1.0 / 558e3, repair: 1.0 / mean_h, ..rates };
            let found = mean_time(&five, &rates).expect("one") / 8760.0;
            assert!((found / years - 1.0).abs() < 0.02, "{mean_h} h: {found}");
        }
    }
}
