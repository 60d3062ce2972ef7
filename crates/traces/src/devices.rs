//! Device numbers for the names a trace gives its devices.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Numbers devices 0, 1, ... in the order in which a trace names them, as [`TraceRecord`](super::TraceRecord) wants them.
#[derive(Debug)]
pub(super) struct Devices<K> {
    numbers: HashMap<K, u16>,
    /// The device asked for last: most lines ask for it again.
    last: Option<(K, u16)>,
}

impl<K> Default for Devices<K> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            last: None,
        }
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
                let number = u16::try_from(self.numbers.len()).ok()?;
                self.numbers.insert(name.to_owned(), number);
                number
            }
        };
        self.last = Some((name.to_owned(), number));
        Some(number)
    }

    /// True when no further device fits.
    pub(super) fn is_full(&self) -> bool {
        self.numbers.len() > usize::from(u16::MAX)
    }
}
