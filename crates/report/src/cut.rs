//! What is said of a trace of one device on a device of several windows.

use super::report::{Report, Run};
use super::windows::WindowsUse;
use crate::format::{bytes, count};

/// Bytes of one block.
const BLOCK_BYTES: u64 = 4096;

impl Report {
    /// A line for each way in which the trace was cut into windows, and one that names the runs in which it was not
    /// and one window has all requests.
    pub(super) fn window_lines(&self) -> Vec<String> {
        let mut told: Vec<(String, Vec<String>)> = Vec::new();
        for run in &self.runs {
            let Some(what) = cut(run).or_else(|| in_one_window(run)) else {
                continue;
            };
            match told.iter_mut().find(|(known, _)| *known == what) {
                Some((_, runs)) => runs.push(run.label()),
                None => told.push((what, vec![run.label()])),
            }
        }
        told.into_iter().map(|(what, runs)| format!("{}: {what}", runs.join(", "))).collect()
    }
}

/// How the trace of a run was cut, if it was.
fn cut(run: &Run) -> Option<String> {
    let cut = run.windows.cut_into_windows.as_ref()?;
    let blocks: u64 = cut.parts.iter().map(|part| part.blocks).sum();
    let divided = match cut.divided_requests {
        0 => "no request crossed a cut".to_string(),
        1 => "1 request that crossed a cut was divided".to_string(),
        many => format!("{} requests that crossed a cut were divided", count(many)),
    };
    Some(format!(
        "the trace is of one device. The {} from its first to its last block are cut into {} equal parts, one for \
         each window; {divided}.",
        bytes(blocks * BLOCK_BYTES),
        cut.parts.len()
    ))
}

/// That one of several windows has all requests, where it is so.
fn in_one_window(run: &Run) -> Option<String> {
    let WindowsUse { windows, cut_into_windows: None, .. } = &run.windows else {
        return None;
    };
    let mut busy = windows.iter().filter(|window| window.requests > 0);
    let (only, None) = (busy.next()?, busy.next()) else {
        return None;
    };
    (windows.len() > 1)
        .then(|| format!("all requests are of window `{}`; the others have none.", only.name))
}

#[cfg(test)]
mod tests {
    use super::super::windows::{CutPart, CutUse, WindowUse};
    use super::*;
    use crate::{ReplayMode, ResponseTimes};

    /// A run on two windows with so many requests each.
    fn run(system: &str, requests: [u64; 2]) -> Run {
        let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
        let response_ms = ResponseTimes::default();
        let window = |requests| WindowUse { name: format!("w{requests}"), requests, response_ms };
        run.windows.windows = requests.map(window).to_vec();
        run
    }

    fn cut_run(system: &str, blocks: u64, divided_requests: u64) -> Run {
        let part = |(window, first_block): (&str, u64)| CutPart {
            window: window.into(),
            first_block,
            blocks,
            read_blocks: 0,
            write_blocks: 0,
        };
        let parts = [("a", 0), ("b", blocks)].map(part).to_vec();
        let mut run = run(system, [5, 0]);
        run.windows.cut_into_windows = Some(CutUse { divided_requests, parts });
        run
    }

    #[test]
    fn runs_that_are_cut_alike_are_named_together() {
        let runs = vec![
            cut_run("split", 128, 0),
            run("plain", [0, 7]),
            cut_run("four-disks", 128, 0),
            cut_run("other", 256, 2),
            run("several", [1, 7]),
        ];
        assert_eq!(
            Report::of_runs(runs).window_lines(),
            [
                "split, four-disks: the trace is of one device. The 1.00 MiB from its first to its last block are cut \
                 into 2 equal parts, one for each window; no request crossed a cut.",
                "plain: all requests are of window `w7`; the others have none.",
                "other: the trace is of one device. The 2.00 MiB from its first to its last block are cut into 2 equal \
                 parts, one for each window; 2 requests that crossed a cut were divided.",
            ]
        );
    }
}
