//! How to read a trace: the same flags for every command that reads one.

use crate::failure::{Failure, usage};
use clap::Args;
use imbrex_drives::quantity::parse_size;
use imbrex_traces::{ReadOptions, parse_delimiter, parse_devices};
use std::str::FromStr;

/// How to read a trace.
#[derive(Debug, Args, Clone)]
pub struct ReadArgs {
    /// Trace format, when it is not recognised
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Columns of a CSV or Parquet trace, such as `time=2:us,op=3:scsi,len=4:bytes,off=5:sectors`
    #[arg(long, value_name = "MAP")]
    pub map: Option<String>,
    /// What separates the columns of a CSV trace: one character, a comma when absent; a space
    /// stands for any run of blanks
    #[arg(long, value_name = "C")]
    pub delimiter: Option<String>,
    /// Unit of the times of a DiskSim trace: s, ms, us, ns, or filetime (100 ns)
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,
    /// Size of a page of an ARC trace, such as 512B (the size when absent)
    #[arg(long, value_name = "SIZE")]
    pub page_bytes: Option<String>,
    /// How the requests of one second are spread over it where a trace counts whole seconds
    /// (tencent, clf, oracle-general, lcs): uniform, evenly (when absent); none, all at its start; poisson or poisson:SEED, at random
    #[arg(long, value_name = "RULE")]
    pub subsecond: Option<String>,
    /// What a web server is assumed to write beside the documents it reads (clf): none (when absent),
    /// create, log, or log:SIZE
    #[arg(long, value_name = "WRITES")]
    pub http_writes: Option<String>,
    /// What `wait N` means in a fio iolog of version 2: ms-absolute, until N ms after the start, as fio
    /// does it (when absent); us-relative, N microseconds after the wait before, as fio's manual says
    #[arg(long, value_name = "MEANING")]
    pub fio_wait: Option<String>,
    /// Event of a blktrace, binary or as blkparse prints it, that stands for a request: Q (queued, when absent), D (issued to the
    /// driver) or C (complete)
    #[arg(long, value_name = "EVENT")]
    pub event: Option<String>,
    /// What the object ids of a libCacheSim trace are: bytes (the address of the first byte) or blocks
    /// (the number of a block of 4 KiB); ids that are hashes have no place on a disk
    #[arg(long, value_name = "KIND")]
    pub obj_id: Option<String>,
    /// Take only the requests of these devices
    #[arg(long, value_name = "A-B")]
    pub devices: Option<String>,
    /// Put device n at n times this size, so that devices do not overlay each other
    #[arg(long, value_name = "SIZE")]
    pub device_stride: Option<String>,
    /// Take a recording without an end as far as it goes, as a server that was killed leaves it
    #[arg(long)]
    pub accept_unfinished: bool,
}

impl ReadArgs {
    /// The options that were given, each with its value if it takes one.
    pub fn given(&self) -> Vec<(&'static str, Option<&str>)> {
        let texts = [
            ("--format", &self.format),
            ("--map", &self.map),
            ("--delimiter", &self.delimiter),
            ("--time-unit", &self.time_unit),
            ("--page-bytes", &self.page_bytes),
            ("--subsecond", &self.subsecond),
            ("--http-writes", &self.http_writes),
            ("--fio-wait", &self.fio_wait),
            ("--event", &self.event),
            ("--obj-id", &self.obj_id),
            ("--devices", &self.devices),
            ("--device-stride", &self.device_stride),
        ];
        let given =
            texts.into_iter().filter_map(|(option, text)| Some((option, Some(text.as_deref()?))));
        given.chain(self.accept_unfinished.then_some(("--accept-unfinished", None))).collect()
    }

    /// The options the flags stand for, with the SHA-256 of the file.
    pub fn options(&self) -> Result<ReadOptions, Failure> {
        Ok(ReadOptions {
            format: named("--format", self.format.as_deref())?,
            columns: self.map.clone(),
            delimiter: of_option(self.delimiter.as_deref(), parse_delimiter)?,
            time_unit: named("--time-unit", self.time_unit.as_deref())?,
            page_bytes: size("--page-bytes", self.page_bytes.as_deref())?,
            subsecond: named("--subsecond", self.subsecond.as_deref())?,
            http_writes: named("--http-writes", self.http_writes.as_deref())?,
            fio_wait: named("--fio-wait", self.fio_wait.as_deref())?,
            object_id: named("--obj-id", self.obj_id.as_deref())?,
            event: named("--event", self.event.as_deref())?,
            devices: of_option(self.devices.as_deref(), parse_devices)?,
            device_stride_bytes: size("--device-stride", self.device_stride.as_deref())?,
            accept_unfinished: self.accept_unfinished,
            sha256: true,
            // A command adds who hears how far it is, and who may stop it.
            ..ReadOptions::default()
        })
    }
}

/// The value of an option whose error names the option without its dashes.
fn of_option<T>(
    text: Option<&str>,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    text.map(|text| parse(text).map_err(|error| usage(format!("--{error}")))).transpose()
}

/// The value of an option that is chosen by its name.
fn named<T: FromStr<Err = String>>(option: &str, text: Option<&str>) -> Result<Option<T>, Failure> {
    text.map(|text| text.parse().map_err(|error| usage(format!("{option}: {error}")))).transpose()
}

fn size(option: &str, text: Option<&str>) -> Result<Option<u64>, Failure> {
    text.map(|text| parse_size(text).map_err(|error| usage(format!("{option}: {error}"))))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_a_number_or_a_range() {
        let devices = |text: &str| of_option(Some(text), parse_devices).map(Option::unwrap);
        assert_eq!(devices("3").unwrap(), 3..=3);
        assert_eq!(devices("0-2").unwrap(), 0..=2);
        for text in ["", "2-1", "a", "70000"] {
            let error = devices(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--devices {text}: accepted")), "{error}");
        }
    }

    #[test]
    fn a_delimiter_is_one_character() {
        let delimiter = |text: &str| of_option(Some(text), parse_delimiter).map(Option::unwrap);
        assert_eq!(delimiter(";").unwrap(), b';');
        assert_eq!(delimiter("\\t").unwrap(), b'\t');
        assert!(delimiter("ab").is_err());
    }
}
