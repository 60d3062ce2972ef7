//! The disk models of Le's thesis over the traces of an experiment.

use super::run::RunError;
use super::workload::Workload;
use crate::analysis::movement::{Model, ModelMovement, MovementSettings, RestExtent, moved};
use imbrex_drives::quantity::Size;
use imbrex_stack::ConfigError;
use imbrex_traces::BlockRule;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::atomic::AtomicBool;

/// The disks over whose models a trace is counted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovementAnalysis {
    /// Which blocks a request covers.
    #[serde(default)]
    pub blocks: BlockRule,
    /// Which blocks a write in place writes back.
    #[serde(default)]
    pub rest: RestExtent,
    /// Geometries: blocks of a track and tracks of a band.
    pub bands: Vec<(u64, u64)>,
    /// Buffers of model 3.
    pub buffers: Vec<Size>,
}

impl MovementAnalysis {
    /// The movement of each model, under the name of the geometry (`200x200`) and of the model: `conventional`, `log`,
    /// `in-place` and `in-place-64MiB` for each buffer. Once `stop` is set it means nothing.
    ///
    /// # Errors
    /// When the trace is damaged or a setting is out of range.
    pub(super) fn count(&self, workload: &Workload, stop: &AtomicBool) -> Result<Value, RunError> {
        let of = |models: &[Model], settings| self.of(workload, models, settings, stop);
        let mut geometries = Map::new();
        for &(track_blocks, band_tracks) in &self.bands {
            let settings = MovementSettings {
                track_blocks,
                band_tracks,
                rest: self.rest,
                ..MovementSettings::default()
            };
            let unbounded = [Model::Conventional, Model::Log, Model::InPlace];
            let mut models = Map::new();
            for (name, model) in
                ["conventional", "log", "in-place"].into_iter().zip(of(&unbounded, settings)?)
            {
                models.insert(name.to_string(), value_of(&model)?);
            }
            for &buffer in &self.buffers {
                let settings = MovementSettings {
                    buffer_blocks: buffer.bytes() / imbrex_core::units::BLOCK_BYTES,
                    ..settings
                };
                for model in of(&[Model::Buffered], settings)? {
                    let name = format!("in-place-{buffer}").replace(' ', "");
                    models.insert(name, value_of(&model)?);
                }
            }
            geometries.insert(format!("{track_blocks}x{band_tracks}"), models.into());
        }
        Ok(geometries.into())
    }

    fn of(
        &self,
        workload: &Workload,
        models: &[Model],
        settings: MovementSettings,
        stop: &AtomicBool,
    ) -> Result<Vec<ModelMovement>, RunError> {
        let found = moved(workload, self.blocks, models, settings, None, stop);
        let found = found.map_err(|error| {
            ConfigError::words(format!("{}: [analysis]: {error}", workload.path))
        })?;
        Ok(found.models)
    }
}

fn value_of(model: &ModelMovement) -> Result<Value, ConfigError> {
    // Sums beyond 64 bits have no place in a JSON document.
    serde_json::to_value(model).map_err(|error| ConfigError::words(error.to_string()))
}
