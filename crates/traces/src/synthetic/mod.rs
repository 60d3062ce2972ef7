//! Synthetic workloads from recipes.
//!
//! A recipe is a TOML file with a name, a seed and one table that says what to generate. The shipped ones are in
//! `workloads/synthetic/` and embedded here. A recipe and a seed give the same requests on every platform. Nothing
//! generated here is a real trace: readers label it [`SourceKind::Synthetic`](super::SourceKind::Synthetic).

mod changed;
mod history;
mod layout;
mod plain;
mod sampling;
mod shares;
mod updates;
mod volume;
mod volume_check;
mod zone_mix;

use serde::{Deserialize, Serialize};

pub(crate) use sampling::Random;
pub use sampling::{exp, ln};

pub use history::History;
pub use plain::{OneBlock, PlainLoad, ReadHot, Sequential, UniformRandom};
pub use shares::{PublishedShares, ShareLocality, Shares};
pub use updates::{PublishedUpdates, UpdateLocality, Updates};
pub use volume::{Locality, PublishedVolume, Volume};
pub use zone_mix::ZoneMix;

use super::{TraceError, TraceRecord};
use changed::changed;
use history::HistoryRecords;
use imbrex_drives::toml_error::{nearest, read_text};
use plain::PlainRecords;
use shares::ShareRecords;
use updates::UpdateRecords;
use volume::VolumeRecords;
use zone_mix::ZoneMixRecords;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../workloads/synthetic/", $name, ".toml")))),*]
    };
}

/// What a trace path begins with when it names a recipe.
pub const PATH_PREFIX: &str = "synthetic:";

/// Name and text of every shipped recipe.
const SHIPPED: &[(&str, &str)] = shipped![
    "financial1-dense",
    "hm-like",
    "hwsr-financial1",
    "hwsr-financial2",
    "hwsr-mds0",
    "hwsr-mds1",
    "hwsr-prn0",
    "hwsr-prn1",
    "hwsr-proj0",
    "hwsr-proj1",
    "hwsr-prxy0",
    "hwsr-usr0",
    "hwsr-usr1",
    "hwsr-wdev0",
    "idler-mix",
    "idler-prn1",
    "idler-proj1",
    "idler-proj2",
    "idler-usr1",
    "idler-usr2",
    "mds-like",
    "one-block",
    "prn-like",
    "raid4smr-fs-vmware",
    "raid4smr-merged-rsrch",
    "raid4smr-merged-vmware",
    "raid4smr-nasa",
    "raid4smr-rsrch1",
    "raid4smr-wdev2",
    "raid4smr-web3",
    "random-8k-1tb",
    "random-8k-56gb",
    "read-hot",
    "sequential-read",
    "sequential-write",
    "src-like",
    "stg-like",
    "ts-like",
    "uniform-random-write",
    "usr-like",
    "wdev-like",
    "web-like",
];

/// A workload to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Name, equal to the file name without `.toml` for the shipped ones.
    pub name: String,
    /// One sentence on what it stands for.
    pub description: String,
    /// Seed of the generator.
    pub seed: u64,
    /// What to generate.
    pub model: Model,
    /// By how much requests and footprint were divided; 1 for the recipe as written.
    pub scale: f64,
    text: String,
}

/// The kinds of synthetic workload.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// Table `[volume]`: published counts and footprint of a real volume.
    Volume(Box<Volume>),
    /// Table `[updates]`: published sizes, distinct data and number of updates of a real trace.
    Updates(Box<Updates>),
    /// Table `[shares]`: published shares of written and updated blocks of a real trace.
    Shares(Box<Shares>),
    /// Table `[history]`: requests that repeat their own history.
    History(Box<History>),
    /// Table `[zone-mix]`: requests to the zones of a host-aware drive.
    ZoneMix(Box<ZoneMix>),
    /// One of the plain loads for benchmarks.
    Plain(PlainLoad),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RecipeFile {
    name: String,
    description: String,
    seed: u64,
    volume: Option<Volume>,
    updates: Option<Updates>,
    shares: Option<Shares>,
    history: Option<History>,
    zone_mix: Option<ZoneMix>,
    uniform_random: Option<UniformRandom>,
    sequential: Option<Sequential>,
    one_block: Option<OneBlock>,
    read_hot: Option<ReadHot>,
}

impl Recipe {
    /// Names of the shipped recipes, ascending.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Loads a shipped recipe by name, or a recipe file by path (anything with a `/` or that ends in `.toml`).
    /// `?KEY=VALUE&KEY=VALUE` behind it are values that it has in the place of its own.
    ///
    /// # Errors
    /// The name is not known, the file cannot be read, or its text is not a possible recipe; or it has no such key.
    pub fn load(name_or_path: &str) -> Result<Self, TraceError> {
        if let Some((name, changes)) = name_or_path.split_once('?') {
            return changed(&Self::load(name)?, changes);
        }
        if let Some((_, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
            return Self::parse(name_or_path, text);
        }
        if !name_or_path.contains('/') && !name_or_path.ends_with(".toml") {
            return Err(TraceError::UnknownRecipe {
                name: name_or_path.to_owned(),
                hint: nearest(name_or_path, Self::names())
                    .map_or(String::new(), |near| format!("; did you mean {near:?}?")),
                accepted: Self::names().collect::<Vec<_>>().join(", "),
            });
        }
        let text = read_text(name_or_path)
            .map_err(|source| TraceError::Open { path: name_or_path.to_owned(), source })?;
        Self::parse(name_or_path, &text)
    }

    /// The recipe of a trace path such as `synthetic:wdev-like`, or `synthetic:wdev-like/16` at a sixteenth, or
    /// `synthetic:idler-mix?zones=8&requests=1000/16` with other values of its table; none for the path of a file.
    ///
    /// # Errors
    /// As [`load`](Self::load) and [`scaled`](Self::scaled).
    pub fn of_path(path: &str) -> Result<Option<Self>, TraceError> {
        let Some(recipe) = path.strip_prefix(PATH_PREFIX) else {
            return Ok(None);
        };
        // A path has slashes too: only what follows the last one and is a number is a scale.
        let scaled = recipe
            .rsplit_once('/')
            .and_then(|(name, scale)| Some((name, scale.parse::<f64>().ok()?)));
        match scaled {
            Some((name, scale)) => Self::load(name)?.scaled(scale).map(Some),
            None => Self::load(recipe).map(Some),
        }
    }

    /// Reads a recipe from its text; `path` names it in errors.
    ///
    /// # Errors
    /// The text is not TOML, has unknown or missing keys, has not exactly one model, or has impossible values.
    pub fn parse(path: &str, text: &str) -> Result<Self, TraceError> {
        let problem = |reason: String| TraceError::Recipe { path: path.to_owned(), reason };
        let file: RecipeFile = toml::from_str(text).map_err(|error| problem(error.to_string()))?;
        let mut models: Vec<Model> = [
            file.volume.map(|volume| Model::Volume(Box::new(volume))),
            file.updates.map(|updates| Model::Updates(Box::new(updates))),
            file.shares.map(|shares| Model::Shares(Box::new(shares))),
            file.history.map(|history| Model::History(Box::new(history))),
            file.zone_mix.map(|load| Model::ZoneMix(Box::new(load))),
            file.uniform_random.map(|load| Model::Plain(PlainLoad::UniformRandom(load))),
            file.sequential.map(|load| Model::Plain(PlainLoad::Sequential(load))),
            file.one_block.map(|load| Model::Plain(PlainLoad::OneBlock(load))),
            file.read_hot.map(|load| Model::Plain(PlainLoad::ReadHot(load))),
        ]
        .into_iter()
        .flatten()
        .collect();
        if models.len() != 1 {
            return Err(problem(format!(
                "{} model tables; accepted: exactly one of [volume], [updates], [shares], [history], [zone-mix], [uniform-random], \
                 [sequential], [one-block], [read-hot]",
                models.len()
            )));
        }
        let model = models.remove(0);
        if let Some(reason) = model.problem() {
            return Err(problem(reason));
        }
        Ok(Self {
            name: file.name,
            description: file.description,
            seed: file.seed,
            model,
            scale: 1.0,
            text: text.to_owned(),
        })
    }

    /// The recipe with requests and footprint divided by `factor`.
    ///
    /// # Errors
    /// `factor` is not a number of at least 1, or so large that nothing is left.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        let problem = |reason: String| TraceError::Recipe { path: self.name.clone(), reason };
        if !(1.0..=1e9).contains(&factor) {
            return Err(problem(format!("scale {factor}; accepted: 1 to 1e9")));
        }
        let model = match &self.model {
            Model::Volume(volume) => Model::Volume(Box::new(volume.scaled(factor))),
            Model::Updates(updates) => Model::Updates(Box::new(updates.scaled(factor))),
            Model::Shares(shares) => Model::Shares(Box::new(shares.scaled(factor))),
            Model::History(history) => Model::History(Box::new(history.scaled(factor))),
            Model::ZoneMix(load) => Model::ZoneMix(Box::new(load.scaled(factor))),
            Model::Plain(load) => Model::Plain(load.scaled(factor)),
        };
        if let Some(reason) = model.problem() {
            return Err(problem(format!("scale {factor} leaves too little: {reason}")));
        }
        Ok(Self { model, scale: self.scale * factor, ..self.clone() })
    }

    /// The text the recipe was read from, and what was changed in it, assumed parameters included; print it with every result.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The label reports carry: always says that the workload is synthetic, and the scale unless it is 1.
    pub fn label(&self) -> String {
        let scale = if self.scale == 1.0 { String::new() } else { format!(" at 1/{}", self.scale) };
        format!("synthetic {}{scale}: {}", self.name, self.description)
    }

    /// The requests, in order of time.
    pub fn records(&self) -> SyntheticRecords {
        SyntheticRecords(match &self.model {
            Model::Volume(volume) => {
                Generator::Volume(Box::new(VolumeRecords::new(volume, self.seed)))
            }
            Model::Updates(updates) => {
                Generator::Updates(Box::new(UpdateRecords::new(updates, self.seed)))
            }
            Model::Shares(shares) => {
                Generator::Shares(Box::new(ShareRecords::new(shares, self.seed)))
            }
            Model::History(history) => {
                Generator::History(Box::new(HistoryRecords::new(history, self.seed)))
            }
            Model::ZoneMix(load) => {
                Generator::ZoneMix(Box::new(ZoneMixRecords::new(load, self.seed)))
            }
            Model::Plain(load) => Generator::Plain(PlainRecords::new(load.clone(), self.seed)),
        })
    }
}

impl Model {
    fn problem(&self) -> Option<String> {
        match self {
            Self::Volume(volume) => volume.problem(),
            Self::Updates(updates) => updates.problem(),
            Self::Shares(shares) => shares.problem(),
            Self::History(history) => history.problem(),
            Self::ZoneMix(load) => load.problem(),
            Self::Plain(load) => load.problem(),
        }
    }
}

/// The requests of a recipe; see [`Recipe::records`].
#[derive(Debug, Clone)]
pub struct SyntheticRecords(Generator);

#[derive(Debug, Clone)]
enum Generator {
    Volume(Box<VolumeRecords>),
    Updates(Box<UpdateRecords>),
    Shares(Box<ShareRecords>),
    History(Box<HistoryRecords>),
    ZoneMix(Box<ZoneMixRecords>),
    Plain(PlainRecords),
}

impl SyntheticRecords {
    /// Size of the smallest device the requests fit on, bytes.
    pub fn device_bytes(&self) -> u64 {
        match &self.0 {
            Generator::Volume(records) => records.device_bytes(),
            Generator::Updates(records) => records.device_bytes(),
            Generator::Shares(records) => records.device_bytes(),
            Generator::History(records) => records.device_bytes(),
            Generator::ZoneMix(records) => records.device_bytes(),
            Generator::Plain(records) => records.device_bytes(),
        }
    }
}

impl Iterator for SyntheticRecords {
    type Item = TraceRecord;

    fn next(&mut self) -> Option<TraceRecord> {
        match &mut self.0 {
            Generator::Volume(records) => records.next(),
            Generator::Updates(records) => records.next(),
            Generator::Shares(records) => records.next(),
            Generator::History(records) => records.next(),
            Generator::ZoneMix(records) => records.next(),
            Generator::Plain(records) => records.next(),
        }
    }
}
