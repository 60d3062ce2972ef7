//! Sets of columns.

use crate::saved::SavedValue;

/// A set of the columns of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub struct Columns(u64);

impl Columns {
    /// No column.
    pub const NONE: Columns = Columns(0);

    /// The first `columns` columns. Panics above 64.
    pub fn first(columns: usize) -> Columns {
        assert!(columns <= 64, "a set of {columns} columns");
        Columns(u64::MAX.checked_shr(64 - columns as u32).unwrap_or(0))
    }

    /// One column.
    #[inline]
    pub fn of(column: usize) -> Columns {
        Columns(1 << column)
    }

    /// True when there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[inline]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// True when the column is one of them.
    #[inline]
    pub fn has(self, column: usize) -> bool {
        self.0 >> column & 1 == 1
    }

    /// Those of both sets.
    #[inline]
    #[must_use]
    pub fn and(self, other: Columns) -> Columns {
        Columns(self.0 & other.0)
    }

    /// Those of either set.
    #[inline]
    #[must_use]
    pub fn or(self, other: Columns) -> Columns {
        Columns(self.0 | other.0)
    }

    /// Those that the other set has not.
    #[inline]
    #[must_use]
    pub fn without(self, other: Columns) -> Columns {
        Columns(self.0 & !other.0)
    }

    /// The columns in ascending order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let column = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (column < 64).then_some(column)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let set = Columns::of(0).or(Columns::of(5)).or(Columns::of(63));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(set.len(), 3);
        assert!(set.has(5) && !set.has(4));
        assert_eq!(set.without(Columns::of(5)).and(Columns::first(6)), Columns::of(0));
        assert_eq!(Columns::first(64).len(), 64);
        assert!(Columns::first(0).is_empty());
    }
}
