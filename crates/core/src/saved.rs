//! The state of a simulated stack as bytes, and back: what `--save-state` keeps.
//!
//! A stack is built as it was when its state was saved, and takes the state back in place: settings stay where they
//! are. Both ways are derived from the fields of a type, all of them in their order. A type that is made anew is a
//! [`SavedValue`]; one that was built already is [`Saved`], and says of a field that is a setting `#[saved(keep)]`.
//!
//! Nothing here is for disks that hold data: layers that survive a crash have [journals](crate::durability).

use crate::state::StateError;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Reverse;
use core::hash::{BuildHasher, Hash};
use core::ops::{Range, RangeInclusive};
use hashbrown::{HashMap, HashSet};

pub use imbrex_saved_derive::{Saved, SavedValue};

/// A thing that was built, and has a state.
pub trait Saved {
    /// Appends the state.
    fn save_into(&self, to: &mut SavedWriter);

    /// Takes the state back.
    ///
    /// # Errors
    /// When it is that of another thing, or damaged. The thing is of no use then.
    fn load_from(&mut self, from: &mut SavedReader<'_>) -> Result<(), StateError>;
}

/// A value that is all state.
pub trait SavedValue: Sized {
    /// Appends the value.
    fn put_into(&self, to: &mut SavedWriter);

    /// Makes the value again.
    ///
    /// # Errors
    /// When there is no such value.
    fn take_from(from: &mut SavedReader<'_>) -> Result<Self, StateError>;
}

impl<T: SavedValue> Saved for T {
    fn save_into(&self, to: &mut SavedWriter) {
        self.put_into(to);
    }

    fn load_from(&mut self, from: &mut SavedReader<'_>) -> Result<(), StateError> {
        *self = T::take_from(from)?;
        Ok(())
    }
}

/// Collects a state: numbers of seven bits a byte, the lowest first.
#[derive(Debug, Default)]
pub struct SavedWriter {
    bytes: Vec<u8>,
    /// What is there and cannot be saved, by the name of its field.
    obstacle: Option<&'static str>,
}

impl SavedWriter {
    /// Appends a number.
    pub fn put_u64(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Appends bytes as they are.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The field with this name has something that cannot be saved. For the derived code.
    #[doc(hidden)]
    pub fn refuse(&mut self, field: &'static str) {
        self.obstacle.get_or_insert(field);
    }

    /// What is there and cannot be saved, by the name of its field.
    pub fn obstacle(&self) -> Option<&'static str> {
        self.obstacle
    }

    /// What was written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads back what a [`SavedWriter`] wrote.
#[derive(Clone, Debug)]
pub struct SavedReader<'a> {
    bytes: &'a [u8],
}

impl<'a> SavedReader<'a> {
    /// A reader over saved bytes.
    pub fn new(bytes: &'a [u8]) -> SavedReader<'a> {
        SavedReader { bytes }
    }

    /// The next number.
    ///
    /// # Errors
    /// When the state ends before it, or has more digits there than a number has.
    pub fn take_u64(&mut self) -> Result<u64, StateError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.take_bytes::<1>()?;
            let digit = u64::from(byte & 0x7f);
            if digit << shift >> shift != digit {
                break;
            }
            value |= digit << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(StateError::new("a number of the saved state is too large"))
    }

    /// The next bytes.
    ///
    /// # Errors
    /// When the state ends before them.
    pub fn take_bytes<const N: usize>(&mut self) -> Result<&'a [u8; N], StateError> {
        let (bytes, rest) = self
            .bytes
            .split_first_chunk::<N>()
            .ok_or_else(|| StateError::new("the saved state ends too early"))?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// How many things follow. Each takes a byte at least.
    ///
    /// # Errors
    /// When there cannot be so many.
    pub fn take_len(&mut self) -> Result<usize, StateError> {
        let len = self.take_u64()?;
        match len <= self.bytes.len() as u64 {
            true => Ok(len as usize),
            false => Err(StateError::new("the saved state ends too early")),
        }
    }

    /// How many things follow, which must be as many as there are.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn take_count(&mut self, expected: u64) -> Result<(), StateError> {
        match self.take_u64()? {
            found if found == expected => Ok(()),
            found => Err(StateError::new(format!(
                "the saved state has {found} things where the stack has {expected}"
            ))),
        }
    }

    /// Which variant of an enum follows, which must be the one that is there. For the derived code.
    #[doc(hidden)]
    pub fn take_variant(&mut self, name: &str, expected: u64) -> Result<(), StateError> {
        match self.take_u64()? {
            found if found == expected => Ok(()),
            found => Err(StateError::new(format!(
                "the saved state has variant {found} where the stack has `{name}`"
            ))),
        }
    }

    /// For the derived code.
    #[doc(hidden)]
    pub fn no_variant(&self, name: &str, found: u64) -> StateError {
        StateError::new(format!(
            "the saved state has variant {found} of `{name}`, and there is none"
        ))
    }

    /// True when all was read.
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }
}

macro_rules! saved_integers {
    ($($integer:ty),*) => {$(
        impl SavedValue for $integer {
            fn put_into(&self, to: &mut SavedWriter) {
                to.put_u64(*self as u64);
            }

            fn take_from(from: &mut SavedReader<'_>) -> Result<Self, StateError> {
                let value = from.take_u64()?;
                let found = value as $integer;
                match found as u64 == value {
                    true => Ok(found),
                    false => Err(StateError::new("a number of the saved state is too large")),
                }
            }
        }
    )*};
}

saved_integers!(u8, u16, u32, u64, usize, i32, i64);

impl SavedValue for u128 {
    fn put_into(&self, to: &mut SavedWriter) {
        to.put_bytes(&self.to_le_bytes());
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<u128, StateError> {
        from.take_bytes().map(|bytes| u128::from_le_bytes(*bytes))
    }
}

impl SavedValue for bool {
    fn put_into(&self, to: &mut SavedWriter) {
        to.put_u64(u64::from(*self));
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<bool, StateError> {
        match from.take_u64()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(from.no_variant("bool", other)),
        }
    }
}

impl SavedValue for f64 {
    fn put_into(&self, to: &mut SavedWriter) {
        to.put_bytes(&self.to_bits().to_le_bytes());
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<f64, StateError> {
        from.take_bytes().map(|bytes| f64::from_bits(u64::from_le_bytes(*bytes)))
    }
}

impl SavedValue for () {
    // A byte, so that a list of them is not longer than its bytes.
    fn put_into(&self, to: &mut SavedWriter) {
        to.put_u64(0);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<(), StateError> {
        from.take_count(0)
    }
}

impl<T: SavedValue> SavedValue for Option<T> {
    fn put_into(&self, to: &mut SavedWriter) {
        self.is_some().put_into(to);
        if let Some(value) = self {
            value.put_into(to);
        }
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<Option<T>, StateError> {
        Ok(match bool::take_from(from)? {
            true => Some(T::take_from(from)?),
            false => None,
        })
    }
}

impl<T: SavedValue, E: SavedValue> SavedValue for Result<T, E> {
    fn put_into(&self, to: &mut SavedWriter) {
        self.is_ok().put_into(to);
        match self {
            Ok(value) => value.put_into(to),
            Err(error) => error.put_into(to),
        }
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<Result<T, E>, StateError> {
        Ok(match bool::take_from(from)? {
            true => Ok(T::take_from(from)?),
            false => Err(E::take_from(from)?),
        })
    }
}

impl<T: SavedValue> SavedValue for Box<T> {
    fn put_into(&self, to: &mut SavedWriter) {
        (**self).put_into(to);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<Box<T>, StateError> {
        T::take_from(from).map(Box::new)
    }
}

impl<T: SavedValue> SavedValue for Reverse<T> {
    fn put_into(&self, to: &mut SavedWriter) {
        self.0.put_into(to);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<Reverse<T>, StateError> {
        T::take_from(from).map(Reverse)
    }
}

impl<T: SavedValue> SavedValue for Range<T> {
    fn put_into(&self, to: &mut SavedWriter) {
        self.start.put_into(to);
        self.end.put_into(to);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<Range<T>, StateError> {
        Ok(T::take_from(from)?..T::take_from(from)?)
    }
}

impl<T: SavedValue> SavedValue for RangeInclusive<T> {
    fn put_into(&self, to: &mut SavedWriter) {
        self.start().put_into(to);
        self.end().put_into(to);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<RangeInclusive<T>, StateError> {
        Ok(T::take_from(from)?..=T::take_from(from)?)
    }
}

impl<T: SavedValue, const N: usize> SavedValue for [T; N] {
    fn put_into(&self, to: &mut SavedWriter) {
        self.iter().for_each(|value| value.put_into(to));
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<[T; N], StateError> {
        let values = (0..N).map(|_| T::take_from(from)).collect::<Result<Vec<T>, _>>()?;
        values.try_into().map_err(|_| StateError::new("an array of another length"))
    }
}

macro_rules! saved_tuples {
    ($(($($name:ident $number:tt),*)),*) => {$(
        impl<$($name: SavedValue),*> SavedValue for ($($name,)*) {
            fn put_into(&self, to: &mut SavedWriter) {
                $(self.$number.put_into(to);)*
            }

            fn take_from(from: &mut SavedReader<'_>) -> Result<Self, StateError> {
                Ok(($($name::take_from(from)?,)*))
            }
        }
    )*};
}

saved_tuples!((A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3));

/// Appends how many there are, and each.
fn put_all<'a, T: SavedValue + 'a>(
    values: impl ExactSizeIterator<Item = &'a T>,
    to: &mut SavedWriter,
) {
    to.put_u64(values.len() as u64);
    values.for_each(|value| value.put_into(to));
}

/// Makes a collection again.
fn take_all<T: SavedValue, All: Default + Extend<T>>(
    from: &mut SavedReader<'_>,
) -> Result<All, StateError> {
    let mut all = All::default();
    for _ in 0..from.take_len()? {
        all.extend(Some(T::take_from(from)?));
    }
    Ok(all)
}

macro_rules! saved_lists {
    ($(($($bound:tt)*) $list:ty),*) => {$(
        impl<T: SavedValue + $($bound)*> SavedValue for $list {
            fn put_into(&self, to: &mut SavedWriter) {
                put_all(self.iter(), to);
            }

            fn take_from(from: &mut SavedReader<'_>) -> Result<Self, StateError> {
                take_all(from)
            }
        }
    )*};
}

saved_lists!((Sized) Vec<T>, (Sized) VecDeque<T>, (Ord) BTreeSet<T>, (Ord) BinaryHeap<T>);

impl<T: SavedValue> SavedValue for Box<[T]> {
    fn put_into(&self, to: &mut SavedWriter) {
        put_all(self.iter(), to);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<Box<[T]>, StateError> {
        take_all::<T, Vec<T>>(from).map(Vec::into_boxed_slice)
    }
}

impl<K: SavedValue + Ord, V: SavedValue> SavedValue for BTreeMap<K, V> {
    fn put_into(&self, to: &mut SavedWriter) {
        to.put_u64(self.len() as u64);
        for (key, value) in self {
            key.put_into(to);
            value.put_into(to);
        }
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<BTreeMap<K, V>, StateError> {
        take_all::<(K, V), _>(from)
    }
}

/// Nothing depends on the order of these, so it is that of the keys in a file.
impl<K: SavedValue + Ord + Hash, V: SavedValue, S: BuildHasher + Default> SavedValue
    for HashMap<K, V, S>
{
    fn put_into(&self, to: &mut SavedWriter) {
        to.put_u64(self.len() as u64);
        let mut sorted: Vec<(&K, &V)> = self.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in sorted {
            key.put_into(to);
            value.put_into(to);
        }
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<HashMap<K, V, S>, StateError> {
        take_all::<(K, V), _>(from)
    }
}

/// Nothing depends on the order of these, so it is that of the keys in a file.
impl<K: SavedValue + Ord + Hash, S: BuildHasher + Default> SavedValue for HashSet<K, S> {
    fn put_into(&self, to: &mut SavedWriter) {
        let mut sorted: Vec<&K> = self.iter().collect();
        sorted.sort_unstable();
        put_all(sorted.into_iter(), to);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<HashSet<K, S>, StateError> {
        take_all::<K, _>(from)
    }
}

/// Whoever shares it sees the state that was taken back.
impl<T: SavedValue + Copy> Saved for Rc<Cell<T>> {
    fn save_into(&self, to: &mut SavedWriter) {
        self.get().put_into(to);
    }

    fn load_from(&mut self, from: &mut SavedReader<'_>) -> Result<(), StateError> {
        self.set(T::take_from(from)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::AddressMap;
    use alloc::string::String;
    use alloc::vec;

    #[derive(Clone, PartialEq, Debug, SavedValue)]
    enum Shape {
        Nothing,
        Line(u64),
        Box { width: u16, height: Option<i64> },
    }

    #[derive(PartialEq, Debug, Saved)]
    struct Part {
        #[saved(keep)]
        name: String,
        shapes: VecDeque<Shape>,
    }

    #[derive(PartialEq, Debug, Saved)]
    struct Whole<T> {
        #[saved(each)]
        parts: Vec<Part>,
        #[saved(inner)]
        first: Box<Part>,
        map: AddressMap<(T, bool)>,
        #[saved(absent)]
        under_way: Option<u64>,
        values: Vec<f64>,
    }

    fn part(name: &str, shapes: &[Shape]) -> Part {
        Part { name: name.into(), shapes: shapes.iter().cloned().collect() }
    }

    fn whole(shapes: &[Shape], value: u32) -> Whole<u32> {
        Whole {
            parts: vec![part("a", shapes), part("b", &[])],
            first: Box::new(part("c", shapes)),
            map: (0..5).map(|key| (key, (value, key == 3))).collect(),
            under_way: None,
            values: vec![f64::from(value)],
        }
    }

    const SHAPES: [Shape; 4] = [
        Shape::Nothing,
        Shape::Line(u64::MAX),
        Shape::Box { width: 300, height: Some(-1) },
        Shape::Box { width: 0, height: None },
    ];

    fn saved(whole: &Whole<u32>) -> Vec<u8> {
        let mut to = SavedWriter::default();
        whole.save_into(&mut to);
        assert_eq!(to.obstacle(), None);
        to.into_bytes()
    }

    #[test]
    fn a_state_comes_back_in_place_and_settings_stay() {
        let bytes = saved(&whole(&SHAPES, 70_000));
        let mut other = whole(&[], 1);
        other.parts[0].name = "set in another way".into();
        let mut from = SavedReader::new(&bytes);
        other.load_from(&mut from).expect("a state");
        assert!(from.is_at_end());
        assert_eq!(other.parts[0].name, "set in another way");
        other.parts[0].name = "a".into();
        assert_eq!(other, whole(&SHAPES, 70_000));
    }

    #[test]
    fn every_cut_is_found_and_no_damage_panics() {
        let bytes = saved(&whole(&SHAPES, 5));
        let load = |bytes: &[u8]| whole(&[], 1).load_from(&mut SavedReader::new(bytes));
        for end in 0..bytes.len() {
            assert!(load(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            for value in 0..=u8::MAX {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                // Some damage is another state.
                let _ = load(&bytes);
            }
        }
    }

    #[test]
    fn another_shape_and_lengths_beyond_the_state_are_told() {
        let mut one_part = whole(&SHAPES, 5);
        one_part.parts.pop();
        let words = |bytes: &[u8]| {
            let mut other = whole(&SHAPES, 5);
            other.load_from(&mut SavedReader::new(bytes)).expect_err("an error").message
        };
        let found = "the saved state has 1 things where the stack has 2";
        assert_eq!(words(&saved(&one_part)), found);
        assert_eq!(words(&[2, 0xff, 0xff, 0xff, 1]), "the saved state ends too early");
        assert_eq!(
            words(&[2, 1, 9]),
            "the saved state has variant 9 of `Shape`, and there is none"
        );
        assert_eq!(words(&[0x80; 12]), "a number of the saved state is too large");
    }

    #[test]
    fn what_is_under_way_is_not_saved() {
        let mut busy = whole(&[], 1);
        busy.under_way = Some(1);
        let mut to = SavedWriter::default();
        busy.save_into(&mut to);
        assert_eq!(to.obstacle(), Some("Whole.under_way"));
    }
}
