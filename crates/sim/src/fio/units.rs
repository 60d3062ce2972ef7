//! Values of options, written as fio reads them.

use imbrex_core::units::Duration;

/// How prefixes of sizes are read (`kb_base`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KbBase {
    /// fio's default: `k` is 1024 and `ki` is 1000.
    Compatible,
    /// `k` is 1000 and `ki` is 1024.
    International,
}

/// What sizes are accepted, in words.
pub(super) const SIZES: &str = "a size such as 4096, 4k, 1m or 2g";

/// A size in bytes.
pub(super) fn size(text: &str, base: KbBase) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).map_err(|_| SIZES.to_string());
    }
    let split = lower.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = lower.split_at(split.unwrap_or(lower.len()));
    let unit = unit.trim();
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (prefix, binary) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, base == KbBase::International),
        None => (unit, base == KbBase::Compatible),
    };
    let power = match prefix {
        "" if unit.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(SIZES.to_string()),
    };
    let factor = if binary { 1024u64 } else { 1000 }.pow(power);
    let whole = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    let fraction = || {
        let value = number.parse::<f64>().ok()? * factor as f64;
        (number.contains('.') && value.is_finite() && value < 9e18).then_some(value as u64)
    };
    whole.or_else(fraction).ok_or_else(|| SIZES.to_string())
}

/// A size, or a share of `whole` bytes such as `50%`.
pub(super) fn size_or_percent(text: &str, base: KbBase, whole: u64) -> Result<u64, String> {
    match text.trim().strip_suffix('%') {
        None => size(text, base).map_err(|accepted| format!("{accepted}, or 1% to 100%")),
        Some(percent) => match percent.trim().parse::<u64>() {
            Ok(percent) if percent <= 100 => {
                Ok((u128::from(whole) * u128::from(percent) / 100) as u64)
            }
            _ => Err("a share from 0% to 100%".to_string()),
        },
    }
}

/// A range such as `4k-16k` or `4k:16k`; its ends in either order.
pub(super) fn range(text: &str, base: KbBase) -> Result<(u64, u64), String> {
    let accepted = || "a range such as 4k-16k".to_string();
    let (from, to) = text.split_once(['-', ':']).ok_or_else(accepted)?;
    let (from, to) = (size(from, base)?, size(to, base)?);
    Ok((from.min(to), from.max(to)))
}

/// A span of time; a number without a unit is one of `unit_ns` nanoseconds.
pub(super) fn time(text: &str, unit_ns: u64) -> Result<Duration, String> {
    let accepted = || "a time such as 500us, 20ms, 30s, 5m or 2h".to_string();
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = lower.split_at(split.unwrap_or(lower.len()));
    let unit_ns = match unit.trim() {
        "" => unit_ns,
        "d" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" | "sec" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        _ => return Err(accepted()),
    };
    let number: u64 = number.parse().map_err(|_| accepted())?;
    number.checked_mul(unit_ns).map(Duration).ok_or_else(accepted)
}

/// A whole number in a range.
pub(super) fn number(text: &str, from: u64, to: u64) -> Result<u64, String> {
    match size(text, KbBase::Compatible) {
        Ok(number) if (from..=to).contains(&number) => Ok(number),
        _ if to == u64::MAX => Err(format!("a whole number from {from}")),
        _ => Err(format!("a whole number from {from} to {to}")),
    }
}

/// 0 or 1.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text.trim() {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("0 or 1".to_string()),
    }
}

/// Values for reads, writes and trims: a single one is for all, a missing one is that before it, and
/// an empty one stays absent. `,8k` is 8k for writes and trims.
pub(super) fn per_direction<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<[Option<T>; 3], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err("at most three values: reads, writes and trims".to_string());
    }
    let mut values = [const { None }; 3];
    for (value, part) in values.iter_mut().zip(&parts) {
        if !part.is_empty() {
            *value = Some(parse(part)?);
        }
    }
    let last = parts.len() - 1;
    for index in last + 1..3 {
        values[index] = values[last].clone();
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_manual_page() {
        let old = |text| size(text, KbBase::Compatible).unwrap();
        for text in ["4096", "4096b", "4096B", "4k", "4kb", "4kB", "4K", "4KB", "0x1000"] {
            assert_eq!(old(text), 4096, "{text}");
        }
        assert_eq!(old("1mi"), 1_000_000);
        assert_eq!(old("1000ki"), 1_000_000);
        assert_eq!(old("1.5g"), 3 << 29);
        let si = |text| size(text, KbBase::International).unwrap();
        assert_eq!((si("1m"), si("1mi"), si("4kib")), (1_000_000, 1 << 20, 4096));
        for text in ["", "k", "4x", "4 apples", "-1", "1..5k", "99999999p", "i", "4i"] {
            assert!(size(text, KbBase::Compatible).is_err(), "{text}");
        }
    }

    #[test]
    fn other_values() {
        assert_eq!(time("10m", 1).unwrap(), Duration(600_000_000_000));
        assert_eq!(time("7", 1000).unwrap(), Duration(7000));
        assert!(time("1m30s", 1).is_err() && time("", 1).is_err());
        assert_eq!(range("16k:4k", KbBase::Compatible).unwrap(), (4096, 16384));
        assert_eq!(size_or_percent("25%", KbBase::Compatible, 1000).unwrap(), 250);
        assert!(size_or_percent("101%", KbBase::Compatible, 1000).is_err());
        let parse = |text: &str| number(text, 0, 100);
        assert_eq!(per_direction("1", parse).unwrap(), [Some(1); 3]);
        assert_eq!(per_direction(",8", parse).unwrap(), [None, Some(8), Some(8)]);
        assert_eq!(per_direction("1,8,", parse).unwrap(), [Some(1), Some(8), None]);
        assert!(per_direction("1,2,3,4", parse).is_err());
    }
}
