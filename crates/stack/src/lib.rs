//! Stacks: their TOML, the kinds of node they are made of, and the plan from which a door builds one.
//!
//! Nothing here knows whether the disks are simulated or served, or where requests come from.

mod areas;
mod brought;
mod collections;
mod config;
mod data_disk_table;
mod describe;
mod disk_parts;
mod drawn;
mod drive_stack;
mod durability;
mod hardware;
mod heads;
mod kinds;
mod measured;
mod members;
mod no_cleaning;
mod observers;
mod options;
mod plan;
mod resolved;
mod roles;
mod setting;
mod text;

pub use areas::{Footprint, lay_out};
pub use brought::{BroughtName, BroughtPolicies};
pub use collections::CollectionObserver;
pub use config::{
    ConfigError, NODES_MAX, StackConfig, check_brought, compared, ready_made, stack_text,
};
pub use describe::{Describe, DescribeNode};
pub use disk_parts::DiskPart;
pub use drawn::DrawnStack;
pub use drive_stack::library_drives;
pub use kinds::{
    CacheConfig, CacheKeys, DescribeDisk, Destage, DiskConfig, DiskMedia, Facts, Keeps, KindKeys,
    LogUse, NodeConfig, PersistentCacheConfig, Place, PolicyConfig, PoreConfig, PortNodes,
    SliceConfig, SpanConfig, TranslationFacts, Windows, WindowsBy, kinds, policy_key,
};
pub use measured::Measured;
pub use members::StackMember;
pub use no_cleaning::PastRun;
pub use observers::{
    ActivityObserver, ArrayObserver, FillObserver, GaugeObserver, GhostObserver, check_series,
};
pub use options::{BuildOptions, ListedMember, MemberNumbers};
pub use plan::{Built, Designed, Plan};
pub use roles::NodeRole;
pub use setting::{Setting, check_taken};
pub use text::read_nodes;
