//! Keys of TOML tables, each declared once: name, type, default, what is accepted, and a sentence. Reading, errors
//! and the reference in `docs/` follow from the declaration.

use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// What is declared of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The name that earlier versions have given it, which is still read.
    pub older: Option<&'static str>,
    /// What it is, with its unit.
    pub sentence: String,
    /// The values that it takes, in words.
    pub accepted: String,
    /// What holds where it is absent, in words; none where it is needed.
    pub default: Option<String>,
}

/// A table whose keys are declared.
pub trait Keys: Sized {
    /// The names of the keys, in the order of the declaration.
    const NAMES: &'static [&'static str];

    /// The keys, in the order of the declaration.
    fn keys() -> Vec<Key>;

    /// Reads a table.
    ///
    /// # Errors
    /// With the key that is unknown, is missing or has a value that cannot be.
    fn read(table: toml::Table) -> Result<Self, KeyError>;
}

/// What is wrong with a table of keys, and with which of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyError {
    /// The key; none where one is missing.
    pub key: Option<String>,
    /// What is wrong, and what is accepted.
    pub message: String,
}

impl KeyError {
    /// An error about a key.
    pub fn of(key: &str, message: String) -> KeyError {
        KeyError { key: Some(key.to_owned()), message }
    }

    /// An error about a key that is not there.
    pub fn of_none(message: String) -> KeyError {
        KeyError { key: None, message }
    }
}

/// The values of type `T` that a key takes.
pub trait Accepts<T> {
    /// Whether it takes one.
    fn takes(&self, value: &T) -> bool;

    /// Which they are, in words.
    fn words(&self) -> String;
}

/// Words alone: the type says what can be, or the layer refuses what cannot.
impl<T> Accepts<T> for &str {
    fn takes(&self, _: &T) -> bool {
        true
    }

    fn words(&self) -> String {
        (*self).to_owned()
    }
}

impl<T: PartialOrd + Display> Accepts<T> for RangeInclusive<T> {
    fn takes(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn words(&self) -> String {
        format!("{} to {}", self.start(), self.end())
    }
}

impl<T: PartialOrd + Display> Accepts<Option<T>> for RangeInclusive<T> {
    fn takes(&self, value: &Option<T>) -> bool {
        value.as_ref().is_none_or(|value| self.contains(value))
    }

    fn words(&self) -> String {
        format!("{} to {}", self.start(), self.end())
    }
}

/// Declares a table of keys: a structure that is read from TOML, and what is said of each key.
///
/// A row is a sentence, the name, the type, the default where there is one, what is accepted, and in words what
/// holds where the key is absent. A key of type `Option` may be absent, others without a default are needed.
///
/// ```
/// imbrex_drives::keys! {
///     /// A pump.
///     pub struct Pump {
///         /// litres that it moves in a minute
///         litres_per_min: u32 => 1..=900;
///         /// whether it runs at once
///         runs: bool = true => "`true`, `false`";
///         /// who looks after it
///         #[serde(skip_serializing_if = "Option::is_none")]
///         owner: Option<String> => "a name", "nobody";
///     }
/// }
/// use imbrex_drives::keys::Keys;
/// let pump = Pump::read(toml::toml! { litres_per_min = 3 }).unwrap();
/// assert!(pump.runs && pump.owner.is_none());
/// let error = Pump::read(toml::toml! { litres_per_min = 1000 }).unwrap_err();
/// assert_eq!(error.message, "litres_per_min = 1000; accepted: 1 to 900");
/// ```
#[macro_export]
macro_rules! keys {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($derived:path),*)])?
        pub struct $name:ident {
            $(
                $(#[doc = $sentence:literal])*
                $(#[serde($($attribute:tt)*)])*
                $key:ident $((once $older:ident))? : $type:ty $(= $default:expr)? => $accepts:expr
                $(, $absent:literal)? ;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, serde::Serialize $($(, $derived)*)?)]
        pub struct $name {
            $(
                $(#[doc = $sentence])*
                $(#[serde($($attribute)*)])*
                pub $key: $type,
            )*
        }

        impl $crate::keys::Keys for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($key)),*];

            fn keys() -> Vec<$crate::keys::Key> {
                vec![$($crate::keys::Key {
                    name: stringify!($key),
                    older: None $(.or(Some(stringify!($older))))?,
                    sentence: $crate::keys::sentence(&[$($sentence),*]),
                    accepted: $crate::keys::Accepts::<$type>::words(&$accepts),
                    default: None::<String>
                        $(.or_else(|| Some(String::from($absent))))?
                        $(.or_else(|| $crate::keys::words_of::<$type>(&$default)))?,
                }),*]
            }

            #[allow(unused_mut, reason = "a table may have no keys")]
            fn read(mut table: toml::Table) -> Result<$name, $crate::keys::KeyError> {
                $crate::keys::refuse_others::<$name>(&table)?;
                Ok($name {
                    $($key: {
                        let accepts = $accepts;
                        let names = (stringify!($key), None $(.or(Some(stringify!($older))))?);
                        let default: Option<fn() -> $type> = None $(.or(Some(|| $default)))?;
                        $crate::keys::take(&mut table, names, default, &accepts)?
                    }),*
                })
            }
        }
    };
}

/// The lines of a sentence in one.
pub fn sentence(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// A value as a TOML file has it, for the reference.
pub fn words_of<T: serde::Serialize>(value: &T) -> Option<String> {
    toml::Value::try_from(value).ok().map(|value| format!("`{value}`"))
}

/// Takes a key out of a table, under its name or an older one.
///
/// # Errors
/// When it is missing and is needed, or has a value that cannot be.
pub fn take<T: DeserializeOwned>(
    table: &mut toml::Table,
    (name, older): (&str, Option<&str>),
    default: Option<fn() -> T>,
    accepts: &dyn Accepts<T>,
) -> Result<T, KeyError> {
    let given = match (table.remove(name), older.and_then(|older| table.remove(older))) {
        (Some(_), Some(_)) => {
            let older = older.unwrap_or_default();
            let words =
                format!("`{name}` and `{older}` are the same key; accepted: one of the two");
            return Err(KeyError::of(name, words));
        }
        (given, of_older) => given.or(of_older),
    };
    let Some(given) = given else {
        return match default {
            Some(default) => Ok(default()),
            None => T::deserialize(Missing(name))
                .map_err(|error| KeyError::of_none(toml::de::Error::message(&error).to_owned())),
        };
    };
    let accepted = || format!("{name} = {given}; accepted: {}", accepts.words());
    let refused = |why: &str| match why {
        // The type alone says less than the declaration.
        why if why.starts_with("invalid type") || expects_a_number(why) => accepted(),
        why if why.contains("accepted") || why.contains("expected") => why.to_owned(),
        why => format!("{name} = {given}: {why}; accepted: {}", accepts.words()),
    };
    match T::deserialize(given.clone()) {
        Ok(value) if accepts.takes(&value) => Ok(value),
        Ok(_) => Err(KeyError::of(name, accepted())),
        Err(error) => Err(KeyError::of(name, refused(error.message()))),
    }
}

/// Whether serde says no more than which type of number it wants.
fn expects_a_number(why: &str) -> bool {
    let types = ["u8", "u16", "u32", "u64", "i64", "f64"];
    why.rsplit_once("expected ").is_some_and(|(_, expected)| types.contains(&expected))
}

/// Refuses keys that are not declared.
///
/// # Errors
/// With the first of them.
pub fn refuse_others<T: Keys>(table: &toml::Table) -> Result<(), KeyError> {
    let mut others = table.keys().filter(|key| !T::NAMES.contains(&key.as_str()));
    let is_older = |name: &str| T::keys().iter().any(|key| key.older == Some(name));
    let Some(key) = others.find(|key| !is_older(key)) else {
        return Ok(());
    };
    let known: Vec<String> = T::NAMES.iter().map(|name| format!("`{name}`")).collect();
    let words = format!("unknown field `{key}`, expected one of {}", known.join(", "));
    Err(KeyError::of(key, words))
}

/// Stands for a key that is not there: an option is none then.
struct Missing<'a>(&'a str);

impl<'de> Deserializer<'de> for Missing<'_> {
    type Error = toml::de::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, toml::de::Error> {
        Err(toml::de::Error::custom(format!("missing field `{}`", self.0)))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, toml::de::Error> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
