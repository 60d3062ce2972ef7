//! What a disk says of itself, read from sysfs without touching the disk.

use super::models::{Kind, KnownModel, lookup};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// SCSI device type of a host-managed zoned disk (ZBC).
const TYPE_HOST_MANAGED: &str = "20";
/// Where the ZONED field stands in VPD page B1h (SBC-4): bits 5 and 4 of byte 8.
const VPD_B1_ZONED: usize = 8;
/// Where IDENTIFY DEVICE data begin in VPD page 89h (SAT-4), and its word 69 in them (ACS-4).
const VPD_89_IDENTIFY: usize = 60;
const IDENTIFY_ZONED_WORD: usize = 69;

/// How sure an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The disk says so itself.
    Reported,
    /// The model is in the table.
    Known,
    /// A sign that has no other usual reason.
    Likely,
    /// Nothing speaks for it, and nothing against.
    Guess,
}

/// One thing that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Evidence {
    /// Where.
    pub from: String,
    /// What it says.
    pub says: String,
}

/// What was found out about a disk.
#[derive(Clone, Debug, Serialize)]
pub struct Identity {
    /// The device, when one was given.
    pub device: Option<String>,
    /// The model, as the disk reports it or as it was given.
    pub model: Option<String>,
    /// What the user can address, where the disk says; else the nominal size of its model.
    pub capacity_bytes: Option<u64>,
    /// How it records.
    pub kind: Kind,
    /// How sure that is.
    pub confidence: Confidence,
    /// Why.
    pub evidence: Vec<Evidence>,
    /// The nearest drive of the library, once it has been looked for.
    pub nearest_drive: Option<String>,
    /// Why it is that one.
    pub nearest_drive_why: Option<String>,
}

/// A disk's folder in sysfs.
pub struct Sysfs {
    folder: PathBuf,
}

impl Sysfs {
    /// The folder of the whole disk under a device name, such as `sda` for `sda1`, below `root`
    /// (`/sys`).
    pub fn of(root: &Path, name: &str) -> Option<Sysfs> {
        let folder = root.join("class/block").join(name);
        // A partition is a folder inside its disk.
        let folder = match folder.join("partition").exists() {
            true => folder.canonicalize().ok()?.parent()?.to_path_buf(),
            false => folder,
        };
        folder.join("queue").exists().then_some(Sysfs { folder })
    }

    fn text(&self, file: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.join(file)).ok()?;
        Some(text.trim().to_string())
    }

    fn bytes(&self, file: &str) -> Option<Vec<u8>> {
        std::fs::read(self.folder.join(file)).ok()
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.parse().ok()
    }
}

/// Two bits in which zoned disks say what they are; the same in SCSI and ATA.
fn zoned_field(bits: u8) -> Option<Kind> {
    match bits & 3 {
        1 => Some(Kind::HostAware),
        2 => Some(Kind::DriveManaged),
        _ => None,
    }
}

/// Looks at a device.
pub fn device(name: &str, sysfs: &Sysfs) -> Identity {
    let model = sysfs.text("device/model");
    let mut identity = of_model(model.as_deref());
    identity.device = Some(name.to_string());
    let size = sysfs.number("size").map(|sectors| sectors * 512);
    identity.capacity_bytes = size.or(identity.capacity_bytes);
    let reported = reported_kinds(sysfs);
    for (from, says, kind) in &reported {
        identity.evidence.insert(0, Evidence { from: (*from).to_string(), says: says.clone() });
        identity.kind = *kind;
        identity.confidence = Confidence::Reported;
    }
    if identity.confidence == Confidence::Guess {
        hints(sysfs, &mut identity);
    }
    identity
}

/// What the disk says of itself, the strongest last.
fn reported_kinds(sysfs: &Sysfs) -> Vec<(&'static str, String, Kind)> {
    let mut found = Vec::new();
    if sysfs.text("queue/rotational").as_deref() == Some("0") {
        found.push(("queue/rotational", "0".to_string(), Kind::SolidState));
    }
    if let Some(page) = sysfs.bytes("device/vpd_pg89") {
        let at = VPD_89_IDENTIFY + 2 * IDENTIFY_ZONED_WORD;
        if let Some(kind) = page.get(at).and_then(|low| zoned_field(*low)) {
            found.push(("IDENTIFY DEVICE word 69, bits 1:0", kind.words().to_string(), kind));
        }
    }
    if let Some(page) = sysfs.bytes("device/vpd_pgb1")
        && let Some(kind) = page.get(VPD_B1_ZONED).and_then(|byte| zoned_field(byte >> 4))
    {
        found.push(("VPD page B1h, field ZONED", kind.words().to_string(), kind));
    }
    match sysfs.text("queue/zoned").as_deref() {
        Some("host-aware") => {
            found.push(("queue/zoned", "host-aware".to_string(), Kind::HostAware));
        }
        Some("host-managed") => {
            found.push(("queue/zoned", "host-managed".to_string(), Kind::HostManaged));
        }
        _ => {}
    }
    if sysfs.text("device/type").as_deref() == Some(TYPE_HOST_MANAGED) {
        let says = "20: zoned block device".to_string();
        found.push(("device/type", says, Kind::HostManaged));
    }
    found
}

/// Signs where nothing is said. Virtual disks report no model, and what they say of themselves means
/// nothing.
fn hints(sysfs: &Sysfs, identity: &mut Identity) {
    if identity.model.is_none() {
        return;
    }
    let discards = sysfs.number("queue/discard_max_bytes").unwrap_or(0);
    if sysfs.text("queue/rotational").as_deref() == Some("1") && discards > 0 {
        identity.kind = Kind::DriveManaged;
        identity.confidence = Confidence::Likely;
        identity.evidence.push(Evidence {
            from: "queue/discard_max_bytes".to_string(),
            says: format!(
                "{discards}: a rotating disk that takes trims has a map to forget entries of, which \
                 conventional ones do not"
            ),
        });
    }
}

/// Looks a model up; `None` for a disk that reports none.
pub fn of_model(model: Option<&str>) -> Identity {
    let known: Option<KnownModel> = model.and_then(lookup);
    let evidence = match (model, known) {
        (Some(model), Some(KnownModel { family, .. })) => Evidence {
            from: format!("model `{model}`"),
            says: format!("{} [{}]", family.name, family.source),
        },
        (Some(model), None) => Evidence {
            from: format!("model `{model}`"),
            says: "not in the table of known models".to_string(),
        },
        (None, _) => Evidence {
            from: "device/model".to_string(),
            says: "the device reports no model".to_string(),
        },
    };
    Identity {
        device: None,
        model: model.map(str::to_string),
        capacity_bytes: known.map(|known| known.capacity_bytes),
        kind: known.map_or(Kind::Unknown, |known| known.family.kind),
        confidence: match known {
            Some(_) => Confidence::Known,
            None => Confidence::Guess,
        },
        evidence: vec![evidence],
        nearest_drive: None,
        nearest_drive_why: None,
    }
}
