//! How much of a report is drawn.

use crate::page::COLOURS;

/// Runs drawn in the charts at most; the table shows all of them. More lines than this cannot be
/// told apart, and the page must stay small.
pub(super) const CHART_RUNS_MAX: usize = COLOURS;

/// Settings of other keys at which a swept key is drawn at most; `results.csv` has all.
pub(super) const SWEEP_SETTINGS_MAX: usize = 12;

/// Rows that the page shows of a table that has more; its CSV file has them all.
pub(super) const TABLE_ROWS_MAX: usize = 500;
