//! What reports tell of the data disk of a RAID 4SMR.

use imbrex_report::{Column, TableOfKind};

/// What is on the data disk of a RAID 4SMR over time, and how often a band row was collected.
pub const DATA_DISK: TableOfKind = TableOfKind {
    name: "data_disk",
    title: "Data disks of RAID 4SMR over time",
    sentence: "Blocks on the data disk, whose places at home are dead, and band rows collected so far. A \
               collection brings the blocks of a band row home.",
    over_time: true,
    columns: &[
        TableOfKind::TIME,
        Column::new("mapped_blocks", "blocks", "On the data disk, the mean of that time."),
        Column::new("collections", "number", "Band rows collected so far, to make room too."),
    ],
};
