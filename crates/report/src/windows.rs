//! Windows of a device that are devices of their own to those who use them, and what a lost disk costs them.

use super::response_times::ResponseTimes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was asked of the windows of a device; nothing where requests are of the whole device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowsUse {
    /// Each window, in the order of the stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowUse>,
    /// Seeks and response times over the disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_disks: Option<OverDisks>,
    /// The windows that are lost together with each disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub windows_lost: BTreeMap<String, Vec<String>>,
    /// How a trace of one device was cut into the windows; absent where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_into_windows: Option<CutUse>,
}

/// How the blocks of a trace of one device, from the first to the last that it touches, were cut into windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutUse {
    /// Requests that crossed a cut and were divided there: each piece is a request.
    pub divided_requests: u64,
    /// The parts, each with its window, in the order of their addresses.
    pub parts: Vec<CutPart>,
}

/// A part of a trace that was cut into windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutPart {
    /// The name of the node that has it, from its first block on.
    pub window: String,
    /// Its first block in the addresses of the trace.
    pub first_block: u64,
    /// Its blocks of 4 KiB.
    pub blocks: u64,
    /// Blocks of 4 KiB that the host read in it.
    pub read_blocks: u64,
    /// Blocks of 4 KiB that the host wrote in it.
    pub write_blocks: u64,
}

/// What was asked of one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowUse {
    /// The name of its node.
    pub name: String,
    /// Requests that were answered.
    pub requests: u64,
    /// Their response time.
    pub response_ms: ResponseTimes,
}

/// Seeks and response times as "A Method to Reduce Read/Write Head Movement for SMR Disks" (chapter 5) has them: sums over
/// the number of disks, whatever the number of requests. Disks without heads count too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverDisks {
    /// How many disks there are.
    pub disks: u64,
    /// The time that all arms were moved, over the disks.
    pub seek_time_s: f64,
    /// The response times of all requests together, over the disks.
    pub response_s: f64,
    /// The mean of the 99th percentiles of the windows; null when nothing was answered.
    pub p99_ms: Option<f64>,
    /// The time that all arms were moved, over the requests; null without requests.
    pub seek_ms_per_request: Option<f64>,
}

impl OverDisks {
    /// Of windows whose disks, of which there are so many, moved their arms for so long. None without disks.
    pub fn of(windows: &[WindowUse], disks: usize, seek_time_s: f64) -> Option<OverDisks> {
        if disks == 0 {
            return None;
        }
        let requests: u64 = windows.iter().map(|window| window.requests).sum();
        let of_window = |window: &WindowUse| Some((window.requests, window.response_ms.mean?));
        let means = windows.iter().filter_map(of_window);
        let response_s: f64 = means.map(|(requests, ms)| requests as f64 * ms / 1e3).sum();
        let p99s = windows.iter().filter_map(|window| window.response_ms.p99);
        let (count, sum) = p99s.fold((0_u32, 0.0), |(count, sum), p99| (count + 1, sum + p99));
        Some(OverDisks {
            disks: disks as u64,
            seek_time_s: seek_time_s / disks as f64,
            response_s: response_s / disks as f64,
            p99_ms: (count > 0).then(|| sum / f64::from(count)),
            seek_ms_per_request: (requests > 0).then(|| 1e3 * seek_time_s / requests as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_over_disks_and_percentiles_over_windows() {
        let window = |name: &str, requests, mean, p99| {
            let response_ms = ResponseTimes { mean, p99, ..ResponseTimes::default() };
            WindowUse { name: name.to_string(), requests, response_ms }
        };
        let windows = [
            window("a", 2, Some(2.0), Some(3.0)),
            window("b", 1, Some(8.0), Some(8.0)),
            window("idle", 0, None, None),
        ];
        let over = OverDisks::of(&windows, 4, 6.0).expect("disks");
        assert_eq!((over.disks, over.seek_time_s), (4, 1.5));
        assert!((over.response_s - 0.003).abs() < 1e-12, "12 ms over 4 disks: {over:?}");
        assert_eq!(over.p99_ms, Some(5.5), "the idle one has none");
        assert_eq!(over.seek_ms_per_request, Some(2000.0));
        let idle = OverDisks::of(&windows[2..], 4, 0.0).expect("disks");
        assert_eq!((idle.p99_ms, idle.seek_ms_per_request), (None, None));
        assert_eq!(OverDisks::of(&windows, 0, 0.0), None);
    }
}
