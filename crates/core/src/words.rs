//! Choices that a user makes by a word: each enum lists the words of its own.

/// A choice with a word for each value.
pub trait Words: Copy + Eq + 'static {
    /// The values, in the order in which a user is told of them.
    const VALUES: &'static [Self];

    /// Their words, in the same order.
    const WORDS: &'static [&'static str];

    /// The word of a value.
    fn word(self) -> &'static str;

    /// The value of a word; none when it is another word.
    fn of_word(word: &str) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.word() == word)
    }
}

/// Declares enums of [`Words`](crate::words::Words), a row for each value with its word. They can be copied,
/// compared and printed; derive what else they need.
///
/// ```
/// imbrex_core::words! {
///     /// Where a pump stands.
///     #[derive(Default)]
///     pub enum Place {
///         /// In the house.
///         #[default]
///         Indoors = "indoors",
///         /// Behind it.
///         BackYard = "back-yard",
///     }
/// }
/// use imbrex_core::words::Words;
/// assert_eq!(Place::WORDS, ["indoors", "back-yard"]);
/// assert_eq!(Place::BackYard.word(), "back-yard");
/// assert_eq!(Place::of_word("indoors"), Some(Place::default()));
/// assert_eq!(Place::of_word("roof"), None);
/// ```
#[macro_export]
macro_rules! words {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$of_value:meta])* $value:ident = $word:literal),* $(,)?
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$of_value])* $value),*
        }

        impl $crate::words::Words for $name {
            const VALUES: &'static [$name] = &[$($name::$value),*];
            const WORDS: &'static [&'static str] = &[$($word),*];

            fn word(self) -> &'static str {
                match self {
                    $($name::$value => $word),*
                }
            }
        }
    )*};
}
