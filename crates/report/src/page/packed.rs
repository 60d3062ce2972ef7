//! Counts as short text: numbers of few bytes, runs of zeros, base64. The script of the page unpacks them.

use imbrex_drives::HeatMap;
use serde::Serialize;

/// A heat map as the script of a page takes it.
#[derive(Serialize)]
pub struct PackedHeatMap {
    rows: u32,
    columns: u32,
    first_block: u64,
    row_blocks: u64,
    column_s: f64,
    end_s: f64,
    counts: String,
}

impl PackedHeatMap {
    /// `map` of something that took until `end_s`.
    pub fn of(map: &HeatMap, end_s: f64) -> PackedHeatMap {
        PackedHeatMap {
            rows: map.lba_bins,
            columns: map.time_bins,
            first_block: map.lba_first_block,
            row_blocks: map.lba_bin_blocks,
            column_s: map.time_bin_s,
            end_s,
            counts: base64(&run_lengths(&map.blocks)),
        }
    }
}

/// LEB128 numbers; a zero is followed by the number of zeros in a row.
fn run_lengths(counts: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut number = |mut value: u32| {
        while value >= 128 {
            bytes.push((value & 127) as u8 | 128);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    for run in counts.chunk_by(|a, b| *a == 0 && *b == 0) {
        number(run[0]);
        if run[0] == 0 {
            number(run.len() as u32);
        }
    }
    bytes
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for i in 0..4 {
            text.push(match i <= group.len() {
                true => DIGITS[(bits >> (18 - 6 * i)) as usize & 63] as char,
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_follows_rfc_4648() {
        let pairs =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, coded) in pairs {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn counts_are_packed_with_runs_of_zeros() {
        assert_eq!(run_lengths(&[0, 0, 0, 5, 300, 0]), [0, 3, 5, 0xac, 2, 0, 1]);
    }
}
