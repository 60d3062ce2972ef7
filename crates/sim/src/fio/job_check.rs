//! Whether the options of a job go together and fit the device it is to run on.

use super::job::{
    Access, CLONES_MAX, Direction, Distribution, IN_FLIGHT_MAX, Job, JobError, Mix,
    REQUEST_BYTES_MAX, RateLimit, SPAN_NS_MAX, Stride, Think,
};
use imbrex_core::units::Duration;

impl Job {
    /// Checks the job against a device of `device_bytes`.
    ///
    /// # Errors
    /// Names the option of fio, its value and what is accepted.
    pub fn check(&self, device_bytes: u64) -> Result<(), JobError> {
        self.check_block_sizes()?;
        self.check_counts()?;
        for clone in 0..self.numjobs {
            self.check_region(clone, device_bytes)?;
        }
        self.check_pattern()?;
        self.check_pace()?;
        self.check_times()?;
        if let Some(stride) = self.stride {
            self.check_stride(stride, device_bytes)?;
        }
        self.check_zoned()
    }

    /// The error about an option, its value and what is accepted.
    pub(super) fn wrong(
        &self,
        option: &'static str,
        value: impl ToString,
        accepted: impl ToString,
    ) -> Result<(), JobError> {
        Err(JobError {
            job: self.name.clone(),
            option,
            value: value.to_string(),
            accepted: accepted.to_string(),
        })
    }

    fn check_block_sizes(&self) -> Result<(), JobError> {
        for direction in Direction::ALL.into_iter().filter(|d| self.mix.has(*d)) {
            let sizes = &self.block_sizes[direction as usize];
            if sizes.min() == 0 || sizes.max() > REQUEST_BYTES_MAX || sizes.max() < sizes.min() {
                let value = match (sizes.min(), sizes.max()) {
                    (shortest, longest) if shortest == longest => longest.to_string(),
                    (shortest, longest) => format!("{shortest}-{longest}"),
                };
                return self.wrong("bs", value, format!("1 to {REQUEST_BYTES_MAX} bytes"));
            }
        }
        Ok(())
    }

    /// Clones, requests in flight and passes over the region.
    fn check_counts(&self) -> Result<(), JobError> {
        if self.numjobs == 0 || self.numjobs > CLONES_MAX {
            return self.wrong("numjobs", self.numjobs, format!("1 to {CLONES_MAX}"));
        }
        if self.iodepth == 0 || u64::from(self.iodepth) > IN_FLIGHT_MAX {
            return self.wrong("iodepth", self.iodepth, format!("1 to {IN_FLIGHT_MAX}"));
        }
        if self.loops == 0 {
            return self.wrong("loops", 0, "1 or more");
        }
        Ok(())
    }

    /// The region of a clone lies on the device and has room for every request.
    fn check_region(&self, clone: u32, device_bytes: u64) -> Result<(), JobError> {
        let Some((start, length)) = self.region(clone, device_bytes) else {
            let size = self.size_bytes.map_or("the rest".into(), |s| s.to_string());
            let offset = u128::from(self.offset_bytes)
                + u128::from(self.offset_increment_bytes) * u128::from(clone);
            let accepted = format!("a region of the device of {device_bytes} bytes");
            return self.wrong("size", format!("{size} at offset {offset}"), accepted);
        };
        let most = self.largest_block();
        if length < most {
            let accepted = format!("at least one request of {most} bytes");
            return self.wrong("size", format!("{length} at offset {start}"), accepted);
        }
        Ok(())
    }

    /// Which requests the job makes, and where they go.
    fn check_pattern(&self) -> Result<(), JobError> {
        if let Mix::ReadWrite { read_percent } = self.mix
            && read_percent > 100
        {
            return self.wrong("rwmixread", read_percent, "0 to 100");
        }
        if self.percentage_random > 100 {
            return self.wrong("percentage_random", self.percentage_random, "0 to 100");
        }
        if let Access::Random { per_draw: 0, .. } = self.access {
            return self.wrong("rw", "0 requests a draw", "1 or more");
        }
        if let Distribution::Zipf { theta } = self.distribution
            && !(theta > 0.0 && theta.is_finite() && theta != 1.0)
        {
            let accepted = "a number above 0 other than 1";
            return self.wrong("random_distribution", format!("zipf:{theta}"), accepted);
        }
        Ok(())
    }

    /// Pauses and limits of rates.
    fn check_pace(&self) -> Result<(), JobError> {
        if let Some(Think { every: 0, .. }) = self.think {
            return self.wrong("thinktime_blocks", 0, "1 or more");
        }
        for limit in self.rate {
            match limit {
                RateLimit::Bytes(0) => return self.wrong("rate", 0, "1 or more"),
                RateLimit::Requests(0) => return self.wrong("rate_iops", 0, "1 or more"),
                _ => {}
            }
        }
        Ok(())
    }

    /// Spans of time, and what needs one.
    fn check_times(&self) -> Result<(), JobError> {
        if self.time_based && self.runtime.is_none() {
            return self.wrong("time_based", 1, "together with runtime");
        }
        for (option, span) in [
            ("runtime", self.runtime.unwrap_or(Duration::ZERO)),
            ("ramp_time", self.ramp_time),
            ("startdelay", self.start_delay),
            ("thinktime", self.think.map_or(Duration::ZERO, |t| t.pause)),
        ] {
            if span.0 > SPAN_NS_MAX {
                let value = format!("{} s", span.as_seconds());
                return self.wrong(option, value, "at most 10 years");
            }
        }
        Ok(())
    }

    /// The parts that are left out leave a region that holds every request.
    fn check_stride(&self, stride: Stride, device_bytes: u64) -> Result<(), JobError> {
        let (most, zone) = (self.largest_block(), stride.zone_bytes);
        if zone == 0 || stride.range_bytes < most.max(zone) {
            let value = format!("{} with zonesize={zone}", stride.range_bytes);
            let accepted = format!("at least the zonesize, and one request of {most} bytes");
            return self.wrong("zonerange", value, accepted);
        }
        let shortest = (0..self.numjobs)
            .filter_map(|clone| self.region(clone, device_bytes))
            .map(|(_, length)| length)
            .min();
        if stride.skip_bytes > device_bytes {
            let accepted = format!("at most the size of the device, {device_bytes}");
            return self.wrong("zoneskip", stride.skip_bytes, accepted);
        }
        if shortest.is_some_and(|length| length < stride.range_bytes) {
            let accepted = "at most the size of the region";
            return self.wrong("zonerange", stride.range_bytes, accepted);
        }
        Ok(())
    }

    /// What does not depend on the zones of the device.
    fn check_zoned(&self) -> Result<(), JobError> {
        let Some(zones) = self.zones else {
            return Ok(());
        };
        let wrong = |option: &'static str, value: String, accepted: &str| {
            self.wrong(option, value, format!("{accepted} with zonemode=zbd"))
        };
        if self.stride.is_some() {
            return wrong("zonerange", "set".into(), "none");
        }
        if let Access::Sequential { skip_bytes } = self.access
            && skip_bytes != 0
        {
            return wrong("rw", format!("..:{skip_bytes}"), "zoneskip instead");
        }
        if zones.open_max == Some(0) {
            return wrong("max_open_zones", "0".into(), "1 or more, or none");
        }
        for (option, share) in [
            ("zone_reset_threshold", zones.reset_threshold),
            ("zone_reset_frequency", zones.reset_frequency),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return wrong(option, share.to_string(), "0 to 1");
            }
        }
        if self.mix != Mix::Only(Direction::Read) && self.has_partial_blocks() {
            return wrong("bs", "a part of 4 KiB".into(), "multiples of 4 KiB");
        }
        Ok(())
    }

    /// The longest request of any direction the job uses.
    fn largest_block(&self) -> u64 {
        let used = Direction::ALL.into_iter().filter(|d| self.mix.has(*d));
        used.map(|d| self.block_sizes[d as usize].max()).max().unwrap_or(0)
    }
}
