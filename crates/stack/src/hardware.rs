//! The hardware that a stack is given, so that stacks on like hardware can be told from others.

use super::describe::Describe;
use super::kinds::{BufferedIn, Media};
use imbrex_report::Hardware;

impl Describe {
    /// Drives that rotate with their capacity, and the room for buffers and caches in flash and in memory. Flash and
    /// memory that are no buffer or cache, such as an SSD that is the device itself, count whole.
    pub(crate) fn hardware(&self) -> Hardware {
        let mut hardware = Hardware::default();
        let mut counted: Vec<&str> = Vec::new();
        for node in &self.nodes {
            match node.facts.reported().buffers() {
                Some(BufferedIn::Memory(bytes)) => hardware.memory_bytes += bytes,
                Some(BufferedIn::FirstPort(bytes)) => {
                    let disks = self.disks_under(&self.below_of(&node.name)[0]);
                    match disks.first().map(|(_, media)| *media) {
                        Some(Media::Flash) => hardware.flash_bytes += bytes,
                        Some(Media::Memory) => hardware.memory_bytes += bytes,
                        // A part of a drive that rotates is counted with it.
                        Some(Media::Rotating) | None => {}
                    }
                    counted.extend(disks.into_iter().map(|(name, _)| name));
                }
                None => {}
            }
        }
        for disk in self.disks() {
            let bytes = disk.capacity_bytes();
            match disk.media() {
                Media::Rotating => {
                    hardware.disks += 1;
                    hardware.raw_bytes += bytes;
                }
                _ if counted.contains(&disk.name()) => {}
                Media::Flash => hardware.flash_bytes += bytes,
                Media::Memory => hardware.memory_bytes += bytes,
            }
        }
        hardware
    }

    /// The disks that a node stands on, itself if it is one.
    fn disks_under(&self, name: &str) -> Vec<(&str, Media)> {
        match self.facts_of(name).and_then(|facts| facts.disk()) {
            Some(disk) => vec![(disk.name(), disk.media())],
            None => {
                let below = self.below_of(name).iter();
                below.flat_map(|port| self.disks_under(port)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Footprint, Plan, Setting, StackConfig};
    use imbrex_core::buffer::ContentKind;
    use imbrex_report::Hardware;

    fn hardware(stack: &str, settings: &[&str], scale: u64) -> Hardware {
        let settings = settings.iter().map(|text| Setting::parse(text).expect("a setting"));
        let settings: Vec<Setting> = settings.collect();
        let config = StackConfig::load(stack, &settings).expect("a ready-made stack");
        let options = BuildOptions { scale, ..BuildOptions::simulate(1) };
        let plan = Plan::new(&config, &options).expect("a plan");
        let footprint = Footprint { touched_bytes: 100 << 20, written_bytes: 100 << 20 };
        let built = plan.build(Some(footprint), None, ContentKind::Counted).expect("a stack");
        built.describe.hardware()
    }

    /// Drives, MiB of flash, MiB of memory and GB of drives.
    fn told(stack: &str, settings: &[&str]) -> [u64; 4] {
        let Hardware { disks, flash_bytes, memory_bytes, raw_bytes } = hardware(stack, settings, 1);
        [disks, flash_bytes >> 20, memory_bytes >> 20, raw_bytes / 1_000_000_000]
    }

    #[test]
    fn caches_count_by_their_room_and_drives_by_their_capacity() {
        assert_eq!(told("cmr-only", &[]), [1, 0, 0, 500]);
        assert_eq!(told("pore", &[]), [1, 2, 0, 5000], "2 % of what is touched");
        assert_eq!(told("hwsr", &[]), [1, 128, 64, 1000], "the log is not in use");
        assert_eq!(told("hwsr", &["buffer.capacity=0", "cache.capacity=1GiB"]), [1, 1024, 0, 1000]);
        assert_eq!(told("idler-buffer", &[])[1..3], [64, 0]);
        assert_eq!(told("split", &[]), [4, 0, 0, 20_003]);
    }

    #[test]
    fn drives_are_divided_by_the_scale_and_caches_are_not() {
        let of = |scale| hardware("pore-archive", &[], scale);
        assert_eq!(of(1).flash_bytes, of(16).flash_bytes);
        assert_eq!(of(1).raw_bytes / 16 / 4096, of(16).raw_bytes / 4096);
    }

    #[test]
    fn an_ssd_that_is_the_device_counts_whole() {
        let of = |settings: &[&str]| hardware("cmr-only", settings, 1);
        let ssd = of(&["cmr.drive=850evo"]);
        assert_eq!((ssd.disks, ssd.raw_bytes, ssd.memory_bytes), (0, 0, 0));
        assert!(ssd.flash_bytes > 100_000_000_000, "{ssd:?}");
    }
}
