//! Device numbers for the names a trace gives its devices.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use super::text::LineProblem;

/// Numbers devices 0, 1, ... in the order in which a trace names them, as [`TraceRecord`](super::TraceRecord) wants them.
#[derive(Debug)]
pub(super) struct Devices<K> {
    numbers: HashMap<K, u16>,
    /// The device asked for last: most lines ask for it again.
    last: Option<(K, u16)>,
    /// A device was asked for that got no number.
    is_too_small: bool,
}

impl<K> Default for Devices<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), last: None, is_too_small: false }
    }
}

impl<K: Eq + Hash> Devices<K> {
    /// The number of a device, new or known; `None` for the 65,537th.
    #[inline]
    pub(super) fn number<Q>(&mut self, name: &Q) -> Option<u16>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if let Some((last, number)) = &self.last
            && last.borrow() == name
        {
            return Some(*number);
        }
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                let Ok(number) = u16::try_from(self.numbers.len()) else {
                    self.is_too_small = true;
                    return None;
                };
                self.numbers.insert(name.to_owned(), number);
                number
            }
        };
        self.last = Some((name.to_owned(), number));
        Some(number)
    }

    /// What is wrong with a line that names one device too many; `things` is what the format calls them.
    pub(super) fn refusal(&self, things: &str) -> Option<Box<LineProblem>> {
        self.is_too_small.then(|| {
            Box::new(LineProblem::Line {
                found: format!("more than 65,536 {things}"),
                accepted: format!("at most 65,536 {things}"),
            })
        })
    }
}
