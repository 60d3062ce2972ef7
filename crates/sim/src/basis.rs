//! On what a number rests that something is compared with, so that agreeing can be weighed.

use serde::{Deserialize, Serialize};

/// What it means when a measured number agrees with the one beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Somebody published the number, and nothing here was made from it: a check.
    #[default]
    Published,
    /// Somebody published the number, and a parameter was chosen, or a recipe judged, by this very
    /// comparison: it shows that this still holds.
    Calibrated,
    /// The number itself is an input, or follows from inputs by arithmetic: only a defect of the
    /// program can make it differ.
    Construction,
    /// Nobody published such a number: a bound that Imbrex set itself.
    Own,
}

/// How many there are of one basis, and how many of them hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// The basis.
    pub basis: Basis,
    /// Comparisons.
    pub rows: usize,
    /// Comparisons in which the measured number agrees.
    pub agree: usize,
}

impl Basis {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Basis; 4] =
        [Basis::Published, Basis::Calibrated, Basis::Construction, Basis::Own];

    /// What is counted, in words.
    pub fn words(self) -> &'static str {
        match self {
            Basis::Published => "published numbers and statements",
            Basis::Calibrated => "published numbers that a parameter was chosen by",
            Basis::Construction => "true by construction",
            Basis::Own => "bounds that Imbrex set itself",
        }
    }

    /// The same in a word, for a column.
    pub fn word(self) -> &'static str {
        match self {
            Basis::Published => "published",
            Basis::Calibrated => "calibrated",
            Basis::Construction => "construction",
            Basis::Own => "own bound",
        }
    }
}

impl Tally {
    /// Counts rows, each with its basis and whether it agrees; bases without a row are left out.
    pub fn of(rows: impl Iterator<Item = (Basis, bool)> + Clone) -> Vec<Tally> {
        let tally = |basis: Basis| {
            let of_basis = rows.clone().filter(|(other, _)| *other == basis);
            Tally {
                basis,
                rows: of_basis.clone().count(),
                agree: of_basis.filter(|(_, agrees)| *agrees).count(),
            }
        };
        let tallies = Basis::ALL.into_iter().map(tally);
        tallies.filter(|tally| tally.rows > 0).collect()
    }

    /// One line for each.
    pub fn lines(tallies: &[Tally]) -> String {
        let line = |tally: &Tally| {
            let Tally { basis, rows, agree } = tally;
            format!("{agree:>5} of {rows:>3} {}\n", basis.words())
        };
        tallies.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_basis_is_counted_apart_and_absent_ones_are_left_out() {
        let rows = [
            (Basis::Own, true),
            (Basis::Published, true),
            (Basis::Published, false),
            (Basis::Construction, true),
        ];
        let tallies = Tally::of(rows.into_iter());
        assert_eq!(
            Tally::lines(&tallies),
            "    1 of   2 published numbers and statements\n    1 of   1 true by construction\n    \
             1 of   1 bounds that Imbrex set itself\n"
        );
    }
}
