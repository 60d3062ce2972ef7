//! An axis of a chart: its scale, its unit, its marks.

use serde::Serialize;

use imbrex_report::format::{bytes, duration, number, short};
use imbrex_report::page::svg::ticks;

/// How values are said.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    /// So many of something.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Per cent.
    Percent,
    /// Requests per second.
    RequestRate,
    /// Bytes per second.
    ByteRate,
}

/// How values become places.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scale {
    /// From 0, evenly.
    Linear,
    /// A place for each power of ten.
    Log,
    /// Likewise, with a place of its own for 0 left of 1.
    LogWithZero,
}

/// Room between 0 and 1 where the scale is logarithmic with 0, in decades.
const ZERO_DECADES: f64 = 0.4;

/// An axis from its least value to its greatest.
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) scale: Scale,
    pub(super) from: f64,
    pub(super) to: f64,
    /// What a label of a linear axis is in: bytes or seconds of the unit in its name.
    divisor: f64,
}

impl Unit {
    /// `value` with its unit.
    pub(super) fn say(self, value: f64) -> String {
        match self {
            Unit::Count => number(value),
            Unit::Bytes => bytes(value as u64),
            Unit::Seconds => duration(value),
            Unit::Percent => format!("{} %", number(value)),
            Unit::RequestRate => format!("{} /s", number(value)),
            Unit::ByteRate => format!("{}/s", bytes(value as u64)),
        }
    }

    /// The unit that a linear axis to `to` has in its name, and how much of it one is.
    fn of_axis(self, to: f64) -> (&'static str, f64) {
        let largest = |units: &[(&'static str, f64)]| {
            let fits = units.iter().rev().find(|(_, size)| to >= *size);
            *fits.unwrap_or(&units[0])
        };
        const KIB: f64 = 1024.0;
        match self {
            Unit::Count => ("", 1.0),
            Unit::Percent => ("%", 1.0),
            Unit::RequestRate => ("1/s", 1.0),
            Unit::Seconds => largest(&[
                ("ns", 1e-9),
                ("us", 1e-6),
                ("ms", 1e-3),
                ("s", 1.0),
                ("min", 300.0),
                ("h", 10_800.0),
                ("days", 259_200.0),
            ]),
            Unit::Bytes => largest(&[
                ("B", 1.0),
                ("KiB", KIB),
                ("MiB", KIB * KIB),
                ("GiB", KIB.powi(3)),
                ("TiB", KIB.powi(4)),
            ]),
            Unit::ByteRate => largest(&[
                ("B/s", 1.0),
                ("KiB/s", KIB),
                ("MiB/s", KIB * KIB),
                ("GiB/s", KIB.powi(3)),
            ]),
        }
    }
}

impl Axis {
    /// From 0 to `to`; the unit goes into the name.
    pub(super) fn linear(name: &str, unit: Unit, to: f64) -> Axis {
        let to = if to > 0.0 { to } else { 1.0 };
        let (of_axis, size) = unit.of_axis(to);
        Axis {
            name: match of_axis {
                "" => name.to_string(),
                of_axis => format!("{name}, {of_axis}"),
            },
            unit,
            scale: Scale::Linear,
            from: 0.0,
            to,
            // Units of time begin where there are a few of them; the label is in whole ones.
            divisor: match of_axis {
                "min" => 60.0,
                "h" => 3600.0,
                "days" => 86_400.0,
                _ => size,
            },
        }
    }

    /// Logarithmic, over the positive ones of `values`.
    pub(super) fn log(name: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Axis {
        let (mut from, mut to) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
            from = from.min(value);
            to = to.max(value);
        }
        let from = if from.is_finite() { from } else { 1.0 };
        Axis {
            name: name.to_string(),
            unit,
            scale: Scale::Log,
            from,
            to: to.max(from * 4.0),
            divisor: 1.0,
        }
    }

    /// From 0 to `to`, logarithmic from 1.
    pub(super) fn log_with_zero(name: &str, unit: Unit, to: f64) -> Axis {
        Axis {
            name: name.to_string(),
            unit,
            scale: Scale::LogWithZero,
            from: 0.0,
            to: to.max(4.0),
            divisor: 1.0,
        }
    }

    /// Where a value lies, on a scale that is even.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.from, self.to);
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
            Scale::LogWithZero if value < 1.0 => 0.0,
            Scale::LogWithZero => ZERO_DECADES + value.log10(),
        }
    }

    /// Values to mark, `most` at most or one more, with their labels.
    pub(super) fn marks(&self, most: usize) -> Vec<(f64, String)> {
        match (self.scale, self.unit) {
            (Scale::Linear, _) => ticks(self.to / self.divisor, most as f64 + 0.5)
                .into_iter()
                .map(|tick| (tick * self.divisor, short(tick)))
                .collect(),
            (_, Unit::Bytes) => self.doublings(most),
            (_, Unit::Seconds) => self.times(most),
            _ => self.decades(most),
        }
    }

    /// Powers of two, 4 KiB among them.
    fn doublings(&self, most: usize) -> Vec<(f64, String)> {
        let inside: Vec<i32> = (0..60)
            .filter(|exponent| (self.from..=self.to).contains(&2f64.powi(*exponent)))
            .collect();
        let every = [1, 2, 3, 4, 6, 10, 20];
        let chosen = |every: i32| {
            let fits = move |exponent: &&i32| (**exponent - 12).rem_euclid(every) == 0;
            inside.iter().filter(fits)
        };
        let every = every.into_iter().find(|every| chosen(*every).count() <= most);
        chosen(every.unwrap_or(20))
            .map(|exponent| (2f64.powi(*exponent), power_of_two(*exponent)))
            .collect()
    }

    /// Powers of ten, and 0 where the axis has it.
    fn decades(&self, most: usize) -> Vec<(f64, String)> {
        let inside: Vec<f64> = (-9..18)
            .map(|exponent| 10f64.powi(exponent))
            .filter(|value| (self.from.max(1e-9)..=self.to).contains(value))
            .filter(|value| self.scale == Scale::Log || *value >= 1.0)
            .collect();
        let every = inside.len().div_ceil(most).max(1);
        let zero = (self.scale == Scale::LogWithZero).then_some(0.0);
        zero.into_iter()
            .chain(inside.into_iter().step_by(every))
            .map(|value| (value, compact(value)))
            .collect()
    }

    /// Round lengths of time.
    fn times(&self, most: usize) -> Vec<(f64, String)> {
        const TIMES: [(f64, &str); 17] = [
            (1e-9, "1 ns"),
            (1e-8, "10 ns"),
            (1e-7, "100 ns"),
            (1e-6, "1 us"),
            (1e-5, "10 us"),
            (1e-4, "100 us"),
            (1e-3, "1 ms"),
            (1e-2, "10 ms"),
            (1e-1, "100 ms"),
            (1.0, "1 s"),
            (10.0, "10 s"),
            (60.0, "1 min"),
            (600.0, "10 min"),
            (3600.0, "1 h"),
            (86_400.0, "1 day"),
            (864_000.0, "10 days"),
            (8_640_000.0, "100 days"),
        ];
        let inside: Vec<(f64, &str)> =
            TIMES.into_iter().filter(|(time, _)| (self.from..=self.to).contains(time)).collect();
        let every = inside.len().div_ceil(most).max(1);
        // The longest time is marked, whatever is left out.
        let mut marks: Vec<(f64, String)> = inside
            .into_iter()
            .rev()
            .step_by(every)
            .map(|(time, label)| (time, label.to_string()))
            .collect();
        marks.reverse();
        marks
    }
}

/// A power of ten in few letters.
fn compact(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{} G", short(value / 1e9)),
        value if value >= 1e6 => format!("{} M", short(value / 1e6)),
        value => short(value),
    }
}

/// 2 to the power of `exponent`, in bytes.
fn power_of_two(exponent: i32) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    format!("{} {}", 1 << (exponent % 10), UNITS[exponent as usize / 10])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, most: usize) -> Vec<String> {
        axis.marks(most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn sizes_are_marked_at_powers_of_two() {
        let axis = Axis::log("size", Unit::Bytes, [512.0, 1048576.0].into_iter());
        assert_eq!(labels(&axis, 6), ["1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"]);
        let axis = Axis::log("size", Unit::Bytes, [4096.0, 4096.0].into_iter());
        assert_eq!(labels(&axis, 6), ["4 KiB", "8 KiB", "16 KiB"]);
    }

    #[test]
    fn counts_have_a_place_for_none() {
        let axis = Axis::log_with_zero("times", Unit::Count, 5_000_000.0);
        assert_eq!(labels(&axis, 8), ["0", "1", "10", "100", "1,000", "10,000", "100,000", "1 M"]);
        assert!(axis.place(0.0) < axis.place(1.0));
    }

    #[test]
    fn times_are_marked_where_people_look() {
        let axis = Axis::log("time", Unit::Seconds, [0.0, 1e-4, 700_000.0].into_iter());
        assert_eq!(labels(&axis, 6), ["1 ms", "100 ms", "10 s", "10 min", "1 day"]);
        let axis = Axis::linear("time", Unit::Seconds, 604_800.0);
        assert_eq!((axis.name.as_str(), labels(&axis, 8).len()), ("time, days", 8));
    }

    #[test]
    fn an_axis_without_values_can_be_marked() {
        for axis in [
            Axis::log("x", Unit::Seconds, std::iter::empty()),
            Axis::log("x", Unit::Bytes, [0.0].into_iter()),
            Axis::linear("x", Unit::Bytes, 0.0),
            Axis::log_with_zero("x", Unit::Count, 0.0),
        ] {
            assert!(!axis.marks(6).is_empty(), "{}", axis.name);
            assert!(axis.place(axis.from) < axis.place(axis.to));
        }
    }
}
