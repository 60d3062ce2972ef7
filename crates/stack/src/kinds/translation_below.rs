//! What a drive-managed translation stands on.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The nodes under a drive-managed translation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum TranslationBelow {
    /// The shingled disk, which holds all.
    One(String),
    /// The log on one node and the bands on another.
    Two(TranslationPorts),
}

/// The two nodes under a drive-managed translation.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationPorts {
    /// What takes the log and the metadata.
    pub log: String,
    /// The disk of the bands.
    pub home: String,
}

impl TranslationBelow {
    /// The node of the log.
    pub fn log(&self) -> &str {
        match self {
            TranslationBelow::One(disk) => disk,
            TranslationBelow::Two(ports) => &ports.log,
        }
    }

    /// The disk of the bands.
    pub fn home(&self) -> &str {
        match self {
            TranslationBelow::One(disk) => disk,
            TranslationBelow::Two(ports) => &ports.home,
        }
    }

    /// True when these are two.
    pub fn is_two(&self) -> bool {
        matches!(self, TranslationBelow::Two(_))
    }

    /// The nodes, in the order of the ports.
    pub fn nodes(&self) -> Vec<&str> {
        match self {
            TranslationBelow::One(disk) => vec![disk],
            TranslationBelow::Two(ports) => vec![&ports.log, &ports.home],
        }
    }
}

impl<'de> Deserialize<'de> for TranslationBelow {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TranslationBelow, D::Error> {
        from.deserialize_any(OneOrTwo)
    }
}

/// Takes the name of a node, or a table of two.
struct OneOrTwo;

impl<'de> Visitor<'de> for OneOrTwo {
    type Value = TranslationBelow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a node, or { log = NODE, home = NODE }")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<TranslationBelow, E> {
        Ok(TranslationBelow::One(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, ports: A) -> Result<TranslationBelow, A::Error> {
        let ports = TranslationPorts::deserialize(MapAccessDeserializer::new(ports))?;
        Ok(TranslationBelow::Two(ports))
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
            ("3", "{ log = NODE, home = NODE }"),
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
