//! What a cache writes down at a clean shutdown: its settings, the cached blocks with their slots
//! and what the policy knows of them.

use super::Cache;
use super::entries::Flag;
use super::policy::CachedBlock;
use super::settings::CacheMode;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

impl Cache {
    pub(super) fn save_state(&self, state: &mut StateWriter) {
        for (_, value) in self.identity() {
            state.put_u64(value);
        }
        state.put_u64(self.replacement.cached_blocks);
        let mut numbers = vec![0; self.entries.high_water() as usize];
        for (number, (id, entry)) in (0..).zip(self.entries.cached()) {
            numbers[id as usize] = number;
            state.put_u64(entry.lba().0 << 1 | u64::from(entry.is(Flag::Dirty)));
            state.put_u64(u64::from(self.entries.slot(id)));
        }
        self.replacement.policy.save(&numbers, state);
    }

    /// Takes back into an empty cache what [`save_state`](Self::save_state) wrote behind the
    /// settings, which [`other_identity`](Self::other_identity) has read.
    ///
    /// # Errors
    /// When the state contradicts itself or ends too early.
    pub(super) fn restore_state(&mut self, state: &mut StateReader<'_>) -> Result<(), StateError> {
        let count = state.take_u64()?;
        let mut slot_used = vec![false; self.slots.total() as usize];
        let mut cached = Vec::new();
        for _ in 0..count {
            let word = state.take_u64()?;
            let (lba, dirty) = (Lba(word >> 1), word & 1 != 0);
            let slot = state.take_u64()?;
            let free = usize::try_from(slot).ok().and_then(|slot| slot_used.get_mut(slot));
            match free {
                Some(used @ false) => *used = true,
                _ => {
                    return Err(StateError::new(format!(
                        "slot {slot} of the saved cache is out of range or used twice"
                    )));
                }
            }
            if lba.0 >= self.backing_blocks || self.entries.find(lba).is_some() {
                return Err(StateError::new(format!(
                    "{lba:?} of the saved cache is past the end of the device or there twice"
                )));
            }
            let id = self.entries.insert(lba);
            self.entries.replace_slot(id, slot as u32);
            let entry = self.entries.get_mut(id);
            entry.set(Flag::HoldsData);
            if dirty {
                entry.set(Flag::Dirty);
                self.replacement.dirty_blocks += 1;
            }
            cached.push(CachedBlock { lba, dirty });
        }
        self.replacement.cached_blocks = count;
        self.slots.restore(|slot| slot_used[slot as usize]);
        self.replacement.policy.restore(&cached, state)
    }

    /// Reads the settings: the first one that the saved state does not share with the cache: its name, what was
    /// saved and what the cache has.
    pub(super) fn other_identity(
        &self,
        state: &mut StateReader<'_>,
    ) -> Result<Option<(&'static str, u64, u64)>, StateError> {
        for (name, expected) in self.identity() {
            let found = state.take_u64()?;
            if found != expected {
                return Ok(Some((name, found, expected)));
            }
        }
        Ok(None)
    }

    /// The settings that a saved state must share with the cache that takes it back.
    fn identity(&self) -> Vec<(&'static str, u64)> {
        let settings = &self.settings;
        let mut words = vec![
            ("capacity_blocks", settings.capacity_blocks),
            ("destage_slots_max", u64::from(settings.destage_slots_max)),
            ("mode", number_of(settings.mode)),
            ("blocks below", self.backing_blocks),
        ];
        words.extend(settings.policy.identity());
        words
    }
}

/// The number of a mode in saved states.
fn number_of(mode: CacheMode) -> u64 {
    match mode {
        CacheMode::ReadWrite => 0,
        CacheMode::WriteOnly => 1,
        CacheMode::WriteAllocate => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{
        AccessKind, CacheSettings, OpenZones, PeriodCounter, PlainPolicy, PolicyEvents,
        PolicySettings, PopularityWindow, PoreSettings, RideSettings, Split, ZoneSettings,
    };
    use crate::disk::{Geometry, Media};
    use crate::operation::Durability;
    use crate::units::BlockCount;
    use crate::words::Words;

    fn empty(capacity_blocks: u64, policy: PolicySettings) -> Cache {
        let settings = CacheSettings {
            durability: None,
            spare_slots: None,
            destage: Durability::Durable,
            capacity_blocks,
            destage_slots_max: 2,
            mode: CacheMode::ReadWrite,
            policy,
        };
        let flash = Geometry::plain(settings.flash_blocks(), Media::SolidState);
        let backing = Geometry::plain(BlockCount(100), Media::Conventional);
        let (cache, _) = Cache::new(settings, &flash, &backing).expect("settings that fit");
        cache
    }

    /// The state of a cache that holds some blocks, every third of them clean.
    fn saved(policy: PolicySettings) -> Vec<u8> {
        let mut cache = empty(8, policy);
        let mut events = PolicyEvents::default();
        for (slot, lba) in [40, 3, 17, 99, 0, 41].map(Lba).into_iter().enumerate() {
            let id = cache.entries.insert(lba);
            cache.entries.replace_slot(id, slot as u32);
            let entry = cache.entries.get_mut(id);
            entry.set(Flag::HoldsData);
            let kind = match slot % 3 {
                0 => AccessKind::Read,
                _ => AccessKind::Write,
            };
            if kind == AccessKind::Write {
                entry.set(Flag::Dirty);
            }
            cache.replacement.policy.on_insert(id, lba, kind, &mut events);
            cache.replacement.cached_blocks += 1;
        }
        let mut state = StateWriter::default();
        cache.save_state(&mut state);
        state.into_bytes()
    }

    fn restore(policy: PolicySettings, bytes: &[u8]) -> Result<Vec<u8>, StateError> {
        let mut cache = empty(8, policy);
        let mut state = StateReader::new(bytes);
        if let Some((name, ..)) = cache.other_identity(&mut state)? {
            return Err(StateError::new(name));
        }
        cache.restore_state(&mut state)?;
        let mut again = StateWriter::default();
        cache.save_state(&mut again);
        Ok(again.into_bytes())
    }

    fn policies() -> Vec<PolicySettings> {
        let pore = PoreSettings {
            zones: ZoneSettings::Equal(8),
            batch: 1,
            period_blocks: 4,
            period_counter: PeriodCounter::WriteMiss,
            popularity_window: PopularityWindow::Period,
            access_floor: 1,
            open_zones: OpenZones::Bl,
        };
        let ride = RideSettings {
            zones: ZoneSettings::Equal(8),
            log_blocks: Some(4),
            batch: 2,
            rewrite_over_read: 80,
            split: Split::Adaptive,
        };
        let plain = PlainPolicy::VALUES.iter().map(|policy| PolicySettings::Plain(*policy));
        let others = [PolicySettings::Pore(pore), PolicySettings::Ride(ride)];
        // One that is unlimited holds all of the device.
        plain.filter(|policy| *policy != PolicySettings::UNLIMITED).chain(others).collect()
    }

    #[test]
    fn a_state_comes_back_and_a_damaged_one_is_an_error_or_another_state() {
        for policy in policies() {
            let sound = saved(policy.clone());
            assert_eq!(restore(policy.clone(), &sound), Ok(sound.clone()));
            for at in 0..sound.len() {
                let cut = restore(policy.clone(), &sound[..at]);
                cut.expect_err("a state that ends too early");
                for bit in 0..8 {
                    let mut flipped = sound.clone();
                    flipped[at] ^= 1 << bit;
                    // An address or a dirty bit may become another valid one, but none is ignored.
                    assert_ne!(restore(policy.clone(), &flipped), Ok(sound.clone()));
                }
            }
        }
    }

    #[test]
    fn the_first_setting_that_differs_is_named() {
        let sound = saved(PolicySettings::LRU);
        let other = |cache: Cache| cache.other_identity(&mut StateReader::new(&sound));
        assert_eq!(other(empty(8, PolicySettings::LRU)), Ok(None));
        assert_eq!(other(empty(9, PolicySettings::LRU)), Ok(Some(("capacity_blocks", 8, 9))));
        let pore = policies().into_iter().find(|policy| matches!(policy, PolicySettings::Pore(_)));
        let pore = pore.expect("PORE among them");
        assert_eq!(other(empty(8, pore)), Ok(Some(("policy number", 0, 2))));
    }
}
