//! Words of commands that are printed for people to type.

use std::borrow::Cow;

/// The text as one word for a shell: as it is where no shell reads anything into it, else in quotes.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_comes_through_a_shell_as_it_is() {
        for plain in ["cache.capacity=5%", "/data/a-b_c.img", "time=1:s,off=2"] {
            assert_eq!(shell_word(plain), plain);
        }
        for text in ["", "op=4:0|1", "my data", "it's", "cache.capacity=5 %", "$HOME", "a;b", "~"] {
            let word = shell_word(text);
            assert!(word.starts_with('\''), "{word}");
            let printed = std::process::Command::new("sh")
                .arg("-c")
                .arg(format!("printf %s {word}"))
                .output()
                .expect("a shell");
            assert_eq!(String::from_utf8_lossy(&printed.stdout), text);
        }
    }
}
