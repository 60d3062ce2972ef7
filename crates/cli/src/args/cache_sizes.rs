//! Sizes of caches and the rate of a sample, as `trace mrc` takes them.

use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::SizeOrShare;
use std::str::FromStr;

/// What shares of are told apart: as fine as a share can be written.
const FINE: u64 = u64::MAX;

/// As large as the addresses that a trace may have.
const SIZE_BYTES_MAX: u64 = 1 << 62;

/// Sizes of caches, none of them twice.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheSizes(Vec<SizeOrShare>);

impl CacheSizes {
    /// The sizes in blocks, where so many distinct blocks are read or written. A share has one block at least.
    pub fn blocks(&self, touched_blocks: u64) -> Vec<u64> {
        let blocks = |size: &SizeOrShare| match size {
            SizeOrShare::Size(size) => BlockCount::from_bytes_floor(size.bytes()).0,
            share => share.bytes_of(touched_blocks).max(1),
        };
        self.0.iter().map(blocks).collect()
    }
}

impl FromStr for CacheSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<CacheSizes, String> {
        let mut known: Vec<(bool, u64, &str)> = Vec::new();
        let mut sizes = Vec::new();
        for part in text.split(',') {
            let size = size(part)?;
            let (is_share, measure) = match size {
                SizeOrShare::Size(size) => (false, BlockCount::from_bytes_floor(size.bytes()).0),
                share => (true, share.bytes_of(FINE)),
            };
            let same = known.iter().find(|other| (other.0, other.1) == (is_share, measure));
            if let Some((.., other)) = same {
                return Err(format!(
                    "`{other}` and `{part}` are as many blocks of 4 KiB; accepted: each size once"
                ));
            }
            known.push((is_share, measure, part));
            sizes.push(size);
        }
        Ok(CacheSizes(sizes))
    }
}

fn size(text: &str) -> Result<SizeOrShare, String> {
    let accepted = "accepted: sizes of at least 4 KiB, such as 64MiB, and shares of what is read or \
                    written, such as 1%";
    // Shares of bands need a drive.
    if text.contains("bands") {
        return Err(format!("`{text}`: a trace alone has no bands; {accepted}"));
    }
    match text.parse().map_err(|error| format!("{error}; {accepted}"))? {
        SizeOrShare::Size(size) if BlockCount::from_bytes_floor(size.bytes()).0 == 0 => {
            Err(format!("`{text}` is less than a block of 4 KiB; {accepted}"))
        }
        SizeOrShare::Size(size) if size.bytes() > SIZE_BYTES_MAX => {
            Err(format!("`{text}` is more than the 2^62 bytes that traces address; {accepted}"))
        }
        size => Ok(size),
    }
}

/// The share of the blocks that a sample has.
pub fn sample_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate <= 1.0 => Ok(rate),
        _ => Err("accepted: a number above 0 and at most 1, such as 0.01; 1 is exact".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_blocks_and_shares_of_what_is_touched() {
        let sizes: CacheSizes = "4KiB,10kB, 1 MiB,1%,0.5%".parse().expect("sizes");
        assert_eq!(sizes.blocks(1000), [1, 2, 256, 10, 5]);
        assert_eq!(sizes.blocks(10), [1, 2, 256, 1, 1]);
    }

    #[test]
    fn the_same_size_twice_is_refused_however_it_is_written() {
        for text in ["4MiB,4096KiB", "4KiB,5kB", "1%,1.0%", "1%,1/100"] {
            let error = text.parse::<CacheSizes>().unwrap_err();
            assert!(error.contains("accepted: each size once"), "{error}");
        }
    }
}
