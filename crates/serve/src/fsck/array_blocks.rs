//! The blocks of an array of copies: what they must be, and whether they are.

use super::array::ArrayState;
use super::array_member::Has;
use super::findings::Findings;
use super::member::Member;
use super::tables::{self, Holes, Page, WORDS_PER_PAGE};
use imbrex_core::crc;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::NOTHING;
use std::cell::RefCell;
use std::rc::Rc;

const TABLE: &str = "table of checksums";
const DATA: &str = "data";

/// The words of a page of checksums, and which page that is.
type KnownPage = ((u64, u64), Vec<u32>);

/// The blocks of an array.
pub(super) struct ArrayBlocks {
    state: Rc<ArrayState>,
    /// The members, by column; none of one that is not there or whose word does not count.
    members: Vec<Option<Member>>,
    set: Uuid,
    /// Where the rows of each member begin.
    first_block: u64,
    last: RefCell<Option<KnownPage>>,
}

impl ArrayBlocks {
    pub fn new(
        state: &Rc<ArrayState>,
        members: Vec<Option<Member>>,
        set: Uuid,
        first_block: u64,
    ) -> ArrayBlocks {
        let state = Rc::clone(state);
        ArrayBlocks { state, members, set, first_block, last: RefCell::default() }
    }

    /// The members that have a row, with their columns.
    fn with_row(&self, row: u64) -> impl Iterator<Item = (usize, &Member)> {
        let there = self.members.iter().enumerate();
        let there = there.filter_map(|(column, member)| Some((column, member.as_ref()?)));
        there.filter(move |(column, _)| self.state.has_row(*column, row))
    }

    /// True when a member that is there has all rows.
    pub fn are_all_there(&self) -> bool {
        let mut columns = self.state.members.iter().zip(&self.members);
        columns.any(|(of, member)| of.has == Has::All && member.is_some())
    }

    fn page(&self, region: u64, index: u64) -> Page {
        let shape = &self.state.shape;
        let start = self.first_block + region * shape.pages;
        let page = Page::of_table(self.set, (start, shape.region_rows), index);
        Page { blank: Some(NOTHING), ..page }
    }

    /// The words of a page, of the first member that can give it. Where none can, nothing is known.
    fn words(&self, region: u64, index: u64) -> Vec<u32> {
        let page = self.page(region, index);
        let mut there = self.with_row(region * self.state.shape.pages + index);
        let words = there.find_map(|(_, member)| page.read(member).ok());
        words.unwrap_or_else(|| vec![NOTHING; page.words as usize])
    }

    /// Reads the tables of all members. Outside marked regions they must be the same.
    pub fn check_tables(&self, into: &mut Findings) {
        let shape = self.state.shape;
        for row in 0..shape.table_rows() {
            let (region, index) = (row / shape.pages, row % shape.pages);
            let mut first: Option<(&Member, Vec<u32>)> = None;
            for (_, member) in self.with_row(row) {
                match (self.page(region, index).read(member), &first) {
                    (Err(problem), _) => {
                        into.damage(member.name(), TABLE, format!("region {region}: {problem}"));
                    }
                    (Ok(words), None) => first = Some((member, words)),
                    (Ok(words), Some((other, known))) => {
                        if words != *known && !self.state.marked.contains(&region) {
                            let other = other.name();
                            let words = format!(
                                "region {region}: page {index} of its checksums differs from that of {other}"
                            );
                            into.damage(member.name(), TABLE, words);
                        }
                    }
                }
            }
        }
    }

    /// Reads every block of every member that has it, and compares it with its checksum, and with
    /// those of the others where nobody knows what it must be. Marked regions may hold anything.
    pub fn check_data(&self, into: &mut Findings) {
        let shape = self.state.shape;
        let mut holes: Vec<Holes<'_>> =
            self.members.iter().map(|member| Holes::new(member.as_ref())).collect();
        for region in (0..shape.regions).filter(|it| !self.state.marked.contains(it)) {
            let rows = shape.rows_of(region);
            for index in 0..shape.pages {
                let words = self.words(region, index);
                let first = rows.start.0 + index * WORDS_PER_PAGE;
                for (row, word) in (first..rows.end().0).zip(words) {
                    if !self.state.unreadable.contains(&row) {
                        self.check_row(row, word, &mut holes, into);
                    }
                }
            }
        }
    }

    fn check_row(&self, row: u64, word: u32, holes: &mut [Holes<'_>], into: &mut Findings) {
        let block = row - self.state.shape.table_rows();
        let at = self.first_block + row;
        let mut bytes = Vec::new();
        let mut first: Option<(&Member, u32)> = None;
        for (column, member) in self.with_row(row) {
            if holes[column].has_zeroes(word, at) {
                continue;
            }
            let read = member.read(at, 1, &mut bytes).map_err(|error| error.to_string());
            if let Err(problem) = read.and_then(|()| tables::compare(word, &bytes)) {
                let words = format!("block {block}, at block {at} of the member: {problem}");
                into.damage(member.name(), DATA, words);
                continue;
            }
            let own = crc::crc32c(&bytes);
            match first {
                Some((other, known)) if known != own => {
                    let other = other.name();
                    let words = format!(
                        "block {block}, at block {at} of the member: it differs from that of {other}"
                    );
                    into.damage(member.name(), DATA, words);
                }
                Some(_) => {}
                None => first = Some((member, own)),
            }
        }
    }

    /// Reads a block of the array of a member that has the right one.
    pub fn read(&self, block: u64, into: &mut Vec<u8>) -> Result<(), String> {
        let shape = &self.state.shape;
        if block >= shape.data_rows {
            return Err("it lies past the array".to_owned());
        }
        let row = shape.table_rows() + block;
        if self.state.unreadable.contains(&row) {
            return Err("no member has it any more".to_owned());
        }
        let region = shape.region_of(row);
        let in_region = block - region * shape.region_rows;
        let word = self.word(region, in_region);
        let mut problem = "no member that is there has it".to_owned();
        let at = self.first_block + row;
        for (_, member) in self.with_row(row) {
            let read = member.read(at, 1, into).map_err(|error| error.to_string());
            match read.and_then(|()| tables::compare(word, into)) {
                Ok(()) => return Ok(()),
                Err(words) => problem = format!("{}: {words}", member.name()),
            }
        }
        // The tables of a marked region may be older than its blocks.
        let is_marked = self.state.marked.contains(&region);
        let mut there = self.with_row(row).filter(|_| is_marked);
        match there.any(|(_, member)| member.read(at, 1, into).is_ok()) {
            true => Ok(()),
            false => Err(problem),
        }
    }

    fn word(&self, region: u64, row: u64) -> u32 {
        let (index, at) = (row / WORDS_PER_PAGE, (row % WORDS_PER_PAGE) as usize);
        let mut last = self.last.borrow_mut();
        match &*last {
            Some((page, words)) if *page == (region, index) => words[at],
            _ => {
                let words = self.words(region, index);
                let word = words[at];
                *last = Some(((region, index), words));
                word
            }
        }
    }
}
