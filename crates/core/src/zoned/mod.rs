//! A host-managed shingled disk: zones with write pointers that the host must respect (ZBC-2).

mod host_managed;
mod settings;
mod table;

pub use host_managed::HostManaged;
pub use settings::{HostManagedSettings, ZoneLayoutError};
pub use table::ZoneTable;
