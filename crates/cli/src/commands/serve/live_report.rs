//! The report of a served device, the same document as a simulation's.

use super::recording::Recording;
use crate::commit::commit;
use imbrex_core::operation::Operation;
use imbrex_core::stack::Stack;
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_report::{
    Recorder, ReplayMode, Report, RequestCounts, Run, SimulationCost, Workload, WorkloadKind,
    peak_rss_bytes,
};
use imbrex_serve::connections::{Observer, RequestEvent, RequestRecord};
use imbrex_stack::{ArrayObserver, Describe, Measured};
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The schema identifier of the figures of a running server.
const FIGURES_SCHEMA: &str = "imbrex.figures/1";

/// Keys of a run that tell of the requests of the host.
const OF_HOST: [&str; 7] = [
    "system",
    "requests",
    "read_blocks",
    "write_blocks",
    "response_ms",
    "read_response_ms",
    "write_response_ms",
];

/// Collects what clients asked for and how long it took. A clone is another hand on the same.
#[derive(Clone)]
pub struct LiveReport {
    recorder: Rc<RefCell<Recorder>>,
    counts: Rc<Cell<RequestCounts>>,
    last_answer: Rc<Cell<Instant>>,
    started: std::time::Instant,
}

impl LiveReport {
    /// A report in which nothing has happened.
    pub fn new() -> LiveReport {
        LiveReport {
            recorder: Rc::new(RefCell::new(Recorder::new())),
            counts: Rc::default(),
            last_answer: Rc::default(),
            started: std::time::Instant::now(),
        }
    }

    /// Where latencies and series are collected.
    pub fn recorder(&self) -> Rc<RefCell<Recorder>> {
        Rc::clone(&self.recorder)
    }

    /// What the server tells of every request.
    pub fn observer(&self, recording: Option<&Recording>) -> Observer {
        let recorder = Rc::clone(&self.recorder);
        let counts = Rc::clone(&self.counts);
        let last_answer = Rc::clone(&self.last_answer);
        let recording = recording.cloned();
        Box::new(move |event| match event {
            RequestEvent::Arrived(request) => {
                counts.set(counted(counts.get(), &request));
                if let Some(recording) = &recording {
                    recording.write(&request);
                }
            }
            RequestEvent::Answered { record, latency, .. } => {
                let now = record.arrived + latency;
                last_answer.set(last_answer.get().max(now));
                let bytes = u64::from(record.length_bytes);
                let mut recorder = recorder.borrow_mut();
                match record.operation {
                    Operation::Read => recorder.read_completed(now.0, latency.0, bytes),
                    Operation::Write { .. } => {
                        recorder.write_completed(now.0, latency.0, bytes);
                    }
                    _ => recorder.other_completed(now.0, latency.0),
                }
            }
        })
    }

    /// What has been counted so far, as one line of JSON with its newline: the report without
    /// `figures` and `configuration`, so that it fits what pipes and logs take at once.
    pub fn figures(&self, describe: &Describe, stack: &Stack, uri: &str, seed: u64) -> String {
        let mut run = self.run(describe, stack);
        self.time_so_far(&mut run);
        let report = self.document(run, uri, seed);
        let mut value = serde_json::to_value(&report).expect("a report has only string keys");
        value["schema"] = FIGURES_SCHEMA.into();
        for run in value["runs"].as_array_mut().into_iter().flatten() {
            for key in ["figures", "configuration"] {
                run.as_object_mut().and_then(|run| run.remove(key));
            }
        }
        format!("{value}\n")
    }

    /// What clients have asked for so far and how long it took, as the figures tell it.
    pub fn of_host(&self, describe: &Describe) -> Map<String, Value> {
        let mut run = describe.run_of_host(self.counts.get(), ReplayMode::Live);
        self.time_so_far(&mut run);
        let mut run = serde_json::to_value(&run).expect("a report has only string keys");
        let told = OF_HOST.map(|key| (key.to_owned(), run[key].take()));
        told.into_iter().collect()
    }

    fn time_so_far(&self, run: &mut Run) {
        let last_answer = self.last_answer.get();
        let recorder = self.recorder.borrow();
        recorder.describe_so_far(last_answer.0, run);
    }

    /// The report, once the server has stopped.
    pub fn report(
        self,
        describe: &Describe,
        stack: &Stack,
        uri: &str,
        seed: u64,
        arrays: ArrayObserver,
    ) -> Report {
        let mut run = self.run(describe, stack);
        let finished_at = self.last_answer.get();
        let recorder = self.recorder.replace(Recorder::new());
        recorder.finish(finished_at.0, &mut run);
        run.figures.rebuild_progress = arrays.finish(finished_at);
        describe.finish(Measured::all(finished_at), &mut run);
        self.document(run, uri, seed)
    }

    /// What was counted, without latencies and figures.
    fn run(&self, describe: &Describe, stack: &Stack) -> Run {
        let mut run = describe.run(stack, self.counts.get(), ReplayMode::Live);
        let wall_s = self.started.elapsed().as_secs_f64();
        run.simulation = SimulationCost {
            wall_s,
            requests_per_s: run.host.requests as f64 / wall_s.max(1e-9),
            peak_rss_bytes: peak_rss_bytes(),
        };
        run
    }

    /// A report of the one run.
    fn document(&self, run: Run, uri: &str, seed: u64) -> Report {
        let workload = Workload {
            path: uri.to_string(),
            kind: WorkloadKind::Live,
            requests: run.host.requests,
            sha256: None,
            format: None,
            skipped_lines: BTreeMap::new(),
            repeat: 1,
            new_blocks: false,
            captured_response_ms: None,
            time_inversions: 0,
            combination: None,
        };
        let mut report = Report::new(seed, workload);
        report.commit = commit();
        report.runs.push(run);
        report
    }
}

fn counted(mut counts: RequestCounts, request: &RequestRecord) -> RequestCounts {
    counts.requests += 1;
    let end = request.offset_bytes + u64::from(request.length_bytes);
    let blocks = end.div_ceil(BLOCK_BYTES) - request.offset_bytes / BLOCK_BYTES;
    match request.operation {
        Operation::Read => counts.read_blocks += blocks,
        Operation::Write { .. } => counts.write_blocks += blocks,
        _ => {}
    }
    counts
}
