//! Sizes, rates and times as people write them: `256MiB`, `8 TB`, `190 MB/s`, `5.02 ms`.
//!
//! `KiB MiB GiB TiB` are powers of 1024, `kB MB GB TB` powers of 1000, and a bare `k M G T` is
//! binary, as in fio. Case does not matter. A size without a unit is refused, because bytes, blocks
//! and sectors are equally plausible; only zero needs none.

use imbrex_core::units::Duration;
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A quantity that cannot be understood; its text says what is accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(String);

impl QuantityError {
    /// The error with this text.
    pub fn new(text: String) -> QuantityError {
        QuantityError(text)
    }
}

const SIZE_UNITS: [(&str, u64); 13] = [
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

const TIME_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size(pub u64);

impl Size {
    /// The size in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

/// A rate in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// The time `bytes` take at this rate, rounded to the nearest nanosecond.
    #[inline]
    pub fn time_of(self, bytes: u64) -> Duration {
        const NS_PER_S: u64 = 1_000_000_000;
        let exact = bytes.checked_mul(NS_PER_S).and_then(|ns| ns.checked_add(self.0 / 2));
        match exact {
            Some(ns) => Duration(ns / self.0),
            // More than 18 GB at once: the same in twice the width, which is far slower.
            None => {
                let (bytes, rate) = (u128::from(bytes), u128::from(self.0));
                Duration(((bytes * u128::from(NS_PER_S) + rate / 2) / rate) as u64)
            }
        }
    }
}

/// A span of time, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(pub Duration);

/// A span of time in nanoseconds that may be negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SignedSpan(pub i64);

/// A size, or a share of something that is known only when a run begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SizeOrShare {
    /// A fixed size.
    Size(Size),
    /// `part` / `of` of the bands that a workload uses.
    Share {
        /// Numerator.
        part: u64,
        /// Denominator, not zero.
        of: u64,
        /// Which bands those are.
        whole: Whole,
    },
}

/// The bands of a workload that a share is a share of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Whole {
    /// All that a request touches: every request, or the writes where a cache takes only writes.
    TouchedBands,
    /// All that a write touches.
    WrittenBands,
}

impl Whole {
    /// As it is written behind a share.
    fn suffix(self) -> &'static str {
        match self {
            Whole::TouchedBands => "of touched bands",
            Whole::WrittenBands => "of written bands",
        }
    }
}

impl SizeOrShare {
    /// The size in bytes when the whole is `whole_bytes`, rounded down.
    pub fn bytes_of(self, whole_bytes: u64) -> u64 {
        match self {
            SizeOrShare::Size(size) => size.0,
            SizeOrShare::Share { part, of, .. } => {
                (u128::from(whole_bytes) * u128::from(part) / u128::from(of)) as u64
            }
        }
    }
}

/// Longest time of a drive. Far beyond any; it leaves the clock room for millions of operations.
const SPAN_MAX: Duration = Duration(3_600_000_000_000);

/// The bytes in a size such as `4k`, `256MiB` or `8 TB`.
///
/// # Errors
/// When it is not a number with a unit of size, or not a whole number of bytes below 2^64.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let fail = |why: &str| {
        QuantityError(format!(
            "`{text}` {why}: a size is written like `4KiB`, `256MiB`, `20GiB` (binary; a bare k, M, \
             G, T is binary too) or `20GB`, `8TB` (decimal)"
        ))
    };
    let (number, unit) = split(text).ok_or_else(|| fail("is not a size"))?;
    if unit.is_empty() {
        return match number.times(1) {
            Some(0) => Ok(0),
            _ => Err(fail("has no unit")),
        };
    }
    let factor = factor(&SIZE_UNITS, unit).ok_or_else(|| fail("has an unknown unit"))?;
    number.times(factor).ok_or_else(|| fail("is not a whole number of bytes below 2^64"))
}

/// The bytes per second in a rate such as `190 MB/s`.
///
/// # Errors
/// When it is not a positive size followed by `/s`.
pub fn parse_rate(text: &str) -> Result<Rate, QuantityError> {
    let fail = || {
        QuantityError(format!(
            "`{text}` is not a rate: a rate is written like `190MB/s` or `1.5GiB/s`"
        ))
    };
    let size = text.trim().strip_suffix("/s").ok_or_else(fail)?;
    match parse_size(size) {
        Ok(0) | Err(_) => Err(fail()),
        Ok(bytes) => Ok(Rate(bytes)),
    }
}

/// The time in a text such as `5.02 ms`.
///
/// # Errors
/// When it is not a number with a unit of time, or not a whole number of nanoseconds below 2^64.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let fail = |why: &str| {
        QuantityError(format!(
            "`{text}` {why}: a time is written like `90us`, `5.02ms` or `1s` (also ns, min, h)"
        ))
    };
    let (number, unit) = split(text).ok_or_else(|| fail("is not a time"))?;
    if unit.is_empty() {
        return match number.times(1) {
            Some(0) => Ok(Duration::ZERO),
            _ => Err(fail("has no unit")),
        };
    }
    let factor = factor(&TIME_UNITS, unit).ok_or_else(|| fail("has an unknown unit"))?;
    number
        .times(factor)
        .map(Duration)
        .ok_or_else(|| fail("is not a whole number of nanoseconds below 2^64"))
}

/// A decimal number without rounding: `digits` / 10^`places`.
struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    /// The product, when it is whole and fits.
    fn times(&self, factor: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        let divisor = 10u128.pow(self.places);
        (product % divisor == 0).then(|| u64::try_from(product / divisor).ok()).flatten()
    }
}

/// The number at the front and the unit behind it.
fn split(text: &str) -> Option<(Decimal, &str)> {
    const DIGITS_MAX: usize = 20;
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = format!("{whole}{fraction}").replace('_', "");
    if whole.is_empty() || digits.len() > DIGITS_MAX || fraction.contains('.') {
        return None;
    }
    let places = fraction.replace('_', "").len() as u32;
    let digits = digits.parse().ok()?;
    Some((Decimal { digits, places }, unit.trim()))
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    let unit = unit.to_lowercase();
    let unit = unit.replace('\u{3bc}', "\u{b5}");
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

/// The number in the largest of the units that leaves it whole.
fn write_whole(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let unit = units
        .iter()
        .filter(|(_, factor)| value > 0 && value.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor)
        .unwrap_or(&units[0]);
    write!(f, "{} {}", value / unit.1, unit.0)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("B", 1),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
        ];
        write_whole(f, self.0, &units)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Size(self.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(
            f,
            self.0.0,
            &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
        )
    }
}

impl fmt::Display for SignedSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        Span(Duration(self.0.unsigned_abs())).fmt(f)
    }
}

impl fmt::Display for SizeOrShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeOrShare::Size(size) => size.fmt(f),
            SizeOrShare::Share { part, of: 100, whole: Whole::TouchedBands } => {
                write!(f, "{part} %")
            }
            SizeOrShare::Share { part, of, whole } => {
                write!(f, "{part}/{of} {}", whole.suffix())
            }
        }
    }
}

impl FromStr for SizeOrShare {
    type Err = QuantityError;
    /// Reads a size, `2 %`, `0.5 %`, `1/256 of touched bands` or `1/256 of written bands`.
    fn from_str(text: &str) -> Result<SizeOrShare, QuantityError> {
        let fail = || {
            QuantityError(format!(
                "`{text}` is not a share: a share is written like `2 %`, `1/256 of touched bands` or \
                 `1/256 of written bands`"
            ))
        };
        let named = |whole: Whole| Some((text.trim().strip_suffix(whole.suffix())?.trim(), whole));
        let (number, whole) = named(Whole::TouchedBands)
            .or_else(|| named(Whole::WrittenBands))
            .unwrap_or((text.trim(), Whole::TouchedBands));
        let share = |part: u64, of: u64| match part {
            1.. if part <= of => Ok(SizeOrShare::Share { part, of, whole }),
            _ => Err(fail()),
        };
        if let Some(number) = number.strip_suffix('%') {
            let (number, rest) = split(number).ok_or_else(fail)?;
            let of = 10u64.checked_pow(number.places + 2).ok_or_else(fail)?;
            let part = u64::try_from(number.digits).map_err(|_| fail())?;
            return if rest.is_empty() { share(part, of) } else { Err(fail()) };
        }
        if let Some((part, of)) = number.split_once('/') {
            let part = part.trim().parse().map_err(|_| fail())?;
            return share(part, of.trim().parse().map_err(|_| fail())?);
        }
        if number.len() < text.trim().len() {
            return Err(fail());
        }
        text.parse().map(SizeOrShare::Size)
    }
}

impl FromStr for Size {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Size, QuantityError> {
        parse_size(text).map(Size)
    }
}

impl FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Rate, QuantityError> {
        parse_rate(text)
    }
}

impl FromStr for Span {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Span, QuantityError> {
        match parse_duration(text)? {
            span if span > SPAN_MAX => Err(QuantityError(format!(
                "`{text}` is too long: a drive takes or waits 1 h at most"
            ))),
            span => Ok(Span(span)),
        }
    }
}

impl FromStr for SignedSpan {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<SignedSpan, QuantityError> {
        let unsigned = text.trim_start().strip_prefix('-');
        let Span(span) = unsigned.unwrap_or(text).parse()?;
        let ns = span.0 as i64;
        Ok(SignedSpan(if unsigned.is_some() { -ns } else { ns }))
    }
}

/// Takes a text and parses it; a number is refused in the parser's words, but for zero.
struct QuantityVisitor<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err = QuantityError>> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text with a number and its unit")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        Err(E::invalid_type(Unexpected::Float(number), &self))
    }
}

macro_rules! quantity_serde {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                deserializer.deserialize_any(QuantityVisitor(std::marker::PhantomData))
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}
quantity_serde!(Size, Rate, Span, SignedSpan, SizeOrShare);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_binary_with_i_and_without_b() {
        for (text, bytes) in [
            ("4k", 4096),
            ("4 KiB", 4096),
            ("4kB", 4000),
            ("256MiB", 256 << 20),
            ("8TB", 8_000_000_000_000),
            ("20 GB", 20_000_000_000),
            ("1.5G", 3 << 29),
            ("512B", 512),
            ("1_000 b", 1000),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_size_without_a_unit_is_refused() {
        let error = parse_size("20").unwrap_err().to_string();
        assert!(error.starts_with("`20` has no unit: a size is written like `4KiB`"), "{error}");
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for (text, why) in [
            ("", "is not a size"),
            ("GiB", "is not a size"),
            ("-1k", "is not a size"),
            ("1.2.3k", "is not a size"),
            ("4 KiBs", "has an unknown unit"),
            ("4ms", "has an unknown unit"),
            ("0.3 KiB", "is not a whole number of bytes"),
            ("99999999TB", "is not a whole number of bytes"),
        ] {
            let error = parse_size(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` {why}")), "{error}");
        }
    }

    #[test]
    fn times_and_rates_carry_units() {
        assert_eq!(parse_duration("5.02 ms"), Ok(Duration(5_020_000)));
        assert_eq!(parse_duration("90us"), Ok(Duration(90_000)));
        assert_eq!(parse_duration("90\u{3bc}s"), Ok(Duration(90_000)));
        assert!(parse_duration("5").unwrap_err().to_string().contains("has no unit"));
        assert!(parse_duration("0.5ns").is_err());
        assert_eq!(parse_rate("190 MB/s"), Ok(Rate(190_000_000)));
        assert!(parse_rate("190 MB").is_err());
        assert!(parse_rate("0 MB/s").is_err());
        assert_eq!(Rate(3).time_of(2), Duration(666_666_667));
    }

    #[test]
    fn shares_are_percentages_or_fractions() {
        let share = |part, of| {
            let whole = Whole::TouchedBands;
            Ok(SizeOrShare::Share { part, of, whole })
        };
        assert_eq!("2 %".parse(), share(2, 100));
        assert_eq!("0.5%".parse(), share(5, 1000));
        assert_eq!("1/256 of touched bands".parse(), share(1, 256));
        assert_eq!("40MiB".parse(), Ok(SizeOrShare::Size(Size(40 << 20))));
        let error = "2".parse::<SizeOrShare>().unwrap_err().to_string();
        assert!(error.contains("has no unit"), "{error}");
        for text in ["0 %", "101 %", "x/3", "1/0", "2 k%", "4 MiB of written bands"] {
            let error = text.parse::<SizeOrShare>().unwrap_err().to_string();
            assert!(error.contains("is not a share"), "{error}");
        }
        for whole in [Whole::TouchedBands, Whole::WrittenBands] {
            for of in [100, 256] {
                let share = SizeOrShare::Share { part: 1, of, whole };
                assert_eq!(share.to_string().parse(), Ok(share));
            }
        }
        let log: SizeOrShare = "1/256 of written bands".parse().expect("a share");
        assert_eq!(log.to_string(), "1/256 of written bands");
        assert_eq!(log.bytes_of(1 << 30), 4 << 20);
    }

    #[test]
    fn toml_values_are_texts_with_units() {
        #[derive(Deserialize, Serialize, PartialEq, Debug)]
        struct Table {
            size: Size,
            span: Span,
            rate: Rate,
        }
        let table: Table =
            toml::from_str("size = '18MiB'\nspan = '10ms'\nrate = '2.5GB/s'").unwrap();
        assert_eq!(table.size, Size(18 << 20));
        let written = toml::to_string(&table).unwrap();
        assert_eq!(toml::from_str::<Table>(&written).unwrap(), table);
        let error = toml::from_str::<Table>("size = 18\nspan = '1s'\nrate = '1MB/s'");
        assert!(error.unwrap_err().message().contains("`18` has no unit"));
    }

    proptest! {
        #[test]
        fn a_printed_size_reads_as_itself(bytes in 0..1u64 << 60, zeroes in 0..60u32) {
            let bytes = bytes >> zeroes << zeroes;
            prop_assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
            let span = bytes % (SPAN_MAX.0 + 1);
            prop_assert_eq!(Span(Duration(span)).to_string().parse(), Ok(Span(Duration(span))));
            for ns in [span as i64, -(span as i64)] {
                prop_assert_eq!(SignedSpan(ns).to_string().parse(), Ok(SignedSpan(ns)));
            }
        }
    }
}
