//! A real shingled drive that cleans by itself: what its host may know of the translation inside.

use super::{Asked, World, Writer, wrong};
use crate::config::ConfigError;
use imbrex_core::disk::LogSize;
use imbrex_core::units::BlockCount;
use imbrex_core::words;
use imbrex_drives::quantity::SizeOrShare;
use imbrex_drives::{Drive, DriveModel, EntryLimit, MediaModel, TranslationSettings};

words! {
    /// Who translates the addresses of a disk, where its own node says so.
    pub enum DiskTranslation {
        /// The drive itself.
        DriveManaged = "drive-managed",
    }
}

/// What the drive file says of a translation that the drive has inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Inside {
    /// Its log.
    pub log: Option<LogSize>,
    /// The mean length of its bands.
    pub mean_band: Option<BlockCount>,
}

impl Inside {
    fn of(translation: &TranslationSettings) -> Inside {
        let blocks = match translation.persistent_cache {
            Some(SizeOrShare::Size(size)) => Some(BlockCount::from_bytes_floor(size.bytes())),
            Some(SizeOrShare::Share { .. }) | None => None,
        };
        let entries = match translation.entries {
            Some(EntryLimit::Entries(entries)) => Some(entries),
            Some(EntryLimit::Unlimited) | None => None,
        };
        let bands = translation.bands.as_ref();
        Inside {
            log: blocks.map(|blocks| LogSize { blocks, entries }),
            mean_band: bands.map(|bands| BlockCount::from_bytes_floor(bands.mean().bytes())),
        }
    }
}

/// The drive as its host sees it, and what is known of the translation inside.
///
/// # Errors
/// When the drive has none, is asked for its tracks, or is simulated.
pub(super) fn seen_by_host(
    node: &str,
    drive: &Drive,
    asked: Asked,
    world: &World<'_>,
) -> Result<(Drive, Inside), ConfigError> {
    const KEY: &str = "translation = \"drive-managed\"";
    let name = &drive.model.name;
    let Some(translation) = &drive.model.translation else {
        let words = format!(
            "{KEY}, and the file of the drive `{name}` has no [translation]; accepted: a drive that \
             cleans by itself"
        );
        return Err(wrong(node, &words));
    };
    if matches!(asked.writer, Writer::Tracks { .. }) {
        let words = format!(
            "{KEY}, so that the drive `{name}` hides its tracks; accepted: below any node that writes \
             anywhere, and without the key below a node of kind \"persistent-cache\""
        );
        return Err(wrong(node, &words));
    }
    if !world.options.durable {
        let words = format!(
            "{KEY} is a real drive that `imbrex create` and `imbrex serve` put a stack on; accepted in a \
             simulation: a node of kind \"persistent-cache\" over the drive `{name}`, as in \
             `ride-archive`"
        );
        return Err(wrong(node, &words));
    }
    let inside = Inside::of(translation);
    let mut drive = drive.clone();
    drive.model = DriveModel {
        media: MediaModel::Conventional,
        shingles: None,
        translation: None,
        zones: None,
        ..drive.model
    };
    Ok((drive, inside))
}
