//! Which disk should hold the log of which volume, from the loads that a run has measured.
//!
//! A split stack has a log and a home for each volume, each a slice of a disk, and puts the log on the next disk
//! ("A Method to Reduce Read/Write Head Movement for SMR Disks", by rotation here). How long a disk is busy depends on
//! what its home is asked for and on which log it has. Logs change places between their slices; homes stay.

use serde::Serialize;

/// Logs of which every order is tried; of more the longest goes to the idlest disk first.
const TRIED_MAX: usize = 9;

/// A volume with its log and its home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedVolume {
    /// The node.
    pub name: String,
    /// The node of its log, the disk that this lies on, and how long it was busy with the log.
    pub log: String,
    /// The disk of the log, by number.
    pub log_disk: usize,
    /// Time of that disk for the log, in ns.
    pub log_busy_ns: u64,
    /// The node of its home.
    pub home: String,
}

/// Which log each volume should have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LogPlacement {
    /// For each volume the one whose log it takes the place of.
    pub place_of: Vec<usize>,
    /// How long each disk was busy.
    pub busy_before_ns: Vec<u64>,
    /// How long it would be, if each log took as long where it goes.
    pub busy_after_ns: Vec<u64>,
}

/// Places the logs so that the busiest disk is busy for as short as can be, then the next busiest, and so on; where it
/// makes no difference, as they are. `disks_busy_ns` is how long each disk was busy with all that it has.
pub fn place_logs(volumes: &[PlacedVolume], disks_busy_ns: &[u64]) -> LogPlacement {
    let mut rest = disks_busy_ns.to_vec();
    for volume in volumes {
        let busy = &mut rest[volume.log_disk];
        *busy = busy.saturating_sub(volume.log_busy_ns);
    }
    let place_of = match volumes.len() <= TRIED_MAX {
        true => best_order(volumes, &rest),
        false => longest_first(volumes, &rest),
    };
    let busy_after_ns = busy_with(volumes, &rest, &place_of);
    let (before, after) = (sorted(disks_busy_ns.to_vec()), sorted(busy_after_ns.clone()));
    match after < before {
        true => LogPlacement { place_of, busy_before_ns: disks_busy_ns.to_vec(), busy_after_ns },
        false => LogPlacement {
            place_of: (0..volumes.len()).collect(),
            busy_before_ns: disks_busy_ns.to_vec(),
            busy_after_ns: disks_busy_ns.to_vec(),
        },
    }
}

/// How long each disk is busy, the busiest first.
fn sorted(mut busy: Vec<u64>) -> Vec<u64> {
    busy.sort_unstable_by(|one, other| other.cmp(one));
    busy
}

fn busy_with(volumes: &[PlacedVolume], rest: &[u64], place_of: &[usize]) -> Vec<u64> {
    let mut busy = rest.to_vec();
    for (volume, place) in volumes.iter().zip(place_of) {
        busy[volumes[*place].log_disk] += volume.log_busy_ns;
    }
    busy
}

/// The best of all orders; of several the one in which the fewest logs change places.
fn best_order(volumes: &[PlacedVolume], rest: &[u64]) -> Vec<usize> {
    let cost = |order: &[usize]| {
        let moved = order.iter().enumerate().filter(|(at, place)| at != *place).count();
        (sorted(busy_with(volumes, rest, order)), moved)
    };
    let mut order: Vec<usize> = (0..volumes.len()).collect();
    let mut best = (cost(&order), order.clone());
    while next_order(&mut order) {
        let cost = cost(&order);
        if cost < best.0 {
            best = (cost, order.clone());
        }
    }
    best.1
}

/// The next order of numbers in the order of a dictionary; false behind the last.
fn next_order(order: &mut [usize]) -> bool {
    let Some(at) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else {
        return false;
    };
    let larger = order.iter().rposition(|it| *it > order[at]).expect("the one behind it");
    order.swap(at, larger);
    order[at + 1..].reverse();
    true
}

/// The longest log goes to the disk that is the least busy and has a place left, then the next.
fn longest_first(volumes: &[PlacedVolume], rest: &[u64]) -> Vec<usize> {
    let mut busy = rest.to_vec();
    let mut places: Vec<usize> = (0..volumes.len()).collect();
    let mut longest: Vec<usize> = (0..volumes.len()).collect();
    longest.sort_by_key(|at| core::cmp::Reverse(volumes[*at].log_busy_ns));
    let mut place_of = vec![0; volumes.len()];
    for at in longest {
        let idlest = |place: &usize| (busy[volumes[*place].log_disk], *place);
        let taken = (0..places.len()).min_by_key(|it| idlest(&places[*it])).expect("one for each");
        let place = places.swap_remove(taken);
        busy[volumes[place].log_disk] += volumes[at].log_busy_ns;
        place_of[at] = place;
    }
    place_of
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Volumes whose logs lie on the next disk, with how long their disks were busy with log and home.
    fn rotated(loads: &[(u64, u64)]) -> (Vec<PlacedVolume>, Vec<u64>) {
        let disks = loads.len();
        let mut busy: Vec<u64> = loads.iter().map(|(_, home)| *home).collect();
        let volumes = loads.iter().enumerate().map(|(at, (log, _))| {
            let log_disk = (at + 1) % disks;
            busy[log_disk] += log;
            PlacedVolume {
                name: format!("volume-{at}"),
                log: format!("log-{log_disk}"),
                log_disk,
                log_busy_ns: *log,
                home: format!("home-{at}"),
            }
        });
        let volumes = volumes.collect();
        (volumes, busy)
    }

    #[test]
    fn the_longest_log_goes_to_the_idlest_home() {
        // Homes of 13, 8, 30 and 11; logs of 31, 43, 18 and 39. Best is each on its own disk: 44, 51, 48, 50.
        let (volumes, busy) = rotated(&[(31, 13), (43, 8), (18, 30), (39, 11)]);
        assert_eq!(busy, [52, 39, 73, 29]);
        let placed = place_logs(&volumes, &busy);
        assert_eq!(placed.busy_after_ns, [44, 51, 48, 50]);
        // The log on disk 0 is that of volume 3, and so on.
        assert_eq!(placed.place_of, [3, 0, 1, 2]);
    }

    #[test]
    fn what_cannot_be_better_stays_as_it_is() {
        let (volumes, busy) = rotated(&[(10, 5), (10, 5), (10, 5)]);
        let placed = place_logs(&volumes, &busy);
        assert_eq!(placed.place_of, [0, 1, 2]);
        assert_eq!(placed.busy_after_ns, placed.busy_before_ns);
        assert_eq!(place_logs(&[], &[7]).busy_after_ns, [7]);
    }

    #[test]
    fn two_logs_on_one_disk_change_places_with_others() {
        let volume = |name: &str, log_disk, log_busy_ns| PlacedVolume {
            name: name.into(),
            log: format!("log of {name}"),
            log_disk,
            log_busy_ns,
            home: format!("home of {name}"),
        };
        let volumes = [volume("a", 1, 50), volume("b", 1, 40), volume("c", 0, 10)];
        let placed = place_logs(&volumes, &[10, 90]);
        // Disk 1 has places for two logs, and disk 0 for one: the longest log alone.
        assert_eq!(placed.busy_after_ns, [50, 50]);
        assert_eq!(placed.place_of, [2, 1, 0]);
    }

    #[test]
    fn of_many_logs_the_longest_goes_first() {
        let loads: Vec<(u64, u64)> = (0..20).map(|at| (10 * at, 10 * at)).collect();
        let (volumes, busy) = rotated(&loads);
        let placed = place_logs(&volumes, &busy);
        let mut places = placed.place_of.clone();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..20), "each place once");
        // Each log with the home whose load is the rest of 190.
        assert!(placed.busy_after_ns.iter().all(|busy| *busy == 190));
    }
}
