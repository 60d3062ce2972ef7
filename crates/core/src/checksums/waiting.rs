//! What waits for pages of tables that are being read.

use crate::map::{AddressMap, Slab, address_map};
use crate::saved::SavedValue;

/// Pages that are read at once for which there is room from the start.
const PAGES_AT_ONCE: usize = 64;

/// Who waits for one page: places in all who wait, the first who came first.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Line {
    first: u32,
    last: u32,
}

/// What was read and waits for a page, by the address of the page.
#[derive(Debug, SavedValue)]
pub(super) struct Waiting<R> {
    lines: AddressMap<Line>,
    /// Each with the one that came after it for the same page.
    reads: Slab<(R, Option<u32>)>,
}

impl<R: Copy> Waiting<R> {
    /// Nobody waits.
    pub fn new() -> Waiting<R> {
        Waiting { lines: address_map(PAGES_AT_ONCE), reads: Slab::default() }
    }

    /// `read` waits for the page at an address. True when nobody did before: the page is to be read.
    pub fn wait(&mut self, address: u64, read: R) -> bool {
        let at = self.reads.add((read, None));
        if let Some(line) = self.lines.get_mut(&address) {
            self.reads[line.last].1 = Some(at);
            line.last = at;
            return false;
        }
        let line = Line { first: at, last: at };
        self.lines.insert(address, line);
        true
    }

    /// The next one that waits for the page at an address, taken out.
    pub fn next(&mut self, address: u64) -> Option<R> {
        let line = self.lines.get_mut(&address)?;
        let (read, behind) = self.reads.take(line.first);
        match behind {
            Some(behind) => line.first = behind,
            None => {
                self.lines.remove(&address);
            }
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_page_goes_on_in_the_order_of_coming() {
        let mut waiting = Waiting::new();
        assert!(waiting.wait(7, 'a') && waiting.wait(9, 'b'));
        assert!(!waiting.wait(7, 'c') && !waiting.wait(7, 'd'));
        assert_eq!((waiting.next(7), waiting.next(7)), (Some('a'), Some('c')));
        assert!(!waiting.wait(7, 'e'), "one still waits");
        assert_eq!((waiting.next(7), waiting.next(7)), (Some('d'), Some('e')));
        assert_eq!((waiting.next(7), waiting.next(9)), (None, Some('b')));
        assert!(waiting.wait(7, 'f'));
    }
}
