//! Movement of the heads of a stack's disks: the operations that reach each disk, counted by a model
//! after the run.

use crate::analysis::movement::{Footprint, Model, ModelMovement, Movement, MovementSettings};
use crate::events::{Event, EventAction, MakeDisk};
use imbrex_core::buffer::Buffers;
use imbrex_core::command::{CommandError, Fault};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::Engine;
use imbrex_core::operation::{Cause, Operation};
use imbrex_core::stack::Stack;
use imbrex_core::units::Instant;
use imbrex_report::MemberMovement;
use imbrex_stack::{ConfigError, Describe};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The table `[movement]` of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovementConfig {
    /// The model that every disk is taken for which has none of its own.
    pub model: Model,
    /// The models of disks, by the names of their nodes.
    pub models: BTreeMap<String, Model>,
    /// Its geometry, buffer and readings.
    #[serde(flatten)]
    pub settings: MovementSettings,
}

impl MovementConfig {
    /// The settings of a table; keys that it lacks have their defaults.
    ///
    /// # Errors
    /// Words that say which key or value is wrong.
    pub fn parse(mut table: toml::Table) -> Result<MovementConfig, String> {
        let number = table.remove("model");
        let number = number.ok_or("`model` is missing; accepted: 0, 1, 2, 3")?;
        let model = model_of("model", &number)?;
        let mut models = BTreeMap::new();
        if let Some(of_disks) = table.remove("models") {
            let of_disks = of_disks.as_table().ok_or_else(|| {
                format!("models = {of_disks}; accepted: a model for each of some disks, such as {{ disk = 0 }}")
            })?;
            for (disk, number) in of_disks {
                models.insert(disk.clone(), model_of(&format!("models.{disk}"), number)?);
            }
        }
        let settings = toml::Value::Table(table).try_into::<MovementSettings>();
        let settings = settings.map_err(|error| error.message().to_string())?;
        settings.check().map_err(|error| error.to_string())?;
        Ok(MovementConfig { model, models, settings })
    }

    /// Counts the movement of the disk of this name.
    fn count(&self, disk: &str, visits: &[Visit]) -> Result<ModelMovement, String> {
        let mut footprint = Footprint::default();
        for &Visit { first, blocks, .. } in visits {
            footprint.add(first, first + u64::from(blocks));
        }
        let model = self.models.get(disk).copied().unwrap_or(self.model);
        let movement = Movement::new(&[model], self.settings, footprint);
        let mut movement = movement.map_err(|error| error.to_string())?;
        for &Visit { first, blocks, is_write, cause } in visits {
            movement.set_cause(cause);
            match is_write {
                true => movement.write(first, u64::from(blocks)),
                false => movement.read(first, u64::from(blocks)),
            }
        }
        let mut counted = movement.finish().map_err(|error| error.to_string())?;
        Ok(counted.remove(0))
    }
}

/// The model of a number.
fn model_of(key: &str, number: &toml::Value) -> Result<Model, String> {
    let model = number.as_integer().and_then(|model| u8::try_from(model).ok());
    let model = model.and_then(|model| Model::try_from(model).ok());
    model.ok_or(format!("{key} = {number}; accepted: 0, 1, 2, 3"))
}

/// One operation of a disk.
#[derive(Clone, Copy, Debug)]
struct Visit {
    first: u64,
    blocks: u32,
    is_write: bool,
    cause: Cause,
}

/// The operations of a disk in the order in which they arrived, kept until the end of the run:
/// 16 bytes each. The last band that is touched must be known before the first one is counted.
type Visits = Rc<RefCell<Vec<Visit>>>;

/// What the disks of a run were asked, if movement is counted.
pub struct DiskRecordings {
    config: Option<MovementConfig>,
    /// By number of the disk; none when movement is not counted.
    visits: Vec<Visits>,
}

impl DiskRecordings {
    /// Puts a recording disk in front of each one, unless there is no model to count by.
    pub fn new(config: Option<MovementConfig>, engine: &mut Engine) -> DiskRecordings {
        let mut visits = Vec::new();
        if config.is_none() {
            return DiskRecordings { config, visits };
        }
        let disks = std::mem::take(&mut engine.disks);
        for disk in disks {
            let of_disk = Visits::default();
            engine.disks.push(recorded(disk, &of_disk));
            visits.push(of_disk);
        }
        DiskRecordings { config, visits }
    }

    /// Disks that take the place of others are recorded as these were.
    pub fn follow(&self, events: &mut [Event<'_>]) {
        for event in events {
            let EventAction::Replace { disk, make, .. } = &mut event.action else {
                continue;
            };
            let Some(visits) = self.visits.get(usize::from(disk.0)) else {
                return;
            };
            let visits = Rc::clone(visits);
            let plain: MakeDisk<'_> = std::mem::replace(make, Box::new(|| Err(String::new())));
            *make = Box::new(move || Ok(recorded(plain()?, &visits)));
        }
    }

    /// What the disks were asked so far is forgotten.
    pub fn restart(&self) {
        for visits in &self.visits {
            visits.borrow_mut().clear();
        }
    }

    /// Counts the movement of each disk; nothing when there is no model.
    ///
    /// # Errors
    /// When a disk was asked for more than the models or the report can count.
    pub fn finish(self, describe: &Describe, stack: &Stack) -> Result<MemberMovement, ConfigError> {
        let mut movement = MemberMovement::default();
        let Some(config) = self.config else {
            return Ok(movement);
        };
        for node in &describe.nodes {
            let (Some(_), Some(disk)) = (node.facts.disk(), stack.disk_of(node.id)) else {
                continue;
            };
            let visits = self.visits[usize::from(disk.0)].borrow();
            let wrong = |words| ConfigError::words(format!("movement of `{}`: {words}", node.name));
            let counted = config.count(&node.name, &visits).map_err(wrong)?;
            let counts = counted.counts();
            let is_sum = counts.is_some_and(|counts| movement.add(&node.name, counts));
            if !is_sum {
                return Err(wrong("the counts have more than 64 bits".to_string()));
            }
        }
        Ok(movement)
    }
}

fn recorded(disk: Box<dyn Disk>, visits: &Visits) -> Box<dyn Disk> {
    let visits = Rc::clone(visits);
    Box::new(RecordingDisk { disk, visits })
}

/// Whether an operation writes; none when it visits no block.
fn visit_of(operation: Operation, cause: Cause) -> Option<bool> {
    match operation {
        // What an array reads to keep its parity is no visit in Le's thesis.
        Operation::Read => (cause != Cause::Parity).then_some(false),
        Operation::Write { .. } => Some(true),
        Operation::Zero { may_unmap, .. } => (!may_unmap).then_some(true),
        _ => None,
    }
}

/// A disk that keeps a list of what it was asked to read and write.
struct RecordingDisk {
    disk: Box<dyn Disk>,
    visits: Visits,
}

impl Disk for RecordingDisk {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        if let Some(is_write) = visit_of(op.operation, op.cause) {
            let mut visits = self.visits.borrow_mut();
            let (mut first, mut left) = (op.extent.start.0, op.extent.blocks.0);
            while left > 0 {
                let blocks = left.min(u64::from(u32::MAX));
                visits.push(Visit { first, blocks: blocks as u32, is_write, cause: op.cause });
                (first, left) = (first + blocks, left - blocks);
            }
        }
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.disk.poll(now, buffers)
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }

    fn set_fault(
        &mut self,
        now: Instant,
        fault: Fault,
        buffers: &mut Buffers,
    ) -> Result<(), CommandError> {
        self.disk.set_fault(now, fault, buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::operation::Durability;

    #[test]
    fn an_array_visits_blocks_to_write_parity_and_not_to_read_it() {
        let write = Operation::Write { durability: Durability::Cached };
        assert_eq!(visit_of(Operation::Read, Cause::Parity), None);
        assert_eq!(visit_of(write, Cause::Parity), Some(true));
        for cause in Cause::ALL {
            let reads = (cause != Cause::Parity).then_some(false);
            assert_eq!(visit_of(Operation::Read, cause), reads, "{cause:?}");
            assert_eq!(visit_of(write, cause), Some(true), "{cause:?}");
            assert_eq!(visit_of(Operation::Flush, cause), None, "{cause:?}");
        }
    }

    #[test]
    fn a_visit_has_16_bytes() {
        assert_eq!(size_of::<Visit>(), 16);
    }
}
