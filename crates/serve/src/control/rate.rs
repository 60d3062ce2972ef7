//! Rates as people write them.

use imbrex_core::command::Rate;

/// Units and the bytes in them.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// A rate such as `50MiB/s`; at least one byte in a second.
pub(super) fn parse(text: &str) -> Result<Rate, String> {
    let wrong = || {
        format!(
            "rate {text:?}; accepted: a number above 0 with B, kB, KiB, MB, MiB, GB, GiB, TB or TiB \
             and `/s`, such as \"50MiB/s\""
        )
    };
    let size = text.trim().strip_suffix("/s").ok_or_else(wrong)?;
    let unit = UNITS.iter().find(|(unit, _)| size.ends_with(unit));
    let (unit, bytes) = unit.ok_or_else(wrong)?;
    let number = size[..size.len() - unit.len()].trim();
    let is_plain = number.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes_per_s = number * *bytes as f64;
    if !is_plain || !(1.0..=u64::MAX as f64).contains(&bytes_per_s) {
        return Err(wrong());
    }
    Ok(Rate { bytes_per_s: bytes_per_s as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_unit_in_a_second() {
        for (text, bytes_per_s) in
            [("50MiB/s", 50 << 20), (" 1.5 GB/s", 1_500_000_000), ("7B/s", 7), ("1kB/s", 1_000)]
        {
            assert_eq!(parse(text), Ok(Rate { bytes_per_s }), "{text}");
        }
        for text in [
            "",
            "/s",
            "B/s",
            "50MiB",
            "50",
            "0MiB/s",
            "-1MiB/s",
            "infB/s",
            "1e9999B/s",
            "NaNB/s",
            "50 mib/s",
            "9999999999TiB/s",
            "0.1B/s",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("accepted"), "{error}");
        }
    }
}
