//! Values by who wanted an operation.

use imbrex_core::operation::Cause;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// One value for each cause of an operation, by the name of the cause, in the order of
/// [`Cause::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByCause<T>([T; Cause::ALL.len()]);

impl<T> ByCause<T> {
    /// The value of each cause.
    pub fn of(value: impl FnMut(Cause) -> T) -> ByCause<T> {
        ByCause(Cause::ALL.map(value))
    }

    /// The causes with their values.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, &T)> {
        Cause::ALL.into_iter().zip(&self.0)
    }
}

impl<T: Copy> ByCause<T> {
    /// The values in the order of the causes.
    pub fn values(&self) -> [T; Cause::ALL.len()] {
        self.0
    }

    /// The same causes with `convert` applied to each value.
    pub fn map<U>(&self, convert: impl FnMut(T) -> U) -> ByCause<U> {
        ByCause(self.0.map(convert))
    }
}

impl<T> Index<Cause> for ByCause<T> {
    type Output = T;

    fn index(&self, cause: Cause) -> &T {
        &self.0[cause as usize]
    }
}

impl<T> IndexMut<Cause> for ByCause<T> {
    fn index_mut(&mut self, cause: Cause) -> &mut T {
        &mut self.0[cause as usize]
    }
}

impl<T: Serialize> Serialize for ByCause<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(Cause::ALL.len()))?;
        for (cause, value) in self.iter() {
            map.serialize_entry(cause.name(), value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for ByCause<T> {
    /// A report that is older than a cause has nothing of it.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ByCause<T>, D::Error> {
        let mut values = BTreeMap::<String, T>::deserialize(from)?;
        Ok(ByCause::of(|cause| values.remove(cause.name()).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_in_their_order_and_one_that_is_not_there_has_nothing() {
        let values = ByCause::of(|cause| cause as u64 + 1);
        let text = serde_json::to_string(&values).expect("text");
        let names = Cause::ALL.map(|cause| format!("\"{}\":{}", cause.name(), cause as u64 + 1));
        assert_eq!(text, format!("{{{}}}", names.join(",")));
        assert_eq!(serde_json::from_str::<ByCause<u64>>(&text).expect("values"), values);
        let old: ByCause<u64> = serde_json::from_str(r#"{"host":7,"none":8}"#).expect("values");
        assert_eq!(old, ByCause::of(|cause| if cause == Cause::Host { 7 } else { 0 }));
    }
}
