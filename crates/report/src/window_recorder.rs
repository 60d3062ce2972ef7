//! What a run must remember of its windows while it lasts.

use super::histogram::LatencyHistogram;
use super::windows::WindowUse;

/// Collects the response times of windows.
#[derive(Default)]
pub(super) struct WindowRecorder {
    windows: Vec<(String, LatencyHistogram)>,
}

impl WindowRecorder {
    /// Of windows with these names.
    pub fn new(names: Vec<String>) -> WindowRecorder {
        let windows = names.into_iter().map(|name| (name, LatencyHistogram::new()));
        WindowRecorder { windows: windows.collect() }
    }

    /// A request of a window took so long.
    #[inline]
    pub fn completed(&mut self, window: usize, latency_ns: u64) {
        if let Some((_, latencies)) = self.windows.get_mut(window) {
            latencies.record(latency_ns);
        }
    }

    /// What was asked of each.
    pub fn finish(self) -> Vec<WindowUse> {
        let told = self.windows.into_iter().map(|(name, latencies)| WindowUse {
            name,
            requests: latencies.count(),
            response_ms: latencies.response_times(),
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_has_the_times_of_its_own_requests() {
        let mut recorder = WindowRecorder::new(vec!["a".into(), "b".into()]);
        for (window, ms) in [(0, 1), (1, 7), (0, 3)] {
            recorder.completed(window, ms * 1_000_000);
        }
        // A run without windows has none to count for.
        recorder.completed(2, 1);
        let told = recorder.finish();
        let requests = told.iter().map(|it| (it.name.as_str(), it.requests, it.response_ms.mean));
        let expected = [("a", 2, Some(2.0)), ("b", 1, Some(7.0))];
        assert_eq!(requests.collect::<Vec<_>>(), expected);
    }
}
