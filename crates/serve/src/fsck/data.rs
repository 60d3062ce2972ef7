//! Reading all data of a translation and comparing it with its checksums.

use super::disks::Disks;
use super::findings::Findings;
use super::member::Member;
use super::translation::{SUMS_PER_PAGE, TranslationState, Where};
use imbrex_core::crc;
use imbrex_core::durability::block::{self, BlockKind, Expected};
use imbrex_core::lifecycle::Uuid;
use std::rc::Rc;

/// Reads blocks of the device through the map.
pub(super) struct Through {
    state: Rc<TranslationState>,
    disks: Disks,
    member: Uuid,
    /// The page that was read last: band, index, checksums.
    page: Option<(usize, u64, Vec<u32>)>,
}

impl Through {
    pub fn new(state: Rc<TranslationState>, disks: Disks, member: Uuid) -> Through {
        Through { state, disks, member, page: None }
    }

    /// Blocks of the device.
    pub fn blocks(&self) -> u64 {
        self.state.blocks
    }

    /// Reads one block of the device and verifies it.
    pub fn read(&mut self, lba: u64, into: &mut Vec<u8>) -> Result<(), String> {
        let place = self.state.find(lba).ok_or("it lies past the device")?;
        let (is_home, address, expected) = match place {
            Where::Zeroes => {
                super::kinds::zeroes(into);
                return Ok(());
            }
            Where::Lost => return Err("its write has failed".to_owned()),
            Where::Log(address, checksum) => (false, address, checksum),
            Where::Home(address, band, offset) => (true, address, self.checksum(band, offset)?),
        };
        let disk = match is_home {
            true => self.disks.home(),
            false => self.disks.log(),
        };
        let read = disk.read(address, 1, into);
        read.map_err(|error| error.to_string())?;
        match crc::crc32c(into) == expected {
            true => Ok(()),
            false => {
                Err(format!("the data at block {address} of the disk does not match its checksum"))
            }
        }
    }

    fn checksum(&mut self, band: usize, offset: u64) -> Result<u32, String> {
        if let Some(sums) = self.state.open.get(&(band as u64)) {
            let sum = sums.get(offset as usize).copied();
            return sum.ok_or_else(|| "it has no checksum".to_owned());
        }
        let index = offset / SUMS_PER_PAGE;
        let is_there = self.page.as_ref().is_some_and(|page| (page.0, page.1) == (band, index));
        if !is_there {
            self.page = Some((band, index, self.read_page(band, index)?));
        }
        let sums = &self.page.as_ref().expect("a page that was read").2;
        let sum = sums.get((offset % SUMS_PER_PAGE) as usize).copied();
        sum.ok_or_else(|| "it has no checksum".to_owned())
    }

    fn read_page(&self, band: usize, index: u64) -> Result<Vec<u32>, String> {
        let Some(table) = self.state.bands.get(band).map(|band| band.table).filter(|it| *it != 0)
        else {
            return Err(format!("band {band} has no table of checksums"));
        };
        let problem = |words: String| format!("page {index} of the table of band {band}: {words}");
        let address = self.state.table_start(band) + index;
        let mut bytes = Vec::new();
        self.disks
            .log()
            .read(address, 1, &mut bytes)
            .map_err(|error| problem(error.to_string()))?;
        let expected = Expected::new(BlockKind::ChecksumTable, Some(self.member), address);
        let (header, payload) =
            block::unseal(&bytes, expected).map_err(|error| problem(error.message()))?;
        if (header.generation, header.sequence) != (table >> 1, index) {
            return Err(problem(format!(
                "it is page {} of generation {}",
                header.sequence, header.generation
            )));
        }
        let sums = payload.chunks_exact(4);
        Ok(sums.map(|sum| u32::from_le_bytes(sum.try_into().expect("4 bytes"))).collect())
    }

    /// Reads every page of every table that counts.
    pub fn check_tables(&mut self, into: &mut Findings) {
        for (number, band) in self.state.bands.iter().enumerate() {
            if self.state.open.contains_key(&(number as u64)) || band.table == 0 {
                continue;
            }
            for index in 0..band.pointer.div_ceil(SUMS_PER_PAGE) {
                if let Err(problem) = self.read_page(number, index) {
                    into.damage(self.disks.log().name(), "table of checksums", problem);
                }
            }
        }
    }

    /// Reads every block that holds something.
    pub fn check_data(&mut self, into: &mut Findings) {
        let mut bytes = Vec::new();
        let disks = self.disks.clone();
        let mut complain = |disk: &Member, lba: u64, problem: String| {
            into.damage(disk.name(), "data", format!("block {lba}: {problem}"));
        };
        let logged: Vec<u64> = self.state.logged.keys().copied().collect();
        let homes: Vec<(u64, u64)> =
            self.state.bands.iter().map(|band| (band.start, band.start + band.pointer)).collect();
        for (start, end) in homes {
            for lba in start..end {
                if let Some(Where::Home(..)) = self.state.find(lba)
                    && let Err(problem) = self.read(lba, &mut bytes)
                {
                    complain(disks.home(), lba, problem);
                }
            }
        }
        for lba in logged {
            if let Err(problem) = self.read(lba, &mut bytes) {
                complain(disks.log(), lba, problem);
            }
        }
    }
}
