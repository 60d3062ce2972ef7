//! Numbers and sentences as people read them.

/// A line is at most so long.
pub const LINE_CHARS_MAX: usize = 120;

/// `value` with 3 significant digits and thousands separators: `0.0123`, `4.56`, `78.9`, `12,345`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.09995 => 3,
        _ => 4,
    };
    separated(&format!("{value:.decimals$}"))
}

/// [`number`] without zeros at its end, for marks of axes: `0.5`, `20`.
pub fn short(value: f64) -> String {
    let digits = number(value);
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => digits,
    }
}

/// Seconds in the unit that people use for so many: `12.5 us`, `3.10 s`, `4.00 days`.
pub fn duration(seconds: f64) -> String {
    let (amount, unit) = in_unit(seconds);
    format!("{} {unit}", number(amount))
}

/// [`duration`] without zeros at its end, for lengths that are round: `10 min`.
pub fn short_duration(seconds: f64) -> String {
    let (amount, unit) = in_unit(seconds);
    format!("{} {unit}", short(amount))
}

fn in_unit(seconds: f64) -> (f64, &'static str) {
    let (unit, size) = match seconds {
        0.0 => ("s", 1.0),
        s if s < 1e-6 => ("ns", 1e-9),
        s if s < 1e-3 => ("us", 1e-6),
        s if s < 1.0 => ("ms", 1e-3),
        s if s < 120.0 => ("s", 1.0),
        s if s < 7200.0 => ("min", 60.0),
        s if s < 172_800.0 => ("h", 3600.0),
        _ => ("days", 86_400.0),
    };
    (seconds / size, unit)
}

/// How many times more or less, with 2 digits: `1.4x`, `4.1x`, `23x`.
pub fn factor(value: f64) -> String {
    match value {
        v if v >= 9.95 => format!("{}x", separated(&format!("{v:.0}"))),
        v if v >= 0.995 => format!("{v:.1}x"),
        v => format!("{v:.2}x"),
    }
}

/// [`number`], or a dash for what is undefined.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_string(), number)
}

/// A share as a percentage with one decimal: `12.3`.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_string(), |share| format!("{:.1}", share * 100.0))
}

/// A count with thousands separators.
pub fn count(value: u64) -> String {
    separated(&value.to_string())
}

/// Bytes in the largest binary unit that leaves at least 1: `1.50 GiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value} B") } else { format!("{} {}", number(scaled), UNITS[unit]) }
}

fn separated(digits: &str) -> String {
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let (sign, whole) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut text = sign.to_string();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// A sentence as lines of at most [`LINE_CHARS_MAX`], broken between words.
pub fn wrapped(sentence: &str) -> String {
    let mut text = String::new();
    let mut chars = 0;
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if chars > 0 && chars + 1 + length > LINE_CHARS_MAX {
            text.push('\n');
            chars = 0;
        } else if chars > 0 {
            text.push(' ');
            chars += 1;
        }
        text.push_str(word);
        chars += length;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let shown = [0.0, 0.01234, 0.1234, 1.234, 9.996, 12.34, 123.4, 1234567.0, -1234.5];
        let expected =
            ["0", "0.0123", "0.123", "1.23", "10.0", "12.3", "123", "1,234,567", "-1,234"];
        assert_eq!(shown.map(number), expected);
    }

    #[test]
    fn marks_have_no_zeros_at_their_end() {
        assert_eq!([0.0, 0.5, 1.5, 20.0, 1000.0].map(short), ["0", "0.5", "1.5", "20", "1,000"]);
    }

    #[test]
    fn times_use_the_unit_people_use() {
        let shown = [0.0, 1.25e-5, 0.5, 90.0, 600.0, 86_400.0, 604_800.0].map(duration);
        let expected = ["0 s", "12.5 us", "500 ms", "90.0 s", "10.0 min", "24.0 h", "7.00 days"];
        assert_eq!(shown, expected);
        assert_eq!(short_duration(600.0), "10 min");
    }

    #[test]
    fn factors_keep_two_digits() {
        assert_eq!(
            [0.171, 0.999, 4.1, 9.96, 1234.0].map(factor),
            ["0.17x", "1.0x", "4.1x", "10x", "1,234x"]
        );
    }

    #[test]
    fn bytes_and_counts_carry_units_and_separators() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(bytes(20 << 30), "20.0 GiB");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(percent(Some(0.1234)), "12.3");
    }
}
