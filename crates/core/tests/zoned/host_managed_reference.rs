//! The host-managed disk against a reference of the states of ZBC-2 that is written differently:
//! each zone is a list of the versions written to it, and open zones are a list in order of use.

use crate::common::zoned::settings;
use crate::host_managed::{BLOCKS, CONVENTIONAL, Host, ZONE, ZONES, zones};
use imbrex_core::error::IoError;
use imbrex_core::operation::Operation;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Act {
    /// At the write pointer plus the first number, the second number of blocks.
    Write(u64, u64, u64),
    Open(u64),
    Close(u64),
    Reset(u64),
    Finish(u64),
    Read(u64, u64),
}

#[derive(Clone, Default)]
struct Reference {
    /// Versions in each zone up to its end as far as written, 0 for what was only finished.
    data: Vec<Vec<u64>>,
    /// Open zones from the one unused for longest, and whether a command opened each.
    open: Vec<(u64, bool)>,
    open_max: usize,
    active_max: usize,
}

fn length(zone: u64) -> u64 {
    ZONE.min(BLOCKS - zone * ZONE)
}

impl Reference {
    fn is_open(&self, zone: u64) -> bool {
        self.open.iter().any(|(open, _)| *open == zone)
    }

    fn is_full(&self, zone: u64) -> bool {
        self.data[zone as usize].len() as u64 == length(zone)
    }

    fn active(&self) -> usize {
        (CONVENTIONAL..ZONES)
            .filter(|zone| {
                let partly = !self.data[*zone as usize].is_empty() && !self.is_full(*zone);
                partly || self.is_open(*zone)
            })
            .count()
    }

    fn make_room(&mut self, zone: u64) -> Result<(), IoError> {
        if self.is_open(zone) {
            return Ok(());
        }
        if self.data[zone as usize].is_empty() && self.active() >= self.active_max {
            return Err(IoError::ZoneResources);
        }
        if self.open.len() >= self.open_max {
            let implicit = self.open.iter().position(|(_, explicit)| !explicit);
            self.open.remove(implicit.ok_or(IoError::ZoneResources)?);
        }
        Ok(())
    }

    fn forget_open(&mut self, zone: u64) -> bool {
        let explicit = self.open.contains(&(zone, true));
        self.open.retain(|(open, _)| *open != zone);
        explicit
    }

    fn write(&mut self, start: u64, blocks: u64, version: u64) -> Result<(), IoError> {
        let zone = start / ZONE;
        if zone < CONVENTIONAL {
            return match start + blocks <= CONVENTIONAL * ZONE {
                true => {
                    for block in start..start + blocks {
                        self.data[(block / ZONE) as usize][(block % ZONE) as usize] = version;
                    }
                    Ok(())
                }
                false => Err(IoError::WriteBoundary),
            };
        }
        if start + blocks > zone * ZONE + length(zone) {
            return Err(IoError::WriteBoundary);
        }
        if self.is_full(zone) {
            return Err(IoError::InvalidField);
        }
        if start != zone * ZONE + self.data[zone as usize].len() as u64 {
            return Err(IoError::UnalignedWrite);
        }
        self.make_room(zone)?;
        let explicit = self.forget_open(zone);
        self.data[zone as usize].extend((0..blocks).map(|_| version));
        if !self.is_full(zone) {
            self.open.push((zone, explicit));
        }
        Ok(())
    }

    fn command(&mut self, act: Act) -> Result<(), IoError> {
        let (Act::Open(zone) | Act::Close(zone) | Act::Reset(zone) | Act::Finish(zone)) = act
        else {
            unreachable!()
        };
        if zone < CONVENTIONAL {
            return Err(IoError::InvalidField);
        }
        match act {
            Act::Open(_) if !self.is_full(zone) && !self.open.contains(&(zone, true)) => {
                self.make_room(zone)?;
                self.forget_open(zone);
                self.open.push((zone, true));
            }
            Act::Close(_) => {
                self.forget_open(zone);
            }
            Act::Reset(_) => {
                self.forget_open(zone);
                self.data[zone as usize].clear();
            }
            Act::Finish(_) if !self.is_full(zone) => {
                self.make_room(zone)?;
                self.forget_open(zone);
                self.data[zone as usize].resize(length(zone) as usize, 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn read(&self, start: u64, blocks: u64) -> Vec<u64> {
        let version = |block: u64| {
            let zone = &self.data[(block / ZONE) as usize];
            zone.get((block % ZONE) as usize).copied().unwrap_or(0)
        };
        (start..start + blocks).map(version).collect()
    }
}

fn act() -> impl Strategy<Value = Act> {
    let zone = 0..ZONES;
    prop_oneof![
        8 => (zone.clone(), prop_oneof![9 => Just(0), 1 => 0..3u64], 1..24u64)
            .prop_map(|(zone, past, blocks)| Act::Write(zone, past, blocks)),
        2 => zone.clone().prop_map(Act::Open),
        1 => zone.clone().prop_map(Act::Close),
        1 => zone.clone().prop_map(Act::Reset),
        1 => zone.prop_map(Act::Finish),
        3 => (0..BLOCKS, 1..60u64).prop_map(|(start, blocks)| Act::Read(start, blocks)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn states_data_and_errors_are_those_of_the_reference(
        seed in 0..1000u64,
        open_max in 1..5usize,
        more_active in 0..4usize,
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let limits = zones(Some(open_max as u32), Some((open_max + more_active) as u32));
        let mut host = Host::over(seed, settings(), limits);
        let mut reference = Reference {
            data: (0..ZONES)
                .map(|zone| vec![0; if zone < CONVENTIONAL { ZONE as usize } else { 0 }])
                .collect(),
            open: Vec::new(),
            open_max,
            active_max: open_max + more_active,
        };
        let mut version = 0;
        for act in acts {
            match act {
                Act::Write(zone, past, blocks) => {
                    let pointer = match zone < CONVENTIONAL {
                        true => past * 7 % ZONE,
                        false => reference.data[zone as usize].len() as u64 + past,
                    };
                    let start = (zone * ZONE + pointer).min(BLOCKS - 1);
                    let blocks = blocks.min(BLOCKS - start);
                    version += 1;
                    let expected = reference.write(start, blocks, version).map(|()| version);
                    prop_assert_eq!(host.write(start, blocks), expected, "{:?}", act);
                }
                Act::Read(start, blocks) => {
                    let blocks = blocks.min(BLOCKS - start);
                    let expected = reference.read(start, blocks);
                    prop_assert_eq!(host.read(start, blocks), Ok(expected), "{:?}", act);
                }
                Act::Open(zone) => {
                    let got = host.command(Operation::ZoneOpen, zone);
                    prop_assert_eq!(got, reference.command(act), "{:?}", act);
                }
                Act::Close(zone) => {
                    let got = host.command(Operation::ZoneClose, zone);
                    prop_assert_eq!(got, reference.command(act), "{:?}", act);
                }
                Act::Reset(zone) => {
                    let got = host.command(Operation::ZoneReset, zone);
                    prop_assert_eq!(got, reference.command(act), "{:?}", act);
                }
                Act::Finish(zone) => {
                    let got = host.command(Operation::ZoneFinish, zone);
                    prop_assert_eq!(got, reference.command(act), "{:?}", act);
                }
            }
            let counts = host.engine.stack.counts(host.node);
            let open = counts.gauge(imbrex_core::counters::Gauge::OpenZones);
            prop_assert_eq!(open, reference.open.len() as u64);
            prop_assert!(open <= open_max as u64);
        }
        prop_assert_eq!(host.read(0, BLOCKS), Ok(reference.read(0, BLOCKS)));
    }
}
