//! A run that begins where another one was: the state of the stack is written behind the warm-up, and read back.

use super::finished::hash_of;
use super::identity::Contents;
use super::rounds::Rounds;
use super::run::{RunError, Task};
use super::state_file::{StateFile, StateFileError, StateHeader};
use super::warming::Begun;
use super::workload::Until;
use crate::replay::Replayer;
use crate::simulation::VirtualClock;
use imbrex_core::engine::Engine;
use imbrex_core::engine_state::NotSaved;
use imbrex_core::units::Instant;
use imbrex_report::WarmUpUse;
use imbrex_stack::{Describe, Footprint, Plan};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file of a state that a run uses, and what the state is of.
pub(super) struct StateOf<'a> {
    file: &'a Path,
    program: &'a str,
    stack: String,
    trace: String,
}

impl Task<'_> {
    /// What a state of this run is of, where one is written or read.
    pub(super) fn state_of(
        &self,
        plan: &Plan,
        footprint: Option<Footprint>,
    ) -> Result<Option<StateOf<'_>>, RunError> {
        let Some(file) = self.files.state.or(self.files.save_state) else {
            return Ok(None);
        };
        if let Some(policy) = self.case.config.brought_policies().next()
            && self.files.save_state.is_some()
        {
            let system = &self.case.config.name;
            let reason = format!(
                "system `{system}`: the state of the policy \"{}\" cannot be saved",
                policy.as_str()
            );
            return Err(StateFileError::NotSaved { reason }.into());
        }
        let mut contents = Contents::default();
        let no_trace = || StateFileError::NoTrace { trace: self.workload.path.clone() };
        let mut trace = contents.of_workload(self.workload).ok_or_else(no_trace)?;
        let workload = self.workload;
        trace.push(format!(
            "{:?} {} {} {:?} {}",
            workload.options,
            workload.repeat,
            workload.new_blocks,
            self.case.replay.placement,
            self.case.replay.drop_reads
        ));
        if workload.path.starts_with("synthetic:") {
            // The name of a recipe says how much of it there is.
            trace.push(workload.path.clone());
        }
        if workload.repeat > 1 {
            // A round is as long as the limit says.
            trace.push(format!("{:?}", self.case.replay.limit));
        }
        let trace = hash_of(trace.iter().map(String::as_str));
        let config = serde_json::to_string(&self.case.config).expect("a stack is JSON");
        let mut stack = vec![config, format!("{footprint:?} {}", self.case.drive_scale)];
        stack.extend(contents.of_drives(Some(&self.case.config)).unwrap_or_default());
        if plan.needs_lookups() {
            // The stack knows what comes.
            stack.push(format!("{trace} {:?}", self.case.replay.limit));
        }
        let stack = hash_of(stack.iter().map(String::as_str));
        Ok(Some(StateOf { file, program: self.files.program, stack, trace }))
    }

    /// Comes to the part that is measured, by a warm-up or by the state of one. A state is written where that is asked
    /// for.
    pub(super) fn begin(
        &self,
        state: Option<&StateOf<'_>>,
        replayer: &mut Replayer<Until<'_, Rounds>>,
        engine: &mut Engine,
        clock: &mut VirtualClock,
        describe: &Describe,
        stop: &AtomicBool,
    ) -> Result<Begun, RunError> {
        if let (Some(of), Some(_)) = (state, self.files.state) {
            return self.begin_with_state(of, replayer, engine, clock, describe);
        }
        let begun = self.warm_up(replayer, engine, clock, describe, stop)?;
        // What was stopped means nothing.
        if let (Some(of), false) = (state, stop.load(Ordering::Relaxed)) {
            self.save_state(of, engine, describe, &begun)?;
        }
        Ok(begun)
    }

    /// Writes the state of the stack behind the warm-up.
    fn save_state(
        &self,
        of: &StateOf<'_>,
        engine: &mut Engine,
        describe: &Describe,
        begun: &Begun,
    ) -> Result<(), RunError> {
        let not_saved = |why: NotSaved| StateFileError::NotSaved {
            reason: match why {
                NotSaved::Node(node) => format!(
                    "the state of node `{}` of system `{}` cannot be saved",
                    describe.name_of(node).unwrap_or_default(),
                    self.case.config.name
                ),
                why => format!("system `{}`: {why}", self.case.config.name),
            },
        };
        let header = StateHeader {
            program: of.program.to_string(),
            system: self.case.config.name.clone(),
            stack: of.stack.clone(),
            seed: self.seed,
            trace: of.trace.clone(),
            requests: begun.warm_up.map_or(0, |warm_up| warm_up.requests),
            at_ns: begun.from.0,
        };
        let state = engine.save_state().map_err(not_saved)?;
        StateFile { header, state }.write(of.file)?;
        Ok(())
    }

    /// Puts the stack into the state of a file, and the replay to the first request behind it. All of a trace that
    /// is another one than that of the state is behind it.
    fn begin_with_state(
        &self,
        of: &StateOf<'_>,
        replayer: &mut Replayer<Until<'_, Rounds>>,
        engine: &mut Engine,
        clock: &mut VirtualClock,
        describe: &Describe,
    ) -> Result<Begun, RunError> {
        let StateFile { header, state } = StateFile::read(of.file)?;
        self.check(of, &header)?;
        let damaged = |error: imbrex_core::state::StateError| {
            StateFileError::refused(of.file, error.message, "a file that --save-state has written")
        };
        engine.load_state(&state).map_err(damaged)?;
        let from = Instant(header.at_ns);
        clock.go_on_from(from);
        let requests = if header.trace == of.trace { header.requests } else { 0 };
        replayer.skip(requests);
        replayer.take_error().map_err(|error| self.stopped(error))?;
        if replayer.records_before_held() != Some(requests) {
            let found =
                format!("the state is behind {requests} requests, and the trace has no more");
            return Err(StateFileError::refused(of.file, found, "a longer trace").into());
        }
        replayer.begin_measuring(from);
        replayer.records_mut().records.restart_captured();
        describe.restart(&mut engine.stack, from);
        let duration_s = from.0 as f64 / 1e9;
        Ok(Begun { warm_up: Some(WarmUpUse { requests, duration_s }), from })
    }

    /// Refuses a state of something else.
    fn check(&self, of: &StateOf<'_>, found: &StateHeader) -> Result<(), StateFileError> {
        let refused = |found: String, accepted: String| {
            Err(StateFileError::refused(of.file, found, accepted))
        };
        if found.program != of.program {
            let found = format!("it was written by imbrex {}", found.program);
            return refused(found, format!("a state of this build, {}", of.program));
        }
        let system = &self.case.config.name;
        if found.system != *system {
            let found = format!("it is of system `{}`", found.system);
            return refused(found, format!("a state of `{system}`"));
        }
        if found.seed != self.seed {
            let found = format!("it is of seed {}", found.seed);
            return refused(found, format!("a state of seed {}", self.seed));
        }
        if found.stack != of.stack {
            let found = format!("it is of a system `{system}` that was built in another way");
            let accepted = "the same keys, drives and --size, and where the stack has shares of what is touched or \
                            a policy that knows what comes the same trace";
            return refused(found, accepted.into());
        }
        Ok(())
    }
}
