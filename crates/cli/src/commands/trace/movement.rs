//! `imbrex trace movement`.

use crate::args::MovementArgs;
use crate::caller::Caller;
use crate::failure::{Failure, usage};
use imbrex_drives::Drive;
use imbrex_sim::analysis::movement::{
    Model, ModelMovement, MovementSettings, TraceMovement, trace_movement,
};
use imbrex_sim::experiment::Workload;

/// Says how far a trace moves the heads of the models.
pub fn run(args: &MovementArgs, caller: &Caller) -> Result<(), Failure> {
    let models = args.models.iter().map(|&number| Model::try_from(number));
    let models = models.collect::<Result<Vec<Model>, _>>();
    let models = models.map_err(|error| usage(format!("--models: {error}")))?;
    let readings = &args.readings;
    let settings = MovementSettings {
        track_blocks: args.track_blocks,
        band_tracks: args.band_tracks,
        buffer_blocks: args.buffer_blocks,
        rest: readings.rest,
        rest_unit: readings.rest_unit,
        first_write: readings.first_write,
        write_unit: readings.write_unit,
    };
    let workload = Workload::of_trace(&args.path, caller.reading(args.read.options()?), args.limit);
    let drive = args.time.as_deref().map(Drive::open).transpose()?;
    let movement = trace_movement(&workload, readings.blocks, &models, settings, drive.as_ref())?;
    match args.json {
        true => caller.emit(&format!("{}\n", serde_json::to_string(&movement)?)),
        false => caller.emit(&text(&movement)),
    }
    Ok(())
}

fn text(movement: &TraceMovement) -> String {
    let settings = &movement.settings;
    let mut text = format!(
        "{} ({}): {} requests touch {} blocks of 4 KiB\n\
         tracks of {} blocks, bands of {} tracks, buffer of {} blocks\n\n\
         {:<18} {:>12} {:>16} {:>7} {:>14} {:>12} {:>10} {:>10} {:>15} {:>12}\n",
        movement.label,
        movement.kind,
        movement.requests,
        movement.touched_blocks,
        settings.track_blocks,
        settings.band_tracks,
        settings.buffer_blocks,
        "model",
        "visits",
        "blocks",
        "ratio",
        "tracks",
        "bands",
        "updates",
        "rewrites",
        "written back",
        "spilled",
    );
    let conventional = movement.models.iter();
    let conventional = conventional
        .filter(|model| model.model == Model::Conventional)
        .map(|model| model.head.block)
        .find(|&blocks| blocks > 0);
    for model in &movement.models {
        text.push_str(&row(model, conventional));
    }
    text.push_str(
        "\nMovement is the distance between visits; the ratio is that of blocks to model 0. A distance \
         overweights\nlong hops: a real arm crosses a thousand tracks in little more than the time of \
         one.\n",
    );
    text.push_str(&match &movement.drive {
        Some(drive) => times(movement, drive),
        None => "--time DRIVE prints what the same visits take on a drive.\n".to_string(),
    });
    text
}

fn times(movement: &TraceMovement, drive: &str) -> String {
    let mut text = format!("\non the arm of {drive}  {:>14} {:>14}\n", "seek s", "service s");
    for model in &movement.models {
        let Some(time) = model.time else { continue };
        text.push_str(&format!(
            "{:<width$} {:>14.3} {:>14.3}\n",
            format!("{} {}", u8::from(model.model), model.model.label()),
            time.seek_s,
            time.service_s,
            width = "on the arm of  ".len() + drive.len(),
        ));
    }
    text
}

fn row(model: &ModelMovement, conventional: Option<u128>) -> String {
    let ratio = conventional.map_or("-".to_string(), |blocks| {
        format!("{:.3}", model.head.block as f64 / blocks as f64)
    });
    format!(
        "{:<18} {:>12} {:>16} {:>7} {:>14} {:>12} {:>10} {:>10} {:>15} {:>12}\n",
        format!("{} {}", u8::from(model.model), model.model.label()),
        model.head.visits,
        model.head.block,
        ratio,
        model.head.track,
        model.head.band,
        model.updates,
        model.rewrites,
        model.rewritten_blocks,
        model.spilled,
    )
}
