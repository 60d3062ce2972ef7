//! The drive of the library that is nearest to a disk.

use super::identify::Identity;
use super::models::{Kind, lookup};
use crate::failure::Failure;
use imbrex_drives::Drive;

/// A drive of the library and its maker.
struct Candidate {
    drive: &'static str,
    kind: Kind,
    maker: Maker,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Maker {
    Seagate,
    WesternDigital,
    Toshiba,
}

impl Maker {
    fn name(self) -> &'static str {
        match self {
            Maker::Seagate => "Seagate",
            Maker::WesternDigital => "Western Digital",
            Maker::Toshiba => "Toshiba",
        }
    }

    /// The maker of a disk by how its model begins, or by its own name before it.
    fn of(model: &str) -> Option<Maker> {
        const BEGINNINGS: [(&str, Maker); 14] = [
            ("SEAGATE", Maker::Seagate),
            ("ST", Maker::Seagate),
            ("WD", Maker::WesternDigital),
            ("HGST", Maker::WesternDigital),
            ("HSH", Maker::WesternDigital),
            ("HUH", Maker::WesternDigital),
            ("HUS", Maker::WesternDigital),
            ("WSH", Maker::WesternDigital),
            ("WUH", Maker::WesternDigital),
            ("TOSHIBA", Maker::Toshiba),
            ("HDW", Maker::Toshiba),
            ("DT0", Maker::Toshiba),
            ("MQ0", Maker::Toshiba),
            ("MG", Maker::Toshiba),
        ];
        let first = model.split_whitespace().next()?.to_uppercase();
        let mut beginnings = BEGINNINGS.iter();
        let found = beginnings.find(|(beginning, _)| first.starts_with(beginning));
        found.map(|(_, maker)| *maker)
    }
}

/// The drives that may stand for others, the best known first. The `st8000dm004` is not among them: it
/// is itself estimated from the `st8000as0002`. Disks of the last century stand for nothing of today.
const CANDIDATES: [Candidate; 8] = [
    candidate("st8000as0002", Kind::DriveManaged, Maker::Seagate),
    candidate("st5000as0011", Kind::DriveManaged, Maker::Seagate),
    candidate("wd40efax", Kind::DriveManaged, Maker::WesternDigital),
    candidate("st8000as0022", Kind::HostAware, Maker::Seagate),
    candidate("hc620-15tb", Kind::HostManaged, Maker::WesternDigital),
    candidate("hc620-14tb", Kind::HostManaged, Maker::WesternDigital),
    candidate("wd-4tb-7200", Kind::Conventional, Maker::WesternDigital),
    candidate("wd1002faex", Kind::Conventional, Maker::WesternDigital),
];

const fn candidate(drive: &'static str, kind: Kind, maker: Maker) -> Candidate {
    Candidate { drive, kind, maker }
}

/// The nearest drive of the library and why it is that one; nothing for kinds that have none. What the
/// table of models names comes first, unless the disk says that it records otherwise.
pub fn nearest(identity: &Identity) -> Result<Option<(String, String)>, Failure> {
    let model = identity.model.as_deref().unwrap_or_default();
    let known = lookup(model).filter(|known| known.family.kind == identity.kind);
    if let Some(family) = known.map(|known| known.family)
        && let Some(drive) = &family.drive
    {
        let words = || model.split_whitespace();
        let is_itself = words().any(|word| {
            let start = word.get(..drive.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(drive))
        });
        let why = match is_itself {
            true => "the model of this very disk".to_string(),
            false => format!("of the same family or nearest to it, {}", family.name),
        };
        return Ok(Some((drive.clone(), why)));
    }
    let maker = Maker::of(model);
    let mut best: Option<(&Candidate, u64, (bool, f64))> = None;
    for candidate in CANDIDATES.iter().filter(|c| c.kind == identity.kind) {
        let bytes = Drive::open(candidate.drive)?.model.capacity.bytes();
        let size = identity.capacity_bytes.unwrap_or(bytes);
        let distance = (size as f64 / bytes as f64).ln().abs();
        let rank = (maker != Some(candidate.maker), distance);
        if best.is_none_or(|(_, _, other)| rank < other) {
            best = Some((candidate, bytes, rank));
        }
    }
    Ok(best.map(|(candidate, bytes, (is_other_maker, _))| {
        let terabytes = bytes as f64 / 1e12;
        let why = match (is_other_maker, maker) {
            (false, _) => format!(
                "the same maker ({}) and kind of recording, nearest in size ({terabytes:.1} TB)",
                candidate.maker.name()
            ),
            (true, Some(maker)) => format!(
                "the same kind of recording, nearest in size ({terabytes:.1} TB); the library has none \
                 of {}",
                maker.name()
            ),
            (true, None) => {
                format!("the same kind of recording, nearest in size ({terabytes:.1} TB)")
            }
        };
        (candidate.drive.to_string(), why)
    }))
}

/// How to see what a workload would make of the nearest drive.
pub fn how_to_try(kind: Kind, drive: &str) -> Option<String> {
    match kind {
        Kind::DriveManaged | Kind::HostAware => Some(format!(
            "`imbrex compare --trace YOURS --systems cmr-only,{drive}`; it says when the log never \
             filled, and which --drive-scale would show the cleaning"
        )),
        Kind::HostManaged => Some(format!("`imbrex drive fio {drive} YOURS.fio`")),
        Kind::Conventional => Some(format!("`imbrex compare --trace YOURS --systems {drive}`")),
        Kind::SolidState | Kind::Unknown => None,
    }
}
