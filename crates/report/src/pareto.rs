//! Which of several choices no other one beats in both of two figures.

/// The numbers of the points that are on the front: no other point is at most as far right and at most as high, and less in one of
/// both. From left to right; of equal points the first.
pub(super) fn front(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let of = |at: usize| points[at];
    order.sort_by(|a, b| {
        let ((x, y), (other_x, other_y)) = (of(*a), of(*b));
        x.total_cmp(&other_x).then(y.total_cmp(&other_y)).then(a.cmp(b))
    });
    let mut lowest = f64::INFINITY;
    order.retain(|at| {
        let is_lower = of(*at).1 < lowest;
        lowest = lowest.min(of(*at).1);
        is_lower
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_has_what_nothing_beats_in_both() {
        // Worked by hand: (2, 5) and (3, 1) are beaten by nothing; (2, 7) by (2, 5), (4, 1) by (3, 1), (1, 9) by nothing.
        let points = [(4.0, 1.0), (2.0, 5.0), (1.0, 9.0), (2.0, 7.0), (3.0, 1.0), (3.0, 1.0)];
        assert_eq!(front(&points), [2, 1, 4]);
        assert_eq!(front(&[]), [0; 0]);
    }
}
