//! What is computed of a file, as numbers.

use super::closed;
use super::draws::{Drawn, Plan, draw};
use super::input::{Input, RepairCase, YEAR_H};
use super::layout::Kind;
use super::lives::{Lives, Repairs};
use super::markov::{Chain, Rates};
use super::monte_carlo::Model;
use crate::analysis::array_forms;
use crate::progress::{Pieces, Progress};
use serde::Serialize;

/// Shapes of lives that are always drawn, so that one sees what the exponential one hides.
const SHAPES: [f64; 3] = [0.7, 1.0, 1.5];

/// What was computed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reliability {
    /// The word for the layout.
    pub kind: &'static str,
    /// Disks in all.
    pub disks: u32,
    /// Arrays that share a data disk; 1 of all others.
    pub arrays: u32,
    /// Bytes of a disk.
    pub capacity_bytes: f64,
    /// Bytes that a user has.
    pub usable_bytes: f64,
    /// Hours that a disk lives in the mean.
    pub mttf_h: f64,
    /// Years for which the probability of a loss is told.
    pub years: f64,
    /// Volumes that the loss of a disk harms; absent of layouts with redundancy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes_harmed: Option<u32>,
    /// How much of the disks holds data.
    pub space: Space,
    /// Of each length of a repair.
    pub cases: Vec<Case>,
}

/// Shares of all disks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Space {
    /// What holds live data.
    pub live: f64,
    /// With a data disk, as the thesis states it at least and at most (equation 6.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_stated: Option<[f64; 2]>,
    /// With a data disk: what is dead at the homes when a collection begins, a band of each row of bands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_before_collection: Option<f64>,
}

/// What was computed for a length of a repair.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Hours of a repair in the mean.
    pub repair_h: f64,
    /// Runs that are drawn have repairs of just this length; exponential otherwise.
    pub is_measured: bool,
    /// With what probability the rebuild of a disk, one that holds data of one array, finds something that cannot be read.
    pub read_error_in_rebuild: f64,
    /// The same of the disk that the arrays of a chain share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_error_in_rebuild_of_shared: Option<f64>,
    /// Losses by missing disks alone.
    pub missing_disks: Figures,
    /// With a read error in a rebuild counted as a loss.
    pub or_read_error: Figures,
    /// What was drawn, for each shape of lives.
    pub drawn: Vec<Drawn>,
}

/// For exponential lives and repairs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Mean time to a loss by the closed form; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_form_h: Option<f64>,
    /// To first order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_order_h: Option<f64>,
    /// By the exact chain.
    pub mean_h: f64,
    /// The probability of a loss in the years, by the exact chain.
    pub loss: f64,
    /// The same as if the time to a loss were exponential with that mean.
    pub loss_as_exponential: f64,
    /// The probability of a loss by the exact chain, up to each of some times.
    pub loss_by: Vec<LossBy>,
}

/// A point of the curve of losses.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LossBy {
    /// Until when.
    pub years: f64,
    /// The probability of a loss until then.
    pub loss: f64,
}

/// Points of a curve of losses.
const POINTS: u32 = 20;

/// Computes everything that a file asks for. `progress` hears of each shape of lives that was drawn.
pub fn study(input: &Input, progress: Progress<'_>) -> Reliability {
    let layout = &input.layout;
    let shapes = shapes(input);
    let pieces = Pieces::begin(progress, 0, input.repairs.len() * shapes.len());
    let case = |repair| case(input, repair, &shapes, &pieces);
    Reliability {
        kind: layout.kind.word(),
        disks: layout.disks(),
        arrays: layout.arrays,
        capacity_bytes: input.capacity_bytes,
        usable_bytes: layout.usable() * input.capacity_bytes,
        mttf_h: input.mttf_h,
        years: input.years,
        volumes_harmed: layout.volumes_harmed(),
        space: space(input),
        cases: input.repairs.iter().map(case).collect(),
    }
}

fn space(input: &Input) -> Space {
    let layout = &input.layout;
    let has_data_disk = matches!(layout.kind, Kind::Raid4smr | Kind::Chain);
    let (arrays, homes) = (f64::from(layout.arrays), f64::from(layout.homes));
    let stated =
        [array_forms::used_at_least(arrays, homes), array_forms::used_at_most(arrays, homes)];
    let live = layout.usable() / f64::from(layout.disks());
    Space {
        live,
        as_stated: has_data_disk.then_some(stated),
        dead_before_collection: has_data_disk.then(|| live / homes),
    }
}

/// Shapes of lives that are drawn.
fn shapes(input: &Input) -> Vec<f64> {
    let mut shapes = SHAPES.to_vec();
    if !shapes.contains(&input.shape) {
        shapes.push(input.shape);
        shapes.sort_by(f64::total_cmp);
    }
    shapes
}

fn case(input: &Input, repair: &RepairCase, shapes: &[f64], pieces: &Pieces<'_>) -> Case {
    let layout = &input.layout;
    let last = layout.disks() as usize - 1;
    let read_errors: Vec<f64> = (0..=last).map(|disk| input.read_error(disk)).collect();
    let rates = |read_error| Rates {
        failure: 1.0 / input.mttf_h,
        repair: 1.0 / repair.mean_h,
        correlated: input.correlated,
        read_error,
    };
    let with_errors = [read_errors[0], read_errors[last]];
    let missing_disks = figures(input, &rates([0.0; 2]));
    let or_read_error = figures(input, &rates(with_errors));
    let repairs = match repair.is_measured {
        true => Repairs::Measured(repair.mean_h),
        false => Repairs::Exponential(repair.mean_h),
    };
    let drawn = shapes.iter().map(|&shape| {
        let model = Model {
            layout: *layout,
            capacity_bytes: input.capacity_bytes,
            lives: Lives::new(shape, input.mttf_h),
            repairs,
            correlated: input.correlated,
            read_errors: read_errors.clone(),
        };
        let plan = Plan {
            runs: input.runs,
            seed: input.seed,
            until_h: input.years * YEAR_H,
            about_h: missing_disks.mean_h,
            mttf_h: input.mttf_h,
        };
        let piece = pieces.piece();
        let drawn = draw(&model, shape, &plan, &piece);
        piece.end(&format!("{}, lives of shape {shape}", repair.name));
        drawn
    });
    let drawn = drawn.collect();
    let is_chain = layout.kind == Kind::Chain;
    Case {
        name: repair.name.clone(),
        repair_h: repair.mean_h,
        is_measured: repair.is_measured,
        read_error_in_rebuild: with_errors[0],
        read_error_in_rebuild_of_shared: is_chain.then_some(with_errors[1]),
        missing_disks,
        or_read_error,
        drawn,
    }
}

fn figures(input: &Input, rates: &Rates) -> Figures {
    let chain = Chain::of(&input.layout, rates);
    let (mean_h, until_h) = (chain.mean_time(), input.years * YEAR_H);
    let has_error = rates.read_error != [0.0; 2];
    Figures {
        closed_form_h: closed::mean_time(&input.layout, rates),
        first_order_h: closed::first_order(&input.layout, rates).filter(|_| !has_error),
        mean_h,
        loss: chain.ended_by(until_h),
        loss_by: (1..=POINTS)
            .map(|point| {
                let years = input.years * f64::from(point) / f64::from(POINTS);
                LossBy { years, loss: chain.ended_by(years * YEAR_H) }
            })
            .collect(),
        loss_as_exponential: -libm::expm1(-until_h / mean_h),
    }
}
