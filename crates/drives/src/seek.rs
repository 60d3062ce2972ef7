//! How long the arm takes to move.

use serde::{Deserialize, Serialize};

/// Share of the stroke at which acceleration gives way to constant speed when only datasheet
/// figures are known; fits of measured curves lie at 0.12 to 0.16 (docs/models/conventional.md).
const KNEE_SHARE: f64 = 0.15;

/// Below so many cylinders the two pieces leave no room for a square root: a smaller disk gets the
/// curve of this many, stretched over it.
const CYLINDERS_MIN: u64 = 1000;

const NS_PER_MS: f64 = 1e6;

/// Seek time over distance, without head settling for writes.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    shape: Shape,
    /// The times of short distances, nanoseconds: a scheduler asks for these most.
    near: Vec<u64>,
}

/// Distances whose times are kept.
const NEAR: u64 = 1024;

#[derive(Clone, Debug)]
enum Shape {
    /// `a + b sqrt(d)` below the knee, `c + e d` from there on (Ruemmler and Wilkes, IEEE Computer
    /// 27(3), 1994); nanoseconds and cylinders.
    TwoPiece {
        a: f64,
        b: f64,
        c: f64,
        e: f64,
        knee: f64,
        /// Cylinders of the curve over those of the disk.
        stretch: f64,
    },
    /// Points in ascending distance, straight lines between them.
    Table(Vec<(f64, f64)>),
}

/// A curve that was published as a formula: `a + b sqrt(d)` ms below a knee, `c + e d` ms from it on.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekFormula {
    /// Cylinders of the drive it was found on; a disk with more or fewer gets it stretched.
    pub cylinders: u64,
    /// `[a, b]`.
    pub root: (f64, f64),
    /// `[c, e]`.
    pub line: (f64, f64),
    /// Distance from which the line holds.
    pub knee: f64,
}

/// The figures of a datasheet, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct DatasheetSeek {
    /// To the adjacent cylinder.
    pub track_to_track_ms: f64,
    /// Mean over all pairs of cylinders, as vendors define it.
    pub average_ms: f64,
    /// Over all cylinders.
    pub full_stroke_ms: f64,
}

impl SeekCurve {
    /// The curve over `cylinders` that meets the three figures exactly.
    ///
    /// # Errors
    /// When no rising curve does; the text names the figures.
    pub fn solve(figures: DatasheetSeek, cylinders: u64) -> Result<SeekCurve, String> {
        let DatasheetSeek { track_to_track_ms: near, average_ms: average, full_stroke_ms: full } =
            figures;
        let n = cylinders.max(CYLINDERS_MIN) as f64;
        let stretch = (n - 1.0) / (cylinders.max(2) - 1) as f64;
        let delta = KNEE_SHARE;
        let knee = delta * n;
        // Everything is expressed by the slope e of the straight piece:
        //   c = full - e n,  b = b0 - b1 e,  a = near - b,
        // and the weighted mean is then linear in e.
        let root = knee.sqrt() - 1.0;
        let (b0, b1) = ((full - near) / root, (n - knee) / root);
        let below = 2.0 * delta - delta * delta;
        let root_weight =
            n.sqrt() * (4.0 / 3.0 * delta.powi(3).sqrt() - 0.8 * delta.powi(5).sqrt());
        let above = (1.0 - delta) * (1.0 - delta);
        let slope_weight = n * (1.0 / 3.0 - delta * delta + 2.0 / 3.0 * delta.powi(3));
        let b_weight = root_weight - below;
        let constant = near * below + b0 * b_weight + full * above;
        let per_e = -b1 * b_weight - n * above + slope_weight;
        let e = (average - constant) / per_e;
        let b = b0 - b1 * e;
        if near <= 0.0 || e < 0.0 || b < 0.0 {
            return Err(format!(
                "no rising seek curve has track-to-track {near} ms, average {average} ms and full \
                 stroke {full} ms: the average is usually near half of the full stroke"
            ));
        }
        Ok(SeekCurve::of(Shape::TwoPiece {
            a: (near - b) * NS_PER_MS,
            b: b * NS_PER_MS,
            c: (full - e * n) * NS_PER_MS,
            e: e * NS_PER_MS,
            knee,
            stretch,
        }))
    }

    /// The curve of a formula, stretched over `cylinders`.
    ///
    /// # Errors
    /// When its time is not positive somewhere or falls from one cylinder to the next by more than
    /// the knee makes it: a tenth of a millisecond.
    pub fn formula(formula: &SeekFormula, cylinders: u64) -> Result<SeekCurve, String> {
        let SeekFormula { cylinders: n, root: (a, b), line: (c, e), knee } = *formula;
        let curve = SeekCurve::of(Shape::TwoPiece {
            a: a * NS_PER_MS,
            b: b * NS_PER_MS,
            c: c * NS_PER_MS,
            e: e * NS_PER_MS,
            knee,
            stretch: (n.max(2) - 1) as f64 / (cylinders.max(2) - 1) as f64,
        });
        let step_ms = c + e * knee - a - b * knee.max(0.0).sqrt();
        let rises = b >= 0.0 && e >= 0.0 && a + b > 0.0 && step_ms >= -0.1;
        match n >= 2 && knee >= 1.0 && rises {
            true => Ok(curve),
            false => Err(format!(
                "no rising seek curve over {n} cylinders has root [{a}, {b}], line [{c}, {e}] and \
                 knee {knee}"
            )),
        }
    }

    /// A measured curve of `(cylinders, milliseconds)` points, stretched so that its first and last
    /// point are one cylinder and all `cylinders`. Times may fall in places, as measured ones do.
    ///
    /// # Errors
    /// When there are fewer than two points, distances do not ascend or a time is not above 0 and
    /// up to a second.
    pub fn table(points: &[(u64, f64)], cylinders: u64) -> Result<SeekCurve, String> {
        let [first, .., last] = points else {
            return Err("a seek table needs at least two points".to_string());
        };
        for (i, point) in points.iter().enumerate() {
            let ascends = point.0 > if i == 0 { 0 } else { points[i - 1].0 };
            let is_time = point.1 > 0.0 && point.1 <= 1e3;
            if !ascends || !is_time {
                return Err(format!(
                    "seek table point [{}, {}]: distances must ascend from 1 and times must be \
                     positive and at most 1000 ms",
                    point.0, point.1
                ));
            }
        }
        let stretch = (cylinders.max(2) - 1) as f64 / (last.0 - first.0) as f64;
        let points = points
            .iter()
            .map(|(distance, ms)| ((distance - first.0) as f64 * stretch + 1.0, ms * NS_PER_MS));
        Ok(SeekCurve::of(Shape::Table(points.collect())))
    }

    fn of(shape: Shape) -> SeekCurve {
        let near = (0..NEAR).map(|distance| shape.time_ns(distance));
        SeekCurve { near: near.collect(), shape }
    }

    /// The time for `distance` cylinders in nanoseconds; nothing for none.
    #[inline]
    pub fn time_ns(&self, distance: u64) -> u64 {
        match self.near.get(distance as usize) {
            Some(known) => *known,
            None => self.shape.time_ns(distance),
        }
    }

    /// The mean over all pairs of `cylinders`, which is what vendors call average, in nanoseconds.
    pub fn mean_ns(&self, cylinders: u64) -> f64 {
        let n = cylinders as f64;
        let weighted = (1..cylinders).map(|d| self.time_ns(d) as f64 * (n - d as f64));
        weighted.sum::<f64>() * 2.0 / (n * n)
    }
}

impl Shape {
    fn time_ns(&self, distance: u64) -> u64 {
        if distance == 0 {
            return 0;
        }
        let d = distance as f64;
        let ns = match self {
            Shape::TwoPiece { a, b, c, e, knee, stretch } => {
                let d = (d - 1.0) * stretch + 1.0;
                if d < *knee { a + b * d.sqrt() } else { c + e * d }
            }
            Shape::Table(points) => {
                let next = points.partition_point(|point| point.0 < d).clamp(1, points.len() - 1);
                let ((d0, t0), (d1, t1)) = (points[next - 1], points[next]);
                t0 + (t1 - t0) * ((d - d0) / (d1 - d0)).min(1.0)
            }
        };
        ns.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(near: f64, average: f64, full: f64) -> DatasheetSeek {
        DatasheetSeek { track_to_track_ms: near, average_ms: average, full_stroke_ms: full }
    }

    /// Coefficients worked out apart from this code, in milliseconds: a, b, c, e, knee.
    #[test]
    fn datasheet_figures_give_the_published_coefficients() {
        let rows = [
            ((1.0, 10.0, 20.0), 200_000, [0.961, 0.038743, 5.496, 7.252e-5, 30000.0]),
            ((1.0, 7.7, 16.0), 400_000, [0.981, 0.019082, 3.829, 3.043e-5, 60000.0]),
            ((0.5, 7.29, 15.7), 353_180, [0.479, 0.020588, 3.368, 3.492e-5, 52977.0]),
            ((2.0, 8.9, 21.0), 150_000, [1.976, 0.023526, 2.771, 1.2153e-4, 22500.0]),
            ((0.2, 3.5, 7.4), 80_000, [0.178, 0.021768, 1.709, 7.114e-5, 12000.0]),
        ];
        for ((near, average, full), cylinders, expected) in rows {
            let curve = SeekCurve::solve(figures(near, average, full), cylinders).unwrap();
            let Shape::TwoPiece { a, b, c, e, knee, .. } = curve.shape else {
                panic!("a solved curve has two pieces")
            };
            let solved = [a / 1e6, b / 1e6, c / 1e6, e / 1e6, knee];
            for (value, expected) in solved.iter().zip(expected) {
                let error = (value / expected - 1.0).abs();
                assert!(error < 2e-3, "{near}/{average}/{full}: {solved:?}");
            }
        }
    }

    #[test]
    fn a_solved_curve_meets_its_three_figures() {
        for cylinders in [2, 60, 5_000, 200_000] {
            let curve = SeekCurve::solve(figures(1.0, 8.5, 17.0), cylinders).unwrap();
            assert_eq!(curve.time_ns(0), 0);
            assert_eq!(curve.time_ns(1), 1_000_000);
            assert_eq!(curve.time_ns(cylinders), 17_000_000);
            let mean = curve.mean_ns(cylinders) / 8.5e6;
            let coarse = cylinders < 1000;
            assert!(coarse || (mean - 1.0).abs() < 0.002, "{cylinders}: {mean}");
            let times: Vec<u64> = (0..=cylinders).map(|d| curve.time_ns(d)).collect();
            assert!(times.is_sorted(), "longer seeks take longer");
        }
    }

    /// Validation row V54: the HP 97560 of Ruemmler and Wilkes.
    #[test]
    fn a_published_formula_is_used_as_it_is() {
        let formula =
            SeekFormula { cylinders: 1962, root: (3.24, 0.4), line: (8.0, 0.008), knee: 383.0 };
        let curve = SeekCurve::formula(&formula, 1962).unwrap();
        assert_eq!(curve.time_ns(0), 0);
        assert_eq!(curve.time_ns(1), 3_640_000);
        assert_eq!(curve.time_ns(382), 11_057_928);
        assert_eq!(curve.time_ns(383), 11_064_000);
        assert_eq!(curve.time_ns(1961), 23_688_000);
        let half = SeekCurve::formula(&formula, 981).unwrap();
        assert_eq!(half.time_ns(1), curve.time_ns(1));
        assert!(half.time_ns(980) > 23_670_000);
        let falling = SeekFormula { line: (8.0, -0.008), ..formula };
        let error = SeekCurve::formula(&falling, 1962).unwrap_err();
        assert!(error.contains("line [8, -0.008]"), "{error}");
    }

    #[test]
    fn impossible_figures_are_refused() {
        let error = SeekCurve::solve(figures(1.0, 30.0, 20.0), 1000).unwrap_err();
        assert!(error.contains("average 30 ms"), "{error}");
    }

    #[test]
    fn a_table_is_interpolated_and_stretched() {
        let curve = SeekCurve::table(&[(1, 1.0), (101, 3.0), (201, 4.0)], 401).unwrap();
        assert_eq!(curve.time_ns(1), 1_000_000);
        assert_eq!(curve.time_ns(101), 2_000_000);
        assert_eq!(curve.time_ns(401), 4_000_000);
        assert!(SeekCurve::table(&[(1, 1.0)], 10).is_err());
        assert!(SeekCurve::table(&[(5, 1.0), (5, 2.0)], 10).is_err());
        assert!(SeekCurve::table(&[(1, 2.0), (5, 0.0)], 10).is_err());
    }
}
