//! A seek curve through measured seeks.

use super::seek::SeekFormula;

/// Shares of the stroke at which the knee is tried; measured curves have it at 0.06 to 0.26.
const KNEES: std::ops::RangeInclusive<u32> = 4..=40;
const KNEE_STEP: f64 = 0.01;

/// A curve and how well it meets the seeks it was found from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeekFit {
    /// The curve.
    pub formula: SeekFormula,
    /// Root mean square of its differences from the seeks, in milliseconds.
    pub rms_ms: f64,
}

/// The concave curve in two pieces that meets `(cylinders, milliseconds)` seeks best (least
/// squares), on a drive with so many cylinders. The pieces join; times may be in any order, and
/// rounded.
///
/// # Errors
/// When no rising concave curve fits: there are fewer than four seeks, or they are too much alike.
pub fn fit_seeks(seeks: &[(f64, f64)], cylinders: u64) -> Result<SeekFit, String> {
    let knees = KNEES.map(|step| f64::from(step) * KNEE_STEP * cylinders as f64);
    let fits = knees.filter_map(|knee| fit_at(seeks, cylinders, knee.max(1.0)));
    let best = fits.min_by(|a, b| a.rms_ms.total_cmp(&b.rms_ms));
    best.filter(|_| seeks.len() >= 4).ok_or_else(|| {
        format!(
            "no rising concave seek curve fits {} seeks over {cylinders} cylinders",
            seeks.len()
        )
    })
}

fn fit_at(seeks: &[(f64, f64)], cylinders: u64, knee: f64) -> Option<SeekFit> {
    let basis = |distance: f64| [1.0, distance.min(knee).sqrt(), (distance - knee).max(0.0)];
    let mut rows = [[0.0; 4]; 3];
    for &(distance, ms) in seeks {
        let terms = basis(distance);
        for (row, term) in rows.iter_mut().zip(terms) {
            for (cell, other) in row.iter_mut().zip(terms) {
                *cell += term * other;
            }
            row[3] += term * ms;
        }
    }
    let [a, b, e] = solve(rows)?;
    let concave = b > 0.0 && e >= 0.0 && e <= b / (2.0 * knee.sqrt()) && a + b > 0.0;
    if !concave {
        return None;
    }
    let squares = seeks.iter().map(|&(distance, ms)| {
        let [_, root, over] = basis(distance);
        (a + b * root + e * over - ms).powi(2)
    });
    let rms_ms = (squares.sum::<f64>() / seeks.len() as f64).sqrt();
    let formula = SeekFormula {
        cylinders,
        root: (a, b),
        line: (a + b * knee.sqrt() - e * knee, e),
        knee,
    };
    Some(SeekFit { formula, rms_ms })
}

/// Three linear equations, the right side last.
fn solve(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for i in 0..3 {
        let pivot = (i..3).max_by(|&j, &k| rows[j][i].abs().total_cmp(&rows[k][i].abs()))?;
        rows.swap(i, pivot);
        let leading = rows[i];
        if leading[i].abs() < 1e-9 {
            return None;
        }
        for row in rows.iter_mut().skip(i + 1) {
            let factor = row[i] / leading[i];
            for (cell, above) in row.iter_mut().zip(leading) {
                *cell -= factor * above;
            }
        }
    }
    let mut solution = [0.0; 3];
    for i in (0..3).rev() {
        let known: f64 = (i + 1..3).map(|k| rows[i][k] * solution[k]).sum();
        solution[i] = (rows[i][3] - known) / rows[i][i];
    }
    solution
        .iter()
        .all(|value| value.is_finite())
        .then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::super::seek::SeekCurve;
    use super::*;

    /// Seeks over distances all along the stroke, rounded to whole steps of `step_ms`.
    fn seeks(formula: &SeekFormula, step_ms: f64) -> Vec<(f64, f64)> {
        let n = formula.cylinders;
        let curve = SeekCurve::formula(formula, n).unwrap();
        let distances = (0..60).map(|i| 1 + (n - 2) * i * i / 3600);
        distances
            .map(|distance| {
                let ms = curve.time_ns(distance) as f64 / 1e6;
                (distance as f64, (ms / step_ms).round() * step_ms)
            })
            .collect()
    }

    #[test]
    fn a_curve_is_found_again_even_from_whole_milliseconds() {
        let formula = SeekFormula {
            cylinders: 400_000,
            root: (0.981, 0.019082),
            line: (3.829, 3.043e-5),
            knee: 60_000.0,
        };
        let truth = SeekCurve::formula(&formula, 400_000).unwrap();
        for (step_ms, tolerance) in [(1e-6, 0.005), (1.0, 0.08)] {
            let fit = fit_seeks(&seeks(&formula, step_ms), 400_000).unwrap();
            let found = SeekCurve::formula(&fit.formula, 400_000).unwrap();
            assert!(fit.rms_ms < step_ms * 0.5 + 0.01, "{fit:?}");
            for distance in [5_000, 60_000, 133_000, 399_999] {
                let ratio = found.time_ns(distance) as f64 / truth.time_ns(distance) as f64;
                assert!((ratio - 1.0).abs() < tolerance, "{distance}: {ratio}");
            }
        }
    }

    #[test]
    fn seeks_that_are_no_curve_are_refused() {
        for seeks in [
            vec![(1.0, 1.0), (10.0, 2.0), (1000.0, 5.0)],
            vec![(5.0, 1.0); 8],
            vec![(1.0, 9.0), (300.0, 7.0), (600.0, 5.0), (999.0, 3.0)],
        ] {
            let error = fit_seeks(&seeks, 1000).unwrap_err();
            assert!(error.contains("over 1000 cylinders"), "{error}");
        }
    }
}
