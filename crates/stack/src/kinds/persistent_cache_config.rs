//! A drive-managed translation as a stack states it.

use super::ports::{BelowNodes, Form, PortKey, Ports, one};
use crate::durability::BLOCKS_MAX;
use imbrex_drives::{TranslationSettings, translation_keys};

translation_keys! {
    /// A drive-managed translation. What is absent is taken from the `[translation]` table of the
    /// drive below.
    pub struct PersistentCacheConfig {
        first {
            /// Name of the node.
            name: String => "any";
            /// The shingled disk; or what takes the log, and the disk of the bands (below).
            below: BelowNodes<TranslationPorts> => r#"a disk node; `{ log = "NODE", home = "NODE" }`, where `home` is a disk"#;
        }
        after_bands {
            /// Seed of a random layout.
            band_seed: Option<u64> => "a whole number", "the seed of the run; 1 in an image";
        }
        after_rewrites {
            /// Whether it keeps a journal, as it does when it is served from files; not when absent.
            #[serde(skip_serializing_if = "Option::is_none")]
            durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
            /// Blocks of the ring of its journal.
            #[serde(skip_serializing_if = "Option::is_none")]
            ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
            /// Blocks of data it may write without a flush.
            #[serde(skip_serializing_if = "Option::is_none")]
            unflushed_blocks_max: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        }
    }
}

/// What takes the log and the metadata, and the disk of the bands: the same in the short form.
pub struct TranslationPorts;

impl Ports for TranslationPorts {
    const PORTS: &'static [PortKey] = &[one("log"), one("home")];
    const FORM: Form = Form::Both;
}

impl PersistentCacheConfig {
    /// What the node says, and what the drive says where the node is silent.
    pub fn over(&self, drive: TranslationSettings) -> TranslationSettings {
        let stated = toml::Table::try_from(self).expect("a node that was read can be written");
        TranslationSettings::of_table(stated, &drive)
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Plan, StackConfig};
    use imbrex_core::buffer::ContentKind;
    use imbrex_core::units::BlockCount;

    /// A translation whose log is on flash or on another disk and whose bands are on a shingled one.
    fn stack(log_drive: &str, below: &str) -> Result<StackConfig, String> {
        let text = format!(
            "name = \"split\"\n[[node]]\nname = \"fast\"\nkind = \"disk\"\ndrive = \"{log_drive}\"\n\
             [[node]]\nname = \"slow\"\nkind = \"disk\"\ndrive = \"st5000as0011\"\n\
             [[node]]\nname = \"translation\"\nkind = \"persistent-cache\"\nbelow = {below}\n\
             bands = \"fixed:4MiB\"\npersistent_cache = \"16MiB\"\nmerge_buffer = \"none\"\n"
        );
        StackConfig::from_text("split.toml", &text, &[]).map_err(|error| error.to_string())
    }

    const TWO: &str = "{ log = \"fast\", home = \"slow\" }";

    #[test]
    fn below_is_a_node_or_two_by_name() {
        let config = stack("pblaze4", TWO).unwrap();
        assert_eq!(config.top().below(), ["fast", "slow"]);
        assert_eq!(config.top().journal_below(), Some("fast"));
        let text = toml::to_string(&config).unwrap();
        assert!(StackConfig::from_image(&text).is_ok(), "{text}");
        for (below, expected) in [
            (
                "3",
                "translation.below = 3; accepted: a disk node; `{ log = \"NODE\", home = \"NODE\" }`",
            ),
            ("{ log = \"fast\" }", "missing field `home`"),
            ("{ log = \"fast\", bands = \"slow\" }", "unknown field `bands`"),
            (
                "{ log = \"slow\", home = \"slow\" }",
                "node `slow` is below two ports of node `translation`",
            ),
        ] {
            let error = stack("pblaze4", below).unwrap_err();
            assert!(error.contains(expected), "{below}: {error}");
        }
    }

    #[test]
    fn each_disk_is_as_large_as_its_part_needs() {
        const MIB: u64 = 1 << 20;
        for (log_drive, trims) in [("pblaze4", true), ("cmr-500gb-7200", true), ("pblaze4", false)]
        {
            let options = BuildOptions {
                size_bytes: Some(256 * MIB),
                trim_disks: trims,
                durable: trims,
                ..BuildOptions::simulate(1)
            };
            let plan = Plan::new(&stack(log_drive, TWO).unwrap(), &options);
            let plan = plan.unwrap_or_else(|error| panic!("{log_drive}: {error}"));
            let built = plan.build(None, None, ContentKind::Counted);
            let built = built.unwrap_or_else(|error| panic!("{log_drive}: {error}"));
            let [fast, slow] = [0, 1].map(|at| built.disks[at].geometry().clone());
            assert_eq!(built.stack.geometry().blocks, BlockCount(256 * MIB / 4096));
            if trims {
                assert!(fast.blocks.bytes() < 64 * MIB, "{log_drive}: {fast:?}");
            }
            let tracks = slow.tracks.expect("a disk with tracks");
            assert_eq!(tracks.conventional_prefix(), BlockCount::ZERO);
        }
    }

    #[test]
    fn a_log_that_its_disk_cannot_hold_is_refused() {
        let options = BuildOptions {
            size_bytes: Some(1 << 28),
            scale: 1 << 17,
            trim_disks: true,
            durable: true,
            ..BuildOptions::simulate(1)
        };
        let config = stack("pblaze4", TWO).unwrap();
        let error = Plan::new(&config, &options).map(|_| ()).unwrap_err();
        let words = error.to_string();
        assert!(words.contains("size: "), "{words}");
        let options = BuildOptions { size_bytes: Some(1 << 24), ..options };
        let error = Plan::new(&config, &options).map(|_| ()).unwrap_err();
        let words = error.to_string();
        assert!(
            words.contains("its log and journal need ") && words.contains("of node `fast`"),
            "{words}"
        );
    }
}
