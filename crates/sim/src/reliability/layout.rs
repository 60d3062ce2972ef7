//! Which disks there are, which of them protect each other, and what is lost when too many fail.

use serde::{Deserialize, Serialize};

/// How data lies on disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Data alone.
    Raid0,
    /// Copies of the same data.
    Raid1,
    /// Disks with data and one with their parity.
    Raid4,
    /// The same with the parity by turns.
    Raid5,
    /// Shingled homes, a parity disk and a data disk for what is written again (Le, thesis, 2019, chapter 6).
    Raid4smr,
    /// Such arrays that share one data disk.
    Chain,
    /// Volumes with their log on the next disk (head-movement reduction).
    Split,
    /// Volumes with their log on their own disk.
    SplitLocal,
    /// Volumes with their logs on a further disk.
    SplitDedicated,
}

impl Kind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Raid0 => "raid0",
            Kind::Raid1 => "raid1",
            Kind::Raid4 => "raid4",
            Kind::Raid5 => "raid5",
            Kind::Raid4smr => "raid4smr",
            Kind::Chain => "chain",
            Kind::Split => "split",
            Kind::SplitLocal => "split-local",
            Kind::SplitDedicated => "split-dedicated",
        }
    }
}

/// The disks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Layout {
    /// How data lies on them.
    pub kind: Kind,
    /// Disks that hold data: of copies all, of a chain those of one array.
    pub homes: u32,
    /// Arrays of a chain; 1 of all others.
    pub arrays: u32,
    /// Share of a dedicated disk that holds logs; 0 of all others.
    pub log_share: f64,
}

/// A disk as a member of a group.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// Its number.
    pub disk: usize,
    /// The share of its capacity that the group has.
    pub extent: f64,
    /// The share of that which is data of a user: none of a parity, a half of each of two copies.
    pub holds: f64,
}

/// Disks that protect each other.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Its disks.
    pub members: Vec<Member>,
    /// How many may be missing without a loss.
    pub tolerance: u32,
    /// A missing one is made from one other, a copy, and not from all.
    pub is_copied: bool,
}

impl Layout {
    /// Disks in all.
    pub fn disks(&self) -> u32 {
        match self.kind {
            Kind::Raid0 | Kind::Raid1 | Kind::Split | Kind::SplitLocal => self.homes,
            Kind::Raid4 | Kind::Raid5 | Kind::SplitDedicated => self.homes + 1,
            Kind::Raid4smr => self.homes + 2,
            Kind::Chain => self.arrays * (self.homes + 1) + 1,
        }
    }

    /// Data of a user that they hold, in disks.
    pub fn usable(&self) -> f64 {
        match self.kind {
            Kind::Raid1 => 1.0,
            Kind::Chain => f64::from(self.homes * self.arrays),
            _ => f64::from(self.homes),
        }
    }

    /// Own disks of an array of a chain: its homes and its parity.
    pub fn own(&self) -> u32 {
        self.homes + 1
    }

    /// Disks of a group that may be missing without a loss.
    pub fn tolerance(&self) -> u32 {
        match self.kind {
            Kind::Raid0 | Kind::Split | Kind::SplitLocal | Kind::SplitDedicated => 0,
            Kind::Raid1 => self.homes - 1,
            Kind::Raid4 | Kind::Raid5 | Kind::Raid4smr | Kind::Chain => 1,
        }
    }

    /// The groups, each with its disks by number.
    pub fn groups(&self) -> Vec<Group> {
        let whole = |disk: u32, holds: f64| Member { disk: disk as usize, extent: 1.0, holds };
        let homes = self.homes;
        let parity = |data: u32| whole(data, 0.0);
        let one = |members: Vec<Member>| {
            let tolerance = self.tolerance();
            vec![Group { members, tolerance, is_copied: self.kind == Kind::Raid1 }]
        };
        match self.kind {
            Kind::Raid0 | Kind::Split | Kind::SplitLocal => {
                one((0..homes).map(|disk| whole(disk, 1.0)).collect())
            }
            Kind::SplitDedicated => {
                let logs = Member { disk: homes as usize, extent: self.log_share, holds: 1.0 };
                one((0..homes).map(|disk| whole(disk, 1.0)).chain([logs]).collect())
            }
            Kind::Raid1 => {
                one((0..homes).map(|disk| whole(disk, 1.0 / f64::from(homes))).collect())
            }
            Kind::Raid4 => {
                one((0..homes).map(|disk| whole(disk, 1.0)).chain([parity(homes)]).collect())
            }
            Kind::Raid5 => {
                let holds = f64::from(homes) / f64::from(homes + 1);
                one((0..=homes).map(|disk| whole(disk, holds)).collect())
            }
            Kind::Raid4smr | Kind::Chain => self.arrays_with_a_data_disk(),
        }
    }

    fn arrays_with_a_data_disk(&self) -> Vec<Group> {
        let data_disk = (self.disks() - 1) as usize;
        let slice = Member { disk: data_disk, extent: 1.0 / f64::from(self.arrays), holds: 1.0 };
        let group = |array: u32| {
            let first = array * self.own();
            let own = (0..self.own()).map(|at| Member {
                disk: (first + at) as usize,
                extent: 1.0,
                holds: if at < self.homes { 1.0 } else { 0.0 },
            });
            Group { members: own.chain([slice]).collect(), tolerance: 1, is_copied: false }
        };
        (0..self.arrays).map(group).collect()
    }

    /// Capacities that are read to make a missing disk again, where nothing else could stand in for what cannot be read.
    pub fn read_in_rebuild(&self, disk: usize) -> f64 {
        let mut read = 0.0;
        for group in self.groups() {
            let Some(missing) = group.members.iter().find(|member| member.disk == disk) else {
                continue;
            };
            let others = group.members.iter().filter(|member| member.disk != disk);
            let parts = others.map(|other| other.extent.min(missing.extent));
            read += match group.is_copied {
                true => missing.extent,
                false => parts.sum::<f64>(),
            };
        }
        read
    }

    /// Volumes that the loss of a disk harms, of the layouts without redundancy: the most of any disk.
    pub fn volumes_harmed(&self) -> Option<u32> {
        match self.kind {
            Kind::Split if self.homes > 1 => Some(2),
            Kind::Split | Kind::SplitLocal => Some(1),
            Kind::SplitDedicated => Some(self.homes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(kind: Kind, homes: u32, arrays: u32) -> Layout {
        Layout { kind, homes, arrays, log_share: 0.0 }
    }

    #[test]
    fn disks_are_counted_with_those_that_hold_no_data() {
        let disks = |kind| layout(kind, 3, 1).disks();
        let all = [Kind::Raid0, Kind::Raid1, Kind::Raid4, Kind::Raid4smr, Kind::SplitDedicated];
        assert_eq!(all.map(disks), [3, 3, 4, 5, 4]);
        assert_eq!(layout(Kind::Chain, 3, 20).disks(), 81);
        assert_eq!(layout(Kind::Chain, 3, 1).groups(), layout(Kind::Raid4smr, 3, 1).groups());
    }

    #[test]
    fn a_rebuild_reads_what_the_missing_disk_is_made_of() {
        assert_eq!(layout(Kind::Raid4smr, 3, 1).read_in_rebuild(0), 4.0);
        assert_eq!(layout(Kind::Raid4, 3, 1).read_in_rebuild(3), 3.0);
        assert_eq!(layout(Kind::Raid1, 3, 1).read_in_rebuild(0), 1.0, "one of the copies");
        // The homes and the parity of the array, and its slice of the data disk; of that disk one row in four of each array.
        let chain = layout(Kind::Chain, 3, 4);
        assert_eq!(chain.read_in_rebuild(5), 3.25);
        assert_eq!(chain.read_in_rebuild(16), 4.0);
    }

    #[test]
    fn the_data_disk_is_in_every_array_of_a_chain() {
        let groups = layout(Kind::Chain, 3, 2).groups();
        let disks = |group: &Group| group.members.iter().map(|it| it.disk).collect::<Vec<_>>();
        assert_eq!(
            groups.iter().map(disks).collect::<Vec<_>>(),
            [[0, 1, 2, 3, 8], [4, 5, 6, 7, 8]]
        );
    }
}
