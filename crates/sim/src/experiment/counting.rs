//! Runs in which nothing takes time: the same engine and layers, over disks that answer at once.

use super::run::{Replayed, RunError, Task};
use super::workload::Until;
use crate::replay::Replayer;
use crate::simulation::{VirtualClock, format};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::engine::Engine;
use imbrex_report::ReplayMode;
use imbrex_stack::{Built, NodeRole};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

impl Task<'_> {
    /// Replays the workload on a stack whose disks answer at once. Nobody watches: what changes with time has
    /// no meaning here.
    pub(super) fn count(&self, built: Built, stop: &AtomicBool) -> Result<Replayed, RunError> {
        let describe = built.describe;
        let blocks = built.stack.geometry().blocks;
        let mut engine = Engine {
            stack: built.stack,
            disks: built.disks,
            buffers: Buffers::new(ContentKind::Counted),
            in_flight_max: 1,
        };
        format(&mut engine);
        let records = Until::new(self.records(stop)?, stop);
        let dealt = self.dealt(&describe, stop)?;
        // The recorder is told of nothing.
        let mut replayer =
            Replayer::in_windows(records, self.replay_options(), blocks, dealt, Rc::default());
        let mut clock = VirtualClock::default();
        let begun = self.warm_up(&mut replayer, &mut engine, &mut clock, &describe, stop)?;
        engine.run(&mut clock, &mut replayer, &mut |_, _| {});
        self.check_replayed(&mut replayer, &engine.stack)?;
        let counts = replayer.counts;
        let cut = replayer.cut();
        let workload = self.told(replayer.records(), counts, begun.warm_up)?;
        let mut run = describe.run(&engine.stack, counts.into(), ReplayMode::Untimed);
        run.leave_out_times(describe.has(NodeRole::Cache));
        run.windows.cut_into_windows = cut;
        run.inputs.warm_up = begun.warm_up;
        Ok(Replayed { run, workload, counts, stack: engine.stack, describe })
    }
}
