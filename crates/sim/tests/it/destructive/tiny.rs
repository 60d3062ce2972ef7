//! Ready-made stacks over disks of a few hundred blocks.

use imbrex_core::buffer::ContentKind;
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::quantity::{Size, SizeOrShare};
use imbrex_stack::{BuildOptions, Built, NodeConfig, Plan, Setting, StackConfig};

/// Caches hold from one block to this many.
const CACHE_BLOCKS_MAX: u64 = 32;

/// A stack whose disks are tiny; what a seed decides is drawn when it is built.
pub struct TinyStack {
    /// The name of the stack and what is set on it.
    pub label: String,
    config: StackConfig,
}

/// Bands of 4 to 9 tracks, a log of 64 blocks, zones of half a band, short periods.
fn tiny_settings() -> Vec<String> {
    let drive = |name| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
        format!("{folder}/{name}.toml")
    };
    vec![
        format!("cmr.drive={}", drive("tiny-cmr")),
        format!("smr.drive={}", drive("tiny-smr")),
        "translation.bands=uniform:64KiB..144KiB".to_string(),
        "translation.persistent_cache=256KiB".to_string(),
        "cache.zone=48KiB".to_string(),
        "cache.period_blocks=6".to_string(),
    ]
}

impl TinyStack {
    /// A ready-made stack with further settings.
    pub fn new(name: &str, settings: &[&str]) -> TinyStack {
        let all: Vec<Setting> = tiny_settings()
            .iter()
            .map(String::as_str)
            .chain(settings.iter().copied())
            .map(|text| Setting::parse(text).expect("a setting"))
            .collect();
        TinyStack {
            label: [&[name], settings].concat().join(", "),
            config: StackConfig::load(name, &all).expect("a ready-made stack"),
        }
    }

    /// The same with a device on which a stream is long enough to go around the log.
    pub fn with_a_larger_device(mut self) -> TinyStack {
        for node in &mut self.config.node {
            if let NodeConfig::Disk(disk) = node {
                let small = |drive: String| drive.replace("tiny-smr", "small-smr");
                disk.drive = disk.drive.take().map(small);
            }
        }
        self
    }

    pub fn has_bands(&self) -> bool {
        self.config.has_node("translation")
    }

    pub fn has_cache(&self) -> bool {
        self.config.has_node("cache")
    }

    /// The stack of a case: its seed decides bands, cache size and destage slots.
    pub fn build(&self, seed: u64) -> Built {
        let mut config = self.config.clone();
        let mut rng = Rng::new(seed, 41);
        for node in &mut config.node {
            if let NodeConfig::WriteBackCache(cache) = node {
                let blocks = 1 + rng.below(CACHE_BLOCKS_MAX);
                cache.capacity = SizeOrShare::Size(Size(blocks * BLOCK_BYTES));
                cache.destage_slots = 1 + rng.below(4) as u32;
            }
        }
        let plan = Plan::new(&config, &BuildOptions::simulate(seed))
            .unwrap_or_else(|error| panic!("{error}"));
        plan.build(None, None, ContentKind::Stamped).unwrap_or_else(|error| panic!("{error}"))
    }
}
