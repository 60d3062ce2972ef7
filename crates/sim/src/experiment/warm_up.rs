//! How much of a workload comes before what is measured.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// How much of a workload comes before what is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// So many requests of the trace, at least 1.
    Requests(u64),
    /// This share of its requests, above 0 and below 1, rounded down.
    Share(f64),
    /// Until every cache of the stack has evicted something and every log has begun to clean or has gone round.
    UntilFull,
}

/// What is accepted, in words.
const ACCEPTED: &str =
    "a count of requests such as 10000, a share of them such as 25%, or until-full";

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        let wrong = || format!("`{text}`: accepted: {ACCEPTED}");
        if text == "until-full" {
            return Ok(WarmUp::UntilFull);
        }
        let Some(percent) = text.strip_suffix('%') else {
            let requests = text.parse().map_err(|_| wrong())?;
            return if requests > 0 { Ok(WarmUp::Requests(requests)) } else { Err(wrong()) };
        };
        let share = percent.trim_end().parse::<f64>().map_err(|_| wrong())? / 100.0;
        match share > 0.0 && share < 1.0 {
            true => Ok(WarmUp::Share(share)),
            false => Err(format!("`{text}`: accepted: a share above 0 and below 100 %")),
        }
    }
}

impl fmt::Display for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WarmUp::Requests(requests) => write!(f, "{requests}"),
            WarmUp::Share(share) => write!(f, "{}%", share * 100.0),
            WarmUp::UntilFull => f.write_str("until-full"),
        }
    }
}

impl<'de> Deserialize<'de> for WarmUp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<WarmUp, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "a count of requests such as 10000, \"25%\" or \"until-full\""
        )]
        enum Written {
            Number(u64),
            Text(String),
        }
        let text = match Written::deserialize(from)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for WarmUp {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            WarmUp::Requests(requests) => to.serialize_u64(*requests),
            text => to.serialize_str(&text.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_read_as_it_is_written() {
        for (text, expected) in [
            ("12000", WarmUp::Requests(12_000)),
            ("25%", WarmUp::Share(0.25)),
            ("0.5 %", WarmUp::Share(0.005)),
            ("until-full", WarmUp::UntilFull),
        ] {
            let read: WarmUp = text.parse().expect(text);
            assert_eq!(read, expected);
            assert_eq!(read.to_string().parse(), Ok(expected));
        }
        for text in ["0", "-1", "0%", "100%", "1.5", "full", "", "%", "1e400%", "nan%"] {
            let words = text.parse::<WarmUp>().unwrap_err();
            assert!(words.contains("accepted: a "), "{words}");
        }
    }
}
