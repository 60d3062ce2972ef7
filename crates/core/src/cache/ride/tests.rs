//! RIDE against a model of it that scans everything, written from its description.

use super::*;
use crate::cache::policy_state::CLOCK_MAX;
use crate::map::BandTable;
use crate::units::BlockCount;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use proptest::prelude::*;

/// A block of the model.
#[derive(Clone, Copy, Debug)]
struct Cached {
    lba: u64,
    clock: u64,
    dirty: bool,
}

/// The model: a list of blocks, and scans.
struct Model {
    settings: RideSettings,
    capacity: u64,
    log: LogSize,
    bands: Vec<(u64, u64)>,
    cached: Vec<Cached>,
    clock: u64,
    appended: u64,
    runs: u64,
    next: Option<u64>,
    open_until: BTreeMap<usize, (u64, u64)>,
    left_clean: Vec<u64>,
    left_dirty: Vec<u64>,
    learnt: Learnt,
    /// Windows opened and rides.
    counted: [u64; 2],
}

#[derive(Default)]
struct Learnt {
    allowed: u64,
    hits: u64,
    dirty_hits: u64,
    windows: u64,
    clean_gain: f64,
    dirty_gain: f64,
}

impl Model {
    fn band_of(&self, lba: u64) -> usize {
        let within = |(start, end): &(u64, u64)| (*start..*end).contains(&lba);
        self.bands.iter().position(within).expect("a band")
    }

    fn dirty(&self) -> u64 {
        self.cached.iter().filter(|block| block.dirty).count() as u64
    }

    fn access(&mut self, lba: u64, write: bool) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(block) = self.cached.iter_mut().find(|block| block.lba == lba) {
            (block.clock, block.dirty) = (clock, block.dirty || write);
        } else {
            let last = (self.capacity / 8) as usize;
            let is_recent = |left: &[u64]| left.iter().rev().take(last).any(|it| *it == lba);
            if !write && is_recent(&self.left_clean) {
                self.learnt.hits += 1;
            } else if is_recent(&self.left_dirty) {
                self.learnt.dirty_hits += 1;
            }
            let dirty = write;
            self.cached.push(Cached { lba, clock, dirty });
        }
        let epoch = (self.capacity / 8).max(1);
        if self.settings.split != Split::Fixed && clock.is_multiple_of(epoch) {
            self.learn(epoch);
        }
    }

    fn learn(&mut self, epoch: u64) {
        let (dirty, step) = (self.dirty(), (self.capacity / 64).max(1));
        let it = &mut self.learnt;
        let price = self.settings.rewrite_over_read as f64;
        it.clean_gain = 0.8 * it.clean_gain + it.hits as f64 / epoch as f64;
        it.dirty_gain *= 0.8;
        if self.settings.split == Split::TwoGhosts {
            it.dirty_gain += it.dirty_hits as f64 / epoch as f64;
        }
        it.dirty_gain += it.windows as f64 * price / dirty.max(1) as f64;
        (it.hits, it.dirty_hits, it.windows) = (0, 0, 0);
        if it.clean_gain > it.dirty_gain {
            it.allowed =
                (self.capacity / 16).max(1).max(it.allowed.min(dirty).saturating_sub(step));
        } else if it.clean_gain < it.dirty_gain {
            it.allowed = self.capacity.min(it.allowed + step);
        }
    }

    fn append(&mut self, lba: u64) -> bool {
        let band = self.band_of(lba);
        self.appended += 1;
        self.runs += u64::from(self.next != Some(lba));
        self.next = Some(lba + 1);
        let entries = self.log.entries.unwrap_or(self.log.blocks.0).min(self.log.blocks.0);
        let (blocks, runs) = self.open_until.get(&band).copied().unwrap_or_default();
        let opens = blocks < self.appended || runs < self.runs;
        if opens {
            let until = (self.appended + self.log.blocks.0, self.runs + entries);
            self.open_until.insert(band, until);
        }
        opens
    }

    fn write_around(&mut self, extent: Extent) {
        self.cached.retain(|block| !extent.contains(Lba(block.lba)));
        self.next = None;
        for lba in extent.start.0..extent.end().0 {
            let opens = self.append(lba);
            self.counted[usize::from(!opens)] += 1;
        }
    }

    /// Addresses of the blocks that leave.
    fn evict(&mut self) -> Vec<u64> {
        let by_age = |blocks: &mut Vec<Cached>| blocks.sort_by_key(|block| block.clock);
        let mut clean: Vec<Cached> = self.cached.iter().copied().filter(|it| !it.dirty).collect();
        by_age(&mut clean);
        let takes_clean = !clean.is_empty() && self.dirty() <= self.learnt.allowed;
        let mut of_bands: BTreeMap<usize, Vec<Cached>> = BTreeMap::new();
        for block in self.cached.iter().filter(|block| block.dirty) {
            of_bands.entry(self.band_of(block.lba)).or_default().push(*block);
        }
        of_bands.values_mut().for_each(by_age);
        let is_open = |band: &usize| {
            let (blocks, runs) = self.open_until.get(band).copied().unwrap_or_default();
            blocks > self.appended && runs > self.runs
        };
        let open = of_bands.iter().filter(|(band, _)| is_open(band));
        let rider = open.min_by_key(|(_, blocks)| blocks[0].clock);
        let ripeness = |(band, blocks): &(&usize, &Vec<Cached>)| {
            let idle: u64 = blocks.iter().map(|block| self.clock - block.clock).sum();
            let (start, end) = self.bands[**band];
            blocks.len() as f64 * idle as f64 / (end - start) as f64
        };
        let ripest = of_bands.iter().reduce(|a, b| if ripeness(&b) > ripeness(&a) { b } else { a });
        let chosen = rider.or(ripest).filter(|_| !takes_clean);
        let victims: Vec<Cached> = match chosen {
            Some((_, blocks)) => {
                blocks.iter().copied().take(self.settings.batch as usize).collect()
            }
            None => clean.into_iter().take(1).collect(),
        };
        self.next = None;
        for victim in &victims {
            if victim.dirty {
                let opens = self.append(victim.lba);
                self.counted[usize::from(!opens)] += 1;
                self.learnt.windows += u64::from(opens);
                self.left_dirty.push(victim.lba);
            } else {
                self.left_clean.push(victim.lba);
            }
        }
        let left: Vec<u64> = victims.iter().map(|victim| victim.lba).collect();
        self.cached.retain(|block| !left.contains(&block.lba));
        left
    }
}

/// A policy with the entries that it chooses from.
struct Driven {
    settings: RideSettings,
    capacity: u64,
    backing: Geometry,
    policy: Box<dyn EvictionPolicy>,
    /// By entry.
    lbas: Vec<Option<(u64, bool)>>,
    events: PolicyEvents,
}

impl Driven {
    fn entry_of(&self, lba: u64) -> Option<u32> {
        let is = |known: &Option<(u64, bool)>| known.is_some_and(|(known, _)| known == lba);
        self.lbas.iter().position(is).map(|entry| entry as u32)
    }

    fn access(&mut self, lba: u64, write: bool) {
        let kind = match write {
            true => AccessKind::Write,
            false => AccessKind::Read,
        };
        if let Some(entry) = self.entry_of(lba) {
            self.policy.on_access(entry, kind, &mut self.events);
            let known = self.lbas[entry as usize].as_mut().expect("it is cached");
            known.1 |= write;
            return;
        }
        let free = self.lbas.iter().position(Option::is_none);
        let entry = free.unwrap_or(self.lbas.len());
        if entry == self.lbas.len() {
            self.lbas.push(None);
        }
        self.lbas[entry] = Some((lba, write));
        self.policy.on_insert(entry as u32, Lba(lba), kind, &mut self.events);
    }

    fn evict(&mut self) -> Vec<u64> {
        let mut victims = Vec::new();
        self.policy.victims(&mut victims, &mut self.events);
        let left = |entry: &u32| self.lbas[*entry as usize].expect("it is cached").0;
        let lbas = victims.iter().map(left).collect();
        victims.iter().for_each(|entry| self.remove(*entry));
        lbas
    }

    fn remove(&mut self, entry: u32) {
        self.policy.on_remove(entry);
        self.lbas[entry as usize] = None;
    }

    fn write_around(&mut self, extent: Extent) {
        for lba in extent.start.0..extent.end().0 {
            if let Some(entry) = self.entry_of(lba) {
                self.remove(entry);
            }
        }
        self.policy.on_write_around(extent, &mut self.events);
    }

    /// Goes on with a policy that was built from what this one wrote down.
    fn save_and_restore(&mut self) {
        let mut numbers = vec![0; self.lbas.len()];
        let mut cached = Vec::new();
        for (entry, known) in self.lbas.iter().enumerate() {
            let Some((lba, dirty)) = *known else { continue };
            numbers[entry] = cached.len() as u32;
            cached.push(CachedBlock { lba: Lba(lba), dirty });
        }
        let mut state = StateWriter::default();
        self.policy.save(&numbers, &mut state);
        let bytes = state.into_bytes();
        let built = self.settings.build(self.capacity, &self.backing);
        self.policy = built.expect("settings that fit");
        let mut state = StateReader::new(&bytes);
        self.policy.restore(&cached, &mut state).expect("a sound state");
        self.lbas = cached.iter().map(|it| Some((it.lba.0, it.dirty))).collect();
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Access(u64, bool),
    WriteAround(u64, u64),
    SaveAndRestore,
}

const BLOCKS: u64 = 1200;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let access = (0..BLOCKS, 0..4u64).prop_map(|(lba, kind)| {
        // Some addresses are hot.
        let lba = if kind % 2 == 0 { lba % 40 * 30 } else { lba };
        Step::Access(lba, kind != 0)
    });
    let around =
        (0..BLOCKS - 40, 1..40u64).prop_map(|(lba, blocks)| Step::WriteAround(lba, blocks));
    let step = prop_oneof![
        200 => access,
        1 => around,
        2 => Just(Step::SaveAndRestore),
    ];
    prop::collection::vec(step, 1..900)
}

fn check(steps: &[Step], settings: RideSettings, capacity: u64, log: LogSize, clock: u64) {
    // More bands than are looked at together, some longer than others.
    let mut bands = Vec::new();
    while bands.last().is_none_or(|(_, end)| *end < BLOCKS) {
        let start = bands.last().map_or(0, |(_, end)| *end);
        bands.push((start, start + 5 + (start * 7) % 11));
    }
    let table = BandTable::new(bands.iter().map(|(start, end)| BlockCount(end - start)));
    let mut backing = Geometry::plain(table.blocks(), crate::disk::Media::Shingled);
    backing.bands = Some(Arc::new(table));
    backing.log = Some(log);
    let zones = settings.zones.of("ride", &backing, ZONES_MAX);
    let mut ride = Ride::new(&settings, capacity, log, zones.expect("bands"));
    ride.clock = clock;
    let mut driven = Driven {
        policy: Box::new(ride),
        settings: settings.clone(),
        capacity,
        backing,
        lbas: Vec::new(),
        events: PolicyEvents::default(),
    };
    let mut model = Model {
        learnt: Learnt { allowed: capacity, ..Learnt::default() },
        settings,
        capacity,
        log,
        bands,
        cached: Vec::new(),
        clock,
        appended: 0,
        runs: 0,
        next: None,
        open_until: BTreeMap::new(),
        left_clean: Vec::new(),
        left_dirty: Vec::new(),
        counted: [0; 2],
    };
    for step in steps {
        match *step {
            Step::Access(lba, write) => {
                let is_new = model.cached.iter().all(|block| block.lba != lba);
                while is_new && model.cached.len() as u64 >= capacity {
                    assert_eq!(driven.evict(), model.evict());
                }
                driven.access(lba, write);
                model.access(lba, write);
                let gauge = Some((Gauge::DirtyAllowed, model.learnt.allowed));
                assert_eq!(driven.events.gauge, gauge);
            }
            Step::WriteAround(lba, blocks) => {
                let extent = Extent::new(lba, blocks);
                driven.write_around(extent);
                model.write_around(extent);
            }
            // A smaller cache has no room to write down the windows of all bands.
            Step::SaveAndRestore if capacity < 100 || clock > CLOCK_MAX => {}
            Step::SaveAndRestore => driven.save_and_restore(),
        }
    }
    let counted = [Counter::WindowsOpened, Counter::Rides].map(|it| driven.events.amount(it));
    assert_eq!(counted, model.counted);
}

proptest! {
    /// The policy does what the model does, and goes on with it from what it has written down.
    #[test]
    fn it_chooses_as_a_scan_would(
        steps in steps(),
        capacity in 8u64..260,
        blocks in 1u64..120,
        entries in prop::option::of(1u64..60),
        batch in 1u64..12,
        split in prop::sample::select(vec![Split::Adaptive, Split::TwoGhosts, Split::Fixed]),
    ) {
        let settings = RideSettings {
            zones: ZoneSettings::Bands,
            log_blocks: None,
            batch,
            rewrite_over_read: 3,
            split,
        };
        check(&steps, settings, capacity, LogSize { blocks: BlockCount(blocks), entries }, 0);
    }

    /// So it does after a long life, and where the sum of the clocks of a band has wrapped.
    #[test]
    fn it_chooses_as_a_scan_would_after_a_long_life(
        steps in steps(),
        capacity in 8u64..260,
        clock in prop::sample::select(vec![CLOCK_MAX - 10_000, u64::MAX / 4]),
    ) {
        let settings = RideSettings {
            zones: ZoneSettings::Bands,
            log_blocks: None,
            batch: 4,
            rewrite_over_read: 3,
            split: Split::Fixed,
        };
        check(&steps, settings, capacity, LogSize { blocks: BlockCount(50), entries: None }, clock);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let settings = RideSettings {
        zones: ZoneSettings::Equal(8),
        log_blocks: None,
        batch: 32,
        rewrite_over_read: 80,
        split: Split::Adaptive,
    };
    let backing = Geometry::plain(BlockCount(100), crate::disk::Media::Shingled);
    let refusal = |settings: &RideSettings| {
        let built = settings.build(10, &backing);
        built.err().map(|error| error.message).unwrap_or_default()
    };
    assert!(refusal(&settings).contains("give log_blocks"));
    let known = RideSettings { log_blocks: Some(5), ..settings };
    assert_eq!(refusal(&known), "");
    for (wrong, name) in [
        (RideSettings { batch: 0, ..known.clone() }, "batch"),
        (RideSettings { rewrite_over_read: 0, ..known.clone() }, "rewrite_over_read"),
        (RideSettings { log_blocks: Some(0), ..known.clone() }, "log_blocks"),
        (RideSettings { zones: ZoneSettings::Bands, ..known.clone() }, "bands"),
    ] {
        assert!(refusal(&wrong).contains(name), "{name}");
    }
}
